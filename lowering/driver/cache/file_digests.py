"""Digests of files and of the arrays in them, kept for files that have not changed since.

A file is known by its identity (`support/file_identity.py`). Digests are kept only of a file whose times are older than `SETTLED`
seconds: one that is changed twice within a tick of the file system's clock has the same times after both.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ....support.file_identity import Identity, identity
from .keys import digest

if TYPE_CHECKING:
    from ....dialects.array_box import ArrayBox
    from ....dialects.side_file import SideFile
    from .store import Store

KIND = "digests"

SETTLED = 2
"""Seconds: the coarsest clock of a file system, FAT's."""

_DIGEST = 16
"""Bytes of an array's digest."""


class NamedArray:
    """An array that a source has: its digest, and its box, read from its file when asked for."""

    def __init__(self, digest: bytes, read: Callable[[], ArrayBox]):
        self.digest = digest
        self._read = read
        self._box: ArrayBox | None = None

    @staticmethod
    def of(box: ArrayBox) -> NamedArray:
        """Returns an array that is in memory."""
        found = NamedArray(box.digest, lambda: box)
        found._box = box
        return found

    @property
    def box(self) -> ArrayBox:
        """Returns the array itself. Raises OSError and ValueError where its file cannot be read."""
        if self._box is None:
            self._box = self._read()
        return self._box


class FileDigests:
    """Digests of files, read from a store for those that have not changed since they were computed."""

    def __init__(self, store: Store | None):
        self._store = store

    def of_file(self, purpose: str, path: str | os.PathLike[str], compute: Callable[[], bytes]) -> bytes:
        """Returns the digest that `compute` returns for a purpose: kept, where the file has not changed.

        Raises OSError where the file cannot be read.
        """
        return self._kept(purpose, lambda: [identity(os.stat(path))], compute)

    def of_arrays(self, file: SideFile) -> list[NamedArray]:
        """Returns the arrays of a file. Raises OSError and ValueError where they cannot be read."""
        from ....dialects.array_box import ArrayBox, hashed

        names = list(file.names())
        read: list[ArrayBox] = []

        def compute() -> bytes:
            read.extend(hashed(file.array(name)) for name in names)
            return b"".join(box.digest for box in read)

        digests = self._kept("arrays", lambda: list(map(identity, file.abouts())), compute)
        if read:
            return list(map(NamedArray.of, read))

        def reader(name: str) -> Callable[[], ArrayBox]:
            return lambda: ArrayBox(file.array(name))

        pieces = [digests[at : at + _DIGEST] for at in range(0, len(digests), _DIGEST)]
        return [NamedArray(piece, reader(name)) for piece, name in zip(pieces, names, strict=True)]

    def _kept(self, purpose: str, about: Callable[[], Sequence[Identity]], compute: Callable[[], bytes]) -> bytes:
        if self._store is None:
            return compute()
        before, now = about(), time.time_ns()
        key = digest(purpose, json.dumps(before))
        kept = self._store.read(KIND, key)
        if kept is not None:
            return bytes(kept)
        found = compute()
        newest = max((max(each[3:]) for each in before), default=0)
        if newest + SETTLED * 10**9 < now and about() == before:
            self._store.write(KIND, key, [found])
        return found
