"""float8, float4, int4 and int2: every number casts alike in native code, in the interpreter and in ml_dtypes."""

from __future__ import annotations

import itertools
from typing import Any

import mirstack
import ml_dtypes
import numpy as np
import pytest

FLOATS = ("e4m3_float8", "e5m2_float8", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn")
INTEGERS = ("int4", "uint4", "int2", "uint2")
OTHERS = ("float32", "float64", "float16", "bfloat16", "int8", "uint8", "int32", "int64", "uint16", "bool")


def numpy_name(dtype: str) -> str:
    """Returns ml_dtypes' name of a float."""
    return {"e4m3_float8": "float8_e4m3fn", "e5m2_float8": "float8_e5m2"}.get(dtype, dtype)


def run(text: str, *arrays: Any) -> tuple[Any, Any]:
    """Returns the result of a function in native code and in the interpreter."""
    native, interpreted = (
        mirstack.compile(mirstack.IRModule.of_op(mirstack.parse(text)), target=target)(*arrays)
        for target in ("cpu", "interp")
    )
    return native, interpreted


def assert_same(found: Any, expected: Any) -> None:
    """Asserts equal dtypes and equal numbers, NaN for NaN, and the same zeros."""
    assert found.dtype == expected.dtype
    if found.dtype.name.startswith(("float", "bfloat")):
        found, expected = found.astype(np.float64), expected.astype(np.float64)
        np.testing.assert_array_equal(np.signbit(found)[found == 0], np.signbit(expected)[expected == 0])
    np.testing.assert_array_equal(found, expected)


def all_of(dtype: str) -> Any:
    """Returns every number of a narrow dtype."""
    kind = np.dtype(getattr(ml_dtypes, numpy_name(dtype)))
    if dtype in INTEGERS:
        return np.arange(
            *((-8, 8) if dtype == "int4" else (0, 16) if dtype == "uint4" else (-2, 2) if dtype == "int2" else (0, 4))
        ).astype(kind)
    return np.arange(16 if dtype == "float4_e2m1fn" else 256).astype(np.uint8).view(kind)


def floats32() -> Any:
    """Returns numbers of every exponent, and those that are half between two of a narrow dtype and beside that."""
    upper = np.arange(1 << 16, dtype=np.uint32) << 16
    with np.errstate(all="ignore"):
        return np.concatenate([upper, upper + 1, upper - 1, upper + 0x8000]).view(np.float32)


@pytest.mark.parametrize("dtype", FLOATS)
def test_every_float32_is_rounded_as_by_ml_dtypes(dtype: str) -> None:
    x = floats32()
    with np.errstate(all="ignore"):
        expected = x.astype(getattr(ml_dtypes, numpy_name(dtype)))
    for found in run(f'def @main(%x: Tensor[({len(x)}), float32]) {{ cast(%x, dtype="{dtype}") }}', x):
        assert_same(found, expected)


@pytest.mark.parametrize("source", FLOATS + INTEGERS)
def test_every_number_is_read(source: str) -> None:
    x = all_of(source)
    casts = ", ".join(f'cast(%x, dtype="{target}")' for target in OTHERS)
    native, interpreted = run(f"def @main(%x: Tensor[({len(x)}), {source}]) {{ ({casts}) }}", x)
    for target, found, expected in zip(OTHERS, native, interpreted, strict=True):
        assert_same(found, expected)
        if target == "float32":
            assert_same(found, x.astype(np.float32))


@pytest.mark.parametrize("source", [*OTHERS, "e4m3_float8", "float4_e2m1fn", "int4", "uint2"])
def test_casts_to_narrow_dtypes(source: str) -> None:
    targets = FLOATS + INTEGERS
    if source in FLOATS + INTEGERS:
        x = all_of(source)
        # The sign of NaN is not defined, and so is that of the zero which it becomes in float4.
        x = x[~np.isnan(x.astype(np.float32))]
    else:
        numbers = [0, 1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 127, -1, -2, -3, -8, -9, -100, 250, 300, 1000, 70000]
        floats = (
            [0.3, 0.5, 1.5, 2.5, -0.0, np.inf, -np.inf, np.nan, 1 + 2.0**-4 + 2.0**-30] if "float" in source else []
        )
        with np.errstate(all="ignore"):
            x = np.array(numbers + floats, np.float64)
            x = x.astype(ml_dtypes.bfloat16 if source == "bfloat16" else source)
    casts = ", ".join(f'cast(%x, dtype="{target}")' for target in targets)
    native, interpreted = run(f"def @main(%x: Tensor[({len(x)}), {source}]) {{ ({casts}) }}", x)
    for found, expected in zip(native, interpreted, strict=True):
        assert_same(found, expected)


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS)
def test_moving_elements(dtype: str) -> None:
    x = np.resize(all_of(dtype), (4, 6))
    text = f"""def @main(%x: Tensor[(4, ?), {dtype}], %i: Tensor[(2), int32]) {{
      %0 = transpose(%x, axes=[1, 0]);
      %1 = concatenate((%0, %0), axis=1);
      (reshape(%1, newshape=[-1]), take(%x, %i, axis=0), strided_slice(%1, begin=[1, 0], end=[3, 2], strides=[1, 1]))
    }}"""
    both = np.concatenate([x.T, x.T], 1)
    expected = (both.reshape(-1), x[[3, 1]], both[1:3, 0:2])
    for results in run(text, x, np.array([3, 1], "int32")):
        for found, each in zip(results, expected, strict=True):
            assert_same(found, each)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("operator", ["add", "multiply", "subtract", "maximum", "less", "bitwise_and", "right_shift"])
def test_arithmetic_of_narrow_integers(operator: str, dtype: str) -> None:
    pairs = np.array(list(itertools.product(all_of(dtype), repeat=2)))
    x, y = (np.ascontiguousarray(pairs[:, side]) for side in (0, 1))
    shape = f"Tensor[({len(x)}), {dtype}]"
    native, interpreted = run(f"def @main(%x: {shape}, %y: {shape}) {{ {operator}(%x, %y) }}", x, y)
    assert_same(native, interpreted)


def test_constants_of_narrow_dtypes() -> None:
    text = 'def @main(%x: Tensor[(3), float32]) { add(%x, cast(cast(1.06f, dtype="e4m3_float8"), dtype="float32")) }'
    for found in run(text, np.zeros(3, "float32")):
        np.testing.assert_array_equal(found, np.full(3, 1.0, "float32"))


def test_reductions_of_narrow_dtypes_are_refused() -> None:
    module = mirstack.IRModule.of_op(mirstack.parse("def @main(%x: Tensor[(3), e4m3_float8]) { sum(%x) }"))
    with pytest.raises(mirstack.MirError, match="sum does not compute with e4m3_float8 in native code"):
        mirstack.compile(module)
