"""Defines TIR's operators on numbers and bools: arithmetic, comparisons, connectives.

All are pure. Integer semantics are TVM's: `tir.div` and `tir.mod` truncate toward zero, `tir.floordiv` and `tir.floormod` round
toward minus infinity; signed overflow of 32 bits and more is undefined. Operands are vectors where a loop was vectorized; then
results are vectors of as many lanes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, TypeVar

from xdsl.dialects.builtin import UNKNOWN_LOC
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, result_def, traits_def
from xdsl.traits import Commutative, Pure
from xdsl.utils.exceptions import VerifyException

from ...support.edit import init_op
from ..assembly import ShortForm
from ..plain_op import value_of
from .types import I1, element_of, type_to_dtype, with_lanes_of


class BinaryOp(ShortForm):
    """A pure op on two values of one type."""

    lhs = operand_def()
    rhs = operand_def()
    result = result_def()

    SYMBOL: ClassVar[str]
    """How TVMScript writes it: an infix operator, or the name of a function of `T`."""

    def __init__(self, lhs: SSAValue | Operation, rhs: SSAValue | Operation):
        lhs = value_of(lhs)
        init_op(self, (lhs, value_of(rhs)), (self.type_of(lhs.type),), {}, UNKNOWN_LOC)

    @classmethod
    def type_of(cls, operand: Attribute) -> Attribute:
        """Returns the result's type for operands of type `operand`."""
        return operand

    @classmethod
    def types_of(cls, type: Attribute) -> tuple[Sequence[Attribute], Attribute]:
        return (type, type), cls.type_of(type)

    def verify_(self) -> None:
        lhs, rhs = self.lhs.type, self.rhs.type
        if lhs != rhs:
            raise VerifyException(
                f"operands of '{self.SYMBOL}' have different dtypes: {type_to_dtype(lhs)} and {type_to_dtype(rhs)}; write a T.Cast"
            )
        if self.result.type != self.type_of(lhs):
            raise VerifyException(
                f"'{self.SYMBOL}' on {type_to_dtype(lhs)} gives {type_to_dtype(self.type_of(lhs))}, not {type_to_dtype(self.result.type)}"
            )


_Op = TypeVar("_Op", bound=BinaryOp)


def _binary(name: str, symbol: str, *, commutative: bool = False) -> Callable[[type[_Op]], type[_Op]]:
    """Defines a class as the pure binary op `name`, which TVMScript writes as `symbol`."""

    def define(op: type[_Op]) -> type[_Op]:
        op.name = name
        op.traits = traits_def(Pure(), Commutative()) if commutative else traits_def(Pure())
        defined = irdl_op_definition(op)
        defined.SYMBOL = symbol
        return defined

    return define


class CompareOp(BinaryOp):
    """A comparison: its result is bool, with as many lanes as the operands."""

    @classmethod
    def type_of(cls, operand: Attribute) -> Attribute:
        return with_lanes_of(I1, operand)


class LogicalOp(BinaryOp):
    """A connective of bools. Both sides are evaluated."""

    def verify_(self) -> None:
        super().verify_()
        if element_of(self.lhs.type) != I1:
            raise VerifyException(f"operands of '{self.SYMBOL}' must be bool, not {type_to_dtype(self.lhs.type)}")


@_binary("tir.add", "+", commutative=True)
class AddOp(BinaryOp):
    """`lhs + rhs`."""


@_binary("tir.sub", "-")
class SubOp(BinaryOp):
    """`lhs - rhs`."""


@_binary("tir.mul", "*", commutative=True)
class MulOp(BinaryOp):
    """`lhs * rhs`."""


@_binary("tir.div", "T.Div")
class DivOp(BinaryOp):
    """Division: of floats, or of integers toward zero (`T.Div`, C's rule)."""


@_binary("tir.mod", "T.truncmod")
class ModOp(BinaryOp):
    """The remainder of `tir.div` (`T.truncmod`): its sign is the dividend's."""


@_binary("tir.floordiv", "//")
class FloorDivOp(BinaryOp):
    """Division of integers toward minus infinity, `lhs // rhs`."""


@_binary("tir.floormod", "%")
class FloorModOp(BinaryOp):
    """The remainder of `tir.floordiv`, `lhs % rhs`: its sign is the divisor's."""


@_binary("tir.min", "T.min", commutative=True)
class MinOp(BinaryOp):
    """The smaller operand, `T.min(lhs, rhs)`."""


@_binary("tir.max", "T.max", commutative=True)
class MaxOp(BinaryOp):
    """The larger operand, `T.max(lhs, rhs)`."""


@_binary("tir.eq", "==", commutative=True)
class EqOp(CompareOp):
    """`lhs == rhs`."""


@_binary("tir.ne", "!=", commutative=True)
class NeOp(CompareOp):
    """`lhs != rhs`."""


@_binary("tir.lt", "<")
class LtOp(CompareOp):
    """`lhs < rhs`."""


@_binary("tir.le", "<=")
class LeOp(CompareOp):
    """`lhs <= rhs`."""


@_binary("tir.gt", ">")
class GtOp(CompareOp):
    """`lhs > rhs`."""


@_binary("tir.ge", ">=")
class GeOp(CompareOp):
    """`lhs >= rhs`."""


@_binary("tir.and", "and", commutative=True)
class AndOp(LogicalOp):
    """`lhs and rhs`."""


@_binary("tir.or", "or", commutative=True)
class OrOp(LogicalOp):
    """`lhs or rhs`."""


@irdl_op_definition
class NotOp(ShortForm):
    name = "tir.not"
    value = operand_def()
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, value: SSAValue | Operation):
        value = value_of(value)
        super().__init__(operands=[value], result_types=[value.type])

    @classmethod
    def types_of(cls, type: Attribute) -> tuple[Sequence[Attribute], Attribute]:
        return (type,), type

    def verify_(self) -> None:
        if element_of(self.value.type) != I1 or self.result.type != self.value.type:
            raise VerifyException(f"the operand of 'not' must be bool, not {type_to_dtype(self.value.type)}")


BINARY_OPS: tuple[type[BinaryOp], ...] = (
    AddOp, SubOp, MulOp, DivOp, ModOp, FloorDivOp, FloorModOp, MinOp, MaxOp,
    EqOp, NeOp, LtOp, LeOp, GtOp, GeOp, AndOp, OrOp,
)  # fmt: skip
