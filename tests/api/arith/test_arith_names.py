"""`mirstack.arith` answers by the names, argument orders and results of TVM's."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import mirstack
import pytest
from mirstack import arith, te, tir
from mirstack.api.arith import int_set, iter_affine_map
from mirstack.api.ir.structural import structural_equal

x, y, z = te.var("x"), te.var("y"), te.var("z")
i, j, k = te.var("i"), te.var("j"), te.var("k")
Range = tir.Range


def bound(expr: tir.PrimExpr, analyzer: arith.Analyzer | None = None) -> tuple[int, int]:
    found = (analyzer or arith.Analyzer()).const_int_bound(expr)
    return found.min_value, found.max_value


def modular(expr: tir.PrimExpr, analyzer: arith.Analyzer | None = None) -> tuple[int, int]:
    found = (analyzer or arith.Analyzer()).modular_set(expr)
    return found.coeff, found.base


def same(found: Sequence[object], expected: Sequence[object]) -> bool:
    """Returns whether expressions are those expected, where None is one that is not there."""
    pairs = zip(found, expected, strict=True)
    return all(a is b or (a is not None and structural_equal(a, te.convert(b))) for a, b in pairs)


def refused(message: str, make: Callable[[], object], kind: type[Exception] = mirstack.MirError) -> None:
    with pytest.raises(kind) as caught:
        make()
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ((x * 2 + 1) // 2, x),
        ((x * 4 + y * 2) // 2, x * 2 + y),
        (x - x, 0),
        (x + y - x, y),
        ((x // 4) * 4 + x % 4, x),
        (te.min(x, x + 1), x),
        (te.max(x, x + 1), x + 1),
        ((x * 8 + 5) % 4, 1),
        (x + 1 > x, te.const(True)),
        (te.all(x < 3, x < 3), x < 3),
        (te.all(x < 3, x < 2), x < 2),
        (te.all(x < 3, x > 2), te.const(False)),
        (te.any(x < 3, x > 2), te.const(True)),
    ],
)
def test_simplify(given: tir.PrimExpr, expected: object) -> None:
    for method in ("simplify", "rewrite_simplify", "canonical_simplify"):
        found = getattr(arith.Analyzer(), method)(given)
        assert same([found], [expected]), found


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (x % 8, (0, 7)),
        (x, (-(1 << 31), (1 << 31) - 1)),
        (te.var("l", "int64"), (-(1 << 63) + 1, (1 << 63) - 1)),
        (te.var("u", "uint8"), (0, 255)),
        (te.size_var("n"), (0, arith.ConstIntBound.POS_INF)),
        (te.var("b", "int8").astype("int32") + 1, (-127, 128)),
        (te.truncmod(x, 3), (-2, 2)),
        (tir.Select(x > 0, y % 3, y % 5 + 4), (0, 8)),
        (te.min(x % 8, y % 3), (0, 2)),
        (te.const(7), (7, 7)),
    ],
)
def test_const_int_bound(given: tir.PrimExpr, expected: tuple[int, int]) -> None:
    assert bound(given) == expected


def test_bounds_of_updated_variables() -> None:
    analyzer = arith.Analyzer()
    assert not analyzer.const_int_bound_is_bound(x)
    analyzer.update(x, arith.ConstIntBound(0, 4))
    analyzer.update(y, arith.ConstIntBound(1, 10))
    assert analyzer.const_int_bound_is_bound(x)
    assert bound(x + y, analyzer) == (1, 14)
    assert bound(x - y, analyzer) == (-10, 3)
    assert bound(x * y, analyzer) == (0, 40)
    assert bound(x // y, analyzer) == (0, 4)
    assert same([analyzer.simplify(x // 5)], [0])
    analyzer.update(x, arith.ConstIntBound(0, 4))
    refused(
        "variable 'x' is known to be in ConstIntBound[0, 4], not ConstIntBound[0, 9]",
        lambda: analyzer.update(x, arith.ConstIntBound(0, 9)),
    )
    analyzer.update(x, arith.ConstIntBound(0, 9), override=True)
    assert bound(x, analyzer) == (0, 9)
    assert not same([analyzer.simplify(x // 5)], [0])
    analyzer.update(z, arith.ModularSet(8, 3))
    assert modular(z * 2 + 1, analyzer) == (16, 7)
    analyzer.update(k, arith.IntervalSet(2, 5))
    assert str(analyzer.int_set(k + 1)) == "IntervalSet[3, 6]"
    assert repr(arith.ConstIntBound(arith.ConstIntBound.NEG_INF, 3)) == "ConstIntBound[neg_inf, 3]"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (x * 6 + 3, (6, 3)),
        (x * 6 + y * 4, (2, 0)),
        (x * 4 + y * 8 + 5, (4, 1)),
        (te.const(5), (0, 5)),
        (x, (1, 0)),
        (tir.Select(x > 0, x * 3 * 4 + 2, x * 6 + 5), (3, 2)),
        (te.min(x * 3 * 3, x * 9), (9, 0)),
    ],
)
def test_modular_set(given: tir.PrimExpr, expected: tuple[int, int]) -> None:
    assert modular(given) == expected


def test_what_a_scope_assumes_ends_with_it() -> None:
    analyzer = arith.Analyzer()
    with analyzer.constraint_scope(y % 4 == 2):
        assert modular(y + 1, analyzer) == (4, 3)
        with analyzer.constraint_scope(x % 2 == 1):
            assert modular(y + x * 2, analyzer) == (4, 0)
        assert modular(y + x * 2, analyzer) == (2, 0)
    assert modular(y + 1, analyzer) == (1, 0)
    with analyzer.constraint_scope(te.all(x >= 2, x < 5)):
        assert bound(x, analyzer) == (2, 4) and analyzer.can_prove(x < 5)
    assert not analyzer.can_prove(x < 5)


def test_bind() -> None:
    analyzer = arith.Analyzer()
    analyzer.bind(x, Range(0, 8))
    analyzer.bind(y, x * 4 + 1)
    assert same([analyzer.simplify(x // 8)], [0]) and bound(y, analyzer) == (1, 29) and modular(y, analyzer) == (4, 1)
    assert analyzer.can_prove(y > x) and analyzer.can_prove(x < 8, arith.ProofStrength.SYMBOLIC_BOUND)
    assert not analyzer.can_prove(x < 7) and not analyzer.can_prove(x > 7)
    assert analyzer.can_prove_equal(y - 1, x * 4) and not analyzer.can_prove_equal(y, x)
    assert analyzer.can_prove_greater_equal(x, 0) and not analyzer.can_prove_greater_equal(x, 1)
    assert analyzer.can_prove_less(x, 8) and not analyzer.can_prove_less(x, 7)
    assert str(analyzer.int_set(x + 1)) == "IntervalSet[1, 8]"
    assert analyzer.const_int_bound_is_bound(y)
    assert repr(analyzer) == "Analyzer(x in IntervalSet[0, 7], y in IntervalSet[x * 4 + 1, x * 4 + 1])"
    refused("var is a variable, not", lambda: analyzer.bind(x + 1, 3), TypeError)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (x + y, "IntervalSet[1, z + 3]"),
        (x - y, "IntervalSet[-2, z]"),
        (y * -2, "IntervalSet[-6, 0]"),
        (z, "IntervalSet[z, z]"),
        (y % 2, "IntervalSet[0, 1]"),
        (y % 8, "IntervalSet[0, 3]"),
        (y // 2, "IntervalSet[0, 1]"),
        (te.max(y, 2), "IntervalSet[2, 3]"),
        (x * y, "IntervalSet[neg_inf, pos_inf]"),
    ],
)
def test_int_set(given: tir.PrimExpr, expected: str) -> None:
    domain: dict[tir.Var, arith.IntervalSet | Range] = {y: Range(0, 4), x: arith.IntervalSet(1, z)}
    assert str(arith.Analyzer().int_set(given, domain)) == expected


def test_interval_sets() -> None:
    assert str(arith.IntSet.vector(tir.Ramp(10, 3, 2))) == "IntervalSet[10, 15]"
    assert str(arith.IntSet.vector(tir.Ramp(10, -3, 2))) == "IntervalSet[5, 10]"
    assert str(arith.IntSet.vector(tir.Broadcast(x, 4))) == "IntervalSet[x, x]"
    assert str(arith.IntSet.vector(x)) == str(arith.IntSet.single_point(x)) == "IntervalSet[x, x]"
    refused("are not an interval", lambda: arith.IntSet.vector(tir.Ramp(0, x, 2)))
    everything = arith.IntervalSet(int_set.neg_inf(), int_set.pos_inf())
    assert everything.is_everything() and not everything.is_nothing()
    assert arith.IntervalSet(3, 2).is_nothing() and not arith.IntervalSet(2, 3).is_nothing()
    assert arith.IntervalSet(int_set.pos_inf(), int_set.neg_inf()).is_nothing()


def test_regions() -> None:
    loops = {i: Range(0, 8)}
    filled = [Range.from_min_extent(i * 4 + j, 4), Range.from_min_extent(k, 2)]
    for estimate in (
        arith.estimate_region_lower_bound,
        arith.estimate_region_strict_bound,
        arith.estimate_region_upper_bound,
    ):
        assert str(estimate(filled, loops, True)) == "[IntervalSet[j, j + 31], IntervalSet[k, k + 1]]"
    apart = [Range.from_min_extent(i * 4, 2)]
    assert arith.estimate_region_lower_bound(apart, loops, True) is None
    assert str(arith.estimate_region_upper_bound(apart, loops, True)) == "[IntervalSet[0, 29]]"
    assert str(arith.estimate_region_lower_bound(filled[:1], loops, i < 3)) == "[IntervalSet[j, j + 11]]"


LOOPS = {i: Range(0, 8), j: Range(0, 4)}


def test_detect_iter_map() -> None:
    found = arith.detect_iter_map([i * 4 + j], LOOPS)
    (total,) = found.indices
    (split,) = total.args
    assert same([total.base, split.scale, split.extent, split.lower_factor], [0, 1, 32, 1])
    fused = split.source.source
    assert isinstance(fused, arith.IterSumExpr) and found.errors == [] and same([split.source.extent], [32])
    assert [str(each) for each in fused.args] == [
        "IterSplit(IterMark(i, extent=8), lower_factor=1, extent=8, scale=4)",
        "IterSplit(IterMark(j, extent=4), lower_factor=1, extent=4, scale=1)",
    ]
    overlapping = arith.detect_iter_map([i + j], LOOPS)
    assert overlapping.indices == [] and "overlap" in overlapping.errors[0]
    assert arith.detect_iter_map([i // 2], LOOPS, check_level="bijective").indices == []
    assert len(arith.detect_iter_map([i // 2], LOOPS, True, arith.IterMapLevel.Surjective).indices) == 1
    narrowed = arith.detect_iter_map([i * 4 + j], LOOPS, i * 4 + j < 13).indices[0]
    assert same([narrowed.args[0].extent], [13])
    refused("there is no level 'onto' of iteration maps", lambda: arith.detect_iter_map([i], LOOPS, True, "onto"))


def test_normalize_and_simplify() -> None:
    total = arith.normalize_to_iter_sum(i * 4 + j // 2 + 3, LOOPS)
    assert same([total.base, *(each.scale for each in total.args)], [3, 4, 1])
    assert same([arith.normalize_iter_map_to_expr(total)], [i * 4 + j // 2 + 3])
    assert same([arith.normalize_iter_map_to_expr(total.args[1])], [j // 2])
    refused("i * j is not a sum of loops' digits", lambda: arith.normalize_to_iter_sum(i * j, LOOPS))
    assert same(arith.iter_map_simplify([(i * 4 + j) // 4, (i * 4 + j) % 4], LOOPS), [i, j])
    assert same(arith.iter_map_simplify([i + j + i // 8], LOOPS), [i + j])
    shifted = arith.detect_iter_map([i * 4 + j], {i: Range(3, 8), j: Range(0, 4)}).indices
    assert same([arith.normalize_iter_map_to_expr(shifted[0])], [i * 4 + j])


def test_inverse_affine_iter_map() -> None:
    loops = {**LOOPS, k: Range(4, 20)}
    indices = [i * 4 + j, k % 4, k // 4]
    found = arith.detect_iter_map(indices, loops, check_level="bijective")
    outputs = [te.var(name) for name in "pqr"]
    inverse = arith.inverse_affine_iter_map(found.indices, outputs)
    p, q, r = outputs
    assert set(map(id, inverse)) == {id(i), id(j), id(k)}
    assert same([inverse[i], inverse[j], inverse[k]], [p // 4, p % 4, r * 4 + q])
    for at in itertools.product(range(8), range(4), range(4, 20)):
        values = [_value(index, dict(zip((i, j, k), at, strict=True))) for index in indices]
        assert tuple(_value(inverse[v], dict(zip(outputs, values, strict=True))) for v in (i, j, k)) == at
    refused("3 indices cannot have 1 values", lambda: arith.inverse_affine_iter_map(found.indices, [p]))
    mark = iter_affine_map.IterMark(i * 2, 4)
    made = arith.IterSumExpr([arith.IterSplitExpr(mark, 1, 4, 1)], 0)
    refused("the source of a mark is a loop's variable", lambda: arith.inverse_affine_iter_map([made], [p]))


def _value(expr: tir.PrimExpr, values: dict[tir.Var, int]) -> int:
    return int(arith.Analyzer().simplify(tir.stmt_functor.substitute(expr, values)))  # type: ignore[call-overload]


def test_linear_equations_and_clips() -> None:
    assert same(arith.detect_linear_equation(i * 4 + j * 6 + 7, [i]), [4, j * 6 + 7])
    assert same(arith.detect_linear_equation(i * 4 + (i + 1) + j * 6 + 7, [i, j]), [5, 6, 8])
    assert same(arith.detect_linear_equation(j * 7, [i]), [0, j * 7])
    assert same(arith.detect_linear_equation(i * j, [i]), [j, 0])
    assert arith.detect_linear_equation(i * 4 * (i + 1), [i]) == []
    assert arith.detect_linear_equation(i * j, [i, j]) == []
    assert same(arith.detect_clip_bound(te.all(i < j * 6, i - 1 > 0), [i]), [2, j * 6 - 1])
    assert same(arith.detect_clip_bound(te.all(i < 3, j >= 0), [i, j]), [None, 2, 0, None])
    assert arith.detect_clip_bound(i + j < 3, [i, j]) == []
    assert arith.detect_clip_bound(i * 2 < 3 * j, [i]) == []
    refused("var_list holds variables", lambda: arith.detect_clip_bound(i < 3, [i + 1]), TypeError)  # type: ignore[list-item]


def test_names() -> None:
    assert set(arith.__all__) <= set(dir(arith))
    refused("has no attribute 'Analizer'; did you mean 'Analyzer'?", lambda: arith.Analizer, AttributeError)  # type: ignore[attr-defined]
