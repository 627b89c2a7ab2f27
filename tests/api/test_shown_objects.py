"""What a person sees of an object in a terminal and in a notebook says what it is."""

from __future__ import annotations

from typing import Any

import mirstack
import pytest
from mirstack import te, tir

MODULE = "def @main(%x: Tensor[(2, ?), float32]) { nn.relu(%x) }"


def objects() -> dict[str, Any]:
    """Returns one object of each class that people hold in their hands, by what it is shown as."""
    module = mirstack.IRModule.of_op(mirstack.parse(MODULE))
    a = te.placeholder((4,), name="A")
    b = te.compute((4,), lambda i: a[i] + 1, name="B")
    function = te.create_prim_func([a, b])
    return {
        "IRModule(@main)": module,
        "Executable(main(x: float32[2, ?]))": mirstack.compile(module),
        "Module(main)": mirstack.build(module),
        "Schedule(A, B)": te.create_schedule(b.op),
        "ComputeOp(B)": b.op,
        "PlaceholderOp(A)": a.op,
        "PrimFunc(main)": function,
        "Schedule(main)": tir.Schedule(function),
        "InterpretedExecutable": mirstack.compile(module, target="interp"),
    }


def test_no_object_is_shown_by_its_address():
    for shown, each in objects().items():
        assert " at 0x" not in repr(each)
        assert shown in (repr(each), type(each).__name__)


@pytest.mark.parametrize("shown", ["IRModule(@main)", "Executable(main(x: float32[2, ?]))", "Schedule(main)"])
def test_notebooks_show_text_and_tables(shown: str):
    html = objects()[shown]._repr_html_()
    assert html.startswith(("<pre>", "<table>")) and "main" in html
    assert "%x: Tensor[(2, ?)" in html or "<td>(2, ?)</td>" in html or "T.Buffer((4,)" in html


def test_markup_in_names_is_escaped():
    text = "def @main(%x: Tensor[(2), float32]) { nn.relu(%x) } // <script>\n"
    module = mirstack.IRModule.of_op(mirstack.parse(text))
    assert "<script>" not in module._repr_html_()
    from mirstack.support.notebook import table_html, text_html

    assert text_html("a < b & c") == "<pre>a &lt; b &amp; c</pre>"
    assert "<td>&lt;b&gt;</td>" in table_html("t", ["c"], [["<b>"]])
