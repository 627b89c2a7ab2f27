"""Conditions of the analyzer: comparisons of expressions, connectives, and a choice by one.

A bool is an integer, 0 or 1. All orders are one atom, `operand >= 0`, both equalities are `operand == 0`, and a disjunction is
a negated conjunction, so that conditions of equal meaning meet in one form.
"""

from __future__ import annotations

from math import gcd

from .expr import FALSE, ONE, TRUE, ZERO, Expr, Kind, as_expr, make_atom, order_of


def ge(a: Expr, b: Expr) -> Expr:
    """a >= b, as 0 or 1."""
    e = a - b
    if not e.terms:
        return as_expr(int(e.const >= 0))
    common = gcd(*(k for _, k in e.terms))
    if common > 1:
        e = Expr(tuple((atom, k // common) for atom, k in e.terms), e.const // common)
    return make_atom(Kind.GE, (e,))


def le(a: Expr, b: Expr) -> Expr:
    """a <= b."""
    return ge(b, a)


def lt(a: Expr, b: Expr) -> Expr:
    """a < b."""
    return ge(b, a + 1)


def gt(a: Expr, b: Expr) -> Expr:
    """a > b."""
    return ge(a, b + 1)


def eq(a: Expr, b: Expr) -> Expr:
    """a == b, as 0 or 1."""
    e = a - b
    if not e.terms:
        return as_expr(int(e.const == 0))
    common = gcd(*(k for _, k in e.terms))
    if e.const % common:
        return FALSE
    if e.terms[0][1] < 0:
        common = -common
    if common != 1:
        e = Expr(tuple((atom, k // common) for atom, k in e.terms), e.const // common)
    return make_atom(Kind.EQ, (e,))


def ne(a: Expr, b: Expr) -> Expr:
    """a != b."""
    return logical_not(eq(a, b))


def logical_not(a: Expr) -> Expr:
    """The negation of a bool; that of an order is an order."""
    atom = a.atom
    if atom is not None and atom.kind is Kind.GE:
        return ge(-atom.operands[0] - 1, ZERO)
    return ONE - a


def logical_and(*values: Expr) -> Expr:
    """All of the bools."""
    parts: dict[Expr, None] = {}
    for value in values:
        for each in conjuncts(value):
            if each == FALSE:
                return FALSE
            if each != TRUE:
                parts[each] = None
    if any(logical_not(each) in parts for each in parts):
        return FALSE
    if not parts:
        return TRUE
    if len(parts) == 1:
        return next(iter(parts))
    return make_atom(Kind.AND, tuple(sorted(parts, key=order_of)))


def logical_or(*values: Expr) -> Expr:
    """Any of the bools: a negated conjunction of negations."""
    return logical_not(logical_and(*(logical_not(v) for v in values)))


def conjuncts(condition: Expr) -> tuple[Expr, ...]:
    """The conditions whose conjunction this is."""
    atom = condition.atom
    return atom.operands if atom is not None and atom.kind is Kind.AND else (condition,)


def select(condition: Expr, if_true: Expr, if_false: Expr, lazy: bool = False) -> Expr:
    """One of two values; `lazy` when the other must not be evaluated."""
    if not condition.terms:
        return if_true if condition.const else if_false
    if if_true == if_false:
        return if_true
    return make_atom(Kind.SELECT, (condition, if_true, if_false), lazy)
