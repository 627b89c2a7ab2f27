"""Finds what an editor can fold: items, blocks of braces, indented blocks, comments."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from .analysis import Analysis
from .names import tokens_of
from .positions import Lines

FoldKind: TypeAlias = Literal["region", "comment"]
_LINE_COMMENT = re.compile(r"[ \t]*(?://|#(?!\[))")


@dataclass(frozen=True)
class Fold:
    """Lines that can be folded, both from 0; the first one stays visible."""

    first: int
    last: int
    kind: FoldKind = "region"


def folds(analysis: Analysis) -> list[Fold]:
    """Returns all that can be folded, in the order of the text."""
    found: set[tuple[int, int, FoldKind]] = set()
    for place in analysis.places:
        item = place.item
        lines = item.text.rstrip().count("\n")
        first = item.line - 1
        if lines:
            # Decorators stay visible, too.
            head = next((k for k, line in enumerate(item.text.split("\n")) if re.match(r"\s*(def|class)\b", line)), 0)
            if head < lines:
                found.add((first + head, first + lines, "region"))
        tokens = tokens_of(item)
        breaks = Lines(item.text)
        opened: list[int] = []
        last = 0
        for kind, text, start in zip(tokens.kinds, tokens.texts, tokens.starts, strict=True):
            line = first + breaks.line(start)
            match kind:
                case "LBRACE" | "LPAR" | "LSQB" | "BLOCK_PAREN":
                    opened.append(line)
                case "RBRACE" | "RPAR" | "RSQB" if opened:
                    begin = opened.pop()
                    # The closing bracket stays visible.
                    if line - 1 > begin:
                        found.add((begin, line - 1, "region"))
                case "INDENT":
                    opened.append(last)
                case "DEDENT" if opened:
                    begin = opened.pop()
                    if last > begin:
                        found.add((begin, last, "region"))
                case _:
                    pass
            if text:
                last = line + text.count("\n")
    return [Fold(*each) for each in sorted(found | _comments(analysis.text))]


def _comments(text: str) -> set[tuple[int, int, FoldKind]]:
    """Returns runs of lines that are comments, and block comments of several lines."""
    found: set[tuple[int, int, FoldKind]] = set()
    start: int | None = None
    lines = text.split("\n")
    for number, line in enumerate([*lines, ""]):
        if _LINE_COMMENT.match(line):
            start = number if start is None else start
        else:
            if start is not None and number - 1 > start:
                found.add((start, number - 1, "comment"))
            start = None
    for match in re.finditer(r"/\*.*?\*/", text, re.DOTALL):
        first = text.count("\n", 0, match.start())
        if "\n" in match[0]:
            found.add((first, first + match[0].count("\n"), "comment"))
    return found
