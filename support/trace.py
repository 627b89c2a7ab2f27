"""Telling what a pass does, op by op, when somebody asks: `mir-opt --trace fold-constant`.

A pass calls `tracer("its-name")` once; it gets None unless the topic is listened to, so that tracing costs nothing when it is
off. What it tells are remarks: a place in the source, a sentence, notes with places of their own.
"""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Operation, SSAValue

from .diagnostics import Diagnostic, Sources, location_of, render, source_position

Sink = Callable[[Diagnostic], None]
"""What takes the remarks."""


@dataclass(frozen=True)
class Tracer:
    """Sends the remarks of one topic to whoever listens."""

    topic: str
    sinks: tuple[Sink, ...]

    def __call__(
        self,
        where: Operation | SSAValue | LocationAttr | None,
        message: str,
        *notes: tuple[str, Operation | SSAValue | LocationAttr | None],
    ) -> None:
        """Tells `message` about `where`, then the notes, each a message with its place."""
        remark = Diagnostic(f"{self.topic}: {message}", location_of(where), severity="remark")
        for text, place in notes:
            remark = remark.with_note(text, location_of(place))
        for sink in self.sinks:
            sink(remark)


def tracer(topic: str) -> Tracer | None:
    """Returns the function that takes remarks of `topic`, or None when nobody listens."""
    sinks = _LISTENERS.get().get(topic)
    return None if sinks is None else Tracer(topic, sinks)


def anyone_listens() -> bool:
    """Tells whether anybody listens to remarks of any topic."""
    return bool(_LISTENERS.get())


@contextmanager
def listening(topics: Iterable[str], sink: Sink) -> Generator[None]:
    """While inside, remarks of these topics go to `sink`, too."""
    listeners = dict(_LISTENERS.get())
    for topic in topics:
        listeners[topic] = (*listeners.get(topic, ()), sink)
    token = _LISTENERS.set(listeners)
    try:
        yield
    finally:
        _LISTENERS.reset(token)


def to_stderr(remark: Diagnostic) -> None:
    """Prints a remark with its source line to standard error; reads the file if nobody keeps its text."""
    sources = Sources(dict(Sources.current().texts))
    for diagnostic in (remark, *remark.notes):
        position = source_position(diagnostic.location)
        if position is not None and position[0] not in sources.texts:
            sources.add(position[0], "".join(linecache.getlines(position[0])))
    print(render(remark, sources), file=sys.stderr)


_NONE: dict[str, tuple[Sink, ...]] = {}
_LISTENERS: ContextVar[dict[str, tuple[Sink, ...]]] = ContextVar("listeners", default=_NONE)
