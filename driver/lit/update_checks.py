"""Rewrites the CHECK lines of tests from what their RUN lines print: `--update-checks`."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from ...support.diagnostics import error_at, file_loc
from ...support.source_text import where_not_utf8
from .check_lines import ABOVE, ITEM, Item, Style, check_lines
from .lit_test import LitTest
from .run_lines import Run, read_runs

NOTE = "NOTE: the checks are written by `python -m mirstack.lit --update-checks`"
_NOWHERE = -1
_ROUNDS = 4
"""Line numbers in an output move with the checks above them: it is written again until it stays."""


def update_checks(test: LitTest, force: bool) -> bool:
    """Writes the checks of a test into its file; returns whether the file has changed.

    The file is as before where MirError is raised: at RUN lines that cannot be followed, at checks written by hand (unless
    `force`), and where the test fails with its new checks.
    """
    path = test.path
    before = _read(path, test.name)
    runs = read_runs(before, test.name)
    prefixes = sorted({prefix for run in runs for prefix in run.prefixes})
    if not force:
        _refuse_written_by_hand(before, prefixes, test.name)
    text, written = before, False
    try:
        for _ in range(_ROUNDS):
            outputs = [test.output(run) for run in runs]
            after = _with_checks(before, runs, outputs, prefixes, test)
            if after == text:
                break
            text = after
            path.write_text(text, encoding="utf-8", newline="")
        test.check()
        written = True
    finally:
        if not written:
            path.write_text(before, encoding="utf-8", newline="")
    return text != before


def _read(path: Path, name: str) -> str:
    """Returns the text of a file with its own ends of lines. Raises MirError for one that is not UTF-8."""
    data = path.read_bytes()
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line, column, message = where_not_utf8(data, error)
        raise error_at(file_loc(name, line, column), message) from None
    if "\r" in text:
        raise error_at(file_loc(name, 1, 1), "lines of this file end in \\r\\n", "write them with \\n alone: dos2unix")
    return text


def _directive(prefixes: Sequence[str]) -> re.Pattern[str]:
    names = "|".join(map(re.escape, prefixes))
    return re.compile(rf"^\s*(?://|#|;+)\s*(?:{names})(?P<kind>-(?:[A-Z]+)(?:-\d+)?)?(?:\{{LITERAL\}})?:")


def _refuse_written_by_hand(text: str, prefixes: Sequence[str], name: str) -> None:
    directive = _directive(prefixes)
    is_generated = NOTE in text
    for number, line in enumerate(text.split("\n"), 1):
        match = directive.match(line)
        if match and not (is_generated and match["kind"] in (None, "-LABEL", "-SAME", "-NEXT", "-EMPTY")):
            raise error_at(
                file_loc(name, number, 1),
                "this check was written by hand, and the file is left as it is",
                "--force replaces all checks of the file by those of its whole output",
            )


def _with_checks(
    before: str, runs: Sequence[Run], outputs: Sequence[str], prefixes: Sequence[str], test: LitTest
) -> str:
    """Returns the text of the test with the checks of these outputs instead of those that it had."""
    directive = _directive(prefixes)
    kept = [line for line in before.split("\n") if not directive.match(line) and NOTE not in line]
    # A block of checks at the end of the file has an empty line before it.
    while len(kept) > 1 and not kept[-1] and not kept[-2]:
        kept.pop()
    first = next(number for number, line in enumerate(kept) if "RUN:" in line)
    comment = kept[first].partition("RUN:")[0].strip() or "//"
    kept.insert(first, f"{comment} {NOTE}")
    above: dict[int, list[str]] = {}
    below: list[str] = []
    for prefix in _prefixes_used(runs, outputs, test.name):
        index = next(number for number, run in enumerate(runs) if prefix in run.prefixes)
        run, output = runs[index], outputs[index]
        folders = (f"{test.path.parent}{os.sep}", f"{test.folder}{os.sep}")
        items = check_lines(output, Style(prefix, comment, run.full_lines, run.exact_blanks, folders))
        places = _places(kept, items) if test.path.suffix in (".mir", ".mlir") else None
        if places is None:
            below += ["", *(line for item in items for line in item.lines)]
            continue
        for number, item in enumerate(items):
            above.setdefault(places[number], []).extend(item.lines)
    lines = [each for number, line in enumerate(kept) for each in (*above.get(number, ()), line)]
    while below and lines and not lines[-1]:
        lines.pop()
    return "\n".join([*lines, *below, ""] if below else lines)


def _prefixes_used(runs: Sequence[Run], outputs: Sequence[str], name: str) -> list[str]:
    """Returns the prefixes that need checks: of each RUN line the first whose other lines print the same."""
    printed = list(zip(runs, outputs, strict=True))
    used: list[str] = []
    for run, output in printed:
        differs = {
            prefix: [o.line for o, p in printed if prefix in o.prefixes and p != output] for prefix in run.prefixes
        }
        alike = next((prefix for prefix, lines in differs.items() if not lines), None)
        if alike is not None and alike not in used:
            used.append(alike)
        elif differs and alike is None:
            prefix, lines = list(differs.items())[-1]
            raise error_at(
                file_loc(name, run.line, 1),
                f"this RUN line and that of line {lines[0]} print different texts, and both are checked by {prefix}",
                f"give each a prefix of its own: filecheck %s --check-prefix={prefix}2",
            )
    return used


def _places(lines: Sequence[str], items: Sequence[Item]) -> list[int] | None:
    """Returns the lines above which items' checks are written; None in another order than the source's."""
    places: list[int] = []
    at = next(number for number, line in enumerate(lines) if "RUN:" in line)
    while at < len(lines) and "RUN:" in lines[at]:
        at += 1
    for item in items:
        if item.name:
            number = _line_of(lines, item.name, at)
            if number is None:
                return None
            at = number + 1
            places.append(_first_above(lines, number))
            # Lines before the first item are checked with it.
            if all(each == _NOWHERE for each in places[:-1]):
                places = [places[-1]] * len(places)
        else:
            places.append(places[-1] if places else _NOWHERE)
    return [at if place == _NOWHERE else place for place in places]


def _line_of(lines: Sequence[str], name: str, at: int) -> int | None:
    for number in range(at, len(lines)):
        match = ITEM.match(lines[number])
        if match and match["name"] == name and (not lines[number][:1].isspace() or "func.func" in match["start"]):
            return number
    return None


def _first_above(lines: Sequence[str], number: int) -> int:
    while number and lines[number - 1].lstrip().startswith(ABOVE):
        number -= 1
    return number
