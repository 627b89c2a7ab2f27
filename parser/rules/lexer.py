"""Rule text as tokens, in one sweep."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..lalr import LexError, Tokens

_TOKEN = re.compile(
    r"""
    (?P<GAP>(?:\s++|//[^\n]*+)++)
  | (?P<COMMENT>/\*(?:[^*]|\*(?!/))*+\*/)
  | (?P<LOCAL>%[A-Za-z_0-9][A-Za-z_0-9]*)
  | (?P<ATTR>\$[A-Za-z_]\w*)
  | (?P<GLOBAL>@[A-Za-z_][\w.]*)
  | (?P<NUMBER>0[xX][\da-fA-F]+|(?:\d+\.\d*|\d+)(?:[eE][+-]?\d+)?)
  | (?P<DOTINT>\.\d+)
  | (?P<ELLIPSIS>\.\.\.)
  | (?P<NAME>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)
  | (?P<STRING>"(?:[^"\\\n]|\\.)*+")
  | (?P<PUNCTUATION>=>|->|\*\*|<=|>=|==|!=|[-+*%<>=()\[\]{},:.;?]|/(?!\*))
    """,
    re.VERBOSE,
)

_PUNCTUATION = {
    "=>": "FATARROW", "->": "ARROW", "?": "QUESTION", "(": "LPAR", ")": "RPAR", "[": "LSQB", "]": "RSQB", "{": "LBRACE", "}": "RBRACE", ",": "COMMA",
    ":": "COLON", "=": "EQUAL", ".": "DOT", "**": "POWER", "+": "ADDITIVE", "-": "ADDITIVE", ";": "SEMICOLON",
    **dict.fromkeys(["*", "/", "%"], "PRODUCT"),
    **dict.fromkeys(["<", "<=", ">", ">=", "==", "!="], "COMPARE"),
}  # fmt: skip
_KEYWORDS = {
    "rewrite": "REWRITE", "ruleset": "RULESET", "include": "INCLUDE", "benefit": "BENEFIT", "for": "FOR", "where": "WHERE",
    "and": "AND", "or": "OR", "not": "NOT", "in": "IN", "if": "IF", "else": "ELSE", "True": "TRUE", "False": "FALSE", "None": "NONE", "_": "UNDERSCORE",
}  # fmt: skip
CLAUSES = {
    "type": "TYPE", "kind": "KIND", "compute": "COMPUTE", "gradient": "GRADIENT", "onnx": "ONNX", "doc": "DOC",
}  # fmt: skip
"""Words that begin a clause of an operator, and are names anywhere else."""
_ENDS_VALUE = {
    "LOCAL",
    "ATTR",
    "NUMBER",
    "RPAR",
    "RSQB",
    "DOTINT",
    "NAME",
    "STRING",
    "TRUE",
    "FALSE",
    "NONE",
    "UNDERSCORE",
}
INFIX = {
    "+": "add", "-": "sub", "*": "mul", "/": "truediv", "%": "mod",
    "<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne",
}  # fmt: skip
"""Infix operators by the name of their function."""


def tokenize(text: str) -> Tokens:
    """All tokens of `text`. Raises LexError where none can begin.

    `//` begins a comment, as in Relay's text; integer division is `floordiv(a, b)`.
    """
    tokens = Tokens()
    kinds, texts, starts = tokens.kinds, tokens.texts, tokens.starts
    position, end = 0, len(text)
    is_operator = False
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None:
            raise _unreadable(text, position)
        kind, word, start = match.lastgroup or "", match[0], position
        position = match.end()
        if kind in ("GAP", "COMMENT"):
            continue
        if kind == "NAME":
            kind = _KEYWORDS.get(word, "NAME")
            if word == "operator" and not kinds:
                kind, is_operator = "OPERATOR", True
            elif is_operator and word in CLAUSES and begins_clause(kinds):
                kind = CLAUSES[word]
            if kind == "WHERE" and kinds and kinds[-1] not in _ENDS_VALUE:
                kind = "NAME"  # Relay's operator.
            if kind == "REWRITE" and texts and texts[-1] == "fast":
                kinds[-1] = "FAST"  # A keyword nowhere else.
            if word == "rule" and texts in ([], ["optional"]):
                kinds[:], kind = ["OPTIONAL"] * len(kinds), "RULE"
        elif kind == "PUNCTUATION":
            kind = _PUNCTUATION[word]
        kinds.append(kind)
        texts.append(word)
        starts.append(start)
    return tokens


def begins_clause(kinds: Sequence[str]) -> bool:
    """Returns whether a clause of an operator may begin after tokens: its brace, or another clause."""
    return "LBRACE" in kinds and kinds[-1] in {"LBRACE", "GLOBAL", *_ENDS_VALUE}


def _unreadable(text: str, position: int) -> LexError:
    rest = text[position:]
    if rest.startswith("/*"):
        return LexError(position, "this comment is never closed", "write '*/' where it ends")
    if rest.startswith('"'):
        return LexError(position, "this string is never closed", "a string ends on its line, with a quote")
    if rest.startswith("$"):
        return LexError(position, "a name is missing after '$'", "attributes of a pattern are written $axis")
    if rest[0] == "'":
        return LexError(position, f"unexpected character {rest[0]!r}", 'a string is written "…"')
    if rest[0] in "&|!~":
        return LexError(position, f"unexpected character {rest[0]!r}", "conditions are joined by and, or and not")
    return LexError(
        position, f"unexpected character {rest[0]!r}", "a rule is: rewrite @name { lhs => rhs where condition }"
    )
