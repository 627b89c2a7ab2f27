"""IR is compared by identity, by what `object` has for it."""

from __future__ import annotations

import pytest
from mirstack.dialects.relay import ir
from mirstack.support.xdsl_patches import applied
from xdsl.dialects.builtin import ModuleOp, i32
from xdsl.ir import Block, BlockArgument, OpResult, Region, Use


@pytest.mark.skipif(not applied("identity"), reason="the patch is left off")
@pytest.mark.parametrize("kind", [OpResult, BlockArgument, Block, Region, Use, ModuleOp, ir.FuncOp])
def test_classes_of_ir_have_what_object_has(kind: type) -> None:
    assert kind.__hash__ is object.__hash__ and kind.__eq__ is object.__eq__


def test_two_values_of_one_type_are_two() -> None:
    one, other = Block(arg_types=[i32, i32]).args
    assert one == one and one != other and {one: 1, other: 2}[other] == 2
