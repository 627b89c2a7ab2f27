"""Diagnostics as text."""

from mirstack.support.diagnostics import Diagnostic, Sources, file_loc, render


def _rendered(text: str, column: int) -> list[str]:
    sources = Sources()
    sources.add("a.mir", text)
    return render(Diagnostic("wrong", file_loc("a.mir", 1, column)), sources).split("\n")


def test_caret_stands_under_its_character():
    assert _rendered("let %x = 1;", 5) == ["a.mir:1:5: error: wrong", "let %x = 1;", "    ^"]
    assert _rendered("\t\tx", 3)[1:] == ["\t\tx", "\t\t^"]


def test_of_a_long_line_only_the_part_around_the_caret_is_shown():
    text = "a" * 5000 + "!" + "b" * 5000
    _, shown, caret = _rendered(text, 5001)
    assert shown[caret.index("^")] == "!"
    assert shown[0] == shown[-1] == "…" and len(shown) < 400
    _, shown, caret = _rendered(text, 1)
    assert caret == "^" and shown.startswith("aaa") and shown.endswith("…")
