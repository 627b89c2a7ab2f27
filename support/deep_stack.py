"""Runs functions on deep programs: nesting of thousands of regions does not overflow the stack."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import copy_context
from typing import TypeVar

T = TypeVar("T")

# xDSL recurses over regions in print, clone and verify, some ten frames a level; virtual memory is only touched when used.
STACK_BYTES = 1 << 30
RECURSION_LIMIT = 1_000_000


def in_deep_stack(function: Callable[[], T]) -> T:
    """Returns `function()`, run in a thread with a large stack and this thread's context variables.

    Its exceptions are raised here. Python's limit of recursion, which holds for all threads, is as before when the last of these threads
    has ended: an interrupt ends the wait for one, and not the thread.
    """
    if getattr(_STATE, "deep", False):
        return function()
    outcome: list[T] = []
    failure: list[BaseException] = []

    def body() -> None:
        _STATE.deep = True
        with _deep_recursion():
            try:
                outcome.append(function())
            except BaseException as exception:
                failure.append(exception)

    thread = threading.Thread(target=copy_context().run, args=(body,))
    start_with_stack(thread, STACK_BYTES)
    thread.join()
    if failure:
        try:
            raise failure[0]
        finally:
            # The exception holds this frame, and the frame would hold the exception.
            failure.clear()
    return outcome[0]


_STATE = threading.local()
_LOCK = threading.Lock()
_STACK_LOCK = threading.Lock()
_inside = 0
"""Threads at work with Python's limit of recursion raised."""
_before = 0
"""The limit before the first of them."""


@contextmanager
def _deep_recursion() -> Generator[None]:
    global _inside, _before
    with _LOCK:
        if _inside == 0:
            _before = sys.getrecursionlimit()
            sys.setrecursionlimit(max(_before, RECURSION_LIMIT))
        _inside += 1
    try:
        yield
    finally:
        with _LOCK:
            _inside -= 1
            # Who changed it in the meantime meant it.
            if _inside == 0 and sys.getrecursionlimit() == max(_before, RECURSION_LIMIT):
                sys.setrecursionlimit(_before)


def start_with_stack(thread: threading.Thread, size: int) -> None:
    """Starts a thread with a stack of `size` bytes. Raises MemoryError where that does not fit."""
    # Python has one size for all threads that are started: two that change it at a time would leave it changed.
    with _STACK_LOCK:
        before = threading.stack_size(size)
        try:
            thread.start()
        except RuntimeError as error:
            raise MemoryError(f"no thread with a stack of {size >> 20} MiB can be started: {error}") from None
        finally:
            threading.stack_size(before)
