"""Places in the text of an item as locations."""

from __future__ import annotations

from bisect import bisect_right

from xdsl.dialects.builtin import LocationAttr

from .items import Item


class Source:
    """The item being read: gives locations of places in its text."""

    def __init__(self, item: Item):
        self.item = item
        self._starts = [0]
        position = item.text.find("\n")
        while position >= 0:
            self._starts.append(position + 1)
            position = item.text.find("\n", position + 1)
        self._locations: dict[int, LocationAttr] = {}

    def location(self, at: int) -> LocationAttr:
        """The location of offset `at` of the text."""
        found = self._locations.get(at)
        if found is None:
            line = bisect_right(self._starts, at)
            found = self._locations[at] = self.item.location(line, at - self._starts[line - 1] + 1)
        return found
