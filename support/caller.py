"""The line of the Python program that called into mirstack."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

_ROOT = Path(__file__).parents[1]  # As code objects have it: not what a link points to.
_OURS = (
    *(f"{_ROOT / part}/" for part in ("api", "dialects", "driver", "lowering", "parser", "passes", "support")),
    contextlib.__file__,
)


def caller_place() -> tuple[str, int] | None:
    """Returns file and line of the innermost call from outside; tests, examples and fuzzers are outside."""
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith(_OURS):
            return name, frame.f_lineno
        frame = frame.f_back
    return None
