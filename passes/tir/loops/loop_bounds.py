"""Deduces for which values of a loop's variable a condition in its body surely holds, or surely fails."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from ....dialects.arith import Analyzer, Atom, Expr, Kind
from ....dialects.arith import expr as x
from ....dialects.arith.analyzer import linear_in
from ....dialects.arith.expr import logical_not
from ....dialects.arith.int_set import IntervalSet, relax


@dataclass(frozen=True)
class Decided:
    """The intervals of the variable where a condition is true, and where it is false.

    In both it is so whatever the inner variables are.
    """

    where_true: IntervalSet | None = None
    where_false: IntervalSet | None = None


NOWHERE = Decided()


def deduce(condition: Expr, variable: Atom, inner: AbstractSet[Atom], analyzer: Analyzer) -> Decided:
    """Returns the intervals of the variable where the condition is decided.

    `inner` are the variables of the body, whose ranges the analyzer knows. Comparisons that are linear in the variable are decided; the ends
    of the intervals are expressions of values outside the loop.
    """
    atom = condition.atom
    if atom is not None and atom.kind is Kind.GE:
        return _of_inequality(atom.operands[0], variable, inner, analyzer)
    if atom is not None and atom.kind is Kind.EQ:
        return _of_equality(atom.operands[0], variable, inner, analyzer)
    negated = logical_not(condition).atom
    if negated is not None and negated.kind in (Kind.GE, Kind.EQ):
        opposite = deduce(logical_not(condition), variable, inner, analyzer)
        return Decided(opposite.where_false, opposite.where_true)
    return NOWHERE


def _of_inequality(e: Expr, variable: Atom, inner: AbstractSet[Atom], analyzer: Analyzer) -> Decided:
    """Of c*v + r >= 0."""
    parts = linear_in(e, variable)
    if parts is None or parts[0].value is None:
        return NOWHERE
    factor, ends = parts[0].const, relax(parts[1], inner, analyzer)
    if ends is None:
        return NOWHERE
    low, high = ends
    by = x.as_expr(abs(factor))
    if factor > 0:
        first_true = -x.floordiv(low, by)  # v >= ceil(-low / c)
        last_false = x.floordiv(-high - 1, by)
        return Decided(
            IntervalSet(analyzer.simplify(first_true), None), IntervalSet(None, analyzer.simplify(last_false))
        )
    last_true = x.floordiv(low, by)
    first_false = x.floordiv(high, by) + 1
    return Decided(IntervalSet(None, analyzer.simplify(last_true)), IntervalSet(analyzer.simplify(first_false), None))


def _of_equality(e: Expr, variable: Atom, inner: AbstractSet[Atom], analyzer: Analyzer) -> Decided:
    """Of v == r, for an r that is the same in the whole body."""
    parts = linear_in(e, variable)
    if parts is None or parts[0].value not in (1, -1) or any(a in inner for a in x.free_vars(parts[1])):
        return NOWHERE
    return Decided(IntervalSet.point(analyzer.simplify(parts[1].scaled(-parts[0].const))))
