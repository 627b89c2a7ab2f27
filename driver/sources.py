"""Reading what the commands are given: files and standard input, in whole or split into parts."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ..support.source_text import source_text, where_not_utf8
from .errors import UsageError, did_you_mean

# A line of its own that ends one part and begins the next, in either comment style of a `.mir` file.
_SEPARATOR = re.compile(r"^[ \t]*(?://|#) -----[^\n]*$", re.MULTILINE)


PACKAGE = "mirpkg"
"""The extension of packages that `mir-build` writes."""


@dataclass(frozen=True)
class Chunk:
    """A part of a file that is compiled by itself, with its first line in the file, from 1."""

    text: str
    first_line: int = 1


@dataclass(frozen=True)
class Source:
    """A text with its name in diagnostics, and the directory of its side files."""

    name: str
    text: str
    directory: Path

    def chunks(self, split: bool) -> list[Chunk]:
        """Returns the whole text, or with `split` its parts between the lines `// -----`."""
        if not split:
            return [Chunk(self.text)]
        parts: list[Chunk] = []
        start, line = 0, 1
        for separator in _SEPARATOR.finditer(self.text):
            part = self.text[start : separator.start()]
            parts.append(Chunk(part, line))
            # The rest of the separator's line is empty, and counts as the next part's first line.
            line += part.count("\n")
            start = separator.end()
        return [*parts, Chunk(self.text[start:], line)]


def read_source(path: str | None) -> Source:
    """Returns the text at `path`, or of standard input when it is None or "-".

    Raises:
        UsageError: when it cannot be read, is not UTF-8 or holds nothing.
    """
    if path is None or path == "-":
        return _decode("<stdin>", sys.stdin.buffer.read(), Path.cwd())
    with _readable(path):
        data = Path(path).read_bytes()
    return _decode(path, data, Path(path).parent)


def check_file(path: str) -> None:
    """Raises UsageError for a file that cannot be read, and for an empty one."""
    with _readable(path), open(path, "rb") as file:
        if not file.read(1):
            raise UsageError(f"{path}: is empty")


@contextmanager
def _readable(path: str) -> Generator[None]:
    """Raises UsageError instead of errors in reading the file inside."""
    try:
        yield
    except FileNotFoundError:
        raise UsageError(f"{path}: no such file{_similar_file(path)}") from None
    except IsADirectoryError:
        raise UsageError(f"{path}: is a directory, not a file") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UsageError(f"{path}: cannot be read: {reason}") from None


def _decode(name: str, data: bytes, directory: Path) -> Source:
    try:
        text = source_text(data)
    except UnicodeDecodeError as error:
        line, column, message = where_not_utf8(data, error)
        raise UsageError(f"{name}:{line}:{column}: {message}") from None
    if not text.strip():
        raise UsageError(f"{name}: is empty")
    return Source(name, text, directory)


def _similar_file(path: str) -> str:
    directory, name = os.path.split(path)
    try:
        there = os.listdir(directory or ".")
    except OSError:
        return f" (nor is there a directory {directory})" if directory else ""
    return did_you_mean(name, there)


def extension(path: str | None) -> str:
    """Returns the file's extension without its dot; standard input has none."""
    return "" if path is None or path == "-" else os.path.splitext(path)[1].removeprefix(".")
