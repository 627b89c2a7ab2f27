"""Checks that the threads of a loop do not exchange data through memory that they share."""

from __future__ import annotations

from xdsl.ir import Operation

from ....dialects import tir
from ....support.edit import builder_before, erase_op, move_to_end, replace_all_uses_with
from ....support.walk import all_ops, following
from ..rewriting import ops_of


def check_exchanges(function: tir.PrimFuncOp) -> None:
    """Raises MirError where a thread of a function reads what another one of the same launch stores.

        for i in T.thread_binding(8, thread="threadIdx.x"):
            s[i] = X[i] * 3
            Y[i] = s[7 - i]      # error: iterations 0 and 7 store and read the same element of 's'

    Threads run one after the other here: the first would read what is not there yet. The function is not changed.
    """
    if not any(_launches(op) for op in all_ops(function)):
        return
    from ..loops.loop_dependence import IterationOrder

    if ops_of(function, tir.LaunchThreadOp):
        function = function.clone()
        _launches_as_loops(function)
    for loop in ops_of(function, tir.ForOp):
        conflict = IterationOrder(loop).exchange_of_threads() if loop.kind.data == "thread_binding" else None
        if conflict is not None and conflict.first is not None:
            thread = "" if loop.thread is None else f" to {loop.thread.data}"
            raise conflict.error(
                f"loop '{loop.var_name.data}' cannot be bound{thread}",
                loop,
                "threads run one after the other on a CPU and in the interpreter, and do not wait for each other: give each part a loop"
                " of threads of its own, or compute in each thread all that it reads",
            )


def _launches(op: Operation) -> bool:
    return isinstance(op, tir.LaunchThreadOp) or (isinstance(op, tir.ForOp) and op.kind.data == "thread_binding")


def _launches_as_loops(function: tir.PrimFuncOp) -> None:
    """Puts loops in the place of `T.launch_thread(…)`, around the rest of the region."""
    for launch in reversed(ops_of(function, tir.LaunchThreadOp)):
        rest = following(launch)
        builder = builder_before(launch)
        zero = builder.insert(tir.ConstOp.int(0)).result
        loop = builder.insert(
            tir.ForOp(launch.var_name.data, zero, launch.extent, kind="thread_binding", thread=launch.thread.data)
        )
        move_to_end(rest, loop.body.block)
        replace_all_uses_with(launch.result, loop.loop_var)
        if launch.env is not None:
            replace_all_uses_with(launch.env, loop.loop_var)
        erase_op(launch)
