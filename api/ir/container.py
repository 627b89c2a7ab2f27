"""Lists and mappings, by the names of `tvm.ir.container`."""

from __future__ import annotations

from typing import TypeVar

from ...support.public_names import public_names

K = TypeVar("K")
V = TypeVar("V")


class Array(list[V]):
    """A list of nodes."""

    __slots__ = ()


class Map(dict[K, V]):
    """A mapping of nodes or texts."""

    __slots__ = ()


__all__ = ["Array", "Map"]


__dir__ = public_names(__name__)
