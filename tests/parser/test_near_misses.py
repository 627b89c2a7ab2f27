"""Messages for text that is nearly right: each says at its place what is wrong, and what to write."""

from __future__ import annotations

import mirstack
import pytest

RELAY = [
    ("def @main(%x: Tensr[(2, 3), float32]) { %x }", "1:15: error: unknown type 'Tensr'; did you mean 'Tensor'?", ""),
    ("fun @main(%x: int32) { %x }", "1:1: error: 'fun' begins no function; did you mean 'def'?", "def @main(…) { … }"),
    ("def @main(%x: Tensor[(2,), float]) { %x }", "1:28: error: unknown dtype 'float'; did you mean 'float32'?", ""),
    ("def @main(%x: Tensor[(2,), double]) { %x }", "1:28: error: unknown dtype 'double'; did you mean 'float64'?", ""),
    ("def @main(%x: int32) { Cons(%x, %x) }", "1:24: error: unknown constructor 'Cons'\n", "declared by 'type T"),
    ("def @main(%x: int32) { Add(%x, %x) }", "1:24: error: unknown constructor 'Add'; did you mean 'add'?", ""),
    ("def @main(%x int32) { %x }", "1:13: error: a ':' is missing here\n", "a type is written %x: Tensor[(2, 3), float32]"),
    ("def @main(%x: int32 { %x }", "1:10: error: this '(' is never closed\n", "expected ')' before this"),
    ("def @main(%x: int32)) { %x }", "1:21: error: this ')' closes nothing\n", ""),
    ("def @main(%x: int32) %x", "1:22: error: a function's body is in braces\n", "it is written def @f(…) { … }"),
    ("def @main(%x: int32) { %x", "1:22: error: this '{' is never closed\n", "expected '}' before this"),
    ("def @main(%x: int32) { %x } }", "1:29: error: this '}' closes nothing\n", ""),
    ("def @main(%x: int32) { (%x, %x }", "1:24: error: this '(' is never closed\n", "expected ')' before this"),
    ("def @main(%x: int32) { add(%x, %x] }", "1:34: error: this ']' does not match the bracket that is open\n", ""),
    ("def @main(%x: int32) { %0 = add(%x, %x; %0 }", "1:32: error: this '(' is never closed\n", "expected ')' before"),
    ("def @main(%x: int32) { %0 = add(%x, %x)); %0 }", "1:40: error: this ')' closes nothing\n", ""),
    ("def @main(%x: int32) { %0 := %x; %0 }", "1:27: error: unexpected ':='\n", "a binding is written %0 = …;"),
    ("def @main(%x: int32) { %y = %x; %y }", "1:24: error: only graph names, %0, are bound without let\n", "write let"),
    ("def @main(%x: int32) { let y = %x; y }", "1:28: error: a variable's name begins with '%'\n", "it is written let"),
    ("def @main(%x: int32) { nn.softmax(%x, axis:1) }", "1:43: error: expected ')', found ':'\n", "written axis=…"),
    ("def @main(%x: int32) { add(%x, axis=) }", "1:37: error: expected a value, found ')'\n", ""),
    ("def @main(%x: int32) { while (%x) { %x } }", "1:24: error: Relay has no 'while'\n", "a function that calls itself"),
    ("def @main(%x: int32) { add(%x %x) }", "1:30: error: a comma is missing here\n", ""),
    ("def @main(%x: int32) { %0 = %x %0 }", "1:31: error: a semicolon is missing here\n", "each binding ends with ';'"),
]  # fmt: skip

A = '@te.func\ndef f():\n    A = te.placeholder((4,), name="A")\n'
TE = [
    (A + "    B = te.compute((4,), lambda i: A[i i])\n    return [A, B]", "4:40: error: an operator or a comma is missing between 'i' and 'i'\n", "separated by ','"),
    (A + "    B = te.compute((4,), lambda i A[i])\n    return [A, B]", "4:35: error: unexpected 'A'\n", "expected ',' or ':'"),
    (A + "    B = te.compute((4,), lambda i: A[i)\n    return [A, B]", "4:39: error: this ')' does not match the bracket that is open\n", "4:37: note: '[' is opened here"),
    (A + "    B == te.compute((4,), lambda i: A[i])\n    return [A, B]", "4:7: error: '==' compares, it does not assign\n", "write '=' to define 'B'"),
    (A + "    B = te.compute((4,), lambda i: A[i] if i > 1)\n    return [A, B]", "4:49: error: this 'if' has no 'else'\n", "a if condition else b"),
    (A + "    B = te.compute((4,), lambda i: A[i] if i > 1 else)\n    return [A, B]", "4:54: error: an expression is missing before ')'\n", "a if condition else b"),
    (A + "    B = te.compute((4,), lambda i: A[i] * 2f)\n    return [A, B]", "4:44: error: the number 2 takes no suffix 'f'\n", 'as in te.const(2, "float16")'),
    (A + "    B = te.compute((4,), lambda i: A[i] + )\n    return [A, B]", "4:43: error: an expression is missing before ')'\n", "'+' needs an expression on each side"),
    (A + "    B = te.compute((4,), lambda i: A[i], name:'B')\n    return [A, B]", "4:46: error: unexpected ':'\n", "an argument by name is written name=…"),
    (A + "    B = te.compute({4, 4}, lambda i, j: A[i])\n    return [A, B]", "4:22: error: unexpected ','\n", "a tuple is written (a, b)"),
    (A + "    B = te.compute((4,),, lambda i: A[i])\n    return [A, B]", "4:25: error: an expression is missing before ','\n", "remove one ','"),
    (A + "    print A\n    return [A]", "4:11: error: an operator or a comma is missing between 'print' and 'A'\n", "a call is written print(…)"),
    (A + "    def g(x):\n        return x\n    else:\n        pass\n    return [A]", "6:5: error: 'else' or 'elif' without its 'if'\n", "directly under"),
    (A + "    return [A", "4:12: error: this '[' is never closed\n", "4:14: note: expected ']' before this"),
    ('@te.func\ndef f():\nA = te.placeholder((4,), name="A")\nreturn [A]', "3:1: error: the body is missing\n", "indent it"),
]  # fmt: skip

P = '@T.prim_func\ndef f(A: T.Buffer((4,), "float32")):\n'
TVMSCRIPT = [
    (P + "    T.block('B'):\n        A[0] = T.float32(1)", "3:18: error: 'with' is missing before 'T.block'\n", "with T.block(…):"),
    (P + "    T.init():\n        A[0] = T.float32(1)", "3:14: error: 'with' is missing before 'T.init'\n", "with T.init(…):"),
    (P + "    for i in range(4) {\n        A[i] = 1.0\n    }", "3:23: error: a ':' is missing before the body\n", "a body has no braces"),
    (P + "    for i = range(4):\n        A[i] = 1.0", "3:11: error: unexpected '='\n", "expected 'in'"),
    (P + "    for i in range(4:\n        A[i] = 1.0", "3:19: error: this '(' is never closed\n", "3:21: note: expected ')' before this"),
    (P + "    if A[0] > 1.0 && A[1] > 1.0:\n        A[0] = 1.0", "3:20: error: unexpected '&&'\n", "joined by and, or and not"),
    (P + "    if !A[0]:\n        A[0] = 1.0", "3:8: error: unexpected character '!'\n", "joined by and, or and not"),
    (P + "    A[0] = 2.0f", "3:15: error: the number 2.0 takes no suffix 'f'\n", "as in T.float16(2)"),
    (P + "    x == A[0]", "3:7: error: '==' compares, it does not assign\n", "write '=' to define 'x'"),
    (P + "    A[0] = \n    A[1] = 1.0", "3:11: error: an expression is missing after '='\n", "write the value after '='"),
    (P + "    A[0] = A[1", "3:13: error: this '[' is never closed\n", "3:15: note: expected ']' before this"),
    ("@T.prim_func\nf(a: T.int32):\n    pass", "2:1: error: unexpected 'f'\n", "expected 'def', 'class' or a decorator"),
]  # fmt: skip

RULES = [
    ("rewrite @a { add(%x %y) => %x }", "1:21: error: a comma is missing before '%y'\n", ""),
    ("rewrite @a { [add subtract](%x, %y) => %x }", "1:19: error: a comma is missing before 'subtract'\n", ""),
    ("rewrite @a { add(%x, %y)) => %x }", "1:25: error: this ')' closes nothing\n", "remove it"),
    ("rewrite @a { add(%x, %y) %x }", "1:26: error: a rule has two sides\n", "write '=>' between them: lhs => rhs"),
    ("rewrite @a { add(%x, %y) = %x }", "1:26: error: unexpected '='\n", "expected '=>' or ','"),
    ("rewrite @a { sum(%x, axis: 1) => %x }", "1:26: error: unexpected ':'\n", "an op's attribute is written axis=…"),
    ("rewrite @a { let %y = exp(%x) => %y }", "1:14: error: unexpected 'let'\n", "a value is named without it: %y = …"),
    ("rewrite @a { sum(%x, axis='a') => %x }", '1:27: error: unexpected character "\'"\n', 'a string is written "…"'),
    ("rewrite @a { exp(%x) => %x", "1:12: error: this '{' is never closed\n", "a rule is: rewrite @name"),
    (
        "rewrite @a for { exp(%x) => %x }",
        "1:16: error: unexpected '{'\n",
        "write for tir; without it, a rule is for relay",
    ),
    (
        "ruleset @s { rewrite @a { exp(%x) => %x }; }",
        "1:42: error: nothing in a rule ends with ';'\n",
        "follow each other",
    ),
    (
        "ruleset @s { exp(%x) => %x }",
        "1:14: error: unexpected 'exp'\n",
        "a set holds rewrite @name { … } and include @other",
    ),
    ("rewrite @a { exp(%x) => %x } }", "1:30: error: this '}' closes nothing\n", ""),
]

S = "@T.prim_func\ndef mm(A: T.Buffer((4,), 'float32')):\n    A[0] = T.float32(0)\n\n@T.schedule(mm)\ndef s(sch):\n    b = sch.get_block('B')\n"
SCHEDULES = [
    (S + "    sch.get_block(B)", "8:19: error: 'B' is not defined\n", "names of blocks and buffers are strings"),
    (S + "    c = b if 1 else b", "8:11: error: a schedule has no 'a if condition else b'\n", "write one call a line"),
    (S + "    import tvm", "8:5: error: 'import' has no place in a schedule\n", "a script imports nothing"),
    (S + "    break", "8:5: error: 'break' has no place in a schedule\n", "write one call a line"),
    (S + "    b == sch.get_block('B')", "8:7: error: this has no effect\n", "write one call a line"),
    (S + "    i j = sch.get_loops(b)", "8:7: error: an operator or a comma is missing between 'i' and 'j'\n", "separated by ','"),
    (S + "    sch.split(b, factors=[2 4])", "8:29: error: an operator or a comma is missing between '2' and '4'\n", "separated"),
    (S + "    sch.split(b, factors=(2, 4)", "8:14: error: this '(' is never closed\n", "8:32: note: expected ')' before this"),
    (S + "    sch.split(b, [2, 4]))", "8:25: error: this ')' closes nothing\n", "remove it"),
    (S + "    sch.transform_layout(b, 'A', lambda i: [i // 2, i % 2)", "8:58: error: this ')' does not match the bracket that is open\n", "8:44: note: '[' is opened here"),
    (S.removesuffix("    b = sch.get_block('B')\n") + "b = sch.get_block('B')", "7:1: error: the body is missing\n", "indent it"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message", "note"), [*RELAY, *TE, *TVMSCRIPT, *RULES, *SCHEDULES])
def test_message(text: str, message: str, note: str) -> None:
    with pytest.raises(mirstack.MirError) as raised:
        mirstack.parse(text)
    said = f"{raised.value}\n"
    assert f"<string>:{message}" in said and note in said
    assert said.count("error:") == 1


# Texts in which other parts need the one that is wrong: only that is reported.
FOLLOWING = {
    "schedule of a TE function": "@te.func\ndef softplus():\n    return (\n\n@te.schedule(softplus)\ndef tiled(s):\n    pass\n",
    "refused TE function": "@te.func\ndef softplus():\n    return 3\n\n@te.schedule(softplus)\ndef tiled(s):\n    pass\n",
    "hybrid script": "@te.hybrid.script\ndef g(a):\n    return (\n\n@te.func\ndef f():\n    return [g(te.placeholder((4,)))]\n",
    "TVMScript": "@T.prim_func\ndef f(a: T.int32) -> T.int32:\n    return a +\n\n@T.prim_func\ndef g(a: T.int32) -> T.int32:\n    return f(a)\n",
    "module": "@I.ir_module\nclass M:\n    @T.prim_func\n    def f(a: T.int32):\n        a +\n\n@T.prim_func\ndef g(a: T.int32):\n    M.f(a)\n",
    "Relay": "def @main(%x: int32) {\n  let y = %x;\n  %0 := add(y, y);\n  add(%0, y)\n}\n",
}


@pytest.mark.parametrize("name", FOLLOWING)
def test_what_follows_from_an_error_is_not_reported(name: str) -> None:
    with pytest.raises(mirstack.MirError) as raised:
        mirstack.parse(FOLLOWING[name])
    assert len(raised.value.diagnostics) == (2 if name == "Relay" else 1)
    assert "there is no" not in str(raised.value) and "not defined" not in str(raised.value)
    assert "unknown operator" not in str(raised.value)
