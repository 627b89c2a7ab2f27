"""Fuses locations, and finds places inside of an op's text when an error is reported.

An op that replaces several keeps all the places that these were written at; every op keeps one location, from which the places of
its arguments are looked up in the source.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import (
    UNKNOWN_LOC,
    ArrayAttr,
    CallSiteLoc,
    FileLineColLoc,
    FusedLoc,
    LocationAttr,
    NameLoc,
    NoneAttr,
    UnknownLoc,
)
from xdsl.ir import Attribute

from .diagnostics import Sources, file_loc, source_position

MOST_PLACES = 16
"""An op that replaces more keeps the first ones: otherwise a chain of ops that collapses into one, step by step, costs the square
of its length.
"""


def fuse_locations(locations: Iterable[LocationAttr]) -> LocationAttr:
    """Fuses locations in order and without repeats, fused ones flattened, unknown ones left out."""
    parts: dict[Attribute, None] = {}
    for location in locations:
        if len(parts) >= MOST_PLACES:
            break
        # By class: `isinstance` of an attribute is a call in Python.
        kind = type(location)
        if kind is FusedLoc and type(places := cast("FusedLoc", location).locations) is ArrayAttr:
            parts.update(dict.fromkeys(places.data))
        elif kind is not UnknownLoc:
            parts[location] = None
    if not parts:
        return UNKNOWN_LOC
    first = next(iter(parts))
    if len(parts) == 1 and isinstance(first, LocationAttr):
        return first
    return FusedLoc(ArrayAttr(list(parts)[:MOST_PLACES]), NoneAttr())


def places_of(location: LocationAttr) -> list[str]:
    """Returns the places in a location as text, in order and each once.

    `net.mir:3:7`, or `net.onnx: node 'Conv_12'`
    """
    return list(dict.fromkeys(map(str, all_places(location))))


# Strings and comments are skipped as a whole.
_PIECE = re.compile(r'"(?:[^"\\\n]|\\.)*"|/\*.*?\*/|//[^\n]*|->|[()\[\]{}]|[A-Za-z_]\w*', re.DOTALL)
_LINES = 100
"""How many lines after an op its arguments are looked for."""


def argument_place(call: LocationAttr, name: str) -> LocationAttr:
    """Returns the place of `name=…` in the call `f(…, name=…)` that begins at `call`; otherwise `call`."""
    depth = 0
    for piece, place in _pieces(call):
        word = piece[0]
        depth += (word in "([{") - (word in ")]}")
        if depth == 0 and word == ")":
            break
        if depth == 1 and word == name and re.match(r"\s*=(?!=)", piece.string[piece.end() :]):
            return place
    return call


def result_type_place(function: LocationAttr) -> LocationAttr | None:
    """Returns the place of the type after `->` in a function's head; None where none is written."""
    depth, is_next = 0, False
    for piece, place in _pieces(function):
        word = piece[0]
        if is_next:
            return place
        if depth == 0 and word == "{":
            break
        is_next = depth == 0 and word == "->"
        depth += (word in "([{") - (word in ")]}")
    return None


def decorator_place(function: LocationAttr, name: str) -> LocationAttr:
    """Returns the place of `name` in the decorator `@…(name)` above a function; otherwise the function's."""
    position = source_position(function)
    if position is not None:
        file, line, _ = position
        for number in range(line - 1, max(line - _LINES, 0), -1):
            text = Sources.current().line(file, number) or ""
            found = re.match(rf"\s*@[\w.]+\s*\(\s*(?:\w+\.)*({re.escape(name)})\s*\)", text)
            if found is not None:
                return file_loc(file, number, found.start(1) + 1)
            if re.match(r"\s*(def|class)\b", text):
                break
    return function


def _pieces(start: LocationAttr) -> Iterator[tuple[re.Match[str], LocationAttr]]:
    """Yields brackets, arrows and names of the source from a place on, each with its place."""
    position = source_position(start)
    if position is None:
        return
    file, line, column = position
    lines: list[str] = []
    for number in range(line, line + _LINES):
        text = Sources.current().line(file, number)
        if text is None:
            break
        lines.append(text)
    if not lines or column > len(lines[0]):
        return
    text = "\n".join(lines)
    for piece in _PIECE.finditer(text, column - 1):
        if not piece[0].startswith(('"', "/")):
            before = text[: piece.start()]
            yield piece, file_loc(file, line + before.count("\n"), piece.start() - before.rfind("\n"))


@dataclass(frozen=True)
class Place:
    """A place in a source: a line and a column of a file, from 1, or a node of a model, whose line is 0."""

    file: str
    line: int
    column: int
    node: str = ""

    def __str__(self) -> str:
        if self.line:
            return f"{self.file}:{self.line}:{self.column}"
        return f"{self.file}: node '{self.node}'" if self.node else self.file


def all_places(location: Attribute | None) -> list[Place]:
    """Returns all places in a location, in order and without repeats."""
    found: dict[Place, None] = {}
    pending: list[tuple[Attribute | None, str]] = [(location, "")]
    while pending:
        each, node = pending.pop()
        match each:
            case FileLineColLoc():
                found[Place(each.filename.data, each.line.data, each.column.data, node)] = None
            case NameLoc():
                pending.append((each.location, each.desc.data))
            case CallSiteLoc():
                pending += [(each.caller, node), (each.callee, node)]
            case FusedLoc(locations=ArrayAttr(data=parts)):
                pending += [(part, node) for part in reversed(parts)]
            case _:
                pass
    return list(found)
