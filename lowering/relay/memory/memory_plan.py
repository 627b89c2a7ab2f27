"""Plans static memory: offsets for buffers of known lifetimes, in as small an arena as found.

Greedy with best fit (Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020): one buffer is
placed after the other, the largest first, each in the smallest gap between those that live at the same time. Where that does
not reach the lower bound, the order is improved a few times (Joslin and Clements, "Squeaky Wheel Optimization", 1999), then
that of the buffers' first use. Buffers of a group share one range of memory, which is placed as a whole; where one of them is not
live, the range is free for others.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .alignment import ALIGNMENT, align

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
class Group:
    """Buffers in one range of `size` bytes, each at an offset from its start."""

    size: int
    parts: tuple[tuple[int, Lifetime], ...]

    @property
    def start(self) -> int:
        """When the first of them is written."""
        return min((part.start for _, part in self.parts), default=0)


@dataclass(frozen=True)
class MemoryPlan:
    """The plan of all buffers.

    `offsets[k]` is the place of buffer or group k; `size` is what all need; `lower_bound` is the most that lives at one time.
    """

    offsets: tuple[int, ...]
    size: int
    lower_bound: int


def plan_memory(buffers: Sequence[Lifetime | Group]) -> MemoryPlan:
    """Places buffers so that no two that live at the same time overlap; sizes and offsets are in bytes."""
    lower_bound = _peak(buffers)
    # Two buffers live together when one starts while the other lives: the starts are all times that count.
    starts = sorted({part.start for buffer in buffers for _, part in _parts(buffer)})
    items = [_Item.of(buffer, starts) for buffer in buffers]
    largest_first = sorted(range(len(buffers)), key=lambda k: (-buffers[k].size, buffers[k].start))
    best: tuple[tuple[int, ...], int] = ((), 0)
    spent = 0
    for first in (largest_first, sorted(largest_first, key=lambda k: buffers[k].start)):
        order = first
        for _ in range(TRIES):
            offsets, size, work = _place(items, order, len(starts))
            if not spent or size < best[1]:
                best = offsets, size
            spent += work
            if best[1] == lower_bound or spent + work > MOST_WORK:
                return MemoryPlan(*best, lower_bound)
            # Buffers above the bound are placed before all others the next time.
            above = {k for k in order if offsets[k] + items[k].size > lower_bound}
            order = [*(k for k in order if k in above), *(k for k in order if k not in above)]
    return MemoryPlan(*best, lower_bound)


def _parts(buffer: Lifetime | Group) -> Sequence[tuple[int, Lifetime]]:
    return buffer.parts if isinstance(buffer, Group) else ((0, buffer),)


@dataclass(frozen=True)
class _Item:
    """A buffer or group to be placed: its bytes, and its live parts.

    A part is two byte offsets (from, up to), and the first and the last of the times that count at which it is live.
    """

    size: int
    parts: tuple[tuple[int, int, int, int], ...]

    @staticmethod
    def of(buffer: Lifetime | Group, starts: Sequence[int]) -> _Item:
        parts = tuple(
            (
                offset // ALIGNMENT * ALIGNMENT,
                align(offset + part.size),
                bisect_left(starts, part.start),
                bisect_right(starts, part.end) - 1,
            )
            for offset, part in _parts(buffer)
            if part.size
        )
        return _Item(align(buffer.size), parts)


def _place(items: Sequence[_Item], order: Sequence[int], times: int) -> tuple[tuple[int, ...], int, int]:
    """Offsets, the bytes that all need, and the work that it took, where buffers are placed in an order."""
    occupied = _Occupied(times)
    offsets = [0] * len(items)
    total, work = 0, WORK_OF_A_BUFFER * len(items)
    for k in order:
        size, parts = items[k].size, items[k].parts
        if not parts:
            continue
        if len(parts) == 1 and parts[0][1] - parts[0][0] == size:
            spans = occupied.spans(*parts[0][2:])
        else:
            # What a part may not overlap, moved so that it says where all of the group may not begin.
            spans = [
                (taken - high + size, end - low)
                for low, high, first, last in parts
                for taken, end in occupied.spans(first, last)
            ]
        work += len(spans)
        offset = offsets[k] = _best_gap(spans, size)
        for low, high, first, last in parts:
            occupied.add(first, last, offset + low, offset + high)
        total = max(total, offset + size)
    return tuple(offsets), total, work


def _best_gap(spans: list[tuple[int, int]], size: int) -> int:
    """Returns the start of the first smallest gap that holds `size` bytes, otherwise the end of all spans."""
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
    """The memory that is in use at each of `count` times.

    It is a segment tree (Bentley, 1977) whose nodes keep ranges of bytes. Buffers are packed, so that a node keeps few ranges however
    many buffers they hold, and adding a buffer and asking for an interval of time both take about the logarithm of `count`.
    """

    def __init__(self, count: int):
        self._leaves = 1 << max(0, count - 1).bit_length()
        self._throughout: defaultdict[int, _Spans] = defaultdict(_Spans)
        """By node: what is taken in all of its time, as far as that is not told by a node around it."""
        self._sometime: defaultdict[int, _Spans] = defaultdict(_Spans)
        """By node: ranges in use at any of its times, except those that nodes around it hold."""

    def add(self, first: int, last: int, low: int, high: int) -> None:
        """Takes bytes `low` up to `high` from time `first` to time `last`, both inclusive."""
        parts = self._parts(first, last)
        for node in parts:
            self._throughout[node].add(low, high)
        for node in {*parts, *self._around(first), *self._around(last)}:
            self._sometime[node].add(low, high)

    def spans(self, first: int, last: int) -> list[tuple[int, int]]:
        """Returns the ranges in use at any time from `first` to `last`, both inclusive; they may overlap."""
        found = [self._throughout.get(node) for node in {*self._around(first), *self._around(last)}]
        found += [self._sometime.get(node) for node in self._parts(first, last)]
        return [span for spans in found if spans is not None for span in zip(spans.lows, spans.highs, strict=True)]

    def _parts(self, first: int, last: int) -> list[int]:
        """Returns the largest nodes that together are an interval of time."""
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
        """Yields the nodes that a time is in."""
        node = time + self._leaves
        while node:
            yield node
            node >>= 1


def _peak(buffers: Sequence[Lifetime | Group]) -> int:
    """Returns the most bytes that live at one time."""
    changes: dict[int, int] = {}
    for buffer in buffers:
        for offset, part in _parts(buffer):
            if not part.size:
                continue
            # The last part of a group takes what aligns the whole.
            size = align(buffer.size) - offset if offset + part.size == buffer.size else part.size
            changes[part.start] = changes.get(part.start, 0) + size
            changes[part.end + 1] = changes.get(part.end + 1, 0) - size
    peak = alive = 0
    for time in sorted(changes):
        alive += changes[time]
        peak = max(peak, alive)
    return peak
