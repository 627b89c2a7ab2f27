"""TVMScript as tokens: one regular expression over the text, Python's layout as NEWLINE, INDENT and DEDENT."""

from __future__ import annotations

import re

from ..lalr import Tokens

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
# Words of Python that no TVMScript uses, and what to do instead.
FOREIGN = {
    "import": "imports stand at the top of the file",
    "from": "imports stand at the top of the file",
    "try": "a program cannot catch errors",
    "except": "a program cannot catch errors",
    "finally": "a program cannot catch errors",
    "raise": 'write assert condition, "message"',
    "break": "leave a loop by its condition: write a while loop",
    "continue": "put the rest of the body under an if",
    "yield": "a prim_func returns at most one scalar, with return",
    "del": "a buffer lives until the end of its block",
    "is": "write '==' to compare",
    "global": "write a buffer to share a value",
    "nonlocal": "write a buffer to share a value",
    "async": 'write T.attr(0, "async_scope", 1)',
    "await": 'write T.attr(0, "async_wait_queue_scope", 0)',
}
_WORDS = _KEYWORDS | dict.fromkeys(FOREIGN, "FOREIGN")
# Behind one of these an operator is infix, elsewhere it is a prefix (or a decorator's `@`).
_OPERANDS = frozenset(["NAME", "NUMBER", "STRING", "MEMBER", "RPAR", "RSQB", "RBRACE"])
_TAB = 8


class LexError(Exception):
    """Text that cannot be read, at `position`."""

    def __init__(self, position: int, message: str, note: str):
        super().__init__(message)
        self.position, self.message, self.note = position, message, note


def tokenize(text: str) -> tuple[Tokens, list[int]]:
    """All tokens of `text`, and the indices of those brackets among them that are never closed.

    Raises LexError where no token can begin and where the indentation fits nothing.
    """
    tokens = Tokens()
    kinds, texts, starts = tokens.kinds, tokens.texts, tokens.starts
    words, punctuation, operands = _WORDS, _PUNCTUATION, _OPERANDS
    brackets: list[int] = []
    levels = [len(_indentation(text, 0))]
    match_at, position, end = _TOKEN.match, 0, len(text)
    previous = "NEWLINE"
    while position < end:
        match = match_at(text, position)
        if match is None:
            position = _BLANK.match(text, position).end()  # pyright: ignore[reportOptionalMemberAccess]
            if position < end:
                raise _unreadable(text, position)
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
    return tokens, brackets


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


def _unreadable(text: str, position: int) -> LexError:
    character = text[position]
    if character in "\"'":
        return LexError(position, "this string is never closed", f"write {character} at its end, on the same line")
    if text.startswith(":=", position):
        return LexError(position, "TVMScript has no ':='", "write the assignment as a statement of its own")
    return LexError(position, f"unexpected character {character!r}", "TVMScript is written in Python's syntax")
