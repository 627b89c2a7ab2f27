"""ONNX operators of indices against onnxruntime: open sizes, negative axes and indices, dtypes, computed arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from frontends.onnx.against_onnxruntime import check

pytestmark = pytest.mark.extra
RNG = np.random.default_rng(0)


def ints(*values: Any, dtype: Any = np.int64) -> Any:
    return np.array(values, dtype)


def image(*shape: int, dtype: Any = np.float32) -> Any:
    return (np.random.default_rng(0).normal(size=shape) * 10).astype(dtype)


@pytest.mark.parametrize("open_axes", [{}, {0: [0, 1]}])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("constants", [(1,), ()])
def test_gather(axis: int, open_axes: Any, constants: Any) -> None:
    for at in (ints([0, -1], [1, -3]), ints(2), np.array(-2, np.int32), ints(dtype=np.int64)):
        check("Gather", [image(3, 4), at], axis=axis, constants=constants, open_axes=open_axes, interpreted=True)


@pytest.mark.parametrize("dtype", [np.float16, np.int64, np.bool_, np.uint8])
def test_gather_of_dtypes(dtype: Any) -> None:
    check("Gather", [image(3, 4, dtype=dtype), ints(-1, 0)], axis=1, open_axes={0: [1], 1: [0]})


@pytest.mark.parametrize("open_axes", [{}, {0: [0, 1]}, {0: [0], 1: [1]}])
def test_gather_elements_of_fewer_indices(open_axes: Any) -> None:
    at = np.random.default_rng(1).integers(-3, 3, (2, 5, 1))
    check("GatherElements", [image(3, 3, 2), at[:, :2].copy()], axis=0, open_axes=open_axes, interpreted=True)
    check("GatherElements", [image(3, 4, 2), at[:, :4].copy()], axis=0, constants=[1], open_axes=open_axes)


@pytest.mark.parametrize("axis", [0, -1])
def test_gather_elements(axis: int) -> None:
    at = ints([0, -1, 1], [2, 0, -2])
    check("GatherElements", [image(3, 3)[: at.shape[0]] if axis else image(3, 3), at], axis=axis, open_axes={0: [0]})


@pytest.mark.parametrize(
    ("batch", "at"), [(0, [[0, 1], [-1, 0]]), (1, [[[1], [0]], [[-1], [2]]]), (2, [[[0], [1], [2]], [[3], [-1], [0]]])]
)
def test_gather_nd(batch: int, at: Any) -> None:
    check("GatherND", [image(2, 3, 4), ints(*at)], batch_dims=batch, open_axes={0: [0], 1: [0]}, interpreted=True)
    check("GatherND", [image(2, 3, 4), ints(*at)], batch_dims=batch, constants=[1])


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_scatter_elements(axis: int, reduction: str) -> None:
    at = ints([0, 2, 1], [1, -1, 2]) if reduction != "none" else ints([0, 2, 1], [1, 0, 2])
    inputs = [image(3, 4), at, image(2, 3)]
    check("ScatterElements", inputs, axis=axis, reduction=reduction, open_axes={0: [0]}, interpreted=True)


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
def test_scatter_nd(reduction: str) -> None:
    inputs = [image(4, 3), ints([0], [-1], [2]), image(3, 3)]
    check("ScatterND", inputs, reduction=reduction, open_axes={0: [0], 1: [0], 2: [0]}, interpreted=True)
    check("ScatterND", inputs, reduction=reduction, opset=18)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("constants", [(1, 2), ()])
@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_one_hot(axis: int, constants: Any, dtype: Any) -> None:
    at = np.array([[0, -1, 3], [5, -5, -7]], np.float32 if dtype == np.float32 else np.int64)
    inputs = [at, np.array(5, at.dtype), np.array([2, 7], dtype)]
    check("OneHot", inputs, axis=axis, constants=constants, open_axes={0: [0]}, interpreted=True)


@pytest.mark.parametrize("dtype", [np.float32, np.bool_, np.int64])
def test_non_zero(dtype: Any) -> None:
    data = np.array([[0, 1, 2], [3, 0, 0]], dtype)
    check("NonZero", [data])
    check("NonZero", [data], open_axes={0: [0, 1]}, interpreted=True)


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_compress(axis: Any) -> None:
    more = {} if axis is None else {"axis": axis}
    for mask in ([True, False, True], [False, True]):
        check("Compress", [image(3, 4), np.array(mask)], open_axes={0: [0], 1: [0]}, interpreted=True, **more)


@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("k", [0, 1, 3])
def test_top_k(k: int, axis: int, largest: int) -> None:
    data = RNG.integers(0, 4, (5, 6)).astype(np.float32)
    for constants in ((1,), ()):
        for open_axes in ({}, {0: [0, 1]}):
            check(
                "TopK",
                [data, ints(k)],
                outputs=2,
                axis=axis,
                largest=largest,
                constants=constants,
                open_axes=open_axes,
                interpreted=True,
            )


@pytest.mark.parametrize("dtype", [np.int64, np.float64, np.int32])
def test_top_k_of_dtypes(dtype: Any) -> None:
    check("TopK", [image(3, 7, dtype=dtype), ints(4)], outputs=2)
    check("TopK", [image(3, 7, dtype=dtype), ints(4)], outputs=2, constants=[1], open_axes={0: [0, 1]})


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("is_sorted", [0, 1])
def test_unique(axis: Any, is_sorted: int) -> None:
    data = RNG.integers(0, 2, (6, 3)).astype(np.float32)
    more = {} if axis is None else {"axis": axis}
    check("Unique", [data], outputs=4, sorted=is_sorted, interpreted=True, **more)
    check("Unique", [data], outputs=4, sorted=is_sorted, open_axes={0: [0]}, **more)


def test_unique_of_integers() -> None:
    check("Unique", [RNG.integers(0, 3, 20)], outputs=[True, False, True, False])


@pytest.mark.parametrize(("time", "batch"), [(0, 1), (1, 0)])
def test_reverse_sequence(time: int, batch: int) -> None:
    lengths = ints(1, 3, 4) if batch == 0 else ints(2, 3, 1, 2)
    check("ReverseSequence", [image(3, 4, 2), lengths], time_axis=time, batch_axis=batch, open_axes={0: [0, 1], 1: [0]})
