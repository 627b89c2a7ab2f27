"""Computes coefficients of functions cut into 16 or 8 pieces, one for each lane of a lookup register.

They are computed when they are first needed, by interpolation at Chebyshev's nodes.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from functools import cache

Table = tuple[int, ...]
"""The bits of an f32 for each piece."""


def bits(x: float) -> int:
    """The bits of x, rounded to f32."""
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
    """2**(j / count)."""
    return tuple(bits(2.0 ** (j / count)) for j in range(count))


@cache
def scaled_powers(count: int) -> tuple[Table, Table]:
    """Returns 2**(j / count) times about the scale, and the factor.

    Of the numbers nearby it is the one whose result is nearly an f32.
    """
    exact = [2.0 ** (j / count) for j in range(count)]
    scaled = [min(_neighbours(SCALE * x, 8), key=lambda y, x=x: _rounded_off(y / x)) for x in exact]
    return tuple(map(bits, scaled)), tuple(bits(y / x) for x, y in zip(exact, scaled, strict=True))


@cache
def falling(count: int) -> tuple[float, ...]:
    """e**-r times the scale = the scale + r times this, for |r| up to half of ln 2 / count."""
    end = math.log(2.0) / count / 2
    return tuple(
        interpolated(lambda r: SCALE * math.expm1(-r) / r if r else -SCALE, -end, end, 2 if count >= 16 else 3)
    )


# erf

ERF_END = 3.95
"""From where the result is 1."""


@cache
def erf_pieces(count: int, step: float, degree: int) -> tuple[Table, ...]:
    """erf(k * step + u) by powers of u, for the k to which x is nearest; less u for k = 0."""
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
    """Fits u coth(u) = 1 + u**2 times this polynomial of u**2, for |u| up to half a step.

    An error near 0 does not count.
    """
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
    """x, rounded to f32, and so many numbers before and after that; x is above 0."""
    return [_value(bits(x) + k) for k in range(-count, count + 1)]


# log

LOG_PIECES = 16
LOG_TRIES = 64
"""How many numbers next to a reciprocal are looked at for one whose logarithm is nearly an f32."""


@cache
def logarithms() -> tuple[Table, Table]:
    """Returns about 1 / c and -log(1 / c) for c = k / 16 from 3/4 to 3/2, at k modulo 16.

    They are 1 and 0 for c = 1.
    """
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
    """log(1 + r) = r + r**2 times this, for the r that the table leaves."""
    most = 0.045
    return tuple(interpolated(lambda r: (math.log1p(r) - r) / (r * r), -most, most, 3))
