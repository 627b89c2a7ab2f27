"""Schedules in the text: what a TE function holds, and items `@te.schedule(f)` that schedule one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...dialects.te import tensor as te
from ...dialects.te.schedule_interface import ScheduleBase, StageBase
from ...dialects.tir import node as ex
from ...dialects.tir.node import fail
from ...support.text import nearest
from .names import Builtin


class Primitive(Builtin):
    """A primitive of a schedule or stage."""


NOT_IN_TEXT = {
    "tensorize": "an intrinsic is a Python function: tensorize from Python, s[C].tensorize(axis, te.decl_tensor_intrin(…))",
    "normalize": "a schedule is normalized when it is lowered",
}


def member(base: ScheduleBase | StageBase, name: str) -> Any:
    """The attribute of a schedule or stage. Raises MirError for one that there is not."""
    from ...dialects.schedule.signature_table import te_signatures

    is_stage = isinstance(base, StageBase)
    if is_stage and name == "op":
        return base.op
    what, known = "stage" if is_stage else "schedule", te_signatures()
    if name in known and known[name].owner == what:
        return Primitive(name, getattr(base, name))
    if name in NOT_IN_TEXT:
        raise fail(f"a {what} has no '.{name}' in text", NOT_IN_TEXT[name])
    near = nearest(name, [n for n, signature in known.items() if signature.owner == what])
    notes = [f"did you mean .{near}?"] if near else []
    if name in known:
        notes = [f"write s.{name}(…)" if is_stage else f"write s[B].{name}(…): it is of one stage"]
    raise fail(f"a {what} has no '.{name}'", *notes)


def stage_of(schedule: ScheduleBase, index: Any) -> StageBase:
    """`s[B]`."""
    if not isinstance(index, (te.Tensor, te.Operation)):
        raise fail(f"a stage is found by its tensor, s[B], not by {ex.describe(index)}")
    return schedule[index]


def note_names(schedule: ScheduleBase, scope: Mapping[str, Any]) -> None:
    """Keeps what the text calls the results of primitives."""
    for name, value in scope.items():
        several = ex.items_of(value)
        for each in (value,) if several is None else ():
            schedule.name_result(each, name)


def operations_of(definitions: Sequence[object]) -> list[te.Operation]:
    """The operations that the text defines, in order."""
    return list({id(d): d for d in definitions if isinstance(d, te.Operation)}.values())


def taken_apart(returned: object) -> tuple[ScheduleBase | None, object]:
    """Splits the value that a TE function returns, `s, [A, B]` or `[A, B]`, into schedule and tensors."""
    parts = ex.items_of(returned)
    if parts is not None and len(parts) == 2 and isinstance(parts[0], ScheduleBase):
        return parts[0], parts[1]
    if isinstance(returned, ScheduleBase):
        raise fail("the function returns its schedule alone", "end it with return s, [inputs…, outputs…]")
    return None, returned
