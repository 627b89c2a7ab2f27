"""Scalar ops and intrinsics under the TIR interpreter: each on arrays (a loop as an axis) and on single values (serial)."""

from __future__ import annotations

import math
import operator

import ml_dtypes
import numpy as np
import pytest
from mirstack.dialects.tir import PrimFuncOp
from mirstack.dialects.tir.interpreter import interpret_prim_func
from mirstack.parser import parse_mir


def elementwise(expression: str, result: str, **operands: np.ndarray) -> np.ndarray:
    """`expression` of a, b, … for each element, computed both ways, which must agree."""
    size = len(next(iter(operands.values())))
    params = [f'{name.upper()}: T.Buffer(({size},), "{value.dtype.name}")' for name, value in operands.items()]
    text = f'@T.prim_func\ndef f({", ".join(params)}, R: T.Buffer(({size},), "{result}"), S: T.Buffer(({size},), "{result}")):\n'
    load = expression
    for name in operands:
        load = load.replace(f"${name}", f"{name.upper()}[i]")
    text += f"    for i in range({size}):\n        R[i] = {load}\n"
    for i in range(size):
        text += f"    S[{i}] = {load.replace('[i]', f'[{i}]')}\n"
    module = parse_mir(text)
    func = next(op for op in module.body.block.ops if isinstance(op, PrimFuncOp))
    dtype = np.dtype(ml_dtypes.bfloat16 if result == "bfloat16" else result)
    args = {name.upper(): value for name, value in operands.items()}
    args |= {"R": np.zeros(size, dtype), "S": np.zeros(size, dtype)}
    interpret_prim_func(func, args, module)
    np.testing.assert_array_equal(args["R"].astype(np.float64), args["S"].astype(np.float64))
    return args["R"]


def integers(dtype: str) -> np.ndarray:
    limits = np.iinfo(dtype)
    low = [limits.min, limits.min + 1, -7, -2, -1] if limits.min else []
    return np.array([*low, 0, 1, 2, 3, 7, limits.max - 1, limits.max], dtype)


INTS = ["int8", "uint8", "int16", "int32", "uint32", "int64"]


@pytest.mark.parametrize("dtype", INTS)
@pytest.mark.parametrize("op", ["+", "-", "*"])
def test_integers_wrap_around(dtype, op):
    a = integers(dtype)
    b = a[::-1].copy()
    bits = np.iinfo(dtype).bits
    function = {"+": operator.add, "-": operator.sub, "*": operator.mul}[op]
    exact = [function(x, y) % (1 << bits) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    expected = np.array(exact, np.uint64).astype(f"uint{bits}").view(dtype)
    np.testing.assert_array_equal(elementwise(f"$a {op} $b", dtype, a=a, b=b), expected)


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
@pytest.mark.parametrize("divisor", [-5, -2, 1, 3])
def test_divisions(dtype, divisor):
    a = np.arange(-11, 12, dtype=dtype)
    b = np.full_like(a, divisor)
    floor = elementwise("$a // $b", dtype, a=a, b=b)
    np.testing.assert_array_equal(floor, [math.floor(x / divisor) for x in a.tolist()])
    np.testing.assert_array_equal(elementwise("$a % $b", dtype, a=a, b=b), a - b * floor)
    trunc = elementwise("T.Div($a, $b)", dtype, a=a, b=b)
    np.testing.assert_array_equal(trunc, [math.trunc(x / divisor) for x in a.tolist()])
    np.testing.assert_array_equal(elementwise("T.truncmod($a, $b)", dtype, a=a, b=b), a - b * trunc)


@pytest.mark.parametrize("dtype", INTS)
def test_comparison_and_extremes(dtype):
    a = integers(dtype)
    b = a[::-1].copy()
    for op, function in (
        ("<", np.less),
        ("<=", np.less_equal),
        ("==", np.equal),
        ("!=", np.not_equal),
        (">", np.greater),
    ):
        np.testing.assert_array_equal(elementwise(f"$a {op} $b", "bool", a=a, b=b), function(a, b))
    np.testing.assert_array_equal(elementwise("T.min($a, $b)", dtype, a=a, b=b), np.minimum(a, b))
    np.testing.assert_array_equal(elementwise("T.max($a, $b)", dtype, a=a, b=b), np.maximum(a, b))
    np.testing.assert_array_equal(elementwise("T.Select($a < $b, $a, $b)", dtype, a=a, b=b), np.minimum(a, b))


@pytest.mark.parametrize("source", ["int8", "uint8", "int32", "int64", "bool"])
@pytest.mark.parametrize("target", ["int8", "uint8", "int32", "float32", "float64", "bool"])
def test_casts_of_integers(source, target):
    a = np.array([False, True]) if source == "bool" else integers(source)
    expected = a != 0 if target == "bool" else a.astype(target)
    np.testing.assert_array_equal(elementwise(f'T.Cast("{target}", $a)', target, a=a), expected)


def test_casts_of_floats_truncate():
    a = np.array([-2.7, -0.5, 0.5, 2.7, 1e6], np.float32)
    np.testing.assert_array_equal(elementwise('T.Cast("int32", $a)', "int32", a=a), [-2, 0, 0, 2, 1000000])
    half = elementwise('T.Cast("bfloat16", $a)', "bfloat16", a=a)
    np.testing.assert_array_equal(half, a.astype(ml_dtypes.bfloat16))


def test_float32_rounds_each_step():
    a = np.array([1e8, 1.0, 3.3], np.float32)
    b = np.array([1.0, 1e-9, 0.1], np.float32)
    np.testing.assert_array_equal(elementwise("($a + $b) - $a", "float32", a=a, b=b), (a + b) - a)


def test_extremes_of_nan_are_nan():
    a = np.array([np.nan, 1.0], np.float32)
    b = np.array([1.0, np.nan], np.float32)
    np.testing.assert_array_equal(elementwise("T.min($a, $b)", "float32", a=a, b=b), [np.nan, np.nan])
    np.testing.assert_array_equal(elementwise("T.max($a, $b)", "float32", a=a, b=b), [np.nan, np.nan])


BITS = [
    ("T.bitwise_and($a, $b)", lambda a, b: a & b),
    ("T.bitwise_or($a, $b)", lambda a, b: a | b),
    ("T.bitwise_xor($a, $b)", lambda a, b: a ^ b),
    ("T.bitwise_not($a)", lambda a, b: ~a),
    ("T.shift_left($a, $b & 7)".replace("$b & 7", "T.bitwise_and($b, 7)"), lambda a, b: a << (b & 7)),
    ("T.shift_right($a, T.bitwise_and($b, 7))", lambda a, b: a >> (b & 7)),
    ("T.popcount($a)", lambda a, b: np.bitwise_count(a.view(np.uint32)).astype(np.int32)),
]


@pytest.mark.parametrize("text, function", BITS, ids=[t for t, _ in BITS])
def test_bits(text, function):
    a = integers("int32")
    b = a[::-1].copy()
    np.testing.assert_array_equal(elementwise(text, "int32", a=a, b=b), function(a, b))


def test_leading_zeros():
    a = np.array([1, 2, 255, 2**31 - 1, -1], np.int32)
    np.testing.assert_array_equal(elementwise("T.clz($a)", "int32", a=a), [31, 30, 24, 1, 0])


def test_q_multiply_shift_rounds_half_up():
    a = np.array([-5, -1, 0, 1, 3, 100, 12345], np.int32)
    multiplier, q, s = 1395864371, 31, -2
    exact = [(x * multiplier + (1 << (q - s - 1))) >> (q - s) for x in a.tolist()]
    np.testing.assert_array_equal(elementwise(f"T.q_multiply_shift($a, {multiplier}, {q}, {s})", "int32", a=a), exact)


def test_reinterpret():
    a = np.array([1.0, -2.5, 0.0], np.float32)
    np.testing.assert_array_equal(elementwise('T.reinterpret("int32", $a)', "int32", a=a), a.view(np.int32))


MATH = {
    "exp": np.exp, "log": np.log, "sqrt": np.sqrt, "tanh": np.tanh, "sin": np.sin, "cos": np.cos, "floor": np.floor,
    "ceil": np.ceil, "trunc": np.trunc, "fabs": np.abs, "atan": np.arctan, "log2": np.log2, "exp2": np.exp2, "nearbyint": np.rint,
    "rsqrt": lambda a: 1 / np.sqrt(a), "sigmoid": lambda a: 1 / (1 + np.exp(-a)), "erf": np.vectorize(math.erf),
}  # fmt: skip


@pytest.mark.parametrize("name", MATH)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_mathematics(name, dtype):
    a = np.array([0.1, 0.5, 1.5, 2.5, 3.75], dtype)
    actual = elementwise(f"T.{name}($a)", dtype, a=a)
    np.testing.assert_allclose(actual, MATH[name](a.astype(np.float64)), rtol=1e-6 if dtype == "float32" else 1e-14)


def test_round_goes_away_from_zero():
    a = np.array([-2.5, -1.5, -0.5, 0.49999997, 0.5, 1.5, 2.5], np.float32)
    np.testing.assert_array_equal(elementwise("T.round($a)", "float32", a=a), [-3, -2, -1, 0, 1, 2, 3])


def test_tests_of_floats():
    a = np.array([np.nan, np.inf, -np.inf, 1.0], np.float32)
    for name in ("isnan", "isinf", "isfinite"):
        np.testing.assert_array_equal(elementwise(f"T.{name}($a)", "bool", a=a), getattr(np, name)(a))


def test_external_mathematics():
    a, b = np.array([2.0, 9.0], np.float32), np.array([0.5, 3.0], np.float32)
    np.testing.assert_allclose(elementwise('T.call_pure_extern("float32", "powf", $a, $b)', "float32", a=a, b=b), a**b)
    np.testing.assert_allclose(elementwise("T.atan2($a, $b)", "float32", a=a, b=b), np.arctan2(a, b))
