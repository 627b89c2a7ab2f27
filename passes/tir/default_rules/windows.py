"""Windows that slide along rows: depthwise and thin convolutions, convolutions in small groups, pooling.

Vectors run along the output's last dimension, where each tap of the window is a vector of neighbouring (or every second, …) inputs; the
accumulators of several vectors, and of several filters where these share the input, stay in registers while the window runs. Nothing is
transposed, and nothing packed but the filters, so that each lane of a vector of inputs meets a filter's tap that is the same for all.

Maxima of windows that overlap come in two blocks, one that reduces across rows and one that reduces what that made along the row: the
first is computed for as many rows of the second as stay in the nearest cache.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from xdsl.ir import SSAValue

from ....dialects import tir
from ....dialects.tir.analysis import Analyzer, Expr
from ....dialects.tir.analysis.expr import free_vars
from ....support.target import Target
from ...schedule import BlockRV, LoopRV, Schedule
from ...schedule.structure import buffers_read, buffers_written, consumers, function_of, producers
from ..constant_params import constant_params
from .contraction import Contraction, match_contraction, own_loops, take_out
from .elementwise import extent_of, parallelize, schedule_elementwise
from .handles import cached, loops_by_axis, partitioned
from .shape import Load, Shape, element_bytes, shape_of, static_extents

MAX_STRIDE = 4
"""Inputs further apart than these are not worth loading whole vectors for."""
THIN = 64
"""Products that a sum must have for it to be worth to put the results of vectors along channels back in order."""
MASKED = 1.3
"""How much more whole vectors cost that leave a part of one over."""
MAX_TAPS = 256
"""Terms that are written out, accumulators times taps; twice as many where there would be too few accumulators."""
ROWS_SHARE = 4
"""What part of the first cache windows that were reduced across rows may take until they are reduced along them."""
BUSY = 8
"""Accumulators that keep the multipliers busy."""


@dataclass(frozen=True)
class Window:
    """A reduction over windows along the output's last axis."""

    shape: Shape
    inputs: tuple[Load, ...]
    """Loads along the axis."""
    filters: tuple[Load, ...]
    """Loads that are the same along the axis."""
    axis: SSAValue
    stride: int
    rows: SSAValue | None
    """An axis of filters that read the same inputs, else that of the rows of the output; None where there is none."""
    shares_inputs: bool
    """Whether `rows` is an axis of filters."""


def match_window(shape: Shape) -> Window | None:
    """The block as a reduction over windows; None when it is none."""
    if not shape.reduction or len(shape.stores) != 1 or None in shape.extents:
        return None
    store = shape.stores[0]
    if not store.indices or store.indices[-1] not in shape.spatial:
        return None
    axis = store.indices[-1]
    atom = Analyzer().expr(axis).atom
    output = store.buffer
    inputs: list[Load] = []
    filters: list[Load] = []
    strides: set[int] = set()
    for load in shape.loads:
        if load.buffer is output:
            continue
        uses = [k for k, index in enumerate(load.indices) if atom in free_vars(index)]
        if not uses:
            filters.append(load)
            continue
        last = load.indices[-1]
        factor = last.coefficient(atom) if atom is not None else 0
        nested = atom in free_vars(Expr(tuple(t for t in last.terms if t[0] is not atom), last.const))
        if uses != [len(load.indices) - 1] or nested or not 1 <= factor <= MAX_STRIDE:
            return None
        strides.add(factor)
        inputs.append(load)
    if not inputs or len(strides) != 1 or any(isinstance(op, tir.IfThenElseOp) for op in shape.block.walk()):
        return None
    order = list(store.indices)
    if any(v not in order and shape.extent(v) != 1 for v in shape.spatial):
        return None
    own = [
        v
        for v in shape.spatial
        if (shape.extent(v) or 0) > 1
        and all(v not in load.axes for load in inputs)
        and any(v in load.axes for load in filters)
    ]
    lines = [v for v in shape.spatial if v is not axis and (shape.extent(v) or 0) > 1 and _overlaps(shape, inputs, v)]
    rows = max(own or lines, key=order.index, default=None)
    return Window(shape, tuple(inputs), tuple(filters), axis, strides.pop(), rows, bool(own))


def _overlaps(shape: Shape, inputs: Sequence[Load], axis: SSAValue) -> bool:
    """Whether windows that are neighbours along an axis read some of the same inputs."""
    analyzer = Analyzer()
    atom = analyzer.expr(axis).atom
    taps = {analyzer.expr(v).atom for v in shape.reduction if (shape.extent(v) or 0) > 1}
    return any(
        atom in used and taps & used for load in inputs for index in load.indices for used in [set(free_vars(index))]
    )


def pays(window: Window, contraction: Contraction | None, target: Target) -> bool:
    """Whether vectors along rows are the better scheme."""
    width = window.shape.extent(window.axis) or 1
    lanes = target.lanes(element_bytes(window.shape.stores[0].buffer))
    if width < 4 or window.shape.points < 1 << 10:
        return False
    if contraction is None:
        return any(_overlaps(window.shape, window.inputs, v) for v in window.shape.spatial)
    depth = prod(window.shape.extent(v) or 1 for v in window.shape.reduction)
    columns = window.shape.extent(contraction.columns) or 1
    if contraction.columns is window.axis:
        return False
    return depth < THIN or columns < lanes


@dataclass(frozen=True)
class Tile:
    """Accumulators: filters by vectors by lanes."""

    rows: int
    vectors: int
    lanes: int


def choose_tile(window: Window, target: Target) -> Tile:
    """Vectors that fill rows well, and as many accumulators as keep the multipliers busy with few loads."""
    lanes = target.lanes(element_bytes(window.shape.stores[0].buffer))
    width = window.shape.extent(window.axis) or 1
    rows = 1 if window.rows is None else window.shape.extent(window.rows) or 1
    taps = prod(window.shape.extent(v) or 1 for v in window.shape.reduction)

    def cost_of_lanes(count: int) -> float:
        if width % count:
            return -(-width // count) * MASKED
        whole = 1 if count & (count - 1) == 0 else 1.15
        return width // count * (1 if 2 * count > lanes else 0.55) * whole

    count = min((n for n in range(1, lanes + 1) if width % n == 0 or n == lanes <= width), key=cost_of_lanes)
    load = 1.5 if window.stride == 1 else window.stride + 1.0
    best: tuple[float, Tile] | None = None
    for vectors, height in product(range(1, 9), range(1, 17)):
        # Vectors that are not whole are in a tile of their own.
        if (width // count) % vectors or rows % height:
            continue
        if height * vectors + vectors + 1 > target.vector_registers:
            continue
        if not window.shares_inputs and height * vectors * taps > max(MAX_TAPS, min(BUSY * taps, 2 * MAX_TAPS)):
            continue
        # An addition takes as long as four begin.
        loads = (
            vectors * load + height if window.shares_inputs else vectors * load * (height * window.stride + 2) / 3 + 1
        )
        cost = loads / (height * vectors) + 1.0 / min(height * vectors, BUSY)
        if best is None or cost < best[0]:
            best = cost, Tile(height, vectors, count)
    return best[1] if best is not None else Tile(1, 1, count)


def schedule_windows(sch: Schedule, block: BlockRV, window: Window, target: Target) -> None:
    """Tiles, keeps accumulators in registers, fuses what follows; what pads the input is computed for a plane at a time."""
    shape = window.shape
    op = sch.get(block)
    assert isinstance(op, tir.BlockOp)
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
    outer, vectors, lanes = sch.split(by_axis[window.axis], [None, tile.vectors, tile.lanes])
    outside = [by_axis[v] for v in shape.spatial if v is not window.axis and v is not window.rows]
    inner = [vectors]
    heads: list[LoopRV] = []
    if window.rows is not None:
        head, height = sch.split(by_axis[window.rows], [None, tile.rows])
        heads, inner = [head], [height, vectors]
    planes = _planes(window)
    far = [by_axis[v] for v in planes]
    near = [loop for loop in outside if loop not in far]
    reducing = [by_axis[v] for v in shape.reduction]
    sch.reorder(*far, *near, *heads, outer, *reducing, *inner, lanes)
    sch.reverse_compute_at(epilogue, outer)
    if padding is not None:
        alone = not window.shares_inputs and far and prod(extent_of(sch, loop) or 1 for loop in far) > 1
        if alone:
            sch.compute_at(padding, far[-1])
            _schedule_inner(sch, padding, target)
        else:
            schedule_elementwise(sch, padding, target)
    elif rows is not None:
        far[-1] = _part_of_plane(sch, far[-1], window, target)
        sch.compute_at(rows, far[-1])
        across_rows = _schedule_rows(sch, rows, target)
    sch.vectorize(lanes)
    for loop in inner:
        sch.unroll(loop)
    _unroll_taps(sch, reducing, tile, MAX_TAPS if window.shares_inputs else 2 * MAX_TAPS)
    _store(sch, epilogue, tile)
    parallelize(sch, far if far and padding is not None else [*far, *near], work, target)
    parts = [(block, reducing[0])]
    width = shape.extent(window.axis) or 1
    if width % (tile.vectors * tile.lanes):
        # The end of a row runs apart, so that no other turn asks whether there is something.
        parts = partitioned(sch, block, outer, width // (tile.vectors * tile.lanes), len(reducing) + len(inner) + 1)[1]
    for part, depth in (*across_rows, *parts):
        head_loops = own_loops(sch, sch.decompose_reduction(part, depth))
        for loop in head_loops[:-1]:
            sch.unroll(loop)
        sch.vectorize(head_loops[-1])


def _planes(window: Window) -> list[SSAValue]:
    """The axes, from the outermost on, that each pick a part of the input of their own: images, channels, groups."""
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
    """The block that pads the input, if nothing else reads what it makes."""
    buffer = window.inputs[0].buffer
    made = [p for p in producers(op) if buffers_written(p)[0] is buffer]
    if len(made) != 1 or len(window.inputs) != 1 or len(consumers(made[0])) != 1:
        return None
    shape = shape_of(made[0])
    return None if shape is None or shape.reduction else sch.handle(made[0])


def rows_of(window: Window) -> tir.BlockOp | None:
    """The block that reduces windows across their rows, for this one to reduce them along the row; None where there is none.

    Each row that it makes is read for one row of the output, so that it may be computed there.
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
    """Whether a block reduces few elements that each lie in a row as their results do."""
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
    """The loop over parts of a plane whose reduced rows stay in the nearest cache; they are read when most were written a while ago,
    as neighbours of what was just written wait for it."""
    buffer = window.inputs[0].buffer
    extents = static_extents(buffer)
    assert extents is not None
    height, row = extents[-2], extents[-1] * element_bytes(buffer)
    most = max(min(target.l1 // ROWS_SHARE // row, height), 1)
    head, _ = sch.split(lines, [None, next(n for n in range(most, 0, -1) if height % n == 0)])
    return head


def _schedule_rows(sch: Schedule, block: BlockRV, target: Target) -> list[tuple[BlockRV, LoopRV]]:
    """What is reduced across rows: vectors along a row, the window's elements one after the other. The parts of a row, each with its
    outermost loop over elements, ahead of which its first values belong once threads are chosen."""
    op = sch.get(block)
    assert isinstance(op, tir.BlockOp)
    lanes = target.lanes(element_bytes(buffers_written(op)[0]))
    loops = own_loops(sch, block)
    taps = sum(k.data == "R" for k in op.iter_types.data)
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
    op = sch.get(block)
    assert isinstance(op, tir.BlockOp) and window.rows is not None
    row = Analyzer().expr(window.rows)
    for load in window.filters:
        places = [k for k, index in enumerate(load.indices) if index == row]
        if len(places) != 1 or load.buffer not in constant_params(function_of(op)):
            continue
        packing = cached(sch, block, buffers_read(op).index(load.buffer))
        sch.transform_layout(packing, ("write", 0), _tiles_last(places[0], rows))


def _tiles_last(place: int, rows: int) -> Callable[..., list[Expr]]:
    """The layout whose dimension `place` is cut into tiles, the place in a tile last."""

    def layout(*indices: Expr) -> list[Expr]:
        others = [i for k, i in enumerate(indices) if k != place]
        return [indices[place] // rows, *others, indices[place] % rows]

    return layout


def _schedule_inner(sch: Schedule, block: BlockRV, target: Target) -> None:
    """A copy within a plane: vectors along its rows."""
    op = sch.get(block)
    assert isinstance(op, tir.BlockOp)
    row = loops_by_axis(sch, block)[-1]
    if row is not None:
        from .elementwise import vectorize_loop

        vectorize_loop(sch, row, target.lanes(element_bytes(buffers_written(op)[0])))


def _unroll_taps(sch: Schedule, reducing: list[LoopRV], tile: Tile, most: int) -> None:
    """Writes the window out, from its innermost loop on, as long as the code stays short."""
    terms = tile.rows * tile.vectors
    for loop in reversed(reducing):
        terms *= extent_of(sch, loop) or most
        if terms > most:
            break
        sch.unroll(loop)


def _store(sch: Schedule, epilogue: BlockRV, tile: Tile) -> None:
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
