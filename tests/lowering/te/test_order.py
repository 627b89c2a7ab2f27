"""sort and argsort by digits, by ranks and by networks: every dtype, zeros and NaN, equal elements, any axis, on one thread and several."""

from typing import Any

import mirstack
import ml_dtypes
import numpy as np
import pytest
from mirstack.dialects.relay.operators.sorting.bitonic_sort import LaneKeys, columns_of, te_network
from mirstack.dialects.te import builder as te
from mirstack.dialects.te.interpreter import interpret_te_func

FLOATS = ("float16", "bfloat16", "float32", "float64")
DTYPES = (*FLOATS, "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "bool")
SHAPES = (((1,), 0), ((113,), 0), ((3, 70, 5), 1), ((40, 500), -1), ((33, 17), -1), ((2, 300, 3), 1))


def _numbers(dtype: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    if dtype in FLOATS:
        x = rng.standard_normal(shape)
        special = np.array([0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf])
        x = np.where(rng.random(shape) < 0.3, rng.choice(special, shape), x)
        return x.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    if dtype == "bool":
        return rng.random(shape) < 0.5
    limits = np.iinfo(dtype)
    whole = rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    return np.where(rng.random(shape) < 0.5, whole, rng.integers(0, 7, shape).astype(dtype)).astype(dtype)


def _order(x: np.ndarray, axis: int, ascending: bool) -> np.ndarray:
    """The stable order, NaN being the largest number."""

    def of(row: np.ndarray) -> np.ndarray:
        if row.dtype.kind not in "biu":
            keys = [(float(v) != float(v), 0.0 if float(v) != float(v) else float(v)) for v in row]
        else:
            keys = [(False, int(v)) for v in row]
        sign = 1 if ascending else -1
        return np.array(sorted(range(len(row)), key=lambda n: (sign * keys[n][0], sign * keys[n][1])))

    rows = np.moveaxis(x, axis, -1)
    flat = [of(row) for row in rows.reshape(-1, rows.shape[-1])]
    return np.moveaxis(np.array(flat).reshape(rows.shape), -1, axis)


def _check(dtype: str, shape: tuple[int, ...], axis: int, ascending: bool, **options: Any) -> None:
    x = _numbers(dtype, shape, np.random.default_rng(len(shape)))
    dims = ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "")
    how = f"axis={axis}, is_ascend={ascending}"
    text = f"def @main(%x: Tensor[({dims}), {dtype}]) {{ (argsort(%x, {how}), sort(%x, {how})) }}"
    order, in_order = mirstack.compile(mirstack.parse(text), **options)(x)
    expected = _order(x, axis, ascending)
    np.testing.assert_array_equal(order, expected)
    taken = np.take_along_axis(x, expected, axis)
    if dtype in FLOATS:
        in_order, taken = (a.astype(np.float64) for a in (in_order, taken))
    np.testing.assert_array_equal(in_order, taken)


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(dtype: str) -> None:
    _check(dtype, (150,), -1, DTYPES.index(dtype) % 2 == 0)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64", "int8", "uint32", "bool"])
def test_networks(dtype: str) -> None:
    """Rows that fill no whole number of vectors, of a length that is not a power of two, and in the middle axis."""
    _check(dtype, (2, 37, 70), 1, dtype in FLOATS)


@pytest.mark.parametrize("size", [2, 7, 8, 9, 17, 129])
def test_lengths_of_networks(size: int) -> None:
    _check("float32", (3 + size % 3 * 16, size), -1, size % 2 == 0, threads=1 + size % 2)


@pytest.mark.parametrize("shape_and_axis", SHAPES)
def test_shapes(shape_and_axis: tuple[tuple[int, ...], int]) -> None:
    _check("float32", *shape_and_axis, False, threads=2)


@pytest.mark.parametrize("cpu", ["haswell", "x86-64"])
def test_processors(cpu: str) -> None:
    _check("float32", (300,), 0, True, cpu=cpu)
    _check("int32", (700, 31), 1, False, cpu=cpu, threads=2)


def test_open_size() -> None:
    run = mirstack.compile(mirstack.parse("def @main(%x: Tensor[(?), float32]) { argsort(%x, axis=0) }"))
    for size in (0, 1, 5, 1000):
        x = np.random.default_rng(0).integers(0, 50, size).astype("float32")
        np.testing.assert_array_equal(run(x), np.argsort(x, kind="stable"))


def test_networks_are_interpreted() -> None:
    """The statements of a network, with memory of their own, mean the same to the interpreter of TE."""
    x = te.placeholder((5, 9), "float32", "x")
    keys = LaneKeys("float32", ascending=True, places=True)
    columns = columns_of(x, 1, keys)
    assert columns is not None
    function = te.func("main", [x, te_network(columns, keys, "order")])
    rows = np.random.default_rng(0).integers(0, 4, (5, 9)).astype("float32")
    (found,) = (v for k, v in interpret_te_func(function, {"x": rows}).items() if k != "x")
    np.testing.assert_array_equal(found, np.argsort(rows, 1, kind="stable"))
