"""Dimensions `?` that remember whose they are, so that a type relation tells what is left to check at run time.

A relation takes a `?` to fit whatever it meets. Run once more on types whose `?`s are `OpenDim`s, it notes each comparison
that it could not decide; native code makes these with the sizes that it meets.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import DYNAMIC_INDEX


@dataclass(frozen=True)
class Comparison:
    """Two dimensions that must be equal, or, with `stretches`, of which one may be 1."""

    left: int
    right: int
    stretches: bool


class OpenDim(int):
    """The `?` of dimension `axis` of an argument (of its field `field`); as a number it is any other `?`."""

    argument: int
    field: int
    axis: int
    log: list[Comparison]
    """Where comparisons are noted."""

    def __new__(cls, argument: int, field: int, axis: int, log: list[Comparison]) -> OpenDim:
        made = super().__new__(cls, DYNAMIC_INDEX)
        made.argument, made.field, made.axis, made.log = argument, field, axis, log
        return made


def note(left: int, right: int, stretches: bool = False) -> None:
    """Notes a comparison of which a side is open; one with a `?` that nobody knows the origin of is left out."""
    if isinstance(left, OpenDim):
        if isinstance(right, OpenDim) or right != DYNAMIC_INDEX:
            left.log.append(Comparison(left, right, stretches))
    elif isinstance(right, OpenDim) and left != DYNAMIC_INDEX:
        right.log.append(Comparison(right, left, stretches))
