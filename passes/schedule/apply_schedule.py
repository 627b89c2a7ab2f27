"""The pass `apply-schedule`: applies a module's schedule scripts to its prim_funcs, and erases them.

@T.prim_func                                    @T.prim_func
def f(A: T.Buffer((64,), "float32")):           def f(A: T.Buffer((64,), "float32")):
    for i in range(64):                             for i_0, i_1 in T.grid(16, 4):
        with T.block("A"): …                            with T.block("A"): …
@T.schedule
def s(sch):
    i, = sch.get_loops("A")
    sch.split(i, [None, 4])
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, ModuleOp, StringAttr
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from ...dialects import tir
from ...dialects.schedule import RuleOp, ScriptOp
from ...dialects.tir.types import I1
from ...support.diagnostics import MirError, error_at
from ...support.edit import erase_op
from ...support.locations import decorator_place
from ...support.text import did_you_mean
from .analysis.structure import function_of
from .engine.schedule import Schedule
from .engine.script import run_script
from .engine.tensor_intrinsics import is_half

SCHEDULED = "tir.is_scheduled"
"""The attribute of a function that its user scheduled: rules leave it as it is."""


@dataclass(frozen=True)
class ApplySchedule(ModulePass):
    """Applies every schedule script, or none where a primitive is refused.

    The tensor intrinsics that the module declares for them are erased, too. With `mark`, functions that were scheduled are marked so,
    and default-schedule leaves them alone. With `ready`, scripts of functions that are not yet TIR are left for later. `seed` is
    that of the random draws, where scripts record no decision.
    """

    name = "apply-schedule"

    mark: bool = False
    ready: bool = False
    seed: int = 0

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Schedules the functions. Raises MirError, with the module as it was, where a primitive is refused."""
        scripts = [s for s in op.body.block.ops if isinstance(s, ScriptOp)]
        functions = {f.sym_name.data: f for f in op.body.block.ops if isinstance(f, tir.PrimFuncOp)}
        chosen = [s for s in scripts if not (self.ready and _target(s) not in (None, *functions))]
        for script in chosen:
            _check_target(script, functions, op)
        if not chosen:
            return
        # Primitives work on copies, which take the functions' places when all went well.
        copies = {name: function.clone() for name, function in functions.items()}
        work = ModuleOp(list(copies.values()))
        for script in chosen:
            schedule = Schedule(work, seed=self.seed)
            schedule.state.focus = _target(script)
            run_script(script, schedule)
            if self.mark:
                for function in _touched(script, schedule, copies):
                    marks = {**function.attrs.data, SCHEDULED: IntegerAttr(1, I1)}
                    function.properties["attrs"] = DictionaryAttr(marks)
        for name, function in functions.items():
            new = copies[name]
            new.detach()
            op.body.block.insert_op_before(new, function)
            erase_op(function)
        for script in chosen:
            erase_op(script)
        # Schedule rules may name them, too.
        if not any(isinstance(o, ScriptOp | RuleOp) for o in op.body.block.ops):
            _drop_intrinsics(op)


def _drop_intrinsics(module: ModuleOp) -> None:
    """Takes out what was declared for tensorize, which no script needs any more."""
    for function in [f for f in module.body.block.ops if isinstance(f, tir.PrimFuncOp) and is_half(f)]:
        erase_op(function)


def is_scheduled(function: tir.PrimFuncOp) -> bool:
    """Returns whether the function's user scheduled it."""
    mark = function.attrs.data.get(SCHEDULED)
    return isinstance(mark, IntegerAttr) and mark.value.data != 0


def _target(script: ScriptOp) -> str | None:
    return None if script.target is None else script.target.root_reference.data


def _check_target(script: ScriptOp, functions: dict[str, tir.PrimFuncOp], module: ModuleOp) -> None:
    target = _target(script)
    if target is None or target in functions:
        return
    other = next((o for o in module.body.block.ops if _symbol(o) == target), None)
    if other is not None:
        raise error_at(
            decorator_place(script.location, target),
            f"schedule '{script.sym_name.data}' is of '{target}', which is not a prim_func",
            f"it is a {other.name}; lower it first: -p lower-te-to-tir,apply-schedule",
        )
    raise no_function(script, target, functions)


def no_function(script: ScriptOp, target: str, functions: dict[str, tir.PrimFuncOp]) -> MirError:
    """Returns the error for a schedule of a function that is not there."""
    also = did_you_mean(target, functions, 0.6)
    there = ", ".join(f"'{name}'" for name in functions) or "none"
    return error_at(
        decorator_place(script.location, target),
        f"schedule '{script.sym_name.data}' is of '{target}', but there is no such function{also}",
        f"the module has {there}",
    )


def _symbol(op: Operation) -> str | None:
    name = op.properties.get("sym_name")
    return name.data if isinstance(name, StringAttr) else None


def _touched(script: ScriptOp, schedule: Schedule, copies: dict[str, tir.PrimFuncOp]) -> list[tir.PrimFuncOp]:
    """Returns the functions that a script scheduled: its target, otherwise those in which it took handles."""
    target = _target(script)
    if target is not None:
        return [copies[target]]
    return list(dict.fromkeys(function_of(op) for op in schedule.state.live()))
