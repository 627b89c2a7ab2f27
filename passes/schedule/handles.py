"""Handles: what a schedule gives out for blocks and loops. They outlast edits, for the schedule says what they stand for."""

from __future__ import annotations

import itertools

_NUMBERS = itertools.count()


class Handle:
    """Stands for an op of the module. Two handles are the same only when they are one object."""

    __slots__ = ("number",)
    prefix = "v"

    def __init__(self) -> None:
        self.number = next(_NUMBERS)

    def __repr__(self) -> str:
        return f"{self.prefix}{self.number}"


class BlockRV(Handle):
    """Stands for a block (or, as TVM's root block, a function)."""

    prefix = "b"


class LoopRV(Handle):
    """Stands for a loop."""

    prefix = "l"
