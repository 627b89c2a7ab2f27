"""Handles of blocks, loops and drawn numbers. They outlast edits: the schedule maps each to its op."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator, Mapping

from ....support.diagnostics import Diagnostic, MirError

_NUMBERS = itertools.count()


class Handle:
    """A handle of an op of the module. Two handles are the same only when they are one object.

    Messages call it by the `name` that a script has for it, if any.
    """

    __slots__ = ("name", "number")
    prefix = "v"
    schedule_kind = ""

    def __init__(self) -> None:
        self.number = next(_NUMBERS)
        self.name = ""

    def __repr__(self) -> str:
        return f"'{self.name}'" if self.name else f"{self.prefix}{self.number}"


class BlockRV(Handle):
    """Stands for a block (or, as TVM's root block, a function)."""

    prefix = "b"
    schedule_kind = "block"


class LoopRV(Handle):
    """Stands for a loop."""

    prefix = "l"
    schedule_kind = "loop"


class PlaceRV(LoopRV):
    """A drawn place of a block that is not a loop: `root`, where it is, or `inline`, in its consumers."""

    __slots__ = ("place",)

    def __init__(self, place: str) -> None:
        super().__init__()
        self.place = place


class ExprRV(Handle):
    """A number that the schedule drew; it goes wherever a number does (`factors=[tile, None]`).

    Arithmetic on it, `tile * 2`, is a number that a trace computes again where another one is drawn.
    """

    __slots__ = ("value",)
    schedule_kind = "expr"

    def __init__(self, value: int) -> None:
        super().__init__()
        self.value = value

    def __index__(self) -> int:
        return self.value

    def __int__(self) -> int:
        return self.value

    def __add__(self, other: ExprRV | int) -> ComputedRV:
        return ComputedRV("+", self, other)

    def __radd__(self, other: int) -> ComputedRV:
        return ComputedRV("+", other, self)

    def __sub__(self, other: ExprRV | int) -> ComputedRV:
        return ComputedRV("-", self, other)

    def __rsub__(self, other: int) -> ComputedRV:
        return ComputedRV("-", other, self)

    def __mul__(self, other: ExprRV | int) -> ComputedRV:
        return ComputedRV("*", self, other)

    def __rmul__(self, other: int) -> ComputedRV:
        return ComputedRV("*", other, self)

    def __floordiv__(self, other: ExprRV | int) -> ComputedRV:
        return ComputedRV("//", self, other)

    def __rfloordiv__(self, other: int) -> ComputedRV:
        return ComputedRV("//", other, self)

    def __mod__(self, other: ExprRV | int) -> ComputedRV:
        return ComputedRV("%", self, other)

    def __rmod__(self, other: int) -> ComputedRV:
        return ComputedRV("%", other, self)


_ARITHMETIC: Mapping[str, Callable[[int, int], int]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": lambda a, b: a // b, "%": lambda a, b: a % b,
}  # fmt: skip


class ComputedRV(ExprRV):
    """Arithmetic on drawn numbers. Raises MirError for a division by zero."""

    __slots__ = ("left", "op", "right")

    def __init__(self, op: str, left: ExprRV | int, right: ExprRV | int) -> None:
        if op in ("//", "%") and int(right) == 0:
            raise MirError(Diagnostic(f"a drawn number is divided by zero: {left!r} {op} {right!r}"))
        super().__init__(_ARITHMETIC[op](int(left), int(right)))
        self.op, self.left, self.right = op, left, right

    def __repr__(self) -> str:
        return f"({self.left!r} {self.op} {self.right!r})"

    def renewed(self, renew: Callable[[Handle], ExprRV | int]) -> ComputedRV:
        """Returns the same arithmetic on other numbers; `renew` returns that for each drawn one."""

        def side(value: ExprRV | int) -> ExprRV | int:
            if isinstance(value, ComputedRV):
                return value.renewed(renew)
            return renew(value) if isinstance(value, ExprRV) else value

        return ComputedRV(self.op, side(self.left), side(self.right))

    def drawn(self) -> Iterator[Handle]:
        """Yields the drawn numbers in it."""
        for side in (self.left, self.right):
            if isinstance(side, ComputedRV):
                yield from side.drawn()
            elif isinstance(side, ExprRV):
                yield side
