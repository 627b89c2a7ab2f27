"""TE text as tokens of Python: one regular expression, and the layout as NEWLINE, INDENT and DEDENT."""

from __future__ import annotations

import re

from ..lalr import Tokens

_STRING = (
    r'"""(?:[^"\\]|\\.|"(?!""))*+"""'
    r"|'''(?:[^'\\]|\\.|'(?!''))*+'''"
    r'|"(?!"")(?:[^"\\\n]|\\.)*+"'
    r"|'(?!'')(?:[^'\\\n]|\\.)*+'"
)
_TOKEN = re.compile(
    rf"""
    (?P<LINE>\r?\n(?:[ \t\f]*+(?:\#[^\r\n]*+(?:\r(?!\n)[^\r\n]*+)*+)?\r?\n)*+[ \t]*)
  | (?P<GAP>(?:[ \t\f]++|\#[^\n]*+|\\[ \t]*+\r?\n)++)
  | (?P<NAME>[^\W\d]\w*)
  | (?P<NUMBER>0[xX][\da-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+|(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?)
  | (?P<STRING>{_STRING})
  | (?P<PUNCTUATION>\*\*=|//=|<<=|>>=|\*\*|//|<<|>>|<=|>=|==|!=|->|[-+*/%&|^@]=|[-+*/%&|^~<>=()\[\]{{}},:;.@])
    """,
    re.VERBOSE | re.DOTALL,
)

_PUNCTUATION = {
    "(": "LPAR", ")": "RPAR", "[": "LSQB", "]": "RSQB", "{": "LBRACE", "}": "RBRACE", ",": "COMMA", ":": "COLON",
    ";": "SEMICOLON", "=": "EQUAL", "->": "ARROW", ".": "DOT", "@": "AT", "*": "STAR", "**": "POWER", "&": "AMPERSAND",
    "^": "CARET", "|": "BAR", "~": "TILDE", "+": "ADDITIVE", "-": "ADDITIVE", "<<": "SHIFT", ">>": "SHIFT",
    **dict.fromkeys(["/", "//", "%"], "PRODUCT"),
    **dict.fromkeys(["<", "<=", ">", ">=", "==", "!="], "COMPARE"),
    **dict.fromkeys(["**=", "//=", "<<=", ">>=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "@="], "AUGMENTED"),
}  # fmt: skip
_KEYWORDS = {
    "def": "DEF", "lambda": "LAMBDA", "return": "RETURN", "pass": "PASS", "for": "FOR", "in": "IN", "if": "IF",
    "elif": "ELIF", "else": "ELSE", "with": "WITH", "as": "AS", "and": "AND", "or": "OR", "not": "NOT", "is": "IS",
    "True": "TRUE", "False": "FALSE", "None": "NONE",
}  # fmt: skip
# Words of Python that no TE function uses.
FOREIGN = frozenset(
    [
        "import",
        "from",
        "class",
        "while",
        "try",
        "except",
        "finally",
        "raise",
        "yield",
        "del",
        "global",
        "nonlocal",
        "assert",
        "async",
        "await",
        "break",
        "continue",
    ]
)
_TAB = 8


class LexError(Exception):
    """Text that cannot be read, at `position`."""

    def __init__(self, position: int, message: str, note: str):
        super().__init__(message)
        self.position, self.message, self.note = position, message, note


def tokenize(text: str) -> Tokens:
    """All tokens of `text`. Raises LexError where none can begin and where the indentation fits nothing."""
    tokens = Tokens()
    kinds, texts, starts = tokens.kinds, tokens.texts, tokens.starts
    levels, depth, position, end = [0], 0, 0, len(text)
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None:
            raise _unreadable(text, position)
        kind, word, start = match.lastgroup, match[0], position
        position = match.end()
        if kind == "GAP":
            continue
        if kind == "LINE":
            if depth or not kinds or kinds[-1] in ("NEWLINE", "DEDENT"):
                continue
            kinds.append("NEWLINE")
            texts.append("")
            starts.append(start)
            if position < end and text[position] not in "#\r\n":
                _indent(tokens, levels, word.rsplit("\n", 1)[1], position)
            continue
        if kind == "NAME":
            kind = _KEYWORDS.get(word) or ("FOREIGN" if word in FOREIGN else "NAME")
        elif kind == "PUNCTUATION":
            kind = _PUNCTUATION[word]
            if word in "([{":
                depth += 1
            elif word in ")]}" and depth:
                depth -= 1
        kinds.append(kind or "")
        texts.append(word)
        starts.append(start)
    if kinds and kinds[-1] != "NEWLINE":
        kinds.append("NEWLINE")
        texts.append("")
        starts.append(len(text.rstrip()))
    _indent(tokens, levels, "", len(text.rstrip()))
    return tokens


def _indent(tokens: Tokens, levels: list[int], blanks: str, position: int) -> None:
    width = blanks.count(" ") + blanks.count("\t") * _TAB
    if width > levels[-1]:
        levels.append(width)
        kinds = ["INDENT"]
    else:
        kinds: list[str] = []
        while width < levels[-1]:
            levels.pop()
            kinds.append("DEDENT")
        if width != levels[-1]:
            raise LexError(
                position,
                "this line's indentation matches no line above it",
                "statements of one block start at the same column",
            )
    for kind in kinds:
        tokens.kinds.append(kind)
        tokens.texts.append("")
        tokens.starts.append(position)


def _unreadable(text: str, position: int) -> LexError:
    character = text[position]
    if character in "\"'":
        return LexError(position, "this string is never closed", f"write {character} at its end, on the same line")
    return LexError(position, f"unexpected character {character!r}", "TE functions are written in Python's syntax")
