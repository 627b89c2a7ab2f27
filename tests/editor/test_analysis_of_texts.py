"""Findings of the editor against those of mir-opt, and how little is read again after a change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mirstack.editor.analysis as analysis_module
import pytest
from mirstack.driver.sources import Source
from mirstack.editor.analysis import Analysis, Analyzer
from mirstack.lowering.driver.source import check_functions
from mirstack.parser import parse_mir
from mirstack.support.deep_stack import in_deep_stack
from mirstack.support.diagnostics import Diagnostic, MirError, Sources, source_position
from mirstack.support.text import visible
from mirstack.support.verify import verify

ROOT = Path(__file__).parent.parent.parent
FOLDERS = sorted(path.name for path in (ROOT / "filecheck").iterdir() if path.is_dir())

TWO = """\
def @f(%x: Tensor[(4), float32]) {
  add(%x, %y)
}

@T.prim_func
def g(A: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("A"):
            vi = T.axis.spatial(4, i)
            A[vi] = T.float32(0)
"""


def found(text: str) -> list[str]:
    return described(Analyzer().analyse(text))


def described(analysis: Analysis) -> list[str]:
    assert not list(analysis.failures)
    places = [(analysis.lines.position(each.start), each) for each in analysis.findings]
    return [
        f"{line + 1}:{column + 1}: {analysis.text[each.start : each.end]}: {each.message}"
        for (line, column), each in places
    ]


def reported_by_mir_opt(text: str, directory: Path) -> list[Diagnostic]:
    sources = Sources()
    sources.add("x", text)
    with sources.reading():
        try:
            module = parse_mir(text, "x", directory=str(directory))
            verify(module)
            check_functions(module)
        except MirError as error:
            return [*error.diagnostics, *sources.warnings]
    return sources.warnings


@pytest.mark.parametrize("folder", FOLDERS)
def test_all_that_mir_opt_reports_is_found(folder: str) -> None:
    """Every part of every lit test: parts are read apart from each other, yet nothing gets lost by that."""
    seen = 0
    for file in sorted((ROOT / "filecheck" / folder).rglob("*.mir")):
        source = Source(str(file), file.read_text(encoding="utf-8"), file.parent)
        for chunk in source.chunks("split-input-file" in source.text):
            wanted = in_deep_stack(lambda chunk=chunk, file=file: reported_by_mir_opt(chunk.text, file.parent))
            analysis = Analyzer(file.parent).analyse(chunk.text)
            assert not list(analysis.failures), f"{file}:{chunk.first_line}"
            got = {(analysis.lines.position(f.start)[0] + 1, f.message.partition("\n")[0]) for f in analysis.findings}
            for diagnostic in wanted:
                position = source_position(diagnostic.location)
                message = visible(diagnostic.message.partition("\n")[0])
                lines = {line for line, text in got if text == message}
                assert lines if position is None else position[1] in lines, f"{file}:{chunk.first_line}: {message}"
                seen += 1
    assert seen > 10 or folder not in ("dialects", "parser")


def test_errors_of_different_functions_are_found_at_once() -> None:
    wrong = TWO.replace("T.float32(0)", "T.float3(0)")
    assert [each.partition("\n")[0] for each in found(wrong)] == [
        "2:11: %y: %y is not defined",
        "10:21: T.float3: T has no 'float3'",
    ]


def test_errors_of_types_are_found_beside_errors_of_syntax() -> None:
    text = "def @f(%x: Tensor[(2, 3), float32], %y: Tensor[(4), float32]) {\n  add(%x, %y)\n}\n\ndef @g( {\n}\n"
    first, *rest = found(text)
    assert first.startswith("2:3: add: add: arguments 'lhs' (Tensor[(2, 3), float32])")
    assert rest and all(each.startswith("5:") for each in rest)


def test_notes_with_places_are_related_and_others_are_lines() -> None:
    text = "def @f(%x: Tensor[(2, 3), float32], %y: Tensor[(4), float32]) {\n  add(%x, %y)\n}\n"
    analysis = Analyzer().analyse(text)
    (finding,) = analysis.findings
    assert finding.message.split("\n")[1:] == [
        "note: dimensions are aligned from the last; they must be equal, or one of them 1"
    ]
    (note,) = finding.notes
    assert text[note.start : note.end] == "%y"
    assert note.message == "argument 'rhs', of type Tensor[(4), float32], comes from here"


def test_refusals_of_schedules_are_found() -> None:
    text = TWO.replace("%y", "%x") + '\n@T.schedule(g)\ndef s(sch):\n    sch.parallel(sch.get_block("A"))\n'
    (finding,) = found(text)
    assert finding.startswith("14:18: sch.get_block: parallel: 'loop' must be a loop")
    text = text.replace('sch.parallel(sch.get_block("A"))', 'b = sch.get_block("B")')
    (finding,) = found(text)
    assert finding.startswith("14:9: sch.get_block: function 'g' has no block 'B'")


def test_schedules_of_functions_that_are_not_lowered_are_left_for_later() -> None:
    text = '@te.func\ndef f():\n    A = te.placeholder((4,), name="A", dtype="float32")\n    B = te.compute((4,), lambda i: A[i] + A[i], name="B")\n    return [A, B]\n\n@T.schedule(f)\ndef s(sch):\n    b = sch.get_block("B")\n'
    assert found(text) == []


def test_names_nearly_right_are_suggested_across_functions() -> None:
    text = "def @square(%x: Tensor[(4), float32]) {\n  multiply(%x, %x)\n}\n\ndef @main(%x: Tensor[(4), float32]) {\n  @squar(%x)\n}\n"
    (finding,) = found(text)
    assert "did you mean @square?" in finding


def test_names_defined_twice_are_found() -> None:
    (finding,) = found(TWO.replace("%y", "%x") + "\ndef @g(%x: Tensor[(4), float32]) {\n  %x\n}\n")
    assert "'g' is defined twice" in finding


def test_text_that_cannot_be_a_file_is_refused() -> None:
    (finding,) = found("def @f() {\n  \ud800\n}\n")
    assert finding.startswith("2:3: ") and "not a character by itself" in finding


@pytest.mark.parametrize(
    "text", ["", "\n\n", "// nothing\n", "@", "def", "def @f(", '"', "/*", "@T.prim_func\ndef f(:\n"]
)
def test_unfinished_texts_are_read(text: str) -> None:
    assert not list(Analyzer().analyse(text).failures)


def test_only_what_changed_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    before = analysis_module.read_part

    def counted(part: analysis_module.Part, directory: Path | None, *rest: Any) -> None:
        read.append(part.text.split("(")[0])
        before(part, directory, *rest)

    monkeypatch.setattr(analysis_module, "read_part", counted)
    analyzer = Analyzer()
    first = described(analyzer.analyse(TWO))
    assert len(read) == 2
    read.clear()
    moved = described(analyzer.analyse("// a line\n" + TWO))
    assert read == []
    assert first == ["2:11: %y: %y is not defined"] and moved == ["3:11: %y: %y is not defined"]
    assert described(analyzer.analyse(TWO.replace("%y", "%x"))) == []
    assert read == ["def @f"]


def test_functions_that_call_each_other_are_read_together() -> None:
    text = "def @f(%x: Tensor[(4), float32]) {\n  @g(%x)\n}\ndef @g(%x: Tensor[(5), float32]) {\n  %x\n}\n"
    analyzer = Analyzer()
    (finding,) = described(analyzer.analyse(text))
    assert finding.startswith("2:3: @g: ")
    assert described(analyzer.analyse(text.replace("(5)", "(4)"))) == []
