"""Cases of quantized softmax, leaky ReLU, packed weights and simulated quantization, number by number."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st

from ..sampling import case, seeds, values
from .qnn import BYTES, SCALES, ZERO_POINTS, upward


@st.composite
def _leaks(draw: Any) -> Any:
    x = values((2, draw(st.integers(1, 4))), draw(st.sampled_from(BYTES)), draw(seeds), -20, 20)
    return {"alpha": draw(st.sampled_from((0.25, 0.5)))}, [
        x,
        draw(SCALES),
        draw(ZERO_POINTS),
        draw(SCALES),
        draw(ZERO_POINTS),
    ]


def _leak(a: Any, x: np.ndarray, scale: Any, zero: Any, out_scale: Any, out_zero: Any) -> np.ndarray:
    ratio, alpha = Fraction(float(scale)) / Fraction(float(out_scale)), Fraction(a.alpha)
    result = np.empty(x.shape, np.int64)
    for place, value in np.ndenumerate(x.astype(int)):
        moved = upward((int(value) - int(zero)) * ratio) + int(out_zero)
        below = upward(moved * alpha) + upward(int(out_zero) * (1 - alpha))
        result[place] = below if value < zero else moved
    info = np.iinfo(x.dtype)
    return np.clip(result, info.min, info.max).astype(x.dtype)


case("qnn.leaky_relu", _leaks(), _leak)


@st.composite
def _softmaxes(draw: Any) -> Any:
    shape = (draw(st.integers(1, 3)), draw(st.integers(1, 4)))
    scale = np.array(draw(st.sampled_from((0.03125, 0.125, 0.3, 1.0))), np.float32)
    x = values(shape, "int8", draw(seeds), -100, 100)
    return {"axis": draw(st.sampled_from((-1, 0, 1)))}, [
        x,
        scale,
        draw(ZERO_POINTS),
        np.array(1 / 128, np.float32),
        draw(ZERO_POINTS),
    ]


def _soft_row(row: list[int], scale: float) -> list[int]:
    """The shares of a row, in parts of 128."""
    one = math.floor(1 / scale + 0.5)
    powers = [v + (v >> 1) - (v >> 4) for v in (r - max(row) for r in row)]
    wholes = [min(-p // one, 20) for p in powers]
    parts = [(((p + w * one) >> 1) + one) << (max(wholes) - w) for p, w in zip(powers, wholes, strict=True)]
    return [(2**30 // sum(parts) * p) >> 23 for p in parts]


def _softmax(a: Any, x: np.ndarray, scale: Any, zero: Any, out_scale: Any, out_zero: Any) -> np.ndarray:
    rows = np.moveaxis(x.astype(int) - int(zero), a.axis, -1)
    shares = np.array([_soft_row(row.tolist(), float(scale)) for row in rows])
    return np.clip(np.moveaxis(shares, -1, a.axis) + int(out_zero), -128, 127).astype(np.int8)


case("qnn.softmax", _softmaxes(), _softmax)


@st.composite
def _packed(draw: Any) -> Any:
    units, inner, width = draw(st.integers(1, 2)), draw(st.integers(1, 4)), draw(st.sampled_from((2, 4)))
    x = values((2, inner), draw(st.sampled_from(BYTES)), draw(seeds), -20, 20)
    w = values((units, inner, width), "int8", draw(seeds), -20, 20)
    zero = draw(ZERO_POINTS) if draw(st.booleans()) else values((units * width,), "int32", draw(seeds), -3, 3)
    attrs = {"units": None, "out_dtype": "int32", "weight_layout": f"NC{width}n"}
    return attrs, [x, w, draw(ZERO_POINTS), zero, draw(SCALES), draw(SCALES)]


def _pack_reference(a: Any, x: np.ndarray, w: np.ndarray, x_zero: Any, w_zero: Any, *scales: Any) -> np.ndarray:
    units, inner, width = w.shape
    result = np.empty((len(x), units * width), np.int32)
    for n in range(len(x)):
        for unit in range(units * width):
            zero = int(w_zero[unit]) if w_zero.ndim else int(w_zero)
            result[n, unit] = sum(
                (int(x[n, k]) - int(x_zero)) * (int(w[unit // width, k, unit % width]) - zero) for k in range(inner)
            )
    return result


case("qnn.contrib_dense_pack", _packed(), _pack_reference)


@st.composite
def _simulations(draw: Any) -> Any:
    x = values((2, 3), draw(st.sampled_from(("float32", "float64"))), draw(seeds), -40, 40)
    axis = draw(st.sampled_from((-1, 0)))
    code = np.array(draw(st.integers(0, 3)), np.int32)
    if draw(st.booleans()):
        return {"axis": axis}, [x, code, draw(SCALES), draw(ZERO_POINTS)]
    size = x.shape[axis]
    scale = np.array([draw(SCALES) for _ in range(size)], np.float32)
    return {"axis": axis}, [x, code.reshape(1), scale, values((size,), "int32", draw(seeds))]


def _simulated(is_quantize: bool) -> Any:
    def reference(a: Any, x: np.ndarray, code: np.ndarray, scale: np.ndarray, zero: np.ndarray) -> np.ndarray:
        bounds = {1: (-128, 127), 2: (0, 255), 3: (-(2**31), 2**31 - 1)}.get(int(code.reshape(())))
        result = x.copy()
        for place, value in np.ndenumerate(x):
            s, z = (float(p.reshape(-1)[place[a.axis] if p.size > 1 else 0]) for p in (scale, zero))
            if bounds and is_quantize:
                rounded = math.copysign(math.floor(abs(value / s) + 0.5), value)
                result[place] = min(max(rounded + z, bounds[0]), bounds[1])
            elif bounds:
                result[place] = (value - z) * s
        return result

    return reference


for _name, _is_quantize in (("qnn.simulated_quantize", True), ("qnn.simulated_dequantize", False)):
    case(_name, _simulations(), _simulated(_is_quantize))
