"""Computes the source pixels of a resized axis: positions in floats, and for known sizes in integers.

A position is (a * place + b) / c with integers a, b and c. Integer formulas repeat along the axis, which code generation
exploits, and they are exact.
"""

from __future__ import annotations

from collections.abc import Callable
from math import gcd
from typing import Any, NamedTuple

from ..common._lazy import np
from ..common.numpy_meanings import Array, round_half_away

# Keeps a floor from falling below an integer that is reached up to rounding.
EPSILON = 1e-5
LONGEST_LINE = 1 << 14
"""Pixels of an axis whose places are compared one by one."""
NEAR_PIXEL = 1e-3
"""The largest distance of a position from its pixels that is taken for float rounding."""


def source_position(place: Any, size: Any, target: Any, mode: str, low: Any, high: Any, choose: Any) -> Any:
    """Returns the position, in pixels of an axis of `size`, of a place of an axis of `target` pixels.

    The modes are those of ONNX's Resize. `low` and `high` bound the region of interest, as fractions of the whole;
    `choose(condition, a, b)` selects.
    """
    scale = size / target
    match mode:
        case "half_pixel":
            return (place + 0.5) * scale - 0.5
        case "align_corners":
            return place * choose(target > 1, (size - 1) / (target - choose(target > 1, 1.0, 0.0)), 0.0)
        case "asymmetric":
            return place * scale
        case "pytorch_half_pixel":
            return choose(target > 1, (place + 0.5) * scale - 0.5, 0.0 * place)
        case "tf_half_pixel_for_nn":
            return (place + 0.5) * scale
        case _:
            steps = target - choose(target > 1, 1.0, 0.0)
            inner = low * (size - 1) + place * ((high - low) * (size - 1) / steps)
            return choose(target > 1, inner, 0.5 * (low + high) * (size - 1) + 0.0 * place)


def _choose(condition: bool, a: Any, b: Any) -> Any:
    return a if condition else b


def positions(size: int, target: int, mode: str, low: float = 0.0, high: float = 1.0) -> Array:
    """Returns the positions of all places of an axis, float32."""
    place = np.arange(target, dtype=np.float32)
    return np.asarray(source_position(place, float(size), float(target), mode, low, high, _choose), np.float32)


class Rounding(NamedTuple):
    """The functions that round numbers: to the nearest integer (halves away from zero), up, down."""

    round: Callable[[Any], Any]
    ceil: Callable[[Any], Any]
    floor: Callable[[Any], Any]


def nearest_pixel(position: Any, rounding: str, mode: str, how: Rounding) -> Any:
    """Returns the number of the pixel nearest to a position, before it is kept within the axis."""
    match rounding or ("round" if mode == "align_corners" else "floor"):
        case "round":
            return how.round(position)
        case "round_prefer_floor":
            return how.ceil(position - 0.5)
        case "round_prefer_ceil":
            return how.floor(position + 0.5)
        case "ceil":
            return how.ceil(position - EPSILON)
        case _:
            return how.floor(position + EPSILON)


def nearest(position: Array, rounding: str, mode: str) -> Array:
    """Returns the indices of the nearest pixels to positions (float32), before clipping to the axis."""
    return nearest_pixel(position, rounding, mode, Rounding(round_half_away, np.ceil, np.floor))


class Line(NamedTuple):
    """(a * place + b) // c."""

    a: int
    b: int
    c: int

    @property
    def reduced(self) -> Line:
        """The same numbers from smaller ones."""
        common = gcd(self.a, self.c)
        return Line(self.a // common, self.b // common, self.c // common)

    def at(self, place: Array) -> Array:
        """Returns the numbers for places."""
        return (self.a * place + self.b) // self.c


def position_line(size: int, target: int, mode: str) -> Line | None:
    """Returns the position that a coordinate mode assigns to each place; None with a region of interest."""
    match mode:
        case "half_pixel":
            return Line(2 * size, size - target, 2 * target)
        case "pytorch_half_pixel":
            return Line(2 * size, size - target, 2 * target) if target > 1 else Line(0, 0, 1)
        case "align_corners":
            return Line(size - 1, 0, target - 1) if target > 1 else Line(0, 0, 1)
        case "asymmetric":
            return Line(size, 0, target)
        case "tf_half_pixel_for_nn":
            return Line(2 * size, size, 2 * target)
        case _:
            return None


def nearest_line(position: Line, rounding: str) -> Line:
    """Rounds a position; halves go up, except with `round_prefer_floor`."""
    a, b, c = position
    match rounding:
        case "round" | "round_prefer_ceil":
            return Line(2 * a, 2 * b + c, 2 * c)
        case "round_prefer_floor":
            return Line(2 * a, 2 * b + c - 1, 2 * c)
        case "ceil":
            return Line(a, b + c - 1, c)
        case _:
            return position


def nearest_pixel_line(size: int, target: int, mode: str, rounding: str) -> Line | None:
    """Returns the nearest pixel of each place; None where float rounding selects another one."""
    line = position_line(size, target, mode)
    if line is None or target > LONGEST_LINE:
        return None
    line = nearest_line(line, rounding or ("round" if mode == "align_corners" else "floor")).reduced
    wanted = np.clip(nearest(positions(size, target, mode), rounding, mode), 0, size - 1)
    return line if bool((line.at(np.arange(target)) == wanted).all()) else None


def first_pixel_line(size: int, target: int, mode: str) -> Line | None:
    """Returns the pixel at or before each place; None for a region of interest, or if floats differ.

    Where a position is a pixel up to rounding, either of two neighbours may be the first: the other one has no weight.
    """
    line = position_line(size, target, mode)
    if line is None or target > LONGEST_LINE:
        return None
    line = line.reduced
    beyond = positions(size, target, mode) - line.at(np.arange(target))
    return line if bool(((beyond > -NEAR_PIXEL) & (beyond < 1 + NEAR_PIXEL)).all()) else None
