"""Finds the kind of each name, for semantic colors."""

from __future__ import annotations

from dataclasses import dataclass

from .analysis import Analysis, Place
from .names import Kind, names_in, tokens_of

KINDS = ("function", "parameter", "variable", "type", "method", "property", "keyword", "string", "number", "decorator")
"""The kinds of tokens, by the protocol's names, in the order in which they are numbered."""
MODIFIERS = ("declaration", "readonly")

_OF_SYMBOLS: dict[Kind, str] = {
    "function": "function",
    "parameter": "parameter",
    "variable": "variable",
    "buffer": "variable",
    "loop": "variable",
    "block": "variable",
    "type": "type",
}
_KEYWORDS = frozenset(
    [
        "DEF",
        "FN",
        "LET",
        "IF",
        "ELSE",
        "TYPE",
        "EXTERN",
        "MATCH",
        "REWRITE",
        "RULESET",
        "INCLUDE",
        "WHERE",
        "FOR",
        "IN",
        "WITH",
        "AS",
        "ELIF",
        "WHILE",
        "RETURN",
        "ASSERT",
        "PASS",
        "LAMBDA",
        "CLASS",
        "TRUE",
        "FALSE",
        "NONE",
        "INNER",
    ]
)


@dataclass(frozen=True)
class Color:
    """The kind of a token, which is on one line, and whether the token declares its name."""

    start: int
    end: int
    kind: str
    declares: bool = False


def colors(analysis: Analysis) -> list[Color]:
    """Returns the kinds of tokens, in the order of the text and without overlap."""
    found: dict[int, Color] = {}
    for place in analysis.places:
        base = analysis.start(place.item)
        for color in _colors(place):
            found.setdefault(
                base + color.start, Color(base + color.start, base + color.end, color.kind, color.declares)
            )
    result: list[Color] = []
    for start in sorted(found):
        color = found[start]
        if "\n" not in analysis.text[start : color.end] and (not result or result[-1].end <= start):
            result.append(color)
    return result


def _colors(place: Place) -> list[Color]:
    item = place.item
    found = [
        Color(each.start, each.end, "function" if each.symbol is None else _OF_SYMBOLS[each.symbol.kind], each.defines)
        for each in names_in(item).occurrences
        if each.symbol is not None or each.name.startswith("@") or each.defines
    ]
    named = {color.start for color in found}
    tokens = tokens_of(item)
    braced = item.format in ("relay", "rules")
    for index, (kind, text, start) in enumerate(zip(tokens.kinds, tokens.texts, tokens.starts, strict=True)):
        end = start + len(text)
        following = tokens.kinds[index + 1] if index + 1 < len(tokens.kinds) else ""
        if kind in _KEYWORDS:
            found.append(Color(start, end, "keyword"))
        elif kind in ("TENSOR", "SCALAR"):
            found.append(Color(start, end, "type"))
        elif kind == "KEY":
            found.append(Color(start, start + len(text.rstrip("= \t")), "property"))
        elif kind in ("STRING", "NUMBER"):
            found.append(Color(start, end, kind.lower()))
        elif kind == "NAME" and braced and following == "LPAR":
            found.append(Color(start, end, "function"))
        elif kind in ("NAME", "MEMBER") and "." in text and following == "LPAR":
            # What is before the dot has its own kind where it is a name.
            dot = text.rindex(".") + 1
            found.append(Color(start + dot if start in named else start, end, "method"))
    return found
