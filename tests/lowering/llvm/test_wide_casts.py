"""Casts of floats to integers on processors with and without instructions for them: limited to the range, NaN to 0."""

from __future__ import annotations

import math
from typing import Any

import mirstack
import numpy as np
import pytest

LIMITS = [
    0.5,
    1,
    127,
    128,
    129,
    255,
    256,
    32767,
    32768,
    65535,
    65536,
    2**31,
    2**32,
    2.0**62,
    2.0**63,
    2.0**64,
    1e30,
    1e-40,
    math.inf,
]


def limited(value: float, dtype: str) -> int:
    """A float toward zero, as a number of the dtype."""
    ends = np.iinfo(dtype)
    if math.isnan(value):
        return 0
    if math.isinf(value):
        return ends.max if value > 0 else ends.min
    return min(max(int(value), ends.min), ends.max)


def floats(dtype: str) -> Any:
    """Numbers around the limits of integers, and of every size between."""
    rng = np.random.default_rng(0)
    ends = np.array(LIMITS).astype(dtype)
    near = np.concatenate([ends, np.nextafter(ends, ends.dtype.type(0)), np.nextafter(ends, ends.dtype.type(np.inf))])
    many = np.exp2(rng.uniform(-3, 66, 300)).astype(dtype)
    return np.concatenate([near, -near, many, -many, np.array([0.0, -0.0, np.nan, -np.nan], dtype)])


@pytest.mark.parametrize("cpu", ["haswell", "x86-64", None])
@pytest.mark.parametrize("source", ["float32", "float64"])
@pytest.mark.parametrize("target", ["int64", "uint64", "uint8", "int8", "uint16", "uint32"])
def test_casts_are_limited(target: str, source: str, cpu: str | None) -> None:
    x = floats(source)
    text = f"""#[version = "0.0.5"]
def @main(%x: Tensor[({len(x)}), {source}]) {{ cast(%x, dtype="{target}") }}"""
    found = mirstack.compile(mirstack.parse(text), cpu=cpu)(x)
    np.testing.assert_array_equal(found, np.array([limited(value, target) for value in x.tolist()], target))


@pytest.mark.parametrize("opt_level", [0, 3])
@pytest.mark.parametrize("cpu", ["x86-64", "haswell", "skylake-avx512"])
def test_what_does_not_fit_and_is_known_beforehand(cpu: str, opt_level: int) -> None:
    """LLVM computes casts of constants itself, and casts there and back as one: to whatever it likes where LLVM promises nothing."""
    text = """
@T.prim_func
def main(A: T.Buffer((4,), "int32"), O: T.Buffer((4,), "int32"), P: T.Buffer((4,), "int32"), Q: T.Buffer((1,), "int8")):
    for i in range(4):
        O[i] = T.Cast("int32", T.Cast("float32", T.shift_left(T.Cast("int64", T.bitwise_and(A[i], 255)) - T.int64(128), T.int64(40))))
        P[i] = T.Cast("int32", T.Cast("float32", T.int64(-9223372036854775808)))
    Q[0] = T.Cast("int8", T.Cast("float32", T.int64(-9223372036854775808)))
"""
    numbers = np.array([0, 1, 128, 255], np.int32)
    outputs = [np.zeros(4, np.int32), np.zeros(4, np.int32), np.zeros(1, np.int8)]
    mirstack.compile(mirstack.parse(text), cpu=cpu, opt_level=opt_level)(numbers, *outputs)  # type: ignore[call-overload]
    least, most = -(2**31), 2**31 - 1
    assert outputs[0].tolist() == [least, least, 0, most]
    assert outputs[1].tolist() == [least] * 4
    assert outputs[2].tolist() == [-128]
