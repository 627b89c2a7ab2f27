"""Locates tensors and refusals at the line of the Python program that called into mirstack."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar

from xdsl.dialects.builtin import UNKNOWN_LOC, LocationAttr

from ...support.caller import caller_place
from ...support.diagnostics import file_loc
from ..tir.node import current_location, location_scope

T = TypeVar("T")


def caller() -> LocationAttr:
    """Returns the current location, otherwise the line of the Python file that called into mirstack.

    A location is set while a text is parsed.
    """
    if current_location() != UNKNOWN_LOC:
        return current_location()
    place = caller_place()
    return UNKNOWN_LOC if place is None else file_loc(*place, 1)


@contextmanager
def at_caller() -> Generator[None]:
    """Locates tensors and errors within the `with` at the line that called."""
    with location_scope(caller()):
        yield


def located(function: Callable[..., T]) -> Callable[..., T]:
    """Wraps a function to locate its tensors and expressions at the line that called it."""

    @wraps(function)
    def call(*args: Any, **keywords: Any) -> T:
        with location_scope(caller()):
            return function(*args, **keywords)

    return call
