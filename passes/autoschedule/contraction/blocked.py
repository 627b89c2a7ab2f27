"""Blocks of k (the BLIS' loop around kc): what many tiles of sums read again stays in a cache.

A tile of sums is kept in registers for one block of k, and added after it to sums in memory (`rfactor`, its second stage at the tile).
Where all panels go through a block, the block's part of A is small: of a convolution, some channels of the image, padded there and then.
Where one panel goes through all blocks, a block's part of the panel is packed just before it is used.
Of weights that were packed before, where tiles are those of few registers, a block is what stays in the first-level cache.
Rows of A that are contiguous along k need no blocks: processors fetch them ahead, however long they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from math import prod

from xdsl.ir import SSAValue

from ....dialects import tir
from ....dialects.arith import Analyzer
from ....support.target import Target
from ...schedule import BlockRV, LoopRV, Schedule
from ...schedule.analysis.structure import buffers_written, consumers, producers
from ..block_shape import element_bytes, shape_of, static_extents
from ..loop_nests import block_of, own_loops, parallelize, partitioned, turns_of, vectorize_loop
from .epilogue import store_sums, store_tile, take_sums
from .match import Contraction
from .pack import lanes_innermost, pack_columns
from .sums import ENOUGH, few_panels, finish_sums, split_rows
from .tile import LINE, Tile

PAGE = 4096
"""Bytes between iterations of k from which on nothing fetches A ahead."""
SHARE_A, SHARE_B = 3 / 4, 1 / 2
"""The parts of the second-level cache that a block's part of A, and of a panel of B, may take."""
SHARE_NEAR = 1 / 2
"""The part of the first-level cache that a block's part of a panel may take; lines of A go through the rest."""
FEW_REGISTERS = 16
"""Registers for vectors whose tiles read about as much as the second-level cache delivers."""
FAR_PANEL = 4
"""How many times the second-level cache a packed panel is at least for its blocks to pay: smaller ones come from the third as fast."""
FEW_BLOCKS = 4
"""How many times such a depth a sum must have at least to be worth to be cut."""
MOST = 4
"""How many times that a part may take where sums would be too short."""
MIN_DEPTH, FAR_DEPTH = 96, 384
"""Products of a block for which adding its sums up in memory costs a tenth at most, in the third-level cache and beyond."""


@dataclass(frozen=True)
class Blocks:
    """The division of k into blocks."""

    axis: SSAValue
    turns: int
    """Turns of the axis in a block."""
    outermost: bool
    """Whether all panels go through a block; else one panel goes through all blocks."""


def choose_blocks(match: Contraction, tile: Tile, order: Sequence[SSAValue], target: Target) -> Blocks | None:
    """Returns how to block k, whose axes run in this order; None where one block holds all of it."""
    shape = match.shape
    axis = max(order, key=lambda v: shape.extent(v) or 1)
    extent = shape.extent(axis) or 1
    rest = match.k // extent
    sums = prod(e or 1 for v, e in zip(shape.axes, shape.extents, strict=True) if v in shape.spatial) * match.element
    least = MIN_DEPTH if sums <= target.l3 // 2 else FAR_DEPTH
    if match.k < FEW_BLOCKS * least:
        return None
    image, step = _image(match, axis)
    panel = match.k * tile.columns * match.element
    # An image that is made here stays near; one that is in memory is read once for each panel.
    again = match.n > tile.columns or isinstance(match.broadcast.buffer.owner, tir.AllocBufferOp)
    outermost = step >= PAGE and image > target.l2 and again
    if outermost:
        read, cache = image, target.l2 * SHARE_A
    elif rest == 1 and _rereads_panel(match, tile, panel, step, target):
        read, cache = panel, target.l1 * SHARE_NEAR
    elif panel > FAR_PANEL * target.l2 and not match.is_constant(match.panel) and match.uses > tile.rows:
        read, cache = panel, target.l2 * SHARE_B
    else:
        return None
    turns = _turns(extent, int(cache * extent) // read, -(-least // rest))
    return None if turns is None else Blocks(axis, turns, outermost)


def _rereads_panel(match: Contraction, tile: Tile, panel: int, step: int, target: Target) -> bool:
    """Returns whether a packed panel that the first-level cache does not hold is read again and again.

    So it is with tiles of few registers that take a line of A in each iteration of k: they read both from the second-level cache more often than
    adding blocks up costs. Taps of a window read lines of A again, which stay near by themselves.
    """
    again = match.uses >= FEW_BLOCKS * tile.rows and target.vector_registers <= FEW_REGISTERS
    return again and panel > target.l1 and step >= LINE and match.is_constant(match.panel)


def _turns(extent: int, most: int, least: int) -> int | None:
    """Returns the largest divisor of an extent up to a limit; the next one if sums would be too short."""
    parts = [t for t in range(1, min(MOST * most, extent - 1) + 1) if extent % t == 0]
    fitting = max((t for t in parts if t <= most), default=0)
    return fitting if fitting >= least else min((t for t in parts if t >= least), default=None)


def _image(match: Contraction, axis: SSAValue) -> tuple[int, int]:
    """Returns the bytes of A per image and group, and those between iterations of a reduced axis.

    0 where that is not known.
    """
    load = match.broadcast
    extents = static_extents(load.buffer)
    atom = Analyzer().expr(axis).atom
    if extents is None or atom is None:
        return 0, 0
    step, far = element_bytes(load.buffer), 0
    size = prod(extents) * step
    for index, extent in zip(reversed(load.indices), reversed(extents), strict=True):
        far += index.coefficient(atom) * step
        step *= extent
    own = [v for v in match.shape.spatial if v in load.axes and v in match.panel.axes] + images_of(match, axis)
    return size // prod(match.shape.extent(v) or 1 for v in own), far


def images_of(match: Contraction, axis: SSAValue) -> list[SSAValue]:
    """Returns the axes that each pick a part of A of their own, ahead of a reduced axis: those of a batch."""
    analyzer = Analyzer()
    atom = analyzer.expr(axis).atom
    ahead = list(takewhile(lambda index: atom is None or not index.coefficient(atom), match.broadcast.indices))
    alone = [v for v in match.shape.spatial if v not in match.panel.axes and v is not match.rows]
    return [v for v in alone if analyzer.expr(v) in ahead]


def schedule_in_blocks(
    sch: Schedule,
    block: BlockRV,
    match: Contraction,
    tile: Tile,
    packing: BlockRV | None,
    blocks: Blocks,
    order: Sequence[SSAValue],
    skipped: int,
    target: Target,
) -> None:
    """Blocks of k around panels around tiles, or panels around blocks around tiles."""
    shape = match.shape
    work = shape.points * 2
    constant = match.is_constant(match.panel)
    padding = padding_block(sch, block, match) if blocks.outermost else None
    epilogue = take_sums(sch, block, match)
    lanes_innermost(sch, block, match)
    first = shape.axes.index(blocks.axis)
    outermost, _ = sch.split(sch.get_loops(block)[first], [None, blocks.turns])
    partial = sch.rfactor(outermost, 0)
    sch.set_scope(partial, 0, "local")
    loops = sch.get_loops(partial)
    depth = loops.pop(first)
    by_axis: dict[SSAValue, LoopRV] = dict(zip(shape.axes, loops, strict=True))
    panel, column_vectors, column_lanes = sch.split(by_axis[match.columns], [None, tile.vectors, tile.lanes])
    row_outer, row_inner = split_rows(sch, by_axis, match, tile)
    shared = [by_axis[v] for v in shape.spatial if v in match.panel.axes and v is not match.columns]
    images = images_of(match, blocks.axis) if blocks.outermost else []
    alone = [by_axis[v] for v in shape.spatial if v not in match.panel.axes and v is not match.rows and v not in images]
    shared += [by_axis[v] for v in images]
    reducing = [by_axis[axis] for axis in order]
    panels, tiles = [*shared, panel], [*alone, *row_outer]
    around = [*shared, depth, panel] if blocks.outermost else [*panels, depth]
    sch.reorder(*around, *tiles, *reducing, *row_inner, column_vectors, column_lanes)
    if packing is not None:
        if not constant:
            sch.compute_at(packing, around[-1])
        pack_columns(sch, packing, match, tile, order)
    if padding is not None:
        sch.compute_at(padding, depth)
        planes = own_loops(sch, padding)
        vectorize_loop(sch, planes[-1], tile.lanes)
        parallelize(sch, planes[:1] if turns_of(sch, shared) < target.cores else [], work, target)
    sch.reverse_compute_at(block, [*around, *tiles][-1])
    store_tile(sch, block, target)
    if epilogue is not None and not blocks.outermost:
        sch.reverse_compute_at(epilogue, panel)
        store_sums(sch, epilogue, target)
    # Before sums start in a block of their own: what two blocks write is not shared out.
    if blocks.outermost and turns_of(sch, shared) >= target.cores:
        parallelize(sch, shared, work, target)
    else:
        mine = [panel] if blocks.outermost else panels
        enough = ENOUGH * target.cores
        few = few_panels(sch, mine, tiles, target) and turns_of(sch, alone, enough) >= enough
        parallelize(sch, alone if few else mine, work, target)
    zero = own_loops(sch, sch.decompose_reduction(block, depth))
    vectorize_loop(sch, zero[-1], tile.lanes)
    sch.vectorize(column_lanes)
    for loop in (*row_inner, column_vectors):
        sch.unroll(loop)
    below = len(reducing) + len(row_inner) + 2
    parts = [(partial, reducing[0])]
    if row_outer and match.m % tile.rows:
        _, parts = partitioned(sch, partial, row_outer[0], match.m // tile.rows, below)
    for part, depth in parts:
        finish_sums(sch, part, depth, below, skipped)


def padding_block(sch: Schedule, block: BlockRV, match: Contraction) -> BlockRV | None:
    """Returns the block that pads A, if nothing else reads what it makes."""
    op = block_of(sch, block)
    makers = [maker for maker in producers(op) if match.broadcast.buffer in buffers_written(maker)]
    if len(makers) != 1 or consumers(makers[0]) != [op]:
        return None
    shape = shape_of(makers[0])
    return None if shape is None or shape.reduction else sch.handle(makers[0])
