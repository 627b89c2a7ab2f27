"""The pass `check-parallel-loops`: a parallel loop computes what it computes serially.

    for i in T.parallel(4):
        B[i] = A[i] + B[3 - i]        # error: iterations 0 and 3 store and read the same element of 'B'
    for i in T.parallel(4):
        C[I[i]] = A[i]                # →  for i in range(4): who knows what I holds

Iterations that threads run at once must not access what another one stores. Loops of which two iterations are known to do so are refused;
those of which it is not proven that none does run serially (`--explain check-parallel-loops` lists them). The pass runs before TE is
lowered and schedules are applied: these check what they make parallel (`schedule.dependence`).
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from ....dialects import te, tir
from ....support.trace import tracer
from ....support.walk import ops_in
from ...pass_info import explanation
from ..rewriting import ops_of
from ..threads.thread_memory import check_exchanges


def check_loop(loop: tir.ForOp) -> None:
    """Makes a parallel loop serial where its iterations are not proven independent.

    Raises MirError where two are known to access the same element.
    """
    from .loop_dependence import IterationOrder

    conflict = IterationOrder(loop).conflict_of_threads()
    if conflict is None:
        return
    name = loop.var_name.data
    if conflict.iterations is not None:
        raise conflict.error(
            f"loop '{name}' cannot be parallel",
            loop,
            "iterations that run at once may not depend on each other: make the loop serial (range), "
            "or let each iteration store to elements of its own",
        )
    loop.properties["kind"] = StringAttr("serial")
    explain = tracer(explanation(CheckParallelLoops.name))
    if explain is not None:
        explain(loop, f"loop '{name}' runs serially: {conflict.reason}", *conflict.notes)


@dataclass(frozen=True)
class CheckParallelLoops(ModulePass):
    """Refuses parallel loops whose iterations depend on each other; serializes those where it is unknown."""

    name = "check-parallel-loops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Checks every parallel loop written in the module, outer ones first; also in TE's externs."""
        written: list[Operation] = []
        for function in op.ops:
            if isinstance(function, tir.PrimFuncOp):
                written.append(function)
                check_exchanges(function)
            elif isinstance(function, te.FuncOp):
                written += [each for each in ops_in(function.body.block) if isinstance(each, te.ExternOp)]
        for root in written:
            for loop in ops_of(root, tir.ForOp):
                if loop.kind.data == "parallel":
                    check_loop(loop)
