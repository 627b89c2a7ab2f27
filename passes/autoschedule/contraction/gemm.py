"""The packed scheme: panels of B, tiles of sums in registers, the loops of Goto's algorithm in order."""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import Float64Type
from xdsl.ir import SSAValue

from ....dialects import tir
from ....support.target import Target
from ...schedule import BlockRV, LoopRV, Schedule
from ..loop_nests import attempt, block_of, parallelize, partitioned, turns_of
from .blocked import choose_blocks, schedule_in_blocks
from .epilogue import store_tile, take_out
from .match import Contraction
from .pack import (
    MANY_USES,
    lanes_innermost,
    lies_in_panels,
    own_copy,
    pack_columns,
    pack_rows,
    pad_columns,
    panels_together,
)
from .padded import padded_taps
from .sums import ENOUGH, few_panels, finish_sums, split_rows
from .tile import tile_for

VECTOR_TYPES = (tir.types.F32, Float64Type(), tir.types.I32)
"""What sums may be kept in: others have no vector multiply-add, or round after each."""
MIN_WORK = 1 << 10
"""Multiplications below which packing is not worth its code."""
LONE_WORK = 1 << 13
"""The same where there are too few rows for sums that do not wait for each other."""
MIN_ROWS = 4
"""Rows below which a panel is used so seldom that packing it costs more than it saves, where that is done at each call."""
NEAR = 4
"""The part of the second-level cache that a group of panels takes at most that each tile of rows goes through."""
SHORT = 8
"""Products of a sum up to which storing it takes longer than making it: results are then written row by row."""
MIN_COLUMNS = 4
"""Columns below which a vector is mostly empty."""


def pays(match: Contraction) -> bool:
    """Returns whether the packed scheme is worth it; otherwise the block is scheduled as any reduction."""
    least = MIN_WORK if match.uses >= MIN_ROWS else LONE_WORK
    if match.shape.stores[0].value.type not in VECTOR_TYPES or match.shape.points < least:
        return False
    return match.uses >= MIN_ROWS or (match.is_constant(match.panel) and match.n >= MIN_COLUMNS)


def schedule_contraction(sch: Schedule, block: BlockRV, match: Contraction, target: Target) -> None:
    """Packs, tiles and vectorizes a contraction, and fuses its consumers."""
    shape = match.shape
    work = shape.points * 2
    tile = tile_for(match, target)
    constant = match.is_constant(match.panel)
    direct = (
        not constant
        and own_copy(block_of(sch, block), match.panel.buffer) is None
        and lies_in_panels(match, tile, target)
    )
    skipped = padded_taps(match, tile)
    order = [*skipped, *(axis for axis in shape.reduction if axis not in skipped)]
    if match.is_constant(match.broadcast):
        pack_rows(sch, block, match, tile)
    packing = None if direct else pad_columns(sch, block, match, tile, target)
    if direct and (copy := own_copy(block_of(sch, block), match.panel.buffer)) is not None:
        attempt(sch, copy)
    blocks = choose_blocks(match, tile, order, target)
    if blocks is not None:
        schedule_in_blocks(sch, block, match, tile, packing, blocks, order, len(skipped), target)
        return
    epilogue = take_out(sch, block)
    lanes_innermost(sch, block, match)

    by_axis: dict[SSAValue, LoopRV] = dict(zip(shape.axes, sch.get_loops(block), strict=True))
    group = 1 if constant or direct else panels_together(match, tile, target)
    factors = [None, tile.vectors, tile.lanes] if group == 1 else [None, group, tile.vectors, tile.lanes]
    *panels, column_vectors, column_lanes = sch.split(by_axis[match.columns], factors)
    row_outer, row_inner = split_rows(sch, by_axis, match, tile)
    shared = [by_axis[v] for v in shape.spatial if v in match.panel.axes and v is not match.columns]
    alone = [by_axis[v] for v in shape.spatial if v not in match.panel.axes and v is not match.rows]
    reducing = [by_axis[axis] for axis in order]
    # Panels that were packed together and stay near are gone through for each tile of rows: what is stored is in longer runs.
    by_rows = (constant or direct) and bool(row_outer) and _is_written(match, target)
    near = group > 1 and group * tile.columns * match.k * match.element <= target.l2 // NEAR
    outer = [*panels[:1], *alone, *row_outer, *panels[1:]] if near else [*panels, *alone, *row_outer]
    if by_rows:
        outer = [*alone, *row_outer, *panels]
    sch.reorder(*shared, *outer, *reducing, *row_inner, column_vectors, column_lanes)
    if packing is not None:
        if not constant:
            sch.compute_at(packing, panels[0])
        pack_columns(sch, packing, match, tile, order)
    sch.reverse_compute_at(epilogue, outer[-1])
    store_tile(sch, epilogue, target)
    sch.vectorize(column_lanes)
    for loop in (*row_inner, column_vectors):
        sch.unroll(loop)
    # Rows that fill no tile run after the others, so that no iteration asks whether a row is there.
    below = len(reducing) + len(row_inner) + 2
    partial = bool(row_outer) and match.m % tile.rows != 0
    panels, tiles = [*shared, panels[0]], [*alone, *row_outer]
    # Packing that takes its time is shared out with the panels.
    shared_packing = not constant and not direct and match.uses < MANY_USES and turns_of(sch, panels) >= target.cores
    few = by_rows or (few_panels(sch, panels, tiles, target) and not shared_packing)
    # Where rows end in a part of a tile, lines of them are shared out rather than the tiles of each; those of all panels if need be.
    lines = alone
    enough = ENOUGH * target.cores
    if turns_of(sch, alone, enough) < enough and (constant or direct) and not by_rows:
        lines = [*panels, *alone]
    by_lines = few and partial and turns_of(sch, lines, enough) >= enough
    if by_lines:
        parallelize(sch, lines, work, target)
    elif not few or not partial:
        parallelize(sch, tiles if few else panels, work, target)
    parts = [(block, reducing[0])]
    if partial:
        loops, parts = partitioned(sch, block, row_outer[0], match.m // tile.rows, below)
        parallelize(sch, loops[:1] if few and not by_lines else [], work, target)
    for part, depth in parts:
        finish_sums(sch, part, depth, below, len(skipped))


def _is_written(match: Contraction, target: Target) -> bool:
    """Returns whether writing the result takes most of the time.

    So it does with sums of few products, of more than the second-level cache holds, and a B that stays near.
    """
    shape = match.shape
    elements = prod(shape.extent(axis) or 1 for axis in shape.spatial)
    return (
        match.k <= SHORT
        and elements * match.element > target.l2
        and match.k * match.n * match.element <= target.l1
        and match.m >= 2 * target.cores * MIN_ROWS
    )
