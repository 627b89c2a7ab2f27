"""Computes the matrices of Winograd's F(m, r): m outputs of a filter of r taps by m + r - 1 products.

They are interpolated by Cook's and Toom's method at small points (Lavin and Gray, "Fast algorithms for convolutional
neural networks", 2015); the points are those of Barabasz, Anderson, Soodhalter and Gregg, "Error analysis and improving
the accuracy of Winograd convolution", 2018, in the order in which TVM takes them.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import prod

_SHARED = (0, -1, 1, Fraction(1, 2))
_LATER = (*_SHARED, Fraction(-1, 2), 2, -2, Fraction(-1, 4))
_POINTS: dict[int, tuple[int | Fraction, ...]] = {
    3: _SHARED[:3],
    4: _SHARED,
    5: (*_SHARED, -2),
    6: (*_SHARED, -2, Fraction(-1, 2)),
    7: _LATER[:7],
    8: _LATER,
    9: (*_LATER, 4),
    10: (*_LATER, Fraction(3, 4), Fraction(-4, 3)),
    11: (*_LATER, 4, Fraction(3, 4), Fraction(-4, 3)),
    12: (*_LATER, 4, Fraction(3, 4), Fraction(-4, 3), Fraction(1, 4)),
    13: (*_LATER, 4, Fraction(1, 4), Fraction(-3, 4), Fraction(4, 3), -4),
}
"""The finite points, by their number; infinity is one more."""

Matrix = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Transforms:
    """The matrices of F(m, r) with n = m + r - 1: output (n, m), data (n, n) and filter (n, r).

    y = outputᵀ * (filter * g ⊙ dataᵀ * d) for a filter g and data d.
    """

    output: Matrix
    data: Matrix
    filter: Matrix


def taps_fit(tile: int, taps: int) -> bool:
    """Returns whether the matrices of F(tile, taps) exist."""
    return 1 < tile < 9 and 2 < taps < 8


@cache
def transforms(tile: int, taps: int) -> Transforms:
    """Returns the matrices of F(tile, taps)."""
    points = [Fraction(p) for p in _POINTS[tile + taps - 2]]
    count = len(points)
    scales = [prod((p - q for q in points if q is not p), start=Fraction(1)) for p in points]
    if scales[0] < 0:
        scales[0] = -scales[0]
    last = [[Fraction(int(j == width - 1)) for j in range(width)] for width in (tile, taps)]
    output = [[p**j for j in range(tile)] for p in points] + [last[0]]
    filters = [[p**j / s for j in range(taps)] for p, s in zip(points, scales, strict=True)] + [last[1]]
    # Lagrange's basis polynomials without their denominators, and the polynomial that is zero at every point.
    data = [[Fraction(0)] * (count + 1) for _ in range(count + 1)]
    for column, point in enumerate(points):
        others = [q for q in points if q is not point]
        denominator = prod((point - q for q in others), start=Fraction(1))
        for row, value in enumerate(_polynomial(others)):
            data[row][column] = value * scales[column] / denominator
    for row, value in enumerate(_polynomial(points)):
        data[row][count] = value
    return Transforms(_floats(output), _floats(data), _floats(filters))


def _polynomial(roots: list[Fraction]) -> list[Fraction]:
    """Returns the coefficients of the product of (x - root), from the constant on."""
    result = [Fraction(1)]
    for root in roots:
        shifted = [Fraction(0), *result]
        result = [s - root * r for s, r in zip(shifted, [*result, Fraction(0)], strict=True)]
    return result


def _floats(rows: list[list[Fraction]]) -> Matrix:
    return tuple(tuple(float(v) for v in row) for row in rows)
