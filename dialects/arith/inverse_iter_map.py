"""The inverse of an iteration map: loop variables from the values of the indices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from . import expr as x
from .expr import ZERO, Atom, Expr
from .iter_map import IterMapResult, IterMark, IterRange, IterSumExpr

if TYPE_CHECKING:
    from .analyzer import Analyzer


def inverse_affine_iter_map(
    analyzer: Analyzer, result: IterMapResult, input_iters: Mapping[Atom, IterRange], outputs: Sequence[Expr]
) -> dict[Atom, Expr]:
    """The loop variables as expressions of the indices' values `outputs`, for a map detected as bijective.

    Loops of extent 1 get their minimum. Raises ValueError when `result` is a failure.
    """
    if not result:
        raise ValueError(f"no inverse: {result.errors[0]}")
    values: dict[IterMark, Expr] = {}
    ordered: list[IterMark] = []
    for index in result.indices:
        _order_marks(index, ordered, set(ordered))
    for index, output in zip(result.indices, outputs, strict=True):
        _spread(index, output, values)
    # Parents come before the marks that they are made of.
    for mark in reversed(ordered):
        if isinstance(mark.source, IterSumExpr):
            _spread(mark.source, analyzer.simplify(values[mark]), values)
    inverse = {atom: range.min for atom, range in input_iters.items()}
    for mark, value in values.items():
        if isinstance(mark.source, Atom):
            inverse[mark.source] = analyzer.simplify(value + input_iters[mark.source].min)
    return inverse


def _order_marks(total: IterSumExpr, ordered: list[IterMark], seen: set[IterMark]) -> None:
    """Appends the marks in the sum, those that a mark is made of before it."""
    for split in total.args:
        if split.source in seen:
            continue
        seen.add(split.source)
        if isinstance(split.source.source, IterSumExpr):
            _order_marks(split.source.source, ordered, seen)
        ordered.append(split.source)


def _spread(total: IterSumExpr, value: Expr, values: dict[IterMark, Expr]) -> None:
    """Adds to the value of each mark what the sum's value says of its digits."""
    value = value - total.base
    largest_first = total.args
    for position, split in enumerate(largest_first):
        digit = x.floordiv(value, split.scale)
        if position:
            digit = x.floormod(digit, split.extent)
        values[split.source] = values.get(split.source, ZERO) + digit * split.lower_factor
