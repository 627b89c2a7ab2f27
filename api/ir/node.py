"""The base class of every object of the Python API, and source locations."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import UNKNOWN_LOC, LocationAttr

from ...support.arguments import check, integer, items
from ...support.caller import caller_place
from ...support.diagnostics import file_loc, source_position
from ...support.xdsl_patches import apply

apply()


class SourceName:
    """The name of a file of source; equal by name."""

    __slots__ = ("name",)

    def __init__(self, name: str):
        check(name, "name", "the name of a file", str)
        self.name = name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SourceName) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"SourceName({self.name!r})"


class Span:
    """The place where a node was written: a location of the IR, or a file and line of Python.

    `Span(SourceName("net.mir"), 3, 3, 5, 9)` is a place by file, first and last line, first and last column.
    """

    __slots__ = ("_location", "_place", "end_column", "end_line")

    def __init__(
        self,
        place: tuple[str, int] | LocationAttr | SourceName | str,
        line: int = 0,
        end_line: int = 0,
        column: int = 0,
        end_column: int = 0,
    ):
        self.end_line, self.end_column = end_line, end_column
        if isinstance(place, SourceName | str):
            name = place if isinstance(place, str) else place.name
            place = file_loc(name, integer(line, "line", 0), integer(column, "column", 0))
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

    @property
    def column(self) -> int:
        """The column, from 1; 0 when it is not known."""
        position = source_position(self.location)
        return position[2] if position else 0

    def __repr__(self) -> str:
        return f"Span({self.source_name}:{self.line})"


class SequentialSpan(Span):
    """Several places, the first of which is the one that counts."""

    __slots__ = ("spans",)

    def __init__(self, spans: Sequence[Span]):
        self.spans = items(spans, "spans", "places, ir.Span", Span)
        super().__init__(self.spans[0].location if self.spans else UNKNOWN_LOC)


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


class ContentNode(Node):
    """A node other than expressions and types; structural equality compares its class and its content."""

    __slots__ = ()

    def content(self) -> Sequence[object]:
        """Returns what distinguishes the node from others of its class."""
        return ()
