"""Reductions whose results are adjacent: rows are added up, in vectors along their columns."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.ir import SSAValue

from ...support.target import Target
from ..schedule import BlockRV, LoopRV, Schedule
from .block_shape import MANY, Shape, element_bytes, lanes_of_block
from .loop_nests import PARALLEL_WORK, own_loops, parallelize, partitioned, turns_of
from .vector_axes import contiguous_suffix

TOGETHER = 8
"""Rows that are added at a time."""
FEW_VECTORS, SHORT_CHAIN = 4, 512
"""In a row of fewer vectors, the columns left over wait for one addition after the other, unless those are few."""


@dataclass(frozen=True)
class _Rows:
    """Rows that are added up: columns, rows, the columns of a strip at most, and the lanes of a vector."""

    columns: int | None
    rows: int | None
    width: int
    lanes: int


def vector_axis(shape: Shape) -> SSAValue | None:
    """Returns the spatial axis along which all accesses are contiguous or repeated, if there is one."""
    if not shape.spatial or contiguous_suffix(shape) == 0:
        return None
    axis = shape.spatial[-1]
    extent = shape.extent(axis)
    # A vector that is mostly empty is not better than a scalar.
    return axis if extent is None or extent >= 4 else None


def reduce_columns(
    sch: Schedule, block: BlockRV, shape: Shape, by_axis: dict[SSAValue, LoopRV], target: Target, work: int
) -> None:
    """Vectorizes over the output's columns: several rows at a time are added to a strip of the output.

    The strip stays in cache. The rows are as far apart as may be, so that each of several streams goes on where its last row ended: memory is
    read at full speed by as many streams as the processor foresees, each of which is long. A strip takes a part of the second-level cache, as
    short runs of rows whose distance is a power of two would evict each other.

    `by_axis` are the loops of the axes of `shape` that are to be scheduled; work of 0 leaves all on one thread.
    """
    axis = vector_axis(shape)
    assert axis is not None
    outer = [by_axis[v] for v in shape.spatial if v is not axis and v in by_axis]
    reducing = [by_axis[v] for v in shape.reduction]
    lanes = lanes_of_block(shape, target)
    column, extent = by_axis[axis], shape.extent(axis)
    width = max(target.l2 // 8 // element_bytes(shape.stores[0].buffer), lanes)
    if extent is not None and extent < width and outer and contiguous_suffix(shape) > 1:
        before = shape.spatial[-2]
        rows_of = shape.extent(before) if before in by_axis else None
        if rows_of is not None and _strip(extent * rows_of, width, lanes):
            # Rows of the output that are contiguous are one, if that is so many whole vectors: what ends within one row or the
            # other has no affine places.
            sch.reorder(*outer, column, *reducing)
            column, extent = sch.fuse(outer.pop(), column), extent * rows_of
    rows = shape.extent(shape.reduction[-1])
    left = 0 if extent is None or extent < lanes else extent % lanes
    terms = prod(shape.extent(v) or MANY for v in shape.reduction)
    # Among other stages of a row, which is in the cache, a second loop over its rows costs more than masks.
    if not work or not left or extent is None or (extent < FEW_VECTORS * lanes and terms > SHORT_CHAIN):
        _add_rows(sch, block, outer, reducing, column, _Rows(extent, rows, width, lanes), target, work)
        return
    # Columns that fill no vector run apart: a vector under a mask is stored and loaded again for each row.
    sch.reorder(*outer, column, *reducing)
    alone = work < PARALLEL_WORK or target.cores < 2
    if not alone and turns_of(sch, outer) >= target.cores:
        parallelize(sch, outer, work, target)
        alone = True
    below = 1 + len(reducing)
    for (part, loop), size in zip(
        partitioned(sch, block, column, extent - left, below)[1], (extent - left, left), strict=True
    ):
        inner: list[LoopRV] = sch.get_loops(part)[-len(reducing) :]
        each = _Rows(size, rows, width, lanes)
        _add_rows(sch, part, [], inner, loop, each, target, 0 if alone or size < lanes else work)


def _add_rows(
    sch: Schedule,
    block: BlockRV,
    outer: list[LoopRV],
    reducing: list[LoopRV],
    column: LoopRV,
    size: _Rows,
    target: Target,
    work: int,
) -> None:
    """Schedules the rows of all columns, or of a part of them."""
    extent, rows, width, lanes = size.columns, size.rows, size.width, size.lanes
    strips: list[LoopRV] = []
    if extent is None or extent > lanes:
        if extent is not None:
            # On several threads every one has a strip.
            width = min(width, -(-extent // (target.cores * lanes)) * lanes if work >= PARALLEL_WORK else extent)
            width = _strip(extent, width, lanes) or width
        # A row of unknown length is one strip: a short one would skip most iterations of a strip's loop, one by one.
        if extent is not None and extent > width:
            strip, column = sch.split(column, [None, width])
            strips = [strip]
        head, column = sch.split(column, [None, lanes])
        chunk = [head]
    else:
        chunk = []
    last = reducing[-1]
    together = next((u for u in (8, 7, 6, 5, 4) if rows is not None and rows % u == 0), TOGETHER)
    if rows is not None and rows > together and rows % together:
        sch.reorder(*outer, *strips, *reducing, *chunk, column)
        sch.vectorize(column)
        parallelize(sch, [*outer, *strips], work, target)
        _vectorize_last(sch, sch.decompose_reduction(block, reducing[0]))
        _add_in_parts(sch, block, last, rows, together, len(chunk))
        return
    if rows is not None and rows > together:
        inner, rest = sch.split(last, [together, None])
        reducing = [*reducing[:-1], rest]
    elif rows is None:
        rest, inner = sch.split(last, [None, together])
        reducing = [*reducing[:-1], rest]
    else:
        inner, reducing = last, reducing[:-1]
    sch.reorder(*outer, *strips, *reducing, *chunk, inner, column)
    sch.vectorize(column)
    sch.unroll(inner)
    parallelize(sch, [*outer, *strips], work, target)
    _vectorize_last(sch, sch.decompose_reduction(block, reducing[0] if reducing else inner))


def _vectorize_last(sch: Schedule, block: BlockRV) -> None:
    loops = own_loops(sch, block)
    if loops:
        sch.vectorize(loops[-1])


def _add_in_parts(sch: Schedule, block: BlockRV, loop: LoopRV, rows: int, together: int, chunk: int) -> None:
    """Adds so many rows at a time, and those that are left, each in a loop of its own.

    A condition in each iteration would cost more than an addition. `chunk` is the number of loops between that of the rows and that of the lanes.
    """
    whole = rows - rows % together
    parts = partitioned(sch, block, loop, whole, 2 + chunk)[1]
    for (part, inner), turns in zip(parts, (whole, rows - whole), strict=True):
        around = sch.get_loops(part)[-1 - chunk : -1]
        far: list[LoopRV] = []
        if turns > together:
            inner, outer = sch.split(inner, [together, None])
            far = [outer]
        if far or around:
            sch.reorder(*far, *around, inner)
        sch.unroll(inner)


def _strip(extent: int, width: int, lanes: int) -> int:
    """Returns the length of equal strips of whole vectors; 0 if there are none.

    It is `width` at most, and not less than half of that.
    """
    if extent <= width:
        return 0 if extent % lanes else extent
    least = -(-extent // width)
    return next((extent // n for n in range(least, 2 * least + 1) if extent % (n * lanes) == 0), 0)
