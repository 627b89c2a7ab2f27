"""Numbers lines, places and texts: what a page repeats is stored once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Operation

from ...support.locations import Place, all_places
from .texts import Text

NOWHERE = 0
"""The number of the set of no places."""


@dataclass(frozen=True)
class Part:
    """A text on the page: numbers of its lines, and of the set of places that each comes from."""

    name: str
    level: str
    lines: tuple[int, ...]
    sets: tuple[int, ...]


@dataclass
class Tables:
    """All lines, places, sets of places and parts, each once, by number."""

    lines: dict[str, int] = field(default_factory=dict[str, int])
    places: dict[Place, int] = field(default_factory=dict[Place, int])
    sets: dict[tuple[int, ...], int] = field(default_factory=lambda: {(): NOWHERE})
    parts: dict[Part, int] = field(default_factory=dict[Part, int])
    _known: dict[int, tuple[LocationAttr, tuple[int, ...]]] = field(
        default_factory=dict[int, tuple[LocationAttr, tuple[int, ...]]]
    )
    """Places by the identity of a location, which is kept so that no other gets its address."""

    def places_at(self, location: LocationAttr) -> tuple[int, ...]:
        """Returns the numbers of a location's places."""
        known = self._known.get(id(location))
        if known is None:
            numbers = tuple(self.places.setdefault(place, len(self.places)) for place in all_places(location))
            known = self._known[id(location)] = location, numbers
        return known[1]

    def set_of(self, ops: Iterable[Operation]) -> int:
        """Returns the number of the set of all places that the ops come from."""
        return self.numbered(number for op in ops for number in self.places_at(op.location))

    def set_at(self, location: LocationAttr) -> int:
        """Returns the number of the set of a location's places."""
        return self.numbered(self.places_at(location))

    def numbered(self, places: Iterable[int]) -> int:
        """Returns the number of a set of places."""
        return self.sets.setdefault(tuple(sorted(set(places))), len(self.sets))

    def part(self, text: Text) -> int:
        """Returns the number of a text whose lines come from ops."""
        return self.placed(
            text.name, text.level, text.lines, [self.set_of(text.ops.get(line, ())) for line in range(len(text.lines))]
        )

    def placed(self, name: str, level: str, lines: Iterable[str], sets: Iterable[int]) -> int:
        """Returns the number of a text, given the set of each line."""
        numbers = tuple(self.lines.setdefault(line, len(self.lines)) for line in lines)
        part = Part(name, level, numbers, tuple(sets))
        return self.parts.setdefault(part, len(self.parts))
