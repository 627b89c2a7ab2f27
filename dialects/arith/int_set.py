"""Integer sets: the interval of values that an expression takes while some of its variables run over theirs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from . import expr as x
from .expr import Atom, Expr, Kind

if TYPE_CHECKING:
    from .analyzer import Analyzer


@dataclass(frozen=True)
class IntervalSet:
    """The integers from `min` to `max`, both included; None where that side has no known end."""

    min: Expr | None
    max: Expr | None

    @staticmethod
    def point(e: Expr) -> IntervalSet:
        """The set of one value."""
        return IntervalSet(e, e)

    @staticmethod
    def of_range(min: Expr, extent: Expr) -> IntervalSet:
        """min, …, min + extent - 1."""
        return IntervalSet(min, min + extent - 1)

    @property
    def is_point(self) -> bool:
        """Whether it is one value, whatever that is."""
        return self.min is not None and self.min == self.max

    def covers(self, other: IntervalSet, analyzer: Analyzer) -> bool:
        """Whether every value of `other` is in this set, for sure."""
        low = self.min is None or (other.min is not None and analyzer.can_prove_ge0(other.min - self.min))
        high = self.max is None or (other.max is not None and analyzer.can_prove_ge0(self.max - other.max))
        return low and high

    def union(self, other: IntervalSet, analyzer: Analyzer) -> IntervalSet:
        """The least interval that holds both."""
        low = None if self.min is None or other.min is None else analyzer.simplify(x.minimum(self.min, other.min))
        high = None if self.max is None or other.max is None else analyzer.simplify(x.maximum(self.max, other.max))
        return IntervalSet(low, high)

    def intersect(self, other: IntervalSet, analyzer: Analyzer) -> IntervalSet:
        """The values in both (its min is above its max when there is none)."""
        lows = [e for e in (self.min, other.min) if e is not None]
        highs = [e for e in (self.max, other.max) if e is not None]
        return IntervalSet(
            analyzer.simplify(x.maximum(*lows)) if lows else None,
            analyzer.simplify(x.minimum(*highs)) if highs else None,
        )


EVERYTHING = IntervalSet(None, None)


def eval_set(analyzer: Analyzer, e: Expr, domain: Mapping[Atom, IntervalSet]) -> IntervalSet:
    """The interval that holds `e` while each variable of `domain` runs over its interval; others stay symbolic.

    Terms are taken as independent, so the result may be larger than the set of values, never smaller.
    """
    result = _of_sum(analyzer, analyzer.simplify(e), domain)
    return IntervalSet(
        None if result.min is None else analyzer.simplify(result.min),
        None if result.max is None else analyzer.simplify(result.max),
    )


def eval_region(
    analyzer: Analyzer, ranges: Sequence[tuple[Expr, Expr]], domain: Mapping[Atom, IntervalSet]
) -> tuple[IntervalSet, ...]:
    """The box that holds the box of (min, extent) `ranges` while the variables of `domain` run."""
    box: list[IntervalSet] = []
    for low, extent in ranges:
        first, last = eval_set(analyzer, low, domain), eval_set(analyzer, low + extent - 1, domain)
        box.append(IntervalSet(first.min, last.max))
    return tuple(box)


def _of_sum(analyzer: Analyzer, e: Expr, domain: Mapping[Atom, IntervalSet]) -> IntervalSet:
    low: Expr | None = x.as_expr(e.const)
    high: Expr | None = low
    for atom, coefficient in e.terms:
        part = _of_atom(analyzer, atom, domain)
        least, most = (part.min, part.max) if coefficient > 0 else (part.max, part.min)
        low = None if low is None or least is None else low + least.scaled(coefficient)
        high = None if high is None or most is None else high + most.scaled(coefficient)
    return IntervalSet(low, high)


def _of_atom(analyzer: Analyzer, atom: Atom, domain: Mapping[Atom, IntervalSet]) -> IntervalSet:
    known = domain.get(atom)
    if known is not None:
        return known
    whole = Expr(((atom, 1),), 0)
    if not any(a in domain for a in x.free_vars(whole)):
        return IntervalSet.point(whole)
    parts = [_of_sum(analyzer, e, domain) for e in atom.operands]
    match atom.kind:
        case Kind.FLOORDIV | Kind.FLOORMOD | Kind.TRUNCDIV | Kind.TRUNCMOD:
            return _of_division(analyzer, atom, parts)
        case Kind.PRODUCT:
            return _of_product(analyzer, parts)
        case Kind.MIN:
            lows, highs = [p.min for p in parts], [p.max for p in parts if p.max is not None]
            least = None if None in lows else x.minimum(*(e for e in lows if e is not None))
            return IntervalSet(least, x.minimum(*highs) if highs else None)
        case Kind.MAX:
            lows, highs = [p.min for p in parts if p.min is not None], [p.max for p in parts]
            most = None if None in highs else x.maximum(*(e for e in highs if e is not None))
            return IntervalSet(x.maximum(*lows) if lows else None, most)
        case Kind.SELECT:
            return parts[1].union(parts[2], analyzer)
        case _:
            bound = analyzer.const_int_bound(whole)
            return (
                EVERYTHING
                if bound.is_everything
                else IntervalSet(x.as_expr(bound.min_value), x.as_expr(bound.max_value))
            )


def _of_division(analyzer: Analyzer, atom: Atom, parts: list[IntervalSet]) -> IntervalSet:
    dividend, divisor = parts
    c = divisor.min
    if c is None or not divisor.is_point or not analyzer.can_prove_greater_equal(c, 1):
        return EVERYTHING
    if atom.kind in (Kind.TRUNCDIV, Kind.TRUNCMOD) and (
        dividend.min is None or not analyzer.can_prove_greater_equal(dividend.min, 0)
    ):
        return EVERYTHING
    if atom.kind in (Kind.FLOORDIV, Kind.TRUNCDIV):
        return IntervalSet(
            None if dividend.min is None else x.floordiv(dividend.min, c),
            None if dividend.max is None else x.floordiv(dividend.max, c),
        )
    if dividend.min is not None and dividend.max is not None:
        turn = x.floordiv(dividend.min, c)
        if analyzer.can_prove_equal(turn, x.floordiv(dividend.max, c)):
            return IntervalSet(dividend.min - turn * c, dividend.max - turn * c)
    return IntervalSet(x.ZERO, c - 1)


def _of_product(analyzer: Analyzer, parts: list[IntervalSet]) -> IntervalSet:
    result = parts[0]
    for part in parts[1:]:
        if not result.is_point:
            result, part = part, result
        factor = result.min
        if factor is None or not result.is_point:
            return EVERYTHING
        least, most = (None if e is None else e * factor for e in (part.min, part.max))
        if analyzer.can_prove_greater_equal(factor, 0):
            result = IntervalSet(least, most)
        elif analyzer.can_prove_less(factor, 1):
            result = IntervalSet(most, least)
        else:
            return EVERYTHING
    return result
