"""Which loops drive which axes of a block that was moved: loops of one turn are gone, others remain in order."""

from __future__ import annotations

from ...schedule import BlockRV, LoopRV, Schedule
from .handles import block_of, loop_of_axis


def loops_by_axis(sch: Schedule, block: BlockRV) -> list[LoopRV | None]:
    """For each axis of the block the one of its own loops that it is bound to; None where it has none left."""
    return [loop_of_axis(sch, block, axis) for axis in range(len(block_of(sch, block).iter_vars))]
