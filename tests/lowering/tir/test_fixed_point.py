"""Fixed-point multiplication of vectors: each lane is rounded as a scalar is."""

from __future__ import annotations

from typing import Any

import mirstack
import numpy as np
import pytest

CALLS = {
    "q_multiply_shift": "T.q_multiply_shift(A[i], B[0], 31, -2)",
    "q_multiply_shift_per_axis": "T.q_multiply_shift_per_axis(A[i], B[0], 2, 4, 31, T.bool(True), T.bool(True))",
    "shifts by lane": "T.q_multiply_shift_per_axis(A[i], 1395864371, A[i] % 3, B[i] % 5, 31, T.bool(True), T.bool(True))",
}


@pytest.mark.parametrize("call", CALLS.values(), ids=list(CALLS))
def test_lanes(call: str) -> None:
    text = f"""
@T.prim_func
def main(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32"), C: T.Buffer((16,), "int32")):
    for i in T.vectorized(16):
        C[i] = {call}
"""
    a = np.array([-5, -1, 0, 1, 3, 100, 12345, -(10**6)] * 2, np.int32)
    b = np.arange(16, dtype=np.int32) + 2**30
    results: list[np.ndarray] = []
    for target in ("interp", "cpu"):
        run: Any = mirstack.compile(mirstack.parse(text), target)  # pyright: ignore[reportArgumentType]
        run(a, b, c := np.zeros(16, np.int32))
        results.append(c)
    np.testing.assert_array_equal(results[1], results[0])
