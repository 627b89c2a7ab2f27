"""Vectors wider than a register that are loaded and stored with masks: LLVM is given them register by register."""

from __future__ import annotations

import mirstack
import numpy as np
import pytest
from mirstack.lowering.driver.build import llvm_text
from mirstack.lowering.pipeline import Options
from mirstack.parser import parse_mir

TEXT = """
@T.prim_func
def f(A: T.Buffer(({n},), "{dtype}"), N: T.Buffer((1,), "int32"), B: T.Buffer(({m},), "{dtype}")):
    for i in range(3):
        for j in T.vectorized({lanes}):
            if i * {lanes} + j < {m}:
                B[i * {lanes} + j] = T.if_then_else(N[0] > 2 and i * {lanes} + j < {n}, A[i * {lanes} + j], T.{dtype}(-7))
"""


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int8"])
@pytest.mark.parametrize("cpu", [None, "haswell", "x86-64"])
def test_lanes_that_are_left_out(dtype: str, cpu: str | None) -> None:
    """A register of lanes may be left out as a whole, by constants that LLVM finds when it unrolls the loop."""
    lanes = 256 // np.dtype(dtype).itemsize if dtype != "int8" else 64
    n, m = 2 * lanes + lanes // 4 - 1, 2 * lanes + lanes // 2 + 1
    run = mirstack.compile(parse_mir(TEXT.format(n=n, m=m, lanes=lanes, dtype=dtype)), "cpu", cpu=cpu)
    a = (np.arange(n) % 100 + 1).astype(dtype)
    for number, expected in ((5, np.concatenate([a, np.full(m - n, -7, dtype)])), (1, np.full(m, -7, dtype))):
        b = np.zeros(m, dtype)
        run(a, np.array([number], "int32"), b)
        np.testing.assert_array_equal(b, expected)


def test_no_mask_is_wider_than_a_register() -> None:
    module = parse_mir(TEXT.format(n=70, m=77, lanes=32, dtype="float32"))
    text = llvm_text(module, Options(entry="f", cpu="haswell", triple="x86_64-unknown-linux-gnu"))
    assert "@llvm.masked.load.v8f32" in text and "@llvm.masked.store.v8f32" in text
    assert not any(f"masked.{does}.v{count}" in text for does in ("load", "store") for count in (16, 32, 64))
