"""What is shown of the name under the cursor, in each format."""

from __future__ import annotations

import pytest
from mirstack.editor.analysis import Analyzer
from mirstack.editor.colors import colors
from mirstack.editor.hover import hover

TEXT = """\
def @main(%x: Tensor[(4), float32], %y: Tensor[(4), float32]) {
  %0 = nn.relu(%x);
  %1 = %0 + %y;
  %2 = (%0, %1);
  %3 = %2.1;
  let %z = add(%3, 2f);
  %4 = fn (%a: Tensor[(4), float32]) { tanh(%a) };
  %5 = if (True) { %x } else { %y };
  %6 = @g(%5);
  %7 = %6;
  %8 = sum(%7, axis=[0]);
  %4(%z)
}

def @g(%x: Tensor[(4), float32]) { let %q = 1f; add(%x, %q) }

@T.prim_func
def square(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32"), n: T.int32):
    C = T.alloc_buffer((4,), "float32")
    for i in range(4):
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            x: T.float32 = A[vi] * A[vi]
            B[vi] = x

@te.func
def f():
    P = te.placeholder((4, 8), name="P", dtype="float32")
    k = te.reduce_axis((0, 8), name="k")
    Q = te.compute((4,), lambda i: te.sum(P[i, k], axis=k), name="Q")
    return [P, Q]

@te.func
def h():
    R = te.placeholder((4,), name="R", dtype="float32")
    S = te.compute((4,), lambda i: R[i] + R[i], name="S")
    s = te.create_schedule(S.op)
    xo, xi = s[S].split(S.op.axis[0], factor=2)
    return s, [R, S]

@T.schedule(square)
def s(sch):
    b = sch.get_block("B")
    (i,) = sch.get_loops(b)
    i0, i1 = sch.split(i, [None, 2])
"""


@pytest.fixture(scope="module")
def shown():
    analysis = Analyzer().analyse(TEXT)
    assert analysis.findings == [] and not list(analysis.failures)

    def at(place: str, inside: int = 0) -> str:
        found = hover(analysis, TEXT.index(place) + inside)
        return "" if found is None else found.text

    return at


@pytest.mark.parametrize(
    ("place", "first"),
    [
        ("%x: ", "%x: Tensor[(4), float32]"),
        ("%0 =", "%0: Tensor[(4), float32]"),
        ("%2 =", "%2: (Tensor[(4), float32], Tensor[(4), float32])"),
        ("%3 =", "%3: Tensor[(4), float32]"),
        ("%z =", "%z: Tensor[(4), float32]"),
        ("%z)", "%z: Tensor[(4), float32]"),
        ("%4 =", "%4: fn (Tensor[(4), float32]) -> Tensor[(4), float32]"),
        ("%a)", "%a: Tensor[(4), float32]"),
        ("%5 =", "%5: Tensor[(4), float32]"),
        ("%7 =", "%7: Tensor[(4), float32]"),
        ("%8 =", "%8: float32"),
        ("%q = 1f", "%q: float32"),
        ("@g(%5)", "def @g(%x: Tensor[(4), float32]) -> Tensor[(4), float32]"),
        ("A[vi]", 'A: T.Buffer((4,), "float32")'),
        ("C = T", 'C = T.alloc_buffer((4,), "float32")'),
        ("i in", "for i in range(4):"),
        ("vi = T", "vi: int32"),
        ("x\n\n@te", "x: float32"),
        ("P = te", "P: tensor (4, 8), float32"),
        ("Q = te", "Q: tensor (4,), float32"),
        ("b = sch", "b: block"),
        ("i1 = sch", "i1: loop"),
        ("square)", 'def square(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32"), n: T.int32):'),
    ],
)
def test_names_show_their_types(shown, place: str, first: str) -> None:
    assert shown(place).splitlines()[1] == first


def test_operators_show_signature_meaning_and_types(shown) -> None:
    text = shown("nn.relu")
    assert text.startswith("```mir\nnn.relu(data)\n```\n\nEach element, at least 0.")
    assert "(Tensor[(4), float32]) -> Tensor[(4), float32]" in text
    assert shown("+ %y").startswith("```mir\nadd(lhs, rhs)\n```")


def test_attributes_show_their_default_and_kind(shown) -> None:
    text = shown("axis=[0])")
    assert text.startswith("```mir\naxis=None\n```") and "a list of integers or None" in text


def test_primitives_show_before_and_after(shown) -> None:
    text = shown("sch.split", 5)
    assert text.startswith("```python\nsplit(loop, factors")
    assert "→" in text and "for i_0, i_1 in T.grid(32, 4):" in text
    assert shown("s[S].split", 6).startswith("```python\nsplit(parent, factor=None, nparts=None) -> axis, axis\n```")


def test_constructs_show_their_form(shown) -> None:
    assert shown('T.block("B")', 3) == '`with T.block("name"):`.'


def test_blanks_and_comments_show_nothing(shown) -> None:
    assert shown("\n\n@T.prim_func", 1) == ""
    assert shown("return [P") == ""


def test_types_are_known_in_functions_beside_one_with_errors() -> None:
    text = "def @f(%x: Tensor[(4), float32]) {\n  add(%x, %y)\n}\n\ndef @g(%x: Tensor[(4), float32]) {\n  %0 = nn.relu(%x);\n  %0\n}\n"
    analysis = Analyzer().analyse(text)
    found = hover(analysis, text.rindex("%0"))
    assert found is not None and "%0: Tensor[(4), float32]" in found.text
    assert text[found.start : found.end] == "%0"


def test_types_are_those_from_before_an_error_while_one_types() -> None:
    text = "def @f(%x: Tensor[(4), float32]) {\n  %0 = nn.relu(%x);\n  %0\n}\n"
    analyzer = Analyzer()
    analyzer.analyse(text)
    broken = text.replace("  %0\n", "  add(%0, \n")
    analysis = analyzer.analyse(broken)
    assert analysis.findings
    found = hover(analysis, broken.index("%0, "))
    assert found is not None and "%0: Tensor[(4), float32]" in found.text


def test_operators_are_described_in_a_function_with_errors() -> None:
    text = "def @f(%x: Tensor[(4), float32]) {\n  nn.relu(%y)\n}\n"
    found = hover(Analyzer().analyse(text), text.index("relu"))
    assert found is not None and found.text.startswith("```mir\nnn.relu(data)")


def test_operators_of_the_file_are_known() -> None:
    text = """\
@te.func
def swish():
    x = te.placeholder((), name="x")
    slope = te.var("slope", "float32")
    y = te.compute((), lambda: x() * te.sigmoid(x() * slope), name="y")
    return [x, slope, y]

operator my.swish(%x: Tensor, slope=1.0) -> Tensor { compute @swish doc "x * sigmoid(x)" }

def @f(%x: Tensor[(4), float32]) {
  my.swish(%x, slope=2.0)
}
"""
    analysis = Analyzer().analyse(text)
    assert analysis.findings == [] and not list(analysis.failures)
    found = hover(analysis, text.rindex("my.swish"))
    assert found is not None and "my.swish(x, slope=1.0)" in found.text and "x * sigmoid(x)" in found.text
    found = hover(analysis, text.rindex("slope="))
    assert found is not None and "slope=1.0" in found.text
    assert "keyword" in {color.kind for color in colors(analysis) if text[color.start : color.end] == "operator"}
