"""Reports stages of long work, and decisions, to Python's `logging` and to a display of progress.

Stages are what `stopwatch.timed` marks. Where its logger is on, each stage is reported when it has ended:

    logging.basicConfig(); logging.getLogger("mirstack").setLevel("INFO")      →      INFO:mirstack.stages:kernels: 61.2 ms

`inform` and `detail` report what is compiled, found in the cache, or compiled beside calls, to the logger `mirstack.compile`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol, TypeVar

T = TypeVar("T")

STAGES, PASSES = "mirstack.stages", "mirstack.passes"
"""The names of the loggers: of stages, at the level INFO, and of the passes and steps in them, at DEBUG."""
COMPILE = "mirstack.compile"
"""The logger of what is compiled and what is found in the cache, at INFO; of single kernels at DEBUG."""
_INFO, _DEBUG = 20, 10


class Display(Protocol):
    """Shows how far work is."""

    def stage(self, names: Sequence[str]) -> None:
        """Shows the stages that are under way, the outermost first."""
        ...

    def step(self, name: str, done: int, total: int) -> None:
        """Shows how many of the parts of a stage are done."""
        ...


_DISPLAY: ContextVar[Display | None] = ContextVar("display", default=None)
_STAGES: ContextVar[tuple[str, ...]] = ContextVar("stages", default=())
_FINE: ContextVar[bool] = ContextVar("fine", default=False)
_silent = False


def silence() -> None:
    """Tells nobody any more: in a process that works for another one."""
    global _silent
    _silent = True


@contextmanager
def displayed(display: Display) -> Generator[None]:
    """While inside, a display shows the stages of this context."""
    token = _DISPLAY.set(display)
    try:
        yield
    finally:
        _DISPLAY.reset(token)


@contextmanager
def stage(name: str, fine: bool) -> Generator[None]:
    """Tells of a stage, with the time that it took; of a `fine` one, and those inside, as of passes."""
    display, around = _DISPLAY.get(), _STAGES.get()
    is_fine = fine or _FINE.get()
    stages, fineness = _STAGES.set((*around, name)), _FINE.set(is_fine)
    if display is not None and not is_fine:
        display.stage(_STAGES.get())
    start = time.perf_counter()
    try:
        yield
    finally:
        seconds = time.perf_counter() - start
        logger, level = (PASSES, _DEBUG) if is_fine else (STAGES, _INFO)
        if _is_logged(logger, level):
            text = " > ".join(_STAGES.get())
            sys.modules["logging"].getLogger(logger).log(level, "%s: %.1f ms", text, seconds * 1e3)
        _STAGES.reset(stages)
        _FINE.reset(fineness)
        if display is not None and not is_fine:
            display.stage(around)


def inform(text: str, *parts: object) -> None:
    """Logs a decision of the compiler at INFO, `text % parts`."""
    _log(_INFO, text, parts)


def detail(text: str, *parts: object) -> None:
    """Logs a decision about a part of a program at DEBUG, `text % parts`."""
    _log(_DEBUG, text, parts)


def _log(level: int, text: str, parts: tuple[object, ...]) -> None:
    if not _silent and _is_logged(COMPILE, level):
        from .text import visible

        # The name of a file may hold bytes that are no text.
        shown = [visible(part) if isinstance(part, str) else part for part in parts]
        sys.modules["logging"].getLogger(COMPILE).log(level, text, *shown)


def is_heard() -> bool:
    """Returns whether a display or a logger hears of stages."""
    if _silent:
        return False
    return _DISPLAY.get() is not None or _is_logged(STAGES, _INFO) or _is_logged(PASSES, _DEBUG)


def steps(name: str, parts: Sequence[T]) -> Iterator[T]:
    """Yields the parts of a stage, and reports how many are done."""
    display = _DISPLAY.get()
    if display is None:
        yield from parts
        return
    for done, part in enumerate(parts):
        display.step(name, done, len(parts))
        yield part
    display.step(name, len(parts), len(parts))


def counted(name: str, parts: Iterable[T], done: int, total: int) -> Iterator[T]:
    """Yields parts, and reports each that is done; `done` of `total` were done before."""
    display = _DISPLAY.get()
    for number, part in enumerate(parts, done + 1):
        if display is not None:
            display.step(name, number, total)
        yield part


def _is_logged(name: str, level: int) -> bool:
    # What nobody imported nobody has turned on; to import it takes longer than a small program to compile.
    logging = sys.modules.get("logging")
    return logging is not None and logging.getLogger(name).isEnabledFor(level)
