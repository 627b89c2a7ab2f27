"""Finds where a name is defined and used, and renames it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from .analysis import Analysis, Analyzer, Place
from .calls import kind_of_argument
from .fixes import Edit
from .names import Names, Occurrence, names_in, plain, tokens_of


@dataclass(frozen=True)
class Span:
    """The text from `start` to `end`; whether it defines what was asked for."""

    start: int
    end: int
    defines: bool = False


class CannotRename(Exception):
    """A refusal to rename, which the editor shows."""


@dataclass(frozen=True)
class _Asked:
    place: Place
    names: Names
    occurrence: Occurrence


def _asked(analysis: Analysis, offset: int) -> _Asked | None:
    place = analysis.place_at(offset)
    if place is None:
        return None
    names = names_in(place.item)
    occurrence = names.at(offset - analysis.start(place.item))
    return None if occurrence is None else _Asked(place, names, occurrence)


def definitions(analysis: Analysis, offset: int) -> list[Span]:
    """Returns where the name at an offset is defined."""
    asked = _asked(analysis, offset)
    if asked is None:
        return _defined_in_target(analysis, offset)
    if asked.occurrence.symbol is None and asked.place.item.format == "te":
        found = _of_target(analysis, asked.place, asked.occurrence.name)
        if found:
            return found
    return [span for span in _spans(analysis, asked) if span.defines]


def references(analysis: Analysis, offset: int) -> list[Span]:
    """Returns all places of the name at an offset, in the order of the text."""
    asked = _asked(analysis, offset)
    return [] if asked is None else _spans(analysis, asked)


def _spans(analysis: Analysis, asked: _Asked) -> list[Span]:
    symbol = asked.occurrence.symbol
    if symbol is not None:
        return sorted((_span(analysis, asked.place, each) for each in symbol.places), key=lambda span: span.start)
    name = plain(asked.occurrence.name)
    found = [
        _span(analysis, place, each)
        for place in analysis.places
        for each in (*names_in(place.item).occurrences, *_named_in_strings(place, name))
        if each.symbol is None and plain(each.name) == name
    ]
    return sorted(found, key=lambda span: span.start) if any(span.defines for span in found) else []


def _span(analysis: Analysis, place: Place, each: Occurrence) -> Span:
    base = analysis.start(place.item)
    return Span(base + each.start, base + each.end, each.defines)


def _named_in_strings(place: Place, name: str) -> Iterator[Occurrence]:
    """Yields where a schedule names a function in a string: `func_name="f"`, `sch.work_on("f")`."""
    if place.item.format != "schedule":
        return
    for match in re.finditer(rf"(?:func_name\s*=|\.work_on\()\s*([\"']){re.escape(name)}\1", place.item.text):
        end = match.end() - 1
        yield Occurrence(name, end - len(name), end)


# What a schedule or a call is of -------------------------------------------------------------------------------------

_TARGET = re.compile(r"\s*@[\w.]+\(\s*(?:\w+\.)*(\w+)\s*\)")


def target_places(analysis: Analysis, place: Place) -> list[Place]:
    """Returns the items of the function that a schedule is for; all prim_funcs where it names none."""
    match = _TARGET.match(place.item.text)
    others = [other for other in analysis.places if other.item.format in ("tvmscript", "te") and other is not place]
    if match is None:
        return [other for other in others if other.item.format == "tvmscript"]
    return [
        other
        for other in others
        if any(
            each.defines and each.name == match[1] and each.symbol is None for each in names_in(other.item).occurrences
        )
    ]


def _of_target(analysis: Analysis, place: Place, name: str) -> list[Span]:
    """Returns where the function that a `te.schedule` is for defines a tensor that the schedule uses."""
    if place.item.kind != "te.schedule":
        return []
    return [
        _span(analysis, other, each)
        for other in target_places(analysis, place)
        for each in names_in(other.item).occurrences
        if each.defines and each.symbol is not None and each.name == name
    ]


def _defined_in_target(analysis: Analysis, offset: int) -> list[Span]:
    """Returns the block, or the buffer, that a schedule names in the string at an offset."""
    place = analysis.place_at(offset)
    if place is None or place.item.format != "schedule":
        return []
    base = analysis.start(place.item)
    tokens = tokens_of(place.item)
    string = next(
        (
            (start, text[1:-1])
            for kind, text, start in zip(tokens.kinds, tokens.texts, tokens.starts, strict=True)
            if kind == "STRING" and base + start <= offset <= base + start + len(text)
        ),
        None,
    )
    if string is None:
        return []
    at, name = string
    line = place.item.text[place.item.text.rfind("\n", 0, at) + 1 : at]
    # A buffer is named where its number could be written, too.
    of_buffer = "int" in (kind_of_argument(line) or "")
    found: list[Span] = []
    for other in target_places(analysis, place):
        base = analysis.start(other.item)
        if of_buffer:
            for each in names_in(other.item).occurrences:
                if each.defines and each.name == name and each.symbol is not None and each.symbol.kind == "buffer":
                    found.append(Span(base + each.start, base + each.end, True))
            continue
        for match in re.finditer(rf"T\.block\(\s*([\"']){re.escape(name)}\1", other.item.text):
            found.append(Span(base + match.end() - 1 - len(name), base + match.end() - 1, True))
    return found


# Renaming ------------------------------------------------------------------------------------------------------------

_LOCAL = re.compile(r"%?[A-Za-z_]\w*")
_GRAPH = re.compile(r"%?\d+")
_FUNCTION = re.compile(r"@?[A-Za-z_]\w*")


def renameable(analysis: Analysis, offset: int) -> Span | None:
    """Returns the name at an offset, if it can be renamed: the file must define it."""
    asked = _asked(analysis, offset)
    if asked is None or not _spans(analysis, asked):
        return None
    return _span(analysis, asked.place, asked.occurrence)


def rename(analysis: Analysis, analyzer: Analyzer, offset: int, name: str) -> list[Edit]:
    """Returns the edits that rename what is at an offset. Raises CannotRename."""
    asked = _asked(analysis, offset)
    spans = [] if asked is None else _spans(analysis, asked)
    if asked is None or not spans:
        raise CannotRename("nothing that this file defines is named here")
    old = asked.occurrence.name
    is_function = asked.occurrence.symbol is None
    if is_function:
        form, example = _FUNCTION, "main"
    elif old.startswith("%") and old[1:].isdigit():
        form, example = _GRAPH, "%7, a graph name"
    else:
        form, example = _LOCAL, "%data" if old.startswith("%") else "data"
    if not form.fullmatch(name):
        raise CannotRename(f"'{name}' cannot be a name here; one is written {example}")
    new = plain(name)
    taken = (
        {
            plain(each.name)
            for place in analysis.places
            for each in names_in(place.item).occurrences
            if each.symbol is None
        }
        if is_function
        else {plain(each.name) for each in asked.names.occurrences}
    )
    if new != plain(old) and new in taken:
        raise CannotRename(f"'{new}' is the name of something else here")
    edits: list[Edit] = []
    for span in spans:
        written = analysis.text[span.start : span.end]
        sign = written[0] if written[0] in "%@" else ""
        edits.append(Edit(span.start, span.end, sign + new))
    _check(analysis, analyzer, edits)
    return edits


def _check(analysis: Analysis, analyzer: Analyzer, edits: list[Edit]) -> None:
    """Raises CannotRename where the new text has an error that the old one has not."""
    after = Analyzer(analyzer.directory).analyse(applied(analysis.text, edits))
    before = len([finding for finding in analysis.findings if finding.severity == "error"])
    errors = [finding for finding in after.findings if finding.severity == "error"]
    if len(errors) > before:
        line, _ = after.lines.position(errors[0].start)
        message = errors[0].message.partition("\n")[0]
        raise CannotRename(f"line {line + 1} would be wrong: {message}")


def applied(text: str, edits: list[Edit]) -> str:
    """Returns a text after edits that do not overlap."""
    for edit in sorted(edits, key=lambda edit: edit.start, reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text
