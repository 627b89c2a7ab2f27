"""Contractions of few rows: tiles of inner products, vectors along the reduced axis, no packing.

Where both inputs are contiguous along k, or the smaller one once it is copied, and there are few rows of A, packing B costs more than it
saves; where there are few columns of B, a vector along them would be empty in good part. A tile of a few rows and columns keeps one sum
each; LLVM makes vectors of the k loop, for a reduction's terms may be taken in any order.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

from ....dialects import tir
from ....dialects.arith import Analyzer, Expr
from ....dialects.arith.expr import free_vars
from ....support.target import Target
from ...schedule import BlockRV, LoopRV, Schedule
from ...schedule.analysis.structure import buffers_read
from ..block_shape import Load, static_extents
from ..elementwise import schedule_elementwise
from ..loop_nests import block_of, cached, own_loops, parallelize, partitioned, turns_of
from .epilogue import take_out
from .gemm import MIN_ROWS
from .match import Contraction

MAX_ROWS = 48
"""Rows beyond which the panels of the packed scheme are used often enough."""
FILLED = 0.77
"""The part of the lanes of vectors along columns that must be in use, where inner products use all of theirs."""
FEW_LOADS = 0.6
"""Loads for a product at most for inner products to be as quick: more than tiles of a few registers need."""
MIN_DEPTH = 128
"""Terms below which adding the lanes up at the end costs too much."""
COLUMN_DEPTH = 32
"""The same for a single column, which nothing else has vectors for."""
PARTIAL = 1.25
"""By how much a tile must need fewer loads to be worth code for what it leaves over."""


def suits(match: Contraction, target: Target) -> bool:
    """Returns whether tiles of inner products are the better scheme."""
    shape = match.shape
    if len(shape.reduction) != 1:
        return False
    narrow = is_narrow(match, target) or leaves_lanes(match, target)
    far = matrix_bytes(match) > target.l2 and not match.widens
    if not narrow and match.is_constant(match.panel) and (match.m > 1 or not far):
        # Panels that are packed once cost nothing; of one row, what comes from memory is as fast in place, and needs no copy.
        return False
    single = all(a in (match.rows, match.columns) or shape.extent(a) == 1 for a in shape.spatial)
    if not narrow and match.m >= MIN_ROWS and choose_tile(match.m, match.n, 32) < (2, 2):
        # No divisors to tile by: packing pads instead.
        return False
    is_float = not isinstance(shape.stores[0].value.type, tir.types.IntegerType)
    least = COLUMN_DEPTH if match.n == 1 else MIN_DEPTH
    # Products of a batch are one after the other; where each has many columns, its panels are shared out as well.
    single = single or match.n == 1
    return (
        _lie_along(match, narrow=narrow)
        and single
        and is_float
        and (narrow or match.m <= MAX_ROWS)
        and match.k >= least
    )


def is_narrow(match: Contraction, target: Target) -> bool:
    """Returns whether there are so few columns that a vector of them is at least half empty."""
    return match.rows is not None and 2 * match.n <= target.lanes(match.element)


def leaves_lanes(match: Contraction, target: Target) -> bool:
    """Returns whether vectors of columns were mostly empty, and tiles of inner products need few loads.

    The tiles are those of what the second-level cache holds.
    """
    lanes = target.lanes(match.element)
    near = matrix_bytes(match) + match.m * match.k * match.element <= target.l2
    if match.rows is None or not near or match.n >= FILLED * (-(-match.n // lanes) * lanes):
        return False
    return _loads(choose_tile(match.m, match.n, target.vector_registers)) <= FEW_LOADS


def matrix_bytes(match: Contraction) -> int:
    """Bytes of the matrix B."""
    return match.k * match.n * match.element


def _runs_along(load: Load, match: Contraction) -> bool:
    """Returns whether the last index of a load is the reduced axis, and no other index uses it.

    Dimensions of size 1 do not count.
    """
    axis = Analyzer().expr(match.shape.reduction[0])
    extents = static_extents(load.buffer) or [0] * len(load.indices)
    indices = [index for index, extent in zip(load.indices, extents, strict=True) if extent != 1]
    return bool(indices) and indices[-1] == axis and all(i != axis for i in indices[:-1])


def _lie_along(match: Contraction, *, narrow: bool) -> bool:
    """Returns whether the terms of a sum are contiguous in both inputs, or once the smaller one is copied.

    That is A, or few columns of B, which is read in rows of columns otherwise.
    """
    smaller = match.broadcast if match.m < match.n else match.panel
    across = _across(match)
    if not across:
        return True
    return across == [smaller] and (narrow or smaller is match.broadcast) and _place(smaller, match) is not None


def _across(match: Contraction) -> list[Load]:
    """Returns the inputs in which the terms of a sum are far apart."""
    return [load for load in (match.broadcast, match.panel) if not _runs_along(load, match)]


def _place(load: Load, match: Contraction) -> int | None:
    """Returns the one index of a load that is the reduced axis; None where others use it, too."""
    axis = Analyzer().expr(match.shape.reduction[0])
    users = [k for k, index in enumerate(load.indices) if axis.atom in free_vars(index)]
    return users[0] if len(users) == 1 and load.indices[users[0]] == axis else None


def _lay_along(sch: Schedule, block: BlockRV, match: Contraction, target: Target) -> None:
    """Copies the input in which the terms of a sum are far apart, so that they are contiguous."""
    for load in _across(match):
        copy = cached(sch, block, buffers_read(block_of(sch, block)).index(load.buffer))
        sch.transform_layout(copy, ("write", 0), _last(_place(load, match) or 0))
        schedule_elementwise(sch, copy, target)


def _last(place: int) -> Callable[..., list[Expr]]:
    """Returns the layout in which a dimension is the last one."""

    def layout(*indices: Expr) -> list[Expr]:
        return [*indices[:place], *indices[place + 1 :], indices[place]]

    return layout


def choose_tile(rows: int, columns: int, registers: int) -> tuple[int, int]:
    """Returns the rows and columns of a tile with the fewest loads for a product.

    It divides the matrix, except its longer side where that is not a product of small numbers: what is left there is a tile of its own.
    """
    sums = registers // 2
    fitting = [(r, c) for r, c in product(range(1, 9), range(1, 9)) if r <= rows and c <= columns and r * c <= sums]
    whole = [(r, c) for r, c in fitting if rows % r == 0 and columns % c == 0]
    tall = [(r, c) for r, c in fitting if columns % c == 0 and rows > columns]
    # One row is limited by how fast the matrix is read, which several streams are no better at.
    wide = [(r, c) for r, c in fitting if rows % r == 0 and columns >= rows > 1]

    def order(tile: tuple[int, int]) -> tuple[float, int]:
        return _loads(tile), tile[0]

    best = min(whole, key=order)
    free = min(tall or wide or whole, key=order)
    return free if _loads(free) * PARTIAL < _loads(best) else best


def _loads(tile: tuple[int, int]) -> float:
    """Loads of a tile for a product."""
    return sum(tile) / (tile[0] * tile[1])


def schedule_dot(sch: Schedule, block: BlockRV, match: Contraction, target: Target) -> None:
    """Tiles rows and columns around the reduction, unrolled in it."""
    shape = match.shape
    work = shape.points * 2
    tile = choose_tile(match.m, match.n, target.vector_registers)
    _lay_along(sch, block, match, target)
    epilogue = take_out(sch, block)
    loops: list[LoopRV] = sch.get_loops(block)
    by_axis = dict(zip(shape.axes, loops, strict=True))
    column, column_inner = sch.split(by_axis[match.columns], [None, tile[1]])
    outer, inner = [column], [column_inner]
    if match.rows is not None:
        row, row_inner = sch.split(by_axis[match.rows], [None, tile[0]])
        inner.insert(0, row_inner)
        # What is read over and over again is the smaller one.
        outer = [row, column] if match.m > match.n else [column, row]
    others = [by_axis[a] for a in shape.spatial if a not in (match.rows, match.columns)]
    depth = by_axis[shape.reduction[0]]
    sch.reorder(*others, *outer, depth, *inner)
    sch.reverse_compute_at(epilogue, outer[-1])
    for loop in (*inner, *own_loops(sch, epilogue)):
        sch.unroll(loop)
    size, step = (match.m, tile[0]) if match.m > match.n else (match.n, tile[1])
    parts = [(block, depth)]
    if size % step:
        alone = [loop for loop in others if turns_of(sch, [loop]) > 1]
        parallelize(sch, alone, work, target)
        loops, parts = partitioned(sch, block, outer[0], size // step, 1 + len(inner))
        parallelize(sch, [] if alone else loops[:1], work, target)
    else:
        parallelize(sch, [*others, *outer], work, target)
    for part, below in parts:
        for loop in own_loops(sch, sch.decompose_reduction(part, below)):
            sch.unroll(loop)
