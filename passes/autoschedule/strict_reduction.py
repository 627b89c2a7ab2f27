"""Reductions of floats whose terms keep their order: vectors and threads over the results alone."""

from __future__ import annotations

from xdsl.dialects.builtin import AnyFloat

from ...dialects import tir
from ...dialects.tir.types import element_of
from ...support.target import Target
from ...support.walk import walk_ops
from ..schedule import BlockRV, LoopRV, Schedule
from ..schedule.analysis.block_kind import axis_kinds
from .block_shape import lanes_of_block, shape_of
from .column_reduction import vector_axis
from .loop_nests import block_of, extent_of, own_loops, parallelize


def reduces_floats(block: tir.BlockOp) -> bool:
    """Returns whether a block reduces to floats, or chooses among floats, as argmax does."""
    return "R" in axis_kinds(block) and any(
        isinstance(op, tir.StoreOp) and isinstance(element_of(op.value.type), AnyFloat) for op in walk_ops(block)
    )


def schedule_in_order(sch: Schedule, block: BlockRV, target: Target) -> None:
    """Runs adjacent results in vectors, and others on threads; each takes its terms in order."""
    shape = shape_of(block_of(sch, block))
    if shape is None or not shape.reduction:
        return
    by_axis = dict(zip(shape.axes, sch.get_loops(block), strict=True))
    outer, reducing = [by_axis[v] for v in shape.spatial], [by_axis[v] for v in shape.reduction]
    axis = vector_axis(shape)
    columns: list[LoopRV] = []
    if axis is not None:
        column, lanes = outer.pop(), lanes_of_block(shape, target)
        if (extent_of(sch, column) or lanes + 1) > lanes:
            strip, column = sch.split(column, [None, lanes])
            outer.append(strip)
        columns = [column]
    sch.reorder(*outer, *reducing, *columns)
    if columns:
        sch.vectorize(columns[0])
    parallelize(sch, outer, shape.points * shape.cost, target)
    start = sch.decompose_reduction(block, reducing[0])
    loops = own_loops(sch, start)
    if columns and loops:
        sch.vectorize(loops[-1])
