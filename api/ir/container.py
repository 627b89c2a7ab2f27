"""Lists and mappings, by the names of `tvm.ir.container`."""

from __future__ import annotations

from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Array(list[V]):
    """A list of nodes."""

    __slots__ = ()


class Map(dict[K, V]):
    """A mapping of nodes or texts."""

    __slots__ = ()


__all__ = ["Array", "Map"]
