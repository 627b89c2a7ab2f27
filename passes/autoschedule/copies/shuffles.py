"""Blocks whose neighbours read nearby, but not in order: repeated, reversed, interleaved rows.

Vectors of a length at which the order repeats itself are read whole, and put in order by a shuffle
(`passes.tir.vectors.lane_permutation`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import lcm

from xdsl.ir import SSAValue

from ....dialects import tir
from ....dialects.arith import Analyzer, Expr, symbol
from ....dialects.arith.expr import Atom, Kind, as_expr, floordiv, floormod, free_vars, substitute
from ...tir.rewriting import ops_of
from ...tir.vectors.lane_permutation import flat_index, window_of
from ..block_shape import Shape, static_extents

MOST_VECTORS = 4
"""Registers that the lanes of one loop may take."""
MOST_AXES = 3
"""Axes that are fused for one vector."""
MOST_PARTS = 16
"""Vectors of a row, each of which may be written by itself."""


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
