"""What native code refuses, the interpreter refuses, in the same words where it is known before the program runs."""

from __future__ import annotations

from typing import Any

import mirstack
import numpy as np
import pytest
from mirstack.support.diagnostics import MirError

TARGETS = ("cpu", "interp")
RETURNS = """@T.prim_func
def main(X: T.Buffer((8,), "int32")) -> T.int32:
    for i in range(8):
        if X[i] > 5:
            return i
    return 8
"""
HALF = """@T.prim_func
def main(X: T.Buffer((8,), "float16"), s: T.DTYPE):
    for i in range(8):
        X[i] = X[i] * T.Cast("float16", s)
"""
PARTLY = """@T.prim_func
def main(A: T.Buffer((ROWS, 8), "int32"), Y: T.Buffer((7, 8), "int32")):
    for i in range(2):
        with T.block("Y"):
            vi = T.axis.spatial(2, i)
            T.reads(A[vi * 4:vi * 4 + 4, 0:8])
            T.writes(Y[vi * 4:vi * 4 + 4, 0:8])
            W = T.match_buffer(A[vi * 4:vi * 4 + 4, 0:8], (4, 8), "int32", strides=[8, 1], offset_factor=1)
            for a, b in T.grid(4, 8):
                if vi * 4 + a < 7:
                    Y[vi * 4 + a, b] = W[a, b]
"""


@pytest.mark.parametrize("target", TARGETS)
def test_returns_in_loops(target: Any) -> None:
    with pytest.raises(MirError, match=r":5:13: error: T.ret inside a branch or loop cannot be compiled"):
        mirstack.compile(mirstack.parse(RETURNS), target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ("float16", "bfloat16"))
def test_numbers_that_python_cannot_pass(target: Any, dtype: str) -> None:
    message = f"main takes a scalar of dtype {dtype}, which Python cannot pass"
    with pytest.raises(MirError, match=message + r"(.|\n)*pass it as a buffer of one element"):
        mirstack.compile(mirstack.parse(HALF.replace("DTYPE", dtype)), target)


@pytest.mark.parametrize("target", TARGETS)
def test_matched_regions_are_inside(target: Any) -> None:
    y = np.zeros((7, 8), np.int32)
    run: Any = mirstack.compile(mirstack.parse(PARTLY.replace("ROWS", "8")), target)
    run(np.arange(64, dtype=np.int32).reshape(8, 8), y)
    np.testing.assert_array_equal(y.ravel(), np.arange(56))
    run = mirstack.compile(mirstack.parse(PARTLY.replace("ROWS", "7")), target)
    with pytest.raises(MirError, match=r":8:17: error: .*what is outside of dimension 0 of 'A'"):
        run(np.zeros((7, 8), np.int32), y)
