"""Tells which sizes that are known only at run time are equal, while a function is built.

A size is evaluated in a few *worlds*: in each, every open size of the model's inputs is another number. Two sizes are taken to be equal
if they are equal in all worlds, and a size is fixed if it is the same number in all of them:

    inputs   batch, seq        →  world 0: 1068, 1128    world 1: 59975, 59939   world 2: 1, 1   world 3: 3, 5
    shape_of(%x)       →  [1068, 1128, 768]     [59975, 59939, 768]     [1, 1, 768]     [3, 5, 768]

So shape arithmetic is evaluated by what its operators compute on numbers, and a result's type by its type relation, without a rule for
each operator. Polynomials that agree at random points are equal with near certainty (Schwartz, 1980); worlds of small sizes tell
`min`, `max` and divisions apart. Comparisons are not evaluated on open sizes, except with negative numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import TypeAlias, overload

WORLDS = 4
"""Two of large sizes, one where every size is 1, one of small sizes."""

_SMALL = (3, 5, 7, 2, 11, 4, 13, 6)


@dataclass(frozen=True)
class OpenSize:
    """A size that is known only at run time, as a number in each world."""

    worlds: tuple[int, ...]

    def __repr__(self) -> str:
        return f"?{self.worlds[0]}"


Extent: TypeAlias = "int | OpenSize"
"""A dimension: a number, or a size known only at run time."""


class Sizes:
    """Creates open sizes, each of other numbers than all before."""

    def __init__(self) -> None:
        self._count = 0
        self._named: dict[str, OpenSize] = {}

    def named(self, name: str) -> OpenSize:
        """Returns the size of that name, the same one for the same name."""
        if name not in self._named:
            self._named[name] = self.fresh()
        return self._named[name]

    def fresh(self) -> OpenSize:
        """Returns a size that is equal to no other."""
        self._count += 1
        # One world ascends and one descends, so that `min` of two sizes is neither. Products of a few sizes stay below 2**62.
        # Divided by 2, 3, 4, 6 or 12, they leave different remainders: 0, the greatest, 1.
        large = 1_008 + 60 * self._count, abs(60_011 - 36 * self._count)
        return OpenSize((*large, 1, _SMALL[(self._count - 1) % len(_SMALL)]))


def extent(worlds: tuple[int, ...]) -> Extent:
    """Returns the dimension that is these numbers in the worlds."""
    return worlds[0] if len(set(worlds)) == 1 else OpenSize(worlds)


def in_world(size: Extent, world: int) -> int:
    """Returns the number of a dimension in a world."""
    return size if isinstance(size, int) else size.worlds[world]


@overload
def computed(function: Callable[[int], int], first: Extent, /) -> Extent: ...
@overload
def computed(function: Callable[[int, int], int], first: Extent, second: Extent, /) -> Extent: ...
@overload
def computed(function: Callable[[int, int, int], int], first: Extent, second: Extent, third: Extent, /) -> Extent: ...
def computed(function: Callable[..., int], *sizes: Extent) -> Extent:
    """Returns what a function computes from dimensions, in every world."""
    return extent(tuple(function(*(in_world(size, world) for size in sizes)) for world in range(WORLDS)))


def total(*sizes: Extent) -> Extent:
    """Returns the sum of dimensions."""
    return extent(tuple(sum(in_world(size, world) for size in sizes) for world in range(WORLDS)))


def product(*sizes: Extent) -> Extent:
    """Returns the product of dimensions."""
    return extent(tuple(prod(in_world(size, world) for size in sizes) for world in range(WORLDS)))
