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
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, VectorType, i16, i32
from xdsl.ir import Attribute, SSAValue

from ....support.target import Target
from ..convert.types import element_of, lanes
from .float32 import LN2_HIGH, LN2_LOW
from .lane_expr import Float, Int, mul_add, polynomial

Table = tuple[int, ...]
"""The bits of an f32 for each piece."""


def bits(x: float) -> int:
    """Computes the bits of x, rounded to f32."""
    return int(struct.unpack("<i", struct.pack("<f", x))[0])


def _value(number: int) -> float:
    return float(struct.unpack("<f", struct.pack("<i", number))[0])


def interpolated(f: Callable[[float], float], low: float, high: float, degree: int) -> list[float]:
    """Returns the coefficients of f's interpolation at Chebyshev's nodes in [low, high], by Newton."""
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


# Exponentials

SCALE = 0.86
"""Of the sums in a sigmoid, so that they are below a power of two, where numbers are rounded by half as much as above, for
sigmoids just below 1/8 and smaller ones just below a power of two, where an error counts most."""


@cache
def powers(count: int) -> Table:
    """Returns 2**(j / count)."""
    return tuple(bits(2.0 ** (j / count)) for j in range(count))


@cache
def scaled_powers(count: int) -> tuple[Table, Table]:
    """Returns 2**(j / count) times a factor near the scale, and the factor, which is nearly an f32."""
    exact = [2.0 ** (j / count) for j in range(count)]
    scaled = [min(_neighbours(SCALE * x, 8), key=lambda y, x=x: _rounded_off(y / x)) for x in exact]
    return tuple(map(bits, scaled)), tuple(bits(y / x) for x, y in zip(exact, scaled, strict=True))


@cache
def falling(count: int) -> tuple[float, ...]:
    """Fits e**-r times the scale = the scale + r times this, for |r| up to half of ln 2 / count."""
    end = math.log(2.0) / count / 2
    return tuple(
        interpolated(lambda r: SCALE * math.expm1(-r) / r if r else -SCALE, -end, end, 2 if count >= 16 else 3)
    )


# erf

ERF_END = 3.95
"""From where the result is 1."""


@cache
def erf_pieces(count: int, step: float, degree: int) -> tuple[Table, ...]:
    """Fits erf(k * step + u) by powers of u, for the k to which x is nearest; less u for k = 0."""
    half = step / 2
    first = interpolated(lambda u: math.erf(u) / u - 1.0, 0.0, half, degree - 1)
    pieces = [[0.0, *first]]
    for middle in (k * step for k in range(1, count)):
        end = min(half, ERF_END - middle)
        piece = interpolated(lambda u, c=middle: math.erf(c + u), -half, end, degree)
        if end < half:
            # It is at its middle, within half of the last place, what it must be at its end.
            piece[0] = 1.0
        pieces.append(piece)
    return tuple(tuple(bits(piece[power]) for piece in pieces) for power in range(degree + 1))


# tanh

TANH_END = 9.1
"""From where the result is 1."""


@cache
def cotangent(step: float, terms: int) -> tuple[float, ...]:
    """Fits u coth(u) = 1 + u**2 times this polynomial of u**2, for |u| up to half a step, not near 0."""
    end = (step / 2) ** 2
    low, high = (0.37, 1.024) if terms == 2 else (0.1, 1.01)
    return tuple(
        interpolated(lambda v: (math.sqrt(v) / math.tanh(math.sqrt(v)) - 1.0) / v, low * end, high * end, terms - 1)
    )


@cache
def tanh_pieces(count: int, step: float, terms: int) -> tuple[Table, Table]:
    """Returns tanh(k * step) and its slope there.

    Of the adjacent slopes it is the one that leads nearest to the lower end, where an error counts most.
    """
    u = step / 2
    even = 1.0 + sum(a * u ** (2 * power) for power, a in enumerate(cotangent(step, terms), 1))
    middles, slopes = [0.0], [1.0]
    for k in range(1, count):
        exact = math.tanh(k * step)
        # The last piece is at its middle, within a unit of the last place, what it must be at its end.
        middle = 1.0 if k * step + u > TANH_END else _value(bits(exact))
        wanted = (middle - math.tanh(k * step - u)) * (even - middle * u) / u
        middles.append(middle)
        slopes.append(min(_neighbours(1.0 - exact * exact, 1), key=lambda slope, w=wanted: abs(slope - w)))
    return tuple(map(bits, middles)), tuple(map(bits, slopes))


def _neighbours(x: float, count: int) -> list[float]:
    """Returns x, above 0, rounded to f32, and `count` numbers before and after it."""
    return [_value(bits(x) + k) for k in range(-count, count + 1)]


# log

LOG_PIECES = 16
LOG_TRIES = 64
"""How many numbers next to a reciprocal are looked at for one whose logarithm is nearly an f32."""


@cache
def logarithms() -> tuple[Table, Table]:
    """Returns about 1 / c and -log(1 / c) at k mod 16 for c = k / 16 from 3/4 to 3/2, exact for c = 1."""
    count = LOG_PIECES
    inverses, results = [1.0] * count, [0.0] * count
    for k in range(3 * count // 4, 3 * count // 2 + 1):
        if k != count:
            near = (_value(bits(count / k * (1 + j * 2.0**-14))) for j in range(-LOG_TRIES, LOG_TRIES))
            inverses[k % count] = best = min(near, key=lambda inverse: _rounded_off(-math.log(inverse)))
            results[k % count] = -math.log(best)
    return tuple(map(bits, inverses)), tuple(map(bits, results))


def _rounded_off(x: float) -> float:
    return abs(x - _value(bits(x)))


@cache
def log_polynomial() -> tuple[float, ...]:
    """Fits log(1 + r) = r + r**2 times this, for the r that the table leaves."""
    most = 0.045
    return tuple(interpolated(lambda r: (math.log1p(r) - r) / (r * r), -most, most, 3))


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
    """Returns a function on vectors of some lanes for vectors of fewer."""

    def filled(x: Float) -> Float:
        count = lanes(x.value.type)
        result = function(Float(x.b, x.b.shuffle(x.value, x.value, [*range(count), *[-1] * (whole - count)])))
        return Float(x.b, x.b.shuffle(result.value, result.value, range(count)))

    return filled


# Instructions


def _by_register(like: Float, name: str, operands: Sequence[SSAValue], width: int) -> Float:
    """Applies an instruction of one register to operands of one or more registers, or numbers."""
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
    """Computes an instruction of AVX-512 on all lanes, rounding as usual."""
    b = like.b
    return _by_register(like, f"x86.avx512.{name}.ps.512", (*operands, b.constant(-1, i16), b.constant(4, i32)), 16)


@dataclass(frozen=True)
class _Pieces:
    """As many as a register has elements."""

    count: int

    def pick(self, table: Table, piece: Int, like: Float) -> Float:
        """Looks up the element of a table, for each lane, by the lane's lowest bits."""
        type_ = VectorType(i32, [self.count])
        table_bits = like.b.constant_attr(DenseIntOrFPElementsAttr.from_list(type_, table), type_)
        values = Int(like.b, table_bits).as_float_bits().value
        name = "x86.avx512.permvar.sf.512" if self.count == 16 else "x86.avx2.permps"
        return _by_register(like, name, (values, piece.value), self.count)


SIXTEEN, EIGHT = _Pieces(16), _Pieces(8)


def _times_power(x: Float, exponent: Float) -> Float:
    """Multiplies x by 2 to the whole part, rounded down, of the exponent."""
    return _wide(x, "mask.scalef", (x.value, exponent.value, x.value))


def _exponent(x: Float) -> Float:
    """Computes the exponent of x as a float; infinite for 0 and infinity."""
    return _wide(x, "mask.getexp", (x.value, x.value))


def _mantissa(x: Float) -> Float:
    """Scales x by a power of 2 to between 3/4 and 3/2; 1 for 0 and infinity, NaN below 0."""
    return _wide(x, "mask.getmant", (x.value, x.b.constant(0b1011, i32), x.value))


def _nearer_zero(x: Float, bound: float) -> Float:
    """Returns x, or the bound with its sign where that is nearer to 0; the bound for NaN."""
    return _wide(x, "mask.range", (x.value, x.same(bound), x.b.constant(0b0010, i32), x.value))


def _nearest(x: Float, step: float) -> tuple[Int, Float]:
    """Returns, for x from 0 on, the k of the nearest k * step in the low bits, and x less that."""
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
    """Computes e**x = 2**n e**r, |r| <= ln 2 / 32; r is bounded for an n too large to compute it well."""
    piece, n, r = _split(x, 16)
    r = _nearer_zero(r, 0.03)
    power = SIXTEEN.pick(powers(16), piece, x)
    return _times_power(mul_add(mul_add(r * r, mul_add(r, 1 / 6, 0.5), r), power, power), n)


def sigmoid(x: Float) -> Float:
    """Computes the sigmoid w / (w + e**-r) for x = n ln 2 + r, w = 2**n and n in sixteenths."""
    piece, n, r = _split(x.at_least(-110.0).at_most(60.0), 16)
    mantissa, rest = (SIXTEEN.pick(table, piece, x) for table in scaled_powers(16))
    return _sigmoid(_times_power(mantissa, n), rest, r, 16)


def sigmoid_by_eighths(x: Float) -> Float:
    """Computes the sigmoid; w, which may be denormal, is made from bits 2**24 times as large."""
    piece, _, r = _split(x.at_least(-104.0).at_most(60.0), 8)
    mantissa, rest = (EIGHT.pick(table, piece, x) for table in scaled_powers(8))
    return _sigmoid((((piece << 20) & -0x800000) + (24 << 23) + mantissa.bits()).as_float_bits() * 2.0**-24, rest, r, 8)


def _sigmoid(w: Float, rest: Float, r: Float, count: int) -> Float:
    """Computes w / (w + e**-r), both scaled; `rest` is e**0."""
    return w / (w + mul_add(r, polynomial(r, falling(count)), rest))


# erf and tanh


def _erf(pieces: _Pieces, step: float, degree: int) -> Function:
    def erf(x: Float) -> Float:
        """Computes 2 / sqrt(pi) times the integral of exp(-t**2) from 0 to x."""
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
    """Computes tanh by tables of eighths."""
    step = 1.25
    piece, u = _nearest(abs(x).at_most(TANH_END), step)
    return _tanh(EIGHT, step, 4, piece, u).with_sign_of(x)


def _tanh(pieces: _Pieces, step: float, terms: int, piece: Int, u: Float) -> Float:
    """Computes tanh(c + u) = t + (1 - t**2) u / (u coth(u) + t u) of t = tanh(c), for c in steps."""
    middle, slope = (pieces.pick(table, piece, u) for table in tanh_pieces(pieces.count, step, terms))
    even = polynomial(u * u, cotangent(step, terms))
    divisor = mul_add(u, mul_add(u, even, middle), 1.0)
    return middle + (slope * u) / divisor


def log(x: Float) -> Float:
    """Computes the natural logarithm; -inf at 0, NaN below."""
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
