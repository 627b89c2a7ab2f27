"""An op is refused as before, whatever ops of its class were verified before it."""

from __future__ import annotations

import pytest
from mirstack.dialects.tir import ConstOp, LoadOp
from mirstack.dialects.tir.arithmetic import AddOp
from mirstack.dialects.tir.types import BufferType
from mirstack.parser import parse_mir
from mirstack.support.walk import walk_ops
from mirstack.support.xdsl_patches import applied, apply
from mirstack.support.xdsl_patches import verification as patch
from xdsl.dialects import arith, builtin, scf
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, StringAttr, UnitAttr, f32, i1, i32, i64
from xdsl.ir import Block, Operation, Region
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, opt_attr_def, traits_def
from xdsl.traits import OpTrait
from xdsl.utils.exceptions import VerifyException

apply()
PROGRAM = """\
@T.prim_func
def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] + A[7 - vi]
"""


def test_the_patch_is_applied() -> None:
    assert applied("verification")


def loads() -> list[LoadOp]:
    return [op for op in walk_ops(parse_mir(PROGRAM)) if isinstance(op, LoadOp)]


def test_wrong_segments_are_refused_after_well_formed_ones() -> None:
    first, second = loads()
    first.verify_()
    second.properties["operandSegmentSizes"] = DenseArrayBase.from_list(i32, [1, 2, 0])
    with pytest.raises(VerifyException, match="operand count"):
        second.verify_()
    del second.properties["operandSegmentSizes"]
    with pytest.raises(VerifyException, match="Expected operandSegmentSizes"):
        second.verify_()


def test_a_type_of_another_class_is_refused() -> None:
    first, second = loads()
    first.verify_()
    assert isinstance(first.buffer.type, BufferType)
    wrong = Block(arg_types=[f32]).args[0]
    second.operands = [wrong, *second.operands[1:]]
    with pytest.raises(VerifyException, match="operand 'buffer'"):
        second.verify_()


def test_equal_types_are_asked_for_by_their_values() -> None:
    a, b, c = Block(arg_types=[i32, i32, i64]).args
    arith.AddiOp(a, b).verify_()
    arith.AddiOp(c, c).verify_()
    mixed = arith.AddiOp.create(
        operands=[a, c], result_types=[i32], properties={"overflowFlags": arith.IntegerOverflowAttr("none")}
    )
    with pytest.raises(VerifyException):
        mixed.verify_()


def test_properties_that_are_missing_or_unknown_or_of_another_class_are_refused() -> None:
    ConstOp.int(1).verify_()
    for properties, message in (
        ({}, "property 'value' expected"),
        ({"value": UnitAttr()}, "Unexpected attribute"),
        ({"value": IntegerAttr(1, i32), "more": UnitAttr()}, "property 'more' is not defined"),
    ):
        with pytest.raises(VerifyException, match=message):
            ConstOp.create(result_types=[i32], properties=properties).verify_()


def test_results_and_successors_are_counted() -> None:
    a, b = Block(arg_types=[i32, i32]).args
    AddOp.create(operands=[a, b], result_types=[i32]).verify_()
    for wrong in (
        AddOp.create(operands=[a, b], result_types=[i32, i32]),
        AddOp.create(operands=[a], result_types=[i32]),
        AddOp.create(operands=[a, b], result_types=[i32], successors=[Block()]),
    ):
        with pytest.raises(VerifyException):
            wrong.verify_()


def test_blocks_of_a_region_are_counted() -> None:
    def loop(region: Region) -> scf.ForOp:
        low = Block(arg_types=[builtin.IndexType()] * 3).args
        return scf.ForOp.create(operands=low, regions=[region])

    loop(Region(Block([scf.YieldOp()], arg_types=[builtin.IndexType()]))).verify_()
    with pytest.raises(VerifyException, match="single block"):
        loop(Region([Block(arg_types=[builtin.IndexType()]), Block([scf.YieldOp()])])).verify_()
    with pytest.raises(VerifyException):
        loop(Region(Block([scf.YieldOp()], arg_types=[i32]))).verify_()


class _Counted(OpTrait):
    asked = 0

    def verify(self, op: Operation) -> None:
        _Counted.asked += 1
        if "refused" in op.attributes:
            raise VerifyException("refused by a trait")


@irdl_op_definition
class _TraitedOp(IRDLOperation):
    name = "test.traited"
    condition = operand_def(i1)
    note = opt_attr_def(StringAttr)
    traits = traits_def(_Counted())


def test_traits_are_asked_of_each_op() -> None:
    condition = Block(arg_types=[i1]).args[0]
    before = _Counted.asked
    for _ in range(3):
        _TraitedOp.create(operands=[condition]).verify_()
    assert _Counted.asked == before + 3
    with pytest.raises(VerifyException, match="refused by a trait"):
        _TraitedOp.create(operands=[condition], attributes={"refused": UnitAttr()}).verify_()


def test_attributes_are_asked_for_where_they_are_declared() -> None:
    condition, wide = Block(arg_types=[i1, i32]).args
    _TraitedOp.create(operands=[condition], attributes={"note": StringAttr("x"), "any": UnitAttr()}).verify_()
    with pytest.raises(VerifyException):
        _TraitedOp.create(operands=[condition], attributes={"note": UnitAttr()}).verify_()
    with pytest.raises(VerifyException, match="operand 'condition'"):
        _TraitedOp.create(operands=[wide]).verify_()


def test_a_trait_that_is_added_later_is_asked() -> None:
    condition = Block(arg_types=[i1]).args[0]

    @irdl_op_definition
    class LaterOp(IRDLOperation):
        name = "test.later"
        condition = operand_def(i1)

    LaterOp.create(operands=[condition]).verify_()
    before = _Counted.asked
    LaterOp.traits.add_trait(_Counted())
    LaterOp.create(operands=[condition]).verify_()
    assert _Counted.asked == before + 1


def test_few_shapes_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patch, "KEPT", 4)
    block = Block(arg_types=[i64])
    for width in range(1, 20):
        value = Block(arg_types=[builtin.IntegerType(width)]).args[0]
        arith.AddiOp(value, value).verify_()
    assert len(patch._declarations[arith.AddiOp].shapes) <= 4 and len(block.args) == 1
