"""The pass `decompose-open-reductions`: a reduction over no elements still stores its initial value.

    for i, k in T.grid(4, n):                     for i in range(4):
        with T.block("C"):                            with T.block("C_init"):
            with T.init():                                C[vi] = 0
                C[vi] = 0                      →      for k in range(n):
            C[vi] = C[vi] + A[vi, vk]                     with T.block("C_update"):
                                                              C[vi] = C[vi] + A[vi, vk]

`T.init` runs with the first element that is reduced. Where the extent is 0, or symbolic and so perhaps 0, the initial value is
stored by a block of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ....dialects import tir
from ....dialects.tir.open_reductions import loops_of_reduction, put_first_values, reducing_loops
from ...schedule import Schedule
from ...schedule.analysis.access import declare_access
from ...schedule.analysis.structure import loops_above
from ...schedule.engine.errors import ScheduleError
from ...schedule.engine.random_variables import BlockRV
from ...schedule.primitives.decompose_reduction import declare_update
from ..rewriting import lower_init, ops_of, prim_funcs


@dataclass(frozen=True)
class DecomposeOpenReductions(ModulePass):
    """Gives the init of a reduction a block of its own where a reduced extent is symbolic, or 0.

    Where T.init() does not run before all else, once for each element, it stays in the block, as a branch; for a reduction over nothing
    it is done before the loops as well, under the condition that one of them has no iteration.
    """

    name = "decompose-open-reductions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Decomposes every such reduction of the module."""
        schedule: Schedule | None = None
        for function in prim_funcs(op):
            for init in ops_of(function, tir.InitOp):
                block = init.parent_op()
                if not isinstance(block, tir.BlockOp) or not reducing_loops(block):
                    continue
                schedule = schedule or Schedule(op)
                schedule.work_on(function.sym_name.data)
                handle = schedule.state.handle(block)
                assert isinstance(handle, BlockRV)
                first = schedule.get_loops(handle)[loops_above(block).index(loops_of_reduction(block)[0])]
                try:
                    schedule.decompose_reduction(handle, first)
                except ScheduleError:
                    alone = put_first_values(block, reducing_loops(block))
                    if alone is not None:
                        declare_access(alone)
                    lower_init(init)
                    declare_update(block)
