"""Folds constants of scalar operators by their rows of `tir.scalar_ops`.

TVMScript's reader, TE and simplification share it.

    int32    2147483647 + 1  →  -2147483648        wraps around at the dtype's width
    uint8    3 - 5           →  254
    int8     7 // 2          →  3
    int8     7 % 2           →  stays: only int32 and int64 fold %, truncmod, shifts and bits
    float32  0.1 + 0.2       →  0.3 rounded to float32
    float16  1.0 + 2.0       →  stays: only float32 and float64 fold arithmetic
    i + 0, i * 1, i // 1     →  i

Source: TVM 0.16, "src/arith/const_fold.h" and "src/tir/op/op.cc". Differences: where an identity of TVM's is wrong for -0, infinities
or NaN (`x * 0.0`, `0.0 + x`), the operator stays; overflow of unsigned numbers wraps around where TVM fails.
"""

from __future__ import annotations

import math
import struct
from enum import Enum, auto
from typing import NamedTuple, TypeAlias

from ..tir.scalar_ops import BOOL, SCALAR_OPS, Precedence, ScalarOp


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


def takes_right(left: NumberType, right: NumberType) -> bool:
    """Returns True if operands of two dtypes are both cast to the right one: TVM's BinaryOpMatchTypes.

    Floats win over integers, wider dtypes over narrower, unsigned over signed: int8, uint8 → uint8; float32, int64 → float32.
    """
    if left.is_float != right.is_float:
        return right.is_float
    if left.bits != right.bits:
        return left.bits < right.bits
    return left.is_signed and not left.is_float


def fold(op: str, x: float | None, y: float | None, type: NumberType) -> Folded:
    """Returns the result of TVM's operator on operands `x` and `y` (None if not constant) of dtype `type`.

    `op` is the name of an op (`tir.add`) or of an intrinsic (`shift_left`). A comparison's number is 0 or 1.
    Raises ZeroDivisionError for an integer divided by the constant 0.
    """
    row = SCALAR_OPS[op]
    if type.is_float:
        return _fold_floats(row, x, y, type.bits)
    if y == 0 and row.divides:
        raise ZeroDivisionError
    if row.folds_indices_only and not (type.is_signed and type.bits in (32, 64)):
        return None
    # Constants of unsigned dtypes may be held as the signed numbers of the same bits.
    a = None if x is None else int(x) if type.is_signed else type.wrap(int(x))
    b = None if y is None else int(y) if type.is_signed else type.wrap(int(y))
    if row.precedence is Precedence.SHIFT and b is not None and not 0 <= b < type.bits:
        return None
    if a is not None and b is not None:
        assert row.integers is not None
        result = row.integers(a, b)
        return int(result) if row.result is BOOL else type.wrap(result)
    if a is not None:
        return Operand.RIGHT if a == row.unit[0] else Operand.LEFT if a == row.zero[0] else None
    if b == 1 and row.divides and row.unit[1] is None:
        return 0
    return Operand.LEFT if b == row.unit[1] else Operand.RIGHT if b == row.zero[1] else None


def _fold_floats(row: ScalarOp, x: float | None, y: float | None, bits: int) -> Folded:
    if x is not None and y is not None:
        if row.floats is None or (y == 0 and row.divides):
            return None
        if row.result is BOOL:
            return int(row.floats(x, y))
        if bits not in (32, 64) and row.name not in ("min", "max"):
            return None
        try:
            return round_float(row.floats(round_float(float(x), bits), round_float(float(y), bits)), bits)
        except (OverflowError, ValueError):
            return None
    # The side that a constant on the other leaves as it is, whatever float it is: -0 + b, a - 0, 1 * b, a / 1.
    match row.name:
        case "add":
            return Operand.RIGHT if _is_zero(x, -1.0) else Operand.LEFT if _is_zero(y, -1.0) else None
        case "sub":
            return Operand.LEFT if _is_zero(y, 1.0) else None
        case "mul":
            return Operand.RIGHT if x == 1 else Operand.LEFT if y == 1 else None
        case _:
            return Operand.LEFT if row.name == "div" and y == 1 else None


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

    Integers wrap around; floats are rounded toward zero and limited to the range of the dtype, as when they are converted at run time.
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
