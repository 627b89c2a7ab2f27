"""Defines the alignment of buffers in an arena."""

from __future__ import annotations

ALIGNMENT = 64
"""Bytes: a cache line, and the widest vector."""


def align(size: int) -> int:
    """Returns a size rounded up to the alignment of buffers."""
    return -(-size // ALIGNMENT) * ALIGNMENT
