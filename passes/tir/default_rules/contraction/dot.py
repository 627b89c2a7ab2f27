"""Contractions of few rows: tiles of inner products, vectors along the reduced axis, nothing packed.

Where both inputs lie contiguous along k and there are few rows of A, packing B costs more than it saves; where there are few
columns of B, a vector along them would be mostly empty. A tile of a few rows and columns keeps one sum each; LLVM makes vectors
of the k loop, for a reduction's terms may be taken in any order.
"""

from __future__ import annotations

from itertools import product

from .....dialects import tir
from .....dialects.tir.analysis import Analyzer
from .....support.target import Target
from ....schedule import BlockRV, LoopRV, Schedule
from ..elementwise import parallelize
from ..handles import own_loops, partitioned, turns_of
from ..shape import Load, static_extents
from .epilogue import take_out
from .gemm import MIN_ROWS
from .match import Contraction

MAX_ROWS = 48
"""Rows beyond which the panels of the packed scheme are used often enough."""
MIN_DEPTH = 128
"""Terms below which adding the lanes up at the end costs too much."""
COLUMN_DEPTH = 32
"""The same for a single column, which nothing else has vectors for."""
PARTIAL = 1.25
"""By how much a tile must need fewer loads to be worth code for what it leaves over."""


def suits(match: Contraction, target: Target) -> bool:
    """Whether tiles of inner products are the better scheme."""
    shape = match.shape
    if len(shape.reduction) != 1:
        return False
    narrow = is_narrow(match, target)
    if not narrow and match.is_constant(match.panel) and (match.m > 1 or matrix_bytes(match) <= target.l2):
        # Panels that are packed once cost nothing; of one row, what comes from memory does as fast as it lies, and needs no copy.
        return False
    contiguous = all(_runs_along(load, match) for load in (match.broadcast, match.panel))
    single = all(a in (match.rows, match.columns) or shape.extent(a) == 1 for a in shape.spatial)
    if not narrow and match.m >= MIN_ROWS and choose_tile(match.m, match.n, 32) < (2, 2):
        # No divisors to tile by: packing pads instead.
        return False
    is_float = not isinstance(shape.stores[0].value.type, tir.types.IntegerType)
    least = COLUMN_DEPTH if match.n == 1 else MIN_DEPTH
    # Products of a batch are one after the other; where each has many columns, its panels are shared out as well.
    single = single or match.n == 1
    return contiguous and single and is_float and (narrow or match.m <= MAX_ROWS) and match.k >= least


def is_narrow(match: Contraction, target: Target) -> bool:
    """Whether there are so few columns that a vector of them is half empty at least."""
    return match.rows is not None and 2 * match.n <= target.lanes(match.element)


def matrix_bytes(match: Contraction) -> int:
    """Bytes of the matrix B."""
    return match.k * match.n * match.element


def _runs_along(load: Load, match: Contraction) -> bool:
    """Whether the last index of a load is the reduced axis itself, and no other index uses it; dimensions of size 1 apart."""
    axis = Analyzer().expr(match.shape.reduction[0])
    extents = static_extents(load.buffer) or [0] * len(load.indices)
    indices = [index for index, extent in zip(load.indices, extents, strict=True) if extent != 1]
    return bool(indices) and indices[-1] == axis and all(i != axis for i in indices[:-1])


def choose_tile(rows: int, columns: int, registers: int) -> tuple[int, int]:
    """Rows and columns of a tile with the fewest loads for a product. It divides the matrix, but for its longer side where that is
    no product of small numbers: what is left there is a tile of its own."""
    sums = registers // 2
    fitting = [(r, c) for r, c in product(range(1, 9), range(1, 9)) if r <= rows and c <= columns and r * c <= sums]
    whole = [(r, c) for r, c in fitting if rows % r == 0 and columns % c == 0]
    tall = [(r, c) for r, c in fitting if columns % c == 0 and rows > columns]
    # One row is limited by how fast the matrix is read, which several streams are no better at.
    wide = [(r, c) for r, c in fitting if rows % r == 0 and columns >= rows > 1]

    def loads(tile: tuple[int, int]) -> tuple[float, int]:
        return sum(tile) / (tile[0] * tile[1]), tile[0]

    best = min(whole, key=loads)
    free = min(tall or wide or whole, key=loads)
    return free if loads(free)[0] * PARTIAL < loads(best)[0] else best


def schedule_dot(sch: Schedule, block: BlockRV, match: Contraction, target: Target) -> None:
    """Tiles rows and columns around the reduction, unrolled in it."""
    shape = match.shape
    work = shape.points * 2
    tile = choose_tile(match.m, match.n, target.vector_registers)
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
