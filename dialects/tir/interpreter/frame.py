"""Holds the state of one running function."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TypeAlias

import numpy as np

from .values import Array, Value


class Frame:
    """Values by slot, the active axes, and the mask of iterations that run (None: all)."""

    __slots__ = ("count", "folding", "mask", "positions", "rank", "sizes", "v")

    v: list[Value]
    mask: Array | None
    rank: int
    sizes: list[int]
    """Iterations along each axis; 1 while it is not active."""
    count: int
    """Iterations that run at once: the product of the sizes."""
    positions: list[Array | None]
    """0, 1, … along each active axis, as an array that varies along it alone."""
    folding: set[int]
    """Axes that updates fold along."""

    def __init__(self, template: list[Value], rank: int):
        self.v = template.copy()
        self.mask = None
        self.rank = rank
        self.sizes = [1] * rank
        self.count = 1
        self.positions = [None] * rank
        self.folding = set()

    def open_axis(self, axis: int, size: int) -> Array:
        """Activates an axis with `size` iterations; returns their positions."""
        shape = [1] * self.rank
        shape[axis] = size
        positions = np.arange(size).reshape(shape)
        self.sizes[axis] = size
        self.count *= size
        self.positions[axis] = positions
        return positions

    def close_axis(self, axis: int) -> None:
        """Ends the axis of `open_axis`."""
        self.count //= self.sizes[axis]
        self.sizes[axis] = 1
        self.positions[axis] = None

    @contextmanager
    def masked(self, condition: Array) -> Generator[bool, None, None]:
        """Runs only iterations where `condition` holds within the `with`; yields whether any does."""
        before = self.mask
        mask = condition if before is None else before & condition
        self.mask = mask
        try:
            yield bool(mask.any())
        finally:
            self.mask = before


Step: TypeAlias = Callable[[Frame], None]


def run_all(steps: tuple[Step, ...], frame: Frame) -> None:
    """Runs steps in order."""
    for step in steps:
        step(frame)
