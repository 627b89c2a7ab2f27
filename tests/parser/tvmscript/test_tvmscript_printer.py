"""Printing what passes make: values with several uses, effects and their order, what has no text."""

from __future__ import annotations

import pytest
from mirstack.dialects.tir import (
    AddOp,
    BufferType,
    CallOp,
    ConstOp,
    EvaluateOp,
    ForOp,
    IfThenElseOp,
    LoadOp,
    MulOp,
    PrimFuncOp,
    ScopeOp,
    StoreOp,
    YieldOp,
)
from mirstack.dialects.tir.types import F32, I1, I32
from mirstack.parser import parse_mir, print_mir
from mirstack.support.diagnostics import MirError
from tvmscript_text import body_of
from xdsl.dialects import test
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Block, Operation, Region, SSAValue

BUFFER = BufferType.get((8,), F32)


class Program:
    """A function of a buffer A and a number n, filled op by op."""

    def __init__(self) -> None:
        self.function = PrimFuncOp("f", ["A", "n"], [BUFFER, I32])
        self.A, self.n = self.function.params
        self.block: Block = self.function.body.block

    def add(self, op: Operation) -> SSAValue:
        self.block.add_op(op)
        return op.results[0] if op.results else self.n

    def const(self, value: int) -> SSAValue:
        return self.add(ConstOp.int(value))

    def text(self) -> str:
        """The statements; printing them again after reading gives the same."""
        printed = print_mir(ModuleOp([self.function]))
        assert print_mir(parse_mir(printed)) == printed
        return body_of(printed)


def test_a_value_with_several_uses_is_named() -> None:
    p = Program()
    x = p.add(AddOp(p.n, p.const(1)))
    x.name_hint = "x"
    y = p.add(MulOp(x, x))
    p.add(StoreOp(p.add(LoadOp(p.A, [x])), p.A, [y]))
    assert p.text() == "x: T.int32 = n + 1\nA[x * x] = A[x]"


def test_shared_expressions_do_not_explode() -> None:
    p = Program()
    x: SSAValue = p.n
    for _ in range(60):
        x = p.add(AddOp(x, x))
    p.add(EvaluateOp(x))
    assert len(p.text().split("\n")) == 60


def test_a_load_before_a_store_that_follows_stays_before_it() -> None:
    p = Program()
    zero = p.const(0)
    before = p.add(LoadOp(p.A, [zero]))
    p.add(StoreOp(p.add(ConstOp.float(1.0, F32)), p.A, [zero]))
    p.add(StoreOp(before, p.A, [p.const(1)]))
    assert p.text() == "v: T.float32 = A[0]\nA[0] = T.float32(1)\nA[1] = v"


def test_calls_keep_their_order() -> None:
    p = Program()
    first = p.add(CallOp("call_extern", [p.n], F32))
    second = p.add(CallOp("call_extern", [p.const(2)], F32))
    p.add(StoreOp(p.add(AddOp(second, first)), p.A, [p.n]))
    assert (
        p.text()
        == 'v: T.float32 = T.call_extern("float32", n)\nv_1: T.float32 = T.call_extern("float32", 2)\nA[n] = v_1 + v'
    )


def test_calls_in_order_stay_in_the_expression() -> None:
    p = Program()
    first = p.add(CallOp("call_extern", [p.n], F32))
    sum = p.add(AddOp(first, p.add(LoadOp(p.A, [p.n]))))
    second = p.add(CallOp("call_extern", [p.const(2)], F32))
    p.add(StoreOp(p.add(AddOp(sum, second)), p.A, [p.n]))
    assert p.text() == 'A[n] = T.call_extern("float32", n) + A[n] + T.call_extern("float32", 2)'


def test_a_load_used_in_a_loop_is_made_outside() -> None:
    p = Program()
    load = p.add(LoadOp(p.A, [p.n]))
    loop = ForOp("i", p.const(0), p.const(8))
    p.add(loop)
    loop.body.block.add_op(StoreOp(load, p.A, [loop.loop_var]))
    assert p.text() == "v: T.float32 = A[n]\nfor i in range(8):\n    A[i] = v"


def test_dead_values_are_not_printed_but_effects_are() -> None:
    p = Program()
    p.add(AddOp(p.n, p.n))
    p.add(LoadOp(p.A, [p.n]))
    p.add(CallOp("call_extern", [p.n], I32))
    p.add(CallOp("tvm_storage_sync", [], None))
    assert p.text() == 'T.call_extern("int32", n)\nT.call_intrin("void", "tir.tvm_storage_sync")'


def test_values_inside_an_expression_are_bound_by_let() -> None:
    p = Program()
    then, other = Block(), Block()
    x = AddOp(p.n, p.n)
    square = MulOp(x, x)
    then.add_ops([x, square, YieldOp(square)])
    zero = ConstOp.int(0)
    other.add_ops([zero, YieldOp(zero)])
    condition = p.add(ConstOp.int(1, I1))
    p.add(EvaluateOp(p.add(IfThenElseOp(condition, Region(then), Region(other), I32))))
    assert p.text() == "T.evaluate(T.if_then_else(T.bool(True), T.Let(v * v, where={v: n + n}), 0))"


def test_unusual_dtypes_of_intrinsics_are_written() -> None:
    p = Program()
    p.add(EvaluateOp(p.add(CallOp("exp", [p.n], F32))))
    p.add(EvaluateOp(p.add(CallOp("made_up", [p.n], F32))))
    assert p.text() == 'T.call_intrin("float32", "tir.exp", n)\nT.call_intrin("float32", "tir.made_up", n)'


def test_empty_bodies_pass() -> None:
    p = Program()
    loop = ForOp("i", p.const(0), p.n)
    p.add(loop)
    p.add(ScopeOp())
    assert p.text() == "for i in range(n):\n    pass"
    assert Program().text() == "pass"


def test_what_has_no_text_is_refused() -> None:
    p = Program()
    p.add(test.TestOp())
    with pytest.raises(MirError, match=r"'test.op' has no TVMScript text"):
        p.text()
    p = Program()
    inner = ForOp("i", p.const(0), p.n)
    p.add(inner)
    escaped = AddOp(inner.loop_var, inner.loop_var)
    inner.body.block.add_op(escaped)
    p.add(EvaluateOp(p.add(AddOp(escaped, escaped))))
    with pytest.raises(MirError, match="a value is used where it is not visible"):
        p.text()
    with pytest.raises(MirError, match=r"'test.op' has no .mir text"):
        print_mir(ModuleOp([test.TestOp()]))


def test_no_name_is_a_word_of_python() -> None:
    """A loop variable called `yield` gets a name that the grammar reads."""
    module = parse_mir(
        "@T.prim_func\ndef f(A: T.Buffer((8,), 'float32')):\n    for i in range(8):\n        A[i] = 1.0\n"
    )
    for op in module.walk():
        if isinstance(op, ForOp):
            op.properties["var_name"] = StringAttr("yield")
    text = print_mir(module)
    assert "for v_yield in range(8):" in text and print_mir(parse_mir(text)) == text
