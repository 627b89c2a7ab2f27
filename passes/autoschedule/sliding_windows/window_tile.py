"""The register tile of windows that slide along rows.

It is the number of rows, vectors and lanes of sums that are kept while the window runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import prod

from ....support.target import Target
from ..block_shape import element_bytes
from .window_match import Window

MASKED = 1.3
"""How much more whole vectors cost that leave a part of one over."""
MAX_TAPS = 256
"""Terms that are written out, accumulators times taps; twice as many where there would be too few accumulators."""
BUSY = 8
"""Accumulators that keep the multipliers busy."""
LOAD = 0.25
"""The cost of loading a vector across cache lines beside the multiply-adds of an iteration, in multiply-adds."""
TURN = 2.0
"""The cost of an iteration of a loop that is not unrolled, likewise."""
STORE = 2.0
"""What setting a sum to zero and storing it cost, likewise."""
PIECES = 2.0
"""The factor by which storing lanes takes longer whose number is not a power of two, where stores have no masks."""
REMAINDER = 0.03
"""What a tile of another size for the rows that are left costs."""
MOST_ROWS = 16
"""Rows of a tile at most."""


@dataclass(frozen=True)
class WindowTile:
    """Accumulators: filters by vectors by lanes."""

    rows: int
    vectors: int
    lanes: int


def choose_tile(window: Window, target: Target) -> WindowTile:
    """Vectors that fill rows well, and as many accumulators as keep the multipliers busy with few loads."""
    return _turning_tile(window, target) if window.turning is not None else _written_tile(window, target)


def _turning_tile(window: Window, target: Target) -> WindowTile:
    """Returns the tile where the window's rows are unrolled, and its columns are a loop.

    A row of inputs meets as many rows of sums as the window is high, one after the other, with all filters of a column of
    the window: what is loaded stays in registers meanwhile, as many rows of inputs as of sums.
    """
    element = element_bytes(window.shape.stores[0].buffer)
    most = target.lanes(element)
    width = window.shape.extent(window.axis) or 1
    lines = 1 if window.rows is None else window.shape.extent(window.rows) or 1
    columns = window.shape.extent(window.turning) or 1 if window.turning is not None else 1
    taps = prod(window.shape.extent(v) or 1 for v in window.shape.reduction) // columns
    step = window.row_step

    def time(rows: int, vectors: int, lanes: int) -> float:
        """Returns the time of one tile, in multiply-adds of whole vectors."""
        part = _part(lanes, most, target)
        sums = max(rows * vectors, BUSY // 2) * taps * part
        loads = LOAD * (vectors * ((rows - 1) * step + taps) * 2 * part + taps)
        stores = STORE * (1 if lanes & (lanes - 1) == 0 or target.has_masked_stores else PIECES)
        return columns * (sums + loads + TURN) + stores * rows * vectors * part

    best: tuple[float, WindowTile] | None = None
    for vectors, rows, lanes in product(
        range(1, MOST_ROWS), range(1, MOST_ROWS + 1), _lane_counts(width, most, target)
    ):
        if rows > lines or rows * vectors * taps > max(2 * MAX_TAPS, taps):
            continue
        if 2 * rows * vectors + 1 > target.vector_registers and rows * vectors > 1:
            continue
        across, left = divmod(width, vectors * lanes)
        if left and vectors > 1:
            continue
        ends = 1.0 if left & (left - 1) == 0 and not target.has_masked_stores else MASKED
        tiles = across + (ends if left else 0)
        whole = lines // rows * time(rows, vectors, lanes)
        if lines % rows:
            whole = (1 + REMAINDER) * (whole + time(lines % rows, vectors, lanes))
        if best is None or whole * tiles < best[0]:
            best = whole * tiles, WindowTile(rows, vectors, lanes)
    return best[1] if best is not None else WindowTile(1, 1, min(width, most))


def _part(lanes: int, most: int, target: Target) -> float:
    """Returns the cost of an operation of so many lanes, as a part of one of a whole vector.

    Only the units of 64 bytes are halves that work apart.
    """
    return 0.5 if 2 * lanes <= most and target.vector_bytes == 64 else 1.0


def _lane_counts(width: int, most: int, target: Target) -> list[int]:
    """Lanes of vectors that a row may be cut into: parts of it, or whole registers."""
    counts = {n for n in range(max(most // 4, 1), most + 1) if width % n == 0}
    counts |= {n for n in (most, most // 2) if n <= width and (target.has_masks or n == most)}
    return sorted(counts, reverse=True) or [min(width, most)]


def _written_tile(window: Window, target: Target) -> WindowTile:
    """Returns the tile where all of the window is written out, as far as the code stays short."""
    lanes = target.lanes(element_bytes(window.shape.stores[0].buffer))
    width = window.shape.extent(window.axis) or 1
    rows = 1 if window.rows is None else window.shape.extent(window.rows) or 1
    taps = prod(window.shape.extent(v) or 1 for v in window.shape.reduction)

    def cost_of_lanes(count: int) -> float:
        if width % count:
            return -(-width // count) * MASKED
        whole = 1 if count & (count - 1) == 0 else 1.15
        return width // count * (1.1 * _part(count, lanes, target) if 2 * count <= lanes else 1) * whole

    count = min((n for n in range(1, lanes + 1) if width % n == 0 or n == lanes <= width), key=cost_of_lanes)
    load = 1.5 if window.stride == 1 else window.stride + 1.0
    best: tuple[float, WindowTile] | None = None
    for vectors, height in product(range(1, 9), range(1, 17)):
        # Vectors that are not whole are in a tile of their own.
        if (width // count) % vectors or rows % height:
            continue
        if height * vectors + vectors + 1 > target.vector_registers:
            continue
        if not window.shares_inputs and height * vectors * taps > max(MAX_TAPS, min(BUSY * taps, 2 * MAX_TAPS)):
            continue
        # An addition takes as long as four begin.
        loads = (
            vectors * load + height if window.shares_inputs else vectors * load * (height * window.stride + 2) / 3 + 1
        )
        cost = loads / (height * vectors) + 1.0 / min(height * vectors, BUSY)
        if best is None or cost < best[0]:
            best = cost, WindowTile(height, vectors, count)
    return best[1] if best is not None else WindowTile(1, 1, count)
