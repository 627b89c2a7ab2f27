"""Executors: `relay.create_executor` makes functions of expressions that are called with arrays.

relay.create_executor("graph", mod=module).evaluate()(x, w=weight)
relay.create_executor("debug").evaluate(relay.const(1.0) + relay.const(2.0))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, cast, get_args

import numpy as np

from ...dialects.array import numpy_dtype
from ...support.arguments import check
from ...support.diagnostics import Diagnostic, MirValueError
from ...support.text import did_you_mean
from ..device import Device, require_here
from ..ir.module import IRModule
from ..nd import NDArray
from ..target.target import NativeOptions, TargetLike, native_options
from .expr import Function, GlobalVar, Let, RelayExpr, Var, as_expr
from .program import INTERPRETED, RelayProgram, bind_params_by_name, expression_function, in_order, with_function
from .ty import TensorType
from .values import Form

ExecutorKind: TypeAlias = Literal["debug", "interpreter", "graph", "vm", "aot"]


class RelayExecutor:
    """Runs expressions and functions over a module, `mod`.

    The kinds "debug" and "interpreter" interpret, the others compile; a function whose parameters or result hold other values than tensors
    is interpreted always. "graph" and "aot" return tuples as `tuple`, the others as `runtime.container.ADT`, as which "vm"
    also returns values of data types; the others return these as `ConstructorValue`. "graph" and "aot" convert arrays to the dtypes of the parameters.
    """

    def __init__(
        self,
        kind: ExecutorKind,
        mod: IRModule | None = None,
        device: Device | str | None = None,
        target: TargetLike | None = "llvm",
    ):
        """Takes the device that programs run on, the processor. Raises MirValueError for another kind."""
        if kind not in get_args(ExecutorKind):
            hint = did_you_mean(kind, get_args(ExecutorKind)) if isinstance(kind, str) else ""  # pyright: ignore[reportUnnecessaryIsInstance]
            raise MirValueError(
                Diagnostic(f"there is no executor {kind!r}{hint}").with_note(
                    f"there are {', '.join(get_args(ExecutorKind))}"
                )
            )
        check(mod, "mod", "an IRModule", IRModule, type(None))
        self.kind: ExecutorKind = kind
        self.mod = IRModule() if mod is None else mod
        self.device = require_here(device)
        self.target = target
        self._form: Form = "graph" if kind in ("graph", "aot") else "vm" if kind == "vm" else "debug"

    def evaluate(self, expr: RelayExpr | None = None, binds: Mapping[Var, Any] | None = None) -> Any:
        """Returns a function of Python for a function, by default `main`, and the value of another expression.

        `binds` are values of free variables. Raises MirError for an expression that does not fit its types, or has free variables.
        """
        if expr is None:
            return self._callable(self.mod, "main")
        expr = as_expr(expr)
        if binds:
            for variable, value in reversed(list(binds.items())):
                expr = Let(variable, as_expr(value), cast("RelayExpr", expr))
        if isinstance(expr, GlobalVar):
            return self._callable(self.mod, expr.name_hint)
        if isinstance(expr, Function):
            name, module = with_function(self.mod, _closed(expr))
            return self._callable(module, name)
        name, module = with_function(self.mod, expression_function(cast("RelayExpr", expr)))
        return self._callable(module, name)()

    def _callable(self, module: IRModule, name: str) -> Callable[..., Any]:
        """Returns a function of Python that calls a function of the module."""
        function = module.relay_function(name)
        program = RelayProgram(module, self._options())

        def call(*args: Any, **named: Any) -> Any:
            shown = f"@{name}" if function.attrs.get("global_symbol") or name == "main" else "the function"
            ordered = in_order(function, args, named, shown)
            if self._form == "graph":
                ordered = _of_types(ordered, function)
            return program.call(name, ordered, self._form)

        return call

    def _options(self) -> NativeOptions:
        return INTERPRETED if self.kind in ("debug", "interpreter") else native_options(self.target)

    def __repr__(self) -> str:
        return f"Executor({self.kind}, {self.mod!r})"


class Interpreter(RelayExecutor):
    """The executor that interprets."""

    def __init__(self, mod: IRModule | None, device: Device | str | None = None, target: TargetLike | None = "llvm"):
        super().__init__("debug", mod, device, target)


class GraphExecutor(RelayExecutor):
    """The executor that compiles, with results as tuples."""

    def __init__(self, mod: IRModule | None, device: Device | str | None = None, target: TargetLike | None = "llvm"):
        super().__init__("graph", mod, device, target)


class VMExecutor(RelayExecutor):
    """The executor that compiles, with results as objects of the virtual machine."""

    def __init__(self, mod: IRModule | None, device: Device | str | None = None, target: TargetLike | None = "llvm"):
        super().__init__("vm", mod, device, target)


def create_executor(
    kind: ExecutorKind = "debug",
    mod: IRModule | None = None,
    device: Device | str | None = None,
    target: TargetLike | None = "llvm",
    params: Mapping[str, Any] | None = None,
) -> RelayExecutor:
    """Returns an executor of a kind over a module; `params` become constants of the module's `main`.

    Raises MirValueError for another kind, ValueError for a device that is not there.
    """
    if params:
        mod = IRModule() if mod is None else mod
        bound = bind_params_by_name(mod.relay_function("main"), params)
        work = IRModule.of_op(mod.copy_op(), mod)
        work["main"] = bound
        mod = work
    return RelayExecutor(kind, mod, device, target)


def _closed(function: Function) -> Function:
    """Returns a function. Raises MirValueError for one with free variables."""
    expression_function(function)
    return function


def _of_types(args: Sequence[Any], function: Function) -> list[Any]:
    """Returns arguments with arrays of the dtypes of the parameters."""
    return [
        of_dtype(value, param.type_annotation.dtype) if isinstance(param.type_annotation, TensorType) else value
        for value, param in zip(args, function.params, strict=True)
    ]


def of_dtype(value: Any, dtype: str) -> Any:
    """Returns an array, a list or a number as an array of the dtype; other values as they are."""
    if isinstance(value, NDArray):
        value = value.storage
    if isinstance(value, np.ndarray | np.generic | bool | int | float | list):
        return np.asarray(value, numpy_dtype(dtype), order="C")
    return value


__all__ = ["ExecutorKind", "GraphExecutor", "Interpreter", "RelayExecutor", "VMExecutor", "create_executor", "of_dtype"]
