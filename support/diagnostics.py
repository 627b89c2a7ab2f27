"""Defines errors as a product: `file.mir:3:9: error: …`, the source line, a caret and notes.

Every layer reports a user's error by raising `MirError`. It carries one or more `Diagnostic`s, each with the
xDSL location of the op or token at fault; `render` prints them as text given the sources that were read.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from xdsl.utils.exceptions import DiagnosticException

from .text import visible

if TYPE_CHECKING:
    # What runs programs from the cache refers to these errors, and needs none of xDSL's IR.
    from xdsl.dialects.builtin import FileLineColLoc, LocationAttr, NameLoc
    from xdsl.ir import Attribute, Operation, SSAValue

Severity = Literal["error", "warning", "remark", "note"]


def file_loc(file: str, line: int, column: int) -> FileLineColLoc:
    """Returns the location of line `line`, column `column` (both from 1) of `file`."""
    from xdsl.dialects.builtin import FileLineColLoc, IntAttr, StringAttr

    return FileLineColLoc(StringAttr(file), IntAttr(line), IntAttr(column))


def node_loc(file: str, node: str) -> NameLoc:
    """Returns the location of a model's node, `model.onnx: node 'Conv_12'`; the model's for no name."""
    from xdsl.dialects.builtin import FileLineColLoc, IntAttr, NameLoc, StringAttr

    return NameLoc(StringAttr(node), FileLineColLoc(StringAttr(file), IntAttr(0), IntAttr(0)))


def source_position(location: Attribute | None) -> tuple[str, int, int] | None:
    """Returns (file, line, column) of the first file location in `location`, or None without one."""
    from xdsl.dialects.builtin import ArrayAttr, CallSiteLoc, FileLineColLoc, FusedLoc, NameLoc

    pending: list[Attribute | None] = [location]
    while pending:
        loc = pending.pop()
        match loc:
            case FileLineColLoc():
                return loc.filename.data, loc.line.data, loc.column.data
            case NameLoc():
                pending.append(loc.location)
            case CallSiteLoc():
                pending += [loc.caller, loc.callee]
            case FusedLoc():
                if isinstance(loc.locations, ArrayAttr):
                    pending += reversed(loc.locations.data)
            case _:
                pass
    return None


def place_of_node(location: Attribute | None) -> str | None:
    """Returns `model.onnx: node 'Conv_12'` for the first node in `location`; None without one."""
    from xdsl.dialects.builtin import ArrayAttr, FileLineColLoc, FusedLoc, IntAttr, NameLoc, StringAttr

    if isinstance(location, FusedLoc) and isinstance(location.locations, ArrayAttr):
        return place_of_node(next(iter(location.locations), None))
    match location:
        case NameLoc(desc=StringAttr(data=node), location=FileLineColLoc(line=IntAttr(data=0)) as place):
            return f"{place.filename.data}: node '{node}'" if node else place.filename.data
        case _:
            return None


def unknown_location() -> LocationAttr:
    """Returns the location of what was written nowhere."""
    from xdsl.dialects.builtin import UNKNOWN_LOC

    return UNKNOWN_LOC


@dataclass(frozen=True)
class Diagnostic:
    """One message at one place. `message` starts in lower case and has no final period."""

    message: str
    location: LocationAttr = field(default_factory=unknown_location)
    notes: tuple[Diagnostic, ...] = ()
    severity: Severity = "error"

    def with_note(self, message: str, location: LocationAttr | None = None) -> Diagnostic:
        """Returns this diagnostic with one more note after it."""
        note = Diagnostic(message, location or unknown_location(), severity="note")
        return Diagnostic(self.message, self.location, (*self.notes, note), self.severity)


class MirError(DiagnosticException, RuntimeError):
    """An input that cannot be compiled. Carries every diagnostic that was found.

    A text is a diagnostic without a place.
    """

    diagnostics: tuple[Diagnostic, ...]

    def __init__(self, diagnostics: Iterable[Diagnostic] | Diagnostic | str = ()):
        if isinstance(diagnostics, str):
            diagnostics = Diagnostic(diagnostics)
        self.diagnostics = (diagnostics,) if isinstance(diagnostics, Diagnostic) else tuple(diagnostics)
        super().__init__(render_all(self.diagnostics, Sources.current()))

    def show_in(self, sources: Sources) -> None:
        """Adds the lines of these sources to the message, unless it was made with sources."""
        if type(self) in (MirError, MirTypeError, MirValueError) and not Sources.current().texts:
            self.args = (render_all(self.diagnostics, sources),)


class MirTypeError(MirError, TypeError):
    """A diagnostic of a value of another type than is wanted: Python's TypeError besides."""


class MirValueError(MirError, ValueError):
    """A diagnostic of a value that is not among those that can be used: Python's ValueError besides."""


# Tracebacks show the public names.
MirError.__module__ = "mirstack"
MirTypeError.__module__ = MirValueError.__module__ = "mirstack.error"


def error_at(where: Operation | SSAValue | LocationAttr | None, message: str, *notes: str) -> MirError:
    """Returns a `MirError` at an op, a value (its defining op) or a location, for the caller to raise."""
    return MirError(diagnostic_at(where, message, *notes))


def diagnostic_at(where: Operation | SSAValue | LocationAttr | None, message: str, *notes: str) -> Diagnostic:
    """Returns a diagnostic with notes at an op, a value (its defining op) or a location."""
    diagnostic = Diagnostic(message, location_of(where))
    for note in notes:
        diagnostic = diagnostic.with_note(note)
    return diagnostic


def location_of(where: Operation | SSAValue | LocationAttr | None) -> LocationAttr:
    """Returns the location of an op, of a value's defining op or block argument, or the location itself."""
    from xdsl.dialects.builtin import UNKNOWN_LOC
    from xdsl.ir import Block, BlockArgument, Operation, SSAValue

    match where:
        case None:
            return UNKNOWN_LOC
        case Operation():
            return where.location
        case SSAValue():
            owner = where.owner
            if not isinstance(owner, Block):
                return owner.location
            location = owner.args[where.index].location if isinstance(where, BlockArgument) else UNKNOWN_LOC
            # Block arguments from xDSL's parser have no location: the op around them is the nearest that has one.
            around = owner.parent_op()
            return around.location if location == UNKNOWN_LOC and around is not None else location
        case _:
            return where


@dataclass
class Sources:
    """Texts that were read, by file name, so that a diagnostic can show the line it speaks of."""

    texts: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    warnings: list[Diagnostic] = field(default_factory=list["Diagnostic"])

    def add(self, name: str, text: str, first_line: int = 1) -> None:
        """Registers `text` as the lines of the file `name` from `first_line`: a later part of a split file."""
        lines = text.split("\n")
        self.texts[name] = [""] * (first_line - 1) + lines

    def include(self, name: str, text: str, first_line: int) -> None:
        """Registers lines of a file besides those of it that are known."""
        lines = self.texts.setdefault(name, [])
        new = text.split("\n")
        lines += [""] * (first_line - 1 + len(new) - len(lines))
        for number, line in enumerate(new, first_line - 1):
            lines[number] = lines[number] or line

    def line(self, name: str, number: int) -> str | None:
        """Returns line `number` (from 1) of file `name`, or None when it was not registered."""
        lines = self.texts.get(name)
        return lines[number - 1] if lines is not None and 0 < number <= len(lines) else None

    @staticmethod
    def current() -> Sources:
        """Returns the sources of the innermost `reading` block, or an empty set."""
        return _SOURCES[-1] if _SOURCES else Sources()

    @contextmanager
    def reading(self) -> Generator[Sources]:
        """While inside, messages of `MirError`s are rendered with these sources."""
        _SOURCES.append(self)
        try:
            yield self
        finally:
            _SOURCES.pop()


_SOURCES: list[Sources] = []


def warn_at(where: Operation | SSAValue | LocationAttr | None, message: str, *notes: str) -> None:
    """Warns of a likely mistake that does not stop the compilation; the reader of the sources shows it."""
    diagnostic = Diagnostic(message, location_of(where), severity="warning")
    for note in notes:
        diagnostic = diagnostic.with_note(note)
    Sources.current().warnings.append(diagnostic)


def render(diagnostic: Diagnostic, sources: Sources) -> str:
    """Returns the diagnostic as text: place, severity, message, source line, caret, then its notes."""
    position, node = source_position(diagnostic.location), place_of_node(diagnostic.location)
    if position is None or node is not None:
        place = "" if node is None else f"{node}: "
        lines = [visible(f"{place}{diagnostic.severity}: {diagnostic.message}")]
    else:
        file, line, column = position
        lines = [visible(f"{file}:{line}:{column}: {diagnostic.severity}: {diagnostic.message}")]
        text = sources.line(file, line)
        if text is not None:
            lines += _pointed_at(text, column - 1)
    lines += [render(note, sources) for note in diagnostic.notes]
    return "\n".join(lines)


# How much of a line is shown before and after the character at fault.
_SHOWN = 120


def _pointed_at(text: str, column: int) -> list[str]:
    """Returns the source line, cut around `column` (from 0) if long, and a caret under that column."""
    start = column - _SHOWN if column > 2 * _SHOWN else 0
    end = column + 2 * _SHOWN
    before, shown = ("…" if start else ""), text[start:end] + ("…" if end < len(text) else "")
    # Tabs stay tabs before the caret, so that it stands under its character whatever the tab width.
    indent = "".join("\t" if c == "\t" else " " for c in visible(before + text[start:column]))
    return [visible(before + shown), f"{indent}^"]


def render_all(diagnostics: Iterable[Diagnostic], sources: Sources) -> str:
    """Renders all diagnostics, one after the other."""
    return "\n".join(render(d, sources) for d in diagnostics)
