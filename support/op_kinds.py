"""Tests whether an op's class is one of several, cached.

xDSL's classes are abstract base classes, for which `isinstance` is slow.
"""

from __future__ import annotations

from xdsl.ir import Operation


class Kinds(dict[type[Operation], bool]):
    """Tells whether a class derives from one of some: `kinds[type(op)]`, faster than `isinstance`."""

    def __init__(self, *kinds: type[Operation]):
        super().__init__()
        self.kinds = kinds

    def __missing__(self, kind: type[Operation]) -> bool:
        known = self[kind] = issubclass(kind, self.kinds)
        return known
