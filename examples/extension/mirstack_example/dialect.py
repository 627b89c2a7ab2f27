"""Defines the dialect `sat`, of one op: a number brought between 0 and 1."""

from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import Dialect
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, result_def, traits_def
from xdsl.traits import Pure


@irdl_op_definition
class ClampOp(IRDLOperation):
    """`%y = sat.clamp %x : f32 -> f32`, also in a TIR function."""

    name = "sat.clamp"
    x = operand_def(AnyFloat)
    result = result_def(AnyFloat)
    assembly_format = "$x attr-dict `:` type($x) `->` type($result)"
    traits = traits_def(Pure())


SAT = Dialect("sat", [ClampOp], [])
