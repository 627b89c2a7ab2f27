"""Parts of a file, one after the other, each where arrays may begin."""

from __future__ import annotations

from collections.abc import Sequence

from .cache.store import Buffer

ALIGNMENT = 64
"""Bytes that the start of each part is a multiple of."""
PAGE = 4096
"""Bytes of a page of memory: what is mapped begins at one."""


class Segments:
    """Parts of a file that is written at once."""

    def __init__(self) -> None:
        self.parts: list[Buffer] = []
        self.end = 0

    def add(self, data: Buffer) -> tuple[int, int]:
        """Adds a part; returns its start and its length in the file."""
        start = self.end
        padding = -len(data) % ALIGNMENT
        self.parts += [data, b"\0" * padding]
        self.end += len(data) + padding
        return start, len(data)

    def fill(self, unit: int) -> None:
        """Makes the file's length a multiple of so many bytes."""
        self.parts.append(b"\0" * (-self.end % unit))
        self.end += -self.end % unit


def segment_of(body: memoryview, place: Sequence[int]) -> memoryview:
    """Returns the part at (start, length) of a file. Raises ValueError for one that is not inside of it."""
    start, length = place
    if not 0 <= start <= start + length <= len(body):
        raise ValueError("a part is outside of its file")
    return body[start : start + length]
