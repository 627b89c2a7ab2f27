"""Counts the expressions that occur several times within one, as `tvm.arith.detect_common_subexpr`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...dialects.tir import node as ex
from ...dialects.tir.node import Apply, Call, Const, Element, Expr, StringImm, Var
from ...dialects.tir.node.functor import expr_parts, kind_of
from ...support.arguments import check, integer
from ...support.public_names import public_names


class ExprCounts(Mapping[Expr, int]):
    """Maps expressions, found by their structure, to the number of times that they occur."""

    def __init__(self, numbers: _Numbers, counts: Mapping[int, int]):
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


class _Numbers:
    """Numbers expressions, equal ones alike."""

    def __init__(self) -> None:
        self.first: list[Expr] = []
        self.parts: list[tuple[int, ...]] = []
        self._known: dict[object, int] = {}
        self._memo: dict[int, tuple[Expr, int]] = {}

    def of(self, root: Expr) -> int:
        pending = [root]
        while pending:
            e = pending[-1]
            rest = [part for part in expr_parts(e) if id(part) not in self._memo]
            if rest and id(e) not in self._memo:
                pending += rest
                continue
            pending.pop()
            if id(e) not in self._memo:
                self._memo[id(e)] = (e, self._number(e))
        return self._memo[id(root)][1]

    def _number(self, e: Expr) -> int:
        parts = tuple(self._memo[id(part)][1] for part in expr_parts(e))
        own: object
        match e:
            case Const() | StringImm():
                own = repr(e.value)
            case Call():
                others = [
                    o if isinstance(o, str | int | float) else id(o) for o in e.operands if not isinstance(o, Expr)
                ]
                own = (e.intrinsic, e.callee, *others)
            case Apply():
                own = e.op
            case ex.BufferLoad():
                own = id(e.buffer)
            case _:
                own = id(e)
        key = (kind_of(e), e.dtype, own, parts)
        number = self._known.get(key)
        if number is None:
            number = self._known[key] = len(self.first)
            self.first.append(e)
            self.parts.append(parts)
        return number


def detect_common_subexpr(e: Expr, threshold: int) -> Mapping[Expr, int]:
    """Returns the expressions that occur `threshold` times or more, and how many times each does.

    Constants and variables are left out. What occurs only within an expression of the result is left out.

        detect_common_subexpr((x + y) * (x + y) + z, 2)      # {x + y: 2}
    """
    check(e, "e", "an expression", Expr)
    least = integer(threshold, "threshold", 1)
    numbers = _Numbers()
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
