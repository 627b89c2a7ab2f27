"""Computes the key of a program in files in a thread, while modules are imported."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .file_digests import FileDigests, NamedArray

if TYPE_CHECKING:
    from ..source import ProgramSource
    from .store import Store


class SourceKey:
    """The key of a program in files, and the arrays in them; reading begins at once, in a thread."""

    def __init__(self, source: ProgramSource, store: Store):
        self._source = source
        self._digests = FileDigests(store)
        self._found: tuple[str, Sequence[NamedArray]] | None = None
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._read, name="mirstack-weights", daemon=True)
        self._thread.start()

    def join(self) -> tuple[str, Sequence[NamedArray]] | None:
        """Returns the program's key and arrays; None where it is not to be cached."""
        self._thread.join()
        if self._failure is not None:
            raise self._failure
        return self._found

    def _read(self) -> None:
        try:
            self._found = self._source.key(self._digests)
        except BaseException as error:
            self._failure = error
