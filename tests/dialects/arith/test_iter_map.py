"""Iteration maps: detected ones are right (their image is a box, their inverse inverts), by brute force over small loops."""

from __future__ import annotations

import sys
from itertools import product
from math import prod
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))
from evaluate import evaluate
from mirstack.dialects.arith import Analyzer, Expr
from mirstack.dialects.arith import expr as x
from mirstack.dialects.arith.expr import ge, logical_and, lt
from mirstack.dialects.arith.iter_map import IterMapLevel, IterRange, inverse_affine_iter_map

i, j, k, n, m = map(x.symbol, "ijknm")


def detect(indices, iters, predicate=x.TRUE, level=IterMapLevel.SURJECTIVE):
    analyzer = Analyzer()
    for v, extent in iters.items():
        analyzer.bind(v, 0, extent)
    return analyzer, analyzer.detect_iter_map(indices, {v: (0, e) for v, e in iters.items()}, predicate, level)


def extents(result) -> list[int | None]:
    return [s.args[0].extent.value if s.args else 1 for s in result.indices]


ACCEPTED = [
    ([i * 4 + j], {i: 8, j: 4}, x.TRUE, [32]),
    ([i // 4, i % 4], {i: 32}, x.TRUE, [8, 4]),
    ([i // 4], {i: 30}, x.TRUE, [8]),
    ([i % 4], {i: 30}, x.TRUE, [4]),
    ([i % 4, i // 8], {i: 32}, x.TRUE, [4, 4]),
    ([i * 4 + j], {i: 8, j: 4}, lt(i * 4 + j, x.as_expr(30)), [30]),
    ([(i * 4 + j) // 5, (i * 4 + j) % 5], {i: 8, j: 4}, lt(i * 4 + j, x.as_expr(30)), [6, 5]),
    ([i * 4 + j], {i: 8, j: 4}, ge(i * 4 + j, x.as_expr(2)), [30]),
    ([i], {i: 8}, lt(i, x.as_expr(5)), [5]),
    ([(i * 16 + j) // 8 * 4 + k, (i * 16 + j) % 8], {i: 8, j: 16, k: 4}, x.TRUE, [64, 8]),
    ([i * 2], {i: 8}, x.TRUE, [8]),
    ([x.as_expr(3), i], {i: 8}, x.TRUE, [1, 8]),
    ([i + k], {i: 8, k: 1}, x.TRUE, [8]),
    ([i // (m // 8), i % (m // 8)], {i: n * (m // 8)}, x.TRUE, [None, None]),
    ([i // (m + 2) // 3, i // (m + 2) % 3, i % (m + 2)], {i: n * 3 * (m + 2)}, x.TRUE, [None, 3, None]),
]


@pytest.mark.parametrize("indices, iters, predicate, expected", ACCEPTED, ids=[str(a[0]) for a in ACCEPTED])
def test_accepted(indices, iters, predicate, expected):
    _, result = detect(indices, iters, predicate)
    assert result.errors == ()
    assert extents(result) == expected


REFUSED = [
    ([i // 4, i % 4], {i: 30}, x.TRUE, "32 does not divide the extent 30 of loop i, which the indices split"),
    ([i * 4 + j], {i: 8, j: 5}, x.TRUE, "the terms of i * 4 + j overlap or leave gaps"),
    (
        [i, j],
        {i: 8, j: 4},
        lt(i * 4 + j, x.as_expr(30)),
        "the predicate bounds i * 4 + j, but the indices use its parts",
    ),
    ([i, i], {i: 8}, x.TRUE, "the parts of loop i that the indices use overlap"),
    ([i + j], {i: 8, j: 4}, x.TRUE, "the terms of i + j overlap or leave gaps"),
    ([i * i], {i: 8}, x.TRUE, "i * i multiplies loop variables"),
    ([x.minimum(i, j)], {i: 8, j: 4}, x.TRUE, "T.min(i, j) is not affine in the loops"),
    ([n // i], {i: 8}, x.TRUE, "n // i divides by a loop variable"),
    ([(i + 1) // 4], {i: 8}, x.TRUE, "the offset 1 is not a multiple of 4"),
    ([(i * 3) // 2], {i: 8}, x.TRUE, "neither of 2 and the factor 3 divides the other"),
]


@pytest.mark.parametrize("indices, iters, predicate, reason", REFUSED, ids=[str(a[0]) for a in REFUSED])
def test_refused(indices, iters, predicate, reason):
    _, result = detect(indices, iters, predicate)
    assert not result
    assert reason in result.errors[0]


def test_bijective_needs_every_value():
    _, result = detect([i % 4], {i: 8}, level=IterMapLevel.BIJECTIVE)
    assert "the indices use 4 values of loop i, which has 8" in result.errors[0]
    _, result = detect([i], {i: 8, j: 4}, level=IterMapLevel.BIJECTIVE)
    assert "loop j is in no index" in result.errors[0]


def test_symbolic_extents():
    analyzer = Analyzer()
    analyzer.constraint(logical_and(ge(n, x.ONE), ge(m, x.ONE)))
    split = {i: (0, (n + 15) // 16), j: (0, 16)}
    for v, (low, extent) in split.items():
        analyzer.bind(v, low, extent)
    result = analyzer.detect_iter_map([i * 16 + j], split, lt(i * 16 + j, n))  # pyright: ignore[reportArgumentType]
    assert result.errors == ()
    assert result.indices[0].args[0].extent == n
    analyzer.bind(k, 0, n * m)
    result = analyzer.detect_iter_map([k // m, k % m], {k: (0, n * m)}, level=IterMapLevel.BIJECTIVE)
    assert [s.args[0].extent for s in result.indices] == [n, m]


@st.composite
def schedules(draw):
    """Loops split, fused and permuted at random; indices that give some of the digits back."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    loops = [x.symbol(f"l{p}") for p in range(len(sizes))]
    fused, total = x.ZERO, 1
    order = draw(st.permutations(range(len(sizes))))
    for p in order:
        fused, total = fused * sizes[p] + loops[p], total * sizes[p]
    limit = draw(st.none() | st.integers(1, total))
    predicate = x.TRUE if limit is None else lt(fused, x.as_expr(limit))
    c = draw(st.integers(1, 6))
    indices = draw(st.sampled_from([[fused], [fused // c, fused % c], [fused // c], [fused % c], loops, [fused + c]]))
    return dict(zip(loops, sizes, strict=True)), predicate, indices


@settings(max_examples=400, deadline=None)
@given(schedules(), st.sampled_from([IterMapLevel.SURJECTIVE, IterMapLevel.BIJECTIVE]))
def test_detected_maps_are_what_they_claim(schedule, level):
    iters, predicate, indices = schedule
    analyzer, result = detect(indices, iters, predicate, level)
    if not result:
        return
    points = [
        dict(zip((v.atom for v in iters), values, strict=True))
        for values in product(*(range(e) for e in iters.values()))
    ]
    points = [p for p in points if evaluate(predicate, p)]
    images = [tuple(evaluate(e, p) for e in indices) for p in points]
    sizes = [e if e is not None else 0 for e in extents(result)]
    assert len(set(images)) == prod(sizes)
    if level is IterMapLevel.BIJECTIVE:
        assert len(images) == len(set(images))
        outputs: list[Expr] = [x.symbol(f"o{p}") for p in range(len(indices))]
        inverse = inverse_affine_iter_map(
            analyzer, result, {v.atom: IterRange.of(0, e) for v, e in iters.items()}, outputs
        )
        for point, image in zip(points, images, strict=True):
            at = dict(zip((o.atom for o in outputs), image, strict=True))
            assert {a: evaluate(e, at) for a, e in inverse.items()} == point  # pyright: ignore[reportArgumentType]
