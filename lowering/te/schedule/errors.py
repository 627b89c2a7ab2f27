"""Refusals: what a primitive says when it cannot be applied. The schedule is then as it was."""

from __future__ import annotations

from xdsl.dialects.builtin import LocationAttr

from ....support.diagnostics import Diagnostic, MirError


class ScheduleError(MirError):
    """A primitive was refused."""


def refuse(where: LocationAttr, message: str, *notes: str) -> ScheduleError:
    """The refusal at a place: `message` names the rule that would be broken, the notes say what would be legal."""
    diagnostic = Diagnostic(message, where)
    for note in notes:
        diagnostic = diagnostic.with_note(note)
    return ScheduleError(diagnostic)
