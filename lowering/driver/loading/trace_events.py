"""Writes traces in the format of Chrome's trace viewer, which Perfetto reads.

Source: Google, "Trace Event Format".
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class TraceEvent:
    """Work on a track, which is a thread; times are nanoseconds, from the trace's begin on."""

    name: str
    track: int
    start: int
    length: int
    about: Mapping[str, Any] = field(default_factory=dict[str, Any])


def trace_json(process: str, events: Sequence[TraceEvent], tracks: Mapping[int, str]) -> dict[str, Any]:
    """Returns a trace as plain data; `tracks` are names."""
    names: list[dict[str, Any]] = [_meta("process_name", 0, process)]
    names += [_meta("thread_name", track, name) for track, name in tracks.items()]
    return {
        "displayTimeUnit": "ns",
        "traceEvents": [
            *names,
            *(
                {
                    "name": event.name,
                    "ph": "X",
                    "pid": 1,
                    "tid": event.track,
                    "ts": event.start / 1e3,
                    "dur": event.length / 1e3,
                    **({"args": dict(event.about)} if event.about else {}),
                }
                for event in events
            ),
        ],
    }


def _meta(what: str, track: int, name: str) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": 1, "tid": track, "args": {"name": name}}


def write_trace(
    path: Path, process: str, events: Sequence[TraceEvent], tracks: Mapping[int, str] | None = None
) -> None:
    """Writes a trace; without names of `tracks` they are threads of a program.

    Raises OSError where the file cannot be written.
    """
    used = sorted({event.track for event in events})
    named = {track: f"thread {track}" if track else "calling thread" for track in used} if tracks is None else tracks
    path.write_text(json.dumps(trace_json(process, events, named)), encoding="utf-8")
