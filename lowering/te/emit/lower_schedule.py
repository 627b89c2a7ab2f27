"""From a schedule to TIR: `lower_schedule`, and the passes that follow it."""

from __future__ import annotations

from collections.abc import Sequence

from ....dialects import tir
from ....dialects.te import tensor as te
from ....dialects.tir.node import Var
from ....support.deep_stack import in_deep_stack
from ..schedule.infer_bound import infer_bound
from ..schedule.normalize import copied, normalize
from ..schedule.stage import ScheduleData
from .function_emitter import FunctionEmitter
from .place_declarations import place_declarations
from .schedule_ops import schedule_ops
from .statements import Body


def lower_schedule(schedule: ScheduleData, args: Sequence[te.Tensor | Var], name: str = "main") -> tir.PrimFuncOp:
    """Lowers a schedule to a TIR function with flat buffers, before any pass; the schedule is not changed.

    Parameters are `args` in order: placeholders, scalars, and outputs (or intermediate tensors, which are then outputs too).
    Raises MirError where the schedule cannot be carried out, or no parameter binds a size.
    """

    def run() -> tir.PrimFuncOp:
        work = copied(schedule)
        normalize(work)
        return function_of(work, schedule_ops(work, infer_bound(work)), args, name)

    return in_deep_stack(run)


def function_of(schedule: ScheduleData, body: Body, args: Sequence[te.Tensor | Var], name: str) -> tir.PrimFuncOp:
    """Returns the function of a normalized schedule's statements."""
    current = [_current(schedule, a) if isinstance(a, te.Tensor) else a for a in args]
    names = [a.op.name if isinstance(a, te.Tensor) else a.name for a in args]
    function = FunctionEmitter(name, current, names, body, _in_scans(schedule)).run()
    place_declarations(function)
    return function


def _in_scans(schedule: ScheduleData) -> dict[int, te.Tensor]:
    """Maps each scan's `init`, `update` and `state` tensors to the scan's own."""
    found: dict[int, te.Tensor] = {}
    for stage in schedule.stages:
        if isinstance(stage.op, te.ScanOp):
            for group in (stage.op.init, stage.op.update, stage.op.state):
                found |= {id(part): whole for part, whole in zip(group, stage.op.outputs, strict=True)}
    return found


def _current(schedule: ScheduleData, tensor: te.Tensor) -> te.Tensor:
    """Returns the tensor as primitives and inlining left it."""
    stage = schedule.stage_of(tensor.op)
    return tensor if stage is None or stage.op is None else stage.op.outputs[tensor.value_index]
