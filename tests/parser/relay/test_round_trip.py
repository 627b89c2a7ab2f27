"""Relay text: what is printed reads back as the same module and prints the same; what people write means what it says."""

from __future__ import annotations

import pytest
from mirstack.dialects import relay
from mirstack.dialects.relay import ir
from mirstack.parser import parse_mir, print_mir
from mirstack.support.diagnostics import source_position
from mirstack.support.verify import verify
from mirstack.support.walk import walk_ops
from xdsl.dialects.builtin import ModuleOp

LIST = "type List[A] {\n  Cons(A, List[A]),\n  Nil,\n}\n"

PROGRAMS = {
    "straight line": "def @main(%x: Tensor[(2, 3), float32]) { %0 = exp(%x); add(%0, %x) }",
    "result is a parameter": "def @main(%x: int32) { %x }",
    "result is bound": "def @main(%x: int32) { %0 = add(%x, %x); %0 }",
    "used twice": "def @main(%x: int32) { %0 = add(%x, %x); add(%0, %0) }",
    "nested calls": "def @main(%x: int32) { add(add(%x, 1), add(%x, 2)) }",
    "bound constant": "def @main(%x: int32) { %0 = 1; add(%0, %0) }",
    "constant result": "def @main() { 2f }",
    "let": "def @main(%x: int32) { let %y = add(%x, 1); let %z: int32 = %y; add(%y, %z) }",
    "let with a type": "def @main(%x: int32) { let %y: int32=%x; let %z:  int32  = %y; let %f: fn (int32) -> int32 = fn (%a: int32) { %a }; %f(%z) }",
    "attributes with blanks": "def @main(%x: Tensor[(2, 3), float32]) { sum(%x, axis = [0], keepdims  =True) }",
    "let of a constant": "def @main() { let %y = 1f; %y }",
    "let shadows": "def @main(%x: int32) { let %x = add(%x, 1); let %x = add(%x, 2); %x }",
    "let in parentheses": "def @main(%x: int32) { %0 = (let %y = add(%x, 1); %y); add(%0, %x) }",
    "let in parentheses does not leak": "def @main(%y: int32) { %0 = (let %y = 1; %y); add(%0, %y) }",
    "closure": "def @main(%x: int32) { %0 = fn (%a: int32, Primitive=1) -> int32 { add(%a, %x) }; %0(%x) }",
    "generic closure": "def @main(%x: int32) { let %f = fn [A](%a: A) -> A { %a }; (%f(%x), %f(True)) }",
    "two closures of equal names": "def @main(%x: int32) { %0 = fn (%a: int32) { %a }; %1 = fn (%a: int32) { %a }; add(%0(%x), %1(%x)) }",
    "recursive closure": "def @main(%x: int32) { let %f = fn (%n: int32) -> int32 { if (less(%n, 1)) { 1 } else { %f(subtract(%n, 1)) } }; %f(%x) }",
    "closure called like its parameter": "def @main(%x: int32) { let %f = fn (%f: int32) { %f }; %f(%x) }",
    "generic function": "def @id[A](%x: A) -> A { %x }\ndef @main() { (@id(1), @id(True)) }",
    "function of functions": "def @twice(%f: fn (int32) -> int32, %x: int32) { %f(%f(%x)) }\ndef @inc(%x: int32) { add(%x, 1) }\ndef @main() { @twice(@inc, 3) }",
    "type arguments": "def @id[A](%x: A) -> A { %x }\ndef @main() { @id[int32](1) }",
    "mutual recursion": "def @even(%n: int32) -> bool { if (equal(%n, 0)) { True } else { @odd(subtract(%n, 1)) } }\ndef @odd(%n: int32) -> bool { if (equal(%n, 0)) { False } else { @even(subtract(%n, 1)) } }",
    "if": "def @main(%c: bool, %x: int32) { if (%c) { add(%x, 1) } else { %x } }",
    "if of a constant": "def @main(%x: int32) { if (True) { %x } else { 1 } }",
    "if as a value": "def @main(%c: bool, %x: int32) { %0 = if (%c) { %x } else { 1 }; add(%0, %x) }",
    "else if": "def @main(%c: bool, %d: bool) { if (%c) { 1 } else if (%d) { 2 } else { 3 } }",
    "tuples": "def @main(%x: int32) { %0 = (%x, 1f); %1 = (%x,); %2 = (); (%0.0, %1.0, %2, %0) }",
    "projections": "def @main(%t: (int32, (float32, bool))) { %t.1.0 }",
    "references": "def @main(%x: int32) { let %r = ref(%x); ref_write(%r, 2); let %y = ref_read(%r); %y }",
    "statements": "def @main(%x: int32) { let %r = ref(%x); let %_ = ref_write(%r, 1); ref_read(%r) }",
    "match": LIST
    + "def @main(%l: List[int32]) { match (%l) { Cons(%x, Cons(%y, _)) => { add(%x, %y) }, Cons(%x, Nil) => { %x }, Nil => { 0 } } }",
    "match?": LIST + "def @main(%l: List[int32]) { match? (%l) { Cons(%x: int32, _) => { %x }, } }",
    "match of a tuple": LIST
    + "def @main(%l: List[int32], %x: int32) { %0 = (%l, %x); match (%0) { (Nil, %a) => { %a }, (Cons(%h, _), _) => { %h } } }",
    "constructors": LIST + "def @main() { %0 = Cons(1, Nil); Cons(2, %0) }",
    "constructor as a function": LIST
    + "def @apply(%f: fn (int32, List[int32]) -> List[int32]) { %f(1, Nil) }\ndef @main() { @apply(Cons) }",
    "a constructor called None": "type Option[A] {\n  Some(A),\n  None,\n}\ndef @main(%o: Option[int32]) { match (%o) { Some(%x) => { %x }, None => { 0 } } }",
    "empty data type": "type Storage {\n  \n}\ndef @main(%s: Storage) { %s }",
    "extern data type": "extern type File[A]\n\ndef @main(%f: File[int32]) { %f }",
    "function attributes": 'def @main(%x: int32, Inline=1, Compiler="dnnl", k=[1, 2.5f, True, None, "s"], d={"a": 1}) { %x }',
    "device attributes": "def @main(%x {virtual_device=VirtualDevice(device_type=1)}: int32, virtual_device=VirtualDevice(device_type=1, virtual_device_id=0)) { %x }",
    "operator attributes": 'def @main(%x: Tensor[(1, 4, 8, 8), float32], %w: Tensor[(4, 4, 3, 3), float32]) { nn.conv2d(%x, %w, padding=[1, 1, 1, 1], kernel_size=[3, 3], channels=4, out_dtype="float32") }',
    "call attributes": "def @f(%x: int32) { %x }\ndef @main(%x: int32) { @f(%x, relay_attrs=1) }",
    "dynamic shapes": "def @main(%x: Tensor[(?, 3), float32]) { nn.relu(%x) }",
    "names that are no identifiers": 'def @"a b"(%"x.1:0": int32) { %"x.1:0" }\ndef @main(%x: int32) { @"a b"(%x) }',
    "untyped": "def @main(%x) { %x }",
    "function types": "def @main(%f: fn [A](A, (A, int32)) -> ref(A), %g: fn () -> ()) { %g() }",
    "no text is lost": "def @main(%x: int32) { let %_ = add(%x, 1); let %_ = add(%x, 2); %x }",
}


def check(module: ModuleOp) -> str:
    """The module's text, which reads back as the same module and prints the same."""
    verify(module)
    text = print_mir(module)
    again = parse_mir(text)
    assert print_mir(again) == text
    assert again.is_structurally_equivalent(module), text
    return text


@pytest.mark.parametrize("name", PROGRAMS)
def test_round_trip(name: str) -> None:
    check(parse_mir(PROGRAMS[name]))


def operators(module: ModuleOp) -> list[str]:
    return [op.OPERATOR.name for op in walk_ops(module) if isinstance(op, relay.operator.OperatorOp)]


def test_infix_operators_bind_as_in_tvm() -> None:
    module = parse_mir("def @main(%x: float32, %y: float32) { %x + %y * 2f - %x / %y < 1f }")
    assert operators(module) == ["multiply", "add", "divide", "subtract", "less"]
    module = parse_mir("def @main(%x: float32) { (%x + 1f) * -2f == %x -1f }")
    assert operators(module) == ["add", "multiply", "subtract", "equal"]


def test_a_graph_name_of_one_branch_is_seen_in_the_other() -> None:
    text = """
def @main(%x: bool, %y: float32) {
  if (%x) {
    if (True) {
      %0 = add(%y, %y);
      %0
    } else {
      add(3f, %0)
    }
  } else {
    %0
  }
}
"""
    module = parse_mir(text)
    check(module)
    body = next(op for op in module.ops if isinstance(op, ir.FuncOp)).body.block
    assert [op.name for op in body.ops] == ["relay.add", "relay.if", "relay.return"]


def test_a_graph_name_moves_with_what_it_needs() -> None:
    module = parse_mir(
        "def @main(%c: bool, %y: float32) { %2 = if (%c) { %0 = exp(%y); %1 = log(%0); %1 } else { %y }; add(%1, %2) }"
    )
    check(module)
    body = next(op for op in module.ops if isinstance(op, ir.FuncOp)).body.block
    assert [op.name for op in body.ops][:3] == ["relay.exp", "relay.log", "relay.if"]


def test_a_graph_name_of_a_function_is_seen_outside_of_it() -> None:
    module = parse_mir(
        "def @main(%y: float32) { %1 = fn (%a: float32) { %0 = exp(%y); add(%a, %0) }; add(%1(%y), %0) }"
    )
    check(module)


def test_an_expression_alone_is_main() -> None:
    module = parse_mir("fn (%x: int32, Primitive=1) { add(%x, 1) }")
    assert check(module).splitlines()[1].startswith("def @main(%x: int32")
    module = parse_mir("free_var %x: Tensor[(2), float32];\nadd(%x, 1f)")
    assert check(module).splitlines()[1].startswith("def @main(%x: Tensor[(2), float32]")
    check(parse_mir("%0 = add(1, 2);\nlet %y = %0;\nadd(%y, %y)"))


def test_comments() -> None:
    text = "/* a /* nested */ one */ def @main(%x: int32 /* ty=int32 span=f:1:2 */) { // the rest\n  /**/ %x }"
    assert "%x" in check(parse_mir(text))


def test_every_op_has_its_place() -> None:
    text = """
def @main(%x: Tensor[(2), float32], %c: bool) {
  let %y = add(%x,
               2f);
  %0 = if (%c) { %y } else {
    nn.relu(%y) };
  (%0, %y).1
}
"""
    places = {
        op.name.removeprefix("relay."): source_position(op.location)
        for op in walk_ops(parse_mir(text, "a.mir"))
        if op.name.startswith("relay.") and op.name != "relay.return"
    }
    assert places == {
        "func": ("a.mir", 2, 1),
        "add": ("a.mir", 3, 12),
        "constant": ("a.mir", 4, 16),
        "let": ("a.mir", 3, 3),
        "if": ("a.mir", 5, 8),
        "nn.relu": ("a.mir", 6, 5),
        "tuple": ("a.mir", 7, 3),
        "tuple_get_item": ("a.mir", 7, 11),
    }


def test_relay_calls_functions_of_other_formats() -> None:
    text = """
@T.prim_func
def double(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] * T.float32(2)

def @main(%x: Tensor[(8), float32]) {
  call_tir(@double, nn.relu(%x))
}
"""
    assert "call_tir(@double, %0) /* ty=Tensor[(8), float32] */" in check(parse_mir(text))


def test_extents_of_a_te_function_come_from_the_arguments() -> None:
    text = """
@te.func
def twice():
    n = te.var("n")
    A = te.placeholder((n, 4), name="A")
    B = te.compute((n, 4), lambda i, j: A[i, j] * 2.0, name="B")
    return [A, B]

def @main(%x: Tensor[(3, 4), float32]) {
  call_tir(@twice, %x)
}
"""
    assert "call_tir(@twice, %x) /* ty=Tensor[(3, 4), float32] */" in check(parse_mir(text))


def test_module_made_by_hand() -> None:
    """Names that clash are told apart; a function that calls itself gets its `let`; constants in odd places are bound."""
    module = parse_mir("def @main(%x: int32) { let %a = add(%x, 1); let %b = add(%a, 2); %b }")
    function = next(op for op in module.ops if isinstance(op, ir.FuncOp))
    for op in function.body.block.ops:
        if isinstance(op, ir.LetOp):
            op.properties["var_name"] = function.param_names.data[0]
    text = print_mir(module)
    assert "let %x1" in text and "let %x2" in text
    assert print_mir(parse_mir(text)) == text
    constants = [op for op in function.body.block.ops if isinstance(op, ir.ConstantOp)]
    constants[1].results[0].replace_all_uses_with(constants[0].results[0])
    constants[1].detach()
    text = print_mir(module)
    assert "%0 = 1 /* ty=int32 */;" in text
    assert print_mir(parse_mir(text)) == text
