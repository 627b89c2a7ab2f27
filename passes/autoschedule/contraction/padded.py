"""Padding that is not multiplied: windows are cut where they are outside of the input for a tile.

A convolution of 14×14 whose window of 3×3 is dilated by 4 multiplies by zeros in a fifth of its iterations, row by row; one of 128 places over
49, padded by 64 on either side, in more than half of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.ir import SSAValue

from ....dialects.arith import Analyzer
from ....dialects.arith.expr import Expr
from ...schedule.primitives.omit_padding import padding_of
from .match import Contraction
from .tile import Tile

WORTH = 0.97
"""The part of a contraction that may remain at most for the conditions in each iteration to pay."""


@dataclass(frozen=True)
class Slide:
    """A dimension of the input along which a window slides.

    Its index is `place * stride + tap * dilation`, inside from `low` to `high`.
    """

    stride: int
    dilation: int
    low: int
    high: int

    def kept(self, places: int, taps: int, rows: int) -> float:
        """Returns the part of the iterations that reads more than padding, with so many places in a tile."""
        kept = total = 0
        for start in range(0, places, rows):
            size = min(rows, places - start)
            first, last = start * self.stride, (start + size - 1) * self.stride
            inside = sum(
                first + tap * self.dilation <= self.high and last + tap * self.dilation >= self.low
                for tap in range(taps)
            )
            kept += inside * size
            total += taps * size
        return kept / total


def padded_taps(match: Contraction, tile: Tile) -> list[SSAValue]:
    """Returns the reduced axes along which skipping iterations of padding alone pays, outermost first."""
    shape = match.shape
    kept: dict[SSAValue, float] = {}
    for axis, tap, slide in _slides(match):
        kept[tap] = slide.kept(shape.extent(axis) or 1, shape.extent(tap) or 1, tile.rows if axis is match.rows else 1)
    taps = [tap for tap, part in kept.items() if part < 1]
    if prod(kept[tap] for tap in taps) > WORTH:
        return []
    return taps


def _slides(match: Contraction) -> list[tuple[SSAValue, SSAValue, Slide]]:
    """Returns the dimensions of A that are padded and that windows slide along, with both axes."""
    bounds = padding_of(match.broadcast.buffer)
    found = [_slide(match, match.broadcast.indices[place], *ends) for place, ends in bounds.items()]
    return [slide for slide in found if slide is not None]


def _slide(match: Contraction, index: Expr, low: Expr, high: Expr) -> tuple[SSAValue, SSAValue, Slide] | None:
    """Returns an index as an output axis and a reduced one; None where it is another expression."""
    shape, analyzer = match.shape, Analyzer()
    steps = {axis: index.coefficient(atom) for axis in shape.axes if (atom := analyzer.expr(axis).atom) is not None}
    axes = [axis for axis in shape.spatial if steps.get(axis)]
    taps = [axis for axis in shape.reduction if steps.get(axis)]
    if len(axes) != 1 or len(taps) != 1 or shape.extent(axes[0]) is None or low.value is None or high.value is None:
        return None
    rest = index - analyzer.expr(axes[0]).scaled(steps[axes[0]]) - analyzer.expr(taps[0]).scaled(steps[taps[0]])
    if rest.value is None or steps[axes[0]] < 0 or steps[taps[0]] < 0:
        return None
    offset = rest.value
    slide = Slide(steps[axes[0]], steps[taps[0]], low.value - offset, high.value - offset)
    return axes[0], taps[0], slide
