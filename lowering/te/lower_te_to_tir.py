"""Replaces every TE function of a module by a TIR function of the same name."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import DictionaryAttr, ModuleOp, StringAttr
from xdsl.passes import ModulePass

from ...dialects import te, tir
from ...support.deep_stack import in_deep_stack
from ...support.diagnostics import error_at
from ...support.edit import erase_op, insert_op_before
from .create_prim_func import create_prim_func


@dataclass(frozen=True)
class LowerTEToTIR(ModulePass):
    """Lowers TE functions to TIR, by the function's schedule where it has one.

    Without a schedule each tensor becomes a loop nest with a block (`create_prim_func`).
    """

    name = "lower-te-to-tir"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        schedules = _schedules(op)
        for function in list(op.ops):
            if not isinstance(function, te.FuncOp):
                continue
            schedule = schedules.pop(function.sym_name.data, None) or held_schedule(function)
            lowered = create_prim_func(function) if schedule is None else lower_scheduled(function, schedule)
            insert_op_before(lowered, function)
            if schedule is not None and schedule.target is not None:
                erase_op(schedule)
            # Nothing outside of it uses what is inside, which need not be taken apart.
            function.detach()
        for name, schedule in schedules.items():
            raise error_at(schedule, f"there is no TE function '{name}' to schedule")


def _schedules(module: ModuleOp) -> dict[str, te.ScheduleOp]:
    """Returns the schedules of the module by the function that they are for."""
    found: dict[str, te.ScheduleOp] = {}
    for op in module.ops:
        if isinstance(op, te.ScheduleOp) and op.target is not None:
            name = op.target.root_reference.data
            if name in found:
                raise error_at(op, f"TE function '{name}' is scheduled twice", "a function is lowered by one schedule")
            found[name] = op
        elif isinstance(op, te.FuncOp) and (held := held_schedule(op)) is not None:
            found.setdefault(op.sym_name.data, held)
    return found


def held_schedule(function: te.FuncOp) -> te.ScheduleOp | None:
    """Returns the schedule that a TE function holds."""
    return next((op for op in function.body.block.ops if isinstance(op, te.ScheduleOp)), None)


def lower_scheduled(function: te.FuncOp, schedule: te.ScheduleOp) -> tir.PrimFuncOp:
    """Returns the TIR function of a TE function by a schedule.

    Raises MirError where the schedule cannot be carried out.
    """
    from ...dialects.te.lift import lift
    from .emit.lower_schedule import lower_schedule
    from .schedule.apply_schedule import apply_schedule

    def lower() -> tir.PrimFuncOp:
        program = lift(function)
        made = apply_schedule(schedule, program.operations, program.outputs(), program.vars)
        return lower_schedule(made.data, program.args, function.sym_name.data)

    lowered = in_deep_stack(lower)
    lowered.location = function.location
    lowered.properties["attrs"] = DictionaryAttr({**function.attrs.data, **lowered.attrs.data})
    if function.sym_visibility is not None:
        lowered.properties["sym_visibility"] = StringAttr("private")
    return lowered
