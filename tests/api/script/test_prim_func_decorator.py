"""TVMScript in Python files: what is read, which variables around count, what is refused and where."""

# Scripts are Python to nobody but the interpreter that evaluates their annotations.
# ruff: noqa: F821, UP037
# pyright: basic, reportInvalidTypeForm=false, reportUndefinedVariable=false
# pyright: reportArgumentType=false, reportOptionalMemberAccess=false, reportOperatorIssue=false, reportGeneralTypeIssues=false

from __future__ import annotations

import inspect
from typing import Any

import mirstack
import numpy as np
import pytest
from mirstack.api.ir import IRModule, PrimFunc, assert_structural_equal, structural_equal, structural_hash
from mirstack.api.script import from_source
from mirstack.api.script import ir as I
from mirstack.api.script import tir as T
from mirstack.support.diagnostics import MirError

ROWS = 4
DTYPE = "int32"
SHAPE = (ROWS, 3)
FACTOR = np.int64(-2)


@I.ir_module
class Doubling:
    """Two functions, one for the other to be called."""

    @T.prim_func
    def main(a: T.handle, b: T.handle):
        T.func_attr({"tir.noalias": True})
        A = T.match_buffer(a, SHAPE, dtype=DTYPE)
        B = T.match_buffer(b, SHAPE, dtype=DTYPE)
        for i, j in T.grid(ROWS, 3):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * FACTOR

    @T.prim_func
    def other(A: T.Buffer[(8,), "float32"], B: T.Buffer((8,), "float32")):
        for i in range(8):
            B[i] = A[i] + 1.0


def test_class_is_an_ir_module() -> None:
    assert isinstance(Doubling, IRModule)
    text = Doubling.script()
    assert "class Module:" in text and 'A: T.Buffer((4, 3), "int32")' in text and "* -2" in text
    assert [v.name_hint for v in Doubling.get_global_vars()] == ["main", "other"]
    assert isinstance(Doubling["other"], PrimFunc)


def test_function_sees_the_variables_around_it() -> None:
    count, kinds = 6, ["float32"]

    @T.prim_func
    def scale(A: T.Buffer((count,), DTYPE), B: T.Buffer((count,), DTYPE)):
        for i in T.serial(count):
            B[i] = A[i] * count

    assert isinstance(scale, PrimFunc)
    assert "B[i] = A[i] * 6" in scale.script() and kinds
    a, b = mirstack.nd.array(np.arange(6, dtype="int32")), mirstack.nd.empty((6,), "int32")
    mirstack.build(scale)(a, b)
    assert b.numpy().tolist() == [0, 6, 12, 18, 24, 30]


def test_own_names_hide_those_around() -> None:
    i = "hidden"

    @T.prim_func
    def f(A: T.Buffer((4,), "int32")):
        for i in range(4):
            A[i] = i

    assert "A[i] = i" in f.script() and i


def test_two_classes_of_one_name() -> None:
    def first() -> IRModule:
        @I.ir_module
        class Same:
            @T.prim_func
            def f(A: T.Buffer((1,), "int32")):
                A[0] = 1

        return Same

    def second() -> IRModule:
        @I.ir_module
        class Same:
            @T.prim_func
            def f(A: T.Buffer((1,), "int32")):
                A[0] = 2

        return Same

    assert "= 1" in first().script() and "= 2" in second().script()


def test_private_function() -> None:
    @T.prim_func(private=True)
    def helper(A: T.Buffer((1,), "int32")):
        A[0] = 1

    assert "private=True" in helper.script() and "global_symbol" not in helper.attrs


def test_error_is_at_the_place_in_the_python_file() -> None:
    line = inspect.currentframe().f_lineno
    with pytest.raises(MirError) as caught:

        @T.prim_func
        def bad(A: T.Buffer((4,), "int32")):
            for i in T.serial(4):
                A[i] = unknown

    assert f"test_prim_func_decorator.py:{line + 6}:24: error: 'unknown' is not defined" in str(caught.value)
    assert "                A[i] = unknown\n                       ^" in str(caught.value)


def test_source_that_cannot_be_read() -> None:
    scope: dict[str, Any] = {"T": T}
    exec("def f(A: T.handle):\n    pass\n", scope)
    with pytest.raises(MirError, match="the source of 'f' cannot be read\nnote: a script is read from its file"):
        T.prim_func(scope["f"])


def test_decorators_take_functions_and_classes() -> None:
    with pytest.raises(TypeError, match=r"@T\.prim_func decorates a function, not 3"):
        T.prim_func(3)
    with pytest.raises(TypeError, match=r"@I\.ir_module decorates a class, not 3"):
        I.ir_module(3)


def test_text() -> None:
    function = from_source(
        """
        @T.prim_func
        def f(A: T.Buffer((n,), "int32")):
            for i in range(n):
                A[i] = i
        """,
        {"n": 5},
    )
    assert isinstance(function, PrimFunc) and "range(5)" in function.script()
    module = from_source(
        "@I.ir_module\nclass M:\n    @T.prim_func\n    def g(A: T.Buffer((2,), 'int32')):\n        A[0] = 1\n"
    )
    assert isinstance(module, IRModule) and "class Module" in module.script()


def test_prim_funcs_in_modules() -> None:
    other = Doubling["other"]
    module = IRModule({"main": other})
    assert "def main(" in module.script() and module["main"].name == "main"
    module["main"] = Doubling["main"]
    assert structural_equal(module["main"], Doubling["main"])
    assert not structural_equal(other, Doubling["main"])
    assert_structural_equal(IRModule({"other": other, "main": Doubling["main"]}), Doubling)
    with pytest.raises(MirError, match="the module has no function @f; it has @main"):
        module["f"]


def test_attributes_of_a_function() -> None:
    other = Doubling["other"].with_attr("flags", [1, True, "x", {"k": 0.5}])
    assert other.attrs == {"global_symbol": "other", "flags": [1, True, "x", {"k": 0.5}]}
    assert other.without_attr("flags").attrs == {"global_symbol": "other"}
    assert other.with_attr({"global_symbol": "renamed"}).name == "renamed"
    assert "private=True" in other.without_attr("global_symbol").script()
    with pytest.raises(TypeError, match="is not a number, string, list or dictionary"):
        other.with_attr("flags", object())


def test_names_do_not_count_for_structural_equality() -> None:
    text = "@T.prim_func\ndef f({A}: T.Buffer((4,), 'int32')):\n    for {i} in range(4):\n        with T.block('{b}'):\n            v{i} = T.axis.spatial(4, {i})\n            {A}[v{i}] = {n}\n"
    one, two = (from_source(text.format(A=a, i=i, b=b, n=1)) for a, i, b in (("A", "i", "B"), ("X", "k", "Y")))
    assert structural_equal(one, two)
    assert not structural_equal(one, from_source(text.format(A="A", i="i", b="B", n=2)))


EQUAL = {
    "a value with several uses": (
        "B = T.alloc_buffer((4,))\n    B[0] = A[0] * T.float32(2) + A[0] * T.float32(2)",
        "B = T.alloc_buffer((4,))\n    v: T.float32 = A[0] * T.float32(2)\n    B[0] = v + v",
    ),
    "where views are declared": (
        "A1 = T.Buffer((2, 2), data=A.data)\n    C = T.alloc_buffer((4,))\n    C[0] = A1[0, 1]",
        "C = T.alloc_buffer((4,))\n    A1 = T.Buffer((2, 2), data=A.data)\n    C[0] = A1[0, 1]",
    ),
    "a thread of the environment": (
        "i = T.launch_thread('threadIdx.x', 4)\n    A[i] = T.float32(1)",
        "i = T.env_thread('threadIdx.x')\n    T.launch_thread(i, 4)\n    A[i] = T.float32(1)",
    ),
    "attributes in another order": ("T.func_attr({'a': 1, 'b': 2})", "T.func_attr({'b': 2, 'a': 1})"),
}

DIFFERENT = {
    "a value read before and after a write": (
        "v: T.float32 = A[0]\n    A[0] = T.float32(1)\n    A[1] = v",
        "A[0] = T.float32(1)\n    v: T.float32 = A[0]\n    A[1] = v",
    ),
    "which of two buffers": (
        "B = T.alloc_buffer((4,))\n    C = T.alloc_buffer((4,))\n    B[0] = T.float32(1)\n    C[0] = T.float32(1)",
        "B = T.alloc_buffer((4,))\n    C = T.alloc_buffer((4,))\n    B[0] = T.float32(1)\n    B[0] = T.float32(1)",
    ),
    "the dtype of a constant": ("T.evaluate(T.int64(1))", "T.evaluate(1)"),
    "a predicate": ("A.vstore([T.Ramp(0, 1, 2)], A[0:2], predicate=T.Broadcast(T.bool(True), 2))", "A[0:2] = A[0:2]"),
    "the side of a branch": (
        "if A[0] < T.float32(1):\n        A[0] = T.float32(1)",
        "if A[0] < T.float32(1):\n        T.evaluate(0)\n    else:\n        A[0] = T.float32(1)",
    ),
    "what a conditional expression reads": (
        "A[0] = T.if_then_else(A[1] < T.float32(1), A[2], A[3])",
        "A[0] = T.if_then_else(A[1] < T.float32(1), A[3], A[2])",
    ),
}


def of_body(body: str) -> PrimFunc:
    function = from_source(f"@T.prim_func\ndef f(A: T.Buffer((4,), 'float32')):\n    {body}\n")
    assert isinstance(function, PrimFunc)
    return function


@pytest.mark.parametrize("case", EQUAL)
def test_structure_is_equal(case: str) -> None:
    one, other = map(of_body, EQUAL[case])
    assert structural_equal(one, other) and structural_hash(one) == structural_hash(other)


@pytest.mark.parametrize("case", DIFFERENT)
def test_structure_is_different(case: str) -> None:
    one, other = map(of_body, DIFFERENT[case])
    assert not structural_equal(one, other) and structural_equal(one, of_body(DIFFERENT[case][0]))


def test_a_stated_offset_of_nothing_is_none() -> None:
    text = "@T.prim_func\ndef f(a: T.handle):\n    A = T.match_buffer(a, (4,){})\n    A[0] = T.float32(1)\n"
    plain = from_source(text.format(""))
    assert structural_equal(from_source(text.format(", elem_offset=0, align=64, offset_factor=1")), plain)
    assert not structural_equal(from_source(text.format(", offset_factor=1")), plain)


def test_global_symbol_is_the_name() -> None:
    function = of_body("T.func_attr({'global_symbol': 'main', 'k': 1})")
    assert function.name == "main" and function.attrs == {"global_symbol": "main", "k": 1}
    assert "def g(" in function.with_attr("global_symbol", "g").script() and "global_symbol" not in function.script()
