"""Keeps what extensions define, by kind and name, each with its origin.

An extension is a file of items (`--load rules.mir`, `mirstack.load_extension`), a Python file, or an installed package. Every
top-level op of its files is a definition, whose kind is the op's name; what uses definitions of a kind asks for them here:

    register("schedule.rule", "conv_rows", op, origin="package my-cpu 1.0", text="…")
    for definition in loaded("schedule.rule"): …        those of programs' own text are in their modules

The key of what is compiled takes in `digest()`.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from .diagnostics import Diagnostic, MirError
from .source_text import text_bytes


@dataclass(frozen=True)
class Definition:
    """One definition: its kind, its name, what it is, and where it comes from.

    `text` determines the meaning; None if it is code of Python, which nothing identifies.
    """

    kind: str
    name: str
    value: object
    origin: str
    text: str | None


_DEFINITIONS: dict[tuple[str, str], Definition] = {}


def register(kind: str, name: str, value: object, *, origin: str, text: str | None) -> Definition:
    """Keeps a definition; its text may come again. Raises MirError where the name means another."""
    known = _DEFINITIONS.get((kind, name))
    if known is not None and (text is None or known.text != text):
        raise MirError(
            Diagnostic(f"{origin} defines {name}, which {known.origin} has defined").with_note(
                "a process keeps what it has loaded: begin another one"
                if known.origin == origin
                else "one of the two needs another name: all extensions that are loaded share their names"
            )
        )
    if known is None:
        known = _DEFINITIONS[kind, name] = Definition(kind, name, value, origin, text)
    return known


def find(kind: str, name: str) -> Definition | None:
    """Returns the definition of a kind that has a name."""
    return _DEFINITIONS.get((kind, name))


def loaded(*kinds: str) -> list[Definition]:
    """Returns the definitions of these kinds, or of all, in the order in which they were loaded."""
    return [each for each in _DEFINITIONS.values() if not kinds or each.kind in kinds]


def digest() -> bytes | None:
    """Returns what identifies all that is loaded: empty for nothing; None with code of Python."""
    if not _DEFINITIONS:
        return b""
    hasher = hashlib.sha256()
    for each in _DEFINITIONS.values():
        if each.text is None:
            return None
        for part in (each.kind, each.name, each.text):
            data = text_bytes(part)
            hasher.update(len(data).to_bytes(8, "little") + data)
    return hasher.digest()


def forget(kind: str, name: str) -> None:
    """Forgets a definition, for tests."""
    _DEFINITIONS.pop((kind, name), None)
