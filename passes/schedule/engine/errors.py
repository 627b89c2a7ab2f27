"""Refusals: what a schedule primitive says when it would be wrong to apply it."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Operation, SSAValue

from ....dialects import tir
from ....support.diagnostics import Diagnostic, MirError, location_of


class ScheduleError(MirError):
    """The refusal of a primitive; the module is as before. `where` is the op or buffer that it is about."""

    def __init__(self, diagnostics: Iterable[Diagnostic] | Diagnostic, where: Operation | SSAValue | None = None):
        super().__init__(diagnostics)
        self.where = where


def refuse(where: Operation | SSAValue | LocationAttr | None, message: str, *notes: str) -> ScheduleError:
    """Returns a refusal at an op: `message` names the rule that it breaks, the notes say what is legal."""
    diagnostic = Diagnostic(message, location_of(where))
    for note in notes:
        diagnostic = diagnostic.with_note(note)
    return ScheduleError(diagnostic, None if isinstance(where, LocationAttr) else where)


def describe(op: Operation) -> str:
    """A loop or block as messages call it."""
    match op:
        case tir.ForOp():
            return f"loop '{op.var_name.data}'"
        case tir.BlockOp():
            return f"block '{op.block_name.data}'"
        case tir.PrimFuncOp():
            return f"function '{op.sym_name.data}'"
        case _:
            return f"'{op.name}'"
