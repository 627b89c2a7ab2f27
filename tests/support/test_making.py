"""Ops that are made and placed without xDSL's constructors are as those would have made them."""

from __future__ import annotations

import pytest
from mirstack.dialects import tir
from mirstack.dialects.plain_op import PlainOp
from mirstack.support.making import append_op, make_op, put_after, put_before
from xdsl.dialects import arith
from xdsl.dialects.builtin import UNKNOWN_LOC, IntegerAttr, ModuleOp, f32, i32
from xdsl.ir import Block, Operation, Region
from xdsl.irdl import IRDLOperation


def constants() -> list[arith.ConstantOp]:
    return [make_op(arith.ConstantOp, (), (i32,), {"value": IntegerAttr(k, i32)}, UNKNOWN_LOC) for k in range(4)]


def test_fields_are_those_of_create() -> None:
    a, b = (op.results[0] for op in constants()[:2])
    operands, properties = (a, b, a), {"value": IntegerAttr(1, i32)}
    made = make_op(tir.SelectOp, operands, (i32, f32), dict(properties), UNKNOWN_LOC)
    created = tir.SelectOp.create(operands=operands, result_types=(i32, f32), properties=properties)
    assert tuple(made.operands) == tuple(created.operands) and type(made._operands) is type(created._operands)
    assert [(r.type, r.index, r.op) for r in made.results] == [(i32, 0, made), (f32, 1, made)]
    assert type(made.results) is type(created.results)
    for field in ("properties", "attributes", "location", "regions", "parent", "next_op", "prev_op"):
        assert getattr(made, field) == getattr(created, field), field
    assert tuple(made.successors) == tuple(created.successors) == ()
    assert {(use.operation, use.index) for use in a.uses} == {(op, k) for op in (made, created) for k in (0, 2)}
    for op in (created, made):
        op.drop_all_references()
    assert not a.uses and not b.uses


def test_places() -> None:
    block = Block()
    first, second, third, fourth = constants()
    append_op(block, second)
    append_op(block, fourth)
    put_before(first, second)
    put_after(third, second)
    assert list(block.ops) == [first, second, third, fourth]
    assert list(reversed(list(block.ops))) == list(reversed(block.ops))
    assert (block.first_op, block.last_op) == (first, fourth) and all(op.parent is block for op in block.ops)
    last = arith.ConstantOp(IntegerAttr(9, i32))
    put_after(last, fourth)
    assert block.last_op is last
    second.detach()
    ModuleOp(Region(block)).verify()
    with pytest.raises(AssertionError):
        append_op(block, first)


def both(op: PlainOp) -> tuple[Operation, Operation]:
    """What a constructor gave, and the same by IRDL's."""
    by_irdl = type(op).__new__(type(op))
    segments = {key: value for key, value in op.properties.items() if key != "operandSegmentSizes"}
    operands = [list(part) if isinstance(part, tuple | list) else part for part in map(op.__getattribute__, names(op))]
    IRDLOperation.__init__(
        by_irdl, operands=operands, properties=segments, result_types=[result.type for result in op.results]
    )
    return op, by_irdl


def names(op: PlainOp) -> list[str]:
    return [name for name, _ in type(op).get_irdl_definition().operands]


def test_constructors_are_those_of_irdl() -> None:
    a = tir.ConstOp.int(3)
    buffer = tir.DeclBufferOp("b", tir.BufferType.get([16], i32))
    cases = [tir.AddOp(a, a), tir.LoadOp(buffer, [a]), tir.StoreOp(a, buffer, [a]), tir.RampOp(a, a, 4), buffer]
    for case in cases:
        plain, by_irdl = both(case)
        assert plain.properties == by_irdl.properties and tuple(plain.operands) == tuple(by_irdl.operands)
        assert [r.type for r in plain.results] == [r.type for r in by_irdl.results]
        plain.verify()
