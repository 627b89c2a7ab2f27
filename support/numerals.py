"""Numbers written in decimal digits, of a bounded length: Python raises ValueError for digits beyond 4300, and for `²`."""

from __future__ import annotations


def natural(text: str, digits: int = 18) -> int | None:
    """Returns the number that decimal digits write; None for any other text and for more than `digits` digits.

    "037" → 37, "" and "-1" and "²" → None
    """
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= digits else None
