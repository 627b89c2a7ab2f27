"""Blocks that read along another axis than they write, in square tiles transposed in registers."""

from __future__ import annotations

from math import prod

from xdsl.ir import SSAValue

from ....dialects.arith import Analyzer, Expr
from ....support.target import Target
from ...schedule import BlockRV, LoopRV, Schedule
from ...tir.vectors.lower_transposed_loads import BLOCK_BYTES, SHUFFLED_BYTES, TILE, WHOLE
from ..block_shape import Load, Shape, element_bytes, static_extents
from ..loop_nests import extent_of, parallelize


def transposed_axis(shape: Shape, target: Target) -> SSAValue | None:
    """Returns the axis along which a load is contiguous while the store goes across it.

    The store is along its last axis. None where tiles do not pay.
    """
    if shape.reduction or len(shape.stores) != 1 or not shape.stores[0].indices:
        return None
    analyzer = Analyzer()
    last = shape.stores[0].indices[-1]
    if last not in shape.axes or element_bytes(shape.stores[0].buffer) not in SHUFFLED_BYTES:
        return None
    for load in shape.loads:
        axis = _contiguous_axis(load, shape, analyzer)
        if axis is None or axis is last or last not in load.axes or not _width(shape, axis):
            continue
        if tile_size(shape, axis, target) and (shape.extent(last) or 0) >= SHORTEST:
            return axis
    return None


def _width(shape: Shape, axis: SSAValue) -> int:
    """Returns the bytes of the elements that are read across.

    They are those of what is stored, or fewer, which are widened once they are in order; 0 where loads differ and none of them has those of the
    store.
    """
    stored, analyzer = element_bytes(shape.stores[0].buffer), Analyzer()
    widths = {element_bytes(load.buffer) for load in shape.loads if _contiguous_axis(load, shape, analyzer) is axis}
    if stored in widths:
        return stored
    return widths.pop() if len(widths) == 1 and max(widths) < stored else 0


SHORTEST = 4
"""Turns of either axis below which tiles do not pay."""
MOST_LANES = 16
"""Rows and columns of a tile: as many registers hold it."""


OUT_OF_CACHE = 4
"""From so many times the second-level cache on, adjacent tiles are read."""


def _tiles_of_run(width: int) -> int:
    """Returns the number of adjacent tiles whose rows have `width` bytes.

    Sixteen, or those of a line where rows are short.
    """
    return 16 if width > BLOCK_BYTES else 4


def tile_size(shape: Shape, axis: SSAValue, target: Target) -> int:
    """Returns the columns of a tile along the axis that is read; 0 if there are none.

    They are the lanes of a vector, or of a part of one where the axis is as short.
    """
    width, run = _width(shape, axis), _run(shape, axis)
    lanes = min(target.lanes(width), MOST_LANES)
    if run >= lanes:
        return lanes
    return run if run in WHOLE and run * width >= BLOCK_BYTES and run >= SHORTEST else 0


def _contiguous_axis(load: Load, shape: Shape, analyzer: Analyzer) -> SSAValue | None:
    """Returns the axis that alone is the last index of a load, leaving out dimensions of one element."""
    extents = static_extents(load.buffer)
    if extents is None:
        return None
    for index, extent in zip(reversed(load.indices), reversed(extents), strict=True):
        if extent == 1:
            continue
        return next((a for a in shape.axes if analyzer.expr(a) == index), None)
    return None


def _run(shape: Shape, axis: SSAValue) -> int:
    """Returns the extent of an axis and those before it that are contiguous with it in every access."""
    return prod(shape.extent(a) or 0 for a in merged_axes(shape, axis))


def merged_axes(shape: Shape, axis: SSAValue) -> list[SSAValue]:
    """Returns the axis, after those that may be fused with it.

    These are neighbours in the loops and in every access, of whole extent.
    """
    analyzer = Analyzer()
    accesses = [(load.buffer, load.indices) for load in shape.loads]
    accesses += [(s.buffer, tuple(analyzer.expr(i) for i in s.indices)) for s in shape.stores]
    found = [axis]
    position = shape.axes.index(axis)
    while position > 0:
        before = shape.axes[position - 1]
        if not all(_adjacent(b, i, before, found[0], shape, analyzer) for b, i in accesses):
            break
        found.insert(0, before)
        position -= 1
    return found


def _adjacent(
    buffer: SSAValue, indices: tuple[Expr, ...], before: SSAValue, after: SSAValue, shape: Shape, analyzer: Analyzer
) -> bool:
    extents = static_extents(buffer)
    a, b = analyzer.expr(before), analyzer.expr(after)
    places = [k for k, index in enumerate(indices) if index in (a, b)]
    users = [
        k for k, index in enumerate(indices) if index.coefficient(a.terms[0][0]) or index.coefficient(b.terms[0][0])
    ]
    if not users:
        return True
    if extents is None or users != places or len(places) != 2 or places[1] != places[0] + 1:
        return False
    return indices[places[0]] == a and indices[places[1]] == b and extents[places[1]] == shape.extent(after)


def schedule_transposed(sch: Schedule, block: BlockRV, shape: Shape, across: SSAValue, target: Target) -> None:
    """Tiles of vectors along both axes, the read one outside."""
    columns_of, width = tile_size(shape, across, target), _width(shape, across)
    last = shape.stores[0].indices[-1]
    rows_of = min(target.lanes(width), MOST_LANES, _run(shape, last))
    by_axis: dict[SSAValue, LoopRV] = dict(zip(shape.axes, sch.get_loops(block), strict=True))
    outer: list[LoopRV] = []
    tiles: list[tuple[LoopRV, LoopRV]] = []
    taken: set[SSAValue] = set()
    for axis, size in ((across, columns_of), (last, rows_of)):
        merged = [a for a in merged_axes(shape, axis) if a not in taken]
        taken.update(merged)
        loop = sch.fuse(*[by_axis[a] for a in merged]) if len(merged) > 1 else by_axis[axis]
        head, inner = sch.split(loop, [None, size])
        tiles.append((head, inner))
    outer = [by_axis[a] for a in shape.axes if a not in taken]
    (rows, row), (columns, column) = tiles
    beside: list[LoopRV] = []
    if shape.points * element_bytes(shape.stores[0].buffer) > OUT_OF_CACHE * target.l2:
        # Memory is read by runs of several lines, not by one of each page.
        rows, run = sch.split(rows, [None, _tiles_of_run(columns_of * width)])
        beside.append(run)
    heads = [rows, columns]
    if len(merged_axes(shape, last)) > 1:
        # A loop fused of both heads would hide that neighbours along the merged axes are contiguous: the longer one alone is shared.
        heads = heads if outer or (extent_of(sch, rows) or 0) >= 4 * target.cores else [columns, rows]
        shared = [*outer, heads[0]]
    else:
        shared = [*outer, *heads]
    sch.reorder(*outer, *heads, *beside, row, column)
    sch.vectorize(column)
    sch.annotate(row, TILE, 1)
    parallelize(sch, shared, shape.points * shape.cost, target)
