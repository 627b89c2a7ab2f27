"""Quotients by 0, and shifts that lose bits, mean the same before `simplify` and after."""

from __future__ import annotations

import mirstack
import numpy as np
import pytest
from mirstack.parser import parse_mir
from mirstack.passes.registry import pass_factories
from xdsl.context import Context

EXPRESSIONS = [
    "T.FloorMod(i, 0) - i",
    "T.FloorDiv(i, 0) + i",
    "T.truncmod(i, 0) - i",
    "T.truncdiv(i, 0) + i",
    "T.FloorMod(T.FloorMod(i, 0) + n, 4)",
    "T.max(0, T.shift_left(1, T.bitwise_and(n, 31)))",
    "T.shift_left(n, 31)",
    "T.shift_left(n, 40)",
    "T.shift_right(n, 40)",
    "T.min(T.floordiv(5, T.max(n, 0)), 5)",
    "T.max(T.floordiv(5, T.max(n, 0)), 1)",
    "T.max(T.truncdiv(-5, T.max(n, 0)), -1)",
]


@pytest.mark.parametrize("value", EXPRESSIONS)
def test_meaning_is_kept(value: str) -> None:
    text = f"""
@T.prim_func
def main(n: T.int32, O: T.Buffer((4,), "int32")):
    for i in range(4):
        O[i] = {value}
"""
    module = parse_mir(text)
    simplified = parse_mir(text)
    pass_factories()["simplify"]()().apply(Context(), simplified)
    for n in (0, 1, 5, 31, -1, -7):
        wanted, got = np.zeros(4, np.int32), np.zeros(4, np.int32)
        mirstack.compile(module, "interp")(n, wanted)
        mirstack.compile(simplified, "interp")(n, got)
        np.testing.assert_array_equal(got, wanted, str(n))


def test_shift_in_a_loop_without_iterations() -> None:
    """The count is at least 0 and at most -1 there."""
    text = """
@T.prim_func
def main(O: T.Buffer((4,), "int32")):
    for i in range(0):
        O[i] = T.max(T.shift_left(1, i), 0)
    for i in range(4):
        O[i] = i
"""
    result = np.zeros(4, np.int32)
    mirstack.compile(parse_mir(text))(result)
    assert result.tolist() == [0, 1, 2, 3]
    pass_factories()["simplify"]()().apply(Context(), parse_mir(text))


def test_flags_of_lanes() -> None:
    """Vectors of `q_multiply_shift_per_axis` have flags of as many lanes."""
    text = """
@T.prim_func
def main(A: T.Buffer((4,), "int32"), O: T.Buffer((4,), "int32")):
    for i in T.vectorized(4):
        O[i] = T.q_multiply_shift_per_axis(A[i], 1518500249, 2, 1, 31, T.bool(True), T.bool(False))
"""
    a = np.array([5, -7, 1000, 123456], np.int32)
    module, vectors = parse_mir(text), parse_mir(text)
    pass_factories()["vectorize-loop"]()().apply(Context(), vectors)
    results = [np.zeros(4, np.int32) for _ in range(3)]
    for program, target, result in zip((module, vectors, module), ("interp", "interp", "cpu"), results, strict=True):
        mirstack.compile(program, target)(a, result)  # type: ignore[call-overload]
    assert results[0].tolist() == results[1].tolist() == results[2].tolist()
