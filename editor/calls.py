"""Finds the call around a place in an item's tokens."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

from ..parser.lalr import Tokens

_OPEN = frozenset(["LPAR", "BLOCK_PAREN", "LSQB", "LBRACE"])
_CLOSE = frozenset(["RPAR", "RSQB", "RBRACE"])


@dataclass(frozen=True)
class Around:
    """A call around a place: the token of its name, its keywords, the number of the argument."""

    name: str
    token: int
    keywords: frozenset[str]
    argument: int
    """How many commas of the call are before the place."""


def call_around(tokens: Tokens, offset: int) -> Around | None:
    """Returns the innermost call around an offset; None outside of calls."""
    at = bisect_left(tokens.starts, offset) - 1
    depth, commas = 0, 0
    # A lone list, `axis=[0, …`, is part of an argument of the call around it.
    for index in range(at, -1, -1):
        kind = tokens.kinds[index]
        if kind in _CLOSE and tokens.starts[index] < offset:
            depth += 1
        elif kind in _OPEN:
            if depth > 0:
                depth -= 1
            elif kind == "LPAR" and index > 0 and tokens.kinds[index - 1] in ("NAME", "MEMBER"):
                name = tokens.texts[index - 1]
                return Around(name, index - 1, _keywords(tokens, index), commas)
            elif kind == "LBRACE":
                return None
            else:
                commas = 0
        elif kind == "COMMA" and depth == 0:
            commas += 1
        elif kind in ("SEMICOLON", "INDENT", "DEDENT") and depth == 0:
            return None
    return None


def _keywords(tokens: Tokens, opening: int) -> frozenset[str]:
    """Returns the names of `name=…` in a call, up to its end."""
    found: set[str] = set()
    depth = 0
    for index in range(opening, len(tokens.kinds)):
        kind = tokens.kinds[index]
        depth += (kind in _OPEN) - (kind in _CLOSE)
        if depth == 0 or kind == "SEMICOLON":
            break
        if depth == 1 and kind == "KEY":
            found.add(tokens.texts[index].rstrip("= \t"))
        elif depth == 1 and kind == "EQUAL":
            found.add(tokens.texts[index - 1])
    return frozenset(found)
