"""Static memory planning: offsets for buffers whose lifetimes are known, in as small an arena as found.

Greedy with best fit (Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020): one buffer is
placed after the other, the largest first, each in the smallest gap between those that live at the same time. Where that does
not reach the lower bound, the order is bettered a few times (Joslin and Clements, "Squeaky Wheel Optimization", 1999).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

ALIGNMENT = 64
"""Bytes: a cache line, and the widest vector."""

TRIES = 8
"""How many orders of placing are tried at most; residual connections need two or three."""


@dataclass(frozen=True)
class Lifetime:
    """A buffer of `size` bytes, written at time `start` and last read at time `end` (both inclusive)."""

    size: int
    start: int
    end: int


@dataclass(frozen=True)
class MemoryPlan:
    """`offsets[k]` is where buffer k lies; `size` is what all need; `lower_bound` is the most that lives at one time."""

    offsets: tuple[int, ...]
    size: int
    lower_bound: int


def align(size: int) -> int:
    """`size` rounded up to the alignment of buffers."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def plan_memory(buffers: Sequence[Lifetime]) -> MemoryPlan:
    """Places the buffers so that no two that live at the same time overlap. Sizes and offsets are in bytes."""
    lower_bound = _peak(buffers)
    order = sorted(range(len(buffers)), key=lambda k: (-buffers[k].size, buffers[k].start))
    offsets, size = _place(buffers, order)
    tried = offsets
    for _ in range(TRIES - 1):
        # What came to lie above the bound is placed before all others the next time.
        above = {k for k in order if tried[k] + align(buffers[k].size) > lower_bound}
        if not above:
            break
        order = [*(k for k in order if k in above), *(k for k in order if k not in above)]
        tried, total = _place(buffers, order)
        if total < size:
            offsets, size = tried, total
    return MemoryPlan(offsets, size, lower_bound)


def _place(buffers: Sequence[Lifetime], order: Sequence[int]) -> tuple[tuple[int, ...], int]:
    """Offsets, and the bytes that all need, where buffers are placed in an order."""
    import numpy as np

    count = len(buffers)
    sizes = np.array([align(b.size) for b in buffers], dtype=np.int64)
    starts = np.array([b.start for b in buffers], dtype=np.int64)
    ends = np.array([b.end for b in buffers], dtype=np.int64)
    offsets = np.zeros(count, dtype=np.int64)
    placed = np.zeros(count, dtype=bool)
    for k in order:
        alive = placed & (starts <= ends[k]) & (ends >= starts[k])
        low = offsets[alive]
        ranking = np.argsort(low, kind="stable")
        low, high = low[ranking], (low + sizes[alive])[ranking]
        # Before each placed buffer the space up to the highest end so far is taken; what is left is a gap.
        taken = np.concatenate(([0], np.maximum.accumulate(high))) if len(low) else np.zeros(1, dtype=np.int64)
        gaps = low - taken[:-1]
        fitting = np.flatnonzero(gaps >= sizes[k])
        best = fitting[np.argmin(gaps[fitting])] if len(fitting) else len(low)
        offsets[k] = taken[best]
        placed[k] = True
    total = int((offsets + sizes).max()) if count else 0
    return tuple(int(o) for o in offsets), total


def _peak(buffers: Sequence[Lifetime]) -> int:
    """The most bytes that live at one time."""
    changes: dict[int, int] = {}
    for buffer in buffers:
        changes[buffer.start] = changes.get(buffer.start, 0) + align(buffer.size)
        changes[buffer.end + 1] = changes.get(buffer.end + 1, 0) - align(buffer.size)
    peak = alive = 0
    for time in sorted(changes):
        alive += changes[time]
        peak = max(peak, alive)
    return peak
