"""Blocks whose neighbours read neighbours, not in order: repeated, reversed, reflected, enlarged rows.

Rows that are read in several pieces have the innermost loop split where the order of what is read changes: a piece that is read in
order is vectors, as any copy. Rows that are repeated as a whole get an axis for the repetitions. Other vectors, of a length at which
the order repeats itself, are read whole, and put in order by a shuffle (`passes.tir.vectors.lane_permutation`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import lcm
from typing import NamedTuple

from xdsl.ir import SSAValue

from ....dialects import tir
from ....dialects.arith import Analyzer, Expr, symbol
from ....dialects.arith.expr import Atom, Kind, as_expr, conjuncts, floordiv, floormod, free_vars, substitute
from ....support.target import Target
from ....support.walk import all_ops
from ...schedule import BlockRV, LoopRV, Schedule
from ...tir.rewriting import ops_of
from ...tir.vectors.lane_permutation import Numbers, evaluate, flat_index, window_of
from ..block_shape import Shape, element_bytes, lanes_of_block, static_extents
from ..loop_nests import parallelize


def schedule_disordered(sch: Schedule, block: BlockRV, shape: Shape, target: Target) -> bool:
    """Schedules a copy by how its rows are read; False where nothing is known of that."""
    return _is_copy(shape) and (
        schedule_shuffled(sch, block, shape, target) or schedule_pieces(sch, block, shape, target)
    )


def split_repeated_row(sch: Schedule, block: BlockRV, shape: Shape, target: Target) -> bool:
    """Splits the last axis of a copy that repeats a row by the row's length; False where it repeats none."""
    row = repeated_row(shape, target.lanes(element_bytes(shape.stores[0].buffer))) if _is_copy(shape) else 0
    if row:
        sch.transform_block_layout(block, lambda *i: (*i[:-1], i[-1] // row, i[-1] % row))
    return row > 0


def _is_copy(shape: Shape) -> bool:
    return not shape.reduction and len(shape.stores) == 1 and len(shape.spatial) > 0


def schedule_shuffled(sch: Schedule, block: BlockRV, shape: Shape, target: Target) -> bool:
    """Schedules a block whose vectors are permuted out of contiguous ones; False where they are not."""
    if len(shape.stores) != 1:
        return False
    shuffles = shuffles_of(shape, target.lanes(element_bytes(shape.stores[0].buffer)))
    if shuffles is not None:
        _schedule_shuffles(sch, block, shuffles, shape.points * shape.cost, target)
    return shuffles is not None


def _schedule_shuffles(sch: Schedule, block: BlockRV, shuffles: Shuffles, work: int, target: Target) -> None:
    """Vectorizes the innermost axes, whose elements are permuted out of contiguous vectors."""
    loops, parts = sch.get_loops(block), shuffles.parts
    outer: list[LoopRV] = loops[: len(loops) - shuffles.axes]
    inner: LoopRV = sch.fuse(*loops[-shuffles.axes :]) if shuffles.axes > 1 else loops[-1]
    pieces: list[LoopRV] = sch.loop_partition(inner, [turns for turns, _ in parts]) if len(parts) > 1 else [inner]
    heads: list[LoopRV] = []
    for piece, (turns, width) in zip(pieces, parts, strict=True):
        lane = piece
        if turns != width:
            head, lane = sch.split(piece, [None, width])
            heads.append(head)
        sch.vectorize(lane)
    # Loops in parts are shared among threads where there is nothing else.
    parallelize(sch, [*outer, *heads] if len(parts) == 1 else outer or heads[:1], work, target)


def schedule_pieces(sch: Schedule, block: BlockRV, shape: Shape, target: Target) -> bool:
    """Schedules each piece of the rows in a loop of its own; False where there are none.

    Pieces that read everything in order get vectors.
    """
    lanes = lanes_of_block(shape, target)
    pieces = pieces_of(shape, lanes if _masks(shape, target) else max(lanes // 4, 1))
    if not pieces:
        return False
    parts = [part for piece in pieces for part in _vectors_of(piece, lanes)]
    *outer, inner = sch.get_loops(block)
    loops: list[LoopRV] = sch.loop_partition(inner, [turns for turns, _ in parts])
    for loop, (turns, width) in zip(loops, parts, strict=True):
        if width > 1:
            sch.vectorize(loop if turns == width else sch.split(loop, [None, width])[1])
    parallelize(sch, outer, shape.points * shape.cost, target)
    return True


def _masks(shape: Shape, target: Target) -> bool:
    """Returns whether lanes can be loaded under masks: otherwise each lane is a branch.

    Short pieces pay then, too.
    """
    narrowest = min((element_bytes(load.buffer) for load in shape.loads), default=4)
    return target.has_masks and (target.has_masked_stores or narrowest >= 4)


def _vectors_of(piece: Piece, lanes: int) -> list[tuple[int, int]]:
    """Returns (trip count, vector width) of loops: whole vectors, and what is left as a shorter one."""
    if not piece.in_order:
        return [(piece.turns, 1)]
    rest = piece.turns % lanes
    return [(turns, min(turns, lanes)) for turns in (piece.turns - rest, rest) if turns]


# Pieces of rows


MOST_PIECES = 4
MOST_PARTS = 16
"""Pieces where none is short, such as adjacent tensors; vectors of a row that each may be written by itself."""
LONGEST_ROW = 1 << 16
"""Rows are looked at element by element."""


class Piece(NamedTuple):
    """Some iterations of the innermost loop, and whether everything is read in order in them, or stays."""

    turns: int
    in_order: bool


def pieces_of(shape: Shape, least: int) -> list[Piece]:
    """Returns the pieces of a row, most of which is read in order, `least` elements or more at a time.

    None where that is not so, or where it is one piece.
    """
    axis = shape.spatial[-1]
    turns = shape.extent(axis)
    if turns is None or not 2 * least <= turns <= LONGEST_ROW:
        return []
    places = _places(shape, axis, turns)
    choices = _choices(shape, axis, turns)
    if not places and not choices:
        return []
    pieces = _cut(places, choices, turns)
    ordered = sum(p.turns for p in pieces if p.in_order and p.turns >= least)
    most = MOST_PARTS if ordered == turns else MOST_PIECES
    return pieces if 1 < len(pieces) <= most and 2 * ordered >= turns else []


def _places(shape: Shape, axis: SSAValue, turns: int) -> list[Numbers]:
    """Returns the index of each load along its last dimension, at each iteration of the axis.

    Terms of other axes are left out; empty where not known.
    """
    import numpy as np

    atom = Analyzer().variable(axis)
    numbers = np.arange(turns, dtype=np.int64)
    found: list[Numbers] = []
    for load in shape.loads:
        if axis not in load.axes:
            continue
        if any(atom in free_vars(index) for index in load.indices[:-1]):
            return []
        own = Expr(tuple(t for t in load.indices[-1].terms if atom in free_vars(Expr((t,), 0))), 0)
        values = evaluate(own, {atom: numbers})
        if values is None:
            return []
        found.append(values)
    return found


def _choices(shape: Shape, axis: SSAValue, turns: int) -> list[Numbers]:
    """Returns whether each condition that the axis alone decides holds, at each of its iterations."""
    import numpy as np

    analyzer = Analyzer()
    atom = analyzer.variable(axis)
    numbers = np.arange(turns, dtype=np.int64)
    found: list[Numbers] = []
    for op in all_ops(shape.block):
        if type(op) is tir.IfThenElseOp:
            for part in conjuncts(analyzer.expr(op.condition)):
                values = evaluate(part, {atom: numbers}) if set(free_vars(part)) == {atom} else None
                if values is not None:
                    found.append(values)
    return found


def _cut(places: Sequence[Numbers], choices: Sequence[Numbers], turns: int) -> list[Piece]:
    """Returns the longest pieces, from the first iteration on, without a change of choice or step."""
    import numpy as np

    steps = np.stack([np.diff(p) for p in places]) if places else np.zeros((0, turns - 1), np.int64)
    changes = np.flatnonzero((steps[:, 1:] != steps[:, :-1]).any(axis=0)) + 1
    chosen = np.stack([np.diff(c) for c in choices]) if choices else np.zeros((0, turns - 1), np.int64)
    sides = np.flatnonzero(chosen.any(axis=0)) + 1
    pieces: list[Piece] = []
    start = 0
    while start < turns and len(pieces) <= MOST_PARTS:
        place = int(np.searchsorted(changes, start, side="right"))
        end = int(changes[place]) + 1 if place < len(changes) else turns
        place = int(np.searchsorted(sides, start, side="right"))
        end = min(end, int(sides[place]) if place < len(sides) else turns)
        step = steps[:, start] if start < end - 1 else np.zeros(len(places))
        pieces.append(Piece(end - start, bool(((step == 0) | (step == 1)).all())))
        start = end
    return pieces


def repeated_row(shape: Shape, lanes: int) -> int:
    """Returns the length of the row that the innermost axis repeats; 0 if there is none.

    All that is read by the axis must say so.
    """
    axis = shape.spatial[-1]
    turns = shape.extent(axis)
    atom = Analyzer().expr(axis).atom
    if (
        turns is None
        or atom is None
        or any(atom in free_vars(i) for s in shape.stores for i in map(Analyzer().expr, s.indices[:-1]))
    ):
        return 0
    sizes: set[int] = set()
    for load in shape.loads:
        for index in load.indices:
            for term, _ in index.terms:
                if term is atom or (
                    term.kind not in (Kind.FLOORMOD, Kind.FLOORDIV) and atom in free_vars(Expr(((term, 1),), 0))
                ):
                    return 0
                if term.kind in (Kind.FLOORMOD, Kind.FLOORDIV) and atom in free_vars(*term.operands):
                    size = term.operands[1].value
                    if term.operands[0].atom is not atom or size is None:
                        return 0
                    sizes.add(size)
    if len(sizes) != 1:
        return 0
    (size,) = sizes
    return size if lanes <= size < turns and turns % size == 0 else 0


# Shuffles


MOST_VECTORS = 4
"""Registers that the lanes of one loop may take."""
MOST_AXES = 3
"""Axes that are fused for one vector."""


@dataclass(frozen=True)
class Shuffles:
    """The number of innermost axes that are fused, their iterations in parts, and the lanes in each."""

    axes: int
    parts: tuple[tuple[int, int], ...]


def shuffles_of(shape: Shape, lanes: int) -> Shuffles | None:
    """Returns the vectors that read contiguous elements out of order; None where there are none."""
    if shape.reduction or len(shape.stores) != 1 or ops_of(shape.block, tir.IfThenElseOp):
        return None
    store = shape.stores[0]
    extents = static_extents(store.buffer)
    if extents is None or list(store.indices) != shape.spatial or list(extents) != list(shape.extents):
        return None
    points = 1
    for count, axis in enumerate(reversed(shape.spatial[-MOST_AXES:]), 1):
        extent = shape.extent(axis)
        assert extent is not None
        points *= extent
        if points < lanes:
            continue
        reads = _Reads(shape, count)
        width = _width(shape, shape.spatial[-count:], points, lanes)
        if width:
            rest = points % width
            whole = ((points - rest, width), *([(rest, rest)] if rest else []))
            if reads.all_together(whole):
                return Shuffles(count, whole)
            # The ends of a row may be read by another rule than what is between them.
            last = width + rest
            ends = ((width, width), (points - width - last, width), (last, last))
            if count == 1 and points > 3 * width and reads.all_together(ends):
                return Shuffles(1, ends)
        if count == 1:
            width = MOST_VECTORS * lanes
            starts = range(0, points, width)
            parts = tuple((min(width, points - start), min(width, points - start)) for start in starts)
            if 1 < len(parts) <= MOST_PARTS and reads.all_together(parts):
                return Shuffles(1, parts)
    return None


def _width(shape: Shape, axes: list[SSAValue], points: int, lanes: int) -> int:
    """Returns the length of vectors at which the order of reads may repeat itself; 0 if there is none."""
    most = MOST_VECTORS * lanes
    if points <= most:
        return points
    period = 1
    analyzer = Analyzer()
    chosen = {analyzer.expr(axis).atom for axis in axes}
    for load in shape.loads:
        for index in load.indices:
            for divisor in _divisors(index, chosen):
                period = lcm(period, divisor)
    if len(axes) > 1:
        period = lcm(period, shape.extent(axes[-1]) or 1)
    fitting = [w for w in range(lanes, most + 1, lanes) if w % period == 0 or period % w == 0]
    # Without a remainder, if there is such a length.
    return min(fitting, key=lambda w: (points % w != 0, w), default=0)


def _divisors(e: Expr, chosen: set[Atom | None]) -> list[int]:
    """Returns the numbers that axes are divided by within an expression."""
    found: list[int] = []
    for atom, _ in e.terms:
        if atom.kind in (Kind.FLOORDIV, Kind.FLOORMOD):
            divisor = atom.operands[1].value
            if divisor and not chosen.isdisjoint(free_vars(atom.operands[0])):
                found.append(divisor)
        for operand in atom.operands:
            found += _divisors(operand, chosen)
    return found


class _Reads:
    """The places that a block reads, by the number of an element along its innermost axes."""

    def __init__(self, shape: Shape, count: int):
        self.analyzer = Analyzer()
        self.outer, self.element = symbol("outer"), symbol("element")
        axes = shape.spatial[-count:]
        for axis in shape.axes:
            if axis not in axes:
                self.analyzer.bind(axis, 0, shape.extent(axis))
        values: dict[Atom, Expr] = {}
        rest = self.element
        for axis in reversed(axes):
            atom, extent = self.analyzer.expr(axis).atom, shape.extent(axis)
            assert atom is not None and extent is not None
            values[atom] = rest if axis is axes[0] else floormod(rest, as_expr(extent))
            rest = floordiv(rest, as_expr(extent))
        self.places: list[Expr | None] = []
        """Of the loads that depend on the element; None for one whose place in memory is not known."""
        for load in shape.loads:
            assert isinstance(load.buffer.type, tir.BufferType)
            place = flat_index(load.buffer.type, load.indices)
            if not any(axis in load.axes for axis in axes):
                continue
            self.places.append(None if place is None else substitute(place, values))

    def together(self, start: int, turns: int, width: int) -> bool:
        """Returns whether what each vector of so many elements reads is contiguous, from `start` on."""
        atom = self.element.atom
        assert atom is not None
        analyzer, low = self.analyzer, as_expr(start)
        if turns > width:
            low = self.outer.scaled(width) + start
            with analyzer.bind(self.outer, 0, turns // width):
                return self._are_windows(atom, low, width)
        return self._are_windows(atom, low, width)

    def all_together(self, parts: Sequence[tuple[int, int]]) -> bool:
        """Returns whether that holds in each of some consecutive parts."""
        start = 0
        for turns, width in parts:
            if not self.together(start, turns, width):
                return False
            start += turns
        return True

    def _are_windows(self, atom: Atom, low: Expr, width: int) -> bool:
        return bool(self.places) and all(
            place is not None and window_of(place, atom, low, width, self.analyzer) is not None for place in self.places
        )
