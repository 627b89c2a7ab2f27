"""Winograd's convolution: the stages around its matrix products, each in vectors of channels.

image → across → view → products → down → whole → out, as `te_winograd` writes them, in one function or, cut after the
products, in two. The first three are transforms of the data: `across` is computed where a row of tiles of `view` is, for one
vector of channels, so that it stays in the nearest cache; `down` and `whole` likewise where `out` takes a row of tiles.
`products` is a contraction as any other; a constant weight is transformed as it is packed. Stages are known by what they read
and by the axes that choose between sums (`constant_matrices`), not by name. Such axes are unrolled (`unroll-choices`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import gcd

from xdsl.ir import SSAValue

from ...dialects import tir
from ...support.target import Target
from ..schedule import BlockRV, LoopRV, Schedule
from ..schedule.analysis.structure import buffers_read, consumers, producers
from ..tir.vectors.lower_transposed_loads import TILE, WHOLE
from .block_shape import Shape, element_bytes, shape_of
from .constant_matrices import selector_axes
from .contraction import Contraction, match_contraction, schedule_contraction
from .loop_nests import block_of, extent_of, loops_by_axis, own_loops, parallelize, vectorize_loop

SMALLEST = 4
"""Tiles of fewer rows are not worth transposing in registers."""


@dataclass(frozen=True)
class DataStages:
    """The blocks up to the products of one convolution, in order."""

    image: tir.BlockOp
    across: tir.BlockOp
    view: tir.BlockOp
    columns: int
    """Tiles side by side."""
    depth: int
    """Rows of tiles in a block."""
    products: tir.BlockOp
    match: Contraction
    weight: tuple[tir.BlockOp, tir.BlockOp] | None
    """The weight's transform along columns and along rows, where the function does that, too."""


@dataclass(frozen=True)
class OutputStages:
    """The blocks after the products of one convolution, in order."""

    down: tir.BlockOp
    whole: tir.BlockOp
    out: tir.BlockOp
    tile: int
    """Outputs along one side of a tile."""
    depth: int
    """Rows of tiles in a block."""


@dataclass(frozen=True)
class Stages:
    """The stages of a convolution by Winograd's algorithm in a function: one half or both."""

    data: DataStages | None
    output: OutputStages | None


def find_stages(blocks: list[tir.BlockOp]) -> list[Stages]:
    """Returns the convolutions of a function by Winograd's algorithm."""
    found: list[Stages] = []
    taken: set[tir.BlockOp] = set()
    for block in blocks:
        shape = shape_of(block)
        match = None if shape is None else match_contraction(shape)
        data = None if match is None else _before(block, match)
        if data is not None and match is not None:
            rows = _only(consumers(block))
            output = None if rows is None else _behind(rows, data.depth)
            found.append(Stages(data, output))
            taken.update(() if output is None else (output.down,))
    for block in blocks:
        output = None if block in taken or producers(block) else _behind(block)
        if output is not None:
            found.append(Stages(None, output))
    return found


def _before(products: tir.BlockOp, match: Contraction) -> DataStages | None:
    view = next((p for p in producers(products) if match.broadcast.buffer in _written(p)), None)
    across = None if view is None else _only(producers(view))
    image = None if across is None else _only(producers(across))
    if view is None or across is None or image is None:
        return None
    shapes = [_plain(image, 4), _plain(across, 5), _plain(view, 5)]
    turned, columns = shapes[1:]
    if None in shapes or turned is None or columns is None or not (_chooses(turned, 2) and _chooses(columns, 2)):
        return None
    images, lines, *_ = turned.extents
    blocks, _, _, tiles, _ = columns.extents
    if images is None or lines is None or blocks is None or tiles is None or blocks * tiles % (images * lines):
        return None
    count = blocks * tiles // (images * lines)
    return DataStages(image, across, view, count, tiles // count, products, match, _weight(products, match))


def _weight(products: tir.BlockOp, match: Contraction) -> tuple[tir.BlockOp, tir.BlockOp] | None:
    along = next((p for p in producers(products) if match.panel.buffer in _written(p)), None)
    down = None if along is None else _only(producers(along))
    if along is None or down is None or producers(down):
        return None
    shapes = _plain(down, 4), _plain(along, 4)
    if shapes[0] is None or shapes[1] is None or not (_chooses(shapes[0], 0) and _chooses(shapes[1], 1)):
        return None
    return down, along


def _behind(down: tir.BlockOp, depth: int | None = None) -> OutputStages | None:
    whole = _only(consumers(down))
    out = None if whole is None else _only(consumers(whole))
    if whole is None or out is None:
        return None
    rows, result, last = _plain(down, 6), _plain(whole, 5), _plain(out, 4)
    if rows is None or result is None or last is None or not (_chooses(rows, 2) and _chooses(result, 3)):
        return None
    tile, lines = rows.extents[2], rows.extents[1]
    if tile is None or lines is None or result.extents[3] != tile or result.extents[1] != lines * tile:
        return None
    return OutputStages(down, whole, out, tile, lines if depth is None else depth)


def _plain(block: tir.BlockOp, rank: int) -> Shape | None:
    """Returns the shape of a block of so many axes, all known, that sums nothing up."""
    shape = shape_of(block)
    return None if shape is None or None in shape.extents or shape.reduction or len(shape.extents) != rank else shape


def _written(block: tir.BlockOp) -> list[SSAValue]:
    return [store.buffer for store in block.body.block.ops if isinstance(store, tir.StoreOp)]


def _only(blocks: list[tir.BlockOp]) -> tir.BlockOp | None:
    return blocks[0] if len(blocks) == 1 else None


def _chooses(shape: Shape, axis: int) -> bool:
    return shape.axes[axis] in selector_axes(shape)


def schedule_winograd(sch: Schedule, stages: Stages, target: Target) -> None:
    """Schedules all stages in order, or block of tiles by block of tiles where there are several."""
    if stages.data is None:
        if stages.output is not None:
            _schedule_output(sch, stages.output, target)
        return
    data, match = stages.data, stages.data.match
    image, across, view, products = map(sch.handle, (data.image, data.across, data.view, data.products))
    lanes = target.lanes(element_bytes(buffers_read(data.view)[0]))
    work = match.shape.points * 2
    blocks = match.shape.extents[0] or 1
    alone = replace(target, cores=1)
    constant = match.is_constant(match.panel)
    together = stages.output is not None and blocks > 1 and constant
    loops = sch.get_loops(products)
    schedule_contraction(sch, products, match, alone if together else target)
    if data.weight is not None and constant:
        down, along = data.weight
        _schedule_weight(sch, sch.handle(down), sch.handle(along), lanes, target)
    if stages.output is None or not together:
        if stages.output is not None:
            _schedule_output(sch, stages.output, target)
        _schedule_data(sch, across, view, data, lanes, target)
        _schedule_image(sch, image, lanes, target)
        return
    outer = _schedule_output(sch, stages.output, alone)
    nest = [sch.resolve(loop) for loop in sch.get_loops(products)]
    sch.reorder(loops[0], *sch.get_loops(products)[: nest.index(sch.resolve(loops[0]))])
    merged = sch.merge(loops[0], outer)
    sch.compute_at(view, merged)
    _schedule_data(sch, across, view, data, lanes, alone)
    sch.compute_at(image, merged)
    _schedule_image(sch, image, lanes, alone)
    parallelize(sch, [merged], work, target)


def _work(sch: Schedule, block: BlockRV) -> int:
    shape = shape_of(block_of(sch, block))
    return 0 if shape is None else shape.points * 4


def _schedule_image(sch: Schedule, image: BlockRV, lanes: int, target: Target) -> None:
    """Channels become the last dimension: a vector of them at a time along a row."""
    work = _work(sch, image)
    batch, row, column, channel = loops_by_axis(sch, image)
    heads = _vector(sch, [loop for loop in (batch, row) if loop], [column], channel, lanes)
    parallelize(sch, heads, work, target)


def _vector(
    sch: Schedule, outside: list[LoopRV], around: list[LoopRV | None], vector: LoopRV | None, lanes: int
) -> list[LoopRV]:
    """Vectorizes over one vector of channels at a time, `around` inside; returns the loops outside."""
    inside = [loop for loop in around if loop is not None]
    if vector is None:
        return outside
    if (extent_of(sch, vector) or 0) > lanes:
        outer, vector = sch.split(vector, [None, lanes])
        outside = [*outside, outer]
    if inside or len(outside) > 1:
        sch.reorder(*outside, *inside, vector)
    sch.vectorize(vector)
    return outside


def _schedule_data(
    sch: Schedule, across: BlockRV, view: BlockRV, stages: DataStages, lanes: int, target: Target
) -> None:
    work = _work(sch, view)
    block, down, along, tiles, channel = loops_by_axis(sch, view)
    assert tiles is not None
    row, column = sch.split(tiles, [None, stages.columns])
    outside = _vector(sch, [*([block] if block else []), row], [down, column, along], channel, lanes)
    sch.compute_at(across, outside[-1])
    assert along is not None
    sch.unroll(along)
    _, _, choice, place, vector = loops_by_axis(sch, across)
    _choices_inside(sch, [place], choice, vector, lanes)
    parallelize(sch, outside, work, target)


def _schedule_weight(sch: Schedule, down: BlockRV, along: BlockRV, lanes: int, target: Target) -> None:
    """Transforms a constant weight as it is packed: a vector of filters of one channel at a time."""
    work = _work(sch, along) * 4
    reader = _only(consumers(block_of(sch, along)))
    if reader is None:
        return
    packing = sch.handle(reader)
    sch.compute_inline(along)
    place, choice, channel, filters = loops_by_axis(sch, packing)
    *outside, vector = own_loops(sch, packing)
    sch.reorder(*(loop for loop in (filters, channel, place, choice) if loop in outside), vector)
    if choice is not None:
        sch.unroll(choice)
    around = [loop for loop in (filters, channel) if loop in outside]
    if around:
        sch.compute_at(down, around[-1])
    choice, taps, _, vector = loops_by_axis(sch, down)
    _choices_inside(sch, [taps], choice, vector, lanes)
    parallelize(sch, around, work, target)


def _store_across(sch: Schedule, channel: LoopRV, column: LoopRV, lanes: int) -> None:
    """Stores channels as rows again, in tiles that are transposed in registers.

    Square ones that fill rows, otherwise of whole rows.
    """
    columns, channels = extent_of(sch, column) or 1, extent_of(sch, channel) or 1
    side = gcd(columns, channels, lanes)
    if side >= SMALLEST:
        far, near = sch.split(column, [None, side])
        outer, inner = sch.split(channel, [None, side])
        sch.reorder(outer, far, inner, near)
    elif SMALLEST <= columns <= max(WHOLE) and lanes in WHOLE and channels % lanes == 0:
        outer, inner = sch.split(channel, [None, lanes])
        near = column
    else:
        vectorize_loop(sch, column, lanes)
        return
    sch.vectorize(near)
    sch.annotate(inner, TILE, 1)


def _choices_inside(
    sch: Schedule, around: list[LoopRV | None], choice: LoopRV | None, vector: LoopRV | None, lanes: int
) -> None:
    """Schedules a stage at its reader: vectors innermost, the choosing axis unrolled around them."""
    loops = [loop for loop in (*around, choice, vector) if loop is not None]
    if len(loops) > 1:
        sch.reorder(*loops)
    if vector is not None:
        vectorize_loop(sch, vector, lanes)
    if choice is not None:
        sch.unroll(choice)


def _schedule_output(sch: Schedule, stages: OutputStages, target: Target) -> LoopRV:
    """Schedules the output's transform; returns the loop over blocks of tiles."""
    down, whole, out = map(sch.handle, (stages.down, stages.whole, stages.out))
    lanes = target.lanes(element_bytes(buffers_read(stages.down)[0]))
    work = _work(sch, out)
    batch, filters, row, column = sch.get_loops(out)
    block, tiles, inner_row = sch.split(row, [None, stages.depth, stages.tile])
    outer, inner = sch.split(filters, [None, lanes])
    sch.reorder(batch, block, tiles, outer, inner_row, inner, column)
    blocks = sch.fuse(batch, block)
    sch.compute_at(whole, outer)
    sch.compute_at(down, outer)
    _store_across(sch, inner, column, lanes)
    _, line, place, choice, vector = loops_by_axis(sch, whole)
    _choices_inside(sch, [line, place], choice, vector, lanes)
    _, _, rows, places, columns, vector = loops_by_axis(sch, down)
    _choices_inside(sch, [places, columns], rows, vector, lanes)
    parallelize(sch, [blocks, tiles, outer], work, target)
    return blocks
