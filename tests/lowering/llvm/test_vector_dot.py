"""T.vector_dot: products of groups of lanes, exactly, by whatever instructions a processor has."""

from __future__ import annotations

from typing import Any

import mirstack
import ml_dtypes
import numpy as np
import pytest
from mirstack.support.diagnostics import MirError
from mirstack.support.target import named

CPUS = (None, "haswell", "x86-64") if named("").arch == "x86_64" else (None,)


def kernel(lanes: int, group: int, a: str, b: str, sums: str) -> str:
    """C[i] += sum of A[i * group + j] * B[i * group + j]."""
    n = lanes * group
    return f"""
@T.prim_func
def main(A: T.Buffer(({n},), "{a}"), B: T.Buffer(({n},), "{b}"), C: T.Buffer(({lanes},), "{sums}")):
    C[0:{lanes}] = T.vector_dot(C[0:{lanes}], A[0:{n}], B[0:{n}])
"""


def draw(dtype: str, count: int, seed: int) -> np.ndarray[Any, Any]:
    """Random numbers, the greatest and the least of the type among them."""
    rng = np.random.default_rng(seed)
    if dtype == "bfloat16":
        return rng.standard_normal(count).astype(ml_dtypes.bfloat16)
    if not dtype.startswith(("int", "uint")):
        return rng.standard_normal(count).astype(dtype)
    limits = np.iinfo(dtype)
    values = rng.integers(limits.min, limits.max, count, endpoint=True).astype(dtype)
    values[: count // 4] = limits.max
    values[count // 4 : count // 2] = limits.min
    return values


@pytest.mark.parametrize(("target", "cpu"), [("interp", None), *(("cpu", cpu) for cpu in CPUS)])
@pytest.mark.parametrize("signs", ["uu", "us", "su", "ss"])
@pytest.mark.parametrize(
    ("lanes", "group"), [(16, 4), (8, 4), (4, 4), (48, 4), (12, 4), (16, 2), (8, 2), (6, 4), (5, 3)]
)
def test_bytes_are_exact(lanes: int, group: int, signs: str, target: Any, cpu: str | None) -> None:
    a, b = ("uint8" if sign == "u" else "int8" for sign in signs)
    x, y, c = draw(a, lanes * group, 0), draw(b, lanes * group, 1)[::-1].copy(), draw("int32", lanes, 2)
    products = (x.astype("int64") * y).reshape(lanes, group).sum(1)
    expected = (c + products).astype("int32")
    mirstack.compile(mirstack.parse(kernel(lanes, group, a, b, "int32")), target, cpu=cpu)(x, y, c)
    np.testing.assert_array_equal(c, expected)


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize(("lanes", "group"), [(16, 2), (8, 2), (4, 2), (32, 2), (6, 2), (16, 1), (4, 3)])
@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "float16"])
def test_floats_are_summed_in_float32(dtype: str, lanes: int, group: int, cpu: str | None) -> None:
    x, y, c = draw(dtype, lanes * group, 0), draw(dtype, lanes * group, 1), draw("float32", lanes, 2)
    expected = c + (x.astype("float64") * y.astype("float64")).reshape(lanes, group).sum(1)
    mirstack.compile(mirstack.parse(kernel(lanes, group, dtype, dtype, "float32")), cpu=cpu)(x, y, c)
    np.testing.assert_allclose(c, expected, rtol=1e-5, atol=1e-5)


def test_wide_integers_wrap() -> None:
    x, y, c = draw("int32", 8, 0), draw("int32", 8, 1), draw("int32", 4, 2)
    expected = (c + (x.astype("int64") * y).reshape(4, 2).sum(1)).astype("int32")
    mirstack.compile(mirstack.parse(kernel(4, 2, "int32", "int32", "int32")))(x, y, c)
    np.testing.assert_array_equal(c, expected)


@pytest.mark.parametrize(
    ("a", "b", "sums"),
    [("int8x16", "int8x12", "int32x4"), ("int8x15", "int8x15", "int32x4")],
)
def test_groups_must_fit(a: str, b: str, sums: str) -> None:
    (x, n), (y, m), (z, k) = (t.split("x") for t in (a, b, sums))
    text = f"""
@T.prim_func
def main(A: T.Buffer(({n},), "{x}"), B: T.Buffer(({m},), "{y}"), C: T.Buffer(({k},), "{z}")):
    C[0:{k}] = T.vector_dot(C[0:{k}], A[0:{n}], B[0:{m}])
"""
    shown = f"not {sums}, {a}, {b}"
    with pytest.raises(MirError, match=f"a group of lanes for each, {shown}(.|\n)*\nnote: such as T.vector_dot"):
        mirstack.compile(mirstack.parse(text))


def test_integers_are_not_mixed_with_floats() -> None:
    text = kernel(4, 4, "int8", "int8", "float32")
    with pytest.raises(MirError, match=r"T.vector_dot takes integers, or floats(.|\n)*\nnote: cast one side"):
        mirstack.compile(mirstack.parse(text))
