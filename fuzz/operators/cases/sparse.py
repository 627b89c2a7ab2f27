"""Cases of sparse tensors, indices, windows and signals, by plain loops."""

from __future__ import annotations

import cmath
import math
from itertools import product
from typing import Any

import numpy as np
from hypothesis import strategies as st

from ..sampling import case, seeds, values


@st.composite
def _places(draw: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Draws distinct places of a shape, in row-major order."""
    every = list(product(*map(range, shape)))
    count = draw(st.integers(1, len(every)))
    chosen = sorted(np.random.default_rng(draw(seeds)).permutation(len(every))[:count])
    return np.array([every[n] for n in chosen]).reshape(count, len(shape)).astype(np.int64)


@st.composite
def _fills(draw: Any) -> Any:
    shape = (draw(st.integers(1, 5)), *draw(st.sampled_from(((), (3,), (2, 2)))))
    places = draw(_places(shape))
    return {}, [places, values((len(places),), "int64", draw(seeds)), np.array(shape, np.int64), np.array(7, np.int64)]


def _fill_reference(a: Any, places: np.ndarray, held: np.ndarray, shape: np.ndarray, default: np.ndarray) -> Any:
    every: list[tuple[list[int], int]] = []
    empty = []
    for row in range(shape[0]):
        own = [(p.tolist(), int(v)) for p, v in zip(places, held, strict=True) if p[0] == row]
        empty.append(int(not own))
        every += own or [([row] + [0] * (len(shape) - 1), int(default))]
    return tuple(np.array(x, np.int64) for x in ([p for p, _ in every], [v for _, v in every], empty))


case("sparse_fill_empty_rows", _fills(), _fill_reference, unknown=False)


@st.composite
def _reshapes(draw: Any) -> Any:
    old = draw(st.sampled_from(((2, 3, 4), (6,), (4, 6))))
    size = math.prod(old)
    new = draw(st.sampled_from(((size,), (-1,), (2, -1), (2, size // 2), (1, size // 3, 3), (-1, 2, 1))))
    dtype = draw(st.sampled_from(("int32", "int64")))
    return {}, [draw(_places(old)).astype(dtype), np.array(old, np.int64), np.array(new, np.int64)]


def _reshape_reference(a: Any, places: np.ndarray, old: np.ndarray, new: np.ndarray) -> Any:
    shape = np.empty(old).reshape(new).shape
    return np.array([np.unravel_index(np.ravel_multi_index(p, old), shape) for p in places], places.dtype), np.array(
        shape, new.dtype
    )


case("sparse_reshape", _reshapes(), _reshape_reference, unknown=False)


@st.composite
def _indexings(draw: Any) -> Any:
    rank = draw(st.integers(1, 3))
    shape = tuple(draw(st.integers(1, 4)) for _ in range(rank))
    data = values(shape, draw(st.sampled_from(("float32", "int8"))), draw(seeds))
    count = draw(st.integers(1, rank))
    places = draw(st.sampled_from(((), (3,), (2, 3))))
    indices = []
    for axis in range(count):
        own = places[draw(st.integers(0, len(places))) :]
        dims = [1 if draw(st.booleans()) else d for d in own]
        indices.append(
            values(dims, draw(st.sampled_from(("int32", "int64"))), draw(seeds), -shape[axis], shape[axis] - 1)
        )
    return {}, [(data, *indices)]


def _indexing_reference(a: Any, xs: Any) -> np.ndarray:
    data, *indices = xs
    result = [data[at] for at in zip(*(x.reshape(-1).tolist() for x in np.broadcast_arrays(*indices)), strict=True)]
    shape = (*np.broadcast_shapes(*(x.shape for x in indices)), *data.shape[len(indices) :])
    return np.array(result, data.dtype).reshape(shape)


case("adv_index", _indexings(), _indexing_reference)


@st.composite
def _windows(draw: Any) -> Any:
    shape = draw(st.lists(st.integers(2, 5), min_size=1, max_size=3))
    axis = draw(st.integers(0, len(shape) - 1))
    attrs = {
        "axis": axis - (len(shape) if draw(st.booleans()) else 0),
        "window_shape": tuple(draw(st.integers(1, d)) for d in shape[axis:]),
        "strides": tuple(draw(st.integers(1, 3)) for _ in shape[axis:]),
    }
    return attrs, [values(shape, "float32", draw(seeds))]


def _window_reference(a: Any, x: np.ndarray) -> np.ndarray:
    axis = a.axis % x.ndim
    counts = [(d - w) // s + 1 for d, w, s in zip(x.shape[axis:], a.window_shape, a.strides, strict=True)]
    result = np.empty((*x.shape[:axis], *counts, *a.window_shape), x.dtype)
    for place in product(*map(range, counts)):
        cut = tuple(slice(p * s, p * s + w) for p, s, w in zip(place, a.strides, a.window_shape, strict=True))
        result[(*[slice(None)] * axis, *place)] = x[(*[slice(None)] * axis, *cut)]
    return result


case("sliding_window", _windows(), _window_reference)


@st.composite
def _products(draw: Any) -> Any:
    shape = (2, 3, 2)
    axes = draw(st.sampled_from(((1,), (0,), (0, 2), (2, 1))))
    sizes = [shape[a] for a in axes]
    attrs = {"axes": axes, "is_lshift_required": draw(st.booleans()), "is_rshift_required": draw(st.booleans())}
    x = np.random.default_rng(draw(seeds)).integers(-1000, 1000, shape).astype(np.int32)
    multiplier = np.random.default_rng(draw(seeds)).integers(2**30, 2**31 - 1, sizes).astype(np.int32)
    return attrs, [x, multiplier, values(sizes, "int32", draw(seeds), 0, 3), values(sizes, "int32", draw(seeds), 0, 3)]


def _product_reference(
    a: Any, x: np.ndarray, multiplier: np.ndarray, left: np.ndarray, right: np.ndarray
) -> np.ndarray:
    result = np.empty_like(x)
    for place in np.ndindex(*x.shape):
        at = tuple(place[axis] for axis in a.axes)
        value = int(x[place]) * int(multiplier[at]) * 2 ** (int(left[at]) if a.is_lshift_required else 0)
        result[place] = math.floor(value / 2 ** (31 + (int(right[at]) if a.is_rshift_required else 0)) + 0.5)
    return result


case("fixed_point_multiply_per_axis", _products(), _product_reference)


@st.composite
def _signals(draw: Any) -> Any:
    shape = (*draw(st.sampled_from(((), (2,)))), draw(st.integers(1, 7)))
    dtype = draw(st.sampled_from(("float32", "float64")))
    return {"inverse": draw(st.booleans())}, [values(shape, dtype, draw(seeds)), values(shape, dtype, draw(seeds))]


def _signal_reference(a: Any, real: np.ndarray, imaginary: np.ndarray) -> Any:
    size, sign = real.shape[-1], 1 if a.inverse else -1
    rows = (real + 1j * imaginary).reshape(-1, size)
    turned = [
        [sum(v * cmath.exp(sign * 2j * math.pi * n * k / size) for k, v in enumerate(row)) for n in range(size)]
        for row in rows
    ]
    result = np.array(turned).reshape(real.shape) / (size if a.inverse else 1)
    return result.real.astype(real.dtype), result.imag.astype(real.dtype)


case("dft", _signals(), _signal_reference, loose=5)


@st.composite
def _transforms(draw: Any) -> Any:
    size = draw(st.integers(1, 5))
    attrs = {
        "n_fft": size, "hop_length": draw(st.integers(1, 3)), "win_length": draw(st.integers(1, size)),
        "normalized": draw(st.booleans()), "onesided": draw(st.booleans()),
    }  # fmt: skip
    shape = (*draw(st.sampled_from(((), (2,)))), draw(st.integers(size, 8)))
    window = values((size,), draw(st.sampled_from(("float32", "int32"))), draw(seeds))
    return attrs, [values(shape, "float32", draw(seeds)), window]


def _transform_reference(a: Any, x: np.ndarray, window: np.ndarray) -> np.ndarray:
    rows = x.reshape(-1, x.shape[-1])
    frames, frequencies = (
        range(0, x.shape[-1] - a.n_fft + 1, a.hop_length),
        range(a.n_fft // 2 + 1 if a.onesided else a.n_fft),
    )
    result = np.zeros((len(rows), len(frequencies), len(frames), 2))
    for n, f, (m, start) in product(range(len(rows)), frequencies, enumerate(frames)):
        terms = [
            float(window[k]) * float(rows[n, start + k]) * cmath.exp(-2j * math.pi * f * k / a.win_length)
            for k in range(a.win_length)
        ]
        value = sum(terms) / (math.sqrt(a.n_fft) if a.normalized else 1)
        result[n, f, m] = value.real, value.imag
    return result.reshape(*x.shape[:-1], *result.shape[1:]).astype(x.dtype)


case("stft", _transforms(), _transform_reference, loose=5)
