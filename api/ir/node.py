"""The base class of every object of the Python API, and source locations."""

from __future__ import annotations

from xdsl.dialects.builtin import UNKNOWN_LOC, LocationAttr

from ...support.caller import caller_place
from ...support.diagnostics import file_loc, source_position
from ...support.xdsl_patches import apply

apply()


class Span:
    """The place where a node was written: a location of the IR, or a file and line of Python."""

    __slots__ = ("_location", "_place")

    def __init__(self, place: tuple[str, int] | LocationAttr):
        self._place, self._location = (None, place) if isinstance(place, LocationAttr) else (place, None)

    @property
    def location(self) -> LocationAttr:
        """The location that ops get."""
        if self._location is None:
            file, line = self._place or ("", 0)
            self._location = file_loc(file, line, 1)
        return self._location

    @property
    def source_name(self) -> str:
        """The file's name; "" when it is not known."""
        position = source_position(self.location)
        return position[0] if position else ""

    @property
    def line(self) -> int:
        """The line, from 1; 0 when it is not known."""
        position = source_position(self.location)
        return position[1] if position else 0

    def __repr__(self) -> str:
        return f"Span({self.source_name}:{self.line})"


def span_of_caller() -> Span | None:
    """The place of the innermost call from outside of this package."""
    place = caller_place()
    return None if place is None else Span(place)


class Node:
    """A part of a program. Nodes do not change, and are equal only to themselves."""

    __slots__ = ("__weakref__", "span")

    span: Span | None

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def same_as(self, other: object) -> bool:
        """Returns whether the two are one object."""
        return self is other

    @property
    def location(self) -> LocationAttr:
        """The location that ops made from the node get."""
        return UNKNOWN_LOC if self.span is None else self.span.location
