"""Defines numpy meanings that many operators share: functions numpy lacks, the IR's arithmetic.

Every meaning computes in the dtype of its arguments; integers wrap around, as they do in native code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from ._lazy import elementary, np, numeric

if TYPE_CHECKING:
    from numpy.typing import NDArray

Array: TypeAlias = "NDArray[Any]"


def numpy_type(dtype: str) -> np.dtype[Any]:
    """Returns the numpy dtype called `dtype` in Relay (bfloat16 through ml_dtypes)."""
    from ....array import numpy_dtype

    return numpy_dtype(dtype)


def is_float(x: Array) -> bool:
    """Returns whether an array's elements are floating-point numbers, bfloat16 included."""
    return x.dtype.kind == "f" or x.dtype.name.startswith(("bfloat", "float"))


def as_float(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Extends a floating-point function to any dtype: others go through float32 and back, as `cast` does.

    It is computed in float64 and rounded once (`elementary`). The dtype is kept.
    """

    def apply(x: Array) -> Array:
        if is_float(x):
            return elementary.in_float64(function)(x).astype(x.dtype, copy=False)
        return numeric.convert(elementary.in_float64(function)(x.astype(np.float32)), x.dtype)

    return apply


HALF = ("float16", "bfloat16")


def widened(x: Array) -> Array:
    """Converts half precision to float32; returns other dtypes as they are."""
    return x.astype(np.float32) if x.dtype.name in HALF else x


def half_in_float32(meaning: Callable[..., Array]) -> Callable[..., Array]:
    """Wraps a meaning to compute in float32 where the first array is of half precision, and to round once."""

    def apply(attrs: Any, *xs: Array) -> Array:
        result = meaning(attrs, *map(widened, xs))
        return result.astype(xs[0].dtype) if xs[0].dtype.name in HALF else result

    return apply


def round_half_away(x: Array) -> Array:
    """Returns the nearest integer, halves away from zero (C's `round`)."""
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= np.asarray(0.5, x.dtype), whole + np.sign(x), whole).astype(x.dtype)


def keep_dtype(result: Array, like: Array) -> Array:
    """Returns a result that numpy widened (as of bools) in the dtype of `like`."""
    return result.astype(like.dtype, copy=False)


def floor_divide(a: Array, b: Array) -> Array:
    """Divides integers, rounded down; bools are divided as the numbers 0 and 1."""
    return keep_dtype(np.floor_divide(a, b), a)


def trunc_divide(a: Array, b: Array) -> Array:
    """Divides; integers are rounded toward zero, as in C, and divided by zero yield 0."""
    if is_float(a):
        return a / b
    quotient = floor_divide(a, b)
    # floor and truncation differ by one where the division is inexact and the signs differ.
    off = (quotient * b != a) & ((a < 0) != (b < 0)) & (b != 0)
    return keep_dtype(quotient + off, a)


_ERF_SMALL = (
    (3.16112374387056560e00, 1.13864154151050156e02, 3.77485237685302021e02, 3.20937758913846947e03, 1.85777706184603153e-1),
    (2.36012909523441209e01, 2.44024637934444173e02, 1.28261652607737228e03, 2.84423683343917062e03),
)  # fmt: skip
_ERFC_MIDDLE = (
    (
        5.64188496988670089e-1, 8.88314979438837594e00, 6.61191906371416295e01, 2.98635138197400131e02,
        8.81952221241769090e02, 1.71204761263407058e03, 2.05107837782607147e03, 1.23033935479799725e03,
        2.15311535474403846e-8,
    ),
    (
        1.57449261107098347e01, 1.17693950891312499e02, 5.37181101862009858e02, 1.62138957456669019e03,
        3.29079923573345963e03, 4.36261909014324716e03, 3.43936767414372164e03, 1.23033935480374942e03,
    ),
)  # fmt: skip


def erf(x: Array) -> Array:
    """Computes the error function to double precision.

    By W. J. Cody, "Rational Chebyshev approximations for the error function", 1969, below |x| = 4; 1 above 6.
    """
    z = np.asarray(x, np.float64)
    y = np.minimum(np.abs(z), 6.0)
    square = y * y
    p, q = _ERF_SMALL
    top, bottom = p[4] * square, square
    for i in range(3):
        top, bottom = (top + p[i]) * square, (bottom + q[i]) * square
    small = z * (top + p[3]) / (bottom + q[3])
    p, q = _ERFC_MIDDLE
    top, bottom = p[8] * y, y
    for i in range(7):
        top, bottom = (top + p[i]) * y, (bottom + q[i]) * y
    tail = np.exp(-square) * (top + p[7]) / (bottom + q[7])
    result = np.where(np.abs(z) <= 0.46875, small, np.copysign(1.0 - tail, z))
    return result.astype(x.dtype if is_float(x) else np.float64)


def arange_along(size: int, axis: int, rank: int) -> Array:
    """Returns 0, 1, … along one axis of an array of that rank, to be broadcast along the others."""
    return along(np.arange(size), axis, rank)


def along(vector: Array, axis: int, rank: int) -> Array:
    """Returns a vector shaped to be broadcast along `axis` of an array of that rank."""
    shape = [1] * rank
    shape[axis] = -1
    return vector.reshape(shape)


def normal_axes(axes: Sequence[int] | None, rank: int, exclude: bool = False) -> tuple[int, ...]:
    """Axes counted from the front and in order, all for None; with `exclude` all others."""
    chosen = tuple(range(rank)) if axes is None else tuple(sorted(axis % rank for axis in axes))
    return tuple(axis for axis in range(rank) if axis not in chosen) if exclude else chosen


def matmul(a: Array, b: Array, dtype: np.dtype[Any]) -> Array:
    """Computes the matrix product of the last two axes, accumulated in `dtype`; half precision in float32."""
    if dtype.kind in "iu":
        a, b = a.astype(dtype), b.astype(dtype)
        if _exact_in_float64(a, b):
            # BLAS is fast only in floating point.
            return np.matmul(a.astype(np.float64), b.astype(np.float64)).astype(np.int64).astype(dtype)
        return np.matmul(a, b)
    if dtype in (np.dtype(np.float32), np.dtype(np.float64)):
        return np.matmul(a.astype(dtype), b.astype(dtype))
    return np.matmul(a.astype(np.float32), b.astype(np.float32)).astype(dtype)


def _exact_in_float64(a: Array, b: Array) -> bool:
    """Returns whether every sum in the product of two integer matrices is below 2^53."""

    def magnitude(x: Array) -> int:
        return max(abs(int(x.min(initial=0))), abs(int(x.max(initial=0))))

    return magnitude(a) * magnitude(b) * max(a.shape[-1], 1) < 1 << 53
