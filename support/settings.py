"""Reads settings of the environment, `MIRSTACK_…`, when they are needed, and prints warnings.

A setting without meaning is reported once on standard error, `mirstack: warning: …`, and counts as absent.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress

from .text import natural

_SAID: set[str] = set()


def say(text: str) -> None:
    """Writes a warning to standard error, where there is one."""
    with suppress(OSError, ValueError, AttributeError):
        print(f"mirstack: warning: {text}", file=sys.stderr, flush=True)


def say_once(text: str) -> None:
    """As `say`, once in the life of the process."""
    if text not in _SAID:
        _SAID.add(text)
        say(text)


def setting(name: str) -> str | None:
    """Returns the text of a variable; None where it is absent or empty."""
    return os.environ.get(name, "").strip() or None


def whole_number(name: str, default: int, *, least: int = 0, most: int | None = None) -> int:
    """Returns a variable's number; the default where it is absent or holds none that is allowed."""
    text = setting(name)
    if text is None:
        return default
    number = natural(text)
    if number is None or number < least or (most is not None and number > most):
        limits = f"from {least} on" if most is None else f"from {least} to {most}"
        meaningless(name, text, f"a whole number {limits}")
        return default
    return number


def choice(name: str, *choices: str) -> str | None:
    """Returns a variable's word, one of `choices` in any capitals; None where it is absent or another."""
    text = setting(name)
    if text is None or text.lower() in choices:
        return None if text is None else text.lower()
    meaningless(name, text, " or ".join(choices))
    return None


def meaningless(name: str, text: str, wanted: str) -> None:
    """Tells of a setting that counts as absent, and of what it could be."""
    say_once(f"{name} is {text!r}, which counts as absent: it takes {wanted}")
