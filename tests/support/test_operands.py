"""Operands of ops that have very many are replaced in place, and are seen as xDSL shows operands."""

from __future__ import annotations

import pytest
from mirstack.dialects.relay import ir
from mirstack.support.operands import MANY
from xdsl.dialects.builtin import TensorType, f32
from xdsl.ir import Block, SSAValue

TYPE = TensorType(f32, [2])


def values(count: int) -> tuple[SSAValue, ...]:
    return tuple(Block(arg_types=[TYPE] * count).args)


@pytest.fixture(params=[3, MANY, MANY + 1, 500])
def tuple_op(request: pytest.FixtureRequest) -> ir.TupleOp:
    return ir.TupleOp(values(request.param))


def test_an_operand_is_replaced(tuple_op: ir.TupleOp):
    before = list(tuple_op.operands)
    (new,) = values(1)
    for index in (0, len(before) - 1):
        tuple_op.operands[index] = new
        assert [(use.operation, use.index) for use in before[index].uses] == []
    assert {use.index for use in new.uses} == {0, len(before) - 1}
    assert list(tuple_op.operands) == [new, *before[1:-1], new]
    assert list(tuple_op.fields) == list(tuple_op.operands[0:]) == list(tuple_op.operands)
    assert tuple_op.operands[-1] is new and len(tuple_op.operands) == len(before)


def test_a_loop_sees_the_operands_that_were_there(tuple_op: ir.TupleOp):
    before, others = list(tuple_op.operands), values(len(tuple_op.operands))
    tuple_op.operands[0] = before[0]
    seen: list[SSAValue] = []
    for index, operand in enumerate(tuple_op.operands):
        for later in range(index, len(before)):
            if later < index + 2:
                tuple_op.operands[later] = others[later]
        seen.append(operand)
    assert seen == before and list(tuple_op.operands) == list(others)


def test_views_compare_by_their_operands(tuple_op: ir.TupleOp):
    other = ir.TupleOp(list(tuple_op.operands))
    other.operands[0] = other.operands[0]
    assert tuple_op.operands == other.operands and hash(tuple_op.operands) == hash(other.operands)
    other.operands[0] = values(1)[0]
    assert tuple_op.operands != other.operands and tuple_op.operands != list(tuple_op.operands)


def test_all_operands_are_set_cloned_and_dropped(tuple_op: ir.TupleOp):
    old, new = list(tuple_op.operands), values(MANY + 2)
    tuple_op.operands[0] = old[0]
    copy = tuple_op.clone()
    assert list(copy.operands) == old
    tuple_op.operands = new
    assert list(tuple_op.operands) == list(new)
    copy.erase()
    assert all(value.first_use is None for value in old) and all(value.has_one_use() for value in new)


def test_replacing_one_of_many_copies_nothing():
    op = ir.TupleOp(values(MANY + 1))
    held = list[object]()
    for new in values(3):
        op.operands[5].replace_all_uses_with(new)
        held.append(op._operands)  # pyright: ignore[reportPrivateUsage]
    assert held[0] is held[1] is held[2]
