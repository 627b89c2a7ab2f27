"""Defines elementary functions that xDSL's `math` dialect lacks, on floats and vectors of them."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import AnyFloatConstr, SignlessIntegerConstraint, VectorType
from xdsl.ir import Attribute, Dialect, Operation, SSAValue
from xdsl.irdl import IRDLOperation, VarConstraint, irdl_op_definition, operand_def, result_def, traits_def
from xdsl.traits import Pure


@irdl_op_definition
class SigmoidOp(IRDLOperation):
    """`math_ext.sigmoid %x : f32`: 1 / (1 + e**-x), also where e**-x is beyond the type's range."""

    name = "math_ext.sigmoid"
    T: ClassVar = VarConstraint("T", AnyFloatConstr | VectorType.constr(AnyFloatConstr))
    operand = operand_def(T)
    result = result_def(T)
    traits = traits_def(Pure())
    assembly_format = "$operand attr-dict `:` type($operand)"

    def __init__(self, operand: SSAValue | Operation, type: Attribute | None = None):
        super().__init__(operands=[operand], result_types=[type or SSAValue.get(operand).type])


@irdl_op_definition
class RemFOp(IRDLOperation):
    """`math_ext.remf %x, %y : f32`: the exact remainder of division toward zero, as C's fmod."""

    name = "math_ext.remf"
    T: ClassVar = VarConstraint("T", AnyFloatConstr | VectorType.constr(AnyFloatConstr))
    lhs = operand_def(T)
    rhs = operand_def(T)
    result = result_def(T)
    traits = traits_def(Pure())
    assembly_format = "$lhs `,` $rhs attr-dict `:` type($result)"

    def __init__(self, lhs: SSAValue | Operation, rhs: SSAValue | Operation, type: Attribute | None = None):
        super().__init__(operands=[lhs, rhs], result_types=[type or SSAValue.get(lhs).type])


@irdl_op_definition
class IPowUIOp(IRDLOperation):
    """`math_ext.ipowui %x, %y : i32`: an unsigned integer power, wrapping around.

    MLIR's `math.ipowi` is of signed integers.
    """

    name = "math_ext.ipowui"
    T: ClassVar = VarConstraint("T", SignlessIntegerConstraint | VectorType.constr(SignlessIntegerConstraint))
    lhs = operand_def(T)
    rhs = operand_def(T)
    result = result_def(T)
    traits = traits_def(Pure())
    assembly_format = "$lhs `,` $rhs attr-dict `:` type($result)"

    def __init__(self, lhs: SSAValue | Operation, rhs: SSAValue | Operation, type: Attribute | None = None):
        super().__init__(operands=[lhs, rhs], result_types=[type or SSAValue.get(lhs).type])


MathExt = Dialect("math_ext", [SigmoidOp, RemFOp, IPowUIOp], [])
