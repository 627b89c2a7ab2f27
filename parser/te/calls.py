"""Calls: of the text's own functions, and of those of TE, whose arguments are looked at first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import Parameter
from typing import Any

from ...dialects.te import extern as ext
from ...dialects.te import tensor as te
from ...dialects.te.reducers import AxisReducer
from ...dialects.tir import node as ex
from ...dialects.tir.node import current_location, fail
from ...support.diagnostics import error_at
from ...support.locations import argument_place
from ...support.text import nearest_or_all
from ..python import tree
from ..source import Source
from .expressions import Expressions
from .names import TEXTS, Builtin, signature_of
from .schedules import Primitive
from .scope import TextFunction


def refuse_unknown(name: str, function: Callable[..., Any], keywords: Mapping[str, Any]) -> None:
    """Raises a MirError at the first keyword of the current call that is not a parameter of `function`."""
    parameters = signature_of(function).parameters.values()
    takes_all = any(p.kind is Parameter.VAR_KEYWORD for p in parameters)
    known = [p.name for p in parameters if p.name != "self" and p.kind is not Parameter.VAR_POSITIONAL]
    for keyword in keywords:
        if keyword not in known and not takes_all:
            raise error_at(
                argument_place(current_location(), keyword),
                f"{name} has no parameter '{keyword}'{nearest_or_all(keyword, known)}",
            )


class Calls(Expressions):
    """Carries out calls; notes what they define."""

    def __init__(self, source: Source):
        super().__init__(source)
        # What the statements define, in order.
        self.definitions: list[Any] = []
        # Where statements of an extern's function go; None outside of one.
        self.statements: list[ext.Stmt] | None = None
        self.attrs: dict[str, Any] = {}
        # The hybrid scripts that the text may call.
        self.scripts: Mapping[str, Builtin] = {}

    def call(self, node: tree.Call, scope: Mapping[str, Any]) -> Any:
        if node.keywords:
            self._check_order(node)
        function = self.value(node.function, scope)
        arguments = self._items(node.arguments, scope)
        keywords = {str(k.name): self.value(k.value, scope) for k in node.keywords}
        with self.at(node):
            match function:
                case Builtin():
                    return self._call_builtin(function, arguments, keywords)
                case AxisReducer():
                    return self._bound(f"te.{function.name}", function.__call__, arguments, keywords)
                case te.Tensor():
                    if keywords:
                        raise fail(f"tensor '{function.name}' is read by indices, which have no names")
                    return function(*arguments)
                case TextFunction():
                    if keywords:
                        names = [*function.params]
                        for name in keywords:
                            if name not in names[len(arguments) :]:
                                raise error_at(
                                    argument_place(current_location(), name),
                                    f"'{function.name}' has no parameter '{name}' left to give",
                                )
                        missing = [n for n in names[len(arguments) :] if n not in keywords]
                        if missing:
                            raise fail(f"'{function.name}' is called without '{missing[0]}'")
                        arguments += [keywords[n] for n in names[len(arguments) :]]
                    return function(*arguments)
                case _:
                    raise fail(f"{ex.describe(function)} cannot be called")

    def _check_order(self, node: tree.Call) -> None:
        """Refuses an argument given twice, and a positional argument after one with a name."""
        first = node.keywords[0].name.start
        for argument in node.arguments:
            if tree.place_of(argument) > first and not (isinstance(argument, tree.Unary) and argument.op == "*"):
                self.refuse(argument, "a positional argument follows one with a name")
        for place, keyword in enumerate(node.keywords):
            if any(keyword.name == other.name for other in node.keywords[:place]):
                self.refuse(keyword.name, f"argument '{keyword.name}' is given twice")

    def _call_builtin(self, builtin: Builtin, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        if isinstance(builtin, Primitive):
            return self._scheduling(builtin, arguments, keywords)
        match builtin.name:
            case "te.compute":
                return self._define(self._bound(builtin.name, self._compute, arguments, keywords))
            case "te.extern":
                return self._define(self._bound(builtin.name, self._extern, arguments, keywords))
            case "te.var" | "te.size_var" | "te.placeholder" | "te.scan" | "te.reduce_axis":
                return self._define(self._bound(builtin.name, builtin.function, arguments, keywords))
            case "te.allocate":
                return self._bound(builtin.name, self._memory, arguments, keywords)
            case "te.create_schedule" | "te.thread_axis":
                return self._scheduling(builtin, arguments, keywords)
            case name if name in self.scripts:
                return self._define(builtin.function(*arguments))
            case "te.comm_reducer":
                return self._reducer(self._bound(builtin.name, builtin.function, arguments, keywords))
            case _:
                return self._bound(builtin.name, builtin.function, arguments, keywords)

    def _scheduling(self, builtin: Builtin, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        """A call of a schedule's, which says by TypeError what arguments it takes."""
        try:
            return self._bound(builtin.name, builtin.function, arguments, keywords)
        except TypeError as error:
            raise fail(str(error)) from None

    def _bound(self, name: str, function: Callable[..., Any], arguments: list[Any], keywords: dict[str, Any]) -> Any:
        """Calls a function of ours, its arguments matched with its parameters and looked at first."""
        plain: Callable[..., Any] = getattr(function, "__func__", function)
        bound_to: list[Any] = [] if plain is function else [getattr(function, "__self__", None)]
        try:
            bound = signature_of(plain).bind(*bound_to, *arguments, **keywords)
        except TypeError as error:
            refuse_unknown(name, plain, keywords)
            raise fail(f"{name}: {error}") from None
        for parameter, value in bound.arguments.items():
            if parameter in TEXTS and not isinstance(value, str):
                several = ex.items_of(value) or ()
                if parameter != "dtype" or (
                    value is not None and not (several and all(isinstance(v, str) for v in several))
                ):
                    raise error_at(
                        argument_place(current_location(), parameter),
                        f"'{parameter}' of {name} is a string, not {ex.describe(value)}",
                    )
            if parameter == "attrs" and value is not None:
                self._check_attrs(name, value)
        return function(*arguments, **keywords)

    def _check_attrs(self, name: str, value: Any) -> None:
        keys: list[Any] = list(value) if isinstance(value, dict) else [None]  # pyright: ignore[reportUnknownArgumentType]
        if not all(isinstance(key, str) for key in keys):
            what = ex.describe(value)  # pyright: ignore[reportUnknownArgumentType]
            place = argument_place(current_location(), "attrs")
            raise error_at(place, f"'attrs' of {name} is a dictionary with names as keys, not {what}")

    def _define(self, made: Any) -> Any:
        first: object = (ex.items_of(made) or (made,))[0]
        self.definitions.append(first.op if isinstance(first, te.Tensor) else first)
        return made

    def _reducer(self, reducer: AxisReducer) -> AxisReducer:
        for what, function in (("fcombine", reducer.combine), ("fidentity", reducer.identity)):
            if not isinstance(function, TextFunction):
                raise fail(f"'{what}' of te.comm_reducer is a function, not {ex.describe(function)}")
        self.definitions.append(reducer)
        return reducer

    def _compute(
        self,
        shape: Any,
        fcompute: Any,
        name: str = "compute",
        tag: str = "",
        attrs: Any = None,
        varargs_names: Any = None,
    ) -> Any:
        if not isinstance(fcompute, TextFunction):
            raise fail(
                f"a te.compute takes the function of its axes second, not {ex.describe(fcompute)}",
                "write te.compute((n,), lambda i: A[i], name=…)",
            )
        dims = te.dims_of(shape)
        return te.compute_named(dims, fcompute.axis_names(len(dims), varargs_names), fcompute, name, tag, attrs)

    def _extern(
        self,
        shape: Any,
        inputs: Any,
        fcompute: Any,
        name: str = "extern",
        dtype: Any = None,
        in_buffers: Any = None,
        out_buffers: Any = None,
        tag: str = "",
        attrs: Any = None,
    ) -> Any:
        if in_buffers is not None or out_buffers is not None:
            raise fail("te.extern makes its buffers itself here: leave in_buffers and out_buffers out")
        if not isinstance(fcompute, TextFunction):
            raise fail(f"a te.extern takes the function of its buffers third, not {ex.describe(fcompute)}")

        def body(ins: Any, outs: Any) -> Any:
            outer, self.statements = self.statements, []
            try:
                value = fcompute(ins, outs)
                return [*self.statements, *([] if value is None else [value])]
            finally:
                self.statements = outer

        if isinstance(inputs, te.Tensor):
            inputs = [inputs]
        return ext.extern(shape, inputs, body, name, dtype, tag, attrs)

    def _memory(self, shape: Any, dtype: Any = "float32", scope: Any = "global", name: str = "local") -> ex.Buffer:
        if self.statements is None:
            raise fail(
                "te.allocate stands in the function of a te.extern",
                "a tensor is described: te.compute(shape, lambda i: …)",
            )
        if not isinstance(scope, str) or not scope:
            raise fail(f"the storage scope of te.allocate is a string, not {ex.describe(scope)}")
        buffer = ex.Buffer(name, te.dims_of(shape), te.checked_dtype(dtype, "allocated memory"))
        self.statements.append(ext.Temporary(buffer, scope))
        return buffer

    def set_attributes(self, attrs: Any) -> None:
        self._check_attrs("te.func_attr", attrs)
        self.attrs |= attrs
