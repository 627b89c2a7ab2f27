"""Prints notices on standard error while the work goes on: `mirstack: warning: …`."""

from __future__ import annotations

import sys
from contextlib import suppress

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
