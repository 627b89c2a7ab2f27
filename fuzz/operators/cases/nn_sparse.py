"""Cases of sparse matrices in compressed rows, against their dense forms."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from ..sampling import case, seeds, values
from .conv import pack, unpack


@st.composite
def _matrix(draw: Any, rows: int, columns: int, block: tuple[int, int] | None) -> list[np.ndarray]:
    """Data, columns and where rows begin, of a sparse matrix of so many (blocks of) rows and columns."""
    rng = np.random.default_rng(draw(seeds))
    chosen = [np.flatnonzero(rng.random(columns) < 0.5) for _ in range(rows)]
    dtype = draw(st.sampled_from(("int32", "int64")))
    indices = np.concatenate([*chosen, np.zeros(0)]).astype(dtype)
    starts = np.cumsum([0, *map(len, chosen)]).astype("int32")
    return [values((len(indices), *(block or ())), "float32", draw(seeds)), indices, starts]


def full(data: np.ndarray, columns: np.ndarray, starts: np.ndarray, count: int) -> np.ndarray:
    """Returns the matrix with its zeros, of so many (blocks of) columns."""
    height, width = data.shape[1:] or (1, 1)
    result = np.zeros(((len(starts) - 1) * height, count * width))
    for row in range(len(starts) - 1):
        for k in range(starts[row], starts[row + 1]):
            result[row * height : (row + 1) * height, columns[k] * width : (columns[k] + 1) * width] = data[k]
    return result


@st.composite
def _products(draw: Any) -> Any:
    block = draw(st.sampled_from((None, (2, 3))))
    rows, columns = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    dense = values((draw(st.integers(1, 3)), columns * (block or (1, 1))[1]), "float32", draw(seeds))
    return {"sparse_lhs": draw(st.booleans())}, [dense, *draw(_matrix(rows, columns, block))]


def _product(a: Any, dense: np.ndarray, data: np.ndarray, columns: np.ndarray, starts: np.ndarray) -> np.ndarray:
    width = data.shape[2] if data.ndim == 3 else 1
    sparse = full(data, columns, starts, dense.shape[1] // width)
    result = np.array([[np.dot(d, s) for s in sparse] for d in dense.astype(np.float64)])
    return (result.T if a.sparse_lhs else result).astype(np.float32)


case("nn.sparse_dense", _products(), _product)


@st.composite
def _squares(draw: Any) -> Any:
    size = draw(st.integers(1, 4))
    return {}, draw(_matrix(size, size, None))


def _square(a: Any, data: np.ndarray, columns: np.ndarray, starts: np.ndarray) -> Any:
    entries = sorted((int(columns[k]), row, float(data[k])) for row in range(len(starts) - 1) for k in range(starts[row], starts[row + 1]))  # fmt: skip
    new = [sum(c < bound for c, _, _ in entries) for bound in range(len(starts))]
    return (
        np.array([v for *_, v in entries], data.dtype),
        np.array([r for _, r, _ in entries], columns.dtype),
        np.array(new, starts.dtype),
    )


case("nn.sparse_transpose", _squares(), _square, unknown=False)


@st.composite
def _sums(draw: Any) -> Any:
    rows, columns = draw(st.integers(1, 3)), draw(st.integers(1, 4))
    return {}, [values((rows, columns), "float32", draw(seeds)), *draw(_matrix(rows, columns, None))]


case("nn.sparse_add", _sums(), lambda a, x, d, c, s: (x + full(d, c, s, x.shape[1])).astype(np.float32))


@st.composite
def _convolutions(draw: Any) -> Any:
    rows, columns, of = draw(st.integers(1, 2)), draw(st.integers(1, 3)), draw(st.sampled_from(("NHWC", "NCHW")))
    x = values((2, columns * 2, 2, 3), "float32", draw(seeds))
    return {"layout": of}, [pack(x, "NCHW", of), *draw(_matrix(rows, columns, (3, 2)))]


def _convolution(a: Any, x: np.ndarray, data: np.ndarray, columns: np.ndarray, starts: np.ndarray) -> np.ndarray:
    images = unpack(x, "NCHW", a.layout)
    weight = full(data, columns, starts, images.shape[1] // 2)
    result = np.zeros((len(images), len(weight), *images.shape[2:]))
    for n, o, i, j in np.ndindex(*result.shape):
        result[n, o, i, j] = np.dot(weight[o], images[n, :, i, j].astype(np.float64))
    return pack(result.astype(np.float32), "NCHW", a.layout)


case("nn.sparse_conv2d", _convolutions(), _convolution)
