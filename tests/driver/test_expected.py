"""Reading `expected-error` comments and matching diagnostics with them."""

from __future__ import annotations

import pytest
from mirstack.driver.expected import Expectation, compare, read_expectations
from mirstack.support.diagnostics import Diagnostic, file_loc


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("x // expected-error {{a b}}", [("error", 10, "a b")]),
        ("x # expected-error {{a}}", [("error", 10, "a")]),
        ("// expected-note@+3 {{a}}", [("note", 13, "a")]),
        ("// expected-warning@-2 {{a}}", [("warning", 8, "a")]),
        ("// expected-error@above {{a}}", [("error", 9, "a")]),
        ("// expected-error@below {{a}}", [("error", 11, "a")]),
        ("// expected-error@4 {{a}}", [("error", 4, "a")]),
        ("// expected-error@unknown {{a}}", [("error", None, "a")]),
        ("// expected-error 2 {{a}}", [("error", 10, "a")] * 2),
        ("// expected-error {{a}} expected-note {{b}}", [("error", 10, "a"), ("note", 10, "b")]),
        ('"expected-error {{not in a comment}}"', []),
    ],
)
def test_reading(line: str, expected: list[tuple[str, int | None, str]]):
    found, malformed = read_expectations(line, "x.mir", first_line=10)
    assert [(e.severity, e.line, e.text) for e in found] == expected
    assert malformed == []


@pytest.mark.parametrize("line", ["// expected-eror {{a}}", "// expected-error: a", "# expected-error@far {{a}}"])
def test_malformed(line: str):
    found, malformed = read_expectations(line, "x.mir")
    assert found == [] and "is not an expectation" in malformed[0].message


def at(line: int, message: str) -> Diagnostic:
    return Diagnostic(message, file_loc("x.mir", line, 1))


def test_all_met():
    text = "// expected-error@+1 {{two}}\n// expected-note@1 {{see}}\n"
    assert compare(text, "x.mir", 1, [at(2, "one two three").with_note("see here", file_loc("x.mir", 1, 4))]) == []


def test_wrong_line_is_both_missing_and_unexpected():
    messages = [d.message for d in compare("// expected-error {{two}}", "x.mir", 1, [at(2, "two")])]
    assert messages == ["unexpected error: two", "expected error was not produced: two"]


def test_one_expectation_meets_one_diagnostic():
    messages = [d.message for d in compare("// expected-error {{a}}", "x.mir", 1, [at(1, "a"), at(1, "a")])]
    assert messages == ["unexpected error: a"]


def test_notes_need_not_be_expected():
    assert compare("// expected-error {{a}}", "x.mir", 1, [at(1, "a").with_note("b")]) == []


def test_fits_a_diagnostic_without_a_place():
    assert Expectation("error", None, "a", 1).fits(Diagnostic("a b"))
