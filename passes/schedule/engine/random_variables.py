"""Handles of blocks, loops and drawn numbers. They outlast edits: the schedule maps each to its op."""

from __future__ import annotations

import itertools

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
