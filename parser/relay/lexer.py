"""Splits Relay text into tokens by one regular expression, then finds the kinds of words by table.

Blanks, comments (`//…` and `/*…*/`, where TVM prints types and spans) make no tokens. Nothing depends on the parser's
state; the text around decides between two readings (`-1` is a number unless an operand precedes it).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..lalr import LexError, Tokens

_NAME = r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*"
_QUOTED = r'"(?:[^"\\\n]|\\.)*+"'
# Blanks and comments; a comment that holds another one is left to `_after_comment`. Possessive: a gap that no token follows is
# not tried again in parts, which would take time exponential in its length.
_GAP = r"[ \t\r\n]++|//[^\n]*+|/\*[^*/]*+(?:(?:\*(?!/)|/(?!\*))[^*/]*+)*+\*/"
_SUFFIX = r"(?:f(?:16|32|64)?|bf16|[iu](?:1|4|8|16|32|64))?"

_TOKEN = re.compile(
    rf"""
    (?:{_GAP})*+                                      # not a group: what separates tokens
    (?:
      (?P<COMMA>,) | (?P<RPAR>\)) | (?P<SEMICOLON>;)  # the most frequent first
    | (?P<BIND_GRAPH>%[0-9]+(?=[ \t\r\n]*=[^=>])[ \t\r\n]*=)
    | (?P<GRAPH>%[0-9]+)
    | (?P<LOCAL>%(?:[A-Za-z_][A-Za-z0-9_]*|{_QUOTED}))
    | (?P<GLOBAL>@(?:{_NAME}|{_QUOTED}))
    | (?P<TENSOR>Tensor[ ]?\[[ ]?\((?:[^()"]++|\([^()]*+\))*+\),[ ]?[a-z0-9_]+[ ]?\])
    | (?P<NUMBER>(?:(?<![\w)\]"][ ])(?<![\w)\]"])-)?
        (?:[0-9]+(?:\.[0-9]+|\.(?![0-9A-Za-z_]))?(?:[eE][+-]?[0-9]+)?{_SUFFIX} | (?:inf|nan)f(?:16|32|64)?)(?![A-Za-z0-9_]))
    | (?P<KEY>(?!_[ \t]*=){_NAME}[ \t]*=(?![=>]))
    | (?P<MATCH>match\??(?![A-Za-z0-9_.]))
    | (?P<NAME>{_NAME})
    | (?P<PROJECTION>\.[0-9]+)
    | (?P<STRING>{_QUOTED})
    | (?P<BLOCK_PAREN>\((?=[ \t\r\n]*(?:let\b|%[0-9]+[ \t\r\n]*=[^=>])))
    | (?P<LPAR>\()
    | (?P<PUNCTUATION>->|=>|==|!=|<=|>=|[-+*<>={{}}\[\]:]|/(?!\*))
    )
    """,
    re.VERBOSE | re.DOTALL,
)
_BLANK = re.compile(f"(?:{_GAP})*+")
_COMMENT_MARK = re.compile(r"/\*|\*/")

_PUNCTUATION = {
    "{": "LBRACE", "}": "RBRACE", "[": "LSQB", "]": "RSQB", ":": "COLON", "=": "EQUAL", "->": "ARROW",
    "=>": "FAT_ARROW",
    **dict.fromkeys(["+", "-", "*", "/", "<", ">", "<=", ">=", "==", "!="], "INFIX"),
}  # fmt: skip
KEYWORDS = {
    "def": "DEF", "fn": "FN", "let": "LET", "if": "IF", "else": "ELSE", "type": "TYPE",
    "extern": "EXTERN", "free_var": "FREE_VAR", "meta": "META", "ref": "REF", "None": "NONE", "True": "TRUE",
    "False": "FALSE", "_": "UNDERSCORE",
}  # fmt: skip
SCALARS = frozenset(
    ["bool", "handle", "bfloat16", "float8_e4m3fn", "float8_e5m2", "e4m3_float8", "e5m2_float8"]
    + ["float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn"]
    + [f"{kind}{bits}" for kind in ("int", "uint", "float") for bits in (1, 2, 4, 8, 16, 32, 64)]
)


def tokenize(text: str, start: int = 0) -> Tokens:
    """Splits `text` into tokens from position `start`; `#[…]` lines are already cut off.

    Raises:
        LexError: where no token can begin.
    """
    tokens = Tokens()
    kinds, texts, starts = tokens.kinds, tokens.texts, tokens.starts
    keywords, scalars, punctuation = KEYWORDS, SCALARS, _PUNCTUATION
    position, end = start, len(text)
    while position < end:
        for match in _matches(text, position):
            kind = str(match.lastgroup)
            word = match[kind]
            if kind == "NAME":
                kind = keywords.get(word) or ("SCALAR" if word in scalars else "NAME")
            elif kind == "PUNCTUATION":
                kind = punctuation[word]
            elif kind == "KEY" and kinds and kinds[-1] in ("COLON", "ARROW"):
                # `let %x: int32 = …`: a type and what follows it.
                name = word[:-1].rstrip()
                kinds.append("SCALAR" if name in scalars else "NAME")
                texts.append(name)
                starts.append(match.start("KEY"))
                kind, word = "EQUAL", "="
            kinds.append(kind)
            texts.append(word)
            position = match.end()
            starts.append(position - len(word))
        position = _BLANK.match(text, position).end()  # type: ignore[union-attr]  # it matches the empty text
        if text.startswith("/*", position):
            position = _after_comment(text, position)
        elif position < end:
            raise LexError(position, _complaint(text, position))
    return tokens


def _matches(text: str, position: int) -> Iterator[re.Match[str]]:
    """Yields adjacent matches of `_TOKEN`, up to where none begins."""
    # `scanner` is what finditer is made of, without its skipping; typeshed does not know it.
    return iter(_TOKEN.scanner(text, position).match, None)  # type: ignore[attr-defined]  # pyright: ignore


def _after_comment(text: str, start: int) -> int:
    """Returns the position after a comment that holds other comments."""
    depth = 0
    for mark in _COMMENT_MARK.finditer(text, start):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return mark.end()
    raise LexError(start, "this comment is not closed: '*/' is missing")


def _complaint(text: str, position: int) -> str:
    """Why no token begins here."""
    rest = text[position : position + 24]
    if rest.startswith('"'):
        return "this string is not closed on its line"
    if rest.startswith("Tensor"):
        return "a tensor's type is written Tensor[(2, 3), float32]: its shape in parentheses, then its dtype"
    if rest[0] in "%@":
        kind = "a local name: %x or %0" if rest[0] == "%" else "a global name: @main"
        return f"'{rest[0]}' must begin {kind}"
    number = re.match(r"-?[0-9][\w.]*", rest)
    if number:
        return f"'{number[0]}' is not a number; numbers are written 3, 3i64, 1u8, 1f, 2.5f, 1e-05f, 1f64, 0f16"
    if rest[0].isalpha():
        return f"'{rest[0]}' is not a letter of a plain name; write the name in quotes, like %\"…\""
    if rest[0] in "“”‘’'":
        return f'{rest[0]} is not a quote of Relay; a string is written "…"'
    return f"'{rest[0]}' has no meaning in Relay text"
