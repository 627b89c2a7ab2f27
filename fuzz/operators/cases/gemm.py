"""Cases of convolutions as products of matrices: tiles element by element, convolutions tap by tap."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from hypothesis import strategies as st

from ..sampling import case, seeds, values
from .conv import padding_of


def tiled(w: np.ndarray, across: int, depth: int) -> np.ndarray:
    """Returns the weight (H, W, I, O) in tiles."""
    flat = [w[place] for place in np.ndindex(*w.shape[:3])]
    rows = -(-len(flat) // (4 * depth)) * 4
    is_byte = w.dtype.itemsize == 1
    result = np.zeros((-(-w.shape[3] // across), rows, *((across, depth) if is_byte else (depth, across))), w.dtype)
    for (k, row), n in product(enumerate(flat), range(w.shape[3])):
        a, b = k % depth, n % across
        result[(n // across, k // depth, *((b, a) if is_byte else (a, b)))] = row[n]
    return result


@st.composite
def _weights(draw: Any) -> Any:
    shape = (draw(st.integers(1, 3)), 2, draw(st.integers(1, 3)), draw(st.integers(1, 5)))
    attrs = {"tile_N": draw(st.integers(1, 4)), "tile_K": draw(st.integers(1, 4))}
    return attrs, [values(shape, draw(st.sampled_from(("float32", "int8"))), draw(seeds))]


case("nn.contrib_conv2d_gemm_weight_transform", _weights(), lambda a, w: tiled(w, a.tile_N, a.tile_K))


@st.composite
def _convolutions(draw: Any) -> Any:
    tile, (w,) = draw(_weights())
    attrs = {
        "strides": (1, draw(st.integers(1, 2))), "padding": draw(st.sampled_from(((0, 0), (1, 0, 0, 1)))),
        "dilation": (1, draw(st.integers(1, 2))), "channels": w.shape[3], "kernel_size": w.shape[:2],
        "data_layout": "NHWC", "kernel_layout": "HWIO", "out_dtype": "int32" if w.dtype == np.int8 else "float32",
    }  # fmt: skip
    x = values((1, 4, 5, w.shape[2]), w.dtype.name, draw(seeds))
    return attrs, [x, tiled(w, tile["tile_N"], tile["tile_K"])]


def _convolution(a: Any, x: np.ndarray, tiles: np.ndarray) -> np.ndarray:
    (top, left), (bottom, right) = padding_of(a.padding, 2)
    x = np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)))
    is_byte = tiles.dtype.itemsize == 1
    depth, across = tiles.shape[:1:-1] if is_byte else tiles.shape[2:]
    rows = x.shape[1] - (a.kernel_size[0] - 1) * a.dilation[0]
    columns = (x.shape[2] - (a.kernel_size[1] - 1) * a.dilation[1] - 1) // a.strides[1] + 1
    result = np.zeros((1, rows, columns, a.channels))
    for n, (k, (p, q, c)) in product(range(a.channels), enumerate(np.ndindex(*a.kernel_size, x.shape[3]))):
        at = (k % depth, n % across)
        factor = float(tiles[(n // across, k // depth, *(at[::-1] if is_byte else at))])
        for i, j in product(range(rows), range(columns)):
            result[0, i, j, n] += factor * float(x[0, i + p * a.dilation[0], j * a.strides[1] + q * a.dilation[1], c])
    return result.astype(a.out_dtype)


case("nn.contrib_conv2d_gemm_without_weight_transform", _convolutions(), _convolution)
