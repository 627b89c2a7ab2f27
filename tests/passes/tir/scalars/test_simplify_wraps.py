"""What is stored wraps around: `simplify` leaves as they are comparisons and divisions of sums that may overflow."""

from __future__ import annotations

import mirstack
import numpy as np
import pytest
from mirstack.parser import print_mir
from mirstack.passes.tir.scalars.simplify import Simplify
from xdsl.context import Context

LEAST, MOST = -(1 << 31), (1 << 31) - 1

STORED = [
    "T.Select(A[i] + 1 > A[i], 1, 0)",
    "T.Select(A[i] + 3 > B[i] - 5, 1, 0)",
    "T.max(A[i] + 1, A[i])",
    "T.Select(A[i] - B[i] > 0, 1, 0)",
    "T.Select(A[i] - B[i] > T.int32(-2147483648), 1, 0)",
    "A[i] * 4 // 4",
    "T.max(T.Select(A[i] - B[i] > -5, A[i], 2), 3)",
    "T.if_then_else(A[i] - 1 < A[i], 1, 0)",
    "T.Cast('int32', T.Cast('int64', A[i] + 1) > T.Cast('int64', A[i]))",
    "T.Select(n + 1 > n, 1, 0)",
]


def program(value: str) -> str:
    return f"""@T.prim_func
def f(A: T.Buffer((5,), "int32"), B: T.Buffer((5,), "int32"), C: T.Buffer((5,), "int32"), n: T.int32):
    for i in range(5):
        C[i] = {value}
"""


@pytest.mark.parametrize("value", STORED)
def test_what_is_stored_wraps_around(value: str) -> None:
    module = mirstack.parse(program(value))
    inputs = (
        np.array([MOST, MOST - 3, LEAST, MOST - 6, 0], np.int32),
        np.array([MOST, LEAST, MOST, MOST, LEAST], np.int32),
    )
    wanted, got = np.zeros(5, np.int32), np.zeros(5, np.int32)
    mirstack.compile(module, "interp")(*inputs, wanted, MOST)
    Simplify().apply(Context(), module)
    mirstack.compile(module, "interp")(*inputs, got, MOST)
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize(
    ("value", "simple"),
    [
        ("A[i] + 1 - 1", "A[i]"),
        ("(n + 3) * 2 - n * 2", "6"),
        ("A[(i * 4 + 3) // 4]", "A[i]"),
        ("T.Select(i + 1 > i, A[i], 0)", "A[i]"),
        ("T.Select(A[i] <= 2147483647, A[i], 0)", "A[i]"),
        ("(A[i] + 1 - 1) // 2", "A[i] // 2"),
    ],
)
def test_what_cannot_overflow_is_simplified(value: str, simple: str) -> None:
    module = mirstack.parse(program(value))
    Simplify().apply(Context(), module)
    assert print_mir(module) == print_mir(mirstack.parse(program(simple)))
