"""Handles: what a schedule gives out for blocks, loops and drawn numbers. They outlast edits, for the schedule says what
they stand for."""

from __future__ import annotations

import itertools

_NUMBERS = itertools.count()


class Handle:
    """Stands for an op of the module. Two handles are the same only when they are one object.

    Messages call it by `name` where a script gave it one.
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
    """Where a block is to be computed, drawn and no loop: at the `root`, where it is, or `inline`, in its consumers."""

    __slots__ = ("place",)

    def __init__(self, place: str) -> None:
        super().__init__()
        self.place = place


class ExprRV(Handle):
    """A number that the schedule drew; it goes wherever a number does (`factors=[tile, None]`)."""

    __slots__ = ("value",)
    schedule_kind = "expr"

    def __init__(self, value: int) -> None:
        super().__init__()
        self.value = value

    def __index__(self) -> int:
        return self.value

    def __int__(self) -> int:
        return self.value
