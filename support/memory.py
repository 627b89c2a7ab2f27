"""Reads the available memory, so that a program too large for the machine is refused, not killed."""

from __future__ import annotations

import os
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
    """Returns why `size` bytes cannot be taken, None where they can: "takes 640 bytes, and 320 are free"."""
    if size < WORTH_ASKING or size <= (free := available_memory()):
        return None
    return f"takes {size} bytes, and {free} are free"
