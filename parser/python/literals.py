"""Reads literals of Python: the number or text of a token."""

from __future__ import annotations

import re
from typing import NoReturn, Protocol

from ...support.source_text import characters
from .tree import Call, Expr, Token

# Far more than any dtype holds, and fewer than Python takes long to read.
_MOST_DIGITS = 100
_ESCAPE = re.compile(r"\\(\r?\n|[0-7]{1,3}|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|N\{[^}]*\}|.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "\\": "\\", "'": "'", '"': '"'}


class Refuse(Protocol):
    """Raises a MirError at a node."""

    def __call__(self, where: Expr, message: str, /, *notes: str) -> NoReturn: ...


def number(token: Token, refuse: Refuse) -> int | float:
    """The value of a number literal."""
    text = token.replace("_", "")
    if len(text) > _MOST_DIGITS and "." not in text:
        refuse(token, "this number is too large")
    try:
        return int(text, 0)
    except ValueError:
        if text.isdigit():
            refuse(token, f"'{token}' is not a number", "a decimal integer does not begin with 0")
    try:
        return float(text)
    except ValueError:
        refuse(token, f"'{token}' is not a number")


def is_string(node: Expr | None) -> bool:
    """Returns whether a node is a string literal."""
    return (type(node) is Token and node.type == "STRING") or (isinstance(node, Call) and node.function == "+")


def string(node: Expr | None, refuse: Refuse) -> str | None:
    """The text of a string literal, or of several side by side; None for any other node."""
    if type(node) is Token and node.type == "STRING":
        try:
            return _unquoted(node)
        except (ValueError, KeyError):
            refuse(node, "this string has an escape that cannot be read")
    if isinstance(node, Call) and node.function == "+":
        return "".join(string(part, refuse) or "" for part in node.arguments)
    return None


def _unquoted(token: Token) -> str:
    prefix, quote = re.match(r"([rRuUbB]*)(\"\"\"|'''|\"|')", token).groups()  # pyright: ignore[reportOptionalMemberAccess]
    body = token[len(prefix) + len(quote) : -len(quote)]
    return body if "r" in prefix.lower() or "\\" not in body else characters(_ESCAPE.sub(_unescape, body))


def _unescape(match: re.Match[str]) -> str:
    code = match[1]
    if code[0] == "N" and len(code) > 1:
        import unicodedata

        return unicodedata.lookup(code[2:-1])
    if code[0] in "xuUN":
        # Without its digits, or of a character beyond the last one, it raises ValueError.
        return chr(int(code[1:], 16))
    if code[0] in "01234567":
        return chr(int(code, 8))
    return "" if code.endswith("\n") else _ESCAPES.get(code, match[0])
