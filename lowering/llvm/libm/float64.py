"""Computes elementary functions in f64 vectors by straight-line code; the C library has the others.

The argument's reduction is Cody and Waite's, the polynomial Taylor's: of so few coefficients more than a fit would need, exact ones cost less.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from .float32 import MAGIC_F64
from .lane_expr import Float, mul_add, polynomial

# The upper part of ln 2 has 11 trailing zeros, so that n times it is exact.
LN2_HIGH, LN2_LOW = float.fromhex("0x1.62e42fefa3800p-1"), float.fromhex("0x1.ef35793c76730p-45")
EXP = tuple(1.0 / math.factorial(k) for k in range(2, 14))
"""(e**r - 1 - r) / r**2; what is left out is below 1e-17 for |r| <= ln 2 / 2."""


def exp(x: Float) -> Float:
    """Computes e**x."""
    bounded = x.at_least(-750.0).at_most(710.0)
    shifted = mul_add(bounded, 1.0 / math.log(2.0), MAGIC_F64)
    n = shifted - MAGIC_F64
    r = mul_add(n, -LN2_LOW, mul_add(n, -LN2_HIGH, bounded))
    less = mul_add(r * r, polynomial(r, EXP), r)
    # 2**n itself would overflow or be denormal before the result does: the last factor of two, or 64 of them, come after.
    tiny = bounded < -700.0
    bits = shifted.bits() << 52
    scale = (bits + tiny.pick(bits, (1023 + 64) << 52, 1022 << 52)).as_float_bits()
    return mul_add(less, scale, scale) * tiny.pick(x, 2.0**-64, 2.0)


WIDE: dict[str, Callable[[Float], Float]] = {"exp": exp}
