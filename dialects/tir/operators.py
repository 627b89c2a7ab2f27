"""Expressions built the way TVM's operators build them: dtypes are matched, constants fold.

`a + b` in TVM's Python (and so in TVMScript) is more than a node: operands of different dtypes are cast to a common one,
scalars are broadcast to vectors, and constants fold (`i + 0` is `i`). The rules are those of TVM 0.16's `tir/op.cc` and
`arith/const_fold.h`. Passes that already have operands of one dtype and want no folding make the ops directly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects.builtin import (
    UNKNOWN_LOC,
    AnyFloat,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    LocationAttr,
    Signedness,
    UnitAttr,
)
from xdsl.ir import Attribute, Operation, SSAValue

from ...support.diagnostics import MirError, error_at
from ..arith import const_fold
from ..arith.const_fold import INT32, NumberType, Operand, fold_cast
from .arithmetic import BinaryOp, LogicalOp, MaxOp, MinOp, MulOp, NotOp
from .expr import BroadcastOp, CastOp, ConstOp, SelectOp
from .types import I1, I32, I64, element_of, is_scalable, lanes_of, type_to_dtype, with_lanes_of


@dataclass(frozen=True, slots=True)
class Const:
    """A number that is not yet an op: it may still fold, or change its dtype to that of the other operand."""

    value: int | float
    type: Attribute = I32


Value: TypeAlias = SSAValue | Const


def int_const(value: int) -> Const:
    """Returns a Python integer as int32, or int64 if that does not hold it."""
    return Const(value, I32 if -(1 << 31) <= value < 1 << 31 else I64)


def as_const(value: Value) -> Const | None:
    """Returns the number of a scalar constant, otherwise None."""
    if isinstance(value, Const):
        return value
    op = value.owner
    if type(op) is ConstOp:
        attr = op.properties["value"]
        if isinstance(attr, (IntegerAttr, FloatAttr)):
            return Const(attr.value.data, value.type)
    return None


def is_float(type: Attribute) -> bool:
    """Returns True if values of the type (or its elements) are floating-point numbers."""
    return isinstance(element_of(type), AnyFloat)


def wrap(value: int, type: Attribute) -> int:
    """Wraps an integer to the range of its type, as the machine does."""
    return number_type(type).wrap(value) if isinstance(type, IntegerType) else value


def number_type(type: Attribute) -> NumberType:
    """Returns a scalar type of numbers as constant folding asks for it."""
    if type is I32:
        return INT32
    if isinstance(type, IntegerType):
        bits = type.width.data
        return NumberType(False, bits, type.signedness.data is not Signedness.UNSIGNED and bits > 1)
    assert isinstance(type, AnyFloat)
    return NumberType(True, type.bitwidth)


def fold(op: type[BinaryOp] | str, lhs: Value, rhs: Value) -> Value | None:
    """Returns the folded result of TVM's operator on operands of one dtype, or None if it does not fold.

    `op` is an op, or the name of an intrinsic of bits.

    Raises ZeroDivisionError for an integer division by the constant zero.
    """
    a, b = as_const(lhs), as_const(rhs)
    if a is None and b is None:
        return lhs if lhs is rhs and op in (MinOp, MaxOp) else None
    type = lhs.type
    folded = const_fold.fold(
        op if isinstance(op, str) else op.name, a.value if a else None, b.value if b else None, number_type(type)
    )
    if folded is None:
        return None
    if isinstance(folded, Operand):
        return lhs if folded is Operand.LEFT else rhs
    return Const(folded, type if isinstance(op, str) else op.type_of(type))


class ExprBuilder:
    """Builds expressions at the end of `ops`, each new op at `location`.

    Operands of a user that are not allowed raise MirError at `location`.
    """

    def __init__(self, location: LocationAttr = UNKNOWN_LOC) -> None:
        self.ops: list[Operation] = []
        self.location = location

    def error(self, message: str, *notes: str) -> MirError:
        """Returns an error at the current location, to be raised."""
        return error_at(self.location, message, *notes)

    def emit(self, op: Operation) -> SSAValue:
        """Appends an op; its first result."""
        op.location = self.location
        self.ops.append(op)
        return op.results[0]

    def value(self, value: Value) -> SSAValue:
        """Returns the SSA value of a value; builds the op of a constant."""
        if type(value) is not Const:
            return value  # pyright: ignore[reportReturnType]
        attr = const_attr(value, self)
        return self.emit(ConstOp.create(properties={"value": attr}, result_types=(value.type,)))

    def cast(self, value: Value, type: Attribute) -> Value:
        """Converts `value` to a dtype as `tvm::cast` does: constants are converted, scalars are broadcast."""
        if value.type == type:
            return value
        if lanes_of(value.type) == 1 and lanes_of(type) != 1:
            return self.broadcast(self.cast(value, element_of(type)), type)
        const = as_const(value)
        if const is not None and isinstance(type, IntegerType | AnyFloat):
            number = fold_cast(const.value, number_type(type))
            if number is not None:
                return Const(number, type)
        return self.emit(CastOp.create(operands=(self.value(value),), result_types=(type,)))

    def broadcast(self, value: Value, type: Attribute) -> SSAValue:
        """Broadcasts a scalar to as many lanes as `type` has."""
        return self.emit(BroadcastOp(self.value(value), lanes_of(type), is_scalable(type)))

    def match(self, a: Value, b: Value) -> tuple[Value, Value]:
        """Casts operands to their common dtype (TVM's BinaryOpMatchTypes): floats and wider types win.

        Scalars are broadcast to the lanes of vectors.
        """
        if a.type == b.type:
            return a, b
        first, second = self.common_types(a.type, b.type)
        return self.cast(a, first), self.cast(b, second)

    def common_types(self, a: Attribute, b: Attribute) -> tuple[Attribute, Attribute]:
        """Returns the types that operands of types `a` and `b` are cast to before they are combined."""
        if (lanes_of(a), is_scalable(a)) == (lanes_of(b), is_scalable(b)):
            shape_a, shape_b = a, b
        elif lanes_of(a) == 1 and not is_scalable(a):
            shape_a, shape_b = b, b
        elif lanes_of(b) == 1 and not is_scalable(b):
            shape_a, shape_b = a, a
        else:
            raise self.error(f"operands have different numbers of lanes: {type_to_dtype(a)} and {type_to_dtype(b)}")
        x, y = element_of(a), element_of(b)
        if x == y:
            return with_lanes_of(x, shape_a), with_lanes_of(x, shape_b)
        if not isinstance(x, IntegerType | AnyFloat) or not isinstance(y, IntegerType | AnyFloat):
            raise self.error(
                f"operands of dtype {type_to_dtype(a)} and {type_to_dtype(b)} cannot be combined",
                "arithmetic is on numbers; a handle is passed on or loaded from",
            )
        common = y if const_fold.takes_right(number_type(x), number_type(y)) else x
        return with_lanes_of(common, shape_a), with_lanes_of(common, shape_b)

    def binary(self, op: type[BinaryOp], a: Value, b: Value) -> Value:
        """Returns `a op b` with dtypes matched and constants folded."""
        if a.type != b.type:
            a, b = self.match(a, b)
        try:
            folded = fold(op, a, b)
        except ZeroDivisionError:
            raise self.error("division by zero") from None
        if folded is not None and folded.type == op.type_of(a.type):
            return folded
        return self.node(op, a, b)

    def node(self, op: type[BinaryOp], a: Value, b: Value) -> SSAValue:
        """Builds the op itself, on operands of one dtype."""
        x, y = self.value(a), self.value(b)
        if x.type != y.type:
            raise self.error(
                f"operands of '{op.SYMBOL}' have different dtypes: {type_to_dtype(x.type)} and {type_to_dtype(y.type)}",
                "write a T.Cast on one of them",
            )
        if not isinstance(element_of(x.type), IntegerType | AnyFloat):
            raise self.error(f"'{op.SYMBOL}' is on numbers, not on {type_to_dtype(x.type)}")
        if issubclass(op, LogicalOp) and element_of(x.type) != I1:
            raise self.error(
                f"operands of '{op.SYMBOL}' must be bool, not {type_to_dtype(x.type)}", "compare with '!= 0' first"
            )
        return self.emit(op.create(operands=(x, y), result_types=(op.type_of(x.type),)))

    def negate(self, value: Value) -> Value:
        """Returns `-value`, which TVM writes `value * -1`."""
        if isinstance(value, Const):
            number = -value.value
            return Const(wrap(number, value.type) if isinstance(number, int) else number, value.type)
        minus_one = -1.0 if is_float(value.type) else -1
        return self.binary(MulOp, value, Const(minus_one, element_of(value.type)))

    def logical_not(self, value: Value) -> Value:
        """Returns `not value`."""
        if element_of(value.type) != I1:
            raise self.error(
                f"the operand of 'not' must be bool, not {type_to_dtype(value.type)}", "compare with '== 0' instead"
            )
        if isinstance(value, Const):
            return Const(int(not value.value), I1)
        return self.emit(NotOp.create(operands=(value,), result_types=(value.type,)))

    def select(self, condition: Value, true_value: Value, false_value: Value) -> SSAValue:
        """Returns `T.Select`, its values matched."""
        a, b = self.match(true_value, false_value)
        return self.emit(SelectOp(self.value(condition), self.value(a), self.value(b)))


def const_attr(const: Const, builder: ExprBuilder) -> IntegerAttr | FloatAttr:
    """Returns the attribute of a number; raises MirError at the builder's location if it does not fit."""
    key = (const.value, const.type)
    attr = _ATTRS.get(key)
    if attr is not None:
        return attr
    if isinstance(const.type, AnyFloat):
        try:
            return FloatAttr(float(const.value), const.type)
        except OverflowError:
            name = type_to_dtype(const.type)
            raise builder.error(f"{const.value} does not fit into {name}", f'infinity is T.{name}("inf")') from None
    if isinstance(const.type, IntegerType) and isinstance(const.value, int):
        if wrap(const.value, const.type) != const.value:
            raise builder.error(f"{const.value} does not fit into {type_to_dtype(const.type)}")
        attr = IntegerAttr(const.value, const.type, truncate_bits=True)
        if len(_ATTRS) < 4096:
            _ATTRS[key] = attr
        return attr
    raise builder.error(f"{const.value!r} is not a value of dtype {type_to_dtype(const.type)}")


# Small integers are frequent; their attributes are cached. (Floats are not: 0.0 equals -0.0 as a key.)
_ATTRS: dict[tuple[int | float, Attribute], IntegerAttr] = {}

UNIT = UnitAttr()
