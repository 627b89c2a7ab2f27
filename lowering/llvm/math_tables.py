"""Elementary functions in f32 on vectors in whose registers tables are looked up: AVX-512's, of 16 lanes.

One instruction picks, for each lane, one of the 16 elements of a register. So the range of a function can be cut into pieces, and what a
piece needs is picked: of erf the coefficients of a short polynomial, which takes half the time of a long one and a division; of tanh the
value and slope in the middle, from which its addition theorem leads to the others; of exp 2**(j/16), which leaves a polynomial of three
terms; of log the reciprocal of a number nearby and its logarithm, which leaves one of four. Lookups share a processor's units with
multiplications, so fewer tables may count for more than a division. The exponent is put in, or taken out, by an instruction that
overflows and underflows as it should, so that no value is a special case. Errors are below 2 units in the last place.

Coefficients are computed when they are first needed, by interpolation at Chebyshev's nodes.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from functools import cache

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, VectorType, i16, i32
from xdsl.ir import Attribute

from ...support.target import Target
from .lane_expr import Float, Int, mul_add, polynomial
from .math_library import LN2_HIGH, LN2_LOW
from .types import lanes

LANES = 16
SIGN = 1 << 31

Table = tuple[int, ...]
"""The bits of an f32 for each piece."""


def has_tables(target: Target, type_: Attribute) -> bool:
    """Whether tables are looked up in registers of a type on a processor."""
    return target.arch == "x86_64" and target.vector_bytes == 4 * LANES and lanes(type_) == LANES


def _bits(x: float) -> int:
    """The bits of x, rounded to f32."""
    return int(struct.unpack("<i", struct.pack("<f", x))[0])


def _value(bits: int) -> float:
    return float(struct.unpack("<f", struct.pack("<i", bits))[0])


# Coefficients


def _interpolated(f: Callable[[float], float], low: float, high: float, degree: int) -> list[float]:
    """The coefficients of a polynomial that is as f at Chebyshev's nodes from `low` to `high`, after Newton."""
    count = degree + 1
    nodes = [(low + high) / 2 + (high - low) / 2 * math.cos(math.pi * (2 * k + 1) / (2 * count)) for k in range(count)]
    divided = [f(x) for x in nodes]
    for level in range(1, count):
        for k in range(count - 1, level - 1, -1):
            divided[k] = (divided[k] - divided[k - 1]) / (nodes[k] - nodes[k - level])
    result: list[float] = []
    for node, difference in zip(reversed(nodes), reversed(divided), strict=True):
        # result * (x - node) + difference
        shifted = [0.0, *result]
        for power, coefficient in enumerate(result):
            shifted[power] -= node * coefficient
        shifted[0] += difference
        result = shifted
    return result


def _near_zero(f: Callable[[float], float], slope: float, end: float, degree: int) -> list[float]:
    """The coefficients of f(x) - x from 0 to `end`, for an odd f of that slope at 0: the slope comes out as it is, and the error, which
    is relative, is kept small toward the end."""

    def rest(x: float) -> float:
        return (f(x) / x - slope) / (x * x)

    return [0.0, slope - 1.0, 0.0, *_interpolated(rest, end / 4, end, degree - 3)]


def _by_power(pieces: Sequence[Sequence[float]]) -> tuple[Table, ...]:
    return tuple(tuple(_bits(piece[power]) for piece in pieces) for power in range(len(pieces[0])))


@cache
def _powers() -> tuple[Table, Table]:
    """2**(j/16), and what it was rounded by."""
    exact = [2.0 ** (j / LANES) for j in range(LANES)]
    rounded = tuple(map(_bits, exact))
    return rounded, tuple(_bits(x - _value(r)) for x, r in zip(exact, rounded, strict=True))


def _neighbours(x: float) -> tuple[float, float, float]:
    """x, rounded to f32, and the numbers before and after that; x is above 0."""
    bits = _bits(x)
    return _value(bits), _value(bits - 1), _value(bits + 1)


ERF_STEP = 0.25
ERF_END = 3.95
ERF_DEGREE = 5


@cache
def _erf_table() -> tuple[Table, ...]:
    """erf(k / 4 + u) by powers of u, for the k to which x is nearest; the last one reaches to where the result is 1."""
    half = ERF_STEP / 2
    pieces = [_near_zero(math.erf, 2.0 / math.sqrt(math.pi), half, ERF_DEGREE)]
    for k in range(1, LANES):
        middle = k * ERF_STEP
        end = half if k < LANES - 1 else ERF_END - middle
        pieces.append(_interpolated(lambda u, c=middle: math.erf(c + u), -half, end, ERF_DEGREE))
    return _by_power(pieces)


TANH_STEP = 0.5
TANH_END = 9.1


@cache
def _cotangent() -> tuple[float, float]:
    """a and b so that u coth(u) = 1 + a u**2 + b u**4 for |u| up to half a step: the nodes are as if there were one at 0, too."""
    end = (TANH_STEP / 2) ** 2
    low, high = _interpolated(lambda v: (math.sqrt(v) / math.tanh(math.sqrt(v)) - 1.0) / v, 0.37 * end, 1.024 * end, 1)
    return low, high


@cache
def _tanh_table() -> tuple[Table, Table]:
    """tanh(k / 2) and its slope there; of the slopes next to it the one that leads nearest to the lower end, where an error counts most."""
    a, b = _cotangent()
    u = TANH_STEP / 2
    middles, slopes = [0.0], [1.0]
    for k in range(1, LANES):
        exact = math.tanh(k * TANH_STEP)
        middle = _value(_bits(exact))
        divisor = 1.0 + a * u**2 + b * u**4 - middle * u
        wanted = (middle - math.tanh(k * TANH_STEP - u)) * divisor / u
        middles.append(middle)
        slopes.append(min(_neighbours(1.0 - exact * exact), key=lambda slope, w=wanted: abs(slope - w)))
    return tuple(map(_bits, middles)), tuple(map(_bits, slopes))


LOG_STEP = 1 / LANES
LOG_TRIES = 64
"""How many numbers next to a reciprocal are looked at for one whose logarithm is nearly an f32."""


@cache
def _log_table() -> tuple[Table, Table]:
    """About 1 / c for the c = k / 16 from 3/4 to 3/2, at k modulo 16, and minus their logarithms; 1 and 0 for c = 1."""
    inverses, logarithms = [1.0] * LANES, [0.0] * LANES
    for k in range(3 * LANES // 4, 3 * LANES // 2 + 1):
        if k != LANES:
            near = (_value(_bits(LANES / k * (1 + j * 2.0**-14))) for j in range(-LOG_TRIES, LOG_TRIES))
            inverses[k % LANES] = best = min(near, key=lambda inverse: _rounded_off(-math.log(inverse)))
            logarithms[k % LANES] = -math.log(best)
    return tuple(map(_bits, inverses)), tuple(map(_bits, logarithms))


def _rounded_off(x: float) -> float:
    return abs(x - _value(_bits(x)))


@cache
def _log_polynomial() -> tuple[float, ...]:
    """log(1 + r) = r + r**2 times this, for the r that the table leaves."""
    most = 0.045
    return tuple(_interpolated(lambda r: (math.log1p(r) - r) / (r * r), -most, most, 3))


# Instructions


def _table(b: Float, table: Table) -> Float:
    type_ = VectorType(i32, [LANES])
    return Int(b.b, b.b.constant_attr(DenseIntOrFPElementsAttr.from_list(type_, table), type_)).as_float_bits()


def _picked(table: Table, piece: Int, like: Float) -> Float:
    """For each lane the element of a table of which its lowest four bits are the number."""
    operands = (_table(like, table).value, piece.value)
    return Float(like.b, like.b.compute("x86.avx512.permvar.sf.512", operands, like.value.type))


def _times_power(x: Float, exponent: Float) -> Float:
    """x times 2 to the whole part, rounded down, of the exponent."""
    b = x.b
    operands = (x.value, exponent.value, x.value, b.constant(-1, i16), b.constant(4, i32))
    return Float(b, b.compute("x86.avx512.mask.scalef.ps.512", operands, x.value.type))


def _polynomial(u: Float, tables: Sequence[Table], piece: Int, base: Callable[[Float], Float]) -> Float:
    """By Horner, the constant term as `base` says."""
    total = _picked(tables[-1], piece, u)
    for table in tables[-2:0:-1]:
        total = mul_add(total, u, _picked(table, piece, u))
    return mul_add(total, u, base(_picked(tables[0], piece, u)))


def _exponent(x: Float) -> Float:
    """The exponent of x as a float; infinite for 0 and infinity."""
    b = x.b
    operands = (x.value, x.value, b.constant(-1, i16), b.constant(4, i32))
    return Float(b, b.compute("x86.avx512.mask.getexp.ps.512", operands, x.value.type))


def _mantissa(x: Float) -> Float:
    """x times the power of 2 that brings it between 3/4 and 3/2; 1 for 0 and infinity, NaN below 0."""
    b = x.b
    operands = (x.value, b.constant(0b1011, i32), x.value, b.constant(-1, i16), b.constant(4, i32))
    return Float(b, b.compute("x86.avx512.mask.getmant.ps.512", operands, x.value.type))


# Functions


def _split(x: Float) -> tuple[Int, Float, Float]:
    """x = n ln 2 + r for n in sixteenths, |r| <= ln 2 / 32: a number whose lowest bits are those of 16 n, n, and e**r - 1."""
    magic = 1.5 * 2.0**23 / LANES
    shifted = mul_add(x, 1.0 / math.log(2.0), magic)
    n = shifted - magic
    r = mul_add(n, -LN2_LOW, mul_add(n, -LN2_HIGH, x))
    return shifted.bits(), n, mul_add(r * r, mul_add(r, 1 / 6, 0.5), r)


def exp(x: Float) -> Float:
    """e**x."""
    piece, n, less = _split(x.at_least(-110.0).at_most(89.0))
    power = _picked(_powers()[0], piece, x)
    return _times_power(mul_add(less, power, power), n)


def sigmoid(x: Float) -> Float:
    """1 / (1 + e**-x): of y = e**-|x|, 1 / (1 + y) or y / (1 + y)."""
    negative = x.bits().compare("slt", 0)
    piece, n, less = _split((x.bits() | SIGN).as_float_bits().at_least(-110.0))
    high, low = (_picked(table, piece, x) for table in _powers())
    y = _times_power(high + mul_add(less, high, low), n)
    total = y + 1.0
    quotient = negative.choose(y, 1.0) / total
    # What the sum was rounded by counts as much as an error of the last place.
    return mul_add(quotient, (total - 1.0) - y, quotient)


def erf(x: Float) -> Float:
    """2 / sqrt(pi) times the integral of exp(-t**2) from 0 to x."""
    magnitude = abs(x)
    magic = 1.5 * 2.0**23 * ERF_STEP
    shifted = magnitude.at_most((LANES - 0.75) * ERF_STEP) + magic
    middle = shifted - magic
    u = magnitude.at_most(ERF_END) - middle
    far = middle > 0.0
    return _polynomial(u, _erf_table(), shifted.bits(), lambda base: far.choose(base, u)).with_sign_of(x)


def tanh(x: Float) -> Float:
    """(e**x - e**-x) / (e**x + e**-x): tanh(c + u) = t + (1 - t**2) u / (u coth(u) + t u) of t = tanh(c)."""
    magnitude = abs(x).at_most(TANH_END)
    magic = 1.5 * 2.0**23 * TANH_STEP
    shifted = magnitude.at_most((LANES - 1) * TANH_STEP) + magic
    u = magnitude - (shifted - magic)
    middle, slope = (_picked(table, shifted.bits(), x) for table in _tanh_table())
    a, b = _cotangent()
    divisor = mul_add(u, mul_add(u, mul_add(u * u, b, a), middle), 1.0)
    return (middle + (slope * u) / divisor).with_sign_of(x)


def log(x: Float) -> Float:
    """The natural logarithm; -inf at 0, NaN below."""
    mantissa = _mantissa(x)
    n = _exponent(x) - _exponent(mantissa)
    piece = (mantissa + 1.5 * 2.0**23 * LOG_STEP).bits()
    inverse, logarithm = (_picked(table, piece, x) for table in _log_table())
    r = mul_add(mantissa, inverse, -1.0)
    return mul_add(n, math.log(2.0), logarithm) + mul_add(r * r, polynomial(r, _log_polynomial()), r)


TABLED: dict[str, Callable[[Float], Float]] = {f.__name__: f for f in (exp, log, sigmoid, erf, tanh)}
