"""Packing: inputs copied into the order in which tiles read them.

B becomes panels [dimensions that are not reduced, column // width, those that are, column % width], so that the loop over k reads it
from front to end. A
constant is packed at the root of the function, from where `lift-transform-params` takes it; anything else when it is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import SSAValue

from ....dialects import tir
from ....dialects.arith import Analyzer
from ....dialects.arith.expr import Expr
from ....support.target import Target
from ...schedule import BlockRV, LoopRV, Schedule
from ...schedule.analysis.structure import buffers_read, buffers_written, const_int, consumers, producers
from ...tir.vectors.lower_transposed_loads import ELEMENT_BYTES, TILE
from ..block_shape import is_cast, is_copy
from ..elementwise import schedule_elementwise
from ..loop_nests import attempt, block_of, cached, extent_of, loop_of_axis, own_loops, store_of, vectorize_loop
from .match import Contraction
from .tile import WAYS, Tile, turns_around

RUN = 16
"""Elements of a row that are copied together into a panel: a cache line of float32."""
RUN_BYTES = 2048
"""Bytes of a row of B that are read at a time where rows are far apart: shorter runs cost a page and a DRAM row each."""
MOST_TILE = 16
"""Rows of a square at most that is transposed in registers."""
MOST_GROUP = 8
"""Panels that are packed together at most."""
MANY_USES = 128
"""Uses of B from which on packing it takes little of the time."""


def pad_columns(sch: Schedule, block: BlockRV, match: Contraction, tile: Tile, target: Target) -> BlockRV:
    """Rounds the columns up to whole panels; the stage that copies B, into which it is packed later."""
    op = block_of(sch, block)
    number = buffers_read(op).index(match.panel.buffer)
    before = set(producers(op))
    axes = list(match.shape.axes)
    source = own_copy(op, match.panel.buffer)
    if match.n % tile.columns:
        padding = [1] * len(axes)
        padding[axes.index(match.columns)] = tile.columns
        sch.pad_einsum(block, padding)
    made = [p for p in producers(op) if p not in before]
    packed = next((p for p in made if buffers_written(p)[0] is buffers_read(op)[number]), None)
    for each in made:
        if each is not packed:
            schedule_elementwise(sch, sch.handle(each), target)
    if packed is None:
        return cached(sch, block, number) if source is None else sch.handle(source)
    if source is not None:
        attempt(sch, source)
    return sch.handle(packed)


def own_copy(block: tir.BlockOp, buffer: SSAValue) -> tir.BlockOp | None:
    """Returns the block that copies or casts an input, element by element in order, for this block alone."""
    made = [p for p in producers(block) if buffer in buffers_written(p)]
    if len(made) != 1 or not (is_copy(made[0]) or is_cast(made[0])) or consumers(made[0]) != [block]:
        return None
    indices = store_of(made[0]).indices
    # An axis of one iteration may be written as 0.
    axes = zip(made[0].iter_vars, made[0].dom_extents, strict=True)
    in_order = all(const_int(size) == 1 or index is axis for index, (axis, size) in zip(indices, axes, strict=True))
    return made[0] if in_order else None


def lies_in_panels(match: Contraction, tile: Tile, target: Target) -> bool:
    """Returns whether B can be read in place, as panels.

    So it can in rows of whole panels, small enough for the second-level cache, or as one panel.
    """
    matrix = match.k * match.n * match.element
    row = match.n * match.element
    if row % (target.l1 // WAYS) == 0 and match.k > WAYS and match.n > tile.columns and match.uses >= MANY_USES:
        # Rows as far apart as the first-level cache has places share theirs.
        return False
    return (
        len(match.shape.reduction) == 1
        and match.column_place == len(match.panel.indices) - 1
        and match.n % tile.columns == 0
        and (matrix <= target.l2 or match.n == tile.columns)
    )


def panels_together(match: Contraction, tile: Tile, target: Target) -> int:
    """Returns the number of panels that are packed at a time.

    Several where B is stored in long rows, so that each is read in a longer run; where packing takes its time, no more than leave every thread
    as many such groups as another.
    """
    if match.column_place != len(match.panel.indices) - 1:
        return 1
    panels = -(-match.n // tile.columns)
    width = tile.columns * match.element
    whole = match.n * match.element
    if whole <= RUN_BYTES or match.k * width > target.l3 // 4:
        return 1
    most = min(RUN_BYTES // width, MOST_GROUP, panels)
    threads = turns_around(match, target).threads
    groups = (group for group in range(1, most + 1) if panels % group == 0)
    if threads > 1 and match.uses < MANY_USES:
        groups = (group for group in groups if panels // group >= 2 * threads and panels // group % threads == 0)
    return max(groups, default=1)


def pack_columns(
    sch: Schedule, packing: BlockRV, match: Contraction, tile: Tile, order: Sequence[SSAValue] = ()
) -> None:
    """Lays B out in panels, what is reduced in a certain order, and orders the loops that copy it."""
    place, rank, width = match.column_place, len(match.panel.indices), tile.columns
    loops: list[LoopRV] = own_loops(sch, packing)
    # The loop of dimension k drives axis k of the copy; dimensions of one iteration have none.
    driving = loop_of_axis(sch, packing, place)
    sch.transform_layout(packing, ("write", 0), _panels(match, order, width))
    if driving is None:
        return
    rest = [loop for loop in loops if loop is not driving]
    if place == rank - 1:
        # Rows of B are copied as they are.
        sch.reorder(*rest, driving)
        vectorize_loop(sch, driving, tile.lanes)
    elif rest and not transpose_tiles(sch, driving, rest, match.element, tile.lanes):
        _transpose(sch, driving, rest)


def transpose_tiles(sch: Schedule, driving: LoopRV, rest: list[LoopRV], element: int, lanes: int) -> bool:
    """Transposes B, whose columns one loop drives, in registers, a square of vectors at a time.

    False where it has no such squares.
    """
    size = min(lanes, MOST_TILE)
    depth = extent_of(sch, rest[-1])
    if element != ELEMENT_BYTES or size < 4 or depth is None or depth < size:
        return False
    across, row = sch.split(rest[-1], [None, size])
    column, lane = sch.split(driving, [None, size])
    # Along its rows B is fetched ahead.
    sch.reorder(*rest[:-1], column, across, row, lane)
    sch.vectorize(lane)
    sch.annotate(row, TILE, 1)
    return True


def _transpose(sch: Schedule, driving: LoopRV, rest: list[LoopRV]) -> None:
    """Transposes B, a few elements of each row at a time: the rows of the panel stay in cache."""
    run: list[LoopRV] = []
    length = 1
    while rest and length < RUN:
        loop = rest.pop()
        extent = extent_of(sch, loop) or RUN
        if extent * length > 2 * RUN:
            head, loop = sch.split(loop, [None, max(RUN // length, 1)])
            rest.append(head)
            extent = RUN
        run.insert(0, loop)
        length *= extent
    sch.reorder(*rest, driving, *run)
    sch.unroll(run[-1])


def pack_rows(sch: Schedule, block: BlockRV, match: Contraction, tile: Tile) -> None:
    """Packs a constant A as [row tile, other dimensions, row in the tile].

    One whose rows are not a dimension stays.
    """
    if match.rows is None or tile.rows < 2:
        return
    row = Analyzer().expr(match.rows)
    places = [k for k, index in enumerate(match.broadcast.indices) if index == row]
    if len(places) == 1 and match.m % tile.rows == 0:
        number = buffers_read(block_of(sch, block)).index(match.broadcast.buffer)
        packing = cached(sch, block, number)
        sch.transform_layout(packing, ("write", 0), _blocked(places[0], tile.rows))


def _panels(match: Contraction, order: Sequence[SSAValue], width: int) -> Callable[..., list[Expr]]:
    """Returns the layout of B in the order of the loops around it.

    What is not reduced, columns in panels, what is reduced, columns of a panel.
    """
    analyzer = Analyzer()
    indices, place = match.panel.indices, match.column_place
    outside = [analyzer.expr(axis) for axis in match.shape.spatial]
    around = [k for k, index in enumerate(indices) if k != place and index in outside]
    wanted = [analyzer.expr(axis) for axis in order]
    inside = [k for k in range(len(indices)) if k != place and k not in around]
    reduced = iter(sorted((k for k in inside if indices[k] in wanted), key=lambda k: wanted.index(indices[k])))
    inside = [next(reduced) if indices[k] in wanted else k for k in inside]

    def layout(*places: Expr) -> list[Expr]:
        column = places[place]
        return [*(places[k] for k in around), column // width, *(places[k] for k in inside), column % width]

    return layout


def _blocked(place: int, width: int) -> Callable[..., list[Expr]]:
    """Returns the layout in which dimension `place` is split: blocks outermost, the inside innermost."""

    def layout(*indices: Expr) -> list[Expr]:
        others = [i for k, i in enumerate(indices) if k != place]
        return [indices[place] // width, *others, indices[place] % width]

    return layout


def lanes_innermost(sch: Schedule, block: BlockRV, match: Contraction) -> None:
    """Lays the sums out so that those of a vector are adjacent."""
    op = block_of(sch, block)
    store = next(s for s in op.body.block.ops if isinstance(s, tir.StoreOp))
    place = list(store.indices).index(match.columns)
    if place == len(store.indices) - 1:
        return

    def layout(*indices: Expr) -> list[Expr]:
        return [*indices[:place], *indices[place + 1 :], indices[place]]

    sch.transform_layout(block, ("write", 0), layout)
