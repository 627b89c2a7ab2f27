"""Keyword arguments of `script` and `show`, by TVM's names."""

# pyright: basic, reportUndefinedVariable=false, reportInvalidTypeForm=false

from typing import Any

import pytest
from mirstack.api.ir import IRModule
from mirstack.api.script import from_source
from mirstack.api.script import ir as I
from mirstack.api.script import tir as T
from mirstack.support.diagnostics import MirError


@I.ir_module
class Both:
    @T.prim_func
    def inner(A: T.Buffer((4,), "int32")):
        T.func_attr({"note": "T.x # I.y"})
        A[0] = 1

    @T.prim_func
    def main(A: T.Buffer((4,), "int32")):
        for i in T.vectorized(4):
            A[i] = 2
        cls.inner(A.data)  # noqa: F821


def test_prefixes() -> None:
    text = Both.script(tir_prefix="tir", ir_prefix="ir", module_alias="mod", show_meta=True, name="x")
    assert "from tvm.script import tir as tir\n" in text and "from tvm.script import ir as ir\n" in text
    assert "@ir.ir_module\nclass Module:\n    @tir.prim_func\n" in text
    assert (
        'tir.func_attr({"note": "T.x # I.y"})' in text
        and "Module.inner(A.data)" in text
        and "tir.vectorized(4)" in text
    )


def test_indentation_and_line_numbers() -> None:
    function = from_source(
        "@T.prim_func\ndef f(A: T.Buffer((4,), 'int32')):\n    for i in range(4):\n        A[i] = i\n"
    )
    assert function.script(indent_spaces=2).splitlines()[-2:] == ["  for i in range(4):", "    A[i] = i"]
    assert function.script(print_line_numbers=True).splitlines()[:3] == [
        "1 # from tvm.script import tir as T",
        "2",
        "3 @T.prim_func",
    ]
    assert function.script(show_meta=False, num_context_lines=3, syntax_sugar=True) == function.script()


def test_show(capsys: pytest.CaptureFixture[str]) -> None:
    Both["main"].show(style="light", black_format=False, tir_prefix="X")
    assert "X.vectorized(4)" in capsys.readouterr().out
    assert isinstance(Both, IRModule)
    Both.show(indent_spaces=1)
    assert "\n   A[0] = 1\n" not in (out := capsys.readouterr().out) and "\n  A[0] = 1\n" in out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tir_prefx": "x"}, "script has no argument 'tir_prefx'; did you mean 'tir_prefix'?"),
        ({"int_dtype": "int64"}, "script takes int_dtype='int32' only, not 'int64'\nnote: numbers are written with"),
        ({"tir_prefix": "a b"}, "'a b' cannot be a prefix: it is not a name"),
        ({"indent_spaces": 0}, "indent_spaces is at least 1, not 0"),
    ],
)
def test_refused(options: Any, message: str) -> None:
    with pytest.raises(MirError) as caught:
        Both.script(**options)
    assert message in str(caught.value)
