"""`mirstack.arith` deduces bounds, solves linear systems and divides iteration maps as TVM does."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping

import mirstack
import pytest
from mirstack import arith, ir, te, tir
from mirstack.api.ir.structural import structural_equal

a, b, c, d = (te.var(name) for name in "abcd")
x, y, z = (te.var(name) for name in "xyz")
SETS = {b: arith.IntervalSet(2, 3), c: arith.IntervalSet(10, 15), d: arith.IntervalSet(-3, -1)}
Range = ir.Range


def number(value: int) -> tir.IntImm:
    return tir.IntImm("int32", value)


@pytest.mark.parametrize(
    ("cond", "relaxed", "low", "high"),
    [
        ((-b) * a + c - d >= 0, "", None, te.floordiv(d - c, -b)),
        (d * a + c - d >= 0, "", None, te.floordiv(d - c, d)),
        (a * 4 + b < c, "", None, te.floordiv(c - 1 - b, 4)),
        ((-b) + a * c - d >= 0, "bd", te.floordiv(2, c) + 1, None),
        (a == b, "", b, b),
        ((a - c) == (b + d), "", b + d + c, b + d + c),
        (5 * a == -10, "", -2, -2),
        (b - a > 3, "", None, b - 4),
        (b * 3 + te.floordiv(a, 8) < 63, "b", None, 431),
        (b * 3 + te.floordiv(a, 8) >= 63, "b", 456, None),
        (te.floordiv(a, -8) > 3, "", None, -32),
        (te.floordiv(a, -8) <= 3, "", -31, None),
    ],
)
def test_deduce_bound(cond: tir.PrimExpr, relaxed: str, low: object, high: object) -> None:
    found = arith.deduce_bound(a, cond, SETS, {v: values for v, values in SETS.items() if v.name in relaxed})
    for end, expected, unknown in ((found.min_value, low, "neg_inf"), (found.max_value, high, "pos_inf")):
        if expected is None:
            assert str(end) == unknown
        else:
            assert arith.Analyzer().can_prove_equal(end, te.convert(expected)), found


@pytest.mark.parametrize(
    "cond",
    [
        te.max(5, a * 4) < 0,
        4 * a == b,
        b * a == b,
        a + b,
        a * 2 - a > b,
        te.floormod(a, 16) < 10,
        te.floordiv(a, 8) == 3,
        te.floordiv(8, a) >= 2,
        te.var("unknown") * a < 3,
    ],
)
def test_conditions_that_bound_nothing(cond: tir.PrimExpr) -> None:
    found = arith.deduce_bound(a, cond, SETS, {})
    assert found.is_nothing() and str(found.min_value) == "pos_inf" and str(found.max_value) == "neg_inf"


def test_an_equation_with_relaxed_variables_bounds_nothing() -> None:
    assert arith.deduce_bound(a, a == b, SETS, SETS).is_nothing()
    assert arith.deduce_bound(a, a < b, {}, {b: arith.IntervalSet(arith.int_set.neg_inf(), 4)}).is_nothing()


def test_equations_with_one_solution() -> None:
    found = arith.solve_linear_equations([tir.EQ(x + y, 20), tir.EQ(x - y, 10)], [x, y])
    assert not found.dst.variables and not found.dst.relations
    assert [str(found.src_to_dst[v]) for v in (x, y)] == ["15", "5"]


def test_equations_with_many_solutions() -> None:
    found = arith.solve_linear_equations([tir.EQ(x + y + z, 15), tir.EQ(x + y, 10)], [x, y, z])
    [free] = found.dst.variables
    assert free.name == "n0"
    for variable, value in ((x, free + 10), (y, -free), (z, number(5))):
        assert structural_equal(found.src_to_dst[variable], value)
    assert not found.dst.ranges


def test_ranges_of_unknowns_follow() -> None:
    ranges = {x: Range.from_min_extent(-5, 10), y: Range.from_min_extent(0, 10)}
    found = arith.solve_linear_equations(arith.IntConstraints([x, y], ranges, [tir.EQ(x + y, 0)]))
    [free] = found.dst.variables
    assert structural_equal(found.dst.ranges[free].min, number(-9))
    assert structural_equal(found.dst.ranges[free].extent, number(10))
    assert structural_equal(found.dst.relations, [tir.LE(number(-5), free)])


@pytest.mark.parametrize(
    "equations",
    [[tir.EQ(x + y, 0), tir.EQ(x - y, 0), tir.EQ(x, 5)], [tir.EQ(2 * x, 5)], [tir.EQ(x, 1), te.all(x == 1, x > 1)]],
)
def test_equations_without_a_solution(equations: list[tir.PrimExpr]) -> None:
    found = arith.solve_linear_equations(equations, [x, y])
    assert not found.dst.variables and not found.src_to_dst
    assert structural_equal(found.dst.relations, [te.const(False)])


def test_equations_keep_their_solutions() -> None:
    """All solutions of a system within ranges are those of the solved one."""
    ranges = {v: Range(-3, 4) for v in (x, y, z)}
    system = [tir.EQ(2 * x + 3 * y - z, 1), tir.EQ(x + y * z, y), x < y]
    found = arith.solve_linear_equations(system, [x, y, z], ranges)

    def fulfilled(relations: list[tir.PrimExpr], values: Mapping[tir.Var, object]) -> bool:
        analyzer = arith.Analyzer()
        return all(analyzer.can_prove(tir.stmt_functor.substitute(each, values)) for each in relations)

    for point in itertools.product(range(-3, 4), repeat=3):
        old = {v: number(value) for v, value in zip((x, y, z), point, strict=True)}
        if point[2] != 2 * point[0] + 3 * point[1] - 1:
            assert not fulfilled(system, old)
            continue
        new = {v: tir.stmt_functor.substitute(found.dst_to_src[v], old) for v in found.dst.variables}
        simplify = arith.Analyzer().simplify
        for v in (x, y, z):
            assert structural_equal(simplify(tir.stmt_functor.substitute(found.src_to_dst[v], new)), old[v])
        assert fulfilled(system, old) == fulfilled(found.dst.relations, new)


def test_inequalities() -> None:
    ranges = {x: Range(-100, 100), y: Range(0, 10)}
    problem = [tir.LE(x + y, 20), tir.GE(x - y, 10)]
    found = arith.solve_linear_inequalities(problem, [x, y], ranges)
    assert isinstance(found, arith.IntConstraints)
    assert structural_equal(list(found.ranges[x]), [y + 10, number(11)])
    assert structural_equal(list(found.ranges[y]), [number(0), number(6)])
    moved = arith.solve_linear_inequalities(problem, [x, y], ranges, deskew_range=True)
    assert isinstance(moved, arith.IntConstraintsTransform)
    x_new, y_new = moved.dst.variables
    assert structural_equal(moved.dst.relations, [(y_new * 2) + x_new <= 10])
    assert structural_equal(moved.src_to_dst[x], x_new + (y_new + 10))
    assert structural_equal(moved.dst_to_src[x_new], x - y - 10)
    assert structural_equal(list(moved.dst.ranges[x_new]), [number(0), number(11)])


def test_inequalities_with_one_solution_or_none() -> None:
    problem = [tir.GE(x + y, 10), tir.GE(x - y, 2), tir.LE(x, 6)]
    moved = arith.solve_linear_inequalities(problem, [x, y], deskew_range=True)
    assert isinstance(moved, arith.IntConstraintsTransform)
    assert not moved.dst.variables and [str(moved.src_to_dst[v]) for v in (x, y)] == ["6", "4"]
    problem = [-x - 4 <= -5 * x + 2, x * 4 + 5 <= x * 5]
    empty = arith.solve_linear_inequalities(problem, [x], {x: Range(-20, 21)})
    assert isinstance(empty, arith.IntConstraints)
    assert not empty.variables and structural_equal(empty.relations, [te.const(False)])
    nothing = arith.solve_linear_inequalities(problem, [x], {x: Range(-20, 21)}, deskew_range=True)
    assert isinstance(nothing, arith.IntConstraintsTransform) and not nothing.src_to_dst


def test_what_is_not_linear_remains() -> None:
    problem = [tir.LE(x, 6), tir.GE(x, 6), tir.GE(x - z * y, 0), tir.LE(x - z * y, 0), te.any(x > 3, y > 2)]
    found = arith.solve_linear_inequalities(problem, [x, y, z])
    assert isinstance(found, arith.IntConstraints)
    assert [str(e) for e in found.relations] == ["x == y * z", "y * z - 6 <= 0", "6 - y * z <= 0"]
    free = arith.solve_linear_inequalities([x * 2 <= y], [x, y], deskew_range=True)
    assert isinstance(free, arith.IntConstraintsTransform) and free.dst.variables == [x, y]


def test_bounds_of_a_variable() -> None:
    known = arith.IntGroupBounds.from_range(Range(2, 9))
    assert [str(e) for e in (known.coef, *known.lower, *known.upper)] == ["1", "2", "8"]
    assert [str(e) for e in arith.IntGroupBounds.from_range(Range(2, 3)).equal] == ["2"]
    best = arith.IntGroupBounds(2, [x], [], [x + y]).find_best_range({y: Range(0, 5)})
    assert best is not None and str(best.min) == "(x + 1) // 2"
    assert arith.IntGroupBounds(1, [x], [], []).find_best_range() is None
    with pytest.raises(mirstack.MirError, match="the factor of a bounded variable is a number above 0, not x"):
        arith.IntGroupBounds(x, [], [], []).find_best_range()


def parts(index: object, inner: list[tir.Var], predicate: object = True, level: str = "surjective") -> list[str]:
    domain = {x: Range(0, 3), y: Range(0, 4), z: Range(0, 5)}
    found = arith.subspace_divide([index], domain, inner, predicate, level)  # type: ignore[list-item, arg-type]
    plain = arith.normalize_iter_map_to_expr
    shown = [str(plain(mark.source)) for pair in found[:-1] for mark in pair]  # type: ignore[arg-type]
    return [*shown, *(str(mark.extent) for pair in found[-1:] for mark in pair)]


def test_subspace_divide() -> None:
    index = z * 12 + y * 3 + x + c
    assert parts(index, [x]) == ["z * 4 + y", "x + c", "T.bool(True)", "T.bool(True)"]
    assert parts(index, [x], z * 4 + y < 18) == ["z * 4 + y", "x + c", "z * 4 + y < 18", "T.bool(True)"]
    assert parts(index, [z]) == []
    assert parts(index, [x], level="bijective") == ["z * 4 + y", "x + c", "T.bool(True)", "T.bool(True)"]
    assert parts(te.floordiv(index, 2), [x], level="bijective") == []


def test_common_subexpressions() -> None:
    found = arith.detect_common_subexpr(te.all(x + y + z < 5, x + y > 3, te.max(x + y, 1) < 2), 2)
    assert dict(found) == {next(iter(found)): 3} and x + y in found and found[x + y] == 3
    assert len(arith.detect_common_subexpr((x + y) * (x + y) * ((x + y) * (x + y)), 2)) == 1
    assert x not in found and 3 not in found and repr(found) == "{x + y: 3}"


def test_extensions() -> None:
    analyzer = arith.Analyzer()
    with analyzer.constraint_scope(te.all(x < y, y < z)):
        assert not analyzer.can_prove(x < z)
        analyzer.enabled_extensions = arith.Extension.TransitivelyProveInequalities
        assert analyzer.enabled_extensions == arith.Extension.TransitivelyProveInequalities
        assert analyzer.can_prove(x < z)
    p, q, r = (te.var(name, "bool") for name in "pqr")
    analyzer.enabled_extensions = arith.Extension.ConvertBooleanToAndOfOrs
    assert str(analyzer.simplify(te.any(te.all(p, q), r))) == "(p or r) and (q or r)"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: arith.deduce_bound(3, x < 3, {}, {}), "var is a variable, not 3"),  # type: ignore[arg-type]
        (lambda: arith.solve_linear_equations([x == 3], [3]), "variables"),  # type: ignore[list-item]
        (lambda: arith.detect_common_subexpr(x, 0), "threshold"),
    ],
)
def test_refusals(make: Callable[[], object], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        make()
