"""Computes elementary functions in f32 vectors by tables in registers: AVX-512's 16 lanes, AVX2's 8.

One instruction picks, for each lane, one of the elements of a register. So the range of a function can be cut into pieces, and the
coefficients of a piece are picked: of erf those of a short polynomial, which takes half the time of a long one and a division; of tanh
the value and slope in the middle, from which its addition theorem leads to the others; of exp 2**(j/16), which leaves a polynomial of
three terms; of log the reciprocal of a number nearby and its logarithm, which leaves one of four. Lookups share a processor's units with
multiplications, so fewer tables may count for more than a division. AVX-512 puts the exponent in, or takes it out, by an instruction that
overflows and underflows as it should, so that no value is a special case. Errors are below 2 units in the last place.

Vectors may be of several registers, which are computed together: their operations take long, and two chains of them fill each other's
gaps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, VectorType, i16, i32
from xdsl.ir import Attribute, SSAValue

from ....support.target import Target
from ..convert.types import element_of, lanes
from .float32 import LN2_HIGH, LN2_LOW
from .lane_expr import Float, Int, mul_add, polynomial
from .table_coefficients import (
    ERF_END,
    LOG_PIECES,
    TANH_END,
    Table,
    cotangent,
    erf_pieces,
    falling,
    log_polynomial,
    logarithms,
    powers,
    scaled_powers,
    tanh_pieces,
)

Function = Callable[[Float], Float]


def tabled(target: Target, type_: Attribute) -> Mapping[str, Function]:
    """Returns the functions that look up tables, for a type on a processor.

    Vectors that are not a whole number of registers are computed in whole ones, or in half of one where they fit; the shortest are not.
    """
    count, width = lanes(type_), target.vector_bytes // 4
    if 2 * count <= width:
        width //= 2
    functions = TABLED.get(width, {})
    if target.arch != "x86_64" or 2 * count <= width:
        return {}
    whole = width
    while whole < count:
        whole *= 2
    return functions if whole == count else {name: _in_lanes(whole, function) for name, function in functions.items()}


def _in_lanes(whole: int, function: Function) -> Function:
    """A function on vectors of some lanes for vectors of fewer."""

    def filled(x: Float) -> Float:
        count = lanes(x.value.type)
        result = function(Float(x.b, x.b.shuffle(x.value, x.value, [*range(count), *[-1] * (whole - count)])))
        return Float(x.b, x.b.shuffle(result.value, result.value, range(count)))

    return filled


# Instructions


def _by_register(like: Float, name: str, operands: Sequence[SSAValue], width: int) -> Float:
    """An instruction on registers of some lanes, for operands that are one or more of them, or numbers."""
    b, type_ = like.b, like.value.type
    count = lanes(type_)
    register = VectorType(element_of(type_), [width])
    parts = [
        b.compute(name, [b.shuffle(v, v, part) if lanes(v.type) > width else v for v in operands], register)
        for part in (range(first, first + width) for first in range(0, count, width))
    ]
    while len(parts) > 1:
        width *= 2
        parts = [b.shuffle(low, high, range(width)) for low, high in zip(parts[::2], parts[1::2], strict=True)]
    return Float(b, parts[0])


def _wide(like: Float, name: str, operands: Sequence[SSAValue]) -> Float:
    """An instruction of AVX-512 on all lanes, rounding as usual."""
    b = like.b
    return _by_register(like, f"x86.avx512.{name}.ps.512", (*operands, b.constant(-1, i16), b.constant(4, i32)), 16)


@dataclass(frozen=True)
class _Pieces:
    """As many as a register has elements."""

    count: int

    def pick(self, table: Table, piece: Int, like: Float) -> Float:
        """For each lane the element of a table of which its lowest bits are the number."""
        type_ = VectorType(i32, [self.count])
        table_bits = like.b.constant_attr(DenseIntOrFPElementsAttr.from_list(type_, table), type_)
        values = Int(like.b, table_bits).as_float_bits().value
        name = "x86.avx512.permvar.sf.512" if self.count == 16 else "x86.avx2.permps"
        return _by_register(like, name, (values, piece.value), self.count)


SIXTEEN, EIGHT = _Pieces(16), _Pieces(8)


def _times_power(x: Float, exponent: Float) -> Float:
    """x times 2 to the whole part, rounded down, of the exponent."""
    return _wide(x, "mask.scalef", (x.value, exponent.value, x.value))


def _exponent(x: Float) -> Float:
    """The exponent of x as a float; infinite for 0 and infinity."""
    return _wide(x, "mask.getexp", (x.value, x.value))


def _mantissa(x: Float) -> Float:
    """x times the power of 2 that brings it between 3/4 and 3/2; 1 for 0 and infinity, NaN below 0."""
    return _wide(x, "mask.getmant", (x.value, x.b.constant(0b1011, i32), x.value))


def _nearer_zero(x: Float, bound: float) -> Float:
    """x, or the bound with the sign of x where that is nearer to 0; the bound for NaN."""
    return _wide(x, "mask.range", (x.value, x.same(bound), x.b.constant(0b0010, i32), x.value))


def _nearest(x: Float, step: float) -> tuple[Int, Float]:
    """k for the k * step that is nearest to an x of at least 0, in the low bits, and x less that."""
    magic = 1.5 * 2.0**23
    shifted = mul_add(x, 1.0 / step, magic)
    return shifted.bits(), mul_add(shifted - magic, -step, x)


# Exponentials


def _split(x: Float, count: int) -> tuple[Int, Float, Float]:
    """Reduces x = n ln 2 + r for n in parts of 1 / count; returns n * count in low bits, n and r."""
    magic = 1.5 * 2.0**23 / count
    shifted = mul_add(x, 1.0 / math.log(2.0), magic)
    n = shifted - magic
    return shifted.bits(), n, mul_add(n, -LN2_LOW, mul_add(n, -LN2_HIGH, x))


def exp(x: Float) -> Float:
    """e**x = 2**n e**r, |r| <= ln 2 / 32. Where n is so large that r is not computed well, r is bounded."""
    piece, n, r = _split(x, 16)
    r = _nearer_zero(r, 0.03)
    power = SIXTEEN.pick(powers(16), piece, x)
    return _times_power(mul_add(mul_add(r * r, mul_add(r, 1 / 6, 0.5), r), power, power), n)


def sigmoid(x: Float) -> Float:
    """Computes 1 / (1 + e**-x) = w / (w + e**-r), which neither overflows.

    x = n ln 2 + r and w = 2**n, with n in sixteenths.
    """
    piece, n, r = _split(x.at_least(-110.0).at_most(60.0), 16)
    mantissa, rest = (SIXTEEN.pick(table, piece, x) for table in scaled_powers(16))
    return _sigmoid(_times_power(mantissa, n), rest, r, 16)


def sigmoid_by_eighths(x: Float) -> Float:
    """As `sigmoid`; w is put together from bits 2**24 times as large, as it may be denormal."""
    piece, _, r = _split(x.at_least(-104.0).at_most(60.0), 8)
    mantissa, rest = (EIGHT.pick(table, piece, x) for table in scaled_powers(8))
    return _sigmoid((((piece << 20) & -0x800000) + (24 << 23) + mantissa.bits()).as_float_bits() * 2.0**-24, rest, r, 8)


def _sigmoid(w: Float, rest: Float, r: Float, count: int) -> Float:
    """w / (w + e**-r), both scaled; `rest` is e**0."""
    return w / (w + mul_add(r, polynomial(r, falling(count)), rest))


# erf and tanh


def _erf(pieces: _Pieces, step: float, degree: int) -> Function:
    def erf(x: Float) -> Float:
        """2 / sqrt(pi) times the integral of exp(-t**2) from 0 to x."""
        piece, u = _nearest(abs(x).at_most(ERF_END), step)
        constant, *tables, last = (pieces.pick(table, piece, x) for table in erf_pieces(pieces.count, step, degree))
        total = last
        for coefficient in reversed(tables):
            total = mul_add(total, u, coefficient)
        # The first piece is u more: the constant is 0 there, and above all u elsewhere.
        return mul_add(total, u, (constant > u).choose(constant, u)).with_sign_of(x)

    return erf


def tanh(x: Float) -> Float:
    """Computes (e**x - e**-x) / (e**x + e**-x) by sums with a large number, saving multiplications."""
    magnitude = abs(x)
    step = 0.5
    magic = 1.5 * 2.0**23 * step
    shifted = magnitude.at_most(15 * step) + magic
    u = magnitude.at_most(TANH_END) - (shifted - magic)
    return _tanh(SIXTEEN, step, 2, shifted.bits(), u).with_sign_of(x)


def tanh_by_eighths(x: Float) -> Float:
    """As `tanh`."""
    step = 1.25
    piece, u = _nearest(abs(x).at_most(TANH_END), step)
    return _tanh(EIGHT, step, 4, piece, u).with_sign_of(x)


def _tanh(pieces: _Pieces, step: float, terms: int, piece: Int, u: Float) -> Float:
    """tanh(c + u) = t + (1 - t**2) u / (u coth(u) + t u) of t = tanh(c), for c in steps."""
    middle, slope = (pieces.pick(table, piece, u) for table in tanh_pieces(pieces.count, step, terms))
    even = polynomial(u * u, cotangent(step, terms))
    divisor = mul_add(u, mul_add(u, even, middle), 1.0)
    return middle + (slope * u) / divisor


def log(x: Float) -> Float:
    """The natural logarithm; -inf at 0, NaN below."""
    mantissa = _mantissa(x)
    n = _exponent(x) - _exponent(mantissa)
    piece = (mantissa + 1.5 * 2.0**23 / LOG_PIECES).bits()
    inverse, logarithm = (SIXTEEN.pick(table, piece, x) for table in logarithms())
    r = mul_add(mantissa, inverse, -1.0)
    return mul_add(n, math.log(2.0), logarithm) + mul_add(r * r, polynomial(r, log_polynomial()), r)


TABLED: dict[int, Mapping[str, Function]] = {
    16: {"exp": exp, "sigmoid": sigmoid, "erf": _erf(SIXTEEN, 33 / 128, 5), "tanh": tanh, "log": log},
    8: {"sigmoid": sigmoid_by_eighths, "erf": _erf(EIGHT, 9 / 16, 6), "tanh": tanh_by_eighths},
}
"""By the lanes of a register."""
