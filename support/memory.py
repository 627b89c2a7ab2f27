"""Reads the available memory, and makes the C library keep the memory that kernels free."""

from __future__ import annotations

import mmap
import os
from contextlib import suppress
from functools import cache
from pathlib import Path

WORTH_ASKING = 1 << 28
"""Requests for fewer bytes than this are made without asking: reading what is free takes longer than they do."""

_MEMINFO = Path("/proc/meminfo")


def available_memory() -> int:
    """Returns the bytes of memory available now: Linux's MemAvailable, elsewhere the machine's memory."""
    try:
        lines = _MEMINFO.read_text().splitlines()
    except OSError:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    fields = dict(line.split(":", 1) for line in lines if ":" in line)
    return int(fields["MemAvailable"].split()[0]) << 10


def why_no_memory(size: int) -> str | None:
    """Returns why `size` bytes cannot be taken, None where they can: "takes 640 bytes, and 320 are free".

    Programs too large for the machine are refused by it, not killed.
    """
    if size < WORTH_ASKING or size <= (free := available_memory()):
        return None
    return f"takes {size} bytes, and {free} are free"


LARGE_PAGE = 2 << 20
"""Bytes of a large page, on x86-64 and usually on Arm."""


def pages(size: int) -> mmap.mmap:
    """Returns so many bytes of new memory, aligned to pages, that will be filled at once.

    The system provides it in large pages or in one go, and not page by page when each is first written to: a file of 17 MB is then read
    in 0.3 of the time.
    """
    if not hasattr(mmap, "MAP_POPULATE"):
        return mmap.mmap(-1, size)
    large = size >= 2 * LARGE_PAGE
    found = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | (0 if large else mmap.MAP_POPULATE))
    if large:
        with suppress(OSError):  # Not every system has them.
            found.madvise(mmap.MADV_HUGEPAGE)
    return found


M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Parameters of glibc's `mallopt`."""
KEPT = 64 << 20
"""Bytes of free memory at the end of the heap that stay with the process."""
FROM_HEAP = 32 << 20
"""Smaller blocks come from the heap: the most that glibc takes for this."""


@cache
def keep_freed_memory() -> None:
    """Makes the C library keep freed memory for the next call of a kernel, once in a process.

    Otherwise it returns the temporary buffers of a kernel to the system after each call, depending on the memory after them, and
    the next call waits for every page of them again: often longer than it computes. Values that the user set by the environment
    (`MALLOC_…_`) stay. Other C libraries than glibc have no such parameters.
    """
    if any(name in os.environ for name in ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES")):
        return
    import ctypes

    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_TRIM_THRESHOLD, KEPT)
        mallopt(M_MMAP_THRESHOLD, FROM_HEAP)
