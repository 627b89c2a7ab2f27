"""Proofs by chains of known inequalities: from a < b and b < c, a < c."""

from __future__ import annotations

from ....dialects.arith import Analyzer, Expr, Kind
from ....dialects.arith.expr import conjuncts, logical_not

MAX_STEPS = 4
"""How many inequalities a proof may add up."""

MAX_TRIES = 200
"""How many sums a proof may try."""


def prove_transitively(analyzer: Analyzer, condition: Expr) -> bool:
    """Returns whether the condition is proven, by known inequalities that are added up where needed."""
    if analyzer.can_prove(condition):
        return True
    return all(_prove(analyzer, part) for part in conjuncts(condition))


def _prove(analyzer: Analyzer, condition: Expr) -> bool:
    atom = condition.atom
    if atom is not None and atom.kind is Kind.GE:
        return _at_least_zero(analyzer, atom.operands[0])
    if atom is not None and atom.kind is Kind.EQ:
        return _at_least_zero(analyzer, atom.operands[0]) and _at_least_zero(analyzer, -atom.operands[0])
    negated = logical_not(condition).atom
    if negated is not None and negated.kind is Kind.EQ:  # a != b: one of them is above the other
        e = negated.operands[0]
        return _at_least_zero(analyzer, e - 1) or _at_least_zero(analyzer, -e - 1)
    if negated is not None and negated.kind is Kind.GE:
        return _at_least_zero(analyzer, -negated.operands[0] - 1)
    return False


def _at_least_zero(analyzer: Analyzer, e: Expr) -> bool:
    """Returns whether e is a sum of known inequalities and of something that is never negative."""
    seen = {e}
    level = [e]
    for _ in range(MAX_STEPS):
        following: list[Expr] = []
        for current in level:
            if analyzer.const_int_bound(current).min_value >= 0:
                return True
            for atom, coefficient in current.terms:
                for fact in analyzer.known(atom).facts:
                    factor = fact.coefficient(atom)
                    # Only a fact that takes the term away brings it closer.
                    if factor * coefficient <= 0 or coefficient % factor:
                        continue
                    rest = current - fact.scaled(coefficient // factor)
                    if rest not in seen and len(seen) < MAX_TRIES:
                        seen.add(rest)
                        following.append(rest)
        level = following
    return any(analyzer.const_int_bound(current).min_value >= 0 for current in level)
