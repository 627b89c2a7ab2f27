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


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("dtype", ["int32", "float32", "bfloat16"])
def test_search_in_rows_that_are_not_sorted(dtype: str, right: bool) -> None:
    """What is found there follows from the steps of the search, which are the same ones everywhere; in sorted rows it is numpy's."""
    rng = np.random.default_rng(0)
    type_ = ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
    for size in (0, 1, 2, 7, 8, 9):
        rows, values = (rng.integers(-4, 4, (3, n)).astype(type_) for n in (size, 19))
        text = f"searchsorted(%r, %v, right={right})"
        module = mirstack.parse(
            f"def @main(%r: Tensor[(3, {size}), {dtype}], %v: Tensor[(3, 19), {dtype}]) {{ {text} }}"
        )
        wanted = mirstack.compile(module, "interp")(rows, values)
        np.testing.assert_array_equal(mirstack.compile(module)(rows, values), wanted)
        in_order = np.sort(rows, -1)
        found = mirstack.compile(module, "interp")(in_order, values)
        for row, several, places in zip(in_order, values, found, strict=True):
            np.testing.assert_array_equal(np.searchsorted(row, several, "right" if right else "left"), places)
