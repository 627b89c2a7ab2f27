"""Few rows times a matrix stored in rows of columns (the BLAS' gemv, transposed), read once, in place.

The sums of a block of columns stay in the first-level cache while k runs; each iteration adds a row of the matrix, times an
element of A, to them.
"""

from __future__ import annotations

from ....support.target import Target
from ...schedule import BlockRV, LoopRV, Schedule
from ..loop_nests import PARALLEL_WORK, own_loops, parallelize, partitioned, vectorize_loop
from .dot import matrix_bytes
from .epilogue import store_tile, take_out
from .gemm import LONE_WORK, VECTOR_TYPES
from .match import Contraction
from .pack import lanes_innermost

MAX_ROWS, FAR_ROWS = 8, 16
"""Rows up to which sums in the cache cost less than reading the matrix in narrow panels; the second where it exceeds the second-level
cache.
"""
MIN_COLUMNS = 64
"""Columns below which a row of the matrix is short."""
EVEN = 4
"""Blocks of columns for each thread that are shared out evenly, whatever their number."""
SHARE = 2
"""The part of the first-level cache that sums of more rows than `MAX_ROWS` take."""
TOGETHER = 12
"""Rows at most whose sums are in registers at once, beside a vector of the matrix and an element of A in all lanes."""
UNROLL = 8
"""Rows of the matrix that are added to the sums while these are in registers."""


def suits(match: Contraction, target: Target) -> bool:
    """Returns whether the matrix is in rows of columns, is used for few rows of A, and is not packed."""
    shape = match.shape
    single = all(a in (match.rows, match.columns) or shape.extent(a) == 1 for a in shape.spatial)
    return (
        single
        and len(shape.reduction) == 1
        and not match.is_constant(match.panel)
        and match.column_place == len(match.panel.indices) - 1
        and shape.stores[0].value.type in VECTOR_TYPES
        and shape.points >= LONE_WORK
        and match.m <= (MAX_ROWS if matrix_bytes(match) <= target.l2 else FAR_ROWS)
        and match.n >= MIN_COLUMNS
        and (match.rows is None or shape.extent(match.rows) is not None)
    )


def columns_of_block(match: Contraction, target: Target) -> int:
    """Returns the number of columns whose sums, of all rows, fill the first-level cache, or its share.

    So runs of the matrix are as long as may be; fewer columns where there are too few blocks to share out evenly.
    """
    lanes = target.lanes(match.element)
    share = target.l1 if match.m <= MAX_ROWS else target.l1 // SHARE
    width = max(share // match.m // match.element // lanes, 1) * lanes
    blocks = -(-match.n // width)
    if blocks < EVEN * target.cores and 2 * match.shape.points >= PARALLEL_WORK:
        blocks = -(-blocks // target.cores) * target.cores
        width = -(-match.n // blocks // lanes) * lanes
    return min(width, match.n)


def schedule_gevm(sch: Schedule, block: BlockRV, match: Contraction, target: Target) -> None:
    """Orders blocks of columns around k around rows around vectors, k unrolled by several iterations."""
    shape = match.shape
    lanes = target.lanes(match.element)
    epilogue = take_out(sch, block)
    lanes_innermost(sch, block, match)
    by_axis: dict[object, LoopRV] = dict(zip(shape.axes, sch.get_loops(block), strict=True))
    column, inner = sch.split(by_axis[match.columns], [None, columns_of_block(match, target)])
    rows = [] if match.rows is None else [by_axis[match.rows]]
    others = [by_axis[a] for a in shape.spatial if a not in (match.rows, match.columns)]
    # Another number of rows leaves some for an iteration of their own.
    step = next((u for u in (UNROLL, UNROLL // 2) if match.k % u == 0), min(UNROLL, match.k))
    depth, turns = sch.split(by_axis[shape.reduction[0]], [None, step])
    vectors, lane = sch.split(inner, [None, lanes])
    # Where registers hold the sums of all rows, each row of the matrix is loaded once for all of them, in code so close together that LLVM
    # sees that it is the same; its own sums are kept over all iterations otherwise.
    near = [turns, *rows] if match.m <= TOGETHER else [*rows, turns]
    sch.reorder(*others, column, depth, vectors, *near, lane)
    sch.reverse_compute_at(epilogue, column)
    store_tile(sch, epilogue, target, unroll=False)
    sch.vectorize(lane)
    for loop in (*rows, turns):
        sch.unroll(loop)
    parallelize(sch, [*others, column], shape.points * 2, target)
    vectorize_loop(sch, own_loops(sch, sch.decompose_reduction(block, depth))[-1], lanes)
    if match.k % step:
        partitioned(sch, block, depth, match.k // step, len(rows) + 4)
