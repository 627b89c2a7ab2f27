"""`tir.layout` and `tir.bijective_layout`: the order of a tensor's axes, and maps between two of them.

bijective_layout("NCHW", "NCHW16c").forward_index([0, 18, 6, 6])     (0, 1, 6, 6, 2)
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ...dialects.tir.node import Const, IntImm, IterVar, Range, Var, fail
from ...support.public_names import public_names

UNDEFINED = ("", "__undef__")


class Layout:
    """The order of axes: a capital is an axis, a small letter a block of it, as in `NCHW16c`."""

    def __init__(self, name: str, dtype: str = "int32"):
        self.name = name
        found = [] if name in UNDEFINED else re.findall(r"(\d*)([A-Za-z])", name)
        letters = [letter for _, letter in found]
        if "".join(map("".join, found)) != ("" if name in UNDEFINED else name) or len({*letters}) != len(letters):
            raise fail(f"'{name}' is not a layout", "a layout names each axis by a capital, and a block of it as 16c")
        for size, letter in found:
            if letter.islower() != bool(size) or (letter.islower() and letter.upper() not in letters):
                raise fail(
                    f"'{letter}' of the layout '{name}' is not an axis",
                    "a block has a size and the axis it is of, as NCHW16c",
                )
        self.letters = letters
        self.sizes: dict[str, int] = {letter: int(size) for size, letter in found if size}
        self.axes = [self._axis(letter, dtype) for letter in letters]

    def _axis(self, letter: str, dtype: str) -> IterVar:
        extent = IntImm(dtype, self.sizes[letter]) if letter in self.sizes else Var(letter, dtype)
        return IterVar(Range.from_min_extent(IntImm(dtype, 0), extent), letter, IterVar.DataPar)

    def __len__(self) -> int:
        return len(self.letters)

    def __contains__(self, axis: str) -> bool:
        return axis in self.letters

    def __getitem__(self, index: int) -> str:
        return self.letters[index]

    def __repr__(self) -> str:
        return f"Layout({self.name})"

    def index_of(self, axis: str) -> int:
        """Returns the place of an axis; -1 for none."""
        return self.letters.index(axis) if axis in self.letters else -1

    def factor_of(self, axis: str) -> int:
        """Returns the size of an axis's block; -1 where it has none."""
        return self.sizes.get(axis.lower(), -1)


class BijectiveLayout:
    """Maps indices and shapes in one layout to another of the same axes, and back."""

    def __init__(self, src_layout: Layout, dst_layout: Layout):
        self.src_layout = src_layout
        self.dst_layout = dst_layout

    def __repr__(self) -> str:
        return f"BijectiveLayout({self.src_layout.name}, {self.dst_layout.name})"

    def forward_index(self, index: Sequence[Any]) -> list[Any]:
        """Returns the place in the second layout of what is at a place in the first."""
        return _mapped(self.src_layout, self.dst_layout, index, sizes=False)

    def backward_index(self, index: Sequence[Any]) -> list[Any]:
        """Returns the place in the first layout of what is at a place in the second."""
        return _mapped(self.dst_layout, self.src_layout, index, sizes=False)

    def forward_shape(self, shape: Sequence[Any]) -> list[Any]:
        """Returns the shape in the second layout of a tensor of a shape in the first."""
        return _mapped(self.src_layout, self.dst_layout, shape, sizes=True)

    def backward_shape(self, shape: Sequence[Any]) -> list[Any]:
        """Returns the shape in the first layout of a tensor of a shape in the second."""
        return _mapped(self.dst_layout, self.src_layout, shape, sizes=True)


def _mapped(source: Layout, target: Layout, given: Sequence[Any], *, sizes: bool) -> list[Any]:
    if len(given) != len(source):
        raise fail(f"layout '{source.name}' has {len(source)} axes, but {len(given)} values are given")
    known: Mapping[str, Any] = dict(zip(source.letters, given, strict=True))

    def whole(axis: str) -> Any:
        if axis.lower() not in known:
            return known[axis]
        block = source.sizes[axis.lower()]
        return known[axis] * block if sizes else known[axis] * block + known[axis.lower()]

    def part(letter: str) -> Any:
        axis, block = letter.upper(), target.sizes.get(letter.lower())
        if block is None:
            return whole(axis)
        if letter.islower():
            return block if sizes else whole(axis) % block
        return (whole(axis) + (block - 1)) // block if sizes else whole(axis) // block

    found = [part(letter) for letter in target.letters]
    return [each.value if isinstance(each, Const) else each for each in found]


def layout(layout_str: str, dtype: str = "int32") -> Layout:
    """Returns the layout of a text, `NCHW16c`. Raises MirError for what is none."""
    return Layout(layout_str, dtype)


def bijective_layout(src_layout: str | Layout, dst_layout: str | Layout) -> BijectiveLayout | None:
    """Returns the map between two layouts; None where they have different axes, or one is not defined."""
    source, target = (each if isinstance(each, Layout) else Layout(each) for each in (src_layout, dst_layout))
    axes = [{letter.upper() for letter in each.letters} for each in (source, target)]
    return BijectiveLayout(source, target) if axes[0] and axes[0] == axes[1] else None


__all__ = ["BijectiveLayout", "Layout", "bijective_layout", "layout"]

__dir__ = public_names(__name__)
