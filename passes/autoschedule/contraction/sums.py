"""Sums of a contraction: who makes which of them, and how they start."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import SSAValue

from ....support.target import Target
from ...schedule import BlockRV, LoopRV, Schedule
from ..loop_nests import own_loops, parallelize, turns_of
from .match import Contraction
from .tile import Tile, Turns

ENOUGH = 4
"""Lines for each thread that are enough to share them out evenly, whatever their rows."""


def split_rows(
    sch: Schedule, by_axis: Mapping[SSAValue, LoopRV], match: Contraction, tile: Tile
) -> tuple[list[LoopRV], list[LoopRV]]:
    """Returns the loops over tiles of rows, and over the rows of a tile: one each, or none without rows."""
    if match.rows is None:
        return [], []
    outer, inner = sch.split(by_axis[match.rows], [None, tile.rows])
    return [outer], [inner]


def few_panels(sch: Schedule, panels: list[LoopRV], tiles: list[LoopRV], target: Target) -> bool:
    """Returns whether there are too few panels for threads to share out evenly, and more tiles in each.

    An unknown number of tiles is taken for enough: a kernel of open sizes has few panels where its weights have few columns.
    """
    return Turns(target.cores).by_tiles(turns_of(sch, panels), turns_of(sch, tiles, ENOUGH * target.cores))


def share_out(sch: Schedule, panels: list[LoopRV], tiles: list[LoopRV], work: int, target: Target) -> None:
    """Threads share out column panels, or rows where there are too few of them."""
    parallelize(sch, tiles if few_panels(sch, panels, tiles, target) else panels, work, target)


def finish_sums(sch: Schedule, part: BlockRV, depth: LoopRV, below: int, skipped: int) -> None:
    """Initializes a tile of sums in registers ahead of `depth`, the outermost of its `below` loops.

    The `skipped` outermost of these leave out the padding.
    """
    # Branches hide the loops.
    around = sch.get_loops(part)[-below:][:skipped] if skipped else []
    init = own_loops(sch, sch.decompose_reduction(part, depth))
    sch.vectorize(init[-1])
    for loop in init[:-1]:
        sch.unroll(loop)
    for loop in reversed(around):
        sch.omit_padding(part, loop)
