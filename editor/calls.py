"""Finds the call around a place, and the parameter that an argument is for."""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..parser.lalr import Tokens

if TYPE_CHECKING:
    from ..dialects.schedule import Signature

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


def primitive(word: str, te: bool = False) -> Signature | None:
    """Returns the signature of the primitive that a word such as `sch.split` or `.split` ends with."""
    from ..dialects.schedule import signatures
    from ..dialects.schedule.signature_table import te_signatures

    name = word.rpartition(".")[2]
    if not te:
        return signatures().get(name)
    return next((each for each in te_signatures().values() if each.name == name), None)


_CALL = re.compile(r"\.(\w+)\(([^()]*(?:\([^()]*\)[^()]*)*)$")
_NESTED = re.compile(r"\([^()]*\)|\[[^\]]*\]")


def kind_of_argument(before: str) -> str | None:
    """Returns the kind of the parameter that an argument of a primitive is for, by the line before it.

    `sch.cache_read(b, ` → "int | str", as the table of signatures has it.
    """
    call = _CALL.search(before)
    signature = None if call is None else primitive(call[1])
    if call is None or signature is None:
        return None
    keyword = re.search(r"(\w+)\s*=\s*$", before)
    if keyword is not None:
        parameter = signature.by_name.get(keyword[1])
    else:
        number = _NESTED.sub("", call[2]).count(",")
        parameter = signature.parameters[number] if number < len(signature.parameters) else None
    return None if parameter is None else parameter.kind
