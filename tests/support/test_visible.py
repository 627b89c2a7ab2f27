"""What a message shows of names and source lines cannot steer the terminal that shows it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mirstack.support.diagnostics import Sources, error_at, file_loc, render_all
from mirstack.support.text import visible


def test_control_characters_are_escaped():
    assert visible("a\x1b[31mb\x00\x7f\x9b") == "a\\x1b[31mb\\x00\\x7f\\x9b"
    assert visible("a\u202eb\u2066c\u200f\u2028") == "a\\u202eb\\u2066c\\u200f\\u2028"
    assert visible("\ud800") == "\\ud800"
    assert visible("Tensor é \t → “x”\n") == "Tensor é \t → “x”\n"


def test_the_caret_stands_under_its_character():
    sources = Sources()
    sources.add("f\x1b.mir", "\tab\x1b\u202ecd")
    with sources.reading():
        error = error_at(file_loc("f\x1b.mir", 1, 6), "wrong \x1b[2J name")
        assert render_all(error.diagnostics, sources).split("\n") == [
            "f\\x1b.mir:1:6: error: wrong \\x1b[2J name",
            "\tab\\x1b\\u202ecd",
            "\t            ^",
        ]
        assert "\x1b" not in str(error)


@pytest.mark.parametrize(
    "text",
    ["def @f() { %\x1b[31mx }\n", 'def @f(%"a\x1b[2J": int32) { %b }\n', "@T.prim_func\ndef f(\u202e):\n    pass\n"],
)
def test_no_command_passes_them_on(tmp_path: Path, mir_opt: Callable[..., Any], text: str):
    file = tmp_path / "escape.mir"
    file.write_text(text)
    ran = mir_opt(file)
    assert ran.code == 1
    assert "\x1b" not in ran.err and "\u202e" not in ran.err


def test_nor_do_errors_of_usage(mir_opt: Callable[..., Any]):
    ran = mir_opt("no\x1b[31mfile.mir")
    assert ran.code == 2
    assert "no\\x1b[31mfile.mir: no such file" in ran.err
