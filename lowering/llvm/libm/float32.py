"""Computes elementary functions in f32 by straight-line code, which a compiler vectorizes.

NaN, infinities, signed zeros and denormals come out as C's math.h says. Errors are below 2 units in the last place (see the
tests). The most used (exp, log, tanh, erf, expm1) are computed in f32; the others in f64, rounded once at the end, where a plain
formula is accurate enough. Polynomials are minimax fits (Remez' exchange on the range given, weighted for relative
error), made for this file. Argument reductions are Cody and Waite's, for sin, cos and tan Payne and Hanek's with 2/pi in
pieces of 28 bits, whose products with an f32 are exact in f64.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from .lane_expr import Bool, Float, Int, mul_add, polynomial, usually

INF = math.inf
NAN = math.nan

# Natural exponential in f32: x = n ln 2 + r. The upper part of ln 2 has trailing zeros, so that n times it is exact.
LN2_HIGH, LN2_LOW = 0.693145751953125, 1.4286068203094172e-06
MAGIC_F32 = 12582912.0  # 1.5 * 2**23: adding it leaves a number's nearest integer in the low bits
EXP = (0.49999993339443181, 0.1666651900873651, 0.0416684069040416, 0.0083689135010836685, 0.0013814204951903238)
EXPM1 = (
    *(0.50000000448958525, 0.1666666636533322, 0.041666357523127526),
    *(0.0083333900313315807, 0.0013940914359201457, 0.00019845884259619564),
)
EXPM1_SHORT = (0.4999999701976776, 0.1666654348373413, 0.04166720062494278, 0.008366547524929047, 0.0013882516650483012)
# 2**r = 1 + r * EXP2(r) for |r| <= 1/2.
EXP2 = (
    *(0.69314718060265206, 0.2402265053955172, 0.055504096259961357, 0.0096181519878405943),
    *(0.0013336266748276111, 0.00015430060543591567, 1.439304239547683e-5),
)
# log(1 + f) = f - f**2 / 2 + f**3 * LOG(f) for sqrt(1/2) <= 1 + f <= sqrt(2).
LOG = (
    *(0.33333331708477413, -0.25000821063080119, 0.2000122710366552, -0.1662335653461204),
    *(0.1420175162408329, -0.13160183515391535, 0.12761621098923273, -0.076345472920077085),
)
# erf(x) = 1 - exp(-x * ERF(x)) for 0 <= x <= 3.95.
ERF = (
    *(1.1283791670955126, 0.6366193890571594, 0.10277783125638962, -0.019153064116835594, -0.0001603954005986452),
    *(0.0016670266631990671, -0.0006328363087959588, 0.0001176411024061963, -9.25624499359401e-06),
)
ERF_FIRST, ERF_FIRST_HIGH = 1.128379225730896, 1.1279296875  # 2 / sqrt(pi), rounded to f32 and to 12 bits
# In f64: 2**r = 1 + r * EXP2_WIDE(r); atanh(s) = s + s**3 * LOG_WIDE(s**2) for |s| <= (sqrt(2) - 1) / (sqrt(2) + 1).
MAGIC_F64 = 6755399441055744.0  # 1.5 * 2**52
EXP2_WIDE = (
    *(0.69314718055988393, 0.24022650695719845, 0.055504108668475412, 0.009618129182042365, 0.0013333557618933168),
    *(0.00015403440170914519, 1.5252992194908421e-5, 1.3258506231668685e-6, 1.0148202103630044e-7),
)
LOG_WIDE = (
    *(0.33333333333293362, 0.20000000026270263, 0.14285708541447486),
    *(0.11111687618509548, 0.090617607735429688, 0.084106711463286841),
)
# sin(pi/2 r) = r * SIN(r**2) and cos(pi/2 r) = COS(r**2) for |r| <= 1/2.
SIN = (
    *(1.5707963267948894, -0.64596409750419897, 0.079692626152038018),
    *(-0.0046817525478325193, 0.00016042905596746197, -3.556036255315389e-6),
)
COS = (
    *(0.99999999999999994, -1.2337005501361484, 0.25366950789972648, -0.020863480732562645),
    *(0.000919259931432328, -2.5200068245275886e-5, 4.6543905416639951e-7),
)
# In f32: sin(r) = r + r**3 * SIN_NEAR(r**2) and cos(r) = 1 + r**2 * COS_NEAR(r**2) for |r| <= pi/4; pi/2 in pieces of 11 bits, which
# times a number of up to 12 bits are exact.
SIN_NEAR = (-0.16666655242443085, 0.008332155644893646, -0.0001951463200384751)
COS_NEAR = (-0.5, 0.04166664555668831, -0.0013887309469282627, 2.443241282890085e-05)
HALF_PI = (1.5703125, 0.0004837512969970703, 7.549533620476723e-08, 2.5633440682570896e-12)
NEAR = 4096.0
# atan(z) = z + z**3 * ATAN(z**2) for |z| <= tan(pi/8); sinh(x) = x + x**3 * SINH(x**2) for |x| <= 1.
ATAN = (
    *(-0.33333333331661199, 0.19999999680237279, -0.14285693323421832, 0.11110443441166084),
    *(-0.090790536591867552, 0.075679481113649322, -0.058888956979483405, 0.030862700220771809),
)
SINH = (0.16666666667047301, 0.0083333332784722556, 0.0001984129539901974, 2.7552141268685704e-6, 2.5526643527914062e-8)
TWO_OVER_PI = tuple(
    float.fromhex(piece)
    for piece in (
        *("0x1.45f306cp-1", "0x1.c9c882ap-29", "0x1.4fe13a8p-59", "0x1.f47d4d0p-86"),
        *("0x1.bb81b6cp-113", "0x1.4acc9e0p-143", "0x1.0e4107cp-170"),
    )
)


# Exponentials


def _split_exponent(x: Float) -> tuple[Float, Float]:
    """Reduces x = n ln 2 + r in f32, |r| <= ln 2 / 2; returns n in low bits, and r."""
    shifted = mul_add(x, 1.4426950408889634, MAGIC_F32)
    n = shifted - MAGIC_F32
    return shifted, mul_add(n, -LN2_LOW, mul_add(n, -LN2_HIGH, x))


def _power_of_two(shifted: Float, bias: int = 127) -> Float:
    """Returns 2**(n + bias - 127), whose exponent bits are n + bias, for n in the low bits of `shifted`."""
    return ((shifted.bits() << 23) + (bias << 23)).as_float_bits()


def _scaled(less: Float, shifted: Float, tiny: Bool) -> Float:
    """Returns (1 + less) * 2**n for n up to 128; where `tiny`, down to -160.

    A factor of two powers is applied last, as 2**n itself would overflow or be denormal before the result does.
    """
    bits = shifted.bits() << 23
    scale = (bits + tiny.pick(bits, (127 + 64) << 23, 126 << 23)).as_float_bits()
    return mul_add(less, scale, scale) * tiny.pick(less, 2.0**-64, 2.0)


def exp(x: Float) -> Float:
    """Computes e**x."""

    def near() -> Float:
        shifted, r = _split_exponent(x)
        less, scale = mul_add(r * r, polynomial(r, EXP), r), _power_of_two(shifted)
        return mul_add(less, scale, scale)

    def anywhere() -> Float:
        bounded = x.at_least(-110.0).at_most(89.0)
        shifted, r = _split_exponent(bounded)
        return _scaled(mul_add(r * r, polynomial(r, EXP), r), shifted, bounded < -86.0)

    return usually(abs(x) < 86.0, near, anywhere)


def exp2(x: Float) -> Float:
    """Computes 2**x."""
    x = x.at_least(-160.0).at_most(128.0)
    shifted = x + MAGIC_F32
    r = x - (shifted - MAGIC_F32)
    return _scaled(r * polynomial(r, EXP2), shifted, x < -124.0)


def expm1(x: Float) -> Float:
    """Computes e**x - 1, accurate near 0."""
    x = x.at_least(-20.0).at_most(89.0)
    shifted, r = _split_exponent(x)
    less = mul_add(r * r, polynomial(r, EXPM1), r)
    # 2**n overflows before the result does.
    half = _power_of_two(shifted, 126)
    return x.equals(0.0).choose(x, mul_add(less, half, half - 0.5) * 2.0)


def _expm1_below(x: Float) -> tuple[Float, Float, Float]:
    """Computes e**x - 1, e**x and e**x + 1 for -20 <= x <= 0."""
    shifted, r = _split_exponent(x)
    less = mul_add(r * r, polynomial(r, EXPM1_SHORT), r)
    scale = _power_of_two(shifted)
    return mul_add(less, scale, scale - 1.0), mul_add(less, scale, scale), mul_add(less, scale, scale + 1.0)


def tanh(x: Float) -> Float:
    """Computes (e**x - e**-x) / (e**x + e**-x)."""
    magnitude = abs(x)
    bounded = magnitude.at_most(9.1)
    less, power, above = _expm1_below(-(bounded + bounded))
    # Beyond 1/2 it is what is left of 1.
    large = magnitude > 0.55
    quotient = large.choose(power + power, -less) / above
    return large.choose(1.0 - quotient, quotient).with_sign_of(x)


def sigmoid(x: Float) -> Float:
    """Computes 1 / (1 + e**-x)."""

    def near() -> Float:
        shifted, r = _split_exponent(-x)
        power = _power_of_two(shifted)
        quotient, rounded = _inverse_of_sum(mul_add(r * r, polynomial(r, EXP), r), power, power + 1.0, 1.0)
        return mul_add(-rounded, quotient, quotient)

    def anywhere() -> Float:
        bounded = (-x).at_least(-80.0).at_most(110.0)
        shifted, r = _split_exponent(bounded)
        # Far below 0 the result is denormal, and e**-x beyond the range: numerator and denominator are scaled.
        beyond = bounded > 60.0
        bits = shifted.bits() << 23
        power = (bits + beyond.pick(bits, (127 - 64) << 23, 127 << 23)).as_float_bits()
        unit = beyond.pick(x, 2.0**-64, 1.0)
        quotient, rounded = _inverse_of_sum(mul_add(r * r, polynomial(r, EXP), r), power, power + unit, unit)
        return mul_add(-(rounded * beyond.pick(x, 2.0**64, 1.0)), quotient, quotient)

    return usually(abs(x) < 60.0, near, anywhere)


def _inverse_of_sum(less: Float, power: Float, total: Float, unit: Float | float) -> tuple[Float, Float]:
    """Returns q = unit / (less * power + total), and q times the denominator's rounding error.

    Callers subtract the latter: it exceeds the 2 units in the last place that results may be off.
    """
    below = mul_add(less, power, total)
    quotient = unit / below
    return quotient, mul_add(less, power, total - below) * quotient


def erf(x: Float) -> Float:
    """Computes 2 / sqrt(pi) times the integral of exp(-t**2) from 0 to x."""
    return _erf(x, lambda y, rest: mul_add(y, ERF_FIRST, rest))


def erf_without_fma(x: Float) -> Float:
    """Computes erf without fused multiply-add: the largest product is exact in its first 12 bits."""

    def sum_of(bounded: Float, rest: Float) -> Float:
        high = (bounded.bits() & -0x1000).as_float_bits()
        small = (bounded - high) * ERF_FIRST + (high * (ERF_FIRST - ERF_FIRST_HIGH) + rest)
        return high * ERF_FIRST_HIGH + small

    return _erf(x, sum_of)


def _erf(x: Float, sum_of: Callable[[Float, Float], Float]) -> Float:
    """Computes erf; `sum_of(y, rest)` returns y * ERF_FIRST + rest."""
    bounded = abs(x).at_most(3.95)
    # The first coefficient in two parts: near 0 the result is its multiple.
    rest = bounded * polynomial(bounded, (ERF[0] - ERF_FIRST, *ERF[1:]))
    less, _, _ = _expm1_below(-sum_of(bounded, rest))
    return less.with_sign_of(x)


# Logarithms


def log(x: Float) -> Float:
    """Computes the natural logarithm; -inf at 0, NaN below."""
    tiny = x < 1.1754943508222875e-38
    scaled = tiny.choose(x * 8388608.0, x)
    offset = scaled.bits() - 0x3F3504F3  # the bits of sqrt(1/2)
    exponent = (offset >> 23) - Int(x.b, x.b.select(tiny.value, offset.same(23), offset.same(0)))
    f = ((offset & 0x007FFFFF) + 0x3F3504F3).as_float_bits() - 1.0
    # |exponent| < 2**22: it is exact in the low bits of the magic number.
    n = (exponent + 0x4B400000).as_float_bits() - MAGIC_F32
    square = f * f
    tail = mul_add(n, LN2_LOW, mul_add(square * f, polynomial(f, LOG), square * -0.5))
    result = mul_add(n, LN2_HIGH, f + tail)
    return _log_limits(x, result)


def _log_limits(x: Float, result: Float) -> Float:
    """Computes a logarithm's values at 0, infinity and below 0."""
    result = x.equals(INF).choose(INF, result)
    result = x.equals(0.0).choose(-INF, result)
    return (x.compare("ult", 0.0)).choose(NAN, result)


def log_wide(x: Float) -> Float:
    """Computes the natural logarithm of a normal f64."""
    offset = x.bits() - 0x3FE6A09E667F3BCD  # the bits of sqrt(1/2)
    mantissa = ((offset & 0x000FFFFFFFFFFFFF) + 0x3FE6A09E667F3BCD).as_float_bits()
    n = ((offset >> 52) + 0x4338000000000000).as_float_bits() - MAGIC_F64
    s = (mantissa - 1.0) / (mantissa + 1.0)
    square = s * s
    twice = s + s
    series = mul_add(twice * square, polynomial(square, LOG_WIDE), twice)
    return _log_limits(x, mul_add(n, math.log(2.0), series))


def exp2_wide(x: Float) -> Float:
    """Computes 2**x in f64 for any x that an f32's power may need."""
    x = x.at_least(-1000.0).at_most(1000.0)
    shifted = x + MAGIC_F64
    r = x - (shifted - MAGIC_F64)
    mantissa = mul_add(r, polynomial(r, EXP2_WIDE), 1.0)
    return mantissa * ((shifted.bits() - 0x4338000000000000 + 1023) << 52).as_float_bits()


def log2(x: Float) -> Float:
    """Computes the logarithm to base 2."""
    return (log_wide(x.widen()) * (1.0 / math.log(2.0))).narrow()


def log10(x: Float) -> Float:
    """Computes the logarithm to base 10."""
    return (log_wide(x.widen()) * (1.0 / math.log(10.0))).narrow()


def log1p(x: Float) -> Float:
    """Computes log(1 + x), accurate near 0."""
    wide = x.widen()
    near = mul_add(wide * wide, mul_add(wide, 1 / 3, -0.5), wide)
    return (abs(x) < 1e-4).choose(_keep_sign(x, near.narrow()), log_wide(wide + 1.0).narrow())


def _keep_sign(x: Float, result: Float) -> Float:
    """Returns -0 where x is -0: sums lose it."""
    return x.equals(0.0).choose(x, result)


def powf(x: Float, y: Float) -> Float:
    """Computes x**y, with the limits of C's pow."""
    magnitude = abs(x)
    whole_y = y.unary("trunc").equals(y)
    half = y * 0.5
    odd_y = whole_y & half.unary("trunc").compare("one", half)
    logarithm = log_wide(magnitude.widen())
    exponent = y.widen() * logarithm * (1.0 / math.log(2.0))
    # |x| = 1: 1 for any y, infinities included.
    exponent = logarithm.equals(0.0).choose(0.0, exponent)
    exponent = y.equals(0.0).choose(0.0, exponent)
    result = exp2_wide(exponent).narrow()
    result = (magnitude.equals(1.0) & y.is_nan()).choose(NAN, result)
    signed = odd_y & x.bits().compare("slt", 0)
    result = signed.choose(-result, result)
    result = ((x < 0.0) & ~whole_y & abs(x).compare("one", INF)).choose(NAN, result)
    always_one = x.equals(1.0) | y.equals(0.0)
    return always_one.choose(1.0, result)


def cbrt(x: Float) -> Float:
    """Computes the cube root."""
    wide = abs(x).widen()
    return exp2_wide(log_wide(wide) * (1.0 / (3.0 * math.log(2.0)))).narrow().with_sign_of(x)


def rsqrt(x: Float) -> Float:
    """Computes 1 / sqrt(x)."""
    return 1.0 / x.sqrt()


# Circular functions


def _quarter_turns(x: Float) -> tuple[Int, Float]:
    """Reduces x = (n + r) pi / 2 with |r| <= 1/2; returns n modulo 4 and r, in f64, for any f32."""
    wide = x.widen()
    pieces: list[Float] = []
    for piece in TWO_OVER_PI:
        product = wide * piece
        pieces.append(product - (product * 0.25).nearest() * 4.0)
    total = pieces[0]
    for piece in pieces[1:]:
        total = total + piece
    shifted = total + MAGIC_F64
    n = shifted - MAGIC_F64
    r = pieces[0] - n
    for piece in pieces[1:]:
        r = r + piece
    return shifted.bits(), r


def _sin_cos(r: Float) -> tuple[Float, Float]:
    square = r * r
    return r * polynomial(square, SIN), polynomial(square, COS)


def _sin_cos_near(x: Float) -> tuple[Int, Float, Float]:
    """Reduces x = n pi/2 + r with |r| <= pi/4 in f32; returns n in low bits, sine and cosine of r."""
    shifted = mul_add(x, 2.0 / math.pi, MAGIC_F32)
    n = shifted - MAGIC_F32
    r = x
    for piece in HALF_PI:
        r = mul_add(n, -piece, r)
    square = r * r
    sine = r * mul_add(square, polynomial(square, SIN_NEAR), 1.0)  # in a sum -0 would be lost
    return shifted.bits(), sine, mul_add(square, polynomial(square, COS_NEAR), 1.0)


def _signed(n: Int, bit: int, value: Float) -> Float:
    """Negates `value` where the bit of n is set."""
    width = 64 if value.is_wide() else 32
    return (value.bits() ^ ((n & bit) << (width - bit.bit_length()))).as_float_bits()


def sin(x: Float) -> Float:
    """Computes the sine of x radians."""

    def near() -> Float:
        n, sine, cosine = _sin_cos_near(x)
        return _signed(n, 2, (n & 1).compare("ne", 0).choose(cosine, sine))

    def anywhere() -> Float:
        n, r = _quarter_turns(x)
        sine, cosine = _sin_cos(r)
        chosen = (n & 1).compare("ne", 0).choose(cosine, sine)
        return _keep_sign(x, _signed(n, 2, chosen).narrow())

    return usually(abs(x) < NEAR, near, anywhere)


def cos(x: Float) -> Float:
    """Computes the cosine of x radians."""

    def near() -> Float:
        n, sine, cosine = _sin_cos_near(x)
        return _signed(n + 1, 2, (n & 1).compare("ne", 0).choose(sine, cosine))

    def anywhere() -> Float:
        n, r = _quarter_turns(x)
        sine, cosine = _sin_cos(r)
        chosen = (n & 1).compare("ne", 0).choose(sine, cosine)
        return _signed(n + 1, 2, chosen).narrow()

    return usually(abs(x) < NEAR, near, anywhere)


def tan(x: Float) -> Float:
    """Computes the tangent of x radians."""
    n, r = _quarter_turns(x)
    sine, cosine = _sin_cos(r)
    odd = (n & 1).compare("ne", 0)
    return _keep_sign(x, (odd.choose(-cosine, sine) / odd.choose(sine, cosine)).narrow())


def _atan_wide(x: Float) -> Float:
    """Computes the arctangent of an f64 from 0 to infinity: reduced to at most tan(pi/8) by two quotients."""
    beyond = x > 1.0
    x = beyond.choose(1.0 / x, x)
    upper = x > 0.41421356237309503
    z = upper.choose((x - 1.0) / (x + 1.0), x)
    square = z * z
    angle = mul_add(z * square, polynomial(square, ATAN), z)
    angle = upper.choose(angle + math.pi / 4, angle)
    return beyond.choose(math.pi / 2 - angle, angle)


def atan(x: Float) -> Float:
    """Computes the angle whose tangent is x."""
    return _atan_wide(abs(x).widen()).narrow().with_sign_of(x)


def _atan2_wide(y: Float, x: Float) -> Float:
    """Computes the angle of the point (x, y), in f64."""
    up, right = abs(y), abs(x)
    both_zero = up.equals(0.0) & right.equals(0.0)
    both_infinite = up.equals(INF) & right.equals(INF)
    ratio = both_infinite.choose(1.0, both_zero.choose(0.0, up / right))
    angle = _atan_wide(ratio)
    left = x.bits().compare("slt", 0)
    angle = left.choose(math.pi - angle, angle).with_sign_of(y)
    return (x.is_nan() | y.is_nan()).choose(NAN, angle)


def atan2(y: Float, x: Float) -> Float:
    """Computes the angle of the point (x, y)."""
    return _atan2_wide(y.widen(), x.widen()).narrow()


def asin(x: Float) -> Float:
    """Computes the angle whose sine is x; NaN beyond 1."""
    wide = abs(x).widen()
    root = ((1.0 - wide) * (1.0 + wide)).sqrt()
    return _keep_sign(x, _atan_wide(wide / root).narrow().with_sign_of(x))


def acos(x: Float) -> Float:
    """Computes the angle whose cosine is x; NaN beyond 1."""
    wide = x.widen()
    return _atan2_wide(((1.0 - wide) * (1.0 + wide)).sqrt(), wide).narrow()


# Hyperbolic functions

LOG2_E = 1.0 / math.log(2.0)


def sinh(x: Float) -> Float:
    """Computes (e**x - e**-x) / 2."""
    wide = x.widen()
    square = wide * wide
    small = mul_add(wide * square, polynomial(square, SINH), wide)
    power = exp2_wide(wide * LOG2_E)
    return _keep_sign(x, (abs(x) < 1.0).choose(small, (power - 1.0 / power) * 0.5).narrow())


def cosh(x: Float) -> Float:
    """Computes (e**x + e**-x) / 2."""
    power = exp2_wide(x.widen() * LOG2_E)
    return ((power + 1.0 / power) * 0.5).narrow()


def asinh(x: Float) -> Float:
    """Computes the inverse of sinh."""
    wide = abs(x).widen()
    square = wide * wide
    small = mul_add(wide * square, -1 / 6, wide)
    large = log_wide(wide + (square + 1.0).sqrt())
    return (wide < 1e-3).choose(small, large).narrow().with_sign_of(x)


def acosh(x: Float) -> Float:
    """Computes the inverse of cosh; NaN below 1."""
    wide = x.widen()
    return (x < 1.0).choose(NAN, log_wide(wide + ((wide - 1.0) * (wide + 1.0)).sqrt()).narrow())


def atanh(x: Float) -> Float:
    """Computes the inverse of tanh; NaN beyond 1."""
    wide = x.widen()
    small = mul_add(wide * wide * wide, 1 / 3, wide)
    large = log_wide((1.0 + wide) / (1.0 - wide)) * 0.5
    return _keep_sign(x, (abs(wide) < 1e-3).choose(small, large).narrow())


UNARY: dict[str, Callable[[Float], Float]] = {
    function.__name__: function
    for function in (
        *(exp, exp2, expm1, log, log2, log10, log1p, tanh, sigmoid, erf, cbrt, rsqrt),
        *(sin, cos, tan, asin, acos, atan, sinh, cosh, asinh, acosh, atanh),
    )
}
WITHOUT_FMA = {"erf": erf_without_fma}  # for processors that round twice where `UNARY` counts on one rounding
BINARY: dict[str, Callable[[Float, Float], Float]] = {"powf": powf, "atan2": atan2}
