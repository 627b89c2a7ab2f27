"""Sets how the C library keeps the memory that kernels free."""

from __future__ import annotations

import ctypes
import os
from functools import cache

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
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_TRIM_THRESHOLD, KEPT)
        mallopt(M_MMAP_THRESHOLD, FROM_HEAP)
