"""Checks arguments from Python code: errors name the argument, its requirement and its value.

names = items(names, "disabled_pass", "names of passes", str)
TypeError: disabled_pass takes a list of names of passes, not 3
TypeError: disabled_pass holds names of passes, not 3
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from os import PathLike
from typing import TypeAlias, TypeVar, cast

_T = TypeVar("_T")

Files: TypeAlias = "str | PathLike[str] | Sequence[str | PathLike[str]]"
"""The path of a file, or of several."""
_SHOWN = 60


def shown(value: object) -> str:
    """Returns a value as messages show it: numbers, texts and small tuples by repr, others by class."""
    if value is None or isinstance(value, str | bytes | float | bool | tuple | list | dict | set):
        return text if len(text := repr(cast("object", value))) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
    if isinstance(value, int):
        return repr(value) if value.bit_length() < 4 * _SHOWN else f"an integer of {value.bit_length()} bits"
    return value.__name__ if isinstance(value, type) else type(value).__name__


def check(value: object, name: str, what: str, *kinds: type) -> None:
    """Raises TypeError unless `value` is of one of `kinds`: "entry is the name of a function, not 3"."""
    if not isinstance(value, kinds):
        raise TypeError(f"{name} is {what}, not {shown(value)}")


def check_text(value: object, name: str, what: str) -> None:
    """Raises TypeError unless `value` is a str: "caches is a text such as '32K,1M', not 32"."""
    check(value, name, what, str)


def files_of(files: Files) -> list[str | PathLike[str]]:
    """Returns the paths of files, which may be one path."""
    return [files] if isinstance(files, str | PathLike) else list(files)


def integer(value: object, name: str, least: int, most: int | None = None) -> int:
    """Returns `value` as an int. Raises TypeError for others (also a bool), ValueError out of limits."""
    what = f"an integer from {least} on" if most is None else f"an integer from {least} to {most}"
    try:
        found = None if isinstance(value, bool) else operator.index(cast("int", value))
    except TypeError:
        found = None
    if found is None:
        raise TypeError(f"{name} is {what}, not {shown(value)}")
    if found < least or (most is not None and found > most):
        raise ValueError(f"{name} is {what}, not {shown(found)}")
    return found


def items(value: Iterable[_T] | None, name: str, what: str, *kinds: type) -> list[_T]:
    """Returns the items of `value`. Raises TypeError unless it is None or an iterable of `kinds`, no text."""
    if value is None:
        return []
    if isinstance(value, str | bytes) or not isinstance(cast("object", value), Iterable):
        raise TypeError(f"{name} takes a list of {what}, not {shown(value)}")
    found = list(value)
    for item in found:
        if kinds and not isinstance(item, kinds):
            raise TypeError(f"{name} holds {what}, not {shown(item)}")
    return found
