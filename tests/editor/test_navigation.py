"""Definitions, references and renaming, in each format."""

from __future__ import annotations

import pytest
from mirstack.editor.analysis import Analyzer
from mirstack.editor.navigation import CannotRename, applied, definitions, references, rename, renameable

RELAY = """\
def @main(%x: Tensor[(4), float32]) {
  %0 = nn.relu(%x);
  let %z = add(%0, %x);
  %1 = fn (%x: Tensor[(4), float32]) { let %z = tanh(%x); %z };
  %2 = if (True) { %z } else { %1(%0) };
  @helper(%2)
}

def @helper(%x: Tensor[(4), float32]) { %x }
"""
LISTS = """\
type List[A] { Cons(A, List[A]), Nil, }

def @length[A](%list: List[A]) -> int32 {
  match (%list) {
    Cons(%head, %rest) => { 1 + @length(%rest) },
    Nil => { 0 },
  }
}
"""
TIR = """\
@T.prim_func
def twice(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("first"):
            vi = T.axis.spatial(4, i)
            B[vi] = A[vi] + A[vi]
    for i in range(4):
        with T.block("second"):
            vi = T.axis.spatial(4, i)
            B[vi] = B[vi] * T.float32(2)

@T.schedule(twice)
def fast(sch):
    b = sch.get_block("first", func_name="twice")
    (loop,) = sch.get_loops(b)
    sch.cache_read(b, "A", "local")

def @main(%x: Tensor[(4), float32]) { call_tir(@twice, %x) }
"""
TE = """\
@te.func
def sums():
    A = te.placeholder((4, 8), name="A")
    k = te.reduce_axis((0, 8), name="k")
    B = te.compute((4,), lambda i: te.sum(A[i, k], axis=k), name="B")
    C = te.compute((4,), lambda i: B[i] + B[i], name="C")
    return [A, C]

@te.schedule(sums)
def by_parts(s):
    xo, xi = s[C].split(C.op.axis[0], factor=2)
    s[B].compute_at(s[C], xo)
"""


def defined(text: str, place: str, inside: int = 0) -> list[tuple[int, str]]:
    analysis = Analyzer().analyse(text)
    spans = definitions(analysis, text.index(place) + inside)
    return [(analysis.lines.position(span.start)[0] + 1, text[span.start : span.end]) for span in spans]


def renamed(text: str, place: str, name: str, inside: int = 0) -> str:
    analyzer = Analyzer()
    edits = rename(analyzer.analyse(text), analyzer, text.index(place) + inside, name)
    return applied(text, edits)


@pytest.mark.parametrize(
    ("text", "place", "inside", "line", "name"),
    [
        (RELAY, "%x);\n  let", 0, 1, "%x"),
        (RELAY, "%x); %z", 0, 4, "%x"),
        (RELAY, "%z };\n", 0, 4, "%z"),
        (RELAY, "%z } else", 0, 3, "%z"),
        (RELAY, "%0) };", 0, 2, "%0"),
        (RELAY, "@helper(%2", 3, 9, "@helper"),
        (RELAY, "%x }\n", 0, 9, "%x"),
        (LISTS, "%rest) }", 0, 5, "%rest"),
        (LISTS, "@length(%rest", 0, 3, "@length"),
        (LISTS, "%list) {\n", 0, 3, "%list"),
        (TIR, "vi] * T", 0, 9, "vi"),
        (TIR, "vi] = A", 0, 5, "vi"),
        (TIR, "A[vi] + ", 0, 2, "A"),
        (TIR, "@twice, ", 2, 2, "twice"),
        (TIR, "twice)\ndef", 0, 2, "twice"),
        (TIR, 'first", func', 0, 4, "first"),
        (TIR, 'A", "local', 0, 2, "A"),
        (TE, "i, k]", 0, 5, "i"),
        (TE, "k], axis", 0, 4, "k"),
        (TE, "B[i] + ", 0, 5, "B"),
        (TE, "C.op", 0, 6, "C"),
        (TE, "B].compute", 0, 5, "B"),
        (TE, "xo)", 0, 11, "xo"),
    ],
)
def test_names_lead_to_their_definition(text: str, place: str, inside: int, line: int, name: str) -> None:
    assert defined(text, place, inside) == [(line, name)]


def test_what_no_name_is_at_leads_nowhere() -> None:
    assert defined(RELAY, "nn.relu") == []
    assert defined(RELAY, "\n\ndef", 1) == []
    assert definitions(Analyzer().analyse(""), 0) == []


def test_references_are_those_of_one_meaning() -> None:
    text = RELAY
    found = references(Analyzer().analyse(text), text.index("%x: "))
    assert [text.count("\n", 0, span.start) + 1 for span in found] == [1, 2, 3]


@pytest.mark.parametrize(
    ("text", "place", "name", "changes"),
    [
        (RELAY, "%x: ", "%data", 3),
        (RELAY, "%0 = ", "%7", 3),
        (RELAY, "@helper", "@identity", 2),
        (LISTS, "%head", "%first", 1),
        (TIR, "vi = ", "v_i", 4),
        (TIR, "i in", "row", 2),
        (TIR, "B: T", "out", 4),
        (TIR, "twice(A", "double", 4),
        (TIR, "b = sch", "block", 3),
        (TE, "k = ", "axis_k", 3),
    ],
)
def test_renaming_keeps_the_file_free_of_errors(text: str, place: str, name: str, changes: int) -> None:
    before, after = Analyzer().analyse(text), Analyzer().analyse(renamed(text, place, name))
    assert before.findings == [] and after.findings == []
    changed = [(old, new) for old, new in zip(text.split("\n"), after.text.split("\n"), strict=True) if old != new]
    analyzer = Analyzer()
    assert len(rename(before, analyzer, text.index(place), name)) == changes
    assert all(name.lstrip("%@") in new for _, new in changed)


def test_a_function_is_renamed_in_all_formats() -> None:
    text = renamed(TIR, "twice(A", "double")
    for piece in ("def double(A", "@T.schedule(double)", 'func_name="double"', "call_tir(@double, %x)"):
        assert piece in text
    assert "twice" not in text


@pytest.mark.parametrize(
    ("text", "place", "name", "message"),
    [
        (RELAY, "%0 = ", "%data", "'%data' cannot be a name here; one is written %7, a graph name"),
        (RELAY, "%x: ", "3", "'3' cannot be a name here; one is written %data"),
        (RELAY, "%x: ", "%z", "'z' is the name of something else here"),
        (RELAY, "@helper", "main", "'main' is the name of something else here"),
        (RELAY, "nn.relu", "x", "nothing that this file defines is named here"),
        (TIR, "A: T", "source", "line 16 would be wrong: "),
        (TIR, "vi = ", "v-i", "'v-i' cannot be a name here; one is written data"),
    ],
)
def test_refusals_to_rename(text: str, place: str, name: str, message: str) -> None:
    with pytest.raises(CannotRename) as refused:
        renamed(text, place, name)
    assert str(refused.value).startswith(message)


def test_only_what_the_file_defines_can_be_renamed() -> None:
    analysis = Analyzer().analyse(RELAY)
    span = renameable(analysis, RELAY.index("%z } else") + 1)
    assert span is not None and RELAY[span.start : span.end] == "%z"
    assert renameable(analysis, RELAY.index("relu")) is None
    unknown = "def @f() { @nothing() }\n"
    assert renameable(Analyzer().analyse(unknown), unknown.index("@nothing")) is None


def test_names_resolve_in_texts_with_errors() -> None:
    broken = RELAY.replace("%2 = if", "%2 = = if")
    assert defined(broken, "%z } else") == [(3, "%z")]
    unclosed = TIR.replace('"second"):', '"second):')
    assert defined(unclosed, "A[vi] + ") == [(2, "A")]
