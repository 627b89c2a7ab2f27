"""The pass `decompose-open-reductions`: a reduction over no elements at all still gives its first value.

`T.init` runs with the first element that is reduced. Where the number of elements is known only at run time, and may be 0, or is 0,
the first value is stored by a block of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ...dialects import tir
from ...dialects.tir.open_reductions import loops_of_reduction, reducing_loops
from ..schedule import Schedule
from ..schedule.handles import BlockRV
from ..schedule.structure import loops_above
from .rewriting import ops_of, prim_funcs


@dataclass(frozen=True)
class DecomposeOpenReductions(ModulePass):
    """Gives the init of a reduction a block of its own where a reduced extent is symbolic, or 0."""

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
                first = loops_of_reduction(block)[0]
                schedule.decompose_reduction(handle, schedule.get_loops(handle)[loops_above(block).index(first)])
