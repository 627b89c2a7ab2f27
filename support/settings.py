"""Reads settings of the environment, `MIRSTACK_…`, when they are needed.

A setting without meaning is reported once, and counts as absent.
"""

from __future__ import annotations

import os

from .notices import say_once


def setting(name: str) -> str | None:
    """The text of a variable; None where it is absent or empty."""
    return os.environ.get(name, "").strip() or None


def whole_number(name: str, default: int, *, least: int = 0, most: int | None = None) -> int:
    """The number that a variable holds, the default where it is absent or holds none that is allowed."""
    text = setting(name)
    if text is None:
        return default
    number = int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else -1
    if number < least or (most is not None and number > most):
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
