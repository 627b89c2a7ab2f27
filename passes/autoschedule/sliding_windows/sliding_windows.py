"""Windows that slide along rows: depthwise, thin and grouped convolutions, pooling.

Vectors run along the output's last dimension, where each tap of the window is a vector of neighbouring (or every second, …) inputs; the
accumulators of several vectors, and of several filters where these share the input, stay in registers while the window runs. Nothing is
transposed, and nothing packed but the filters, so that each lane of a vector of inputs meets a filter's tap that is the same for all.

Where each plane has a filter of its own, a tile is many rows of one vector: a column of the window is written out, the columns are the
iterations of a loop, so that each row of inputs is loaded once for all rows of sums that it meets.

Maxima of windows that overlap come in two blocks, one that reduces across rows and one that reduces what that made along the row: the
first is computed for as many rows of the second as stay in the nearest cache.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from xdsl.ir import SSAValue

from ....dialects import tir
from ....dialects.arith import Analyzer, Expr
from ....dialects.arith.expr import free_vars
from ....support.target import Target
from ...schedule import BlockRV, LoopRV, Schedule
from ...schedule.analysis.block_kind import axis_kinds
from ...schedule.analysis.structure import buffers_read, buffers_written, consumers, function_of, producers
from ...tir.buffers.constant_params import constant_params
from ..block_shape import Shape, element_bytes, shape_of, static_extents
from ..contraction import Contraction, match_contraction, own_loops, take_out
from ..elementwise import schedule_elementwise
from ..loop_nests import block_of, cached, extent_of, loops_by_axis, parallelize, partitioned, turns_of, vectorize_loop
from .window_match import Window, overlaps
from .window_tile import MAX_TAPS, WindowTile, choose_tile

THIN = 64
"""Products that a sum must have for it to be worth to put the results of vectors along channels back in order."""
WHOLE = 0.88
"""What part of its vectors a row fills that is as good as whole."""
WHOLE_THIN = 128
"""As `THIN`, for rows that are loaded in whole vectors in place."""
EMPTIER_THIN = 1024
"""As `THIN`, for rows of whole vectors, of every second input at most, where vectors along channels are emptier."""
EMPTIER = 0.15
"""By what part of their lanes they are."""
LONG_ROW = 3
"""Vectors of a padded row from which on it is quicker to zero all of it first than to ask of each lane whether it is inside."""
PLANE_SHARE = 4
"""What part of the first cache such a plane may take."""
AVX2 = 32
"""Bytes of the vectors whose lanes change sides by instructions of their own."""
ROWS_SHARE = 4
"""What part of the first cache windows that were reduced across rows may take until they are reduced along them."""


def pays(window: Window, contraction: Contraction | None, target: Target) -> bool:
    """Returns whether vectors along rows are the better scheme."""
    width = window.shape.extent(window.axis) or 1
    lanes = target.lanes(element_bytes(window.shape.stores[0].buffer))
    if width < 4 or window.shape.points < 1 << 10:
        return False
    if contraction is None:
        return any(overlaps(window.shape, window.inputs, v) for v in window.shape.spatial)
    depth = prod(window.shape.extent(v) or 1 for v in window.shape.reduction)
    columns = window.shape.extent(contraction.columns) or 1
    if contraction.columns is window.axis:
        return False
    return depth < _thin(window, width, columns, lanes) or columns < lanes


def _thin(window: Window, width: int, columns: int, lanes: int) -> int:
    """Returns the products of a sum below which vectors along rows beat vectors of so many columns.

    Columns are channels, mostly.
    """
    row, column = _filled(width, lanes), _filled(columns, lanes)
    if window.stride > 2:
        # Neighbours are picked out of as many vectors as windows are apart, of two by one instruction.
        return THIN // (window.stride - 1)
    if row < WHOLE:
        return THIN
    if row >= column + EMPTIER:
        return EMPTIER_THIN
    return WHOLE_THIN if window.stride == 1 else THIN


def _filled(extent: int, lanes: int) -> float:
    """Returns the part of the lanes of vectors that so many elements fill."""
    return extent / (-(-extent // lanes) * lanes)


def schedule_windows(sch: Schedule, block: BlockRV, window: Window, target: Target) -> None:
    """Tiles a window reduction in registers, fuses its consumers; pads the input a plane at a time."""
    shape = window.shape
    op = block_of(sch, block)
    work = shape.points * 2
    tile = choose_tile(window, target)
    names = list(shape.axes)
    padding = _padding(sch, op, window)
    feeding = rows_of(window)
    rows = None if feeding is None else sch.handle(feeding)
    across_rows: list[tuple[BlockRV, LoopRV]] = []
    if window.shares_inputs and tile.rows > 1:
        _pack_filters(sch, block, window, tile.rows)
    epilogue = take_out(sch, block)
    by_axis = dict(zip(names, sch.get_loops(block), strict=True))
    planes = _planes(window)
    alone = not window.shares_inputs and prod(shape.extent(v) or 1 for v in planes) > 1
    sorted_out = _sort_out(sch, padding, window, target) if padding is not None and alone else None
    outer, vectors, lanes = sch.split(by_axis[window.axis], [None, tile.vectors, tile.lanes])
    outside = [by_axis[v] for v in shape.spatial if v is not window.axis and v is not window.rows]
    inner = [vectors]
    heads: list[LoopRV] = []
    if window.rows is not None:
        head, height = sch.split(by_axis[window.rows], [None, tile.rows])
        heads, inner = [head], [height, vectors]
    far = [by_axis[v] for v in planes]
    near = [loop for loop in outside if loop not in far]
    reducing = [by_axis[v] for v in _in_order(window)]
    sch.reorder(*far, *near, *heads, outer, *reducing, *inner, lanes)
    sch.reverse_compute_at(epilogue, outer)
    if padding is not None:
        if alone:
            if sorted_out is not None:
                sch.compute_at(sorted_out, far[-1])
            sch.compute_at(padding, far[-1])
        else:
            schedule_elementwise(sch, padding, target)
    elif rows is not None:
        far[-1] = _part_of_plane(sch, far[-1], window, target)
        sch.compute_at(rows, far[-1])
        across_rows = _schedule_rows(sch, rows, target)
    sch.vectorize(lanes)
    for loop in inner:
        sch.unroll(loop)
    written = reducing if window.turning is None else [loop for loop in reducing if loop is not by_axis[window.turning]]
    _unroll_taps(sch, written, tile, _most_terms(window, tile, target))
    _store(sch, epilogue, tile)
    parallelize(sch, far if padding is not None and alone else [*far, *near], work, target)
    # What several blocks write is not shared out any more.
    if padding is not None and alone:
        _schedule_padding(sch, padding, target)
    if sorted_out is not None:
        _schedule_inner(sch, sorted_out, target)
    parts = _whole_tiles(sch, block, window, tile, heads, outer, reducing[0])
    for part, depth in (*across_rows, *parts):
        head_loops = own_loops(sch, sch.decompose_reduction(part, depth))
        for loop in head_loops[:-1]:
            sch.unroll(loop)
        sch.vectorize(head_loops[-1])


def _in_order(window: Window) -> list[SSAValue]:
    """Returns the reduced axes, the given one outside of the others."""
    return sorted(window.shape.reduction, key=lambda v: v is not window.turning)


def _whole_tiles(
    sch: Schedule,
    block: BlockRV,
    window: Window,
    tile: WindowTile,
    heads: list[LoopRV],
    outer: LoopRV,
    reducing: LoopRV,
) -> list[tuple[BlockRV, LoopRV]]:
    """Partitions the end of a row, and the rows that fill no tile, from whole tiles.

    So no other iteration asks whether there is something. Returns the parts, each with its outermost loop over what is reduced.
    """
    shape = window.shape
    below = len(sch.get_loops(block)) - [sch.resolve(loop) for loop in sch.get_loops(block)].index(
        sch.resolve(reducing)
    )
    width, lines = shape.extent(window.axis) or 1, 1 if window.rows is None else shape.extent(window.rows) or 1
    parts = [(block, reducing)]
    if lines % tile.rows:
        parts = partitioned(sch, block, heads[0], lines // tile.rows, below)[1]
    if width % (tile.vectors * tile.lanes):
        whole = width // (tile.vectors * tile.lanes)
        ends = [partitioned(sch, part, sch.get_loops(part)[-below - 1], whole, below)[1] for part, _ in parts]
        parts = [part for each in ends for part in each]
    return parts


def _planes(window: Window) -> list[SSAValue]:
    """Returns the outermost axes that each pick a part of the input: images, channels, groups."""
    load = window.inputs[0]
    found: list[SSAValue] = []
    reduction = {Analyzer().expr(v).atom for v in window.shape.reduction if (window.shape.extent(v) or 0) > 1}
    for axis in window.shape.spatial:
        if axis is window.axis or axis is window.rows:
            break
        atom = Analyzer().expr(axis).atom
        mine = [index for index in load.indices if atom in free_vars(index)]
        if len(mine) != 1 or reduction & set(free_vars(mine[0])):
            break
        found.append(axis)
    return found


def _padding(sch: Schedule, op: tir.BlockOp, window: Window) -> BlockRV | None:
    """Returns the block that pads the input, if nothing else reads what it makes."""
    buffer = window.inputs[0].buffer
    made = [p for p in producers(op) if buffers_written(p)[0] is buffer]
    if len(made) != 1 or len(window.inputs) != 1 or len(consumers(made[0])) != 1:
        return None
    shape = shape_of(made[0])
    return None if shape is None or shape.reduction else sch.handle(made[0])


def rows_of(window: Window) -> tir.BlockOp | None:
    """Returns the block that reduces windows across their rows, for this one to reduce along the row.

    None where there is none. Each row that it makes is read for one row of the output, so that it may be computed there.
    """
    shape = window.shape
    if window.rows is not None or window.filters or len(window.inputs) != 1:
        return None
    load = window.inputs[0]
    order = list(shape.stores[0].indices)
    analyzer = Analyzer()
    # All but the last place are the output's own, of which there is at least one.
    own = [analyzer.expr(v) for v in order[:-1]]
    if not own or order != shape.spatial or list(load.indices[:-1]) != own:
        return None
    made = [p for p in producers(shape.block) if buffers_written(p)[0] is load.buffer]
    if len(made) != 1 or len(consumers(made[0])) != 1 or static_extents(load.buffer) is None:
        return None
    rows = shape_of(made[0])
    return made[0] if rows is not None and _runs_across(rows) else None


def _runs_across(shape: Shape) -> bool:
    """Returns whether a block reduces few elements that are each in a row as their results are."""
    taps = prod(shape.extent(v) or MAX_TAPS for v in shape.reduction)
    if not shape.reduction or taps >= MAX_TAPS or len(shape.stores) != 1 or match_contraction(shape) is not None:
        return False
    store = shape.stores[0]
    if list(store.indices) != shape.spatial:
        return False
    last = Analyzer().expr(store.indices[-1]).atom
    loads = [load for load in shape.loads if load.buffer is not store.buffer]
    return last is not None and all(
        load.indices
        and load.indices[-1].coefficient(last) == 1
        and all(last not in free_vars(index) for index in load.indices[:-1])
        for load in loads
    )


def _part_of_plane(sch: Schedule, lines: LoopRV, window: Window, target: Target) -> LoopRV:
    """Returns the loop over parts of a plane whose reduced rows stay in the nearest cache.

    They are read when most were written a while ago, as neighbours of what was just written wait for it.
    """
    buffer = window.inputs[0].buffer
    extents = static_extents(buffer)
    assert extents is not None
    height, row = extents[-2], extents[-1] * element_bytes(buffer)
    most = max(min(target.l1 // ROWS_SHARE // row, height), 1)
    head, _ = sch.split(lines, [None, next(n for n in range(most, 0, -1) if height % n == 0)])
    return head


def _schedule_rows(sch: Schedule, block: BlockRV, target: Target) -> list[tuple[BlockRV, LoopRV]]:
    """Vectorizes what is reduced across rows: the window's elements one after the other.

    Returns the parts of a row, each with its outermost loop over elements, ahead of which its first values belong once threads are chosen.
    """
    op = block_of(sch, block)
    lanes = target.lanes(element_bytes(buffers_written(op)[0]))
    loops = own_loops(sch, block)
    taps = axis_kinds(op).count("R")
    row, reducing = loops[-1 - taps], loops[-taps:]
    extent = extent_of(sch, row) or 1
    head, vector = sch.split(row, [None, min(lanes, extent)])
    sch.reorder(head, *reducing, vector)
    sch.vectorize(vector)
    count = prod(extent_of(sch, loop) or 1 for loop in reducing)
    for loop in reducing:
        sch.unroll(loop)
    heads, parts = [head], [(block, reducing[0])]
    if extent > lanes and extent % lanes:
        # What is left of a row is shorter vectors, which stay in registers as masked stores do not.
        heads, parts = partitioned(sch, block, head, extent // lanes, taps + 1)
    if extent // lanes * count <= MAX_TAPS:
        sch.unroll(heads[0])
    return parts


def _pack_filters(sch: Schedule, block: BlockRV, window: Window, rows: int) -> None:
    """Filters of a tile side by side, where they are constant or few."""
    op = block_of(sch, block)
    assert window.rows is not None
    row = Analyzer().expr(window.rows)
    for load in window.filters:
        places = [k for k, index in enumerate(load.indices) if index == row]
        if len(places) != 1 or load.buffer not in constant_params(function_of(op)):
            continue
        packing = cached(sch, block, buffers_read(op).index(load.buffer))
        sch.transform_layout(packing, ("write", 0), _tiles_last(places[0], rows))


def _tiles_last(place: int, rows: int) -> Callable[..., list[Expr]]:
    """Returns the layout whose dimension `place` is cut into tiles, the place in a tile last."""

    def layout(*indices: Expr) -> list[Expr]:
        others = [i for k, i in enumerate(indices) if k != place]
        return [indices[place] // rows, *others, indices[place] % rows]

    return layout


def _sort_out(sch: Schedule, padding: BlockRV, window: Window, target: Target) -> BlockRV | None:
    """Copies the padded input so that inputs as far apart as windows are become adjacent.

    Each is then picked out of whole vectors once and not for each tap: a row of [place % stride, place // stride]. None where rows are not whole
    vectors then, and except on AVX2: others pick lanes out of two vectors by one instruction.
    """
    step, load = window.stride, window.inputs[0]
    extents, lanes = static_extents(load.buffer), target.lanes(element_bytes(load.buffer))
    if step == 1 or extents is None or extents[-1] % (step * lanes) or target.vector_bytes != AVX2:
        return None

    def layout(*indices: Expr) -> list[Expr]:
        return [*indices[:-1], indices[-1] % step, indices[-1] // step]

    copy: BlockRV = sch.cache_write(padding, 0, "global")
    sch.transform_layout(copy, ("write", 0), layout)
    sch.transform_block_layout(copy, layout)
    return copy


def _schedule_padding(sch: Schedule, padding: BlockRV, target: Target) -> None:
    """Schedules a padded plane.

    Of long rows all is zero first, and what is inside is copied then, where masks cost more than stores and the nearest cache keeps what is
    written twice.
    """
    loops = own_loops(sch, padding)
    element = element_bytes(buffers_written(block_of(sch, padding))[0])
    near = turns_of(sch, loops) * element <= target.l1 // PLANE_SHARE
    if near and not target.has_masked_stores and (extent_of(sch, loops[-1]) or 1) >= LONG_ROW * target.lanes(element):
        _schedule_inner(sch, sch.decompose_padding(padding, loops[0]), target)
    _schedule_inner(sch, padding, target)


def _schedule_inner(sch: Schedule, block: BlockRV, target: Target) -> None:
    """Vectorizes a copy within a plane along its rows; the rest of a row apart where stores have no masks."""
    op = block_of(sch, block)
    row = loops_by_axis(sch, block)[-1]
    if row is None:
        return
    lanes, extent = target.lanes(element_bytes(buffers_written(op)[0])), extent_of(sch, row) or 1
    if lanes < extent and extent % lanes and not target.has_masked_stores:
        row, rest = sch.loop_partition(row, [extent - extent % lanes])
        vectorize_loop(sch, rest, lanes)
    vectorize_loop(sch, row, lanes)


def _most_terms(window: Window, tile: WindowTile, target: Target) -> int:
    """Returns the terms that are written out at most, accumulators times taps.

    Taps that are the same along a row are loaded ahead of it, where LLVM does not count registers: no more of them than there are.
    """
    if not window.shares_inputs:
        return 2 * MAX_TAPS
    return min(MAX_TAPS, tile.vectors * target.vector_registers) if target.has_endless_registers else MAX_TAPS


def _unroll_taps(sch: Schedule, reducing: list[LoopRV], tile: WindowTile, most: int) -> None:
    """Writes the window out, from its innermost loop on, as long as the code stays short."""
    terms = tile.rows * tile.vectors
    for loop in reversed(reducing):
        terms *= extent_of(sch, loop) or most
        if terms > most:
            break
        sch.unroll(loop)


def _store(sch: Schedule, epilogue: BlockRV, tile: WindowTile) -> None:
    """Stores the tile along rows."""
    loops = own_loops(sch, epilogue)
    if not loops:
        return
    row = loops[-1]
    extent = extent_of(sch, row) or 1
    if extent > tile.lanes and extent % tile.lanes == 0:
        head, row = sch.split(row, [None, tile.lanes])
        sch.unroll(head)
    sch.vectorize(row)
    for loop in loops[:-1]:
        sch.unroll(loop)
