"""Makes a module of any program that `mirstack.compile` takes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from ..support.diagnostics import Diagnostic, MirTypeError

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from ..dialects.te.tensor import Tensor
    from ..dialects.tir.node import Var
    from ..lowering.te.schedule.frontend import Schedule as TeSchedule
    from .ir.module import IRModule
    from .ir.prim_func import PrimFunc
    from .relay.expr import RelayExpr
    from .tir.schedule import Schedule as TirSchedule

Program: TypeAlias = "ModuleOp | IRModule | PrimFunc | RelayExpr | TeSchedule | TirSchedule"
"""A program in memory: a module, a function of Relay or TIR, a schedule of TE or TIR."""

_FOREIGN = {
    "torch": "from_torch(model, example_inputs)",
    "onnx": "from_onnx(model)",
    "jax": "from_jax(function, *arrays)",
}
_KINDS = "a path, a text, a module, a function of Relay or TIR, or a schedule"


_ROOT = __name__.partition(".api.")[0]
_CLASSES = {
    ("xdsl.dialects.builtin", "ModuleOp"): "module",
    (f"{_ROOT}.api.ir.module", "IRModule"): "module",
    (f"{_ROOT}.api.ir.prim_func", "PrimFunc"): "function",
    (f"{_ROOT}.api.relay.expr", "RelayExpr"): "function",
    (f"{_ROOT}.api.tir.schedule", "Schedule"): "tir schedule",
    (f"{_ROOT}.lowering.te.schedule.frontend", "Schedule"): "te schedule",
}
"""What the objects of a class are. A class whose module nobody has imported has no objects, so that none is imported to ask."""


def _kind_of(program: object) -> str | None:
    for (module, name), kind in _CLASSES.items():
        found = sys.modules.get(module)
        if found is not None and isinstance(program, getattr(found, name)):
            return kind
    return None


def module_of(program: Any, args: Sequence[Tensor | Var] | None) -> ModuleOp | IRModule:
    """Returns the module of a program, which is not changed. Raises MirTypeError for what is none.

    `args` are the parameters of a schedule of TE, and of nothing else.
    """
    kind = _kind_of(program)
    if kind == "te schedule":
        if args is None:
            raise MirTypeError(
                Diagnostic("a schedule of te is compiled with its parameters").with_note(
                    "name them in order, outputs last: mirstack.compile(s, args=[A, B, C])"
                )
            )
        from .lower import lower

        return lower(program, args)
    if args is not None:
        raise MirTypeError(Diagnostic(f"args are the parameters of a schedule of te, not of {_named(program)}"))
    match kind:
        case "module":
            return program
        case "function":
            from .ir.module import IRModule

            return IRModule.from_expr(program)
        case "tir schedule":
            return program.mod
        case _:
            pass
    problem = Diagnostic(f"compile takes {_KINDS}, not {_named(program)}")
    package = type(program).__module__.partition(".")[0]
    if package in _FOREIGN:
        problem = problem.with_note(f"import it first: mirstack.compile(mirstack.{_FOREIGN[package]})")
    elif callable(program) and hasattr(program, "__code__"):
        problem = problem.with_note("a Python function becomes one of TIR by the decorator @T.prim_func")
    raise MirTypeError(problem)


def _named(program: object) -> str:
    return type(program).__name__


__all__ = ["Program", "module_of"]
