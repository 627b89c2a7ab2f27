"""NaN comes last in ascending order, and first in descending order, of every float."""

from __future__ import annotations

from typing import Literal

import mirstack
import ml_dtypes
import numpy as np
import pytest

NUMBERS = [1, np.nan, 3, -np.inf, np.inf, 2, np.nan, 0]


@pytest.mark.parametrize("target", ["interp", "cpu"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_order(dtype: str, target: Literal["interp", "cpu"]) -> None:
    x = np.array(NUMBERS).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    results = "(argsort(%x, axis=0), argsort(%x, axis=0, is_ascend=False), sort(%x, axis=0))"
    program = mirstack.parse(f"def @main(%x: Tensor[(8), {dtype}]) {{ {results} }}")
    up, down, in_order = mirstack.compile(program, target)(x)
    assert up.tolist() == [3, 7, 0, 5, 2, 4, 1, 6]
    assert down.tolist() == [1, 6, 4, 2, 5, 0, 7, 3]
    np.testing.assert_array_equal(in_order.astype(np.float64), np.sort(NUMBERS))
