"""`--verify-diagnostics`: the errors that a file's comments expect against those that came.

A comment names them as MLIR's tests do, after `//` or `#`:

    // expected-error {{text}}           on this line
    // expected-error@+1 {{text}}        on the next line; @-2, @above (the line before) and @below (the line after) too
    // expected-note@12 {{text}}         on line 12
    // expected-warning 2 {{text}}       twice
    // expected-error@unknown {{text}}   at no place in the source

The text is any part of the message. Every error and warning has to be expected; a note may be.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from ..support.diagnostics import Diagnostic, file_loc, source_position

_COMMENT = re.compile(r"//|#")
_EXPECTATION = re.compile(
    r"\bexpected-(?P<severity>error|warning|note)"
    r"(?:@(?P<place>[+-]?\d{1,9}|above|below|unknown))?"
    r"[ \t]*+(?:(?P<count>\d{1,4})[ \t]*+)?\{\{(?P<text>.*?)\}\}"
)
_BEGINNING = re.compile(r"\bexpected-\w+")


@dataclass
class Expectation:
    """One diagnostic that a comment asks for; `line` is None when it has no place in the source."""

    severity: str
    line: int | None
    text: str
    written_at: int  # The comment's own line.

    def fits(self, diagnostic: Diagnostic) -> bool:
        position = source_position(diagnostic.location)
        line = None if position is None else position[1]
        return self.severity == diagnostic.severity and self.line == line and self.text in diagnostic.message


def read_expectations(text: str, name: str, first_line: int = 1) -> tuple[list[Expectation], list[Diagnostic]]:
    """Reads the expectations in the comments of `text`, and an error for each comment that is malformed."""
    expected: list[Expectation] = []
    malformed: list[Diagnostic] = []
    for number, line in enumerate(text.split("\n"), first_line):
        comment = _COMMENT.search(line) if "expected-" in line else None
        if comment is None:
            continue
        # Up to the last end of a text, so that no match begins that searches for one in vain.
        found = list(_EXPECTATION.finditer(line, comment.end(), line.rfind("}}") + 2))
        for match in found:
            place = match["place"]
            expected += [
                Expectation(match["severity"], _line(place, number), match["text"], number)
                for _ in range(int(match["count"] or 1))
            ]
        if not found and (match := _BEGINNING.search(line, comment.end())):
            message = f"'{match[0]}' is not an expectation: write expected-error, -warning or -note, then {{{{text}}}}"
            malformed.append(Diagnostic(message, file_loc(name, number, match.start() + 1)))
    return expected, malformed


def _line(place: str | None, here: int) -> int | None:
    match place:
        case None:
            return here
        case "unknown":
            return None
        case "above":
            return here - 1
        case "below":
            return here + 1
        case _:
            return here + int(place) if place[0] in "+-" else int(place)


def compare(text: str, name: str, first_line: int, found: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Returns an error for each unexpected diagnostic and each expectation that was not met."""
    expected, problems = read_expectations(text, name, first_line)
    for diagnostic in (one for whole in found for one in (whole, *whole.notes)):
        met = next((e for e in expected if e.fits(diagnostic)), None)
        if met is not None:
            expected.remove(met)
        elif diagnostic.severity != "note":
            problems.append(Diagnostic(f"unexpected {diagnostic.severity}: {diagnostic.message}", diagnostic.location))
    for missing in expected:
        at = "" if missing.line in (None, missing.written_at) else f" on line {missing.line}"
        message = f"expected {missing.severity}{at} was not produced: {missing.text}"
        problems.append(Diagnostic(message, file_loc(name, missing.written_at, 1)))
    return problems
