"""A TE function is carried out here: its text is data for this evaluator, never for Python's.

Python's arithmetic, tuples, functions and lambdas are understood as far as TE programs use them; `te.…` calls build the
objects of `dialects.te`, which become ops at the end.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from ...dialects.te import expr as ex
from ...dialects.te import extern as ext
from ...dialects.te import tensor as te
from ...dialects.te.builder import func as build_func
from ...dialects.te.expr import fail, location_scope
from ...dialects.te.ops import FuncOp
from ...dialects.te.reducers import CommReducer
from . import tree
from .names import SCHEDULING, TEXTS, Builtin, Namespace, Range, globals_of_te, signature_of
from .reader import Source

MOST_CALLS = 200_000
"""How many calls of the text's own functions one statement may make."""
MOST_DEPTH = 200
"""How deep they may nest."""

_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "**": operator.pow, "<<": operator.lshift, ">>": operator.rshift, "&": operator.and_,
    "|": operator.or_, "^": operator.xor, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
_FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "+": ex.add, "-": ex.subtract, "*": ex.multiply, "/": ex.divide, "//": ex.floordiv, "%": ex.floormod,
    "<<": ex.left_shift, ">>": ex.right_shift, "&": ex.bitwise_and, "|": ex.bitwise_or, "^": ex.bitwise_xor,
    "<": ex.less, "<=": ex.less_equal, ">": ex.greater, ">=": ex.greater_equal, "==": ex.equal, "!=": ex.not_equal,
}  # fmt: skip
# Attributes that the text may ask for, by class.
_ATTRIBUTES: dict[type, tuple[str, ...]] = {
    te.Tensor: ("shape", "dtype", "ndim", "name", "op"),
    te.TensorSlice: ("dtype",),
    te.PlaceholderOp: ("name", "num_outputs", "output", "attrs", "tag"),
    te.ComputeOp: ("name", "num_outputs", "output", "attrs", "tag", "axis", "reduce_axis", "input_tensors"),
    te.ScanOp: ("name", "num_outputs", "output", "attrs", "tag", "input_tensors"),
    ext.ExternOp: ("name", "num_outputs", "output", "attrs", "tag", "input_tensors"),
    ext.Buffer: ("shape", "dtype", "name", "data", "access_ptr", "vload", "vstore"),
    ext.BufferPointer: ("dtype",),
    ext.IRBuilder: ("for_range", "if_scope", "else_scope", "buffer_ptr", "emit", "get"),
    ex.IterVar: ("dtype", "astype", "equal", "var", "name"),
    ex.Var: ("dtype", "astype", "equal", "name"),
    ex.Expr: ("dtype", "astype", "equal"),
}


class Scope(dict[str, Any]):
    """Names of one function, and those of the function around it as far as they are not its own."""

    def __init__(self, outer: Mapping[str, Any], own: Mapping[str, Any] | None = None):
        super().__init__(own or {})
        self.outer = outer

    def __missing__(self, name: str) -> Any:
        return self.outer[name]


class Function:
    """A function or lambda of the text."""

    def __init__(
        self,
        evaluator: Evaluator,
        name: str,
        params: Sequence[str],
        rest: str | None,
        body: tree.Expr | list[tree.Stmt],
        scope: Mapping[str, Any],
    ):
        self.evaluator, self.name, self.params, self.rest, self.body, self.scope = (
            evaluator,
            name,
            params,
            rest,
            body,
            scope,
        )

    def __call__(self, *arguments: Any) -> Any:
        return self.evaluator.call_function(self, arguments)

    def axis_names(self, ndim: int, varargs_names: Any) -> list[str]:
        """The names of a compute's axes, as TVM takes them from the function."""
        names = list(self.params)
        if self.rest is not None:
            more = ndim - len(names)
            if varargs_names is not None:
                if (
                    not isinstance(varargs_names, (tuple, list))
                    or not all(isinstance(n, str) for n in varargs_names)
                    or len(varargs_names) != more
                ):
                    raise fail(f"varargs_names must be {more} names here, one for each axis that *{self.rest} takes")
                names += varargs_names
            else:
                names += [f"i{i}" for i in range(more)]
        if len(names) != ndim:
            raise fail(
                f"the function of a compute has {len(self.params)} parameters, but the shape has {ndim} dimensions"
            )
        return names


class _Returned(Exception):
    def __init__(self, value: Any):
        super().__init__()
        self.value = value


class Evaluator:
    """Carries out one `@te.func`."""

    def __init__(self, source: Source):
        self.source = source
        # What the statements define, in order; names as the text has them, for the printed form.
        self.definitions: list[Any] = []
        self.calls = 0
        self.depth = 0
        # Where statements of an extern's function go; None outside of one.
        self.statements: list[ext.Stmt] | None = None
        self.attrs: dict[str, Any] = {}

    def run(self, function: tree.Function) -> FuncOp:
        """The op of the function. Raises MirError for the first thing that is wrong in it."""
        private = self._decorator(function)
        with self._at(function.at):
            if function.params or function.rest:
                raise fail(
                    f"function '{function.name}' has parameters",
                    "a TE function takes none: its inputs are te.placeholder and te.var, returned first: return [A, B]",
                )
        scope = Scope(globals_of_te())
        try:
            self._run(function.body, scope)
        except _Returned as returned:
            return self._function(function, returned.value, scope, private)
        with self._at(function.at):
            raise fail(
                f"function '{function.name}' returns nothing",
                "end it with return [inputs…, outputs…], as in return [A, B]",
            )

    def _decorator(self, function: tree.Function) -> bool:
        private = False
        for decorator in function.decorators:
            if isinstance(decorator, tree.Call):
                for name, value in decorator.keywords:
                    if name != "private" or not isinstance(value, tree.Literal) or not isinstance(value.value, bool):
                        with self._at(decorator.at):
                            raise fail(f"@te.func takes no '{name}' here", "it takes private=True")
                    private = value.value
                if decorator.arguments:
                    with self._at(decorator.at):
                        raise fail("@te.func takes no positional argument")
        if len(function.decorators) > 1:
            with self._at(function.decorators[1].at):
                raise fail("a TE function has the one decorator @te.func")
        return private

    def _function(self, function: tree.Function, returned: Any, scope: Mapping[str, Any], private: bool) -> FuncOp:
        listed = list(returned) if isinstance(returned, (tuple, list)) else [returned]
        end = function.body[-1].at if function.body else function.at
        with self._at(end):
            for value in listed:
                if not isinstance(value, (te.Tensor, ex.Var)):
                    raise fail(
                        f"a TE function returns its tensors and te.var scalars, not {ex.describe(value)}",
                        "end it with return [inputs…, outputs…], as in return [A, B]",
                    )
        for name, value in scope.items():
            if isinstance(value, (te.Tensor, ex.Var, ex.IterVar)):
                value.hint = name
        with self._at(end):
            op = build_func(function.name, listed, self.attrs, definitions=self.definitions, private=private)
        op.location = self.source.location(function.at)
        return op

    def _at(self, at: int) -> AbstractContextManager[None]:
        return location_scope(self.source.location(at))

    # Statements ------------------------------------------------------------------------------------------------------

    def _run(self, body: list[tree.Stmt], scope: dict[str, Any]) -> None:
        for statement in body:
            if not self.depth:
                self.calls = 0
            with self._at(statement.at):
                self._statement(statement, scope)

    def _statement(self, statement: tree.Stmt, scope: dict[str, Any]) -> None:
        match statement:
            case tree.Assign():
                value = self.value(statement.value, scope)
                for target in statement.targets:
                    self._assign(target, value, scope)
            case tree.Augmented():
                value = self._binary(
                    statement.op, self.value(statement.target, scope), self.value(statement.value, scope)
                )
                self._assign(statement.target, value, scope)
            case tree.Return():
                raise _Returned(None if statement.value is None else self.value(statement.value, scope))
            case tree.Evaluate():
                value = self.value(statement.value, scope)
                if self.statements is not None and isinstance(value, ex.Expr):
                    self.statements.append(ext.Evaluate(value))
                elif self.statements is not None and isinstance(value, (ext.Evaluate, ext.Store, ext.For, ext.If)):
                    self.statements.append(value)
            case tree.Function():
                scope[statement.name] = Function(
                    self, statement.name, statement.params, statement.rest, statement.body, scope
                )
            case tree.With():
                self._with(statement, scope)
            case tree.For():
                self._for(statement, scope)
            case tree.If():
                self._if(statement, scope)
            case tree.Pass():
                pass

    def _assign(self, target: tree.Expr, value: Any, scope: dict[str, Any]) -> None:
        with self._at(target.at):
            match target:
                case tree.Name():
                    scope[target.name] = value
                case tree.Display():
                    if not isinstance(value, (tuple, list)):
                        raise fail(f"{ex.describe(value)} cannot be taken apart into {len(target.items)} names")
                    if len(value) != len(target.items):
                        raise fail(f"{len(value)} values cannot be assigned to {len(target.items)} names")
                    for item, part in zip(target.items, value, strict=True):
                        self._assign(item, part, scope)
                case tree.Index():
                    base, indices = self.value(target.base, scope), self._indices(target, scope)
                    if isinstance(base, ext.BufferPointer):
                        base[indices] = value
                    elif isinstance(base, ext.Buffer):
                        if self.statements is None:
                            raise fail(f"buffer '{base.name}' is written in the function of a te.extern only")
                        self.statements.append(ext.store(base, indices, value))
                    else:
                        raise fail(
                            f"an element of {ex.describe(base)} cannot be assigned",
                            "a tensor is described as a whole: B = te.compute(shape, lambda i: …)",
                        )
                case _:
                    raise fail("only names can be assigned here")

    def _with(self, statement: tree.With, scope: dict[str, Any]) -> None:
        context = self.value(statement.context, scope)
        if not isinstance(context, AbstractContextManager):
            raise fail(f"'with' takes ib.for_range, ib.if_scope or ib.else_scope, not {ex.describe(context)}")
        with context as value:
            if statement.target is not None:
                self._assign(statement.target, value, scope)
            self._run(statement.body, scope)

    def _nested(self, body: list[tree.Stmt], scope: dict[str, Any]) -> list[ext.Stmt]:
        outer, self.statements = self.statements, []
        try:
            self._run(body, scope)
            return self.statements
        finally:
            self.statements = outer

    def _for(self, statement: tree.For, scope: dict[str, Any]) -> None:
        iterable = self.value(statement.iterable, scope)
        if self.statements is None:
            raise fail(
                "a loop has no place among the definitions of a TE function",
                "a te.compute runs over its axes by itself; loops stand in the function of a te.extern",
            )
        if not isinstance(iterable, Range) or not isinstance(statement.target, tree.Name):
            raise fail("a loop of statements is 'for i in range(…)', T.serial, T.parallel, T.vectorized or T.unroll")
        begin, end = ex.match_types(ex.convert(iterable.begin), ex.convert(iterable.end), "range")
        variable = ex.Var(statement.target.name, end.dtype)
        body = self._nested(statement.body, Scope(scope, {statement.target.name: variable}))
        self.statements.append(ext.loop(variable, begin, end, iterable.kind, body))

    def _if(self, statement: tree.If, scope: dict[str, Any]) -> None:
        condition = self.value(statement.condition, scope)
        if isinstance(condition, ex.Expr) and not isinstance(condition, ex.Const):
            if self.statements is None:
                raise fail(
                    "a condition on a value has no place among the definitions of a TE function",
                    "write te.if_then_else(condition, a, b) in the body of a te.compute",
                )
            if condition.dtype != "bool":
                raise fail(f"the condition of 'if' must be bool, not {condition.dtype}")
            then, orelse = self._nested(statement.body, scope), self._nested(statement.orelse, scope)
            self.statements.append(ext.If(condition, then, orelse))
        else:
            self._run(statement.body if self._truth(condition) else statement.orelse, scope)

    # Functions -------------------------------------------------------------------------------------------------------

    def call_function(self, function: Function, arguments: Sequence[Any]) -> Any:
        """The value of a call of a function of the text."""
        count = len(function.params)
        if len(arguments) < count or (len(arguments) > count and function.rest is None):
            raise fail(f"'{function.name}' takes {count} arguments, but is called with {len(arguments)}")
        self.calls += 1
        if self.calls > MOST_CALLS:
            raise fail(f"this statement makes more than {MOST_CALLS:,} calls of functions of the text")
        if self.depth >= MOST_DEPTH:
            raise fail(f"calls nest more than {MOST_DEPTH} deep: '{function.name}' calls itself without end")
        scope = Scope(function.scope, dict(zip(function.params, arguments, strict=False)))
        if function.rest is not None:
            scope[function.rest] = tuple(arguments[count:])
        self.depth += 1
        try:
            if not isinstance(function.body, list):
                return self.value(function.body, scope)
            self._run(function.body, scope)
        except _Returned as returned:
            return returned.value
        finally:
            self.depth -= 1
        return None

    def _call(self, node: tree.Call, scope: Mapping[str, Any]) -> Any:
        function = self.value(node.function, scope)
        arguments = self._items(node.arguments, scope)
        keywords = {name: self.value(value, scope) for name, value in node.keywords}
        with self._at(node.at):
            match function:
                case Builtin():
                    return self._call_builtin(function, arguments, keywords)
                case CommReducer():
                    return self._bound(f"te.{function.name}", function.__call__, arguments, keywords)
                case te.Tensor():
                    if keywords:
                        raise fail(f"tensor '{function.name}' is read by indices, which have no names")
                    return function(*arguments)
                case Function():
                    if keywords:
                        names = [*function.params]
                        for name in keywords:
                            if name not in names[len(arguments) :]:
                                raise fail(f"'{function.name}' has no parameter '{name}' left to give")
                        missing = [n for n in names[len(arguments) :] if n not in keywords]
                        if missing:
                            raise fail(f"'{function.name}' is called without '{missing[0]}'")
                        arguments += [keywords[n] for n in names[len(arguments) :]]
                    return function(*arguments)
                case _:
                    raise fail(f"{ex.describe(function)} cannot be called")

    def _call_builtin(self, builtin: Builtin, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        match builtin.name:
            case "te.compute":
                return self._define(self._bound(builtin.name, self._compute, arguments, keywords))
            case "te.extern":
                return self._define(self._bound(builtin.name, self._extern, arguments, keywords))
            case "te.var" | "te.size_var" | "te.placeholder" | "te.scan" | "te.reduce_axis":
                return self._define(self._bound(builtin.name, builtin.function, arguments, keywords))
            case "te.comm_reducer":
                return self._reducer(self._bound(builtin.name, builtin.function, arguments, keywords))
            case _:
                return self._bound(builtin.name, builtin.function, arguments, keywords)

    def _bound(self, name: str, function: Callable[..., Any], arguments: list[Any], keywords: dict[str, Any]) -> Any:
        """Calls a function of ours, its arguments matched with its parameters and looked at first."""
        try:
            bound = signature_of(getattr(function, "__func__", function)).bind(
                *([function.__self__] if hasattr(function, "__func__") else []),
                *arguments,
                **keywords,  # type: ignore[attr-defined]
            )
        except TypeError as error:
            raise fail(f"{name}: {error}") from None
        for parameter, value in bound.arguments.items():
            if parameter in TEXTS and not isinstance(value, str):
                if parameter == "dtype" and (
                    value is None or (isinstance(value, (list, tuple)) and all(isinstance(v, str) for v in value))
                ):
                    continue
                raise fail(f"'{parameter}' of {name} is a string, not {ex.describe(value)}")
            if parameter == "attrs" and value is not None:
                self._check_attrs(name, value)
        return function(*arguments, **keywords)

    def _check_attrs(self, name: str, value: Any) -> None:
        if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
            raise fail(f"'attrs' of {name} is a dictionary with names as keys, not {ex.describe(value)}")

    def _define(self, made: Any) -> Any:
        first = made[0] if isinstance(made, tuple) else made
        self.definitions.append(first.op if isinstance(first, te.Tensor) else first)
        return made

    def _reducer(self, reducer: CommReducer) -> CommReducer:
        for what, function in (("fcombine", reducer.combine), ("fidentity", reducer.identity)):
            if not isinstance(function, Function):
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
        if not isinstance(fcompute, Function):
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
        if not isinstance(fcompute, Function):
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

    # Expressions -----------------------------------------------------------------------------------------------------

    def value(self, node: tree.Expr, scope: Mapping[str, Any]) -> Any:
        """The value of an expression of the text."""
        match node:
            case tree.Name():
                try:
                    return scope[node.name]
                except KeyError:
                    with self._at(node.at):
                        raise self._unknown(node.name, scope) from None
            case tree.Literal():
                return node.value
            case tree.Binary():
                left, right = self.value(node.left, scope), self.value(node.right, scope)
                with self._at(node.at):
                    return self._binary(node.op, left, right)
            case tree.Call():
                return self._call(node, scope)
            case tree.Index():
                base, indices = self.value(node.base, scope), self._indices(node, scope)
                with self._at(node.at):
                    return self._index(base, indices)
            case tree.Attribute():
                base = self.value(node.base, scope)
                with self._at(node.at):
                    return self._attribute(base, node.name)
            case tree.Unary():
                operand = self.value(node.operand, scope)
                with self._at(node.at):
                    return self._unary(node.op, operand)
            case tree.Display():
                items = self._items(node.items, scope)
                return items if node.is_list else tuple(items)
            case tree.DictDisplay():
                return {self._key(key, scope): self.value(value, scope) for key, value in node.pairs}
            case tree.Lambda():
                return Function(self, "lambda", node.params, node.rest, node.body, scope)
            case tree.Connective():
                left = self.value(node.left, scope)
                with self._at(node.at):
                    chosen = self._truth(left) == (node.op == "or")
                return left if chosen else self.value(node.right, scope)
            case tree.Conditional():
                condition = self.value(node.condition, scope)
                with self._at(node.at):
                    chosen = self._truth(condition)
                return self.value(node.then if chosen else node.orelse, scope)
            case tree.Slice() | tree.Starred():
                with self._at(node.at):
                    raise fail("a slice stands in the index of a tuple only, '*' in a call or tuple")

    def _unknown(self, name: str, scope: Mapping[str, Any]) -> Exception:
        from difflib import get_close_matches

        names = list(scope)
        while isinstance(scope, Scope):
            scope = scope.outer
            names += scope
        close = get_close_matches(name, names, n=1)
        if name == "output_tensor":
            return fail("'output_tensor' belongs to hybrid script", "write it as an item: @te.hybrid.script")
        return fail(f"'{name}' is not defined", *([f"did you mean '{close[0]}'?"] if close else []))

    def _key(self, node: tree.Expr, scope: Mapping[str, Any]) -> str:
        key = self.value(node, scope)
        if not isinstance(key, str):
            with self._at(node.at):
                raise fail(f"the keys of a dictionary are strings here, not {ex.describe(key)}")
        return key

    def _items(self, nodes: list[tree.Expr], scope: Mapping[str, Any]) -> list[Any]:
        values: list[Any] = []
        for node in nodes:
            if isinstance(node, tree.Starred):
                value = self.value(node.value, scope)
                if not isinstance(value, (tuple, list)):
                    with self._at(node.at):
                        raise fail(f"'*' takes a tuple or list apart, not {ex.describe(value)}")
                values += value
            else:
                values.append(self.value(node, scope))
        return values

    def _indices(self, node: tree.Index, scope: Mapping[str, Any]) -> Any:
        if len(node.items) == 1 and not node.is_tuple and not isinstance(node.items[0], tree.Starred):
            item = node.items[0]
            if isinstance(item, tree.Slice):
                bounds = [None if b is None else self.value(b, scope) for b in (item.start, item.stop)]
                with self._at(item.at):
                    if any(b is not None and not isinstance(b, int) for b in bounds):
                        raise fail("the bounds of a slice are Python numbers here")
                return slice(*bounds)
            return self.value(item, scope)
        return tuple(self._items(node.items, scope))

    def _index(self, base: Any, indices: Any) -> Any:
        match base:
            case te.Tensor() | te.TensorSlice() | ext.Buffer() | ext.BufferPointer():
                return base[indices]
            case tuple() | list():
                if isinstance(indices, slice):
                    return base[indices]
                if isinstance(indices, ex.Const):
                    indices = int(indices)
                if not isinstance(indices, int):
                    raise fail(f"the index of a tuple or list is a number, not {ex.describe(indices)}")
                if not -len(base) <= indices < len(base):
                    raise fail(f"index {indices} is outside a tuple or list of {len(base)}")
                return base[indices]
            case dict():
                if not isinstance(indices, str) or indices not in base:
                    raise fail(f"the dictionary has no entry {indices!r}")
                return base[indices]
            case _:
                raise fail(f"{ex.describe(base)} cannot be indexed")

    def _attribute(self, base: Any, name: str) -> Any:
        if isinstance(base, Namespace):
            found = base.members.get(name)
            if found is not None:
                return found
            if name == "func_attr":
                return Builtin("te.func_attr", self._func_attr)
            if name in SCHEDULING:
                raise fail(
                    f"'{base.name}.{name}' belongs to a schedule, which a TE function does not hold",
                    "describe the tensors and return them: return [A, B]",
                )
            from difflib import get_close_matches

            close = get_close_matches(name, base.members, n=1)
            raise fail(
                f"there is no '{base.name}.{name}'", *([f"did you mean {base.name}.{close[0]}?"] if close else [])
            )
        for kind in type(base).__mro__:
            names = _ATTRIBUTES.get(kind)
            if names is not None and name in names:
                value = getattr(base, name)
                return (
                    Builtin(name, value) if callable(value) and not isinstance(value, (te.Tensor, Function)) else value
                )
        raise fail(f"{ex.describe(base)} has no '.{name}'")

    def _func_attr(self, attrs: Any) -> None:
        self._check_attrs("te.func_attr", attrs)
        self.attrs |= attrs

    def _binary(self, op: str, left: Any, right: Any) -> Any:
        if isinstance(left, (int, float)) and isinstance(right, (int, float)):
            return self._python(op, left, right)
        if isinstance(left, (ex.Expr, te.TensorSlice)) or isinstance(right, (ex.Expr, te.TensorSlice)):
            if op == "**":
                raise fail("'**' is Python's and takes numbers", "for expressions write te.power(x, y)")
            function = _FUNCTIONS.get(op)
            if function is not None:
                return function(left, right)
        if op == "+" and type(left) is type(right) and isinstance(left, (tuple, list, str)):
            return left + right  # type: ignore[operator]
        if (
            op in ("==", "!=")
            and isinstance(left, (str, tuple, list, type(None)))
            and isinstance(right, (str, tuple, list, type(None)))
        ):
            return (left is right or (isinstance(left, str) and left == right)) == (op == "==")
        wrong = left if not isinstance(left, (int, float, ex.Expr, te.TensorSlice)) else right
        raise fail(f"'{op}' cannot be applied to {ex.describe(wrong)}")

    def _python(self, op: str, left: float, right: float) -> Any:
        if op in ("<<", ">>", "&", "|", "^") and not (isinstance(left, int) and isinstance(right, int)):
            raise fail(f"'{op}' is for integers")
        if op in ("**", "<<") and (abs(right) > 1024 or abs(left) > 1 << 64):
            raise fail(f"the result of '{op}' would be too large")
        try:
            result = _ARITHMETIC[op](left, right)
        except ZeroDivisionError:
            raise fail("division by zero") from None
        except (OverflowError, ValueError, KeyError):
            raise fail(f"'{op}' cannot be applied to {left} and {right}") from None
        if isinstance(result, complex) or (isinstance(result, int) and result.bit_length() > 4096):
            raise fail(f"the result of '{op}' is out of range")
        return result

    def _unary(self, op: str, operand: Any) -> Any:
        if op == "not":
            return not self._truth(operand)
        if isinstance(operand, te.TensorSlice):
            operand = operand.as_expr()
        if isinstance(operand, ex.Expr):
            return operand if op == "+" else -operand if op == "-" else ~operand
        if isinstance(operand, (int, float)):
            if op == "~":
                if isinstance(operand, float):
                    raise fail("'~' is for integers")
                return ~operand
            return -operand if op == "-" else +operand
        raise fail(f"'{op}' cannot be applied to {ex.describe(operand)}")

    def _truth(self, value: Any) -> bool:
        if isinstance(value, ex.Expr):
            return bool(value)
        if isinstance(value, (int, float, str, tuple, list, dict)) or value is None:
            return bool(value)
        raise fail(f"{ex.describe(value)} has no truth value")
