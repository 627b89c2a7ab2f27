"""Files mapped into memory to be read: each once, however often it is opened, and given back when it has been read."""

from __future__ import annotations

import mmap
import os
from typing import IO
from weakref import WeakValueDictionary

_MAPS: WeakValueDictionary[tuple[int, ...], mmap.mmap] = WeakValueDictionary()
"""What is mapped now, by which file it is and as of when."""


def map_file(file: IO[bytes]) -> mmap.mmap:
    """An opened file as read-only memory; the one map that there is of it, unless it was written to. Raises OSError, and ValueError
    for a file that is empty."""
    about = os.fstat(file.fileno())
    key = (about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns)
    found = _MAPS.get(key)
    if found is None:
        found = _MAPS[key] = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return found


def give_back_pages() -> None:
    """Gives the system back the memory that reading mapped files took: they were read from one end to the other, and little of them is
    wanted again. What is comes from the system's own cache of files, in a microsecond a page."""
    if hasattr(mmap, "MADV_DONTNEED"):
        for each in list(_MAPS.values()):
            each.madvise(mmap.MADV_DONTNEED)


__all__ = ["give_back_pages", "map_file"]
