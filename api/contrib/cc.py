"""`contrib.cc`: object files linked to a shared library."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike, fspath
from pathlib import Path

from ...lowering.driver.artifacts.link import link_shared, linker
from ...support.public_names import public_names

__all__ = ["create_shared", "get_cc"]


def get_cc() -> str | None:
    """Returns the command that links, such as `cc`; None where this machine has none."""
    command = linker()
    return None if command is None else " ".join(command)


def create_shared(output: str | PathLike[str], objects: str | PathLike[str] | Sequence[str | PathLike[str]]) -> None:
    """Links object files to a shared library.

    Raises MirError where that fails, OSError for a file that cannot be read.
    """
    files = [objects] if isinstance(objects, str | PathLike) else objects
    path = Path(output)
    link_shared([Path(fspath(each)).read_bytes() for each in files], path, path.name)


__dir__ = public_names(__name__)
