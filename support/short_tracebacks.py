"""Shortens the tracebacks of diagnostics that leave a public function by the frames inside of it."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from .diagnostics import MirError

P = ParamSpec("P")
T = TypeVar("T")


def short_traceback(function: Callable[P, T]) -> Callable[P, T]:
    """Decorates a public function: a MirError shows its caller, and not the frames inside.

    With the environment variable MIRSTACK_TRACEBACK=full it shows all.
    """

    @wraps(function)
    def public(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except MirError as error:
            if os.environ.get("MIRSTACK_TRACEBACK") == "full":
                raise
            raise error.with_traceback(None) from error.__cause__

    return public
