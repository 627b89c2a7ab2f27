"""What is put into xDSL's classes means what it replaces."""

from __future__ import annotations

import pytest
from mirstack.dialects.tir import ConstOp
from mirstack.support.xdsl_patches.direct import FIELDS
from xdsl.dialects.builtin import (
    UNKNOWN_LOC,
    ArrayAttr,
    FloatAttr,
    IntAttr,
    IntegerAttr,
    IntegerType,
    Signedness,
    StringAttr,
    TensorType,
    f32,
    i8,
    i32,
)
from xdsl.ir import Attribute, Block, Operation
from xdsl.ir.core import SSAValues
from xdsl.utils.exceptions import VerifyException


@pytest.mark.parametrize(("kind", "name", "field"), FIELDS)
def test_properties_are_read_only_and_documented_as_before(kind: type, name: str, field: str) -> None:
    assert isinstance(vars(kind)[name], property) and vars(kind)[name].fset is None


def test_fields() -> None:
    block = Block([ConstOp.int(1), ConstOp.int(2), ConstOp.int(3)], arg_types=[i32])
    first, second, third = block.ops
    (argument,) = block.args
    assert (block.first_op, block.last_op) == (first, third)
    assert (first.prev_op, first.next_op, second.prev_op, third.next_op) == (None, second, first, None)
    assert first.results[0].type == i32 and first.results[0].owner is first
    assert argument.owner is block and argument.location == UNKNOWN_LOC and argument.type == i32


def test_values_are_taken_by_place_and_by_slice() -> None:
    values = SSAValues(Block(arg_types=[i32, f32, i8]).args)
    assert values[1] is values[-2] and values[True] is values[1]
    assert type(values[1:]) is SSAValues and values[1:].types == (f32, i8)
    with pytest.raises(IndexError):
        _ = values[3]


def test_ops_may_be_erased_and_moved_while_they_are_iterated() -> None:
    block = Block([ConstOp.int(number) for number in range(4)])
    other = Block()
    assert len(block.ops) == 4 and len(other.ops) == 0 and list(other.ops) == []
    seen: list[Operation] = []
    for op in block.ops:
        seen.append(op)
        op.detach()
        other.add_op(op)
    assert list(other.ops) == seen and block.first_op is None and len(other.ops) == 4


def test_an_op_is_no_part_of_two_blocks() -> None:
    op = ConstOp.int(1)
    block = Block([op])
    with pytest.raises(ValueError, match="already attached"):
        Block([op])
    assert op.parent is block and not Block().args


@pytest.mark.parametrize("wrong", [StringAttr("a"), FloatAttr(1.0, f32), TensorType(f32, [1])])
def test_parameters_are_checked_each_time(wrong: Attribute) -> None:
    for _ in range(2):
        assert IntegerAttr.new([IntAttr(1), i32]) == IntegerAttr(1, i32)
        with pytest.raises(VerifyException, match="parameter 'type' does not verify"):
            IntegerAttr.new([IntAttr(1), wrong])
        with pytest.raises(VerifyException, match="parameter 'value' does not verify"):
            IntegerAttr.new([wrong, i32])
        # What is inside of a parameter is checked, too.
        with pytest.raises(VerifyException):
            TensorType.new([ArrayAttr([wrong]), f32, UNKNOWN_LOC])
        with pytest.raises(VerifyException, match="nonnegative"):
            IntegerType(-1)


def test_an_attribute_is_data_or_has_parameters() -> None:
    class Neither(Attribute):
        name = "test.neither"

    for _ in range(2):
        with pytest.raises(TypeError, match="Data or ParametrizedAttribute"):
            Neither()


def test_integer_types_are_told_apart() -> None:
    unsigned = IntegerType(8, Signedness.UNSIGNED)
    assert hash(IntegerType(32)) == hash(i32) and IntegerType(32) == i32
    assert len({i8, unsigned, i32, IntegerType(8)}) == 3
