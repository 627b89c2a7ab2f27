"""Finds the kind of each name, for semantic colors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from .analysis import Analysis, Place
from .names import BRACED, Kind, names_in, tokens_of

KINDS = (
    "function",
    "parameter",
    "variable",
    "type",
    "method",
    "property",
    "keyword",
    "string",
    "number",
    "decorator",
    "comment",
)
"""The kinds of tokens, by the protocol's names, in the order in which they are numbered."""
MODIFIERS = ("declaration", "readonly")

_COMMENT = re.compile(r"//[^\n]*|#(?!\[)[^\n]*|/\*")
_BLOCK_MARK = re.compile(r"/\*|\*/")

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
        "OPERATOR",
        "COMPUTE",
        "GRADIENT",
        "KIND",
        "ONNX",
        "DOC",
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
    end = 0
    for place in sorted(analysis.places, key=lambda each: analysis.start(each.item)):
        base = analysis.start(place.item)
        tokens = tokens_of(place.item)
        for text, start in zip(tokens.texts, tokens.starts, strict=True):
            # What is between tokens can be a comment; a token of a new line may begin before the comment at its end.
            if text and not text.isspace():
                if base + start - end > 1:
                    found.update(_comments(analysis.text, end, base + start))
                end = base + start + len(text)
        for color in _colors(place):
            start = base + color.start
            found.setdefault(start, Color(start, base + color.end, color.kind, color.declares))
    found.update(_comments(analysis.text, end, len(analysis.text)))
    result: list[Color] = []
    for start in sorted(found):
        color = found[start]
        if not result or result[-1].end <= start:
            if "\n" in analysis.text[start : color.end]:
                result += _by_line(color, analysis.text)
            else:
                result.append(color)
    return result


def _by_line(color: Color, text: str) -> Iterator[Color]:
    """Splits a token at the ends of lines, since few editors take tokens of several lines."""
    start = color.start
    for line in text[start : color.end].split("\n"):
        blanks = len(line) - len(line.lstrip())
        if blanks < len(line):
            yield replace(color, start=start + blanks, end=start + len(line))
        start += len(line) + 1


def _comments(text: str, start: int, end: int) -> Iterator[tuple[int, Color]]:
    """Returns the comments of a part of a text that has no tokens, by where they begin."""
    while match := _COMMENT.search(text, start, end):
        start = match.end()
        if match[0] == "/*":
            # Block comments nest.
            depth = 1
            while depth:
                mark = _BLOCK_MARK.search(text, start, end)
                start = mark.end() if mark else end
                depth = depth + (1 if mark[0] == "/*" else -1) if mark else 0
        yield match.start(), Color(match.start(), start, "comment")


def _colors(place: Place) -> list[Color]:
    item = place.item
    found = [
        Color(each.start, each.end, "function" if each.symbol is None else _OF_SYMBOLS[each.symbol.kind], each.defines)
        for each in names_in(item).occurrences
        if each.symbol is not None or each.name.startswith("@") or each.defines
    ]
    named = {color.start for color in found}
    tokens = tokens_of(item)
    braced = item.format in BRACED
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
