"""The caret of an error stands at the word that is wrong: a dtype, a dimension, an attribute, a result's type."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import mirstack
import pytest
from mirstack.support.diagnostics import MirError

if TYPE_CHECKING:
    from conftest import Ran

RELAY = "def @main(%x: Tensor[(2, 3), float32]) {{\n  {}\n}}\n"

# A program in which `^` stands before what is at fault, and the error.
PROGRAMS = [
    ("def @f(%x: Tensor[(2, 3), ^flot32]) { %x }", "unknown dtype 'flot32'; did you mean 'float32'?"),
    ("def @f(%x: Tensor[(2, ^-3), float32]) { %x }", "'-3' is not a dimension"),
    (f"def @f(%x: Tensor[(^{10**20},), int8]) {{ %x }}", f"the dimension {10**20} is too large"),
    (RELAY.format("sum(nn.relu(%x), ^axsi=1)"), "sum has no attribute 'axsi'; did you mean 'axis'?"),
    (RELAY.format("sum(%x, ^zzz=1)"), "sum has no attribute 'zzz'; it has axis, exclude, keepdims"),
    (
        RELAY.format("sum(%x, /* axis=1 */ keepdims=True,\n    ^axis=7)"),
        "sum: axis=7 is out of range: the tensor has rank 2",
    ),
    (
        RELAY.format('sum(expand_dims(%x, axis=0), ^axis="a")'),
        "sum: the attribute 'axis' must be a list of integers or None, not 'a'",
    ),
    (
        '@T.prim_func\ndef f():\n    A = T.alloc_buffer((4,), ^dtyp="float32")\n    A[0] = 1.0\n',
        "T.alloc_buffer has no argument 'dtyp'; did you mean 'dtype'?",
    ),
    (
        '@te.func(^privat=True)\ndef f():\n    A = te.placeholder((4,), name="A")\n    return [A]\n',
        "@te.func takes no 'privat' here",
    ),
    (
        '@te.func\ndef f():\n    A = te.placeholder((4,), name="A")\n'
        "    B = te.compute((4,), lambda i: A[i])\n    return [A, B]\n\n\n@te.schedule(f)\n"
        "def g(s):\n    s[B].split(B.op.axis[0], ^facto=2)\n",
        "split has no parameter 'facto'; did you mean 'factor'?",
    ),
    ("rewrite @r { sum(%x, keepdims=True, ^axsi=1) => %x }", "sum has no attribute 'axsi'; did you mean 'axis'?"),
    ("rewrite @r { sin(%x) => sum(%x, ^axsi=1) }", "sum has no attribute 'axsi'; did you mean 'axis'?"),
    ("rewrite @r { add(%x, ^const(0)) => %x }", "a constant is matched by its number, not by const(…)"),
    ("rewrite @r { add(%x, const(0^f)) => %x }", "the number 0 of a rule takes no suffix 'f'"),
    ("rewrite @r { add(%x, 2.5^f16) => %x }", "the number 2.5 of a rule takes no suffix 'f16'"),
    ("rewrite @r { ^tir.ad(%x, 0) => %x }", "there is no op 'tir.ad' in tir\n"),
    (
        "rewrite @r for arith { arith.addi(%x, %y, ^overflow=1) => %x }",
        "arith.addi has no attribute 'overflow'; did you mean",
    ),
    (
        "def @f(%x: Tensor[(2), int8]) -> ^Tensor[(3), int8] {\n  %x\n}",
        "the result of @f must be Tensor[(3), int8], not Tensor[(2), int8]",
    ),
    (
        "def @f(%x: int8) { let %g = fn (%y: int8) -> ^int32 { negative(%y) }; %g(%x) }",
        "the result of a local function must be int32, not int8",
    ),
]


@pytest.mark.parametrize(("program", "message"), PROGRAMS, ids=[message for _, message in PROGRAMS])
def test_place(program: str, message: str) -> None:
    before, _, after = program.partition("^")
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    with pytest.raises(MirError) as caught:
        mirstack.parse(before + after, "p.mir")
    assert f"p.mir:{line}:{column}: error: {message}" in str(caught.value)


def test_place_of_what_a_schedule_is_of(mir_opt: Callable[..., Ran], tmp_path: Path) -> None:
    text = """@T.prim_func
def f(A: T.Buffer((4,), "float32")):
    A[0] = 1.0

@T.schedule(g)
def s(sch):
    pass
"""
    path = tmp_path / "p.mir"
    path.write_text(text)
    assert (
        "p.mir:5:13: error: schedule 's' is of 'g', but there is no such function"
        in mir_opt(path, "-p", "apply-schedule").err
    )


def test_value_that_is_returned_is_told() -> None:
    with pytest.raises(MirError, match=r"p.mir:2:3: note: what is returned, of type int8, comes from here"):
        mirstack.parse("def @f(%x: int8) -> int32 {\n  negative(%x)\n}", "p.mir")


@pytest.mark.parametrize(("dtype", "suffix"), [("float32", "f"), ("float64", "f64"), ("float16", "f16")])
def test_number_that_is_meant_as_a_float(dtype: str, suffix: str) -> None:
    text = f"def @f(%x: Tensor[(2), {dtype}]) {{ add(%x, NUMBER) }}"
    with pytest.raises(MirError, match=f"a number is of {dtype} where it is written with {suffix}, as 1{suffix}"):
        mirstack.parse(text.replace("NUMBER", "1"))
    mirstack.parse(text.replace("NUMBER", f"1{suffix}"))


@pytest.mark.parametrize("level", ["", " for tir"])
def test_nearest_op_keeps_its_prefix(level: str) -> None:
    with pytest.raises(MirError, match=r"note: did you mean 'tir.min'\?"):
        mirstack.parse(f"rewrite @r{level} {{ tir.minn(%x, 0) => %x }}")
