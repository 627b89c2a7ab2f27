"""Defines conversions and integer arithmetic for all interpreters, where numpy's are undefined.

`docs/semantics.md` states the rules; native code follows the same (`lowering/llvm/convert/arith_to_llvm.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = "NDArray[Any]"


NARROW = {"int4": (-8, 7), "uint4": (0, 15), "int2": (-2, 1), "uint2": (0, 3)}
"""Ranges of ml_dtypes' integers, of a byte each, which much of numpy's arithmetic converts to int8."""


def is_float(dtype: np.dtype[Any]) -> bool:
    """Returns True for floating-point dtypes, those of ml_dtypes included."""
    return dtype.kind == "f" or dtype.name.startswith(("bfloat", "float"))


def integer_range(dtype: np.dtype[Any]) -> tuple[int, int]:
    """Returns the least and the greatest number of an integer dtype."""
    if dtype.name in NARROW:
        return NARROW[dtype.name]
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def width(dtype: np.dtype[Any]) -> int:
    """Returns the bits of an integer dtype."""
    return int(dtype.name.lstrip("uint")) if dtype.name in NARROW else dtype.itemsize * 8


def lowest(dtype: np.dtype[Any]) -> Any:
    """Returns the least number of a dtype, the identity of a maximum."""
    return _limit(dtype, False)


def highest(dtype: np.dtype[Any]) -> Any:
    """Returns the greatest number of a dtype, the identity of a minimum."""
    return _limit(dtype, True)


def _limit(dtype: np.dtype[Any], greatest: bool) -> Any:
    if is_float(dtype):
        return dtype.type(np.inf if greatest else -np.inf)
    return dtype.type(greatest if dtype.kind == "b" else integer_range(dtype)[greatest])


def convert(x: Array, target: np.dtype[Any]) -> Array:
    """Converts numbers by value: floats to integers toward zero, saturating, NaN to 0; integers wrap.

    convert([300.7, -inf, nan], int8) → [127, -128, 0];  convert([300], int8) → [44];  convert([0.5, nan], bool) → [True, True]
    """
    if target.kind == "b":
        return x != 0
    if is_float(x.dtype) and not is_float(target):
        low, high = integer_range(target)
        wide = x.astype(np.float64)
        # The number after the greatest is a power of two, which floats hold.
        below, above = wide < low, wide >= float(high + 1)
        inside = np.where(below | above | np.isnan(wide), 0.0, wide).astype(target)
        return np.where(above, np.asarray(high).astype(target), np.where(below, np.asarray(low).astype(target), inside))
    if target.name in NARROW and target.name != x.dtype.name:
        # Through bytes: ml_dtypes' integers are not converted into each other, nor from large ones by their lowest bits.
        bits = width(target)
        low = x.astype(np.int64).astype(np.uint8) & ((1 << bits) - 1)
        return (low.astype(np.int8) - ((low >> (bits - 1)) << bits).astype(np.int8) * (target.name[0] == "i")).astype(
            target
        )
    if is_float(target) and target.itemsize == 1 and x.dtype != np.float32:
        x = x.astype(np.float32)
    return x.astype(target)


def convert_scalar(value: float, low: int, high: int) -> int:
    """Converts one float to an integer between `low` and `high`, as `convert` does."""
    value = float(value)  # ml_dtypes' floats cannot be compared with large integers
    if value != value:
        return 0
    return high if value >= high + 1 else low if value < low else int(value)


def bits(x: Array) -> Array:
    """Returns an array for shifts and bit operations. Raises TypeError for floats."""
    if is_float(x.dtype):
        raise TypeError(
            f"it is of integers and bools, not of {x.dtype.name}; reinterpret reads the bits of floats as integers"
        )
    return x


def _counts(a: Array, b: Array) -> tuple[Array, Array, Array]:
    """Returns both operands broadcast, and True where b counts bits that `a` has; a bool has one."""
    a, b = np.broadcast_arrays(a, b)
    return a, b, ~b if a.dtype.kind == "b" else (b >= 0) & (b < width(a.dtype))


def shift_left(a: Array, b: Array) -> Array:
    """Shifts left; by the width or more, or by a negative count, 0."""
    a, b, inside = _counts(a, b)
    return np.where(inside, np.left_shift(a, np.where(inside, b, 0).astype(a.dtype)), 0).astype(a.dtype)


def shift_right(a: Array, b: Array) -> Array:
    """Shifts right; by the width or more, or by a negative count, 0, or -1 for a negative number."""
    a, b, inside = _counts(a, b)
    last = width(a.dtype) - 1
    shifted = np.right_shift(a, np.where(inside, b, last).astype(a.dtype))
    return shifted if a.dtype.name.startswith("int") else np.where(inside, shifted, 0).astype(a.dtype)


def shift_scalar(value: int, count: int, bits: int, left: bool) -> int:
    """Shifts an integer of `bits` bits as `shift_left` and `shift_right` do, without wrapping around."""
    if not 0 <= count < bits:
        return 0 if left or value >= 0 else -1
    return value << count if left else value >> count


def integer_power(a: Array, b: Array) -> Array:
    """Computes integer powers, wrapping around; negative ones are 1 / power rounded toward zero, or 0.

    integer_power([2, -1, 3, 0], [-1, -3, 2, 0]) → [0, -1, 9, 1]
    """
    a, b = np.broadcast_arrays(a, b)
    if a.dtype.kind == "b":
        return a | ~b
    if a.dtype.kind == "u":
        return np.power(a, b)
    power = np.power(a, np.maximum(b, 0))
    odd = (b & 1).astype(bool)
    unit = np.where(a == 1, 1, np.where(a == -1, np.where(odd, -1, 1), 0))
    return np.where(b < 0, unit, power).astype(a.dtype)


def floor_mod(a: Array, b: Array) -> Array:
    """Returns the exact remainder of division rounded down, of b's sign; 0 for an integer divided by 0."""
    return _in_float32(np.remainder, a, b)


def trunc_mod(a: Array, b: Array) -> Array:
    """Returns the exact remainder of division toward zero, of a's sign; 0 for an integer divided by 0."""
    return _in_float32(np.fmod, a, b)


def larger(a: Array, b: Array) -> Array:
    """Returns the larger of two, of 0 and -0 the second; NaN where one is."""
    return _with_zeros(_in_float32(np.maximum, a, b), a, b)


def smaller(a: Array, b: Array) -> Array:
    """Returns the smaller of two, of 0 and -0 the second; NaN where one is."""
    return _with_zeros(_in_float32(np.minimum, a, b), a, b)


def _with_zeros(result: Any, a: Array, b: Array) -> Any:
    """Fixes the sign of 0 in a maximum or minimum, which numpy leaves to the processor, as strict-math."""
    if not is_float(np.asarray(result).dtype):
        return result
    zeros = (a == 0) & (b == 0)
    return np.where(zeros, b, result).astype(result.dtype)[()] if np.any(zeros) else result


def _in_float32(function: Callable[[Any, Any], Any], a: Array, b: Array) -> Array:
    """Applies `function`, exact in its operands' dtype, in float32 if numpy does not know the dtype."""
    dtype = np.asarray(a).dtype
    if is_float(dtype) and dtype.kind != "f":
        wide = function(np.asarray(a).astype(np.float32), np.asarray(b).astype(np.float32))
        return np.asarray(wide).astype(dtype)
    return function(a, b)
