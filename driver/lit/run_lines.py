"""Reads the RUN lines of a test whose checks are to be written."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

from ...support.diagnostics import MirError, error_at, file_loc

_LINE = re.compile(r"^(?P<before>.*?)\bRUN:(?P<text>.*)$")
_UNREADABLE = re.compile(r"\b(XFAIL|DEFINE|REDEFINE):")
# From the last bar on, where the command before may hold others.
_CHECKED = re.compile(r"(?P<command>.*[^|])\|\s*(?P<check>(?i:filecheck)\b[^|&;<>]*)", re.DOTALL)
_FORM = "checks are written for RUN lines 'COMMAND | filecheck %s [--check-prefix=NAME]'; those without filecheck are only run"


@dataclass(frozen=True)
class Run:
    """A RUN line: its command, and the prefixes of the checks of what it prints; none without filecheck."""

    line: int
    command: str
    prefixes: tuple[str, ...]
    full_lines: bool = False
    """Whether checks are compared with whole lines (`--match-full-lines`)."""
    exact_blanks: bool = False
    """Whether blanks are compared one by one (`--strict-whitespace`)."""


def read_runs(text: str, name: str) -> list[Run]:
    """Returns the RUN lines of a test. Raises MirError at one whose checks cannot be written."""
    runs: list[Run] = []
    pending, start = "", 0
    for number, line in enumerate(text.split("\n"), 1):
        if found := _UNREADABLE.search(line):
            raise _refused(name, number, found.start() + 1, f"checks are not written for a test with {found[1]}:")
        match = _LINE.match(line)
        if match is None:
            continue
        if not pending:
            start = number
        pending += match["text"].strip()
        if pending.endswith("\\"):
            pending = pending[:-1]
            continue
        runs.append(_read(pending, name, start, match.start("text") + 2))
        pending = ""
    if pending:
        raise _refused(name, start, 1, "the last RUN line is continued, and nothing follows")
    if not any(run.prefixes for run in runs):
        raise _refused(name, 1, 1, "there is no RUN line with filecheck: nothing says which output is checked")
    return runs


def _read(text: str, name: str, line: int, column: int) -> Run:
    if not re.search(r"(?i)\bfilecheck\b", text):
        return Run(line, text, ())
    match = _CHECKED.fullmatch(text)
    if match is None or re.search(r"\|\s*filecheck\b", match["command"]):
        raise _refused(name, line, column, "this RUN line does not pipe its output into one filecheck at its end")
    prefixes: list[str] = []
    full_lines = exact_blanks = False
    words = iter(_words(match["check"], name, line, column)[1:])
    for word in words:
        option, equals, value = word.partition("=")
        match option.lstrip("-") if option.startswith("-") else "":
            case "check-prefix" | "check-prefixes":
                prefixes += (value if equals else next(words, "")).split(",")
            case "match-full-lines":
                full_lines = True
            case "strict-whitespace":
                exact_blanks = True
            case "dump-input" if equals:
                pass
            case _ if word == "%s":
                continue
            case _:
                raise _refused(name, line, column, f"checks are not written for filecheck with {word}")
    return Run(line, match["command"].strip(), tuple(prefixes) or ("CHECK",), full_lines, exact_blanks)


def _words(text: str, name: str, line: int, column: int) -> list[str]:
    try:
        words = shlex.split(text)
    except ValueError:
        words = []
    if "%s" not in words:
        raise _refused(name, line, column, "this RUN line's filecheck does not read its checks from %s")
    return words


def _refused(name: str, line: int, column: int, message: str) -> MirError:
    return error_at(file_loc(name, line, column), message, _FORM)
