"""Shows how far a command is: a line on a terminal, and with `-v` its stages in lines of a log.

    ⠋ mir-run net.mir: kernels ━━━━━━━━━━━━━╸━━━━━━━━━━━━ 31/53 0:00:04

The line is shown of work that takes a while, on a terminal, and where the package rich is installed; it goes when the work is done. No thread
draws it: a process with threads lowers kernels alone.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from ..support.stages import displayed

PATIENCE = 0.5
"""The seconds that work takes without a line."""
_LOGGED: ContextVar[bool] = ContextVar("logged", default=False)
"""Whether stages are logged to the terminal, where a line would get between."""
PAUSE = 0.1
"""The seconds between two drawings, at least."""


class Line:
    """The line on a terminal, which is drawn when something happens."""

    def __init__(self, title: str):
        self.title = title
        self.start = self.drawn = time.monotonic()
        self.progress: Any = None
        self.names: tuple[str, ...] = ()
        self.parts: tuple[str, int, int] | None = None

    def stage(self, names: Sequence[str]) -> None:
        """Shows the stages that are under way."""
        self.names, self.parts = tuple(names), None
        self._draw()

    def step(self, name: str, done: int, total: int) -> None:
        """Shows how many parts of a stage are done."""
        self.parts = name, done, total
        self._draw()

    def _draw(self) -> None:
        now = time.monotonic()
        if now - self.start < PATIENCE or now - self.drawn < PAUSE:
            return
        self.drawn = now
        if self.progress is None:
            self.progress = _started(self.title, now - self.start)
        name, done, total = self.parts or ((self.names or ("",))[-1], 0, 0)
        task = self.progress.tasks[0]
        # `update` would take None for "as it was".
        task.total = total or None
        description = f"{self.title}: {name}" if name else self.title
        self.progress.update(task.id, description=description, completed=done, refresh=True)

    def close(self) -> None:
        """Takes the line away."""
        if self.progress is not None:
            self.progress.stop()


def _started(title: str, seconds: float) -> Any:
    """Returns the display of a package that need not be installed."""
    rich = import_module("rich.progress")
    columns = (
        rich.SpinnerColumn(),
        rich.TextColumn("{task.description}", markup=False),
        rich.BarColumn(),
        rich.MofNCompleteColumn(),
        rich.TimeElapsedColumn(),
    )
    progress: Any = rich.Progress(
        *columns,
        console=import_module("rich.console").Console(stderr=True),
        auto_refresh=False,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    progress.start()
    task = progress.add_task(title, total=None)
    began = progress.tasks[0].start_time
    progress.tasks[0].start_time = None if began is None else began - seconds
    progress.update(task)
    return progress


@contextmanager
def shown(title: str) -> Generator[None]:
    """While inside, shows the stages of this command on the terminal, unless a log does."""
    if _LOGGED.get() or not _is_terminal() or find_spec("rich") is None:
        yield
        return
    line = Line(title)
    try:
        with displayed(line):
            yield
    finally:
        line.close()


def _is_terminal() -> bool:
    try:
        return sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    except (AttributeError, ValueError):
        # Standard error is closed, or none.
        return False


def add_verbose(parser: argparse.ArgumentParser) -> None:
    """Declares `-v`."""
    parser.add_argument(
        "-v",
        "--verbose",
        action="count",
        default=0,
        help="log the stages with their times to standard error; -vv also each pass",
    )


@contextmanager
def logged(verbosity: int) -> Generator[None]:
    """While inside, logs stages to standard error: none, those of the command, or each pass, too."""
    if not verbosity:
        yield
        return
    import logging

    logger = logging.getLogger("mirstack")
    level, propagates = logger.level, logger.propagate
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG if verbosity > 1 else logging.INFO)
    logger.propagate = False
    token = _LOGGED.set(True)
    try:
        yield
    finally:
        _LOGGED.reset(token)
        logger.removeHandler(handler)
        logger.setLevel(level)
        logger.propagate = propagates
