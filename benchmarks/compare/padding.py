"""Relay's `padding` of one, two or four numbers, spelled out."""

from __future__ import annotations

from collections.abc import Sequence


def pairs(padding: int | Sequence[int]) -> tuple[tuple[int, int], tuple[int, int]]:
    """(top, bottom), (left, right) of a padding p, (vertical, horizontal) or (top, left, bottom, right)."""
    given = (padding,) if isinstance(padding, int) else tuple(padding)
    if len(given) == 1:
        given = given * 4
    elif len(given) == 2:
        given = given * 2
    top, left, bottom, right = given
    return (top, bottom), (left, right)
