"""Winograd's convolution: the stages around its matrix products, each in vectors of channels.

image → across → view → products → down → whole → out, as `computes_winograd` writes them. The first three are transforms of
the data: `across` is computed where a row of tiles of `view` is, for one vector of channels, so that it stays in the nearest
cache; `down` and `whole` likewise where `out` takes a row of tiles. `products` is a contraction as any other. Stages are
known by what they read and by the axes that choose between sums (`selectors`), not by name.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import gcd

from xdsl.ir import SSAValue

from ....dialects import tir
from ....support.target import Target
from ...schedule import BlockRV, LoopRV, Schedule
from ...schedule.structure import buffers_read, consumers, function_of, producers
from ..constant_params import constant_params
from ..lower_transposed_loads import TILE
from .contraction import Contraction, match_contraction, schedule_contraction
from .elementwise import extent_of, parallelize, vectorize_loop
from .handles import loops_by_axis
from .selectors import selector_axes
from .shape import Shape, element_bytes, shape_of

SMALLEST = 4
"""Tiles of fewer rows are not worth transposing in registers."""


@dataclass(frozen=True)
class Stages:
    """The blocks of one convolution, in order, without the products."""

    image: tir.BlockOp
    across: tir.BlockOp
    view: tir.BlockOp
    down: tir.BlockOp
    whole: tir.BlockOp
    out: tir.BlockOp
    tile: int
    """Outputs along one side of a tile."""
    size: int
    """Places along one side of a tile."""
    columns: int
    """Tiles side by side."""
    depth: int
    """Rows of tiles in a block."""
    products: tir.BlockOp
    match: Contraction


def find_stages(blocks: list[tir.BlockOp]) -> list[Stages]:
    """The convolutions of a function by Winograd's algorithm."""
    found: list[Stages] = []
    for block in blocks:
        shape = shape_of(block)
        match = None if shape is None else match_contraction(shape)
        stages = None if match is None else _around(block, match)
        if stages is not None:
            found.append(stages)
    return found


def _around(products: tir.BlockOp, match: Contraction) -> Stages | None:
    view = next((p for p in producers(products) if match.broadcast.buffer in _written(p)), None)
    across = None if view is None else _only(producers(view))
    image = None if across is None else _only(producers(across))
    down = _only(consumers(products))
    whole = None if down is None else _only(consumers(down))
    out = None if whole is None else _only(consumers(whole))
    if view is None or across is None or image is None or down is None or whole is None or out is None:
        return None
    shapes = [shape_of(b) for b in (image, across, view, down, whole, out)]
    ranks = [None if s is None or None in s.extents or s.reduction else len(s.extents) for s in shapes]
    if ranks != [4, 5, 5, 6, 4, 4]:
        return None
    turned, columns, result, rows = shapes[1], shapes[2], shapes[4], shapes[3]
    assert turned is not None and columns is not None and result is not None and rows is not None
    choosing = (_chooses(turned, 2), _chooses(columns, 2), _chooses(rows, 2), _chooses(result, 2))
    if not all(choosing):
        return None
    tile, size, tiles = rows.extents[2], turned.extents[2], rows.extents[4]
    assert tile is not None and size is not None and tiles is not None
    count = columns.extents[3]
    if rows.extents[3] != size or result.extents[2] != tile * tiles or count is None or count % tiles:
        return None
    return Stages(image, across, view, down, whole, out, tile, size, tiles, count // tiles, products, match)


def _written(block: tir.BlockOp) -> list[SSAValue]:
    return [store.buffer for store in block.body.block.ops if isinstance(store, tir.StoreOp)]


def _only(blocks: list[tir.BlockOp]) -> tir.BlockOp | None:
    return blocks[0] if len(blocks) == 1 else None


def _chooses(shape: Shape, axis: int) -> bool:
    return shape.axes[axis] in selector_axes(shape)


def schedule_winograd(sch: Schedule, stages: Stages, target: Target) -> None:
    """Schedules all stages: one after the other, or block of tiles by block of tiles where there are several."""
    image, across, view, products, down, whole, out = (
        sch.handle(block)
        for block in (
            *(stages.image, stages.across, stages.view, stages.products),
            *(stages.down, stages.whole, stages.out),
        )
    )
    lanes = target.lanes(element_bytes(buffers_read(stages.view)[0]))
    work = stages.match.shape.points * 2
    blocks = stages.match.shape.extents[0] or 1
    together = blocks > 1 and stages.match.panel.buffer in constant_params(function_of(stages.products))
    alone = replace(target, cores=1)
    parts = alone if together else target
    loops = sch.get_loops(products)
    schedule_contraction(sch, products, stages.match, parts)
    outer = _schedule_output(sch, down, whole, out, stages, lanes, parts)
    if not together:
        _schedule_data(sch, across, view, stages, lanes, target)
        _schedule_image(sch, image, lanes, target)
        return
    nest = [sch.get(loop) for loop in sch.get_loops(products)]
    sch.reorder(loops[0], *sch.get_loops(products)[: nest.index(sch.get(loops[0]))])
    merged = sch.merge(loops[0], outer)
    sch.compute_at(view, merged)
    _schedule_data(sch, across, view, stages, lanes, alone)
    sch.compute_at(image, merged)
    _schedule_image(sch, image, lanes, alone)
    parallelize(sch, [merged], work, target)


def _work(sch: Schedule, block: BlockRV) -> int:
    op = sch.get(block)
    assert isinstance(op, tir.BlockOp)
    shape = shape_of(op)
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
    """One vector of channels at a time, with the loops `around` it inside; gives the loops outside."""
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


def _schedule_data(sch: Schedule, across: BlockRV, view: BlockRV, stages: Stages, lanes: int, target: Target) -> None:
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


def _store_across(sch: Schedule, channel: LoopRV, column: LoopRV, lanes: int) -> None:
    """Channels become rows again: square tiles that are transposed in registers, where such fill rows."""
    side = gcd(extent_of(sch, column) or 1, extent_of(sch, channel) or 1, lanes)
    if side < SMALLEST:
        vectorize_loop(sch, column, lanes)
        return
    far, near = sch.split(column, [None, side])
    outer, inner = sch.split(channel, [None, side])
    sch.reorder(outer, far, inner, near)
    sch.vectorize(near)
    sch.annotate(inner, TILE, 1)


def _choices_inside(
    sch: Schedule, around: list[LoopRV | None], choice: LoopRV | None, vector: LoopRV | None, lanes: int
) -> None:
    """Of a stage at its reader: vectors innermost, the choosing axis unrolled around them."""
    loops = [loop for loop in (*around, choice, vector) if loop is not None]
    if len(loops) > 1:
        sch.reorder(*loops)
    if vector is not None:
        vectorize_loop(sch, vector, lanes)
    if choice is not None:
        sch.unroll(choice)


def _schedule_output(
    sch: Schedule, down: BlockRV, whole: BlockRV, out: BlockRV, stages: Stages, lanes: int, target: Target
) -> LoopRV:
    """The way back; gives the loop over blocks of tiles."""
    work = _work(sch, out)
    batch, filters, row, column = sch.get_loops(out)
    block, tiles, inner_row = sch.split(row, [None, stages.depth, stages.tile])
    outer, inner = sch.split(filters, [None, lanes])
    sch.reorder(batch, block, tiles, outer, inner_row, inner, column)
    blocks = sch.fuse(batch, block)
    sch.compute_at(whole, outer)
    sch.compute_at(down, outer)
    _store_across(sch, inner, column, lanes)
    _, line, place, vector = loops_by_axis(sch, whole)
    choice = None
    if place is not None:
        place, choice = sch.split(place, [None, stages.tile])
    _choices_inside(sch, [line, place], choice, vector, lanes)
    _, _, rows, places, columns, vector = loops_by_axis(sch, down)
    _choices_inside(sch, [places, columns], rows, vector, lanes)
    parallelize(sch, [blocks, tiles, outer], work, target)
    return blocks
