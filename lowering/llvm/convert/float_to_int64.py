"""Converts floats to 64-bit integers in vectors by shifts, for processors without an instruction.

AVX2 shifts each lane of 64 bits by a number of its own, but converts to 32 bits only; LLVM would do one lane after the other.

    f32 -> i64:  significand << 39 >> 62 - exponent, with the sign of x; 0 below 1 and of NaN, the greatest or least from 2**63 on
"""

from __future__ import annotations

from xdsl.dialects import llvm
from xdsl.ir import Attribute, SSAValue

from ..libm.lane_expr import Float, Int
from .builder import Builder


def float_to_wide_integer(b: Builder, value: SSAValue, type_: Attribute, signed: bool) -> SSAValue:
    """Converts a vector of f32 or f64 toward zero, limited to the type's range, NaN to 0."""
    x = Float(b, value)
    fraction, exponents = (52, 11) if x.is_wide() else (23, 8)
    bias = (1 << (exponents - 1)) - 1
    top = 62 if signed else 63
    bits, size = x.bits(), abs(x) if signed else x
    significand = (bits & ((1 << fraction) - 1) | 1 << fraction).choose(size >= 1.0, 0)
    places = Int(b, b.constant(bias + top, bits.value.type)) - (bits >> fraction) & 63

    def widen(number: Int, op: type[llvm.ZExtOp | llvm.SExtOp] = llvm.ZExtOp) -> Int:
        return number if x.is_wide() else Int(b, b.emit(op, (number.value,), type_))

    # Where the exponent is out of range, the significand is 0, or the result is the limit.
    shifted = widen(significand) << (top - fraction)
    whole = Int(b, b.emit(llvm.LShrOp, (shifted.value, widen(places).value), type_))
    beyond = size >= 2.0 ** (top + 1)
    if not signed:
        return b.select(beyond.value, b.constant(-1, type_), whole.value)
    sign = widen(bits >> (fraction + exponents), llvm.SExtOp)
    limits = Int(b, b.emit(llvm.SExtOp, (beyond.value,), type_))
    # The greatest number with all bits flipped is the least.
    limited = whole | Int(b, b.emit(llvm.LShrOp, (limits.value, b.constant(1, type_)), type_))
    return ((limited ^ sign) - (sign & (limits ^ -1))).value
