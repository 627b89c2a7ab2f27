"""Few rows times a matrix that lies in rows of columns (the BLAS' gemv, transposed): the matrix is read once, as it lies.

The sums of a block of columns stay in the first-level cache while k runs; each turn adds a row of the matrix, times an
element of A, to them.
"""

from __future__ import annotations

from .....support.target import Target
from ....schedule import BlockRV, LoopRV, Schedule
from ..elementwise import parallelize, vectorize_loop
from ..handles import own_loops
from .epilogue import store_tile, take_out
from .gemm import LONE_WORK, VECTOR_TYPES
from .match import Contraction

MAX_ROWS = 8
"""Rows up to which sums in the cache cost less than reading the matrix in narrow panels."""
MIN_COLUMNS = 64
"""Columns below which a row of the matrix is short."""
UNROLL = 8
"""Rows of the matrix that are added to the sums while these are in registers."""
SHARE = 2
"""The part of the first-level cache that a row of sums takes at most; the rows of the matrix pass through the rest."""


def suits(match: Contraction) -> bool:
    """Whether the matrix lies in rows of columns, is used for few rows of A, and is not packed before."""
    shape = match.shape
    single = all(a in (match.rows, match.columns) or shape.extent(a) == 1 for a in shape.spatial)
    return (
        single
        and len(shape.reduction) == 1
        and not match.is_constant(match.panel)
        and match.column_place == len(match.panel.indices) - 1
        and shape.stores[0].value.type in VECTOR_TYPES
        and shape.points >= LONE_WORK
        and match.m <= MAX_ROWS
        and match.n >= MIN_COLUMNS
        and (match.rows is None or shape.extent(match.rows) is not None)
    )


def schedule_gevm(sch: Schedule, block: BlockRV, match: Contraction, target: Target) -> None:
    """Blocks of columns around k around rows around vectors, each of which takes several turns of k at once."""
    shape = match.shape
    lanes = target.lanes(match.element)
    epilogue = take_out(sch, block)
    by_axis: dict[object, LoopRV] = dict(zip(shape.axes, sch.get_loops(block), strict=True))
    width = max(target.l1 // max(SHARE, match.m) // match.element // lanes, 1) * lanes
    column, inner = sch.split(by_axis[match.columns], [None, min(width, match.n)])
    rows = [] if match.rows is None else [by_axis[match.rows]]
    others = [by_axis[a] for a in shape.spatial if a not in (match.rows, match.columns)]
    depth, turns = sch.split(
        by_axis[shape.reduction[0]], [None, next(u for u in (UNROLL, 4, 2, 1) if match.k % u == 0)]
    )
    vectors, lane = sch.split(inner, [None, lanes])
    sch.reorder(*others, column, depth, vectors, *rows, turns, lane)
    sch.reverse_compute_at(epilogue, column)
    store_tile(sch, epilogue, target, unroll=False)
    sch.vectorize(lane)
    for loop in (*rows, turns):
        sch.unroll(loop)
    parallelize(sch, [*others, column], shape.points * 2, target)
    vectorize_loop(sch, own_loops(sch, sch.decompose_reduction(block, depth))[-1], lanes)
