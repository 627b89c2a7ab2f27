"""The register tile of a contraction: how many rows and vectors of sums are kept while k runs."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import prod

from ....support.target import Target
from ..block_shape import element_bytes, static_extents
from ..loop_nests import PARALLEL_WORK
from .match import Contraction

IN_FLIGHT = 6
"""Sums of a tile that keep the multipliers busy, where nothing is known of the target (`Target.independent_sums`)."""
LOAD = 0.2
"""The cost of loading a vector or a scalar beside the multiply-adds of an iteration, in multiply-adds."""
WINDOW = 0.003
"""The cost of each further sum of a tile in an iteration: fewer iterations fit what the processor looks ahead. (Measured on Zen 4.)"""
REMAINDER = 0.03
"""What a tile of another size for the rows that are left costs."""
FAR = 0.5
"""What loading a vector costs, in multiply-adds, when the panel that it is from does not stay in the second-level cache."""
WIDENED = 1.0
"""What bringing a vector of B to the type of the sums costs, in multiply-adds."""
STREAMED = 1.7
"""What a vector takes at least, likewise, that comes from the second-level cache, products being added by an instruction of their own."""
WAYS = 8
"""Lines of the first-level cache that may share a place: rows of A as far apart as the places are many share theirs."""
CONFLICT_ROWS = 6
"""Rows of a tile at most that share a place where more would than may; B needs the ways that are left."""
LINE = 64
"""Bytes of a cache line."""
MOST_ROWS = 16
"""Rows of a tile at most."""
LINE_MISSED = 8.0
"""What a line costs, in multiply-adds of vectors, that is fetched for each part of it that is stored."""


@dataclass(frozen=True)
class Turns:
    """The iterations of the loops around panels and around tiles that threads share out.

    Those that the tile makes do not count.
    """

    threads: int = 1
    panels: int = 1
    tiles: int = 1

    def by_tiles(self, panels: int, tiles: int) -> bool:
        """Returns whether there are too few panels to share out evenly, and more tiles in each.

        Both count with the loops around them.
        """
        return panels < min(2 * self.threads, tiles)

    def idle(self, panels: int, tiles: int) -> float:
        """Returns the ratio of the time of so many panels and tiles to that without waiting threads."""
        panels, tiles = self.panels * panels, self.tiles * tiles
        turns = tiles if self.by_tiles(panels, tiles) else panels
        return -(-turns // self.threads) * self.threads / turns


ALONE = Turns()
"""One thread."""


@dataclass(frozen=True)
class Tile:
    """A register tile: rows, vectors across, lanes of a vector."""

    rows: int
    vectors: int
    lanes: int

    @property
    def columns(self) -> int:
        """Columns of a tile, and of a panel of B."""
        return self.vectors * self.lanes


def tile_for(match: Contraction, target: Target) -> Tile:
    """Returns the tile of a contraction."""
    lanes = target.lanes(match.element)
    rows = rows_in_cache(match.row_bytes() or 0, target)
    depth = match.k * element_bytes(match.panel.buffer)
    turns, sums = turns_around(match, target), target.independent_sums
    missed = LINE_MISSED / match.k if _stores_conflict(match, target) else 0.0
    run = LINE // match.element
    widened = WIDENED if match.widens else 0.0
    return best_tile(
        match.m, match.n, lanes, target.vector_registers, rows, depth, target.l2, turns, sums, missed, run, widened
    )[1]


def _stores_conflict(match: Contraction, target: Target) -> bool:
    """Returns whether columns are stored so far apart that they share sets of the first-level cache.

    They then evict each other before the rows that are next complete their lines.
    """
    store = match.shape.stores[0]
    extents = static_extents(store.buffer)
    if extents is None or match.columns not in store.indices:
        return False
    apart = prod(extents[list(store.indices).index(match.columns) + 1 :])
    return apart > 1 and apart * match.element % (target.l1 // WAYS) == 0


def rows_in_cache(stride: int, target: Target) -> int:
    """Returns the number of rows of A, `stride` bytes from each other, that a tile may have at most.

    Where more of them share a set of the first-level cache than lines may, as those a multiple of its sets apart do, and those a few bytes
    further, B needs some of the ways.
    """
    places = max(target.l1 // WAYS // LINE, 1)
    shared: dict[int, set[int]] = {}
    fitting = MOST_ROWS
    for row in range(MOST_ROWS):
        line = row * stride // LINE
        taken = shared.setdefault(line % places, set())
        taken.add(line)
        if len(taken) > CONFLICT_ROWS:
            fitting = min(fitting, row)
    return fitting if max(map(len, shared.values())) > WAYS else MOST_ROWS


def turns_around(match: Contraction, target: Target) -> Turns:
    """Returns the work of a contraction that threads can share; one thread for one that is too small."""
    shape = match.shape
    if target.cores < 2 or 2 * shape.points < PARALLEL_WORK:
        return ALONE
    others = [axis for axis in shape.spatial if axis not in (match.rows, match.columns)]
    panels, tiles = (
        prod(shape.extent(axis) or 1 for axis in others if (axis in match.panel.axes) == shared)
        for shared in (True, False)
    )
    return Turns(target.cores, panels, tiles)


def choose_tile(
    m: int, n: int, lanes: int, registers: int, most_rows: int = 16, depth: int = 0, cache: int = 1 << 20
) -> Tile:
    """Returns the fastest tile for m rows and n columns, all sums in registers; see `best_tile`."""
    return best_tile(m, n, lanes, registers, most_rows, depth, cache)[1]


def best_tile(
    m: int,
    n: int,
    lanes: int,
    registers: int,
    most_rows: int = 16,
    depth: int = 0,
    cache: int = 1 << 20,
    turns: Turns = ALONE,
    in_flight: int = IN_FLIGHT,
    missed: float = 0.0,
    run: int = 1,
    widened: float = 0.0,
    *,
    even: bool = False,
    broadcast: float = LOAD,
    near: int | None = None,
    streamed: float = STREAMED,
) -> tuple[float, Tile]:
    """Returns the tile that takes the least time, and that time.

    The time is in multiply-adds of vectors for one iteration of k. `depth` is the bytes of k elements, `cache` those of the second-level cache: a
    panel that does not fit is read again for each row of tiles. Fewer sums than `in_flight` wait for each other. A column's results are in lines of
    `run` rows, each of which costs `missed` whenever some of it is stored. Each vector of B costs `widened` more than loading it. With `even` all
    tiles have as many rows. `broadcast` is what an element of A costs; of panels of more bytes than `near` a vector takes `streamed` at least.
    """
    best: tuple[float, Tile] | None = None
    for vectors, rows in product(range(1, 9), range(1, most_rows + 1)):
        # Sums, the vectors of B, and one for A (which x86 broadcasts as an operand).
        if rows * vectors + vectors + 1 > registers or rows > m or (even and m % rows):
            continue
        tile = Tile(rows, vectors, lanes)
        far = widened + (FAR if depth * tile.columns > cache // 2 else 0.0)
        least = streamed * vectors if near is not None and depth * tile.columns > near else 0.0
        time = m // rows * max(_turn(rows, vectors, far, in_flight, broadcast), least)
        if m % rows:
            time = (1 + REMAINDER) * (time + max(_turn(m % rows, vectors, far, in_flight, broadcast), least))
        time += missed * tile.columns * -(-m // rows) * (rows / run if rows % run == 0 else 1 + (rows - 1) // run)
        panels = -(-n // tile.columns)
        time *= panels * turns.idle(panels, m // rows)
        if best is None or time < best[0]:
            best = (time, tile)
    return best if best is not None else (float(m * n), Tile(1, 1, lanes))


def _turn(rows: int, vectors: int, far: float, in_flight: int, broadcast: float) -> float:
    """Returns the time of one iteration of the loop over k, in multiply-adds of vectors."""
    sums = rows * vectors
    return max(sums, in_flight) * (1 + WINDOW * sums) + broadcast * rows + (LOAD + far) * vectors
