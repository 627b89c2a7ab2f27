"""Expressions to SSA and back, and the intervals that expressions cover."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from xdsl.builder import Builder
from xdsl.ir import Block
from xdsl.rewriter import InsertPoint

sys.path.insert(0, str(Path(__file__).parent))
from evaluate import VARS, conditions, evaluate, expressions
from mirstack.dialects.arith import Analyzer, Expr
from mirstack.dialects.arith import expr as x
from mirstack.dialects.arith.expr import ge, logical_not, substitute
from mirstack.dialects.arith.int_set import IntervalSet, eval_set
from mirstack.dialects.arith.to_ssa import to_ssa
from mirstack.dialects.tir import CallOp, CastOp, ConstOp, PrimFuncOp, StoreOp
from mirstack.dialects.tir.types import I1, I32, I64, dtype_to_type
from mirstack.parser import parse_mir


def block_with_vars():
    """A block of four int32 arguments, and what stands for VARS there."""
    block = Block(arg_types=[I32] * len(VARS))
    return block, {v.atom: arg for v, arg in zip(VARS, block.args, strict=True)}


@settings(max_examples=200, deadline=None)
@given(expressions())
def test_what_is_built_reads_back_the_same(e: Expr):
    block, values = block_with_vars()
    built = to_ssa(e, Builder(InsertPoint.at_end(block)), I32, values)  # pyright: ignore[reportArgumentType]
    for op in block.ops:
        op.verify()
    expected = substitute(e, {atom: x.var(value) for atom, value in values.items()})  # pyright: ignore[reportArgumentType]
    assert Analyzer().expr(built) == expected


@settings(max_examples=100, deadline=None)
@given(conditions())
def test_conditions_read_back_equal(e: Expr):
    block, values = block_with_vars()
    built = to_ssa(e, Builder(InsertPoint.at_end(block)), I1, values)  # pyright: ignore[reportArgumentType]
    for op in block.ops:
        op.verify()
    assert built.type == I1
    back = Analyzer().expr(built)
    for point in ((0, 0, 0, 0), (1, -2, 3, 5), (-4, 7, 0, 2)):
        ours = {v.atom: n for v, n in zip(VARS, point, strict=True)}
        theirs = {x.var(arg).atom: n for arg, n in zip(block.args, point, strict=True)}
        assert evaluate(back, theirs) == evaluate(e, ours)  # pyright: ignore[reportArgumentType]


def test_widths():
    block = Block(arg_types=[I32, I64, dtype_to_type("uint8")])
    builder = Builder(InsertPoint.at_end(block))
    narrow, wide, byte = block.args
    analyzer = Analyzer()
    e = analyzer.expr(wide) + analyzer.expr(narrow) * 4
    assert to_ssa(e, builder, I64).type == I64
    widened = builder.insert(CastOp(narrow, I64)).result
    assert analyzer.expr(widened) == analyzer.expr(narrow)
    narrowed = builder.insert(CastOp(wide, I32)).result
    assert analyzer.expr(narrowed) != analyzer.expr(wide)
    assert analyzer.const_int_bound(byte) == (0, 255)
    for op in block.ops:
        op.verify()


def test_arithmetic_of_bytes_may_wrap():
    text = "@T.prim_func\ndef f(a: T.uint8, b: T.uint8):\n    if a + b < a:\n        T.evaluate(0)\n"
    func = next(op for op in parse_mir(text).body.block.ops if isinstance(op, PrimFuncOp))
    branch = func.body.block.last_op
    assert branch is not None
    assert not Analyzer().can_prove(logical_not(Analyzer().expr(branch.operands[0])))


def test_shifts_and_masks_are_divisions():
    block = Block(arg_types=[I32])
    builder = Builder(InsertPoint.at_end(block))
    three, seven = (builder.insert(ConstOp.int(n)).result for n in (3, 7))
    shifted = builder.insert(CallOp("shift_right", [block.args[0], three], I32)).results[0]
    masked = builder.insert(CallOp("bitwise_and", [block.args[0], seven], I32)).results[0]
    v = x.var(block.args[0])
    assert Analyzer().expr(shifted) == v // 8
    assert Analyzer().expr(masked) == v % 8


@settings(max_examples=200, deadline=None)
@given(expressions(False), st.tuples(*(st.tuples(st.integers(-4, 4), st.integers(1, 6)) for _ in VARS)), st.data())
def test_sets_hold_every_value(e: Expr, ranges, data):
    analyzer = Analyzer()
    domain = {
        v.atom: IntervalSet.of_range(x.as_expr(low), x.as_expr(size))
        for v, (low, size) in zip(VARS[:2], ranges, strict=False)
    }
    result = eval_set(analyzer, e, domain)  # pyright: ignore[reportArgumentType]
    for _ in range(8):
        point = {
            v.atom: data.draw(st.integers(low, low + size - 1)) for v, (low, size) in zip(VARS, ranges, strict=True)
        }
        try:
            value = evaluate(e, point)  # pyright: ignore[reportArgumentType]
        except ZeroDivisionError:
            assume(False)
            return
        assert result.min is None or evaluate(result.min, point) <= value  # pyright: ignore[reportArgumentType]
        assert result.max is None or evaluate(result.max, point) >= value  # pyright: ignore[reportArgumentType]


def test_sets_of_symbolic_ranges():
    i, j, n = map(x.symbol, "ijn")
    analyzer = Analyzer()
    analyzer.mark_global_non_neg_value(n)
    domain = {j.atom: IntervalSet.of_range(x.ZERO, n)}
    result = eval_set(analyzer, i * 4 + j + 1, domain)  # pyright: ignore[reportArgumentType]
    assert (result.min, result.max) == (i * 4 + 1, i * 4 + n)
    assert result.covers(IntervalSet.point(i * 4 + 1), analyzer) is analyzer.can_prove(ge(n, x.ONE))
    with analyzer.constraint(ge(n, x.ONE)):
        assert result.covers(IntervalSet(i * 4 + 1, i * 4 + 1), analyzer)
    assert not result.covers(IntervalSet.point(i * 4), analyzer)


def test_a_symbol_without_a_value_cannot_be_built():
    with pytest.raises(ValueError, match="the symbol q has no SSA value"):
        to_ssa(x.symbol("q"), Builder(InsertPoint.at_end(Block())))


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("T.Add(T.int32(-2147483648), -7)", 2147483641),
        ("T.min(T.Sub(T.int32(-2147483648), 7), 0)", 0),
        ("T.Mul(T.int32(65536), T.int32(65536))", 0),
        ("T.Mul(T.int64(65536), T.int64(65536))", 1 << 32),
    ],
)
def test_numbers_beyond_their_type_wrap_around(value: str, wanted: int) -> None:
    dtype = "int64" if "int64" in value else "int32"
    module = parse_mir(f'@T.prim_func\ndef main(B: T.Buffer((1,), "{dtype}")):\n    B[0] = {value}\n')
    store = next(op for op in module.walk() if isinstance(op, StoreOp))
    assert Analyzer().expr(store.value).value == wanted
