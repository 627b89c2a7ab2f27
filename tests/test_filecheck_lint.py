"""The lit tests themselves: filecheck passes over a mistyped directive and over a prefix that nobody reads."""

from __future__ import annotations

import difflib
import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "filecheck"
SUFFIXES = {".mir", ".mlir", ".test"}
FILES = sorted(f for f in FOLDER.rglob("*") if f.suffix in SUFFIXES and "Inputs" not in f.parts)
KINDS = ("NEXT", "SAME", "NOT", "DAG", "LABEL", "EMPTY", "COUNT")

# A comment that begins with a word in capitals and a colon: a directive, or an attempt at one.
DIRECTIVE = re.compile(r"^\s*(?://|#|;)\s*([A-Z][A-Z0-9_]*(?:-[A-Z0-9_]+)*)(\{[^}]*\})?\s*:")
LIT_WORDS = {"RUN", "REQUIRES", "UNSUPPORTED", "XFAIL", "ALLOW_RETRIES", "END", "DEFINE", "REDEFINE"}
PROSE = {"NOTE", "BUG", "FIXME"}


def problems(text: str) -> list[str]:
    """What is wrong with the RUN and CHECK lines of a test, by line."""
    lines = text.split("\n")
    runs = _runs(lines)
    read = {prefix for run in runs for prefix in _prefixes(run)}
    found = [] if runs else ["no RUN line"]
    used: set[str] = set()
    for number, line in enumerate(lines, 1):
        match = DIRECTIVE.match(line)
        if match is None or match[1] in LIT_WORDS | PROSE:
            continue
        word = match[1]
        prefix, kind = _split(word, read)
        if prefix is None:
            near = difflib.get_close_matches(word, sorted(read), n=1)
            hint = f", meant as {near[0]}?" if near else ""
            found.append(f"line {number}: {word}: no RUN line reads this prefix{hint}")
        elif kind is not None and not (kind in KINDS or re.fullmatch(r"COUNT-\d+", kind)):
            found.append(f"line {number}: {word}: filecheck knows no {kind}, only {', '.join(KINDS)}")
        else:
            used.add(prefix)
        if "[[#" in line or "[[@LINE" in line:
            found.append(f"line {number}: this filecheck has neither [[# ]] nor [[@LINE]]")
    found += [f"prefix {prefix} is read by a RUN line, but no line bears it" for prefix in sorted(read - used)]
    if not read and not any(re.search(r"--verify-diagnostics|\bdiff\b|\bcmp\b|--expect\b", run) for run in runs):
        found.append("no RUN line checks anything: pipe into filecheck, or use --verify-diagnostics")
    for run in runs:
        if re.search(r"2>&1.*\|.*(?i:filecheck)", run) and not re.search(
            r"\bnot\b|--timing|--print-ir|--debug|--trace|--explain|--rule-stats|static-memory-plan|%{", run
        ):
            found.append(f"RUN line reads standard error of a command that should succeed: {run.strip()}")
    return found


def _runs(lines: list[str]) -> list[str]:
    runs: list[str] = []
    continued = False
    for line in lines:
        match = re.search(r"RUN:(.*)", line)
        if match is None:
            continue
        text = match[1].strip()
        if continued:
            runs[-1] += " " + text.removesuffix("\\")
        else:
            runs.append(text.removesuffix("\\"))
        continued = text.endswith("\\")
    return runs


def _prefixes(run: str) -> list[str]:
    """The prefixes that the filechecks of a RUN line read."""
    prefixes: list[str] = []
    for command in re.split(r"\||&&|;", run):
        if not re.match(r"\s*(?i:filecheck)\b", command):
            continue
        if "%s" not in command:
            continue  # The lines stand in another file.
        given = re.findall(r"--check-prefix(?:es)?[= ](\S+)", command)
        prefixes += [name for names in given for name in names.split(",")] or ["CHECK"]
    return prefixes


def _split(word: str, prefixes: set[str]) -> tuple[str | None, str | None]:
    """The prefix and the kind of a directive: `LOC-NEXT` is NEXT of LOC, if LOC is a prefix."""
    for prefix in sorted(prefixes, key=len, reverse=True):
        if word == prefix:
            return prefix, None
        if word.startswith(prefix + "-"):
            return prefix, word[len(prefix) + 1 :]
    return None, None


@pytest.mark.parametrize("file", FILES, ids=[str(f.relative_to(FOLDER)) for f in FILES])
def test_lint(file: Path):
    assert problems(file.read_text()) == []


GOOD = "// RUN: mir-opt %s | filecheck %s\n// CHECK: a\n// CHECK-NEXT: b\n// CHECK-COUNT-2: c\n"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (GOOD, None),
        ("// RUN: mir-opt %s --verify-diagnostics\n", None),
        ("// RUN: not mir-opt %s 2>&1 | filecheck %s --check-prefix=ERR\n# ERR: b\n", None),
        ("// CHECK: a\n", "no RUN line"),
        (GOOD + "// CHECK-NEX: d\n", "filecheck knows no NEX"),
        (GOOD + "// CHEKC: d\n", "meant as CHECK?"),
        (GOOD + "// LOC: d\n", "no RUN line reads this prefix"),
        ("// RUN: mir-opt %s | filecheck %s --check-prefixes A,B\n// A: a\n", "prefix B is read"),
        ("// RUN: mir-opt %s\n", "no RUN line checks anything"),
        (GOOD + "// CHECK: [[#N:]]\n", "neither [[# ]]"),
        ("// RUN: mir-opt %s 2>&1 | filecheck %s\n// CHECK: a\n", "standard error"),
    ],
)
def test_the_lint_itself(text: str, problem: str | None):
    found = problems(text)
    assert found == [] if problem is None else any(problem in each for each in found)
