"""Integer division is defined for every divisor: native code, TIR's interpreter and numpy say the same of 0 and -1."""

from __future__ import annotations

import re
from typing import Any

import mirstack
import numpy as np
import pytest
from mirstack.dialects.tir import PrimFuncOp
from mirstack.dialects.tir.interpreter import interpret_prim_func
from mirstack.parser import parse_mir
from mirstack.support.diagnostics import MirError

Array = np.ndarray[Any, Any]

DTYPES = ("int8", "int16", "int32", "int64", "uint8", "uint32")

EACH = """
@T.prim_func
def main(A: T.Buffer((16,), "{dtype}"), B: T.Buffer((16,), "{dtype}"), C: T.Buffer((4, 16), "{dtype}")):
    for i in range(16):
        C[0, i] = A[i] // B[i]
        C[1, i] = A[i] % B[i]
        C[2, i] = T.Div(A[i], B[i])
        C[3, i] = T.truncmod(A[i], B[i])
"""
VECTORS = """
@T.prim_func
def main(A: T.Buffer((16,), "{dtype}"), B: T.Buffer((16,), "{dtype}"), C: T.Buffer((4, 16), "{dtype}")):
    C[0, 0:16] = A[0:16] // B[0:16]
    C[1, 0:16] = A[0:16] % B[0:16]
    C[2, 0:16] = T.Div(A[0:16], B[0:16])
    C[3, 0:16] = T.truncmod(A[0:16], B[0:16])
"""
SCALARS = """
@T.prim_func
def main(a: T.{dtype}, b: T.{dtype}, C: T.Buffer((4,), "{dtype}")):
    C[0] = a // b
    C[1] = a % b
    C[2] = T.Div(a, b)
    C[3] = T.truncmod(a, b)
"""


def run(text: str, interpreted: bool, **arguments: Any) -> None:
    """The program on arguments that it writes to."""
    if interpreted:
        module = parse_mir(text)
        (function,) = [op for op in module.body.block.ops if isinstance(op, PrimFuncOp)]
        interpret_prim_func(function, arguments, module)
    else:
        mirstack.compile(mirstack.parse(text))(*arguments.values())


def expected(a: Array, b: Array) -> Array:
    """Floored and truncated quotient and remainder by numpy."""
    with np.errstate(all="ignore"):
        rest = np.fmod(a, b)
        return np.stack([a // b, a % b, (a - rest) // b, rest])


def operands(dtype: str) -> tuple[Array, Array]:
    limits = np.iinfo(dtype)
    a = [limits.min, limits.max, 0, 7, limits.min + 1, 5, limits.min, 100] * 2
    minus_one = -1 if limits.min else limits.max
    b = [
        minus_one,
        minus_one,
        0,
        0,
        0,
        3,
        0,
        minus_one,
        0,
        0,
        minus_one,
        minus_one,
        minus_one,
        0,
        limits.max,
        limits.min,
    ]
    return np.array(a, dtype), np.array(b, dtype)


@pytest.mark.parametrize("interpreted", [False, True], ids=["native", "interpreter"])
@pytest.mark.parametrize("text", [EACH, VECTORS], ids=["loop", "vectors"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays(dtype: str, text: str, interpreted: bool) -> None:
    a, b = operands(dtype)
    results = np.full((4, 16), 77, dtype)
    run(text.format(dtype=dtype), interpreted, A=a, B=b, C=results)
    np.testing.assert_array_equal(results, expected(a, b))


@pytest.mark.parametrize("interpreted", [False, True], ids=["native", "interpreter"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_rounded_up(dtype: str, interpreted: bool) -> None:
    text = (
        EACH.split("    for i")[0]
        + "    for i in range(16):\n        C[0, i] = T.ceildiv(A[i], B[i])\n    C[1, 0] = T.ceildiv(A[0], B[3] - B[3])\n"
    )
    a, b = np.arange(16).astype(dtype), np.array([0, 1, 3, 5] * 4, dtype)
    results = np.full((4, 16), 77, dtype)
    run(text.format(dtype=dtype), interpreted, A=a, B=b, C=results)
    np.testing.assert_array_equal(results[0], np.where(b, -(-np.arange(16) // np.maximum(b, 1).astype(int)), 0))
    assert results[1, 0] == 0


@pytest.mark.parametrize("interpreted", [False, True], ids=["native", "interpreter"])
@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
@pytest.mark.parametrize("divisor", [0, -1])
def test_scalars(dtype: str, divisor: int, interpreted: bool) -> None:
    # The numbers of indices do not wrap in TIR, so that the least one is not divided.
    a, b = -7, divisor
    results = np.full(4, 77, dtype)
    run(SCALARS.format(dtype=dtype), interpreted, a=a, b=b, C=results)
    np.testing.assert_array_equal(results, expected(np.array([a], dtype), np.array([b], dtype))[:, 0])


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8"])
@pytest.mark.parametrize("operator", ["divide", "floor_divide", "mod", "floor_mod", "trunc_divide", "trunc_mod"])
def test_relay(operator: str, dtype: str) -> None:
    text = f'#[version = "0.0.5"]\ndef @main(%a: Tensor[(16), {dtype}], %b: Tensor[(16), {dtype}]) {{ {operator}(%a, %b) }}'
    native, interpreted = (
        mirstack.compile(mirstack.parse(text), target)(*operands(dtype)) for target in ("cpu", "interp")
    )
    np.testing.assert_array_equal(native, interpreted)


@pytest.mark.parametrize("cpu", [None, "haswell", "x86-64"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_remainders_of_floats_are_exact(dtype: str, cpu: str | None) -> None:
    """Quotients from tiny to huge, multiples, zeros, what is denormal, infinite and NaN, side by side and apart, as numpy has them."""
    rng = np.random.default_rng(0)
    limits = np.finfo(np.dtype(dtype))
    special = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        3.0,
        np.inf,
        -np.inf,
        np.nan,
        limits.max,
        -limits.max,
        limits.tiny,
        -limits.smallest_subnormal,
    ]
    pairs = np.array([(a, b) for a in special for b in special])
    few = [rng.standard_normal(400), rng.integers(-30, 30, 400) / 8, 3 * np.exp2(rng.uniform(-40, 40, 400))]
    many = [(np.exp2(rng.uniform(-30, 30, 400)), few[1] + 4.125), (few[1], few[2]), (few[0] * 1e7, few[0][::-1])]
    # A quotient just below a whole number is rounded to that.
    ones = np.nextafter((rng.integers(1, 1000, 400) * few[0]).astype(dtype), np.array(-np.inf, dtype))
    a = np.concatenate([pairs[:, 0], *(x for x, _ in many), ones]).astype(dtype)
    b = np.concatenate([pairs[:, 1], *(y for _, y in many), few[0]]).astype(dtype)
    text = f"""#[version = "0.0.5"]
def @main(%a: Tensor[({len(a)}), {dtype}], %b: Tensor[({len(a)}), {dtype}]) {{ (mod(%a, %b), floor_mod(%a, %b)) }}"""
    found = mirstack.compile(mirstack.parse(text), cpu=cpu)(a, b)
    with np.errstate(all="ignore"):
        for result, wanted in zip(found, (np.fmod(a, b), np.remainder(a, b)), strict=True):
            np.testing.assert_array_equal(result, wanted)
            number = ~np.isnan(wanted)
            np.testing.assert_array_equal(np.signbit(result)[number], np.signbit(wanted)[number])


SIZES = """
@T.prim_func
def main(a: T.handle, b: T.handle):
    n = T.int32(is_size_var=True)
    m = T.int32(is_size_var=True)
    A = T.match_buffer(a, (n,), "int32")
    B = T.match_buffer(b, (m,), "int32")
    for i in range(m):
        B[i] = A[{index}]
"""


@pytest.mark.parametrize(
    ("index", "message"),
    [
        ("i % n", "@main reads along dimension 0 of 'A', which has no elements"),
        ("i // n", "@main reads outside of dimension 0 of 'A': i // n is not below n, or is negative"),
    ],
)
def test_indices_divided_by_an_empty_size(index: str, message: str) -> None:
    program = mirstack.compile(mirstack.parse(SIZES.format(index=index)))
    results = np.zeros(4, np.int32)
    program(np.arange(1, 4, dtype=np.int32), results)
    np.testing.assert_array_equal(results, [1, 2, 3, 1] if index == "i % n" else [1, 1, 1, 2])
    with pytest.raises(MirError, match=re.escape(message)):
        program(np.zeros(0, np.int32), results)
