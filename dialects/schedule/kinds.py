"""Kinds of schedule primitives' arguments, as signatures write them: `block`, `list[expr | none]`.

A kind is alternatives: words (`block`, `loop`, `expr`, `int`, `float`, `bool`, `str`, `none`, `dict`, `lambda`, `any`), lists of a
kind, and pairs of a kind each (`pair[str, int]`). Values are checked as plain Python: numbers, strings, None, lists,
dictionaries, and handles, whose attribute `schedule_kind` is their kind.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from math import isfinite
from typing import cast

_WORD = re.compile(r"\s*([a-z]+|[][|,])")

_SPOKEN = {
    "block": "a block", "loop": "a loop", "expr": "a number or a sampled value", "int": "an integer", "float": "a number",
    "bool": "True or False", "str": "a string", "none": "None", "dict": "a dictionary", "lambda": "a lambda",
    "any": "a finite value", "axis": "an axis (s[B].op.axis[0], or what split and fuse give)", "stage": "a stage (s[B])",
    "tensor": "a tensor", "literal": "a number or a string",
}  # fmt: skip
_SPOKEN_MANY = {
    "block": "blocks", "loop": "loops", "expr": "numbers or sampled values", "int": "integers", "float": "numbers",
    "bool": "True and False", "str": "strings", "none": "None", "dict": "dictionaries", "lambda": "lambdas",
    "any": "values",
}  # fmt: skip


@dataclass(frozen=True)
class ParameterKind:
    """One alternative: a `word`, with the kinds of the elements for a list (one) or a pair (two)."""

    word: str
    elements: tuple[Kinds, ...] = ()


Kinds = tuple[ParameterKind, ...]


@cache
def parse_kind(text: str) -> Kinds:
    """Parses a kind such as `list[expr | none] | str`. Raises ValueError for other texts."""
    words = _WORD.findall(text)
    kinds, rest = _alternatives(words)
    if rest or not kinds:
        raise ValueError(f"'{text}' is not a kind of argument")
    return kinds


def _alternatives(words: list[str]) -> tuple[Kinds, list[str]]:
    found: list[ParameterKind] = []
    while words:
        word, words = words[0], words[1:]
        elements: list[Kinds] = []
        if words and words[0] == "[":
            while words[0] in "[,":
                inner, words = _alternatives(words[1:])
                elements.append(inner)
            words = words[1:]
        found.append(ParameterKind(word, tuple(elements)))
        if not words or words[0] != "|":
            return tuple(found), words
        words = words[1:]
    return (), words


def fits(kinds: Kinds, value: object) -> bool:
    """Returns whether a value is of one of the kinds."""
    return any(_fits(kind, value) for kind in kinds)


def _fits(kind: ParameterKind, value: object) -> bool:
    handle = kind_of_handle(value)
    if handle is not None:
        # A list under one name is a list of its elements' kind.
        return handle == kind.word or any(covers(kind, alternative) for alternative in parse_kind(handle))
    match kind.word:
        case "list":
            return isinstance(value, list | tuple) and all(
                fits(kind.elements[0], item) for item in cast("list[object]", value)
            )
        case "pair":
            if not isinstance(value, list | tuple):
                return False
            items = list(cast("list[object]", value))
            return len(items) == len(kind.elements) and all(map(fits, kind.elements, items))
        case "expr" | "int":
            return isinstance(value, int) and not isinstance(value, bool) and -(1 << 63) <= value < 1 << 63
        case "float":
            return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
        case "bool":
            return isinstance(value, bool)
        case "str":
            return isinstance(value, str)
        case "none":
            return value is None
        case "any":
            return _is_finite(value)
        case "dict":
            return isinstance(value, Mapping)
        case "lambda":
            return callable(value)
        case _:
            return False


def _is_finite(value: object) -> bool:
    """Returns whether a value holds no infinity, which no text of a schedule has."""
    if isinstance(value, list | tuple):
        return all(map(_is_finite, cast("list[object]", value)))
    if isinstance(value, Mapping):
        return all(map(_is_finite, cast("Mapping[object, object]", value).values()))
    return not isinstance(value, float) or isfinite(value)


def covers(kind: ParameterKind, other: ParameterKind) -> bool:
    """Returns whether every value of the kind `other` is one of `kind`."""
    if kind.word == "any":
        return True
    if kind.word != other.word or len(kind.elements) != len(other.elements):
        return False
    return all(
        all(any(covers(a, b) for a in mine) for b in theirs)
        for mine, theirs in zip(kind.elements, other.elements, strict=True)
    )


def kind_of_handle(value: object) -> str | None:
    """Returns `block`, `loop`, `expr` or a list of one for handles; None for plain data."""
    return getattr(value, "schedule_kind", None)


def spoken(kinds: Kinds) -> str:
    """Returns the kinds as messages call them: `a block or a string`."""
    return " or ".join(dict.fromkeys(_spoken(kind) for kind in kinds))


def _spoken(kind: ParameterKind) -> str:
    if kind.word == "list":
        return "a list of " + " or ".join(dict.fromkeys(_SPOKEN_MANY.get(e.word, "lists") for e in kind.elements[0]))
    if kind.word == "pair":
        return f"a pair ({', '.join(spoken(e) for e in kind.elements)})"
    return _SPOKEN[kind.word]


def spoken_value(value: object) -> str:
    """Describes an argument for messages."""
    handle = kind_of_handle(value)
    if handle is not None:
        return spoken(parse_kind(handle))
    if callable(value):
        return _SPOKEN["lambda"]
    return repr(value) if not isinstance(value, str) else f'"{value}"'
