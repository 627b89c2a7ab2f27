"""Splits Python into tokens by one regular expression; the layout becomes NEWLINE, INDENT and DEDENT."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from ..lalr import LexError, Tokens

_STRING = (
    r"[rRuUbB]{0,2}(?:"
    r'"""[^"\\]*+(?:(?:\\.|"(?!""))[^"\\]*+)*+"""'
    r"|'''[^'\\]*+(?:(?:\\.|'(?!''))[^'\\]*+)*+'''"
    r'|"(?!"")[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"'
    r"|'(?!'')[^'\\\n]*+(?:\\.[^'\\\n]*+)*+')"
)
_TOKEN = re.compile(
    rf"""
    (?:[ \t\f]++|\\[ \t]*+\r?\n)*+                    # not a group: what separates tokens
    (?:
      (?P<STRING>{_STRING})
    | (?P<NAME>[^\W\d]\w*(?:\.[^\W\d]\w*)*)
    | (?P<PUNCTUATION>[()\[\]{{}},;]|:(?!=)|->)
    | (?P<NUMBER>0[xX][\da-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+|(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?)
    | (?P<NEWLINE>(?:\#[^\n]*)?\r?\n(?:[ \t\f]*(?:\#[^\n]*)?\r?\n)*)
    | (?P<AUGMENTED>(?:\*\*|//|<<|>>|[-+*/%&|^@])=)
    | (?P<OPERATOR>\*\*|//|<<|>>|<=|>=|==|!=|[-+*/%<>&|^@~])
    | (?P<EQUAL>=)
    | (?P<MEMBER>\.[^\W\d]\w*)
    | (?P<COMMENT>\#[^\n]*)
    )
    """,
    re.VERBOSE | re.DOTALL,
)
_BLANK = re.compile(r"(?:[ \t\f]++|\\[ \t]*+\r?\n)*+")
_SPACES = re.compile(r"[ \t\f]*")
_PUNCTUATION = {
    "(": "LPAR", ")": "RPAR", "[": "LSQB", "]": "RSQB", "{": "LBRACE", "}": "RBRACE", ",": "COMMA", ":": "COLON",
    ";": "SEMICOLON", "->": "ARROW",
}  # fmt: skip
_KEYWORDS = {
    "and": "OPERATOR", "or": "OPERATOR", "not": "PREFIX", "as": "AS", "assert": "ASSERT", "class": "CLASS", "def": "DEF",
    "elif": "ELIF", "else": "ELSE", "for": "FOR", "if": "IF", "in": "IN", "lambda": "LAMBDA", "pass": "PASS",
    "return": "RETURN", "while": "WHILE", "with": "WITH",
}  # fmt: skip
# Behind one of these an operator is infix, elsewhere it is a prefix (or a decorator's `@`).
_OPERANDS = frozenset(["NAME", "NUMBER", "STRING", "MEMBER", "RPAR", "RSQB", "RBRACE"])
_TAB = 8
_DEPTHS = {"LPAR": 1, "LSQB": 1, "LBRACE": 1, "RPAR": -1, "RSQB": -1, "RBRACE": -1}

Mistake = tuple[str, str, tuple[str, ...]]
"""What is wrong, what to write, and texts with just that mistake as their first error."""


@dataclass(frozen=True, eq=False)
class Language:
    """A language in Python's syntax: TVMScript (and schedules), TE."""

    name: str
    """As messages have it: "TVMScript", "a TE function"."""
    foreign: Mapping[str, str]
    """Words of Python that it does not have, and what to write instead."""
    number: str
    """How a number of another dtype than its literal's is written."""
    conditional: tuple[str, str] = ("", "")
    """What to say, and to write, of `a if b else c` where it does not compute."""
    mistakes: tuple[Mistake, ...] = ()
    """Further syntax errors that are answered in its own terms."""
    computes: bool = False
    """Whether it is carried out as Python is: with `*x`, `a if b else c`, `a = b = c` and nested functions."""

    @cached_property
    def words(self) -> dict[str, str]:
        """The kinds of the tokens that words are, other than names."""
        return _KEYWORDS | dict.fromkeys(self.foreign, "FOREIGN")


def tokenize(text: str, language: Language) -> tuple[Tokens, list[int]]:
    """All tokens of `text`, and the indices of those brackets among them that are never closed.

    Raises LexError where no token can begin and where the indentation fits nothing.
    """
    tokens = Tokens()
    kinds, texts, starts = tokens.kinds, tokens.texts, tokens.starts
    words, punctuation, operands = language.words, _PUNCTUATION, _OPERANDS
    brackets: list[int] = []
    levels = [len(_indentation(text, 0))]
    match_at, position, end = _TOKEN.match, 0, len(text)
    previous = "NEWLINE"
    while position < end:
        match = match_at(text, position)
        if match is None:
            position = _BLANK.match(text, position).end()  # pyright: ignore[reportOptionalMemberAccess]
            if position < end:
                raise _unreadable(text, position, language)
            break
        kind = match.lastgroup or ""
        word: str = match[kind]
        position = match.end()
        if kind == "NAME":
            kind = words.get(word, "NAME")
        elif kind == "PUNCTUATION":
            kind = punctuation[word]
            if word in "([{":
                brackets.append(len(kinds))
            elif word in ")]}" and brackets:
                brackets.pop()
        elif kind == "OPERATOR":
            if word == "~" or previous not in operands:
                kind = "AT" if word == "@" else "PREFIX" if word in "-+~*" else "OPERATOR"
        elif kind == "NEWLINE":
            if brackets or previous == "NEWLINE":
                continue
            kinds.append("NEWLINE")
            texts.append("")
            starts.append(position - len(word))
            previous = "NEWLINE"
            if position < end:
                _indent(tokens, levels, text, position)
            continue
        elif kind == "COMMENT":
            continue
        kinds.append(kind)
        texts.append(word)
        starts.append(position - len(word))
        previous = kind
    if previous != "NEWLINE" and not brackets:
        kinds.append("NEWLINE")
        texts.append("")
        starts.append(end)
    for _ in range(len(levels) - 1):
        kinds.append("DEDENT")
        texts.append("")
        starts.append(end)
    if language.computes:
        _mark_computing(tokens)
    return tokens, brackets


def _mark_computing(tokens: Tokens) -> None:
    """Marks tokens that only computing languages have, so that syntax errors of the others name them."""
    kinds, texts = tokens.kinds, tokens.texts
    depth, assigned, defined, previous = 0, False, False, "NEWLINE"
    for at, kind in enumerate(kinds):
        depth += _DEPTHS.get(kind, 0)
        if kind == "PREFIX" and texts[at] == "*":
            kinds[at] = "STAR"
        elif kind == "IF" and previous in _OPERANDS:
            kinds[at] = "TERNARY"
        elif kind == "EQUAL" and depth == 0:
            kinds[at] = "CHAINED" if assigned else "EQUAL"
            assigned = True
        elif kind in ("NEWLINE", "SEMICOLON"):
            assigned = False
        elif kind == "DEF":
            kinds[at] = "INNER" if defined else "DEF"
            defined = True
        previous = kind


def _indentation(text: str, position: int) -> str:
    blanks = _SPACES.match(text, position)
    return blanks[0].expandtabs(_TAB) if blanks else ""


def _indent(tokens: Tokens, levels: list[int], text: str, position: int) -> None:
    """INDENT or DEDENTs for the line that begins at `position`; none for a comment at the end of the text."""
    width = len(_indentation(text, position))
    first = _BLANK.match(text, position).end()  # pyright: ignore[reportOptionalMemberAccess]
    if first >= len(text) or text[first] == "#":
        return
    kinds: list[str] = []
    if width > levels[-1]:
        levels.append(width)
        kinds.append("INDENT")
    while width < levels[-1]:
        levels.pop()
        kinds.append("DEDENT")
    if width != levels[-1]:
        raise LexError(
            first,
            "this line's indentation matches no line above it",
            "statements of one block start at the same column",
        )
    for kind in kinds:
        tokens.kinds.append(kind)
        tokens.texts.append("")
        tokens.starts.append(first)


def _unreadable(text: str, position: int, language: Language) -> LexError:
    character = text[position]
    if character in "\"'":
        return LexError(position, "this string is never closed", f"write {character} at its end, on the same line")
    if text.startswith(("!", "||"), position):
        return LexError(position, f"unexpected character {character!r}", "conditions are joined by and, or and not")
    if text.startswith(":=", position):
        return LexError(position, f"{language.name} has no ':='", "write the assignment as a statement of its own")
    return LexError(position, f"unexpected character {character!r}", f"{language.name} is written in Python's syntax")
