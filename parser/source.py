"""Places in the text of an item as locations."""

from __future__ import annotations

from bisect import bisect_right

from xdsl.dialects.builtin import FileLineColLoc, IntAttr, StringAttr

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

    def location(self, at: int) -> FileLineColLoc:
        """The location of offset `at` of the text."""
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
