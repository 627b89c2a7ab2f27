"""What the analyzer claims is true: on random expressions, ranges and points; and the patterns that matter, by example."""

from __future__ import annotations

import gc
import sys
import weakref
from itertools import product
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))
from evaluate import VARS, conditions, evaluate, expressions
from mirstack.dialects.arith import Analyzer, Expr
from mirstack.dialects.arith import expr as x
from mirstack.dialects.arith.bounds import EVERYTHING
from mirstack.dialects.arith.expr import eq, ge, logical_and, logical_not, logical_or, lt, ne, select
from mirstack.dialects.tir.types import I32
from xdsl.ir import Block, SSAValue

RANGES = st.tuples(*(st.tuples(st.integers(-5, 5), st.integers(1, 9)) for _ in VARS))


def test_exact_quotients_are_found():
    n, m, k = map(x.symbol, "nmk")
    assert x.exact_quotient(n * 3 * (m + 2), m + 2) == n * 3
    assert x.exact_quotient((n + 1) * (m * 2 - k), n + 1) == m * 2 - k
    assert x.exact_quotient(n * m + 1, m) is None
    assert x.exact_quotient(n * (m + 2) + n, m + 2) is None
    assert x.floormod(n * (m // 8), m // 8) == x.ZERO


@given(st.lists(st.integers(-3, 3), min_size=4, max_size=4), st.lists(st.integers(-3, 3), min_size=3, max_size=3))
def test_a_quotient_times_the_divisor_is_the_dividend(first, second):
    n, m = x.symbol("n"), x.symbol("m")
    quotient = n * m * first[0] + n * first[1] + m * first[2] + first[3]
    divisor = n * second[0] + m * second[1] + second[2]
    assume(divisor.terms)
    assert x.exact_quotient(quotient * divisor, divisor) == quotient


def points(ranges, data, count=12):
    for _ in range(count):
        yield {v.atom: data.draw(st.integers(low, low + size - 1)) for v, (low, size) in zip(VARS, ranges, strict=True)}


def bound_analyzer(ranges) -> Analyzer:
    analyzer = Analyzer()
    for v, (low, size) in zip(VARS, ranges, strict=True):
        analyzer.bind(v, low, size)
    return analyzer


def value_of(e: Expr, point) -> int:
    try:
        return evaluate(e, point)
    except ZeroDivisionError:
        assume(False)
        raise


@settings(max_examples=300, deadline=None)
@given(expressions(), RANGES, st.data())
def test_simplify_keeps_the_value_and_bounds_and_modular_sets_hold(e, ranges, data):
    analyzer = bound_analyzer(ranges)
    simple, bound, modular = analyzer.simplify(e), analyzer.const_int_bound(e), analyzer.modular_set(e)
    for point in points(ranges, data):
        value = value_of(e, point)
        assert value_of(simple, point) == value
        assert bound.min_value <= value <= bound.max_value
        assert value % modular.coeff == modular.base if modular.coeff else value == modular.base


@settings(max_examples=200, deadline=None)
@given(conditions(), conditions(), expressions(False), RANGES, st.data())
def test_what_is_proven_is_true(known, asked, e, ranges, data):
    analyzer = bound_analyzer(ranges)
    free = analyzer.simplify(e)
    with analyzer.constraint(known):
        proven, refuted = analyzer.can_prove(asked), analyzer.can_prove(logical_not(asked))
        simple, bound = analyzer.simplify(e), analyzer.const_int_bound(e)
    assert analyzer.simplify(e) == free  # the scope is closed
    for point in points(ranges, data):
        if not value_of(known, point):
            continue
        truth = value_of(asked, point)
        assert truth or not proven
        assert not truth or not refuted
        assert value_of(simple, point) == value_of(e, point)
        assert bound.min_value <= value_of(e, point) <= bound.max_value


@settings(max_examples=200, deadline=None)
@given(expressions(), expressions(), RANGES, st.data())
def test_equality_that_is_proven_holds(a, b, ranges, data):
    analyzer = bound_analyzer(ranges)
    equal = analyzer.can_prove_equal(a, b)
    for point in points(ranges, data, 5):
        assert not equal or value_of(a, point) == value_of(b, point)


@settings(max_examples=150, deadline=None)
@given(expressions(False))
def test_simplify_is_idempotent(e):
    analyzer = bound_analyzer([(0, 8), (0, 5), (-3, 7), (1, 6)])
    simple = analyzer.simplify(e)
    assert analyzer.simplify(simple) == simple


i, j, k, n, m = map(x.symbol, "ijknm")

SIMPLIFICATIONS = [
    ((i * 8 + j) // 8, i),
    ((i * 8 + j) % 8, j),
    ((i * 8 + j) // 16, i // 2),
    ((i * 8 + j) % 4, j % 4),
    (k // 4 * 4 + k % 4, k),
    (k - k // 4 * 4, k % 4),
    (k // 2 // 3, k // 6),
    ((k * 6 + 4) // 4, (k * 3 + 2) // 2),
    ((k % 12) % 4, k % 4),
    (x.minimum(i, x.as_expr(20)), i),
    (x.maximum(j, i + 8), i + 8),
    (x.truncdiv(i, x.as_expr(4)), i // 4),
    (select(lt(i, x.as_expr(16)), j, k), j),
    ((n * i + k * n) // n, i + k),
    ((n * k + n - 1) // n, k + (n - 1) // n),
    # A place in a plane, cut by two sizes: v // 21 * 21 + v // 7 % 3 * 7 + v % 7.
    ((i * 8 + j) // 21 * 21 + (i * 8 + j) // 7 % 3 * 7 + (i * 8 + j) % 7, i * 8 + j),
]


@pytest.mark.parametrize("before, after", SIMPLIFICATIONS, ids=[str(b) for b, _ in SIMPLIFICATIONS])
def test_simplify(before: Expr, after: Expr):
    analyzer = Analyzer()
    analyzer.bind(i, 0, 16)
    analyzer.bind(j, 0, 8)
    analyzer.constraint(ge(n, x.ONE))
    assert analyzer.simplify(before) == analyzer.simplify(after)
    assert str(analyzer.simplify(before)) == str(analyzer.simplify(after))


@pytest.mark.parametrize("c, d", list(product((2, 3, 4, 8), (2, 3, 4, 16))))
def test_quotients_and_remainders_of_one_value_are_compared_exactly(c: int, d: int):
    analyzer = Analyzer()
    assert analyzer.can_prove_equal(k % (c * d) // c, k // c % d)
    assert analyzer.can_prove_equal(k // c * c + k % c, k)
    assert analyzer.can_prove_equal((k * (c + 1)) % c, k % c)
    assert not analyzer.can_prove_equal(k // c, k // (c + 1))


def test_symbolic_ranges():
    analyzer = Analyzer()
    analyzer.constraint(logical_and(ge(n, x.ONE), ge(m, x.ONE)))
    analyzer.bind(i, 0, m)
    analyzer.bind(j, 0, n)
    assert analyzer.can_prove(lt(i * n + j, m * n))
    assert not analyzer.can_prove(lt(i * n + j + 1, m * n))
    assert analyzer.simplify((i * n + j) // n) == i
    assert analyzer.simplify((i * n + j) % n) == j


def test_minima_and_maxima_beside_their_operands():
    analyzer = Analyzer()
    i, j = map(x.symbol, "ij")
    analyzer.bind(i, 0, 8)
    analyzer.bind(j, 0, 8)
    least, most = x.minimum(i, (i + j) % 8), x.maximum(i, j)
    assert analyzer.can_prove(ge(i, least))
    assert analyzer.can_prove(ge((i + j) % 8, least))
    assert analyzer.can_prove(ge(most, j))
    assert analyzer.can_prove(ge(most, least))
    assert analyzer.can_prove(ge(least + 7, i))
    assert not analyzer.can_prove(ge(least, i))
    assert not analyzer.can_prove(ge(j, most))


def test_scopes_end():
    analyzer = Analyzer()
    with analyzer.bind(i, 0, 16), analyzer.bind(j, 0, 8):
        with analyzer.constraint(lt(i * 8 + j, x.as_expr(100))):
            assert analyzer.can_prove(lt(i, x.as_expr(13)))
            assert analyzer.const_int_bound(i * 8 + j).max_value == 99
        assert not analyzer.can_prove(lt(i, x.as_expr(13)))
        assert analyzer.const_int_bound(i * 8 + j) == (0, 127)
    assert analyzer.const_int_bound(i) == EVERYTHING


def test_equalities_are_used():
    analyzer = Analyzer()
    with analyzer.constraint(logical_and(eq(i, j + 1), eq(j % 4, x.ZERO))):
        assert analyzer.simplify(i - j) == x.ONE
        assert analyzer.modular_set(j) == (4, 0)
        assert analyzer.modular_set(analyzer.simplify(i)) == (4, 1)


def test_text():
    assert str(lt(i * 8 + j, n)) == "i * 8 + j < n"
    assert str(logical_or(eq(i, j), ge(k, x.ONE))) == "(i == j) or (1 <= k)"
    assert str(ne(i, x.as_expr(3))) == "i != 3"
    assert str((i + j) // 4 - n % 3) == "(i + j) // 4 - n % 3"


def test_expressions_of_thousands_of_terms_stay_small():
    total = x.ZERO
    for number in range(300):
        total = total + x.symbol(f"v{number}")
    assert len((total * total).terms) == 1


def test_places_in_three_dimensions_are_places_in_one() -> None:
    """Also where what is known of the parts makes one of the quotients look otherwise than the others."""
    analyzer = Analyzer()
    parts = [(448, 14), (64, 7), (16, 4), (1, 16)]
    total = x.ZERO
    for number, (factor, extent) in enumerate(parts):
        part = x.symbol(f"s{number}")
        analyzer.bind(part, x.ZERO, x.as_expr(extent))
        total = total + part.scaled(factor)
    rows = (total // 784).scaled(784) + (total // 28 % 28).scaled(28) + total % 28
    assert analyzer.simplify(rows) == total


def test_atoms_last_as_long_as_their_values() -> None:
    # The order of terms is that in which atoms were made: it must not depend on when memory was collected meanwhile.
    a, b = Block(arg_types=[I32, I32]).args

    def mention(value: SSAValue) -> int:
        part = Analyzer().expr(value) // 4 + Analyzer().expr(value)
        return max(atom.serial for atom, _ in part.terms)

    first = mention(a)
    gc.collect()
    second = mention(b)
    gc.collect()
    assert (mention(a), mention(b)) == (first, second)
    assert [atom.payload for atom, _ in (Analyzer().expr(b) + Analyzer().expr(a)).terms] == [a, b]


def test_atoms_go_with_their_values() -> None:
    (a,) = Block(arg_types=[I32]).args
    quotient = (Analyzer().expr(a) // 4).atom
    assert quotient is not None
    gone = weakref.ref(quotient)
    del a, quotient
    gc.collect()
    assert gone() is None
