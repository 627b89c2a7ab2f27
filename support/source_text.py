"""Text of programs as every reader takes it, whatever editor wrote it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .diagnostics import Diagnostic, MirError, file_loc, unknown_location

if TYPE_CHECKING:
    from xdsl.dialects.builtin import LocationAttr

_SURROGATE = re.compile("[\ud800-\udfff]")


def source_text(text: str | bytes) -> str:
    """Returns a text without a byte order mark, with `\\n` at the end of each line (not `\\r\\n` or `\\r`).

    Raises UnicodeDecodeError for bytes that are not UTF-8.
    """
    text = text if isinstance(text, str) else text.decode("utf-8")
    text = text.removeprefix("\ufeff")
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def where_not_utf8(data: bytes, error: UnicodeDecodeError) -> tuple[int, int, str]:
    """Returns line and column, from 1, of the first byte that is not UTF-8, and a description of it."""
    start = data.rfind(b"\n", 0, error.start) + 1
    column = len(data[start : error.start].decode("utf-8")) + 1
    return data.count(b"\n", 0, error.start) + 1, column, f"is not UTF-8 text: byte 0x{data[error.start]:02x}"


def refuse_surrogates(text: str, name: str, first_line: int = 1):
    """Raises MirError at the first character that is half a pair of UTF-16, which no file can hold."""
    found = None if text.isascii() else _SURROGATE.search(text)
    if found is not None:
        before = text[: found.start()]
        line, column = before.count("\n"), found.start() - before.rfind("\n")
        raise MirError(_surrogate(found[0], file_loc(name, first_line + line, column)))


def characters(text: str) -> str:
    """Returns the value of a program's string. Raises MirError if it has half a pair of UTF-16."""
    found = None if text.isascii() else _SURROGATE.search(text)
    if found is not None:
        raise MirError(_surrogate(found[0]))
    return text


def _surrogate(character: str, location: LocationAttr | None = None) -> Diagnostic:
    message = f"U+{ord(character):04X} is not a character by itself"
    return Diagnostic(message, location or unknown_location()).with_note(
        "it is half of a pair of UTF-16; write the character"
    )


def text_bytes(text: str) -> bytes:
    """Encodes a text as UTF-8, with the lone surrogates that file names and escapes may hold."""
    return text.encode("utf-8", "surrogatepass")
