"""Reads a text part by part, keeping what it found of the parts that did not change."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from xdsl.ir import Operation

from ..parser.items import Item, split_items
from ..support.deep_stack import in_deep_stack
from ..support.diagnostics import Diagnostic, MirError, Severity, source_position
from ..support.source_text import refuse_surrogates, source_text
from ..support.text import visible
from .parts import NAME, Part, defined_by, groups, laid_out, read_part
from .positions import Lines

_WHOLE = "<file>"
# What a message is about begins at its place: a name with its sign, a number, a string, or one character.
_TOKEN = re.compile(r"""[%@$]?"(?:[^"\\\n]|\\.)*+"|'(?:[^'\\\n]|\\.)*+'|[%@$]?[\w.]*\w|->|=>|[^\n]""")


@dataclass(frozen=True)
class Note:
    """A note of a finding, at the text that it is about."""

    message: str
    start: int
    end: int


@dataclass(frozen=True)
class Finding:
    """A message and the text that it is about, from offset `start` to `end`."""

    message: str
    severity: Severity
    start: int
    end: int
    notes: tuple[Note, ...] = ()
    """The notes with a place in the text; the others are further lines of the message."""


@dataclass(frozen=True)
class Place:
    """An item of the text, and the part that it was read in, as its item number `index`."""

    item: Item
    part: Part
    index: int
    earlier: Place | None = None
    """The item of these names when it was last read without an error: its types are shown while one types."""

    @property
    def ops(self) -> list[Operation]:
        """Returns the ops that were read of the item; none where it was not understood."""
        return self.part.ops[self.index] if self.index < len(self.part.ops) else []

    @property
    def shift(self) -> int:
        """Returns how many lines the item is further down than in its part."""
        return self.item.line - self.part.items[self.index].line


class Analysis:
    """A text with its items, and what was found of each."""

    def __init__(
        self,
        text: str,
        items: list[Item],
        parts: list[tuple[Part, list[int]]],
        outside: list[Diagnostic],
        earlier: Mapping[frozenset[str], Place] | None = None,
    ):
        self.text, self.items, self.outside = text, items, outside
        self.parts = parts
        self.lines = Lines(text)
        known = earlier or {}
        places = {
            index: Place(items[index], part, k, known.get(defined_by(items[index])) if part.has_errors else None)
            for part, of in parts
            for k, index in enumerate(of)
        }
        self.places = [places[index] for index in range(len(items))]

    def start(self, item: Item) -> int:
        """Returns the offset of an item's text, whose first line may begin with blanks for what is left of it."""
        return self.lines.starts[item.line - 1]

    def place_at(self, offset: int) -> Place | None:
        """Returns the item around an offset, or the last one before it."""
        index = bisect_right(self._begins, offset) - 1
        return self.places[index] if index >= 0 else None

    @cached_property
    def _begins(self) -> list[int]:
        return [self.start(item) + len(item.text) - len(item.text.lstrip(" ")) for item in self.items]

    @cached_property
    def findings(self) -> list[Finding]:
        """Returns all messages in the order of the text."""
        found = [self._finding(diagnostic, None, []) for diagnostic in self.outside]
        for part, indices in self.parts:
            found += [self._finding(diagnostic, part, indices) for diagnostic in part.diagnostics]
        return sorted(found, key=lambda finding: (finding.start, finding.end))

    @property
    def failures(self) -> Iterator[Exception]:
        """Yields what went wrong in reading that no rule of the text explains."""
        return (part.failure for part, _ in self.parts if part.failure is not None)

    def _finding(self, diagnostic: Diagnostic, part: Part | None, indices: list[int]) -> Finding:
        start, end = self._span(diagnostic, part, indices) or self._span_of_part(indices)
        lines = [diagnostic.message]
        notes: list[Note] = []
        for note in diagnostic.notes:
            span = self._span(note, part, indices)
            if span is None:
                lines.append(f"note: {note.message}")
            else:
                notes.append(Note(visible(note.message), *span))
        return Finding(visible("\n".join(lines)), diagnostic.severity, start, end, tuple(notes))

    def _span(self, diagnostic: Diagnostic, part: Part | None, indices: list[int]) -> tuple[int, int] | None:
        position = source_position(diagnostic.location)
        if position is None or position[0] not in (NAME, _WHOLE):
            return None
        _, line, column = position
        if part is not None:
            k = max(bisect_right(part.items, line, key=lambda item: item.line) - 1, 0)
            line += self.items[indices[k]].line - part.items[k].line
        return self._token(self.lines.place(line, column))

    def _span_of_part(self, indices: list[int]) -> tuple[int, int]:
        """Returns the first word of a part, for a message without a place."""
        return self._token(self._begins[indices[0]] if indices else 0)

    def _token(self, start: int) -> tuple[int, int]:
        """Returns where the token at an offset is; at a line's end the character before, which can be seen."""
        token = _TOKEN.match(self.text, start)
        if token is not None:
            return token.span()
        return (start - 1 if start and self.text[start - 1] != "\n" else start), start


class Analyzer:
    """Analyses the versions of one text."""

    def __init__(self, directory: Path | None = None):
        self.directory = directory
        self._known: dict[tuple[tuple[str, str], ...], Part] = {}
        self._earlier: dict[frozenset[str], Place] = {}
        self._nests: dict[frozenset[str], Part] = {}
        """Of each prim_func the part whose loop nests were read last."""

    def analyse(self, text: str) -> Analysis:
        """Returns what is found in a text; parts that are as they were in the one before are not read again."""
        text = source_text(text)
        try:
            refuse_surrogates(text, _WHOLE)
        except MirError as error:
            return Analysis(text, [], [], list(error.diagnostics))
        return in_deep_stack(lambda: self._analyse(text))

    def _analyse(self, text: str) -> Analysis:
        outside: list[Diagnostic] = []
        items = split_items(text, _WHOLE, 1, lambda error: outside.extend(error.diagnostics))
        known: dict[tuple[tuple[str, str], ...], Part] = {}
        parts: list[tuple[Part, list[int]]] = []
        for indices in groups(items):
            part = laid_out([items[index] for index in indices])
            key = tuple((item.kind, item.text) for item in part.items)
            if (before := self._known.get(key)) is not None and before.lasts:
                part = before
            else:
                self._read(part)
            known[key] = part
            parts.append((part, indices))
        self._known = known
        names = set(map(defined_by, items))
        self._nests = {name: part for name, part in self._nests.items() if name in names}
        analysis = Analysis(text, items, parts, outside, self._earlier)
        for place in analysis.places:
            if not place.part.has_errors:
                self._earlier[defined_by(place.item)] = place
        return analysis

    def _read(self, part: Part) -> None:
        name = defined_by(part.items[0])
        read_part(part, self.directory, self._nests.get(name))
        if part.nests is not None:
            self._nests[name] = part
