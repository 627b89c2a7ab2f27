"""Measures a compilation as a tree of named spans of time, while somebody listens.

    with timing() as times:
        mirstack.compile("model.mir")
    print(times.report())

`timed` marks a span, and costs next to nothing when nobody listens. Spans of one name inside of another are one line: passes run
once for each kernel, and the line shows their number.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import get_ident
from typing import Any

from .stages import is_heard, stage


@dataclass(frozen=True)
class Interval:
    """A run of a span: when it began, by `time.perf_counter`, how long it took, and on which thread."""

    name: str
    start: float
    seconds: float
    thread: int


@dataclass
class Span:
    """The work under one name: `seconds` of wall-clock time, how often, and the spans inside of it.

    A span in the `background` runs beside those around it, in a thread of its own.
    """

    name: str
    seconds: float = 0.0
    count: int = 0
    children: dict[str, Span] = field(default_factory=dict[str, "Span"])
    background: bool = False
    log: list[Interval] | None = field(default=None, repr=False, compare=False)
    """The runs of this span and of all others under the same `timing`, if they are kept."""

    def child(self, name: str) -> Span:
        """Returns the span of this name inside."""
        return self.children.setdefault(name, Span(name, log=self.log))

    def find(self, *path: str) -> Span | None:
        """Returns the span inside under these names, outer ones first; None where there is none."""
        found: Span | None = self
        for name in path:
            found = None if found is None else found.children.get(name)
        return found

    def walk(self, depth: int = 0) -> Iterator[tuple[int, Span]]:
        """This span and all those inside, in the order in which they began, with how deep they are inside."""
        yield depth, self
        for span in self.children.values():
            yield from span.walk(depth + 1)

    def to_json(self) -> list[Any]:
        """Returns the span as plain data: seconds, how often, the spans inside by name."""
        return [self.seconds, self.count, {name: span.to_json() for name, span in self.children.items()}]

    def add(self, data: Sequence[Any]) -> None:
        """Adds a span from `to_json`, with all inside."""
        seconds, count, children = data
        self.seconds += seconds
        self.count += count
        for name, child in children.items():
            self.child(name).add(child)

    def add_beside(self, data: Sequence[Any]) -> None:
        """Adds the spans inside of a span from another process's `to_json`; they run beside those around it."""
        self.background = True
        self.add([sum(child[0] for child in data[2].values()), 1, data[2]])

    def report(self) -> str:
        """Returns the spans inside as a table of milliseconds, of how often, and of the share of all."""
        rows = [(depth - 1, span) for depth, span in self.walk() if depth]
        width = max((2 * depth + len(span.name) for depth, span in rows), default=0)
        total = sum(span.seconds for span in self.children.values() if not span.background)
        lines = [f"{'':<{width}}  {'ms':>9}  {'times':>6}  {'share':>6}"]
        for depth, span in rows:
            name = "  " * depth + span.name
            share = f"{span.seconds / total:6.1%}" if total else ""
            lines.append(f"{name:<{width}}  {span.seconds * 1e3:>9.1f}  {span.count:>6}  {share:>6}")
        return "\n".join([*lines, f"{'total':<{width}}  {total * 1e3:>9.1f}"])


_CURRENT: ContextVar[Span | None] = ContextVar("span", default=None)


@contextmanager
def timing(log: bool = False) -> Generator[Span]:
    """While inside, measures the spans that `timed` marks, also in threads started with this context.

    With `log` each run of a span is kept.
    """
    span = Span("", log=[] if log else None)
    token = _CURRENT.set(span)
    try:
        yield span
    finally:
        _CURRENT.reset(token)


@contextmanager
def timed(name: str, *, fine: bool = False) -> Generator[None]:
    """Counts the block, and the time that it takes, under this name.

    Loggers and displays hear of it; a `fine` one is a pass, or work on one kernel of many.
    """
    if is_heard():
        with stage(name, fine), _timed(name):
            yield
    else:
        with _timed(name):
            yield


@contextmanager
def _timed(name: str) -> Generator[None]:
    parent = _CURRENT.get()
    if parent is None:
        yield
        return
    span = parent.child(name)
    token = _CURRENT.set(span)
    start = time.perf_counter()
    try:
        yield
    finally:
        seconds = time.perf_counter() - start
        span.seconds += seconds
        span.count += 1
        if span.log is not None:
            span.log.append(Interval(name, start, seconds, get_ident()))
        _CURRENT.reset(token)


def current_span() -> Span | None:
    """Returns the span that this thread is in; None when nobody listens."""
    return _CURRENT.get()


@contextmanager
def in_background(parent: Span | None, name: str) -> Generator[None]:
    """While inside, measures this thread's work as a background span of another thread's `parent`."""
    if parent is None:
        yield
        return
    span = parent.child(name)
    span.background = True
    token = _CURRENT.set(span)
    try:
        yield
    finally:
        _CURRENT.reset(token)
        span.seconds = sum(inner.seconds for inner in span.children.values())
        span.count = max((inner.count for inner in span.children.values()), default=0)


def process_start() -> float:
    """Returns when this process began, in seconds since 1970; now where the system does not say."""
    try:
        with open("/proc/self/stat", encoding="ascii") as file:
            ticks = int(file.read().rpartition(")")[2].split()[19])
        with open("/proc/uptime", encoding="ascii") as file:
            up = float(file.read().split()[0])
        return time.time() - up + ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return time.time()
