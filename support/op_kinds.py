"""Whether an op is of one of several kinds: xDSL's classes are abstract base classes, of which `isinstance` takes long to tell."""

from __future__ import annotations

from xdsl.ir import Operation


class Kinds(dict[type[Operation], bool]):
    """Which classes are among some, or derive from them: `kinds[type(op)]` is looked up faster than `isinstance` tells."""

    def __init__(self, *kinds: type[Operation]):
        super().__init__()
        self.kinds = kinds

    def __missing__(self, kind: type[Operation]) -> bool:
        known = self[kind] = issubclass(kind, self.kinds)
        return known
