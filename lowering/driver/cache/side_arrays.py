"""Reads and hashes a program's file and its side files in a thread, while modules are imported."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ....dialects.array_box import ArrayBox
    from ..source import ProgramSource


class SideArrays:
    """The key of a program in files, and the arrays in them; reading begins at once, in a thread."""

    def __init__(self, source: ProgramSource):
        self._source = source
        self._found: tuple[str, Sequence[ArrayBox]] | None = None
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._read, name="mirstack-weights", daemon=True)
        self._thread.start()

    def join(self) -> tuple[str, Sequence[ArrayBox]] | None:
        """Returns the program's key and arrays; None where it is not to be cached."""
        self._thread.join()
        if self._failure is not None:
            raise self._failure
        return self._found

    def _read(self) -> None:
        try:
            self._found = self._source.key()
        except BaseException as error:
            self._failure = error
