"""Vectors of elements 2 to 4 apart, and of a number of lanes that is not a power of two, at the ends of their memory."""

from __future__ import annotations

from typing import Any

import mirstack
import numpy as np
import pytest


@pytest.mark.parametrize("cpu", [None, "haswell", "x86-64"])
@pytest.mark.parametrize("lanes", [3, 4, 7, 8, 9, 14, 16])
@pytest.mark.parametrize("stride", [1, 2, 3, 4, 5])
def test_loads(stride: int, lanes: int, cpu: str | None) -> None:
    size = stride * (lanes - 1) + 1
    text = f"""
@T.prim_func
def main(A: T.Buffer((3, {size}), "float32"), B: T.Buffer((3, {lanes}), "float32")):
    for i in range(3):
        for j in T.vectorized({lanes}):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj * {stride}] * T.float32(2)
"""
    # The input ends where a page does not: nothing but the result tells reads too far apart.
    a = np.arange(3 * size, dtype=np.float32).reshape(3, size)
    b = np.zeros((3, lanes), np.float32)
    run: Any = mirstack.compile(mirstack.parse(text), cpu=cpu)
    run(a, b)
    np.testing.assert_array_equal(b, a[:, ::stride] * 2)
