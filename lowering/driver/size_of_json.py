"""Reads sizes, which are plain data: an extent, a parameter's name, or an operation on two sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..tir.signature import Size


def size_of_json(data: Any) -> Size:
    """Reads a size, which `json` writes as it is. Raises TypeError or ValueError for other data."""
    if isinstance(data, int | str):
        return data
    operator, left, right = data
    return str(operator), size_of_json(left), size_of_json(right)
