"""What a script takes from the Python around it: values that are computed, branches that are known, macros, plain classes."""

# Scripts are Python to nobody but the interpreter that evaluates their annotations.
# ruff: noqa: B007, F821
# pyright: basic, reportInvalidTypeForm=false, reportUndefinedVariable=false
# pyright: reportArgumentType=false, reportOptionalMemberAccess=false, reportOperatorIssue=false, reportGeneralTypeIssues=false

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import mirstack
import numpy as np
import pytest
from mirstack import te, tir
from mirstack.api.ir import IRModule, PrimFunc
from mirstack.api.script import from_source
from mirstack.api.script import ir as I
from mirstack.api.script import tir as T
from mirstack.support.diagnostics import MirError

x_value = 128


@dataclass
class Config:
    shape: tuple[int, ...] = (4, 6)
    dtype: str = "int32"

    def size(self) -> int:
        return math.prod(self.shape)


def body(text: str, **around: Any) -> str:
    function = from_source(
        f"@T.prim_func\ndef f(A: T.Buffer((16,), 'float32'), B: T.Buffer((16,), 'float32')):\n    {text}\n", around
    )
    return function.script().partition(":\n")[2]


VALUES = {
    "an item": ("for i in range(shape[1]):\n        B[i] = A[i]", "    for i in range(6):"),
    "a negative item": ("B[shape[-1]] = A[0]", "    B[6] = A[0]"),
    "a length": ("B[len(shape)] = A[0]", "    B[2] = A[0]"),
    "arithmetic": ("B[shape[0] * 2 // len(shape)] = A[0]", "    B[4] = A[0]"),
    "true division": ("B[0] = A[0] * (shape[0] / 8)", "    B[0] = A[0] * T.float32(0.5)"),
    "a key": ("B[sizes['n']] = A[0]", "    B[3] = A[0]"),
    "an attribute": ("B[config.shape[0]] = A[0]", "    B[4] = A[0]"),
    "a method": ("B[config.size() - 10] = A[0]", "    B[14] = A[0]"),
    "an attribute of a module": ("B[0] = A[0] * math.floor(math.pi)", "    B[0] = A[0] * T.float32(3)"),
    "a function": ("B[double(3)] = A[0]", "    B[6] = A[0]"),
    "a function with keywords": ("B[double(x=4)] = A[0]", "    B[8] = A[0]"),
    "text": ("T.evaluate(T.call_extern('int32', prefix + '_f'))", '    T.call_extern("int32", "my_f")'),
    "items taken apart": ("for i, j in T.grid(*shape):\n        B[i] = A[j]", "    for i, j in T.grid(4, 6):"),
    "a list taken apart": ("for i, j in T.grid(*[2, 3]):\n        B[i] = A[j]", "    for i, j in T.grid(2, 3):"),
    "a dictionary": (
        "for i in T.serial(4, annotations=notes):\n        B[i] = A[i]",
        '    for i in T.serial(4, annotations={"a": 1, "b": ["x", T.bool(True)]}):',
    ),
    "an array": ("B[array[1]] = A[0]", "    B[7] = A[0]"),
    "a slice": ("for i, j in T.grid(*(shape + shape)[1:3]):\n        B[i] = A[j]", "    for i, j in T.grid(6, 4):"),
    "a branch": ("if fast:\n        B[0] = A[0]\n    else:\n        B[1] = A[1]", "    B[0] = A[0]"),
    "the other branch": ("if not fast:\n        B[0] = A[0]\n    else:\n        B[1] = A[1]", "    B[1] = A[1]"),
    "a comparison": ("if len(shape) > 2:\n        B[0] = A[0]\n    else:\n        B[1] = A[1]", "    B[1] = A[1]"),
    "conversions": ("B[int(2.5)] = A[0]", "    B[2] = A[0]"),
}


@pytest.mark.parametrize("case", VALUES)
def test_python_is_evaluated(case: str) -> None:
    text, expected = VALUES[case]
    found = body(
        text,
        shape=(4, 6),
        sizes={"n": 3},
        config=Config(),
        math=math,
        double=lambda x: 2 * x,
        prefix="my",
        notes={"a": 1, "b": ["x", True]},
        array=np.array([5, 7]),
        fast=True,
    )
    assert found.splitlines()[0] == expected


def test_what_the_function_binds_is_its_own() -> None:
    assert "    for shape in range(4):" in body("for shape in range(4):\n        B[shape] = A[shape]", shape=(4, 6))


def test_python_that_fails_is_an_error_at_its_place() -> None:
    with pytest.raises(MirError) as caught:
        body("B[shape[2]] = A[0]", shape=(4, 6))
    first, second, caret, *_ = str(caught.value).splitlines()
    assert (
        first
        == "<script>:3:7: error: this expression cannot be evaluated in Python: IndexError: tuple index out of range"
    )
    assert second.index("shape") == caret.index("^")

    def broken(x: int) -> int:
        raise ValueError(f"no {x}")

    with pytest.raises(MirError, match=r"'broken\(…\)' cannot be evaluated in Python: ValueError: no 3"):
        body("B[broken(3)] = A[0]", broken=broken)
    with pytest.raises(MirError, match="OverflowError: the result has more than 4096 bits"):
        body("B[n ** 1000000000] = A[0]", n=3)


SHORT = {
    "T.evaluate(T.call_extern('int32', str('x') * 100000))": "OverflowError: the result has more than 65536 items",
    "B[len(list([1]) * 100000)] = A[0]": "OverflowError: the result has more than 65536 items",
    "B[len(str('x').ljust(100000))] = A[0]": "AttributeError: a script does not look up 'ljust'",
    "T.evaluate(T.call_extern('int32', str('%99999d') % 1))": "TypeError: a script does not format text by %",
    "B[len(list([1]).__class__)] = A[0]": "AttributeError: a script does not look up '__class__'",
    "B[str.maketrans] = A[0]": "'str.maketrans' is not defined",
}


@pytest.mark.parametrize("text", SHORT)
def test_a_short_script_makes_nothing_long(text: str) -> None:
    with pytest.raises(MirError, match=SHORT[text]):
        body(text)


def test_methods_of_plain_values() -> None:
    assert "B[3] = A[7]" in body("B[sizes.get('x', 3)] = A[len(name.upper())]", sizes={}, name="seven_7")


def test_a_value_of_another_kind() -> None:
    with pytest.raises(
        MirError, match="3:12: error: 'thing' of the Python around is an object, which is not a value here"
    ):
        body("B[0] = thing", thing=object())


def test_expressions_around_are_values() -> None:
    n, m = te.var("n"), tir.SizeVar("m", "int32")

    @T.prim_func
    def f(a: T.handle, b: T.handle):
        A = T.match_buffer(a, (n, n + 1))
        B = T.match_buffer(b, (m,))
        for i in range(n):
            if n > 3 and not m > 2:
                A[i, 0] = B[tir.Min(i, m - 1)] * tir.IntImm("int32", 2)

    @T.prim_func
    def expected(a: T.handle, b: T.handle):
        n = T.int32()
        m = T.int32(is_size_var=True)
        A = T.match_buffer(a, (n, n + 1))
        B = T.match_buffer(b, (m,))
        for i in range(n):
            if n > 3 and not m > 2:
                A[i, 0] = B[T.min(i, m - 1)] * 2

    assert f.script().replace("def f(", "def expected(") == expected.script()


def test_functions_of_python_get_nodes() -> None:
    seen: list[Any] = []

    def twice(buffer: Any, index: Any, by: Any = 2) -> Any:
        seen.append((buffer, index, by))
        return buffer[index] * by

    def shape_of(buffer: Any) -> int:
        return buffer.shape[0] - 1

    def note(*values: Any) -> None:
        seen.append(values)

    text = """
    for i in range(16):
        B[i] = twice(A, i) + twice(A, index=i, by=T.float32(0.5))
        note("x", [A, True, {"k": i}], 3)
    B[shape_of(A)] = A[0]
    tir.call_extern("int32", "f", B.data)
    """
    found = body(text.strip(), twice=twice, shape_of=shape_of, note=note, tir=tir)
    assert [line.strip() for line in found.splitlines()] == [
        "for i in range(16):",
        "B[i] = A[i] * T.float32(2) + A[i] * T.float32(0.5)",
        "B[15] = A[0]",
        'T.call_extern("int32", "f", B.data)',
    ]
    assert isinstance(seen[0][0], tir.Buffer) and seen[0][0] is seen[1][0] and isinstance(seen[0][1], tir.Var)
    assert seen[0][2] == 2 and isinstance(seen[1][2], tir.FloatImm)
    assert seen[2][0] == "x" and seen[2][1][:2] == [seen[0][0], True] and seen[2][2] == 3


WRONG = {
    "B[0] = max(A[0], 2.0)": r"3:12: error: 'max\(…\)': an expression has no truth value while",
    "B[0] = boom(A[1])": r"3:12: error: 'boom\(…\)' cannot be evaluated in Python: AttributeError: 'Var' object has no",
    "B[0] = lists(A[1])": r"3:12: error: what 'lists' returns is a list, which is not a value here",
    "B[0] = outside[0]": "3:12: error: the buffer 'outside' of the Python around is not declared in this function",
    "B[n % 0] = A[0]": "3:9: error: this expression: division by zero",
}


@pytest.mark.parametrize("text", WRONG)
def test_errors_of_functions_of_python(text: str) -> None:
    outside = tir.decl_buffer((4,), name="outside")
    with pytest.raises(MirError, match=WRONG[text]):
        body(text, boom=lambda x: x.nothing, lists=lambda x: [x], outside=outside, n=te.var("n"))


def test_forms_of_older_scripts() -> None:
    text = 'B[0] = T.call_llvm_pure_intrin({}T.uint32(1), A[0], dtype="float32")'
    named = body(text.format('T.llvm_lookup_intrinsic_id("llvm.sqrt.f32"), '))
    assert named == body(text.format('"llvm.sqrt.f32", ')) and '"float32", "llvm.sqrt.f32"' in named
    pointer = from_source("@T.prim_func\ndef f(p: T.Ptr[T.int32]):\n    T.evaluate(p)\n")
    assert 'def f(p: T.handle("int32")):' in pointer.script()


@T.macro
def assign(i, *args, t1, **kwargs):
    vi, vj, vk = T.axis.remap("SSR", [i, args[0], args[1]])
    kwargs["t3"][vi, vj] = kwargs["t3"][vi, vj] + t1[vi, vk] * kwargs["t2"][vj, vk]


def test_macro_with_parameters_of_all_kinds() -> None:
    @T.prim_func(private=True)
    def with_macro(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, [128, 128])
        B = T.match_buffer(b, [128, 128])
        C = T.match_buffer(c, [128, 128])
        for i, j, k in T.grid(128, 128, 128):
            with T.block("update"):
                assign(i, j, k, t1=A, t2=B, t3=C)

    @T.prim_func(private=True)
    def without(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, [128, 128])
        B = T.match_buffer(b, [128, 128])
        C = T.match_buffer(c, [128, 128])
        for i, j, k in T.grid(128, 128, 128):
            with T.block("update"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vj, vk]

    mirstack.ir.assert_structural_equal(with_macro, without)


def test_where_the_names_of_a_macro_are_from() -> None:
    @T.macro(hygienic=True)
    def of_the_macro(A, B):
        B[()] = A[x_value]

    @T.macro(hygienic=False)
    def of_the_call(A, B):
        B[()] = A[x_value]

    assert of_the_macro.hygienic and not of_the_call.hygienic
    assert repr(of_the_macro) == "T.macro(of_the_macro(A, B))"

    @T.prim_func(private=True)
    def use(A: T.Buffer((1024,), "int32"), B: T.Buffer((), "int32")) -> None:
        for x_value in T.serial(10):
            of_the_macro(A, B)
            of_the_call(A, B)

    assert [line.strip() for line in use.script().splitlines()[-2:]] == ["B[()] = A[128]", "B[()] = A[x_value]"]


def test_names_that_macros_bind_do_not_meet() -> None:
    @T.macro
    def copy(X, Y, n=4):
        for i in range(n):
            x = X[i] * 2
            Y[i] = x + 1

    @T.macro
    def twice(X, Y):
        copy(X, Y, n=2)
        copy(Y, X)

    @T.prim_func
    def f(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32"), C: T.Buffer((4,), "int32")):
        for i in range(4):
            x = A[i]
            twice(A, B)
            C[i] = x

    assert isinstance(f, PrimFunc)
    arrays = [mirstack.nd.array(np.arange(4, dtype="int32")) for _ in range(3)]
    mirstack.build(f)(*arrays)
    a, b, c = np.arange(4), np.arange(4), np.zeros(4)
    for i in range(4):
        x = a[i]
        b[:2] = a[:2] * 2 + 1
        a = b * 2 + 1
        c[i] = x
    assert [array.numpy().tolist() for array in arrays] == [a.tolist(), b.tolist(), c.tolist()]


def test_an_argument_is_evaluated_where_the_macro_uses_it() -> None:
    @T.macro
    def store(X, value):
        X[0] = 1
        X[1] = value

    @T.prim_func
    def f(A: T.Buffer((4,), "int32")):
        store(A, A[0] + 1)

    assert "    A[0] = 1\n    A[1] = A[0] + 1" in f.script()


def test_errors_in_macros() -> None:
    @T.macro
    def wrong(X):
        X[0] = unknown

    line = wrong.item.line
    with pytest.raises(MirError) as caught:

        @T.prim_func
        def f(A: T.Buffer((4,), "int32")):
            wrong(A)

    assert f"test_python_in_scripts.py:{line + 2}:16: error: 'unknown' is not defined" in str(caught.value)
    assert "        X[0] = unknown\n               ^" in str(caught.value)
    with pytest.raises(MirError, match=r"macro 'wrong': too many positional arguments\n.*\n.*\nnote: it is wrong\(X\)"):

        @T.prim_func
        def g(A: T.Buffer((4,), "int32")):
            wrong(A, A)

    @T.macro
    def outside(i):
        A[i] = 0

    with pytest.raises(
        MirError, match=r"the macro does not see 'A' of the function that calls it\n.*\n.*\nnote: pass it"
    ):

        @T.prim_func
        def h(A: T.Buffer((4,), "int32")):
            outside(1)

    @T.macro(hygienic=False)
    def endless(X):
        endless(X)

    with pytest.raises(MirError, match="macros call one another to a depth of more than 64"):

        @T.prim_func
        def k(A: T.Buffer((4,), "int32")):
            endless(A)

    with pytest.raises(TypeError, match=r"@T\.macro decorates a function, not 3"):
        T.macro(3)


class Plain:
    @T.prim_func
    def function(A: T.Buffer((4,), "int32")):
        A[0] = x_value

    @T.prim_func(check_well_formed=False, private=True)
    def hidden(A: T.Buffer((4,), "int32")):
        A[0] = 1


@I.ir_module(check_well_formed=False)
class Checked:
    @T.prim_func
    def function(A: T.Buffer((4,), "int32")):
        A[0] = x_value


def test_functions_of_plain_classes() -> None:
    assert isinstance(Plain.function, PrimFunc) and "A[0] = 128" in Plain.function.script()
    assert "private=True" in Plain.hidden.script()
    assert isinstance(Checked, IRModule) and "A[0] = 128" in Checked.script()
