"""Defines TIR in rules: infix operators, ops and intrinsics by name (that after `T.`), `cast`.

`%x % 8 < 4`, `floordiv(%x, %c)`, `select(%c, %x, %y)`, `isnan(%x)`, `bitwise_and(%x, 1)`, `cast(%x, dtype="int8")`. An op without a
name in TVMScript, such as `tir.broadcast`, is written by its short name. Constants are numbers; those of unsigned types are 0 or more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xdsl.dialects.builtin import FloatAttr, IntegerAttr, IntegerType, VectorType
from xdsl.ir import Attribute, Operation, SSAValue

from ....support.text import counted
from ...tir import TIR
from ...tir.arithmetic import BinaryOp, CompareOp
from ...tir.expr import CallOp, CastOp, ConstOp, SelectOp
from ...tir.intrinsics import PURE, intrinsic_arity, intrinsic_type
from ...tir.operators import Const, fold, wrap
from ...tir.types import dtype_to_type, type_to_dtype, with_lanes_of
from ..functions import NoMatch, element_of
from .other import OtherLevel

_INFIX = {
    "add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "mod": "floormod", "lt": "lt", "le": "le", "gt": "gt",
    "ge": "ge", "eq": "eq", "ne": "ne", "and_": "and", "or_": "or", "not_": "not",
}  # fmt: skip
_OPERATORS = {f"tir.{op}": function for function, op in _INFIX.items()}
_CALL, _CAST = "tir.call", "tir.cast"


class TirLevel(OtherLevel):
    """Implements `Level`."""

    called = PURE

    def __init__(self) -> None:
        super().__init__("tir")
        self.classes = {op.name: op for op in TIR.operations}

    def resolve(self, name: str) -> str | None:
        return super().resolve(name) or (_CALL if self.implied(name) else None)

    def implied(self, name: str) -> Mapping[str, Any]:
        is_intrinsic = name in PURE and intrinsic_arity(name) is not None and super().resolve(name) is None
        return {"intrinsic": name} if is_intrinsic else {}

    def infix(self, function: str) -> str | None:
        name = _INFIX.get(function)
        return None if name is None else f"tir.{name}"

    def operator(self, op_name: str) -> str | None:
        return _OPERATORS.get(op_name)

    def of_one_dtype(self, op_name: str) -> tuple[tuple[int, ...], bool]:
        op = self.classes[op_name]
        if issubclass(op, BinaryOp):
            return (0, 1), not issubclass(op, CompareOp)
        return ((1, 2), True) if op is SelectOp else ((), False)

    def problem(self, op_name: str, arguments: int | None, attributes: Sequence[str]) -> str | None:
        """As the base class; of an intrinsic, `op_name` is the name after `T.`."""
        if self.implied(op_name):
            wanted = intrinsic_arity(op_name)
            if arguments not in (None, wanted):
                return f"T.{op_name} takes {counted(wanted or 0, 'argument')}, not {arguments}"
            return super().problem(_CALL, None, attributes)
        if op_name == _CAST:
            attributes = [name for name in attributes if name != "dtype"]
        return super().problem(op_name, arguments, attributes)

    def attribute(self, op: Operation, name: str) -> Any:
        if name == "dtype" and isinstance(op, CastOp):
            return type_to_dtype(element_of(op.result.type))
        return super().attribute(op, name)

    def constant(self, value: SSAValue) -> Any:
        owner = value.owner
        if type(owner) is not ConstOp:
            return None
        number = owner.properties["value"]
        if isinstance(number, IntegerAttr):
            return bool(number.value.data) if number.type == IntegerType(1) else wrap(number.value.data, value.type)
        return number.value.data if isinstance(number, FloatAttr) else super().constant(value)

    def make_constant(self, value: Any, dtype: str | None, like: Attribute) -> Operation:
        """Raises NoMatch where a vector is replaced: its constants are broadcasts."""
        if isinstance(like, VectorType):
            raise NoMatch
        type = like if dtype is None else dtype_to_type(dtype)
        if isinstance(type, IntegerType):
            return ConstOp.int(wrap(int(value), type), type)
        return ConstOp.float(float(value), type)

    def build(self, op_name: str, args: Sequence[SSAValue], attributes: Mapping[str, Any], like: SSAValue) -> Operation:
        if op_name == _CAST and "dtype" in attributes:
            return CastOp(args[0], with_lanes_of(dtype_to_type(attributes["dtype"]), args[0].type))
        if op_name == _CALL and set(attributes) == {"intrinsic"}:
            name = attributes["intrinsic"]
            return CallOp(name, args, intrinsic_type(name, [arg.type for arg in args]))
        return super().build(op_name, args, attributes, like)

    def fold(self, op: Operation, args: Sequence[Any]) -> Any:
        """Folds an op on scalar constants as TVM does, and an intrinsic of integers as the interpreter."""
        if isinstance(op, CallOp) and op.result is not None:
            from ...tir.interpreter.intrinsics import integer_call

            call = integer_call(op.intrinsic.data, op.result.type, op.arguments[0].type, op)
            if call is None:
                raise NoMatch
            return call(*args)
        if not isinstance(op, BinaryOp):
            raise NoMatch
        a, b = (Const(value, operand.type) for value, operand in zip(args, op.operands, strict=True))
        try:
            folded = fold(type(op), a, b)
        except ZeroDivisionError:
            raise NoMatch from None
        if not isinstance(folded, Const) or folded.type != op.result.type:
            raise NoMatch
        return folded.value
