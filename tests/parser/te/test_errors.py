"""What is said of wrong TE text, and where."""

from __future__ import annotations

import pytest
from mirstack.parser import parse_mir
from mirstack.support.diagnostics import MirError, source_position

A = "A = te.placeholder((4,), name='A')\n"

# Text of the function's body (from line 3 on): line, column, message.
WRONG: dict[str, tuple[int, int, str]] = {
    A + "B = te.compute((4,), lambda i: A[i]\nreturn [A, B]": (4, 19, "this '(' is never closed"),
    A + "B = te.compute((4,)), lambda i: A[i])\nreturn [A]": (4, 41, "this ')' closes nothing"),
    A + "B = te.compute((4,], lambda i: A[i])\nreturn [A]": (4, 23, "this ']' does not match the bracket that is open"),
    A + "def g(x)\n    return x\nreturn [A]": (4, 13, "a ':' is missing before the body"),
    A + "def g(x):\nreturn [A]": (5, 5, "the body is missing"),
    A + "    B = A\nreturn [A]": (4, 9, "this line is indented more than the one above it"),
    A + "def g(x):\n        return x\n    return [A]": (6, 9, "this line's indentation matches no line above it"),
    A + "B = te.compute((4,), lambda i: A[i] +)\nreturn [A]": (4, 42, "an expression is missing before ')'"),
    A + "B = A A\nreturn [A]": (4, 11, "an operator or a comma is missing between 'A' and 'A'"),
    A + "if A.ndim = 1:\n    pass\nreturn [A]": (4, 15, "'=' assigns, it does not compare"),
    A + "if A is A:\n    pass\nreturn [A]": (4, 10, "'is' has no place in a TE function"),
    A + "while True:\n    pass\nreturn [A]": (4, 5, "'while' has no place in a TE function"),
    A + "B = 'text\nreturn [A]": (4, 9, "this string is never closed"),
    A + "B = A ? 1\nreturn [A]": (4, 11, "unexpected character '?'"),
    A + "B = te.compute((4,), lambda i: 0 < A[i] < 2)\nreturn [A]": (4, 45, "comparisons cannot be chained here"),
    A + "B = te.compute((4,), lambda i, i: A[i])\nreturn [A]": (4, 36, "parameter 'i' is declared twice"),
    A + "B = te.compute((4,), lambda *i, j: A[j])\nreturn [A]": (4, 37, "parameter 'j' follows *i"),
    A + "B = te.compute(shape=(4,), shape=(4,))\nreturn [A]": (4, 32, "argument 'shape' is given twice"),
    A + "B = te.compute(shape=(4,), 3)\nreturn [A]": (4, 32, "a positional argument follows one with a name"),
    A + "B = te.compute((4,), lambda i: AA[i])\nreturn [A]": (4, 36, "'AA' is not defined"),
    A + "B = te.comput((4,), lambda i: A[i])\nreturn [A]": (4, 9, "there is no 'te.comput'"),
    A + "B = te.tag_scope('x')\nreturn [A]": (4, 9, "'te.tag_scope' is for Python, where mirstack.te has it"),
    A + "B = te.compute((4,), A)\nreturn [A]": (4, 9, "a te.compute takes the function of its axes second, not a whole tensor"),
    A + "B = te.compute((4,), lambda i, j: A[i])\nreturn [A]": (4, 9, "the function of a compute has 2 parameters, but the shape has 1 dim"),
    A + "B = te.compute((4,), lambda i: A[i, i])\nreturn [A]": (4, 36, "tensor 'A' has 1 dimension, but is read with 2 indices"),
    A + "B = te.compute((4,), lambda i: A[i] and A[i])\nreturn [A]": (4, 41, "an expression has no truth value"),
    A + "B = te.compute((4,), lambda i: A[i] ** 2)\nreturn [A]": (4, 41, "'**' is Python's and takes numbers"),
    A + "B = te.compute((4,), lambda i: max(A[i], 0))\nreturn [A]": (4, 36, "max() is Python's and takes numbers"),
    A + "B = te.compute((4,), lambda i: A[i] + 'x')\nreturn [A]": (4, 41, "a scalar expression is expected here, not the string 'x'"),
    A + "B = te.compute((4,), lambda i: A + A)\nreturn [A]": (4, 38, "'+' cannot be applied to a whole tensor"),
    A + "B = te.compute((4,), lambda i: A[i], name=3)\nreturn [A]": (4, 42, "'name' of te.compute is a string, not the number 3"),
    A + "B = te.compute((4,), lambda i: A[i], attrs=3)\nreturn [A]": (4, 42, "'attrs' of te.compute is a dictionary"),
    A + "B = te.compute((4,), lambda i: A[i], nam='B')\nreturn [A]": (4, 42, "te.compute has no parameter 'nam'; did you mean 'name'?"),
    A + "C = te.placeholder((4,), dtyp='float32')\nreturn [A, C]": (4, 30, "te.placeholder has no parameter 'dtyp'; did you mean 'dtype'?"),
    A + "B = te.compute((4,), lambda i: te.abs(A[i], qq=1))\nreturn [A]": (4, 49, "te.abs has no parameter 'qq'; it has x"),
    A + "def g(x, y):\n    return x\ng(1, yy=2)\nreturn [A]": (6, 10, "'g' has no parameter 'yy' left to give"),
    A + "B = A.shape[3]\nreturn [A]": (4, 9, "index 3 is outside a tuple or list of 1"),
    A + "B = A.size\nreturn [A]": (4, 9, "a whole tensor (index it, as in A[i, j]) has no '.size'"),
    A + "B, C = A.shape\nreturn [A]": (4, 5, "1 value cannot be assigned to 2 names"),
    A + "B, C = A\nreturn [A]": (4, 5, "cannot be taken apart into 2 names"),
    A + "A[0] = 1\nreturn [A]": (4, 5, "an element of a whole tensor"),
    A + "A()()\nreturn [A]": (4, 5, "tensor 'A' has 1 dimension, but is read with 0 indices"),
    A + "A.shape()\nreturn [A]": (4, 5, "a tuple cannot be called"),
    A + "for i in range(3):\n    pass\nreturn [A]": (4, 5, "a loop has no place among the definitions"),
    A + "if A[0] > 1:\n    pass\nreturn [A]": (4, 5, "a condition on a value has no place among the definitions"),
    A + "with A:\n    pass\nreturn [A]": (4, 5, "'with' takes ib.for_range"),
    A + "def g(x):\n    return g(x)\ng(1)\nreturn [A]": (5, 16, "calls nest more than 200 deep"),
    A + "def g(x):\n    return x\ng(1, 2)\nreturn [A]": (6, 5, "'g' takes 1 argument, but is called with 2"),
    A + "B = 10 ** 10 ** 10\nreturn [A]": (4, 12, "the result of '**' would be too large"),
    A + "B = 1 // 0\nreturn [A]": (4, 11, "division by zero"),
    A + "r = te.comm_reducer(1, lambda t: t)\nreturn [A]": (4, 9, "'fcombine' of te.comm_reducer is a function"),
    A + "return [A, 3]": (4, 5, "a TE function returns its tensors and te.var scalars, not the number 3"),
    A: (2, 1, "function 'f' returns nothing"),
}  # fmt: skip


@pytest.mark.parametrize("body", WRONG)
def test_message(body: str) -> None:
    line, column, message = WRONG[body]
    text = "@te.func\ndef f():\n" + "".join(f"    {line}\n" for line in body.splitlines())
    with pytest.raises(MirError) as caught:
        parse_mir(text, "f.mir")
    (diagnostic,) = caught.value.diagnostics
    assert message in diagnostic.message
    assert source_position(diagnostic.location) == ("f.mir", line, column)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("@te.schedule(f)\ndef g(s):\n    pass\n", "there is no TE function 'f' to schedule"),
        ("@te.hybrid.script\ndef g(a):\n    return (\n", "this '(' is never closed"),
        ("@te.func\ndef f(a):\n    return a\n", "function 'f' has parameters"),
        ("@te.func(public=1)\ndef f():\n    return 1\n", "@te.func takes no 'public' here"),
        ("@te.func\ndef f():\n    return (\n", "this '(' is never closed"),
    ],
)
def test_items(text: str, message: str) -> None:
    with pytest.raises(MirError, match=message.replace("(", "\\(")):
        parse_mir(text, "f.mir")


def test_every_item_is_reported() -> None:
    text = "@te.func\ndef f():\n    return [x]\n\n@te.func\ndef g():\n    return [y]\n"
    with pytest.raises(MirError) as caught:
        parse_mir(text, "f.mir")
    assert [d.message for d in caught.value.diagnostics] == ["'x' is not defined", "'y' is not defined"]
