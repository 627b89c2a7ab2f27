"""Cases of quantized operators; references in exact rationals, halves rounded as the operator says."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st

from ..sampling import case, seeds, values
from .conv import convolution

# Powers of two and small multiples: their ratios have few digits, so that fixed-point arithmetic is exact on them.
SCALES = st.sampled_from((0.125, 0.25, 0.5, 1.0, 2.0)).map(lambda s: np.array(s, np.float32))
ZERO_POINTS = st.integers(-3, 3).map(lambda z: np.array(z, np.int32))
BYTES = ("int8", "uint8")


def exact(x: np.ndarray, scale: Any, zero: Any, axis: int = -1) -> np.ndarray:
    """Returns the real numbers that quantized integers represent, as fractions."""
    scale, zero = (_along(p, x.ndim, axis) for p in (scale, zero))
    scales = np.vectorize(lambda s: Fraction(float(s)), otypes=[object])(scale)
    return (x.astype(object) - zero.astype(object)) * scales


def _along(p: np.ndarray, rank: int, axis: int) -> np.ndarray:
    p = np.asarray(p)
    return p.reshape([-1 if a == axis % rank else 1 for a in range(rank)]) if p.ndim else p.reshape((1,) * rank)


def upward(v: Fraction) -> int:
    return math.floor(v + Fraction(1, 2))


def away(v: Fraction) -> int:
    return math.floor(abs(v) + Fraction(1, 2)) * (1 if v >= 0 else -1)


def quantized(real: np.ndarray, scale: Any, zero: Any, dtype: str, rounding: Any, axis: int = -1) -> np.ndarray:
    info = np.iinfo(dtype)
    scale, zero = (_along(p, max(real.ndim, 1), axis) for p in (scale, zero))
    steps = np.vectorize(lambda v, s: rounding(Fraction(v) / Fraction(float(s))), otypes=[object])(real, scale)
    return np.clip((steps + zero.astype(object)).astype(np.int64), info.min, info.max).astype(dtype).reshape(real.shape)


@st.composite
def _parameters(draw: Any, size: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Returns a scale and a zero point: scalars, or vectors of `size`."""
    if size is None or draw(st.booleans()):
        return draw(SCALES), draw(ZERO_POINTS)
    return np.array([draw(SCALES) for _ in range(size)], np.float32), np.array(
        [draw(ZERO_POINTS) for _ in range(size)], np.int32
    )


@st.composite
def _quantizations(draw: Any, dtype: str) -> Any:
    x = (
        values((2, 3), dtype, draw(seeds), -20, 20)
        if dtype == "float32"
        else values((2, 3), dtype, draw(seeds), -128, 127)
    )
    axis = draw(st.integers(-2, 1))
    parameters = draw(_parameters(x.shape[axis]))
    return {"axis": axis, "out_dtype": draw(st.sampled_from(BYTES)) if dtype == "float32" else "float32"}, [
        x,
        *parameters,
    ]


def _real(x: np.ndarray) -> np.ndarray:
    return np.vectorize(lambda v: Fraction(float(v)), otypes=[object])(x)


case("qnn.quantize", _quantizations("float32"), lambda a, x, s, z: quantized(_real(x), s, z, a.out_dtype, away, a.axis))
case(
    "qnn.dequantize",
    _quantizations("int8"),
    lambda a, x, s, z: exact(x, s, z, a.axis).astype(np.float64).astype(np.float32),
)


@st.composite
def _requantizations(draw: Any) -> Any:
    x = values((2, 3), draw(st.sampled_from(("int32", "int8"))), draw(seeds), -100, 100)
    axis = draw(st.integers(-2, 1))
    attrs = {
        "axis": axis,
        "rounding": draw(st.sampled_from(("None", "UPWARD", "TONEAREST"))),
        "compute_dtype": draw(st.sampled_from(("None", "int64", "float32", "float64"))),
        "out_dtype": draw(st.sampled_from(("int8", "uint8", "int32"))),
    }
    return attrs, [x, *draw(_parameters(x.shape[axis])), draw(SCALES), draw(ZERO_POINTS)]


def _requantize_reference(a: Any, x: Any, s: Any, z: Any, out_s: Any, out_z: Any) -> np.ndarray:
    return quantized(exact(x, s, z, a.axis), out_s, out_z, a.out_dtype, away if a.rounding == "TONEAREST" else upward)


case("qnn.requantize", _requantizations(), _requantize_reference)


@st.composite
def _binaries(draw: Any) -> Any:
    dtype = draw(st.sampled_from(BYTES))
    arrays = [
        values(shape, dtype, draw(seeds), -128, 127)
        for shape in ((2, 3), draw(st.sampled_from(((2, 3), (1, 3), (3,)))))
    ]
    parameters = [p for _ in range(3) for p in (draw(SCALES), draw(ZERO_POINTS))]
    return {}, [*arrays, *parameters]


def _steps(x: np.ndarray, s: Any, z: Any, to: Any) -> np.ndarray:
    """Rounded multiples of the target's scale, without its zero point."""
    real = exact(x, s, z)
    return np.vectorize(lambda v: upward(v / Fraction(float(to))), otypes=[object])(real)


def _saturated(x: np.ndarray, dtype: Any) -> np.ndarray:
    info = np.iinfo(dtype)
    return np.clip(x.astype(np.int64), info.min, info.max).astype(dtype)


case(
    "qnn.add",
    _binaries(),
    lambda a, x, y, xs, xz, ys, yz, s, z: _saturated(_steps(x, xs, xz, s) + _steps(y, ys, yz, s) + int(z), x.dtype),
)
case("qnn.subtract", _binaries(), lambda a, x, y, xs, xz, ys, yz, s, z: _saturated(_steps(x, xs, xz, s) - _steps(y, ys, yz, s) + int(z), x.dtype))  # fmt: skip
case("qnn.mul", _binaries(), lambda a, x, y, xs, xz, ys, yz, s, z: quantized(exact(x, xs, xz) * exact(y, ys, yz), s, z, x.dtype.name, upward))  # fmt: skip


@st.composite
def _unaries(draw: Any, low: int = -20, high: int = 20) -> Any:
    x = values((2, 3), "int8", draw(seeds), low, high)
    return {}, [x, np.array(0.125, np.float32), np.array(0, np.int32), np.array(0.25, np.float32), draw(ZERO_POINTS)]


def _table(function: Any) -> Any:
    def reference(a: Any, x: np.ndarray, s: Any, z: Any, out_s: Any, out_z: Any) -> np.ndarray:
        real = np.vectorize(function, otypes=[np.float64])((x.astype(np.float64) - z) * s)
        return quantized(_real(real.astype(np.float32)), out_s, out_z, "int8", away)

    return reference


case("qnn.exp", _unaries(), _table(math.exp))
case("qnn.sqrt", _unaries(0), _table(math.sqrt))
case("qnn.rsqrt", _unaries(1), _table(lambda v: 1 / math.sqrt(v)))
case("qnn.erf", _unaries(), _table(math.erf))
case("qnn.log", _unaries(1), _table(math.log))
case("qnn.sigmoid", _unaries(), _table(lambda v: 1 / (1 + math.exp(-v))))
case("qnn.tanh", _unaries(), _table(math.tanh))
case("qnn.hardswish", _unaries(), _table(lambda v: v * min(max(v + 3, 0), 6) / 6))
case("qnn.abs", _unaries(), _table(abs))


@st.composite
def _products(draw: Any, left: Any, right: Any, attrs: Any, channels: int | None = None) -> Any:
    x, w = (values(s, draw(st.sampled_from(BYTES)), draw(seeds), -128, 127) for s in (left, right))
    # Zero points are numbers of their tensors' types.
    zero = draw(ZERO_POINTS)
    zeros = draw(_parameters(channels))[1]
    x_zero, w_zero = (np.abs(z) if a.dtype.kind == "u" else z for z, a in ((zero, x), (zeros, w)))
    return {**attrs, "out_dtype": "int32"}, [x, w, np.asarray(x_zero), np.asarray(w_zero), draw(SCALES), draw(SCALES)]


def _less(x: np.ndarray, zero: np.ndarray, axis: int = 0) -> np.ndarray:
    return x.astype(np.int64) - _along(zero, x.ndim, axis)


case("qnn.dense", _products((2, 4), (3, 4), {"units": 3}, 3), lambda a, x, w, xz, wz, *s: np.einsum("mk,nk->mn", _less(x, xz), _less(w, wz)))  # fmt: skip
case(
    "qnn.batch_matmul",
    _products((2, 3, 4), (2, 5, 4), {"transpose_b": True}),
    lambda a, x, y, xz, yz, *s: np.einsum("bmk,bnk->bmn", _less(x, xz), _less(y, yz)),
)


def _conv_reference(a: Any, x: Any, w: Any, xz: Any, wz: Any, *scales: Any) -> np.ndarray:
    return convolution(_less(x, xz), _less(w, wz), a, np.int32)


CONV = {"kernel_size": (2, 3), "channels": 4, "padding": (1, 0), "strides": (1, 2)}
case("qnn.conv2d", _products((1, 2, 4, 5), (4, 2, 2, 3), CONV, 4), _conv_reference)


def _transposed(a: Any, x: Any, w: Any, xz: Any, wz: Any, *scales: Any) -> np.ndarray:
    data, weight = _less(x, xz), _less(w, wz, 1)
    result = np.zeros((1, 3, 5, 7), np.int64)
    for i, j in np.ndindex(3, 3):
        for kh, kw in np.ndindex(3, 3):
            result[:, :, i + kh, 2 * j + kw] += np.einsum("nc,co->no", data[:, :, i, j], weight[:, :, kh, kw])
    return result[:, :, 1:-1, 1:-1]


case(
    "qnn.conv2d_transpose",
    _products((1, 2, 3, 3), (2, 3, 3, 3), {"kernel_size": (3, 3), "channels": 3, "padding": (1, 1), "strides": (1, 2)}),
    _transposed,
)


@st.composite
def _pools(draw: Any) -> Any:
    x = values((1, 2, 4, 4), "int8", draw(seeds), -100, 100)
    return {"pool_size": (2, 2), "strides": (2, 2)}, [
        x,
        draw(SCALES),
        draw(ZERO_POINTS),
        draw(SCALES),
        draw(ZERO_POINTS),
    ]


def _pool_reference(a: Any, x: Any, s: Any, z: Any, out_s: Any, out_z: Any) -> np.ndarray:
    wide = quantized(exact(x, s, z), out_s, out_z, "int32", upward).astype(np.int64)
    sums = wide.reshape(1, 2, 2, 2, 2, 2).sum((3, 5))
    return np.clip(np.trunc(sums / 4), -128, 127).astype(np.int8)


case("qnn.avg_pool2d", _pools(), _pool_reference)


@st.composite
def _joins(draw: Any) -> Any:
    fields = [tuple(g) for g in zip(*[(values((2, 2), "int8", draw(seeds), -128, 127), draw(SCALES), draw(ZERO_POINTS)) for _ in range(3)], strict=True)]  # fmt: skip
    return {"axis": 1}, [*fields, draw(SCALES), draw(ZERO_POINTS)]


def _join_reference(a: Any, xs: Any, scales: Any, zeros: Any, s: Any, z: Any) -> np.ndarray:
    parts = [quantized(exact(x, p, q), s, z, "int8", upward) for x, p, q in zip(xs, scales, zeros, strict=True)]
    return np.hstack(parts)


case("qnn.concatenate", _joins(), _join_reference, unknown=False)


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
    """Returns the shares of a row, in parts of 128."""
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
