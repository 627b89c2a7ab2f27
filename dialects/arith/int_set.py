"""Computes the interval of an expression's values while some of its variables run over intervals."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

from xdsl.ir import BlockArgument, OpResult

from ..tir.expr import VarOp
from . import expr as x
from .expr import Atom, Expr, Kind

if TYPE_CHECKING:
    from .analyzer import Analyzer

Ends: TypeAlias = tuple[Expr, Expr]
"""The least and the greatest value, both known."""

FROM_DTYPE = 1 << 24
"""From here on, a bound may be only that of a size's dtype, or of a part of one: of `j % (n // 2)` it is 2^30."""


@dataclass(frozen=True)
class IntervalSet:
    """The integers from `min` to `max`, both included; None where that side has no known end."""

    min: Expr | None
    max: Expr | None

    @staticmethod
    def point(e: Expr) -> IntervalSet:
        """Returns the set of one value."""
        return IntervalSet(e, e)

    @staticmethod
    def of_range(min: Expr, extent: Expr) -> IntervalSet:
        """Returns the set min, …, min + extent - 1."""
        return IntervalSet(min, min + extent - 1)

    @property
    def is_point(self) -> bool:
        """Returns True if the set is one value, known or symbolic."""
        return self.min is not None and self.min == self.max

    @property
    def ends(self) -> Ends | None:
        """Returns both ends; None where one is not known."""
        return None if self.min is None or self.max is None else (self.min, self.max)

    def __add__(self, other: IntervalSet) -> IntervalSet:
        return IntervalSet(
            None if self.min is None or other.min is None else self.min + other.min,
            None if self.max is None or other.max is None else self.max + other.max,
        )

    def scaled(self, factor: int) -> IntervalSet:
        """Returns the set of each value times a number."""
        low, high = (self.min, self.max) if factor > 0 else (self.max, self.min)
        return IntervalSet(None if low is None else low.scaled(factor), None if high is None else high.scaled(factor))

    def covers(self, other: IntervalSet, analyzer: Analyzer) -> bool:
        """Returns True if every value of `other` is proven to be in this set."""
        low = self.min is None or (other.min is not None and analyzer.can_prove_ge0(other.min - self.min))
        high = self.max is None or (other.max is not None and analyzer.can_prove_ge0(self.max - other.max))
        return low and high

    def intersect(self, other: IntervalSet, analyzer: Analyzer) -> IntervalSet:
        """Returns the intersection (its min is above its max if it is empty)."""
        lows = [e for e in (self.min, other.min) if e is not None]
        highs = [e for e in (self.max, other.max) if e is not None]
        return IntervalSet(
            analyzer.simplify(x.maximum(*lows)) if lows else None,
            analyzer.simplify(x.minimum(*highs)) if highs else None,
        )


EVERYTHING = IntervalSet(None, None)


class Domain(Protocol):
    """The sets of variables that run; all others stay symbolic."""

    def get(self, atom: Atom, /) -> IntervalSet | None:
        """Returns the set of a variable that runs."""
        ...

    def __contains__(self, atom: object, /) -> bool: ...


def eval_set(analyzer: Analyzer, e: Expr, domain: Domain) -> IntervalSet:
    """Returns the interval of `e` while variables run over `domain`'s intervals; others stay symbolic.

    Terms are taken as independent, so the result may be larger than the set of values, never smaller.
    """
    result = _of_sum(analyzer, analyzer.simplify(e), domain)
    return IntervalSet(
        None if result.min is None else analyzer.simplify(result.min),
        None if result.max is None else analyzer.simplify(result.max),
    )


def relax(e: Expr, inner: AbstractSet[Atom], analyzer: Analyzer) -> Ends | None:
    """Returns the ends of `e` while the `inner` variables take all values known to `analyzer`, or None.

    The ends are expressions of the other variables. Loads and calls inside the loops of inner variables are unknown.
    """
    return _of_sum(analyzer, e, _Loops(inner, analyzer)).ends


class _Loops:
    """The domain of loops whose ranges an analyzer knows, and of values computed inside of them."""

    def __init__(self, inner: AbstractSet[Atom], analyzer: Analyzer):
        self.inner = inner
        self.analyzer = analyzer

    def __contains__(self, atom: object) -> bool:
        return atom in self.inner or (isinstance(atom, Atom) and self._is_made_within(atom))

    def get(self, atom: Atom) -> IntervalSet | None:
        """Returns a loop variable's interval in terms of fixed variables, or the bounds of a value inside."""
        if atom.kind is not Kind.VAR or atom not in self:
            return None
        ends = self.analyzer.known(atom).ends
        if ends is not None and (ends[0].terms or ends[1].terms):
            return IntervalSet(_of_sum(self.analyzer, ends[0], self).min, _of_sum(self.analyzer, ends[1], self).max)
        bounds = _numeric(self.analyzer, atom)
        return IntervalSet(*ends) if bounds.ends is None and ends is not None else bounds

    def _is_made_within(self, atom: Atom) -> bool:
        """Returns True if an atom is the value of an op inside the loops, which may differ by iteration."""
        value = atom.payload
        if not isinstance(value, OpResult) or isinstance(value.op, VarOp):
            return False
        block = value.op.parent
        while block is not None:
            if any(isinstance(v.payload, BlockArgument) and v.payload.block is block for v in self.inner):
                return True
            block = block.parent_block()
        return False


def _numeric(analyzer: Analyzer, atom: Atom) -> IntervalSet:
    """Returns the constant bounds of an atom, if they say more than its dtype."""
    low, high = analyzer.const_int_bound(Expr(((atom, 1),), 0))
    return IntervalSet(x.as_expr(low), x.as_expr(high)) if low > -FROM_DTYPE and high < FROM_DTYPE else EVERYTHING


def _of_sum(analyzer: Analyzer, e: Expr, domain: Domain) -> IntervalSet:
    low: Expr | None = x.as_expr(e.const)
    high: Expr | None = low
    for atom, coefficient in e.terms:
        part = _of_atom(analyzer, atom, domain)
        least, most = (part.min, part.max) if coefficient > 0 else (part.max, part.min)
        low = None if low is None or least is None else low + least.scaled(coefficient)
        high = None if high is None or most is None else high + most.scaled(coefficient)
    return IntervalSet(low, high)


def _of_atom(analyzer: Analyzer, atom: Atom, domain: Domain) -> IntervalSet:
    known = domain.get(atom)
    if known is not None:
        return known
    whole = Expr(((atom, 1),), 0)
    if atom.kind is Kind.VAR or not any(a in domain for a in x.free_vars(whole)):
        return IntervalSet.point(whole)
    parts = [_of_sum(analyzer, e, domain) for e in atom.operands]
    result = EVERYTHING
    match atom.kind:
        case Kind.FLOORDIV | Kind.FLOORMOD | Kind.TRUNCDIV | Kind.TRUNCMOD:
            result = division(atom.kind, parts[0], parts[1], analyzer)
        case Kind.PRODUCT:
            result = parts[0]
            for part in parts[1:]:
                result = product(result, part, analyzer)
        case Kind.MIN | Kind.MAX:
            result = extremum(atom.kind, parts)
        case Kind.SELECT:
            result = union(parts[1:], analyzer)
        case _:
            pass
    ends = result.ends
    if ends is None:
        bounds = _numeric(analyzer, atom)
        return result if bounds.ends is None else bounds
    if atom.kind is Kind.FLOORMOD and not ends[1].terms:
        # The dividend may be smaller than the divisor.
        bound = analyzer.const_int_bound(whole)
        return IntervalSet(ends[0], x.as_expr(min(ends[1].const, bound.max_value)))
    return result


def union(sets: Sequence[IntervalSet], analyzer: Analyzer) -> IntervalSet:
    """Returns the least interval that holds all of the sets."""
    lows, highs = [s.min for s in sets if s.min is not None], [s.max for s in sets if s.max is not None]
    return IntervalSet(
        analyzer.simplify(x.minimum(*lows)) if len(lows) == len(sets) else None,
        analyzer.simplify(x.maximum(*highs)) if len(highs) == len(sets) else None,
    )


def join(a: Ends, b: Ends, analyzer: Analyzer) -> Ends:
    """Returns the least range that holds two."""
    ends = union([IntervalSet(*a), IntervalSet(*b)], analyzer).ends
    assert ends is not None
    return ends


def extremum(kind: Kind, parts: Sequence[IntervalSet]) -> IntervalSet:
    """Returns the set of the minimum (or maximum, by `kind`) of a value of each set."""
    lows, highs = [p.min for p in parts if p.min is not None], [p.max for p in parts if p.max is not None]
    if kind is Kind.MIN:
        return IntervalSet(x.minimum(*lows) if len(lows) == len(parts) else None, x.minimum(*highs) if highs else None)
    return IntervalSet(x.maximum(*lows) if lows else None, x.maximum(*highs) if len(highs) == len(parts) else None)


def division(kind: Kind, dividend: IntervalSet, divisor: IntervalSet, analyzer: Analyzer) -> IntervalSet:
    """Returns the set of a quotient or remainder, by `kind`, of a value of each set."""
    c = divisor.min
    if c is None or not divisor.is_point or not analyzer.can_prove_greater_equal(c, 1):
        return EVERYTHING
    if kind in (Kind.TRUNCDIV, Kind.TRUNCMOD) and (
        dividend.min is None or not analyzer.can_prove_greater_equal(dividend.min, 0)
    ):
        return EVERYTHING
    first = None if dividend.min is None else analyzer.simplify(x.floordiv(dividend.min, c))
    last = None if dividend.max is None else analyzer.simplify(x.floordiv(dividend.max, c))
    if kind in (Kind.FLOORDIV, Kind.TRUNCDIV):
        return IntervalSet(first, last)
    if first is not None and last is not None and analyzer.can_prove_equal(first, last):
        start = IntervalSet.point(-(first * c))
        return IntervalSet(
            *[end and analyzer.simplify(end) for end in ((dividend + start).min, (dividend + start).max)]
        )
    return IntervalSet(x.ZERO, c - 1)


def product(a: IntervalSet, b: IntervalSet, analyzer: Analyzer) -> IntervalSet:
    """Returns the set of a product of a value of each set, one of which holds one value only."""
    if not a.is_point:
        a, b = b, a
    factor = a.min
    if factor is None or not a.is_point:
        return EVERYTHING
    least, most = (None if e is None else e * factor for e in (b.min, b.max))
    if b.is_point or analyzer.can_prove_greater_equal(factor, 0):
        return IntervalSet(least, most)
    return IntervalSet(most, least) if analyzer.can_prove_less(factor, 1) else EVERYTHING
