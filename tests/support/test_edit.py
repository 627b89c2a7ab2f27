"""Ops that are made and placed without xDSL's constructors are as those would have made them."""

from __future__ import annotations

import pytest
from mirstack.dialects import tir
from mirstack.dialects.plain_op import PlainOp
from mirstack.support.edit import (
    add_op,
    clone_nested,
    clone_op,
    create_op,
    detach,
    erase_op,
    insert_op_after,
    insert_op_before,
    insert_ops_before,
    replace_all_uses_with,
)
from mirstack.support.effects import is_side_effect_free
from mirstack.support.walk import all_ops, enclosing, following, ops_in, owner_op, walk_ops
from xdsl import traits
from xdsl.dialects import arith
from xdsl.dialects.builtin import UNKNOWN_LOC, DictionaryAttr, IntegerAttr, ModuleOp, StringAttr, f32, i32
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.irdl import IRDLOperation


def constants() -> list[arith.ConstantOp]:
    return [create_op(arith.ConstantOp, (), (i32,), {"value": IntegerAttr(k, i32)}, UNKNOWN_LOC) for k in range(4)]


def test_fields_are_those_of_create() -> None:
    a, b = (op.results[0] for op in constants()[:2])
    operands, properties = (a, b, a), {"value": IntegerAttr(1, i32)}
    made = create_op(tir.SelectOp, operands, (i32, f32), dict(properties), UNKNOWN_LOC)
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


def test_a_copy_is_a_clone() -> None:
    a, b = (op.results[0] for op in constants()[:2])
    op = tir.SelectOp.create(operands=(a, b, b), result_types=(i32,), properties={"value": IntegerAttr(1, i32)})
    op.attributes["seen"] = IntegerAttr(2, i32)
    copy, clone = clone_op(op, (a, b, b)), op.clone()
    assert copy.is_structurally_equivalent(clone) and type(copy) is tir.SelectOp and copy.location == op.location
    assert copy.properties is not op.properties and copy.attributes is not op.attributes and copy.parent is None


def test_defaults_of_properties() -> None:
    loop = tir.ForOp.create(properties={"var_name": StringAttr("i"), "kind": StringAttr("serial")})
    assert loop.annotations == DictionaryAttr({})


def test_places() -> None:
    block = Block()
    first, second, third, fourth = constants()
    add_op(block, second)
    add_op(block, fourth)
    insert_op_before(first, second)
    insert_op_after(third, second)
    assert list(block.ops) == [first, second, third, fourth]
    assert list(reversed(list(block.ops))) == list(reversed(block.ops))
    assert (block.first_op, block.last_op) == (first, fourth) and all(op.parent is block for op in block.ops)
    last = arith.ConstantOp(IntegerAttr(9, i32))
    insert_op_after(last, fourth)
    assert block.last_op is last
    second.detach()
    ModuleOp(Region(block)).verify()
    with pytest.raises(AssertionError):
        add_op(block, first)


def test_what_is_taken_out_stands_nowhere() -> None:
    block = Block(constants())
    first, second, third, fourth = block.ops
    for op, left in ((second, [first, third, fourth]), (first, [third, fourth]), (fourth, [third]), (third, [])):
        detach(op)
        assert list(block.ops) == left and list(reversed(block.ops)) == left[::-1]
        assert op.parent is None and op.next_op is None and op.prev_op is None
    assert block.first_op is None and block.last_op is None
    block.add_ops([first, second])


def test_an_op_is_not_put_inside_of_itself() -> None:
    inside = Block()
    outer = ModuleOp(Region(inside))
    with pytest.raises(AssertionError):
        add_op(inside, outer)


def test_erased_ops_use_nothing() -> None:
    block = Block(constants()[:2])
    a, b = (op.results[0] for op in block.ops)
    users = [tir.AddOp(a, b), tir.AddOp(b, a), tir.AddOp(a, a)]
    block.add_ops(users)
    erase_op(users[1])
    assert {(use.operation, use.index) for use in a.uses} == {(users[0], 0), (users[2], 0), (users[2], 1)}
    assert [use.operation for use in b.uses] == [users[0]]
    with pytest.raises(ValueError, match=r"arith\.constant is erased, but one of its results is used"):
        erase_op(b.op)
    assert b.op.parent is block
    for user in (users[2], users[0]):
        erase_op(user)
    assert not a.uses and not b.uses and len(block.ops) == 2
    loop = tir.ForOp("i", tir.ConstOp.int(0), tir.ConstOp.int(4))
    loop.body.block.add_op(user := tir.AddOp(a, b))
    erase_op(loop)
    assert not a.uses and user.parent is None


def test_uses_are_replaced_as_xdsl_does() -> None:
    lists: list[list[tuple[int, int]]] = []
    for replace in (replace_all_uses_with, type(constants()[0].results[0]).replace_all_uses_with):
        a, b = (op.results[0] for op in constants()[:2])
        a.name_hint = "old"
        users: list[Operation] = [tir.AddOp(a, b), tir.AddOp(b, a), tir.AddOp(a, a)]
        replace(a, b)
        replace(b, b)
        assert not a.uses and b.name_hint == "old"
        assert all(operand is b for user in users for operand in user.operands)
        lists.append([(users.index(use.operation), use.index) for use in b.uses])
    assert lists[0] == lists[1] and len(lists[0]) == 6


def test_copies_of_regions_are_those_of_xdsl() -> None:
    outside, other = tir.ConstOp.int(8), tir.ConstOp.int(9)
    loop = tir.ForOp("i", tir.ConstOp.int(0), outside, annotations=DictionaryAttr({"pragma_x": IntegerAttr(1, i32)}))
    total = tir.AddOp(loop.loop_var, outside)
    total.result.name_hint = "total"
    total.attributes["mark"] = IntegerAttr(2, i32)
    loop.body.block.add_ops([total, tir.EvaluateOp(total.result)])
    loop.loop_var.name_hint = "i"
    texts: list[str] = []
    for copy in (clone_nested, tir.ForOp.clone):
        values: dict[SSAValue, SSAValue] = {outside.result: other.result}
        made = copy(loop, values)
        assert made.parent is None and made.extent is other.result and made.body.block.args[0] is values[loop.loop_var]
        assert values[total.result].name_hint == "total" and made.body.block.ops.first in all_ops(made)
        texts.append(str(ModuleOp([made])))
    assert texts[0] == texts[1] and "mark" in texts[0]


def test_walks_as_lists() -> None:
    loop = tir.ForOp("i", tir.ConstOp.int(0), tir.ConstOp.int(4))
    inner = tir.ForOp("j", tir.ConstOp.int(0), tir.ConstOp.int(4))
    loop.body.block.add_ops([*constants(), inner, tir.EvaluateOp(loop.loop_var)])
    inner.body.block.add_op(tir.EvaluateOp(inner.loop_var))
    assert all_ops(loop) == list(walk_ops(loop)) == list(loop.walk()) and len(all_ops(loop)) == 8
    assert ops_in(loop.body.block) == list(loop.body.block.ops) and ops_in(Block()) == []


def test_ops_around_and_after() -> None:
    low, high, inside = (tir.ConstOp.int(value) for value in (0, 8, 1))
    loop = tir.ForOp("i", low, high)
    sums = [tir.AddOp(loop.loop_var, inside) for _ in range(3)]
    loop.body.block.add_ops([inside, *sums])
    module = ModuleOp([low, high, loop])
    assert list(enclosing(inside)) == [loop, module]
    assert list(enclosing(inside, until=module)) == [loop]
    assert list(enclosing(inside, until=loop)) == [] == list(enclosing(module))
    assert following(inside) == sums and following(sums[-1]) == []
    assert owner_op(loop.loop_var) is loop and owner_op(sums[0].result) is sums[0]


def test_several_ops_are_inserted_in_order() -> None:
    first, last, place = (tir.ConstOp.int(value) for value in range(3))
    block = Block([place])
    insert_ops_before([first, last], place)
    assert list(block.ops) == [first, last, place]


def test_effects_are_those_of_xdsl() -> None:
    a = tir.ConstOp.int(3)
    buffer = tir.DeclBufferOp("b", tir.BufferType.get([16], i32))
    branch = tir.IfThenElseOp(a, Region(Block([tir.YieldOp(a)])), Region(Block([tir.YieldOp(a)])), i32)
    calls = [tir.CallOp(name, [a], i32) for name in ("vector_reduce_add", "ret")]
    for op in [a, buffer, tir.AddOp(a, a), tir.LoadOp(buffer, [a]), tir.StoreOp(a, buffer, [a]), branch, *calls]:
        assert is_side_effect_free(op) == traits.is_side_effect_free(op), op.name


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
