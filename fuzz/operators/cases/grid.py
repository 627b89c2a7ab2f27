"""Cases of grids, sampling at their places, and correlation: place by place."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
from hypothesis import strategies as st

from ..sampling import case, seeds, use, values
from .conv import padding_of


def _affine_reference(a: Any, x: np.ndarray) -> np.ndarray:
    height, width = a.target_shape
    result = np.empty((len(x), 2, height, width), x.dtype)
    for i, j in product(range(height), range(width)):
        place = np.array([j * (2 - 1e-7) / (width - 1) - 1, i * (2 - 1e-7) / (height - 1) - 1, 1])
        result[:, :, i, j] = x.astype(np.float64) @ place
    return result


_MATRICES = st.tuples(st.integers(1, 2), seeds, st.sampled_from(("float32", "float64"))).map(
    lambda t: values((t[0], 2, 3), t[2], t[1])
)
case(
    "image.affine_grid", use(_MATRICES, target_shape=st.tuples(st.integers(2, 4), st.integers(2, 4))), _affine_reference
)


@st.composite
def _samples(draw: Any) -> Any:
    rank = draw(st.integers(2, 3))
    attrs = {
        "method": draw(st.sampled_from(("bilinear", "nearest", "bicubic")[: 3 if rank == 2 else 2])),
        "layout": ("NCHW", "NCDHW")[rank - 2], "padding_mode": draw(st.sampled_from(("zeros", "border", "reflection"))),
        "align_corners": draw(st.booleans()),
    }  # fmt: skip
    batch, sizes = draw(st.integers(1, 2)), (3, 4, 2)[:rank]
    # Thirds of 64ths hit no pixel's border exactly, where rounding would decide.
    grid = np.random.default_rng(draw(seeds)).integers(-80, 80, (batch, rank, 2, 3, 2)[: rank + 2]) / 64 * 1.37 + 0.013
    return attrs, [values((batch, 2, *sizes), "float32", draw(seeds)), grid.astype(np.float32)]


def _mirror(at: float, low: float, high: float) -> float:
    while at < low or at > high:
        at = 2 * low - at if at < low else 2 * high - at
    return at


def _weight(t: float) -> float:
    t = abs(t)
    if t <= 1:
        return 1.25 * t**3 - 2.25 * t**2 + 1
    return -0.75 * t**3 + 3.75 * t**2 - 6 * t + 3 if t < 2 else 0.0


def _sample_reference(a: Any, x: np.ndarray, grid: np.ndarray) -> np.ndarray:
    sizes = x.shape[2:]

    def inside(at: float, size: int) -> float:
        if a.padding_mode == "reflection":
            at = _mirror(at, 0, size - 1) if a.align_corners else _mirror(at, -0.5, size - 0.5)
        return at if a.padding_mode == "zeros" else min(max(at, 0), size - 1)

    def taps(value: float, size: int) -> list[tuple[float, float]]:
        at = (value + 1) / 2 * (size - 1) if a.align_corners else ((value + 1) * size - 1) / 2
        if a.method == "bicubic":
            return [(inside(math.floor(at) + k, size), _weight(at - math.floor(at) - k)) for k in range(-1, 3)]
        at = inside(at, size)
        if a.method == "nearest":
            return [(round(at), 1.0)]
        return [(math.floor(at), 1 - (at - math.floor(at))), (math.floor(at) + 1, at - math.floor(at))]

    result = np.zeros((len(x), x.shape[1], *grid.shape[2:]))
    for n, *place in product(range(len(x)), *map(range, grid.shape[2:])):
        where = [float(v) for v in grid[(n, slice(None), *place)]][::-1]
        for chosen in product(*(taps(v, size) for v, size in zip(where, sizes, strict=True))):
            pixel = [int(p) for p, _ in chosen]
            if all(0 <= p < size for p, size in zip(pixel, sizes, strict=True)):
                result[(n, slice(None), *place)] += math.prod(w for _, w in chosen) * x[(n, slice(None), *pixel)]
    return result.astype(x.dtype)


case("image.grid_sample", _samples(), _sample_reference, loose=10)


@st.composite
def _correlations(draw: Any) -> Any:
    kernel, reach = draw(st.sampled_from((1, 3))), draw(st.integers(0, 2))
    attrs = {
        "kernel_size": kernel, "max_displacement": reach, "stride1": draw(st.integers(1, 2)),
        "stride2": draw(st.integers(1, 2)), "is_multiply": draw(st.booleans()),
        "padding": draw(st.sampled_from(((3,), (3, 2), (3, 2, 2, 4)))),
    }  # fmt: skip
    shape = (draw(st.integers(1, 2)), 2, 4, 5)
    return attrs, [values(shape, "float32", draw(seeds)), values(shape, "float32", draw(seeds))]


def _correlation_reference(a: Any, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    (top, left), (bottom, right) = padding_of(a.padding, 2)
    x, y = (np.pad(v, ((0, 0), (0, 0), (top, bottom), (left, right))) for v in (x, y))
    radius = a.kernel_size // 2
    border, steps = a.max_displacement + radius, a.max_displacement // a.stride2
    rows, columns = (range(border, size - border, a.stride1) for size in x.shape[2:])
    moves = list(product(range(-steps, steps + 1), repeat=2))
    result = np.zeros((len(x), len(moves), len(rows), len(columns)))

    def patch(v: np.ndarray, n: int, row: int, column: int) -> np.ndarray:
        around = [slice(c - radius, c + radius + 1) for c in (row, column)]
        return v[(n, slice(None), *around)].astype(np.float64)

    for n, (q, (down, over)), (i, row), (j, column) in product(
        range(len(x)), enumerate(moves), enumerate(rows), enumerate(columns)
    ):
        first, second = patch(x, n, row, column), patch(y, n, row + down * a.stride2, column + over * a.stride2)
        result[n, q, i, j] = np.mean(first * second if a.is_multiply else abs(first - second))
    return result.astype(x.dtype)


case("nn.correlation", _correlations(), _correlation_reference)
