"""Which loops drive which axes of a block that was moved: loops of one turn are gone, others remain in order."""

from __future__ import annotations

from ....dialects import tir
from ....dialects.tir.analysis import Analyzer
from ....dialects.tir.analysis.expr import free_vars
from ...schedule import BlockRV, LoopRV, Schedule
from .contraction import own_loops


def loops_by_axis(sch: Schedule, block: BlockRV) -> list[LoopRV | None]:
    """For each axis of the block the one of its own loops that it is bound to; None where it has none left."""
    op = sch.get(block)
    assert isinstance(op, tir.BlockOp)
    analyzer = Analyzer()
    used = [{atom.payload for atom in free_vars(analyzer.expr(binding))} for binding in op.bindings]
    found: list[LoopRV | None] = [None] * len(used)
    for loop in own_loops(sch, block):
        inner = sch.get(loop)
        assert isinstance(inner, tir.ForOp)
        for axis, variables in enumerate(used):
            if inner.loop_var in variables and found[axis] is None:
                found[axis] = loop
    return found
