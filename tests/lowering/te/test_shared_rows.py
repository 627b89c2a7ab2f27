"""Running sums, scatters and binary searches whose rows are shared among threads, beside those that one thread does."""

from __future__ import annotations

from typing import Any

import mirstack
import numpy as np
import pytest
from numpy.typing import NDArray

Array = NDArray[Any]


def run(body: str, threads: int = 2, cpu: str | None = None, **inputs: Array) -> Array:
    params = ", ".join(
        f"%{name}: Tensor[({', '.join(map(str, x.shape))}{',' * (x.ndim == 1)}), {x.dtype}]"
        for name, x in inputs.items()
    )
    module = mirstack.parse(f"def @main({params}) {{ {body} }}")
    return np.asarray(mirstack.compile(module, threads=threads, cpu=cpu)(*inputs.values()))


@pytest.mark.parametrize(("shape", "axis"), [((130, 521), 1), ((70, 31, 33), 1), ((521, 130), 0)])
def test_running_sums(shape: tuple[int, ...], axis: int) -> None:
    x = np.random.default_rng(0).integers(-9, 9, shape).astype("int32")
    np.testing.assert_array_equal(run(f"cumsum(%x, axis={axis})", x=x), np.cumsum(x, axis, "int32"))


@pytest.mark.parametrize(("axis", "rows"), [(1, 300), (1, 200), (0, 300)])
def test_scatter(axis: int, rows: int) -> None:
    rng = np.random.default_rng(1)
    x = rng.integers(0, 9, (300, 250)).astype("int32")
    indices = rng.integers(-x.shape[axis], x.shape[axis], (rows, 250 if axis == 0 else 90)).astype("int64")
    updates = rng.integers(0, 9, indices.shape).astype("int32")
    found = run(f'scatter_elements(%x, %i, %u, axis={axis}, reduction="add")', x=x, i=indices, u=updates)
    expected = x.copy()
    places = list(np.indices(indices.shape))
    places[axis] = indices % x.shape[axis]
    np.add.at(expected, tuple(places), updates)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("cpu", [None, "haswell"])
@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("count", [5, 16, 9000])
def test_search(count: int, right: bool, cpu: str | None) -> None:
    rng = np.random.default_rng(count)
    row, values = np.sort(rng.integers(0, 99, 333)).astype("float32"), rng.integers(-3, 103, count).astype("float32")
    row[-3:], values[::5] = np.nan, np.nan
    found = run(f"searchsorted(%a, %v, right={right})", cpu=cpu, a=row, v=values)
    np.testing.assert_array_equal(found, np.searchsorted(row, values, "right" if right else "left"))


def test_search_of_rows() -> None:
    rng = np.random.default_rng(3)
    rows, values = np.sort(rng.standard_normal((40, 100)), -1), rng.standard_normal((40, 333))
    expected = np.stack([np.searchsorted(a, v) for a, v in zip(rows, values, strict=True)])
    np.testing.assert_array_equal(run("searchsorted(%a, %v)", a=rows, v=values), expected)


def test_search_where_there_is_nothing() -> None:
    module = mirstack.parse("def @main(%a: Tensor[(?), float32], %v: Tensor[(?), float32]) { searchsorted(%a, %v) }")
    found = mirstack.compile(module)
    for size, count in ((0, 3), (0, 20), (4, 0), (1, 35)):
        row, values = np.arange(size, dtype="float32"), np.linspace(-1, 5, count, dtype="float32")
        np.testing.assert_array_equal(found(row, values), np.searchsorted(row, values))
