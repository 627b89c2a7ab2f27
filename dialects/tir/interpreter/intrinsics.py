"""Defines the functions that `tir.call` computes: mathematics, bits and tests, on scalars and arrays."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.ir import Attribute, Operation

from ....support.diagnostics import error_at
from ... import numeric
from ...elementary import in_float64
from ..scalar_ops import BOOL, INTRINSICS
from ..types import element_of, is_unsigned, lanes_of, type_to_dtype
from .scalar import meaning, scalar_or_array
from .values import Array, as_array, dtype_of, is_integer, is_vector, wrapper

Function = Callable[..., Any]


def _elementwise(function: Callable[[float], float]) -> Callable[[Any], Any]:
    """Wraps a Python function of a float for arrays, in float64, rounded to the argument's dtype."""
    raw = np.frompyfunc(function, 1, 1)

    def apply(value: Any) -> Any:
        array = np.asarray(value)
        return scalar_or_array(np.asarray(raw(array.astype(np.float64)), np.float64).astype(array.dtype))

    return apply


def _in_float64(function: Callable[..., Array]) -> Callable[..., Any]:
    """Wraps a numpy function to compute in float64 and round once (`elementary`)."""
    rounded = in_float64(function)
    return lambda *values: scalar_or_array(rounded(*values))


def half_away_from_zero(value: Any) -> Any:
    if not _exact(value):
        return value
    # Not floor(|x| + 0.5): the sum rounds up for the number just below 0.5.
    whole, one = np.trunc(value), np.asarray(value).dtype.type
    return whole + np.copysign(as_array(np.abs(value - whole) >= one(0.5), np.dtype(one)), value)


def copysign(value: Any, sign: Any) -> Any:
    # Which NaN an op computes depends on the processor: its sign must not be seen.
    return scalar_or_array(
        np.copysign(value, as_array(np.where(np.isnan(sign), np.abs(sign), sign), np.asarray(sign).dtype))
    )


def _exact(value: Any) -> bool:
    return bool(np.asarray(value).dtype.kind == "f") or np.asarray(value).dtype.name == "bfloat16"


def exp10(a: Array) -> Array:
    return np.power(10.0, a)


def reciprocal_root(a: Array) -> Array:
    return 1.0 / np.sqrt(a)


def sigmoid(a: Array) -> Array:
    return 1.0 / (1.0 + np.exp(-a))


def scaled(value: Any, exponent: Any) -> Any:
    """Computes `T.ldexp`: a product with a power of two that is rounded to the value's dtype first."""
    value = np.asarray(value)
    return scalar_or_array(value * np.exp2(np.asarray(exponent).astype(value.dtype)))


def nextafter(a: Any, b: Any) -> Any:
    """Returns the next number of the dtype, as C's: of two equal numbers, 0 and -0 among them, the second."""
    return scalar_or_array(np.where(np.equal(a, b), b, np.nextafter(a, b)))


def fma(a: Any, b: Any, c: Any) -> Any:
    """Computes a * b + c, rounded once (twice for float64)."""
    wide = (np.asarray(v).astype(np.float64) for v in (a, b, c))
    x, y, z = wide
    return scalar_or_array((x * y + z).astype(np.asarray(a).dtype))


def _gamma(a: float) -> float:
    return math.gamma(a) if a > 0 or a != math.floor(a) else math.nan


def _log_gamma(a: float) -> float:
    return math.lgamma(a) if a > 0 or a != math.floor(a) else math.inf


_IN_OWN_DTYPE = "own_dtype "
"""Before the name of a function that knows bfloat16 and float8 itself, and is not computed by way of float32."""


def _meaning(path: str) -> Function:
    """Returns the function of floats that a table row names: `float64 numpy.exp`, `elementwise math.erf`."""
    how, _, path = path.rpartition(" ")
    function = meaning(path)
    return _in_float64(function) if how == "float64" else _elementwise(function) if how == "elementwise" else function


# C's names for them, as `call_extern` and `call_pure_extern` use; those of float end in "f".
EXTERNS: dict[str, Function] = {
    **{row.name: _meaning(row.numpy) for row in INTRINSICS.values() if row.numpy},
    "rint": np.rint,
    "cbrt": np.cbrt,
    "expm1": np.expm1,
    "fmax": np.fmax,
    "fmin": np.fmin,
    "max": np.maximum,
    "min": np.minimum,
    "erfc": _elementwise(math.erfc),
    "tgamma": _elementwise(_gamma),
    "lgamma": _elementwise(_log_gamma),
}


def extern_function(name: str) -> Function | None:
    """Returns the function of C's mathematics (or LLVM intrinsic) of this name, None for others."""
    if name.startswith("llvm."):
        name = name.removeprefix("llvm.").split(".")[0]
    if name in EXTERNS:
        return EXTERNS[name]
    return EXTERNS.get(name[:-1]) if name.endswith("f") else None


EXTERN_NAMES = frozenset([*EXTERNS, *(f"{name}f" for name in EXTERNS)])


def integer_call(name: str, result: Attribute, operand: Attribute, op: Operation) -> Function | None:
    """Returns the function of a call on integers, None for other names."""
    row = INTRINSICS.get(name)
    if row is None or not row.numpy_integer or not is_integer(element_of(result)):
        return None
    return getattr(_IntegerCalls(result, operand, op), row.numpy_integer)


class _IntegerCalls:
    """Functions of integers of one type."""

    def __init__(self, result: Attribute, operand: Attribute, op: Operation):
        self.wrap = wrapper(element_of(result))
        self.dtype = dtype_of(result, op)
        self.bits = numeric.width(dtype_of(operand, op))
        self.mask = (1 << self.bits) - 1
        self.unsigned = is_unsigned(operand)

    def identity(self, a: Any) -> Any:
        return a

    def bitwise_and(self, a: Any, b: Any) -> Any:
        return a & b

    def bitwise_or(self, a: Any, b: Any) -> Any:
        return a | b

    def bitwise_xor(self, a: Any, b: Any) -> Any:
        return a ^ b

    def bitwise_not(self, a: Any) -> Any:
        return ~a if isinstance(a, np.ndarray) or not self.unsigned else ~a & self.mask

    def shift_left(self, a: Any, b: Any) -> Any:
        if _any_array(a, b):
            return numeric.shift_left(as_array(a, self.dtype), as_array(b, self.dtype))
        return self.wrap(numeric.shift_scalar(a, b, self.bits, left=True))

    def shift_right(self, a: Any, b: Any) -> Any:
        if _any_array(a, b):
            return numeric.shift_right(as_array(a, self.dtype), as_array(b, self.dtype))
        return numeric.shift_scalar(a, b, self.bits, left=False)

    def absolute(self, a: Any) -> Any:
        return np.abs(a) if isinstance(a, np.ndarray) else self.wrap(abs(a))

    def popcount(self, a: Any) -> Any:
        if isinstance(a, np.ndarray):
            return np.bitwise_count(_unsigned(a) & self.mask).astype(self.dtype)
        return (a & self.mask).bit_count()

    def leading_zeros(self, a: Any) -> Any:
        if isinstance(a, np.ndarray):
            lengths: Any = _BIT_LENGTH((_unsigned(a) & self.mask).astype(object))
            return (self.bits - lengths).astype(self.dtype)
        return self.bits - (a & self.mask).bit_length()

    def multiply_shift(self, a: Any, b: Any, q: Any, s: Any) -> Any:
        return _q_multiply_shift(a, b, q, s, self.dtype)

    def multiply_shift_per_axis(self, a: Any, b: Any, left: Any, right: Any, q: Any, *flags: Any) -> Any:
        return _q_multiply_shift_per_axis(a, b, left, right, q, flags, self.dtype)

    def ceil_quotient(self, a: Any, b: Any) -> Any:
        if _any_array(a, b):
            return a // b + (a % b != 0)
        return self.wrap(-(-a // b)) if b else 0

    def power(self, a: Any, b: Any) -> Any:
        power = numeric.integer_power(as_array(a, self.dtype), as_array(b, self.dtype))
        return power if _any_array(a, b) else scalar_or_array(power)


def _any_array(*values: Any) -> bool:
    return any(isinstance(v, np.ndarray) for v in values)


def _unsigned(value: Array) -> Array:
    return value.view(f"uint{value.dtype.itemsize * 8}")


_BIT_LENGTH = np.frompyfunc(int.bit_length, 1, 1)


def _q_multiply_shift(a: Any, b: Any, q: Any, s: Any, dtype: np.dtype[Any]) -> Any:
    """Computes round(a * b * 2^(s - q)) in fixed point, ties toward plus infinity, as TVM documents it."""
    a, b, q, s = (as_array(v, np.dtype(np.int64)) for v in (a, b, q, s))
    total = q + np.maximum(-s, 0)
    return _rounded_shift((a << np.maximum(s, 0)) * b, total, dtype)


def _q_multiply_shift_per_axis(a: Any, b: Any, left: Any, right: Any, q: Any, flags: Any, dtype: np.dtype[Any]) -> Any:
    """Computes `q_multiply_shift` with left and right shifts, which the flags enable."""
    a, b, left, right, q = (as_array(v, np.dtype(np.int64)) for v in (a, b, left, right, q))
    # The flags may be of lanes.
    if flags:
        left = np.where(flags[0], left, 0)
    if len(flags) > 1:
        right = np.where(flags[1], right, 0)
    return _rounded_shift((a << left) * b, q + right, dtype)


def _rounded_shift(product: Array, total: Array, dtype: np.dtype[Any]) -> Any:
    half = np.int64(1) << np.maximum(total - 1, 0)
    return scalar_or_array(((product + np.where(total > 0, half, 0)) >> total).astype(dtype))


def reinterpret(source: Attribute, target: Attribute, op: Operation) -> Function:
    """Reinterprets bits as another type of as many bytes; lanes may merge or split."""
    before, after = dtype_of(source, op), dtype_of(target, op)
    if before.itemsize * lanes_of(source) != after.itemsize * lanes_of(target):
        raise error_at(
            op, f"T.reinterpret keeps the bits: {type_to_dtype(source)} is not as wide as {type_to_dtype(target)}"
        )

    def apply(value: Any) -> Any:
        array = np.ascontiguousarray(as_array(value, before))
        array = array.reshape(np.shape(value) if is_vector(source) else (*np.shape(value), 1)).view(after)
        return array if is_vector(target) else scalar_or_array(array[..., 0])

    return apply


def float_call(name: str, operand: Attribute, op: Operation) -> Function | None:
    """Returns the function of a call on floats, or a test of one, None for other names."""
    row = INTRINSICS.get(name)
    if row is None or not row.numpy:
        return None
    function = EXTERNS[name]
    if (
        not row.numpy.startswith(_IN_OWN_DTYPE)
        and not is_integer(element_of(operand))
        and dtype_of(operand, op).kind not in "f"
    ):
        return _through_float32(function, dtype_of(operand, op), row.result is BOOL)
    return function


def _through_float32(function: Function, dtype: np.dtype[Any], tests: bool) -> Function:
    """Wraps a function for bfloat16 and float8, which numpy hardly supports."""

    def apply(*values: Any) -> Any:
        result = function(*(as_array(v, np.dtype(np.float32)) for v in values))
        return result if tests else scalar_or_array(np.asarray(result).astype(dtype))

    return apply
