"""Places in the text of an item as locations."""

from __future__ import annotations

import textwrap
from bisect import bisect_right

from xdsl.dialects.builtin import FileLineColLoc, IntAttr, StringAttr

from ..support.diagnostics import Sources
from .items import Item


class Source:
    """The item being read: returns locations of places in its text."""

    def __init__(self, item: Item):
        self.item = item
        self._file = StringAttr(item.file)
        self._numbers: dict[int, IntAttr] = {}
        self._starts = [0]
        position = item.text.find("\n")
        while position >= 0:
            self._starts.append(position + 1)
            position = item.text.find("\n", position + 1)
        self._annexes: list[tuple[int, Source]] = []

    def annex(self, item: Item) -> int:
        """Adds another item after the end of the text; returns the offset of its beginning."""
        for base, source in self._annexes:
            if source.item is item:
                return base
        last, source = self._annexes[-1] if self._annexes else (0, self)
        base = last + len(source.item.text) + 1
        self._annexes.append((base, Source(item)))
        Sources.current().include(item.file, textwrap.indent(item.text, " " * item.indent), item.line)
        return base

    def location(self, at: int) -> FileLineColLoc:
        """The location of offset `at` of the text."""
        if self._annexes and at >= self._annexes[0][0]:
            base, source = max((pair for pair in self._annexes if pair[0] <= at), key=lambda pair: pair[0])
            return source.location(at - base)
        line = bisect_right(self._starts, at) - 1
        column = at - self._starts[line] + 1 + self.item.indent
        row = line + self.item.line
        numbers = self._numbers
        if (first := numbers.get(row)) is None:
            first = numbers[row] = IntAttr(row)
        if (second := numbers.get(column)) is None:
            second = numbers[column] = IntAttr(column)
        # The parameters are known to be well-formed: verifying each would cost more than the op it is for.
        location = object.__new__(FileLineColLoc)
        object.__setattr__(location, "filename", self._file)
        object.__setattr__(location, "line", first)
        object.__setattr__(location, "column", second)
        return location
