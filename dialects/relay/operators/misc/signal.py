"""Defines Fourier transforms, of whole vectors and of sliding windows.

dft:  re_data (2,8), im_data (2,8) -> ((2,8), (2,8))
stft: data (N,length), window (win_length) -> (N, n_fft/2+1, frames, 2)
"""

from __future__ import annotations

from math import pi, sqrt
from typing import TYPE_CHECKING, Any

from ...operator import Attrs, OpPattern, Relation, attr, define
from ..common._lazy import np, te
from ..common.numpy_meanings import Array, is_float
from ..common.relations import (
    ANY,
    dtype_of,
    known_dim,
    rank_at_least,
    rank_must_be,
    same_dim,
    same_dtype,
    shape_of,
    show_argument,
    tensor_type,
    tuple_type,
)
from ..common.te_computes import constant

if TYPE_CHECKING:
    from ....te.builder import Expr, Tensor


def _float_must_be(rel: Relation, index: int) -> None:
    if "float" not in dtype_of(rel.tensor(index)):
        raise rel.fail(
            f"{rel.operator.name}: {show_argument(rel, index)} must be of a floating-point dtype", argument=index
        )


def _te_waves(size: Any, dtype: str) -> tuple[Tensor, Tensor]:
    """Returns cosines and sines of 2π * j / size for j < size, in float64: rounding does not grow with j."""
    count = te.const(float(size), "float64") if isinstance(size, int) else size.astype("float64")

    whole = te.const(size, "int64") if isinstance(size, int) else size.astype("int64")

    def wave(function: Any, name: str, zeros: int) -> Tensor:
        def element(j: Expr) -> Any:
            value = function(j.astype("float64") * te.const(2 * pi, "float64") / count).astype(dtype)
            quarters = j.astype("int64") * te.const(4, "int64")
            # After whole quarters of a period cosine and sine alternate in being 0, which 2π, rounded, misses.
            is_zero = te.all(
                te.floormod(quarters, whole).equal(0),
                te.floormod(te.floordiv(quarters, whole), te.const(2, "int64")).equal(zeros),
            )
            return te.Select(is_zero, te.const(0.0, dtype), value)

        return te.compute((size,), element, name=name)

    return wave(te.cos, "cosine", 1), wave(te.sin, "sine", 0)


def _waves(size: int, dtype: str) -> tuple[Array, Array]:
    """Returns the numbers of `_te_waves`, widened to float64 after they are rounded to the dtype."""
    number = np.arange(size)
    angle = number * (2 * pi) / size
    quarter, rest = np.divmod(number * 4, max(size, 1))
    waves = (np.where((rest == 0) & (quarter % 2 == zeros), 0, f(angle)) for f, zeros in ((np.cos, 1), (np.sin, 0)))
    cosine, sine = (wave.astype(dtype).astype(np.float64) for wave in waves)
    return cosine, sine


def _te_phase(row: Expr, k: Expr, size: Any) -> Expr:
    """Returns the index into the waves for the product of two indices."""
    whole = te.const(size, "int64") if isinstance(size, int) else size.astype("int64")
    return te.floormod(row.astype("int64") * k.astype("int64"), whole)


def _wide(dtype: str) -> str:
    return dtype if dtype in ("float32", "float64") else "float32"


def _dft_relation(rel: Relation) -> None:
    real, imaginary = rank_at_least(rel, 0, 1), rel.tensor(1)
    same_dtype(rel, 0, 1)
    _float_must_be(rel, 0)
    a, b = shape_of(real), shape_of(imaginary)
    if len(a) != len(b) or not all(map(same_dim, a, b)):
        raise rel.fail(
            f"{rel.operator.name}: {show_argument(rel, 0)} and {show_argument(rel, 1)} must have the same shape",
            argument=1,
        )
    result = tensor_type(map(known_dim, a, b), real.element_type)
    rel.set_result(tuple_type([result, result]))


def _dft(attrs: Attrs, real: Array, imaginary: Array) -> tuple[Array, Array]:
    if not real.size:
        return real.copy(), imaginary.copy()
    a, b = real.astype(np.float64), imaginary.astype(np.float64)
    finite = np.isfinite(a).all(-1, keepdims=True) & np.isfinite(b).all(-1, keepdims=True)
    signal = a + 1j * b
    result = np.fft.ifft(signal) if attrs.inverse else np.fft.fft(signal)
    parts = result.real, result.imag
    if not finite.all():
        # A fast transform spreads infinities over sums that the definition does not have.
        parts = (
            np.where(finite, *both)
            for both in zip(parts, _direct_dft(attrs, a, b, _wide(real.dtype.name)), strict=True)
        )
    first, second = (part.astype(real.dtype) for part in parts)
    return first, second


def _direct_dft(attrs: Attrs, a: Array, b: Array, dtype: str) -> tuple[Array, Array]:
    size = a.shape[-1]
    cosine, sine = _waves(size, dtype)
    sine = sine if attrs.inverse else 0.0 - sine
    real, imaginary = np.zeros(a.shape), np.zeros(a.shape)
    for k in range(size):
        phase: Array = (np.arange(size, dtype=np.int64) * k) % size
        x, y = a[..., k : k + 1], b[..., k : k + 1]
        real += x * cosine[phase] - y * sine[phase]
        imaginary += x * sine[phase] + y * cosine[phase]
    return (real / size, imaginary / size) if attrs.inverse else (real, imaginary)


def _te_dft(attrs: Attrs, real: Tensor, imaginary: Tensor) -> list[Tensor]:
    size, dtype = real.shape[-1], _wide(real.dtype)
    if constant(size) == 0:
        return [te.compute(x.shape, lambda *i: te.const(0, real.dtype), name="T_dft") for x in (real, imaginary)]
    cosines, sines = _te_waves(size, dtype)

    def part(is_real: bool) -> Tensor:
        k = te.reduce_axis((0, size), name="k")

        def element(*i: Expr) -> Any:
            phase = _te_phase(i[-1], k, size)
            cosine = cosines(phase)
            sine = sines(phase) if attrs.inverse else te.const(0.0, dtype) - sines(phase)
            a, b = (x(*i[:-1], k).astype(dtype) for x in (real, imaginary))
            return te.sum(a * cosine - b * sine if is_real else a * sine + b * cosine, axis=k)

        total = te.compute(real.shape, element, name="T_dft")
        known = constant(size)
        count = te.convert(size).astype(dtype) if known is None else te.const(float(known), dtype)
        if attrs.inverse:
            return te.compute(real.shape, lambda *i: (total(*i) / count).astype(real.dtype), name="T_dft_scaled")
        return te.compute(real.shape, lambda *i: total(*i).astype(real.dtype), name="T_dft_cast")

    return [part(True), part(False)]


define(
    "dft", ("re_data", "im_data"), _dft_relation, OpPattern.OPAQUE,
    numpy=_dft,
    compute=lambda attrs, xs, out: _te_dft(attrs, *xs),
    attributes=(attr("inverse", False),),
    doc="The discrete Fourier transform of a complex signal along the last axis, or the inverse: real and imaginary part.",
    source="https://numpy.org/doc/stable/reference/routines.fft.html",
)  # fmt: skip


def _stft_relation(rel: Relation) -> None:
    data, window, attrs = rank_must_be(rel, 0, 1, 2), rank_must_be(rel, 1, 1), rel.attrs
    _float_must_be(rel, 0)
    name, size = rel.operator.name, shape_of(window)[0]
    if min(attrs.n_fft, attrs.hop_length, attrs.win_length) < 1 or attrs.win_length > attrs.n_fft:
        raise rel.fail(
            f"{name}: n_fft={attrs.n_fft}, hop_length={attrs.hop_length} and win_length={attrs.win_length} must be positive,"
            " win_length not above n_fft"
        )
    if size != ANY and size < attrs.win_length:
        raise rel.fail(
            f"{name}: {show_argument(rel, 1)} has fewer elements than win_length={attrs.win_length}", argument=1
        )
    *batch, length = shape_of(data)
    if length != ANY and length < attrs.n_fft:
        raise rel.fail(f"{name}: {show_argument(rel, 0)} is shorter than a window of n_fft={attrs.n_fft}", argument=0)
    frames = ANY if length == ANY else (length - attrs.n_fft) // attrs.hop_length + 1
    rel.set_result(tensor_type([*batch, _frequencies(attrs), frames, 2], data.element_type))


def _frequencies(attrs: Attrs) -> int:
    return attrs.n_fft // 2 + 1 if attrs.onesided else attrs.n_fft


def _stft(attrs: Attrs, x: Array, window: Array) -> Array:
    width: int = attrs.win_length
    frames = np.lib.stride_tricks.sliding_window_view(x, attrs.n_fft, axis=-1)[..., :: attrs.hop_length, :width]
    wide = np.promote_types(x.dtype, np.float32) if is_float(x) else np.dtype(np.float32)
    rows, k = np.arange(_frequencies(attrs)), np.arange(width)
    cosine, sine = (wave[np.outer(rows, k) % width] * window[:width].astype(wide) for wave in _waves(width, wide.name))
    samples = frames.astype(np.float64)
    # In real numbers: a complex product of an infinity and 0 + i is not a number.
    parts = [np.einsum("...fw,rw->...rf", samples, wave) for wave in (cosine, 0.0 - sine)]
    result = np.stack(parts, -1)
    return (result / sqrt(attrs.n_fft) if attrs.normalized else result).astype(x.dtype)


def _te_stft(attrs: Attrs, x: Tensor, window: Tensor) -> Tensor:
    dtype, width = _wide(x.dtype), attrs.win_length
    *batch, length = x.shape
    known = constant(length)
    span = length - attrs.n_fft if known is None else known - attrs.n_fft
    frames = span // attrs.hop_length + 1 if isinstance(span, int) else te.floordiv(span, attrs.hop_length) + 1
    k = te.reduce_axis((0, width), name="k")
    cosines, sines = _te_waves(width, dtype)

    def element(*i: Expr) -> Any:
        *place, row, frame, part = i
        phase = _te_phase(row, k, width)
        wave = te.Select(part.equal(0), cosines(phase), te.const(0.0, dtype) - sines(phase))
        value = x(*place, frame * attrs.hop_length + k).astype(dtype) * window(k).astype(dtype)
        return te.sum(value * wave, axis=k)

    shape = [*batch, _frequencies(attrs), frames, 2]
    total = te.compute(shape, element, name="T_stft")
    scale = te.const(sqrt(attrs.n_fft) if attrs.normalized else 1.0, dtype)
    return te.compute(shape, lambda *i: (total(*i) / scale).astype(x.dtype), name="T_stft_scaled")


define(
    "stft", ("data", "window"), _stft_relation, OpPattern.OPAQUE,
    numpy=_stft,
    compute=lambda attrs, xs, out: [_te_stft(attrs, *xs)],
    attributes=(
        attr("n_fft", -1), attr("hop_length", -1), attr("win_length", -1), attr("normalized", False),
        attr("onesided", True),
    ),
    doc="Fourier transforms of windows that begin `hop_length` apart: (frequency, window, real and imaginary part).",
    source="https://pytorch.org/docs/stable/generated/torch.stft.html",
)  # fmt: skip
