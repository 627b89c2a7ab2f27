"""Analyzer expressions evaluated on numbers, and random ones: what the property tests compare with."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import strategies as st
from mirstack.dialects.arith import Atom, Expr, Kind
from mirstack.dialects.arith import expr as x
from mirstack.dialects.arith.expr import eq, ge, gt, le, logical_and, logical_not, logical_or, lt, ne, select


def evaluate(e: Expr, values: Mapping[Atom, int]) -> int:
    """The value of `e`; ZeroDivisionError where it divides by zero."""
    return e.const + sum(c * evaluate_atom(a, values) for a, c in e.terms)


def evaluate_atom(atom: Atom, values: Mapping[Atom, int]) -> int:
    if atom.kind is Kind.VAR:
        return values[atom]
    parts = [evaluate(e, values) for e in atom.operands]
    match atom.kind:
        case Kind.PRODUCT | Kind.CALL:
            total = 1
            for part in parts:
                total *= part
            return total
        case Kind.FLOORDIV:
            return parts[0] // parts[1]
        case Kind.FLOORMOD:
            return parts[0] % parts[1]
        case Kind.TRUNCDIV | Kind.TRUNCMOD:
            quotient = abs(parts[0]) // abs(parts[1])
            quotient = quotient if (parts[0] < 0) == (parts[1] < 0) else -quotient
            return quotient if atom.kind is Kind.TRUNCDIV else parts[0] - quotient * parts[1]
        case Kind.MIN:
            return min(parts)
        case Kind.MAX:
            return max(parts)
        case Kind.GE:
            return int(parts[0] >= 0)
        case Kind.EQ:
            return int(parts[0] == 0)
        case Kind.AND:
            return int(all(parts))
        case Kind.SELECT:
            return parts[1] if parts[0] else parts[2]


VARS = tuple(x.symbol(name) for name in "abcd")


def expressions(divisors: bool = True) -> st.SearchStrategy[Expr]:
    """Random expressions over VARS."""
    leaves = st.sampled_from(VARS) | st.integers(-9, 9).map(x.as_expr)
    positive = st.sampled_from([2, 3, 4, 6, 8, 12]).map(x.as_expr)

    def grow(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
        def binary(function):
            return st.builds(function, inner, inner)

        choices = [
            binary(lambda a, b: a + b),
            binary(lambda a, b: a - b),
            st.builds(lambda a, k: a * k, inner, st.integers(-8, 8)),
            binary(x.minimum),
            binary(x.maximum),
            st.builds(x.floordiv, inner, positive),
            st.builds(x.floormod, inner, positive),
            st.builds(x.truncdiv, inner, positive),
            st.builds(x.truncmod, inner, positive),
            st.builds(lambda p, q, a, b: select(ge(p, q), a, b), inner, inner, inner, inner),
        ]
        if divisors:
            choices += [binary(lambda a, b: a * b), binary(x.floordiv), binary(x.floormod)]
        return st.one_of(choices)

    return st.recursive(leaves, grow, max_leaves=10)


def conditions() -> st.SearchStrategy[Expr]:
    """Random bools over VARS."""
    compare = st.sampled_from([ge, gt, le, lt, eq, ne])
    simple = st.builds(lambda f, a, b: f(a, b), compare, expressions(False), expressions(False))
    return st.recursive(
        simple,
        lambda c: st.builds(logical_and, c, c) | st.builds(logical_or, c, c) | st.builds(logical_not, c),
        max_leaves=3,
    )
