"""Computes elementary functions by formulas shared by f32 and f64, with fused multiply-adds.

The argument is of the width that is computed in. The rounding error of a sum or a difference is often kept beside it, as a second
number; without fused multiply-add that would cost more than computing f32 in f64 (`float32`). Polynomials are minimax fits, made
for this file. Errors are below 2 units in the last place, in f64 below 2.5.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from .float32 import INF, MAGIC_F32, MAGIC_F64, NAN
from .lane_expr import Bool, Float, Int, mul_add, polynomial, usually

Function = Callable[[Float], Float]
Numbers = tuple[float, ...]


@dataclass(frozen=True)
class Width:
    """The constants of the formulas that differ between f32 and f64."""

    fraction: int
    """Bits of the fraction that are stored."""
    bias: int
    magic: float
    """1.5 times the number from which on numbers are whole: adding it leaves a number's nearest integer in the low bits."""
    least: float
    """The least normal number."""
    ln2: Numbers
    """In two parts, the first of which has trailing zeros, so that products with exponents are exact."""
    log2_e: Numbers
    log10_e: Numbers
    log10_2: Numbers
    half_pi: Numbers
    """In three parts: n times the first, taken from x, is exact when it is rounded once."""
    quarter_pi: Numbers
    exp: Numbers
    """e**r = 1 + r + r**2 times this, for |r| up to half of ln 2."""
    log: Numbers
    """In f32, log(1 + f) = f - f**2 / 2 + f**3 times this of f; in f64, 2 atanh(s) = 2 s + s**3 times this of s**2."""
    sinh: Numbers
    """sinh(r) = r + r**3 times this of r**2, for |r| up to 1."""
    few_sinh: int
    """Of its coefficients, those that count for |r| up to half of ln 2."""
    cosh: Numbers
    """cosh(r) = 1 + r**2 times this of r**2, for |r| up to half of ln 2."""
    atan: Numbers
    """atan(z) = z + z**3 times this of z**2, for |z| up to 1/2."""
    asin: Numbers
    """asin(z) = z + z**3 times this of z**2, for |z| up to 1/2."""
    sinh_end: float
    """Where the hyperbolic functions are infinite."""
    large: float
    """From where on x**2 + 1 is x**2."""

    @property
    def one(self) -> int:
        """The bits of 1."""
        return self.bias << self.fraction


F32 = Width(
    fraction=23,
    bias=127,
    magic=MAGIC_F32,
    least=2.0**-126,
    ln2=(0.693145751953125, 1.4286068203094172e-06),
    log2_e=(1.4426950216293335, 1.925963033500011e-08),
    log10_e=(0.4342944920063019, -1.0103049952192578e-08),
    log10_2=(0.3010300099849701, -1.432098883924482e-08),
    half_pi=(1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15),
    quarter_pi=(0.7853981852531433, -2.1855694143368964e-08),
    exp=(0.49999993339443181, 0.1666651900873651, 0.0416684069040416, 0.0083689135010836685, 0.0013814204951903238),
    log=(
        *(0.33333331708477413, -0.25000821063080119, 0.2000122710366552, -0.1662335653461204),
        *(0.1420175162408329, -0.13160183515391535, 0.12761621098923273, -0.076345472920077085),
    ),
    sinh=(0.16666666497549306, 0.0083333500587945493, 0.00019836159678391617, 2.8169517199337285e-6),
    few_sinh=3,
    cosh=(0.50000000778895008, 0.04166627042612679, 0.0013946029851834799),
    atan=(
        *(-0.33333234297530919, 0.19994226522126416, -0.14175009825138532, 0.10160013785045882),
        -0.051325970067451897,
    ),
    asin=(0.16666752479889124, 0.0749529765406032, 0.045470377365267391, 0.024179501271074081, 0.042166338922229239),
    sinh_end=89.69,
    large=2.0**13,
)
F64 = Width(
    fraction=52,
    bias=1023,
    magic=MAGIC_F64,
    least=2.0**-1022,
    ln2=(float.fromhex("0x1.62e42fefa3800p-1"), float.fromhex("0x1.ef35793c76730p-45")),
    log2_e=(1.4426950408889634, 2.0355273740931033e-17),
    log10_e=(0.4342944819032518, 1.098319650216765e-17),
    log10_2=(0.3010299956639812, -2.8037281277851704e-18),
    half_pi=(1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33),
    quarter_pi=(0.7853981633974483, 3.061616997868383e-17),
    exp=tuple(1.0 / math.factorial(k) for k in range(2, 14)),
    log=(
        *(0.66666666666667342, 0.39999999999415671, 0.28571428742188765, 0.22222198591402585, 0.18183563489843132),
        *(0.15314069210931158, 0.1479578943427067),
    ),
    sinh=(
        *(0.16666666666666667, 0.0083333333333333335, 0.000198412698412696, 2.7557319224116289e-6),
        *(2.5052108346509171e-8, 1.6059050601240097e-10, 7.6464828971304914e-13, 2.8482329736971289e-15),
    ),
    few_sinh=6,
    cosh=(
        *(0.5, 0.041666666666666712, 0.0013888888888864207, 2.4801587362945461e-5, 2.7557242166155918e-7),
        2.0924329168642474e-9,
    ),
    atan=(
        *(-0.33333333333332982, 0.19999999999903157, -0.14285714276389814, 0.11111110659793633, -0.090908962483279898),
        *(0.076920739638174067, -0.066638110958581308, 0.058583018943726404, -0.051220180242063736),
        *(0.041865362044525843, -0.027435427757729042, 0.010117161765401037),
    ),
    asin=(
        *(0.16666666666665409, 0.075000000003369651, 0.044642856828365555, 0.030381959135545102, 0.022371758082349927),
        *(0.017359704307933465, 0.013885239768341048, 0.012169184378465444, 0.0065280897402092426),
        *(0.019527959960627598, -0.016223784944273227, 0.031911956038770542),
    ),
    sinh_end=710.75,
    large=2.0**28,
)
# tan(r) = r + r**3 times this of r**2 for |r| <= pi / 4, in f32.
TAN = (
    *(0.33333156582167679, 0.13338806667479494, 0.053410663839503563, 0.02443239095432453),
    *(0.0031162246839665077, 0.0093876331229415155),
)
# In f64: sin(r) = r + r**3 times this, cos(r) = 1 - r**2 / 2 + r**4 times this, of r**2, for |r| <= pi / 4.
SIN = (
    *(-0.16666666666666631, 0.0083333333333221075, -0.00019841269829580259, 2.7557313618031523e-6),
    *(-2.5050747218343313e-8, 1.5896197557681127e-10),
)
COS = (
    *(0.041666666666666593, -0.0013888888888873042, 2.480158728884204e-5, -2.7557314176403938e-7),
    *(2.0875700435518811e-9, -1.1358514819191676e-11),
)
NEAR = {23: 4096.0, 52: 2.0**20}
"""By the width's fraction, up to where three parts of pi / 2 are enough."""


def width_of(x: Float) -> Width:
    """Returns the numbers for the width of x."""
    return F64 if x.is_wide() else F32


# Logarithms


@dataclass(frozen=True)
class _Log:
    """log(1 + f) = f + tail and the exponent n of what is (1 + f) * 2**n."""

    n: Float
    f: Float
    tail: Float


def _log(u: Float, rest: Float | None = None) -> _Log:
    """Computes the logarithm of u + rest; rest is below a unit in the last place of a normal u above 0."""
    w = width_of(u)
    root = 0x3FE6A09E667F3BCD if w is F64 else 0x3F3504F3  # the bits of sqrt(1/2)
    offset = u.bits() - root
    exponent = offset >> w.fraction
    f = ((offset & ((1 << w.fraction) - 1)) + root).as_float_bits() - 1.0
    if rest is not None:
        # Of the largest exponent 2**-n would have no bits of its own: twice that has.
        scale = Int(u.b, offset.same(w.one + (1 << w.fraction))) - (exponent << w.fraction)
        f = mul_add(rest * 0.5, scale.as_float_bits(), f)
    # Of an exponent the nearest integer's bits.
    whole = (w.bias + w.fraction << w.fraction) + (1 << w.fraction - 1)
    n = (exponent + whole).as_float_bits() - w.magic
    square = f * f
    if w is F32:
        return _Log(n, f, mul_add(square * f, polynomial(f, w.log), square * -0.5))
    s = f / (f + 2.0)
    half, ratio = square * 0.5, s * s
    return _Log(n, f, s * mul_add(ratio, polynomial(ratio, w.log), half) - half)


def _natural(u: Float, rest: Float | None = None, more: Float | None = None) -> Float:
    """Computes the natural logarithm of (u + rest) * 2**more."""
    high, low = width_of(u).ln2
    parts = _log(u, rest)
    n = parts.n if more is None else parts.n + more
    return mul_add(n, high, parts.f + mul_add(n, low, parts.tail))


def _normal(x: Float) -> tuple[Float, Float]:
    """Scales x by a power of 2 that makes it normal; returns it and the exponent that was added."""
    w = width_of(x)
    tiny = x < w.least
    return tiny.choose(x * 2.0 ** (w.fraction + 1), x), tiny.pick(x, w.fraction + 1.0, 0.0)


def _log_limits(x: Float, result: Float) -> Float:
    """Computes a logarithm's values at 0, infinity and below 0."""
    result = x.equals(INF).choose(INF, result)
    result = x.equals(0.0).choose(-INF, result)
    return x.compare("ult", 0.0).choose(NAN, result)


def log(x: Float) -> Float:
    """Computes the natural logarithm; -inf at 0, NaN below."""
    u, added = _normal(x)
    return _log_limits(x, _natural(u, more=-added))


def _to_base(x: Float, factor: Numbers, unit: Numbers) -> Float:
    """Computes the logarithm times `factor`, of which `unit` is that of 2."""
    u, added = _normal(x)
    parts = _log(u)
    n = parts.n - added
    whole = parts.f + parts.tail
    rest = (parts.f - whole) + parts.tail
    scaled = mul_add(whole, factor[0], mul_add(whole, factor[1], rest * factor[0]))
    if unit[1]:
        return _log_limits(x, mul_add(n, unit[0], mul_add(n, unit[1], scaled)))
    return _log_limits(x, n + scaled)


def log2(x: Float) -> Float:
    """Computes the logarithm to base 2."""
    return _to_base(x, width_of(x).log2_e, (1.0, 0.0))


def log10(x: Float) -> Float:
    """Computes the logarithm to base 10."""
    return _to_base(x, width_of(x).log10_e, width_of(x).log10_2)


def _one_more(y: Float) -> tuple[Float, Float]:
    """Computes 1 + y for y > -1, and its rounding error."""
    u = y + 1.0
    return u, y.at_most(1.0) - (u - y.at_least(1.0))


def log1p(x: Float) -> Float:
    """Computes log(1 + x), accurate near 0."""
    u, rest = _one_more(x)
    result = _natural(u, rest)
    result = x.equals(INF).choose(INF, x.equals(-1.0).choose(-INF, result))
    result = x.compare("ult", -1.0).choose(NAN, result)
    return x.equals(0.0).choose(x, result)


# Hyperbolic functions


def _exponentials(x: Float) -> tuple[Float, Float]:
    """Reduces x = n ln 2 + r for an x from 0 on; returns n in low bits, and r."""
    w = width_of(x)
    shifted = mul_add(x, 1.0 / math.log(2.0), w.magic)
    n = shifted - w.magic
    return shifted, mul_add(n, -w.ln2[1], mul_add(n, -w.ln2[0], x))


def _powers(shifted: Float) -> tuple[Float, Float]:
    """Computes (2**n + 2**-n) / 4 and (2**n - 2**-n) / 4, of n in the low bits of `shifted`."""
    w = width_of(shifted)
    up = ((shifted.bits() << w.fraction) + (w.bias - 2 << w.fraction)).as_float_bits()
    # What is far below the other does not count, and would be out of range.
    least = shifted.at_most(w.magic + w.fraction + 8).bits() << w.fraction
    down = (Int(up.b, least.same(w.bias - 2 << w.fraction)) - least).as_float_bits()
    return up + down, up - down


def sinh(x: Float) -> Float:
    """Computes (e**x - e**-x) / 2: for x = n ln 2 + r below 1, n is 0 and the result sinh(r)."""
    w = width_of(x)
    bounded = abs(x).at_most(w.sinh_end)
    shifted, r = _exponentials(bounded)
    small = bounded < 1.0
    shifted, r = small.choose(w.magic, shifted), small.choose(bounded, r)
    total, difference = _powers(shifted)
    square = r * r
    odd = mul_add(r * square, polynomial(square, w.sinh), r)
    even = square * polynomial(square, w.cosh)
    return ((mul_add(difference, even, total * odd) + difference) * 2.0).with_sign_of(x)


def cosh(x: Float) -> Float:
    """Computes (e**x + e**-x) / 2."""
    w = width_of(x)
    shifted, r = _exponentials(abs(x).at_most(w.sinh_end))
    total, difference = _powers(shifted)
    square = r * r
    odd = mul_add(r * square, polynomial(square, w.sinh[: w.few_sinh]), r)
    even = square * polynomial(square, w.cosh)
    return (mul_add(total, even, difference * odd) + total) * 2.0


def _below(x: Float) -> tuple[Float, Float, Float]:
    """Computes e**x - 1, e**x and e**x + 1 for -40 <= x <= 0."""
    w = width_of(x)
    shifted, r = _exponentials(x)
    less = mul_add(r * r, polynomial(r, w.exp), r)
    scale = ((shifted.bits() << w.fraction) + w.one).as_float_bits()
    return mul_add(less, scale, scale - 1.0), mul_add(less, scale, scale), mul_add(less, scale, scale + 1.0)


def tanh(x: Float) -> Float:
    """Computes (e**x - e**-x) / (e**x + e**-x)."""
    bounded = abs(x).at_most(19.1)
    less, power, above = _below(-(bounded + bounded))
    # Beyond 1/2 it is what is left of 1.
    large = bounded > 0.55
    quotient = large.choose(power + power, -less) / above
    return large.choose(1.0 - quotient, quotient).with_sign_of(x)


def asinh(x: Float) -> Float:
    """Computes the inverse of sinh: log(1 + y) for y = |x| + x**2 / (1 + sqrt(1 + x**2))."""
    w = width_of(x)
    magnitude = abs(x)
    square = magnitude * magnitude
    more = square / (mul_add(magnitude, magnitude, 1.0).sqrt() + 1.0)
    y = magnitude + more
    return _log_of_sum(magnitude, y, more - (y - magnitude), magnitude > w.large).with_sign_of(x)


def acosh(x: Float) -> Float:
    """Computes the inverse of cosh; NaN below 1: log(1 + y) for y = t + sqrt(2 t + t**2) and t = x - 1."""
    w = width_of(x)
    t = x - 1.0
    square = mul_add(t, t, t + t)
    root = square.sqrt()
    # What the root lacks, to the first order.
    lacking = mul_add(-root, root, square) * (0.5 / root.at_least(w.least))
    y = t + root
    result = _log_of_sum(x, y, t - (y - root) + lacking, x > w.large)
    return x.compare("ult", 1.0).choose(NAN, result)


def _log_of_sum(x: Float, y: Float, low: Float, large: Bool) -> Float:
    """Computes log(1 + y + low); for a large x, which may be infinite, log(2 x)."""
    u, rest = _one_more(y)
    result = _natural(large.choose(x, u), large.choose(0.0, rest + low), large.pick(x, 1.0, 0.0))
    return x.equals(INF).choose(INF, result)


def atanh(x: Float) -> Float:
    """Computes the inverse of tanh; NaN beyond 1: log(1 + y) / 2 for y = 2 |x| + 2 x**2 / (1 - |x|)."""
    magnitude = abs(x)
    twice = magnitude + magnitude
    more = twice * magnitude / (1.0 - magnitude)
    y = twice + more
    u, rest = _one_more(y)
    low = (magnitude < 0.5).choose(more - (y - twice), 0.0)
    result = _natural(u, rest + low) * 0.5
    result = magnitude.equals(1.0).choose(INF, result)
    return (magnitude > 1.0).choose(NAN, result).with_sign_of(x)


# Circular functions


def _reduced(x: Float) -> tuple[Int, Float, Float]:
    """Reduces x = n pi/2 + r + low with |r| <= pi/4; returns n in low bits, r, and its rounding error low."""
    w = width_of(x)
    shifted = mul_add(x, 2.0 / math.pi, w.magic)
    n = shifted - w.magic
    first = mul_add(n, -w.half_pi[0], x)
    second = n * w.half_pi[1]
    r = first - second
    low = ((first - r) - second) - mul_add(n, w.half_pi[1], -second)
    return shifted.bits(), r, mul_add(n, -w.half_pi[2], low)


def _is_odd(n: Int) -> Bool:
    return (n & 1).compare("ne", 0)


def tan_near(x: Float) -> Float:
    """Computes the tangent of x radians in f32, of |x| below 4096."""
    n, r, low = _reduced(x)
    square = r * r
    tail = mul_add(r * square, polynomial(square, TAN), mul_add(low, square, low))
    tangent = r + tail
    # -1 / (tangent + rest), to the first power of the rest.
    rest = tail - (tangent - r)
    inverse = -1.0 / tangent
    inverse = mul_add(inverse, mul_add(inverse, rest, mul_add(inverse, tangent, 1.0)), inverse)
    return x.equals(0.0).choose(x, _is_odd(n).choose(inverse, tangent))


def near(x: Float) -> Bool:
    """Tells whether `_reduced` is accurate for x."""
    return abs(x) < NEAR[width_of(x).fraction]


def _sin_cos(r: Float, low: Float) -> tuple[Float, Float]:
    """Computes sine and cosine of r + low in f64."""
    square = r * r
    half = square * 0.5
    top = 1.0 - half
    sine = r + mul_add(r * square, polynomial(square, SIN), low)
    rest = mul_add(square * square, polynomial(square, COS), mul_add(-r, low, (1.0 - top) - half))
    return sine, top + rest


def _signed(n: Int, value: Float) -> Float:
    """Negates `value` where the second bit of n is set."""
    return (value.bits() ^ ((n & 2) << 62)).as_float_bits()


def sin_near(x: Float) -> Float:
    """Computes the sine of x radians in f64, of |x| below 2**20."""
    n, r, low = _reduced(x)
    sine, cosine = _sin_cos(r, low)
    return x.equals(0.0).choose(x, _signed(n, _is_odd(n).choose(cosine, sine)))


def cos_near(x: Float) -> Float:
    """Computes the cosine of x radians in f64, of |x| below 2**20."""
    n, r, low = _reduced(x)
    sine, cosine = _sin_cos(r, low)
    return _signed(n + 1, _is_odd(n).choose(sine, cosine))


def tan_near_wide(x: Float) -> Float:
    """Computes the tangent of x radians in f64, of |x| below 2**20."""
    n, r, low = _reduced(x)
    sine, cosine = _sin_cos(r, low)
    odd = _is_odd(n)
    return x.equals(0.0).choose(x, odd.choose(-cosine, sine) / odd.choose(sine, cosine))


def atan(x: Float) -> Float:
    """Computes the arc tangent: pi/4 or pi/2 and the rest's by a division; 1 - |x| is exact from 1/2 on."""
    w = width_of(x)
    magnitude = abs(x)
    middle, upper = magnitude > 0.5, magnitude > 2.414213562373095
    top = upper.choose(-1.0, middle.choose(magnitude - 1.0, magnitude))
    bottom = upper.choose(magnitude, middle.choose(magnitude + 1.0, 1.0))
    high, low = w.quarter_pi
    base = upper.pick(x, 2 * high, 0.0), upper.pick(x, 2 * low, 0.0)
    base = tuple(middle.choose(upper.choose(b, q), 0.0) for b, q in zip(base, w.quarter_pi, strict=True))
    z = top / bottom
    square = z * z
    return ((base[0] + z) + mul_add(z * square, polynomial(square, w.atan), base[1])).with_sign_of(x)


def _arc(x: Float) -> tuple[Bool, Float, Float]:
    """Returns whether |x| is above 1/2, and asin(z) as z and a correction.

    z is |x|, and above 1/2 sqrt((1 - |x|) / 2).
    """
    magnitude = abs(x)
    beyond = magnitude > 0.5
    z = beyond.choose(mul_add(magnitude, -0.5, 0.5).sqrt(), magnitude)
    square = z * z
    return beyond, z, z * square * polynomial(square, width_of(x).asin)


def asin(x: Float) -> Float:
    """Computes the arc sine; NaN beyond 1. Above 1/2, pi/2 less twice that of sqrt((1 - |x|) / 2)."""
    beyond, z, more = _arc(x)
    high, low = (2 * part for part in width_of(x).quarter_pi)
    twice = z + z
    first = high - twice
    outside = first + (((high - first) - twice) - (more + more - low))
    return beyond.choose(outside, z + more).with_sign_of(x)


def acos(x: Float) -> Float:
    """Computes the arc cosine; NaN beyond 1. Above 1/2 twice that of sqrt((1 - |x|) / 2)."""
    beyond, z, more = _arc(x)
    high, low = (2 * part for part in width_of(x).quarter_pi)
    angle = z + more
    twice = angle + angle
    outside = (x < 0.0).choose(2 * high - (twice - 2 * low), twice)
    return beyond.choose(outside, high - (angle.with_sign_of(x) - low))


def _tan(x: Float) -> Float:
    from .float32 import tan

    return usually(near(x), lambda: tan_near(x), lambda: tan(x))


NARROW: dict[str, Function] = {
    **{f.__name__: f for f in (log2, log10, log1p, sinh, cosh, asinh, acosh, atanh, asin, acos, atan)},
    "tan": _tan,
}
"""Of f32, instead of those of `float32`."""
WIDE: dict[str, Function] = {
    f.__name__: f for f in (*(log, log2, log10, log1p, sinh, cosh, tanh), *(asinh, acosh, atanh, asin, acos, atan))
}
"""Of f64."""
WIDE_NEAR: dict[str, Function] = {"sin": sin_near, "cos": cos_near, "tan": tan_near_wide}
"""Of f64, for arguments that are `near`."""
