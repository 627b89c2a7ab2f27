"""Constant folding of scalar operators: the one table that TVMScript's reader, TE and the simplifier share.

    int32    2147483647 + 1  →  -2147483648        wraps around at the dtype's width
    uint8    3 - 5           →  254
    int8     7 // 2          →  3
    int8     7 % 2           →  stays: only int32 and int64 fold %, truncmod, shifts and bits
    float32  0.1 + 0.2       →  0.3 rounded to float32
    float16  1.0 + 2.0       →  stays: only float32 and float64 fold arithmetic
    i + 0, i * 1, i // 1     →  i

Source: TVM 0.16, "src/arith/const_fold.h" and "src/tir/op/op.cc". What differs: where an identity of TVM's is wrong for -0, infinities
or NaN (`x * 0.0`, `0.0 + x`), the operator stays; overflow of unsigned numbers wraps around where TVM fails.
"""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable
from enum import Enum, auto
from typing import NamedTuple, TypeAlias


class Operand(Enum):
    """The operand that an operator returns unchanged."""

    LEFT = auto()
    RIGHT = auto()


Folded: TypeAlias = "Operand | int | float | None"
"""An operand, a number of the result's dtype, or None where the operator stays."""


class NumberType(NamedTuple):
    """A scalar dtype as folding asks for it: `int8` is `(False, 8, True)`, `bool` is `(False, 1, False)`."""

    is_float: bool
    bits: int
    is_signed: bool = True

    def wrap(self, value: int) -> int:
        """Returns the integer of this dtype with the same low bits."""
        value &= (1 << self.bits) - 1
        return value - (1 << self.bits) if self.is_signed and value >> (self.bits - 1) else value


INT32 = NumberType(False, 32)


def truncdiv(a: int, b: int) -> int:
    """Returns a / b rounded toward zero."""
    return -(-a // b) if (a < 0) != (b < 0) else a // b


def truncmod(a: int, b: int) -> int:
    """Returns the remainder of `truncdiv`, which has the sign of `a`."""
    return a - b * truncdiv(a, b)


# Of a NaN and a number, and of two zeros, the second: as native code compares.
def smaller(a: float, b: float) -> float:
    """Returns the smaller of two numbers."""
    return a if a < b else b


def larger(a: float, b: float) -> float:
    """Returns the larger of two numbers."""
    return a if a > b else b


def _floor_quotient(a: float, b: float) -> float:
    return float(math.floor(a / b))


_INTEGERS: dict[str, Callable[[int, int], int]] = {
    "tir.add": operator.add, "tir.sub": operator.sub, "tir.mul": operator.mul, "tir.div": truncdiv, "tir.mod": truncmod,
    "tir.floordiv": int.__floordiv__, "tir.floormod": operator.mod, "tir.min": min, "tir.max": max,
    "tir.and": int.__and__, "tir.or": int.__or__,
    "bitwise_and": int.__and__, "bitwise_or": int.__or__, "bitwise_xor": int.__xor__,
    "shift_left": int.__lshift__, "shift_right": int.__rshift__,
}  # fmt: skip
_FLOATS: dict[str, Callable[[float, float], float]] = {
    "tir.add": operator.add, "tir.sub": operator.sub, "tir.mul": operator.mul, "tir.div": float.__truediv__,
    "tir.floordiv": _floor_quotient, "tir.min": smaller, "tir.max": larger,
}  # fmt: skip
_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "tir.eq": operator.eq, "tir.ne": operator.ne, "tir.lt": operator.lt, "tir.le": operator.le, "tir.gt": operator.gt,
    "tir.ge": operator.ge,
}  # fmt: skip
_DIVISIONS = frozenset(("tir.div", "tir.mod", "tir.floordiv", "tir.floormod"))
_EXTREMA = frozenset(("tir.min", "tir.max"))
_OF_INDICES = frozenset(
    ("tir.mod", "tir.floormod", "bitwise_and", "bitwise_or", "bitwise_xor", "shift_left", "shift_right")
)
"""Those that fold for int32 and int64 alone."""

_LEFT, _RIGHT = Operand.LEFT, Operand.RIGHT
_IDENTITIES: dict[str, tuple[dict[int, Folded], dict[int, Folded]]] = {
    "tir.add": ({0: _RIGHT}, {0: _LEFT}),
    "tir.sub": ({}, {0: _LEFT}),
    "tir.mul": ({1: _RIGHT, 0: _LEFT}, {1: _LEFT, 0: _RIGHT}),
    "tir.div": ({0: _LEFT}, {1: _LEFT}),
    "tir.floordiv": ({0: _LEFT}, {1: _LEFT}),
    "tir.mod": ({0: _LEFT}, {1: 0}),
    "tir.floormod": ({0: _LEFT}, {1: 0}),
    "shift_left": ({}, {0: _LEFT}),
    "shift_right": ({}, {0: _LEFT}),
    "tir.and": ({1: _RIGHT, 0: _LEFT}, {1: _LEFT, 0: _RIGHT}),
    "tir.or": ({1: _LEFT, 0: _RIGHT}, {1: _RIGHT, 0: _LEFT}),
}
"""What an integer operator returns for a constant on its left, and for one on its right."""


def fold(op: str, x: float | None, y: float | None, type: NumberType) -> Folded:
    """Returns what TVM's operator makes of operands of dtype `type`, where `x` and `y` are their values if they are constants.

    `op` is the name of an op (`tir.add`) or of an intrinsic (`shift_left`). A comparison's number is 0 or 1.
    Raises ZeroDivisionError for an integer divided by the constant 0.
    """
    if type.is_float:
        return _fold_floats(op, x, y, type.bits)
    if op in _DIVISIONS and y == 0:
        raise ZeroDivisionError
    if op in _OF_INDICES and not (type.is_signed and type.bits in (32, 64)):
        return None
    # Constants of unsigned dtypes may be held as the signed numbers of the same bits.
    a = None if x is None else int(x) if type.is_signed else type.wrap(int(x))
    b = None if y is None else int(y) if type.is_signed else type.wrap(int(y))
    if a is not None and b is not None:
        if op in _INTEGERS:
            return type.wrap(_INTEGERS[op](a, b))
        if op in _COMPARISONS:
            return int(_COMPARISONS[op](a, b))
    left, right = _IDENTITIES.get(op, ({}, {}))
    found = None if a is None else left.get(a)
    return right.get(b) if found is None and b is not None else found


def _fold_floats(op: str, x: float | None, y: float | None, bits: int) -> Folded:
    if x is not None and y is not None:
        if op in _COMPARISONS:
            return int(_COMPARISONS[op](x, y))
        if op not in _FLOATS or (bits not in (32, 64) and op not in _EXTREMA) or (y == 0 and op in _DIVISIONS):
            return None
        try:
            return round_float(_FLOATS[op](round_float(float(x), bits), round_float(float(y), bits)), bits)
        except (OverflowError, ValueError):
            return None
    # The side that a constant on the other leaves as it is, whatever float it is: -0 + b, a - 0, 1 * b, a / 1.
    if op == "tir.add":
        return _RIGHT if _is_zero(x, -1.0) else _LEFT if _is_zero(y, -1.0) else None
    if op == "tir.sub":
        return _LEFT if _is_zero(y, 1.0) else None
    if op == "tir.mul":
        return _RIGHT if x == 1 else _LEFT if y == 1 else None
    return _LEFT if op == "tir.div" and y == 1 else None


def _is_zero(value: float | None, sign: float) -> bool:
    return value == 0 and math.copysign(1.0, value) == sign


def round_float(value: float, bits: int) -> float:
    """Returns a float as float32 holds it, if `bits` is 32; beyond its greatest that is infinity."""
    if bits != 32 or not math.isfinite(value):
        return value
    try:
        return struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def fold_cast(value: float, type: NumberType) -> int | float | None:
    """Returns the constant converted by value to dtype `type`; None for infinities and NaN as integers.

    Integers wrap around; floats are rounded toward zero and limited to what the dtype holds, as when they are converted at run time.
    """
    if type.is_float:
        return float(value)
    if isinstance(value, int):
        return int(value != 0) if type.bits == 1 else type.wrap(value)
    if not math.isfinite(value):
        return None
    if type.bits == 1:
        return int(bool(value))
    low, high = (-(1 << type.bits - 1), (1 << type.bits - 1) - 1) if type.is_signed else (0, (1 << type.bits) - 1)
    return max(low, min(high, int(value)))
