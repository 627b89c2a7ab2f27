"""What can be folded, and the kind of each token; the TextMate grammar."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path

import mirstack
from mirstack.editor.analysis import Analyzer
from mirstack.editor.colors import KINDS, colors
from mirstack.editor.outline import folds
from mirstack.parser.items import DECORATORS

TEXT = """\
// one
// two
def @f(%x: Tensor[(4), float32]) {
  %0 = fn (%y: int32) {
    %y
  };
  sum(%x, axis=[0])
}

/* a
   b */
@T.prim_func
def g(
    A: T.Buffer((4,), "float32"),
):
    for i in range(4):
        A[i] = T.float32(0)

@T.schedule(g)
def s(sch):
    b = sch.get_block("A")
"""


def test_folds() -> None:
    found = [(fold.first, fold.last, fold.kind) for fold in folds(Analyzer().analyse(TEXT))]
    assert found == [
        (0, 1, "comment"),
        (2, 6, "region"),
        (2, 7, "region"),
        (3, 4, "region"),
        (9, 10, "comment"),
        (12, 13, "region"),
        (12, 16, "region"),
        (14, 16, "region"),
        (15, 16, "region"),
        (19, 20, "region"),
    ]


def test_colors() -> None:
    found = [(TEXT[color.start : color.end], color.kind, color.declares) for color in colors(Analyzer().analyse(TEXT))]
    assert found[:8] == [
        ("// one", "comment", False),
        ("// two", "comment", False),
        ("def", "keyword", False),
        ("@f", "function", True),
        ("%x", "parameter", True),
        ("Tensor[(4), float32]", "type", False),
        ("%0", "variable", True),
        ("fn", "keyword", False),
    ]
    for expected in [
        ("sum", "function", False),
        ("axis", "property", False),
        ("g", "function", True),
        ("A", "variable", True),
        ("A", "variable", False),
        ("i", "variable", True),
        ("sch", "parameter", False),
        ("get_block", "method", False),
        ('"A"', "string", False),
    ]:
        assert expected in found, expected


COMMENTED = '''\
/* a /* b */
   c */ def @f(%x: int32) { // d
  /* e */ %x /* f */
}
# g
@T.prim_func
def g(A: T.Buffer((4,), "int32")):
    """h
    i"""  # j
    for i in range(4):  # k // l
        A[i // 2] = i // 3
#[metadata]
{"root": 1} // m'''


def test_comments_have_a_color() -> None:
    found = colors(Analyzer().analyse(COMMENTED))
    comments = [COMMENTED[color.start : color.end] for color in found if color.kind == "comment"]
    assert comments[:4] == ["/* a /* b */", "c */", "// d", "/* e */"]
    assert comments[4:] == ["/* f */", "# g", "# j", "# k // l", "// m"]
    assert [COMMENTED[color.start : color.end] for color in found if color.kind == "string"][-2:] == ['"""h', 'i"""']


def test_colors_do_not_overlap() -> None:
    found = colors(Analyzer().analyse(TEXT))
    assert all(before.end <= after.start for before, after in pairwise(found))
    assert all(color.kind in KINDS and "\n" not in TEXT[color.start : color.end] for color in found)


def test_texts_with_errors_have_colors_and_folds() -> None:
    for end in range(0, len(TEXT), 5):
        analysis = Analyzer().analyse(TEXT[:end])
        assert not list(analysis.failures)
        assert all(fold.first < fold.last for fold in folds(analysis))
        colors(analysis)


def test_the_grammar_knows_all_items() -> None:
    """Every pattern is a regular expression, every inclusion exists, each decorator begins an item in Python's form."""
    grammar = json.loads((Path(mirstack.__path__[0]) / "editor/mir.tmLanguage.json").read_text(encoding="utf-8"))
    assert grammar["scopeName"] == "source.mir"
    patterns: list[str] = []
    included: set[str] = set()
    pending: list[object] = [grammar["patterns"], grammar["repository"]]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            patterns += [value for key, value in part.items() if key in ("match", "begin", "end")]
            included.update(value for key, value in part.items() if key == "include")
        pending += part.values() if isinstance(part, dict) else part if isinstance(part, list) else []
    assert {name.removeprefix("#") for name in included} == set(grammar["repository"])
    for pattern in patterns:
        re.compile(pattern)
    begin = re.compile(grammar["repository"]["python-item"]["begin"], re.MULTILINE)
    assert all(begin.match(f"@{decorator}") for decorator in DECORATORS)
    # Items that begin with a word end one in Python's form, and their word has a color.
    end = re.compile(grammar["repository"]["python-item"]["end"], re.MULTILINE)
    words = [
        each["match"] for each in grammar["repository"]["braced"]["patterns"] if each.get("name") == "storage.type.mir"
    ]
    for line in (
        "rule for nn.dense(%x, %w)",
        "optional rule for sin(%x)",
        'target "a" {',
        "operator my.op(%x)",
        "type A {",
    ):
        assert end.match(line) and any(re.match(word, line) for word in words), line
