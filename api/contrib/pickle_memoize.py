"""`contrib.pickle_memoize`: results of functions, kept while the program runs, not on disk."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TypeVar

from ...support.public_names import public_names

T = TypeVar("T")


def memoize(key: str, save_at_exit: bool = False) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Returns a decorator that calls a function once for the same arguments.

    `key` names the file of TVM's cache and is ignored here, as is `save_at_exit`.
    """

    def decorate(function: Callable[..., T]) -> Callable[..., T]:
        return cache(function)

    return decorate


__all__ = ["memoize"]

__dir__ = public_names(__name__)
