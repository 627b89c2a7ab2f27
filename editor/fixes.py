"""Makes edits of the remedies that messages name: the nearest known name, a missing sign."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher

from .analysis import Analysis, Finding


@dataclass(frozen=True)
class Edit:
    """Replaces the text from `start` to `end` by `text`."""

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Fix:
    """A quick fix of a finding, with its title."""

    title: str
    finding: Finding
    edits: tuple[Edit, ...]


_MEANT = re.compile(r"did you mean '?([^'\s?]+)'?\?")
_WORD = re.compile(r"[%@$]?\w[\w.]*")
_QUOTED = re.compile(r"'([^'\n]+)'|([%@$]\w[\w.]*)")
_JOINED = {"&": "and", "|": "or"}
_LAST = re.compile(r"(?:let\s+)?(%\w+)(?:\s*:[^=;]*)?\s*=")


def fixes(analysis: Analysis, start: int, end: int) -> list[Fix]:
    """Returns the fixes of the findings that touch the text from `start` to `end`."""
    return [
        fix
        for finding in analysis.findings
        if finding.start <= end and start <= finding.end
        for fix in _fixes(analysis, finding)
    ]


def _fixes(analysis: Analysis, finding: Finding) -> Iterator[Fix]:
    text, message = analysis.text, finding.message
    word = text[finding.start : finding.end]
    for near in _MEANT.findall(message):
        wrong = _misspelt(text, finding, near)
        if wrong is not None:
            edit = Edit(wrong[0], wrong[1], near)
            yield Fix(f"Replace {text[edit.start : edit.end]} by {near}", finding, (edit,))
    if message.startswith("a semicolon is missing here"):
        yield Fix("Insert the missing ';'", finding, (Edit(finding.end, finding.end, ";"),))
    elif message.startswith("a ':' is missing before the body"):
        yield Fix("Insert the missing ':'", finding, (Edit(finding.end, finding.end, ":"),))
    elif message.startswith(("a parameter's name begins with '%'", "a variable's name begins with '%'")):
        yield Fix(f"Write %{word.lstrip('%@')}", finding, (Edit(finding.start, finding.end, f"%{word.lstrip('%@')}"),))
    elif message.startswith("a function's name begins with '@'"):
        yield Fix(f"Write @{word.lstrip('%@')}", finding, (Edit(finding.start, finding.end, f"@{word.lstrip('%@')}"),))
    elif message.startswith("the block has no value"):
        yield from _value_of_block(text, finding)
    elif message.startswith("this 'def' has no decorator"):
        head = re.compile(r"def\s+(\w+)[^\n]*\{[ \t]*$", re.MULTILINE).match(text, finding.start)
        if head is not None:
            yield Fix(f"Write @{head[1]}", finding, (Edit(head.start(1), head.end(1), f"@{head[1]}"),))
        for decorator in () if head else ("@T.prim_func", "@te.func"):
            yield Fix(f"Write {decorator} above", finding, (Edit(finding.start, finding.start, f"{decorator}\n"),))
    elif message.startswith(("unexpected '&&'", "unexpected '||'")):
        # It is reported at the second character, after an operator that is one.
        start = finding.start - (text[finding.start - 1] == text[finding.start])
        joined = _JOINED[text[start]]
        yield Fix(f"Write {joined}", finding, (Edit(start, start + 2, joined),))


def _value_of_block(text: str, finding: Finding) -> Iterator[Fix]:
    """Yields the fix of a block that ends with a semicolon: the name bound last, or no semicolon."""
    before = text[: finding.start].rstrip()
    if not before.endswith(";"):
        return
    statement = re.split(r"[;{]", before[:-1])[-1].strip()
    bound = _LAST.match(statement)
    if bound is None:
        yield Fix("Remove the ';' after the block's value", finding, (Edit(len(before) - 1, len(before), ""),))
    else:
        line = before[before.rfind("\n") + 1 :]
        indent = line[: len(line) - len(line.lstrip())]
        edit = Edit(len(before), len(before), f"\n{indent}{bound[1]}")
        yield Fix(f"End the block with {bound[1]}", finding, (edit,))


def _misspelt(text: str, finding: Finding, near: str) -> tuple[int, int] | None:
    """Returns the word that `near` was meant for: at the finding, or quoted from its line."""
    found: list[tuple[int, int]] = []
    at = _WORD.match(text, finding.start)
    if at is not None:
        found.append(at.span())
    line_end = text.find("\n", finding.start)
    line_end = len(text) if line_end < 0 else line_end
    for quoted in _QUOTED.finditer(finding.message):
        word = quoted[1] or quoted[2]
        place = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)").search(text, finding.start, line_end)
        if place is not None and word != near:
            found.append(place.span())
    # A word may be a part of what is at the finding: `splt` of `sch.splt`.
    return max(
        found, key=lambda span: (SequenceMatcher(None, text[slice(*span)], near).ratio(), -span[0]), default=None
    )
