"""Rows that are read in several pieces: reflected, repeated, reversed, or concatenated.

The innermost loop is split where the order of what is read changes: a piece that is read in order is vectors, as any copy. Rows
that are repeated as a whole get an axis for the repetitions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from xdsl.ir import SSAValue

from ....dialects import tir
from ....dialects.arith import Analyzer, Expr
from ....dialects.arith.expr import Kind, conjuncts, free_vars
from ....support.walk import all_ops
from ...tir.vectors.lane_permutation import Numbers, evaluate
from ..block_shape import Shape

MOST_PIECES = 4
MOST_PARTS = 16
"""Pieces where none is short, such as tensors that are laid side by side."""
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
