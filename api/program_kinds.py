"""Makes a module of any program that `mirstack.compile` takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from xdsl.dialects.builtin import ModuleOp

from ..dialects.te.tensor import Tensor
from ..lowering.te.schedule.frontend import Schedule as TeSchedule
from ..support.diagnostics import Diagnostic, MirTypeError
from .ir.module import IRModule
from .ir.prim_func import PrimFunc
from .relay.expr import RelayExpr
from .tir.schedule import Schedule as TirSchedule

if TYPE_CHECKING:
    from ..dialects.tir.node import Var

Program: TypeAlias = "ModuleOp | IRModule | PrimFunc | RelayExpr | TeSchedule | TirSchedule"
"""A program in memory: a module, a function of Relay or TIR, a schedule of TE or TIR."""

_FOREIGN = {
    "torch": "from_torch(model, example_inputs)",
    "onnx": "from_onnx(model)",
    "jax": "from_jax(function, *arrays)",
}
_KINDS = "a path, a text, a module, a function of Relay or TIR, or a schedule"


def module_of(program: Program | Any, args: Sequence[Tensor | Var] | None) -> ModuleOp | IRModule:
    """Returns the module of a program, which is not changed. Raises MirTypeError for what is none.

    `args` are the parameters of a schedule of TE, and of nothing else.
    """
    if isinstance(program, TeSchedule):
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
    if isinstance(program, ModuleOp | IRModule):
        return program
    if isinstance(program, PrimFunc | RelayExpr):
        return IRModule.from_expr(program)
    if isinstance(program, TirSchedule):
        return program.mod
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
