"""Where a Python program called into mirstack: the location of what it makes, and of what it is refused."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

from xdsl.dialects.builtin import UNKNOWN_LOC, LocationAttr

from ...support.diagnostics import file_loc
from .expr import current_location, location_scope

T = TypeVar("T")

_ROOT = Path(__file__).parents[2]  # As code objects have it: not what a link points to.
_PACKAGES = (
    *(f"{_ROOT / part}/" for part in ("api", "dialects", "lowering", "parser", "passes", "support")),
    contextlib.__file__,
)


def caller() -> LocationAttr:
    """The line of the Python file that called into mirstack; where one is set already (a text is read), that one."""
    if current_location() != UNKNOWN_LOC:
        return current_location()
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame.f_code.co_filename.startswith(_PACKAGES):
        if frame.f_back is None:
            return UNKNOWN_LOC
        frame = frame.f_back
    return file_loc(frame.f_code.co_filename, frame.f_lineno, 1)


@contextmanager
def at_caller() -> Generator[None]:
    """What is made, or refused, inside stands at the line that called."""
    with location_scope(caller()):
        yield


def located(function: Callable[..., T]) -> Callable[..., T]:
    """The function, with what it makes at the line that called it."""

    @wraps(function)
    def call(*args: Any, **keywords: Any) -> T:
        with location_scope(caller()):
            return function(*args, **keywords)

    return call
