"""Type inference over whole modules. Error messages stand in filecheck/dialects/relay."""

from __future__ import annotations

import pytest
from mirstack.dialects.relay import ir
from mirstack.dialects.relay.infer import infer_types, require_types
from mirstack.dialects.relay.operator import get_operator, operator_class
from mirstack.dialects.relay.text import type_text
from mirstack.dialects.relay.types import UNKNOWN
from mirstack.parser import parse_mir, print_mir
from mirstack.support.diagnostics import MirError
from mirstack.support.edit import set_type
from mirstack.support.walk import walk_ops
from xdsl.dialects.builtin import ModuleOp, TensorType, f32
from xdsl.ir import Block, Region


def signature(module: ModuleOp, name: str = "main") -> str:
    """The type of a function of the module."""
    function = next(op for op in module.ops if isinstance(op, ir.FuncOp) and op.sym_name.data == name)
    return type_text(function.function_type())


LIST = "type List[A] { Cons(A, List[A]), Nil, }\n"


@pytest.mark.parametrize(
    ("text", "type"),
    [
        # What an operator says of an untyped argument.
        ("def @main(%x: Tensor[(2, 3), float32], %w) { nn.dense(%x, %w, units=4) }", "fn (Tensor[(2, 3), float32], Tensor[(4, 3), float32]) -> Tensor[(2, 4), float32]"),
        # An untyped parameter learns its type from a later use.
        ("def @main(%x) { %0 = exp(%x); let %y: Tensor[(2), float32] = %x; %0 }", "fn (Tensor[(2), float32]) -> Tensor[(2), float32]"),
        ("def @main(%x) { if (%x) { 1 } else { 2 } }", "fn (bool) -> int32"),
        # From a caller, through a chain of functions, in either order.
        ("def @main() { @f(1f) }\ndef @f(%x) { @g(%x) }\ndef @g(%x) { exp(%x) }", "fn () -> float32"),
        ("def @g(%x) { exp(%x) }\ndef @f(%x) { @g(%x) }\ndef @main() { @f(1f) }", "fn () -> float32"),
        # Recursion.
        ("def @main(%n: int32) { if (equal(%n, 0)) { 1 } else { multiply(%n, @main(subtract(%n, 1))) } }", "fn (int32) -> int32"),
        ("def @main(%x: int32) { let %f = fn (%n) { if (equal(%n, 0)) { 1f } else { %f(subtract(%n, 1)) } }; %f(%x) }", "fn (int32) -> float32"),
        # Generic functions are used at several types.
        ("def @id[A](%x: A) -> A { %x }\ndef @main() { (@id(1), @id(True), @id((1, 2f))) }", "fn () -> (int32, bool, (int32, float32))"),
        ("def @main() { let %id = fn [A](%x: A) -> A { %x }; (%id(1), %id(2f)) }", "fn () -> (int32, float32)"),
        ("def @compose[A, B, C](%f: fn (B) -> C, %g: fn (A) -> B, %x: A) { %f(%g(%x)) }\ndef @main(%x: int32) { %0 = fn (%a: bool) { 1f }; %1 = fn (%a: int32) { True }; @compose(%0, %1, %x) }", "fn (int32) -> float32"),
        ("def @id[A](%x: A) -> A { %x }\ndef @apply(%f: fn (int32) -> int32) { %f(1) }\ndef @main() { @apply(@id) }", "fn () -> int32"),
        # Higher-order functions without types.
        ("def @main(%x: int32) { %0 = fn (%f, %a) { %f(%f(%a)) }; %1 = fn (%b: int32) { add(%b, 1) }; %0(%1, %x) }", "fn (int32) -> int32"),
        # Data types: from fields to the whole, and back.
        (LIST + "def @main() { %0 = Nil; Cons(1, %0) }", "fn () -> List[int32]"),
        (LIST + "def @main(%l) { match (%l) { Cons(%x, _) => { %x }, Nil => { 2 } } }", "fn (List[int32]) -> int32"),
        (LIST + "def @main(%l: List[(bool, float32)]) { match? (%l) { Cons((_, %x), _) => { %x } } }", "fn (List[(bool, float32)]) -> float32"),
        (LIST + "def @map[A, B](%f: fn (A) -> B, %l: List[A]) -> List[B] { match (%l) { Cons(%h, %t) => { Cons(%f(%h), @map(%f, %t)) }, Nil => { Nil } } }\ndef @main(%l: List[int32]) { %0 = fn (%x: int32) { True }; @map(%0, %l) }", "fn (List[int32]) -> List[bool]"),
        # References.
        ("def @main(%x) { let %r = ref(%x); ref_write(%r, 1f); ref_read(%r) }", "fn (float32) -> float32"),
        # Tuples that become known later.
        ("def @f(%t) { %t.1 }\ndef @main() { @f((1, True)) }", "fn () -> bool"),
        ("def @f(%t) { concatenate(%t, axis=0) }\ndef @main(%x: Tensor[(2), float32]) { @f((%x, %x)) }", "fn (Tensor[(2), float32]) -> Tensor[(4), float32]"),
        # Dimensions known at run time only.
        ("def @main(%c: bool, %x: Tensor[(2, 3), float32], %y: Tensor[(?, 3), float32]) { if (%c) { %x } else { %y } }", "fn (bool, Tensor[(2, 3), float32], Tensor[(?, 3), float32]) -> Tensor[(?, 3), float32]"),
        ("def @main(%x: Tensor[(2, 3), float32]) { let %y: Tensor[(?, 3), float32] = %x; exp(%y) }", "fn (Tensor[(2, 3), float32]) -> Tensor[(?, 3), float32]"),
        # What does not follow stays open.
        ("def @main(%x) { %x }", "fn (_) -> _"),
    ],
)  # fmt: skip
def test_types(text: str, type: str) -> None:
    assert signature(parse_mir(text)) == type


def test_inference_again_changes_nothing() -> None:
    module = parse_mir(LIST + "def @main(%l: List[int32], %x) { %0 = Nil; let %r = ref(%0); (Cons(1, %0), exp(%x)) }")
    text = print_mir(module)
    infer_types(module)
    assert print_mir(module) == text


def test_lets_and_results_are_found_anew_when_asked() -> None:
    module = parse_mir("def @main(%x: Tensor[(2), float32]) { let %y = exp(%x); %y }")
    function = next(op for op in module.ops if isinstance(op, ir.FuncOp))
    set_type(function.params[0], TensorType(f32, [5]))
    with pytest.raises(MirError, match=r"%y must be Tensor\[\(2\), float32\], not Tensor\[\(5\), float32\]"):
        infer_types(module)
    infer_types(module, fresh=True)
    assert signature(module) == "fn (Tensor[(5), float32]) -> Tensor[(5), float32]"


def test_all_errors_are_reported_and_none_follows_from_another() -> None:
    text = """
def @main(%x: Tensor[(2), float32], %y: Tensor[(3), float32]) {
  %0 = add(%x, %y);
  %1 = exp(%0);
  %2 = multiply(%1, %0);
  %3 = add(%y, %x);
  (%2, %3, @nowhere(%0), %2.0)
}
"""
    with pytest.raises(MirError) as error:
        parse_mir(text)
    assert [d.message.partition(":")[0] for d in error.value.diagnostics] == [
        "add",
        "add",
        "there is no function @nowhere",
    ]


def test_a_relation_never_fails_in_another_way() -> None:
    operator = get_operator("reshape")
    assert operator is not None
    block = Block(arg_types=[TensorType(f32, [2, 3])])
    op = operator_class(operator).create(operands=block.args, result_types=[UNKNOWN])
    block.add_ops([op, ir.ReturnOp(op.results[0])])
    with pytest.raises(MirError, match="reshape needs the attribute 'newshape'"):
        infer_types(ModuleOp([ir.FuncOp("main", ["x"], [], body=Region(block))]))


def test_require_types() -> None:
    module = parse_mir("def @main(%x, %y: int32) { let %z = %x; (%y, %z) }", "a.mir")
    with pytest.raises(MirError) as error:
        require_types(next(iter(module.ops)))
    assert "a.mir:1:11: error: the type of parameter %x is not known" in str(error.value)
    require_types(next(iter(parse_mir("def @main(%x: int32) { %x }").ops)))


def test_every_value_is_typed() -> None:
    text = "def @main(%x: Tensor[(2), float32]) { %0 = fn (%a) { exp(%a) }; let %y = %0(%x); (%y, nn.relu(%x)) }"
    for op in walk_ops(parse_mir(text)):
        assert all(result.type != UNKNOWN for result in op.results), op.name
