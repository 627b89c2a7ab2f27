"""Static memory planning: offsets for buffers whose lifetimes are known, in as small an arena as found.

Greedy with best fit (Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020): one buffer is
placed after the other, the largest first, each in the smallest gap between those that live at the same time. Where that does
not reach the lower bound, the order is bettered a few times (Joslin and Clements, "Squeaky Wheel Optimization", 1999), then
that of the buffers' first use.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

ALIGNMENT = 64
"""Bytes: a cache line, and the widest vector."""

TRIES = 8
"""How often an order of placing is bettered at most; residual connections need two or three."""

MOST_WORK = 3_000_000
"""Fewer orders are tried where all would look at more ranges of memory than this: it takes some seconds."""

WORK_OF_A_BUFFER = 40
"""What placing a buffer costs besides, in ranges looked at."""

MOST_RANGES = 128
"""Of more ranges that are taken at one stretch of time the closest are taken for one: small gaps are given up for speed."""


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
    largest_first = sorted(range(len(buffers)), key=lambda k: (-buffers[k].size, buffers[k].start))
    best: tuple[tuple[int, ...], int] = ((), 0)
    spent = 0
    for first in (largest_first, sorted(largest_first, key=lambda k: buffers[k].start)):
        order = first
        for _ in range(TRIES):
            offsets, size, work = _place(buffers, order)
            if not spent or size < best[1]:
                best = offsets, size
            spent += work
            if best[1] == lower_bound or spent + work > MOST_WORK:
                return MemoryPlan(*best, lower_bound)
            # What came to lie above the bound is placed before all others the next time.
            above = {k for k in order if offsets[k] + align(buffers[k].size) > lower_bound}
            order = [*(k for k in order if k in above), *(k for k in order if k not in above)]
    return MemoryPlan(*best, lower_bound)


def _place(buffers: Sequence[Lifetime], order: Sequence[int]) -> tuple[tuple[int, ...], int, int]:
    """Offsets, the bytes that all need, and the work that it took, where buffers are placed in an order."""
    starts = sorted({buffer.start for buffer in buffers})
    occupied = _Occupied(len(starts))
    offsets = [0] * len(buffers)
    total, work = 0, WORK_OF_A_BUFFER * len(buffers)
    for k in order:
        buffer = buffers[k]
        size = align(buffer.size)
        if size:
            # Two buffers live together when one starts while the other lives: the starts are all times that count.
            first, last = bisect_left(starts, buffer.start), bisect_right(starts, buffer.end) - 1
            spans = occupied.spans(first, last)
            work += len(spans)
            offset = offsets[k] = _best_gap(spans, size)
            occupied.add(first, last, offset, offset + size)
            total = max(total, offset + size)
    return tuple(offsets), total, work


def _best_gap(spans: list[tuple[int, int]], size: int) -> int:
    """The start of the smallest gap between spans that holds so many bytes, the first of equal ones; else where all end."""
    spans.sort()
    end = best = 0
    least: int | None = None
    for low, high in spans:
        gap = low - end
        if gap >= size and (least is None or gap < least):
            best, least = end, gap
        end = max(end, high)
    return end if least is None else best


class _Spans:
    """Ranges of bytes that are taken, in order; ranges that touch are one."""

    __slots__ = ("highs", "lows")

    def __init__(self) -> None:
        self.lows: list[int] = []
        self.highs: list[int] = []

    def add(self, low: int, high: int) -> None:
        first, behind = bisect_left(self.highs, low), bisect_right(self.lows, high)
        if first < behind:
            low, high = min(low, self.lows[first]), max(high, self.highs[behind - 1])
        self.lows[first:behind] = [low]
        self.highs[first:behind] = [high]
        if len(self.lows) > MOST_RANGES:
            self._give_up_small_gaps()

    def _give_up_small_gaps(self) -> None:
        """Half of the gaps are no longer free, the smallest ones."""
        gaps = [low - high for low, high in zip(self.lows[1:], self.highs, strict=False)]
        kept = sorted(sorted(range(len(gaps)), key=gaps.__getitem__)[len(gaps) // 2 :])
        self.lows = [self.lows[0], *(self.lows[k + 1] for k in kept)]
        self.highs = [*(self.highs[k] for k in kept), self.highs[-1]]


class _Occupied:
    """What memory is taken at which of `count` times: a segment tree (Bentley, 1977) whose nodes keep ranges of bytes.

    Buffers are packed, so that a node keeps few ranges however many buffers they hold, and adding a buffer and asking for a
    stretch of time both take about the logarithm of `count`.
    """

    def __init__(self, count: int):
        self._leaves = 1 << max(0, count - 1).bit_length()
        self._throughout: defaultdict[int, _Spans] = defaultdict(_Spans)
        """By node: what is taken in all of its time, as far as that is not told by a node around it."""
        self._sometime: defaultdict[int, _Spans] = defaultdict(_Spans)
        """By node: what is taken at any of its times, but for what nodes around it tell."""

    def add(self, first: int, last: int, low: int, high: int) -> None:
        """Takes bytes `low` up to `high` from time `first` to time `last`, both inclusive."""
        parts = self._parts(first, last)
        for node in parts:
            self._throughout[node].add(low, high)
        for node in {*parts, *self._around(first), *self._around(last)}:
            self._sometime[node].add(low, high)

    def spans(self, first: int, last: int) -> list[tuple[int, int]]:
        """What is taken at any time from `first` to `last`, both inclusive, in no order; ranges may overlap."""
        found = [self._throughout.get(node) for node in {*self._around(first), *self._around(last)}]
        found += [self._sometime.get(node) for node in self._parts(first, last)]
        return [span for spans in found if spans is not None for span in zip(spans.lows, spans.highs, strict=True)]

    def _parts(self, first: int, last: int) -> list[int]:
        """The largest nodes that together are a stretch of time."""
        parts: list[int] = []
        low, high = first + self._leaves, last + self._leaves + 1
        while low < high:
            if low & 1:
                parts.append(low)
                low += 1
            if high & 1:
                high -= 1
                parts.append(high)
            low >>= 1
            high >>= 1
        return parts

    def _around(self, time: int) -> Iterator[int]:
        """The nodes that a time is in."""
        node = time + self._leaves
        while node:
            yield node
            node >>= 1


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
