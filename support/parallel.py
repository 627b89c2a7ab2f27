"""Calls a function on items in threads, where it releases the interpreter's lock: reading, hashing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

from .target import processors

T = TypeVar("T")
R = TypeVar("R")

MOST = 4
"""Threads at most: memory limits what they do."""


def in_threads(function: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """Returns `[function(item) for item in items]`, computed in a few threads, this one among them.

    What the function raises is raised here, the first exception of several.
    """
    results: dict[int, R] = {}
    failures: list[BaseException] = []
    # Each number is taken by one thread: the interpreter's lock is held while an iterator advances.
    numbers = iter(range(len(items)))

    def work() -> None:
        try:
            for number in numbers:
                if failures:
                    return
                results[number] = function(items[number])
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(min(processors(), MOST, len(items)) - 1)]
    for thread in threads:
        thread.start()
    work()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return [results[number] for number in range(len(items))]
