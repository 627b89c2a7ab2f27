"""Quick fixes: the text after one is free of the error."""

from __future__ import annotations

import pytest
from mirstack.editor.analysis import Analyzer
from mirstack.editor.fixes import fixes
from mirstack.editor.navigation import applied

HEAD = "@T.prim_func\ndef f(A: T.Buffer((4,), 'float32')):\n    for i in range(4):\n        with T.block('B'):\n            vi = T.axis.spatial(4, i)\n            A[vi] = "


@pytest.mark.parametrize(
    ("text", "title", "after"),
    [
        ("def @f(%x: int32) {\n  add(%x, %xx)\n}", "Replace %xx by %x", "add(%x, %x)"),
        ("def @f(%x: int32) {\n  nn.reluu(%x)\n}", "Replace nn.reluu by nn.relu", "nn.relu(%x)"),
        ("def @f(%x: flot32) { %x }", "Replace flot32 by float32", "%x: float32"),
        ("def @f(%x: Tensor[(4), int32]) { sum(%x, axs=[0]) }", "Replace axs by axis", "sum(%x, axis=[0])"),
        ("def @f(%x: int32) { @ff(%x) }\n", "Replace @ff by @f", "@f(%x) }"),
        (
            "def @f(%x: int32) {\n  %0 = add(%x, %x)\n  %0\n}",
            "Insert the missing ';'",
            "%0 = add(%x, %x);\n  %0",
        ),
        ("def @f(%x: int32) {\n  %0 = %x;\n}", "End the block with %0", "%0 = %x;\n  %0\n}"),
        ("def @f(%x: int32) {\n  add(%x, %x);\n}", "Remove the ';' after the block's value", "add(%x, %x)\n}"),
        ("def @f(%x: int32) {\n  let y = 1; %x\n}", "Write %y", "let %y = 1;"),
        ("def @f(x: int32) {\n  1\n}", "Write %x", "def @f(%x: int32)"),
        ("def %f() { 1 }", "Write @f", "def @f() { 1 }"),
        ("def f(%x: int32) {\n  %x\n}\n", "Write @f", "def @f(%x: int32) {"),
        (
            "def f():\n    A = te.placeholder((4,), name='A')\n    return [A]\n",
            "Write @te.func above",
            "@te.func\ndef f",
        ),
        (HEAD.replace("range(4):", "range(4)") + "A[vi]\n", "Insert the missing ':'", "range(4):\n"),
        (HEAD.replace("float32", "floa32") + "A[vi]\n", "Replace floa32 by float32", "'float32'"),
        (HEAD + "T.expp(A[vi])\n", "Replace T.expp by T.exp", "T.exp(A[vi])"),
        (HEAD + "A[vii]\n", "Replace vii by vi", "A[vi] = A[vi]"),
        (HEAD + "T.Select(A[vi] > T.float32(0) && vi > 1, A[vi], A[vi])\n", "Write and", "and vi > 1"),
        (
            HEAD + "A[vi]\n\n@T.schedule(f)\ndef s(sch):\n    sch.get_blok('B')\n",
            "Replace get_blok by get_block",
            "sch.get_block('B')",
        ),
        (
            HEAD + "A[vi]\n\n@T.schedule(f)\ndef s(sch):\n    sch.get_block(nam='B')\n",
            "Replace nam by name",
            "sch.get_block(name='B')",
        ),
    ],
)
def test_fixes(text: str, title: str, after: str) -> None:
    analysis = Analyzer().analyse(text)
    found = {fix.title: fix for fix in fixes(analysis, 0, len(text))}
    assert title in found, (list(found), analysis.findings)
    mended = applied(text, list(found[title].edits))
    assert after in mended
    messages = {finding.message for finding in Analyzer().analyse(mended).findings}
    assert found[title].finding.message not in messages


def test_only_findings_at_the_place_are_fixed() -> None:
    text = "def @f(%x: int32) {\n  add(%x, %xx)\n}\n"
    analysis = Analyzer().analyse(text)
    assert fixes(analysis, 0, 3) == []
    place = text.index("%xx")
    assert [fix.title for fix in fixes(analysis, place, place)] == ["Replace %xx by %x"]


def test_messages_without_a_remedy_have_no_fix() -> None:
    text = "def @f(%x: Tensor[(4), int32], %y: Tensor[(5), int32]) { add(%x, %y) }"
    analysis = Analyzer().analyse(text)
    assert analysis.findings and fixes(analysis, 0, len(text)) == []
