"""Translates positions of the protocol, in units of an encoding, to offsets and back."""

from __future__ import annotations

from bisect import bisect_right
from typing import Literal, TypeAlias

Encoding: TypeAlias = Literal["utf-8", "utf-16", "utf-32"]
"""What a client counts columns in; UTF-16 unless it says otherwise."""


class Lines:
    """The lines of a text whose line ends are `\\n`; lines and columns count from 0."""

    def __init__(self, text: str, encoding: Encoding = "utf-16"):
        self.text = text
        self.encoding: Encoding = encoding
        self.starts = [0]
        position = text.find("\n")
        while position >= 0:
            self.starts.append(position + 1)
            position = text.find("\n", position + 1)

    def offset(self, line: int, column: int) -> int:
        """Returns the offset of a column in units; the line's or the text's end for one past it."""
        if line >= len(self.starts):
            return len(self.text)
        start, end = self.starts[line], self.end(line)
        content = self.text[start:end]
        if content.isascii() or self.encoding == "utf-32":
            return start + min(column, len(content))
        count = 0
        for index, character in enumerate(content):
            if count >= column:
                return start + index
            count += units(character, self.encoding)
        return end

    def place(self, line: int, column: int) -> int:
        """Returns the offset of line and column as diagnostics have them, in characters and both from 1."""
        line = max(line, 1)
        if line > len(self.starts):
            return len(self.text)
        return min(self.starts[line - 1] + max(column, 1) - 1, self.end(line - 1))

    def end(self, line: int) -> int:
        """Returns the offset of a line's end, before its `\\n`."""
        return self.starts[line + 1] - 1 if line + 1 < len(self.starts) else len(self.text)

    def line(self, offset: int) -> int:
        """Returns the line of an offset."""
        return bisect_right(self.starts, offset) - 1

    def position(self, offset: int) -> tuple[int, int]:
        """Returns the line of an offset, and the units before it in that line."""
        line = self.line(offset)
        return line, units(self.text[self.starts[line] : offset], self.encoding)


def units(text: str, encoding: Encoding = "utf-16") -> int:
    """Returns the length of a text in units of an encoding."""
    if text.isascii() or encoding == "utf-32":
        return len(text)
    if encoding == "utf-16":
        return len(text) + sum(ord(character) > 0xFFFF for character in text)
    return len(text.encode("utf-8", "surrogatepass"))
