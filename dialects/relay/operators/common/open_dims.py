"""Tracks the origin of dimensions `?`, to find the checks that a type relation leaves to run time.

In a type relation `?` fits every dimension. Run again on types whose `?`s are `OpenDim`s, it notes each comparison that
it could not decide; native code makes these checks with the actual sizes. The result of arithmetic on an `OpenDim`
(`relations.multiply_dims` and the like) is also one, and remembers its formula.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from xdsl.dialects.builtin import DYNAMIC_INDEX

if TYPE_CHECKING:
    from .result_sizes import Rule

Sign = Literal["+", "*", "//", "%"]

ON_NUMBERS: Mapping[Sign, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
}
"""The operations on numbers by their signs."""


@dataclass(frozen=True)
class Place:
    """Dimension `axis` of tensor `leaf` of the operator's arguments, tuples flattened."""

    leaf: int
    axis: int


@dataclass(frozen=True)
class Formula:
    """A size calculated of two others."""

    sign: Sign
    left: Size
    right: Size


Size: TypeAlias = Place | Formula | int


def calculate(size: Size, size_of: Callable[[Place], Any], operations: Mapping[Sign, Callable[[Any, Any], Any]]) -> Any:
    """Evaluates a size from known dimensions: as a number, or as an expression by `operations`."""
    match size:
        case Formula(sign, left, right):
            return operations[sign](*(calculate(side, size_of, operations) for side in (left, right)))
        case Place():
            return size_of(size)
        case _:
            return size


@dataclass(frozen=True)
class Comparison:
    """Two sizes that must fit by a rule."""

    rule: Rule
    left: Size
    right: Size


class OpenDim(int):
    """The `?` of an argument's dimension, or arithmetic on one; as a number it equals any `?`."""

    size: Place | Formula
    log: list[Comparison]
    """Where comparisons are noted."""

    def __new__(cls, size: Place | Formula, log: list[Comparison]) -> OpenDim:
        made = super().__new__(cls, DYNAMIC_INDEX)
        made.size, made.log = size, log
        return made


def note(left: int, right: int, rule: Rule = "equal") -> None:
    """Notes a comparison with an open side; one with a `?` of unknown origin is left out."""
    log = _log(left, right)
    if log is not None:
        sides = _size(left), _size(right)
        # An open side comes first, where the rule is the same for both.
        swapped = rule in ("equal", "stretch") and not isinstance(left, OpenDim)
        log.append(Comparison(rule, *(sides[::-1] if swapped else sides)))


def combine(sign: Sign, left: int, right: int) -> int:
    """Combines two dimensions to a number, `?` where one is: an `OpenDim` where their origin is known."""
    if right == {"+": 0, "*": 1, "//": 1}.get(sign):
        return left
    if DYNAMIC_INDEX not in (left, right):
        return ON_NUMBERS[sign](left, right)
    log = _log(left, right)
    return DYNAMIC_INDEX if log is None else OpenDim(Formula(sign, _size(left), _size(right)), log)


def _log(*sides: int) -> list[Comparison] | None:
    """Returns the log of the open sides; None where no side is open or a `?` is of unknown origin."""
    if any(side == DYNAMIC_INDEX and not isinstance(side, OpenDim) for side in sides):
        return None
    return next((side.log for side in sides if isinstance(side, OpenDim)), None)


def _size(dim: int) -> Size:
    return dim.size if isinstance(dim, OpenDim) else dim
