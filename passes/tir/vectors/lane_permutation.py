"""Loads lanes that are close together in memory as whole vectors, and picks the lanes out of them.

    for j in T.vectorized(16):                 A_0: A[8 * i:8 * i + 8]
        B[16 * i + j] = A[(16 * i + j) // 2]  →  B[16 * i:16 * i + 16] = T.Shuffle([A_0], [0, 0, 1, 1, …, 7, 7])

Nothing is read outside of the first and the last element of the lanes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from ....dialects import tir
from ....dialects.arith import Analyzer, Expr
from ....dialects.arith.expr import Atom, Kind, free_vars, substitute

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Numbers: TypeAlias = "NDArray[np.int64]"

MOST_SPAN = 4
"""Lanes within so many times as many elements as lanes are loaded whole; others are gathered."""


@dataclass(frozen=True)
class LaneWindow:
    """The elements that lanes read: the first, the number from there to the last, the one of each lane."""

    start: Expr
    span: int
    picked: tuple[int, ...]

    @property
    def loads(self) -> tuple[tuple[int, ...], int, tuple[int, ...]]:
        """Returns the starts of the vectors that are loaded, their length, and the lanes picked from them.

        A vector has a power of two elements: two of them that overlap hold any number.
        """
        width = 1 << (self.span.bit_length() - 1)
        if width == self.span:
            return (0,), width, self.picked
        second = self.span - width
        return (0, second), width, tuple(p if p < width else width + p - second for p in self.picked)


def window_of(e: Expr, atom: Atom, low: Expr, lanes: int, analyzer: Analyzer) -> LaneWindow | None:
    """Returns the window that an index `e` covers while `atom` takes `lanes` values from `low` on.

    None when the distances between lanes are not known, or too large.
    """
    own = Expr(tuple(t for t in e.terms if atom in free_vars(Expr((t,), 0))), 0)
    if low.value is not None and set(free_vars(own)) == {atom}:
        return _window_of_numbers(e - own, own, atom, low.value, lanes)
    first = analyzer.simplify(substitute(e, {atom: low}))
    away = {0: 0}
    # The last lane first: mostly it tells.
    for lane in range(lanes - 1, 0, -1):
        distance = analyzer.simplify(substitute(e, {atom: low + lane}) - first).value
        if distance is None or abs(distance) >= MOST_SPAN * lanes:
            return None
        away[lane] = distance
    return _window(first, [away[lane] for lane in range(lanes)])


def _window_of_numbers(rest: Expr, own: Expr, atom: Atom, low: int, lanes: int) -> LaneWindow | None:
    """Returns the window of `rest` plus what depends on the lane alone."""
    import numpy as np

    values = evaluate(own, {atom: np.arange(low, low + lanes, dtype=np.int64)})
    if values is None:
        return None
    return _window(rest + int(values[0]), (values - values[0]).tolist())


def _window(first: Expr, away: list[int]) -> LaneWindow | None:
    least = min(away)
    span = max(away) - least + 1
    return LaneWindow(first + least, span, tuple(a - least for a in away)) if span <= MOST_SPAN * len(away) else None


def evaluate(e: Expr, values: Mapping[Atom, Numbers]) -> Numbers | None:
    """Evaluates an expression for many values of its variables at once.

    None where it has other variables, or is not integer arithmetic.
    """
    import numpy as np

    total = np.full(next(iter(values.values())).shape, e.const, np.int64)
    for atom, factor in e.terms:
        value = values.get(atom)
        if value is None:
            operands = [evaluate(operand, values) for operand in atom.operands]
            known = [operand for operand in operands if operand is not None]
            value = _applied(atom.kind, known) if known and len(known) == len(operands) else None
        if value is None:
            return None
        total = total + factor * value
    return total


def _applied(kind: Kind, operands: list[Numbers]) -> Numbers | None:
    import numpy as np

    match kind:
        case Kind.FLOORDIV | Kind.FLOORMOD if (operands[1] > 0).all():
            return operands[0] // operands[1] if kind is Kind.FLOORDIV else operands[0] % operands[1]
        case Kind.MIN:
            return np.minimum.reduce(operands)
        case Kind.MAX:
            return np.maximum.reduce(operands)
        case Kind.PRODUCT:
            return np.multiply.reduce(operands)
        case Kind.GE:
            return (operands[0] >= 0).astype(np.int64)
        case Kind.EQ:
            return (operands[0] == 0).astype(np.int64)
        case Kind.AND:
            return np.logical_and.reduce(operands).astype(np.int64)
        case Kind.SELECT:
            return np.where(operands[0] != 0, operands[1], operands[2])
        case _:
            return None


def flat_index(buffer: tir.BufferType, indices: tuple[Expr, ...]) -> Expr | None:
    """Returns the flat index of an element in a buffer of known extents."""
    shape = buffer.static_shape
    if shape is None:
        return None
    total = Expr((), 0)
    for extent, index in zip(shape, indices, strict=True):
        total = total.scaled(extent) + index
    return total
