"""Room for deep programs: run a function where nesting thousands of regions deep does not overflow the stack."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import TypeVar

T = TypeVar("T")

# xDSL recurses over regions in print, clone and verify, some ten frames a level; virtual memory is only touched when used.
STACK_BYTES = 1 << 30
RECURSION_LIMIT = 1_000_000


def in_deep_stack(function: Callable[[], T]) -> T:
    """The result of `function()`, run in a thread with a large stack and the context variables of this one.

    Its exceptions are raised here.
    """
    if getattr(_STATE, "deep", False):
        return function()
    outcome: list[T] = []
    failure: list[BaseException] = []

    def body() -> None:
        _STATE.deep = True
        try:
            outcome.append(function())
        except BaseException as exception:
            failure.append(exception)

    limit, size = sys.getrecursionlimit(), threading.stack_size(STACK_BYTES)
    sys.setrecursionlimit(max(limit, RECURSION_LIMIT))
    try:
        thread = threading.Thread(target=copy_context().run, args=(body,))
        thread.start()
    finally:
        threading.stack_size(size)
    thread.join()
    sys.setrecursionlimit(limit)
    if failure:
        raise failure[0]
    return outcome[0]


_STATE = threading.local()
