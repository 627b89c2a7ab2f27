"""Fields that are read directly are what xDSL's own accessors give."""

from __future__ import annotations

from typing import Any

import pytest
from mirstack.dialects import tir
from mirstack.dialects.tir.types import I32
from mirstack.support.operands import operands_of
from mirstack.support.xdsl_patches.fields import read_directly
from xdsl.dialects.builtin import DenseArrayBase, i32
from xdsl.ir import Block
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    region_def,
    result_def,
    var_operand_def,
)


def definition() -> type[IRDLOperation]:
    class Mixed(IRDLOperation):  # one class for each call: its fields are about to be changed
        name = "test.mixed"
        first = operand_def()
        many = var_operand_def()
        maybe = opt_operand_def()
        last = operand_def()
        result = result_def()
        body = region_def()
        irdl_options = (AttrSizedOperandSegments(as_property=True),)

    return irdl_op_definition(Mixed)


SIZES = AttrSizedOperandSegments.attribute_name
PLAIN, DIRECT = definition(), read_directly(definition())


@pytest.mark.parametrize("many", [0, 1, 3])
@pytest.mark.parametrize("maybe", [False, True])
def test_fields(many: int, maybe: bool) -> None:
    args = Block(arg_types=[I32] * 6).args
    given = (args[0], *args[1 : 1 + many], *args[4 : 4 + maybe], args[5])
    for kind in (PLAIN, DIRECT):
        op: Any = kind.create(
            operands=given,
            result_types=[I32],
            properties={SIZES: DenseArrayBase.from_list(i32, [1, many, int(maybe), 1])},
            regions=[tir.ForOp("i", args[0], args[1]).body.clone()],
        )
        assert op.first is args[0] and op.last is args[5]
        assert tuple(op.many) == tuple(args[1 : 1 + many])
        assert op.maybe is (args[4] if maybe else None)
        assert op.result is op.results[0] and op.body is op.regions[0]
        assert operands_of(op) == given
    with pytest.raises(NotImplementedError):
        op.first = args[1]


def test_fields_follow_changes() -> None:
    args = Block(arg_types=[I32] * 4).args
    op = tir.ForOp("i", args[0], args[1])
    op.operands = [args[2], args[3]]
    assert op.min is args[2] and op.extent is args[3]
    op.operands[1] = args[0]
    assert op.extent is args[0]
