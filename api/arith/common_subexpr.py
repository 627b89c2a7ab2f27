"""Counts the expressions that occur several times within one, as `tvm.arith.detect_common_subexpr`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...dialects.arith.expression_numbers import ExpressionNumbers
from ...dialects.tir.node import Const, Element, Expr, StringImm, Var
from ...support.arguments import check, integer
from ...support.public_names import public_names


class ExprCounts(Mapping[Expr, int]):
    """Maps expressions, found by their structure, to the number of times that they occur."""

    def __init__(self, numbers: ExpressionNumbers, counts: Mapping[int, int]):
        self._numbers = numbers
        self._counts = dict(counts)

    def __getitem__(self, e: Expr) -> int:
        return self._counts[self._numbers.of(e)]

    def __iter__(self) -> Iterator[Expr]:
        return (self._numbers.first[number] for number in self._counts)

    def __len__(self) -> int:
        return len(self._counts)

    def __contains__(self, e: object) -> bool:
        return isinstance(e, Expr) and self._numbers.of(e) in self._counts

    def __repr__(self) -> str:
        return "{" + ", ".join(f"{e}: {count}" for e, count in self.items()) + "}"


def detect_common_subexpr(e: Expr, threshold: int) -> Mapping[Expr, int]:
    """Returns the expressions that occur `threshold` times or more, and how many times each does.

    Constants and variables are left out. What occurs only within an expression of the result is left out.

        detect_common_subexpr((x + y) * (x + y) + z, 2)      # {x + y: 2}
    """
    check(e, "e", "an expression", Expr)
    least = integer(threshold, "threshold", 1)
    numbers = ExpressionNumbers()
    root = numbers.of(e)
    counts = [0] * len(numbers.first)
    counts[root] = 1
    # Parts have smaller numbers than what they are part of.
    for number in reversed(range(root + 1)):
        for part in numbers.parts[number]:
            counts[part] += counts[number]
    found: dict[int, int] = {}
    for number in reversed(range(root + 1)):
        is_leaf = isinstance(numbers.first[number], Var | Const | StringImm) or not numbers.parts[number]
        if counts[number] < least or is_leaf or isinstance(numbers.first[number], Element):
            continue
        users = [user for user in found if number in numbers.parts[user]]
        if not any(found[user] * numbers.parts[user].count(number) == counts[number] for user in users):
            found[number] = counts[number]
    return ExprCounts(numbers, found)


__dir__ = public_names(__name__)
