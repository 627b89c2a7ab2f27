"""Writes the trace of a command's stages that `--timing-out` asks for."""

from __future__ import annotations

import argparse
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from ..support.stopwatch import Interval, Span, timing
from .errors import UsageError


def add_timing_out(parser: argparse.ArgumentParser) -> None:
    """Declares `--timing-out`."""
    parser.add_argument(
        "--timing-out",
        metavar="FILE.json",
        help="write when each stage and pass ran, in Chrome's format of traces: Perfetto shows it",
    )


def check_writable(path: Path) -> None:
    """Raises UsageError where a file cannot be made, before there are results to lose."""
    if path.is_dir():
        raise UsageError(f"{path}: cannot be written: Is a directory")
    if not path.parent.is_dir():
        raise UsageError(f"{path}: cannot be written: No such file or directory")


@contextmanager
def timing_out(path: str | None, command: str) -> Generator[Span]:
    """While inside, measures spans; then writes them to a file, if one is named, also after an error.

    Raises UsageError where it cannot be written.
    """
    if path is not None:
        check_writable(Path(path))
    with timing(log=path is not None) as times:
        try:
            yield times
        finally:
            if path is not None and times.log is not None:
                _write(Path(path), command, times.log)


def _write(path: Path, command: str, log: list[Interval]) -> None:
    from ..lowering.driver.loading.trace_events import TraceEvent, write_trace

    # Outer spans end after those inside, and begin before.
    log = sorted(log, key=lambda each: (each.start, -each.seconds))
    tracks = {thread: number for number, thread in enumerate(dict.fromkeys(each.thread for each in log))}
    begin = log[0].start if log else 0.0
    events = [
        TraceEvent(each.name, tracks[each.thread], round((each.start - begin) * 1e9), round(each.seconds * 1e9))
        for each in log
    ]
    names = {number: f"thread {number}" if number else "main thread" for number in tracks.values()}
    try:
        write_trace(path, command, events, names)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from None
