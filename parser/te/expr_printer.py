"""Prints scalar expressions of TE: single ops are nested, named values are written by name.

Constants are written bare where the reader infers their dtype (a Python int takes the other operand's, a Python float
is float32), otherwise with `tir.const`.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Sequence

from xdsl.dialects.builtin import FloatAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...dialects import te, tir
from ...dialects.tir.scalar_ops import BINARY_ROWS, BOOLS, FLOATS, INTRINSICS, NUMBERS, Precedence
from ...dialects.tir.types import F32, I1, I32, element_of, type_to_dtype
from ...support.diagnostics import MirError, error_at
from ...support.text import quoted

POSTFIX, UNARY, PRODUCT, COMPARE = Precedence.POSTFIX, Precedence.UNARY, Precedence.PRODUCT, Precedence.COMPARISON

_INFIX = {
    op: row for op, row in BINARY_ROWS.items() if row.symbol and row.operands is not BOOLS and op is not tir.DivOp
}


def constant_of(value: SSAValue) -> tir.ConstOp | None:
    """The op of a constant."""
    return value.owner if isinstance(value.owner, tir.ConstOp) else None


def float32_text(value: float) -> str:
    """The shortest decimal that reads as this float32."""
    for digits in range(6, 10):
        text = f"{value:.{digits}g}"
        try:
            if struct.unpack("<f", struct.pack("<f", float(text)))[0] == value:
                return repr(float(text))
        except OverflowError:
            continue
    return repr(value)


def number_text(value: IntegerAttr | FloatAttr) -> str:
    """A number without its dtype."""
    number = value.value.data
    if isinstance(value, FloatAttr):
        if not math.isfinite(number):
            return f'float("{number}")'
        return float32_text(number) if value.type == F32 else repr(number)
    return str(bool(number)) if value.type == I1 else str(_in_range(int(number), value.type))


def _in_range(number: int, type: Attribute) -> int:
    dtype = type_to_dtype(type)
    if dtype.startswith("uint") and number < 0:
        return number + (1 << int(dtype.removeprefix("uint")))
    return number


def is_natural(value: IntegerAttr | FloatAttr) -> bool:
    """Returns whether a Python number, alone, has this dtype."""
    if isinstance(value, FloatAttr):
        return value.type == F32 and math.isfinite(value.value.data)
    return value.type in (I32, I1)


def explicit(value: IntegerAttr | FloatAttr) -> str:
    """A number with its dtype."""
    return f'tir.const({number_text(value)}, "{type_to_dtype(value.type)}")'


def index_types(buffer: SSAValue) -> list[Attribute]:
    """Returns the dtype that a Python int takes as the index of each dimension of a buffer."""
    type = buffer.type
    dims = type.shape.data if isinstance(type, tir.BufferType) else ()
    return [d.type if isinstance(d, IntegerAttr) else I32 for d in dims]


def _element_type(buffer: SSAValue) -> Attribute | None:
    return buffer.type.dtype if isinstance(buffer.type, tir.BufferType) else None


class ExprPrinter:
    """Writes values by `names`, the rest as expressions."""

    def __init__(self, names: dict[SSAValue, str]):
        self.names = names

    def text(self, value: SSAValue, least: int = 0) -> str:
        """The expression; in parentheses where it binds less tightly than `least`."""
        name = self.names.get(value)
        if name is not None:
            return name
        text, precedence = self._expression(value)
        return text if precedence >= least else f"({text})"

    def adapted(self, value: SSAValue, partner: SSAValue, least: int = 0) -> str:
        """Prints an operand; a Python int takes its dtype from `partner`, so a constant is written bare."""
        constant = constant_of(value)
        if constant is not None and constant_of(partner) is None and value.type == partner.type:
            number = constant.value
            if isinstance(number, IntegerAttr) and number.type != I1:
                return self._signed(number_text(number), least)
        return self.text(value, least)

    def index(self, value: SSAValue, extent: Attribute) -> str:
        """Prints an index; a Python int takes its dtype from `extent`, the dtype of the dimension's extent."""
        constant = constant_of(value)
        if constant is not None and isinstance(constant.value, IntegerAttr) and value.type == extent:
            return number_text(constant.value)
        return self.text(value)

    def stored(self, value: SSAValue) -> str:
        """A value stored to a buffer of its dtype: any number is bare."""
        constant = constant_of(value)
        if constant is None or isinstance(constant.value, StringAttr):
            return self.text(value)
        return number_text(constant.value)

    def _signed(self, text: str, least: int) -> str:
        return f"({text})" if text.startswith("-") and least > UNARY else text

    def _expression(self, value: SSAValue) -> tuple[str, int]:
        op = value.owner
        if isinstance(op, Block):
            raise error_at(value, "this value has no TE text: it belongs to another region")
        infix = _INFIX.get(type(op))  # pyright: ignore[reportArgumentType]
        if infix is not None:
            return self._infix(infix.symbol, infix.precedence, op)
        match op:
            case tir.ConstOp():
                return self._constant(op)
            case te.ReadOp():
                extents = te.extents_of(op.tensor)
                return self._element(self.text(op.tensor), op.indices, [e.type for e in extents]), POSTFIX
            case tir.LoadOp():
                return self._element(self.text(op.buffer), op.indices, index_types(op.buffer)), POSTFIX
            case tir.DivOp():
                if isinstance(element_of(op.lhs.type), type(I32)):
                    return self._pair("te.truncdiv", op), POSTFIX
                return self._infix("/", PRODUCT, op)
            case tir.ModOp():
                return self._pair("te.truncmod", op), POSTFIX
            case tir.MinOp() | tir.MaxOp():
                name = "min" if isinstance(op, tir.MinOp) else "max"
                # te.max(x, k) with an axis of a reduction would reduce.
                reduces = isinstance(op.rhs.owner, te.ReduceAxisOp)
                return self._pair(f"tir.{name.capitalize()}" if reduces else f"te.{name}", op), POSTFIX
            case tir.AndOp():
                return f"te.all({', '.join(self._chain(op, tir.AndOp))})", POSTFIX
            case tir.OrOp():
                return f"te.any({', '.join(self._chain(op, tir.OrOp))})", POSTFIX
            case tir.NotOp():
                return f"tir.Not({self.text(op.value)})", POSTFIX
            case tir.SelectOp():
                a, b = op.true_value, op.false_value
                return f"tir.Select({self.text(op.condition)}, {self.adapted(a, b)}, {self.adapted(b, a)})", POSTFIX
            case tir.IfThenElseOp():
                sides = [self._yielded(region.block) for region in (op.then_region, op.else_region)]
                return f"tir.if_then_else({self.text(op.condition)}, {sides[0]}, {sides[1]})", POSTFIX
            case tir.CastOp():
                operand = constant_of(op.value)
                if operand is not None and isinstance(operand.value, (IntegerAttr, FloatAttr)):
                    return f'{explicit(operand.value)}.astype("{type_to_dtype(op.result.type)}")', POSTFIX
                return f'{self.text(op.value, POSTFIX)}.astype("{type_to_dtype(op.result.type)}")', POSTFIX
            case tir.BufferGetOp() if op.field.data == "data":
                return f"{self.text(op.buffer)}.data", POSTFIX
            case tir.CallOp():
                return self._call(op)
            case _:
                raise self.refuse(op)

    def refuse(self, op: Operation) -> MirError:
        """The error for what TE's text cannot say."""
        return error_at(op, f"'{op.name}' has no TE text", "print the module with '-t mlir'")

    def _yielded(self, block: Block) -> str:
        last = block.last_op
        assert isinstance(last, tir.YieldOp)
        return self.text(last.values[0])

    def _element(self, base: str, indices: Iterable[SSAValue], types: Sequence[Attribute]) -> str:
        texts = [self.index(i, t) for i, t in zip(indices, types, strict=True)]
        return f"{base}[{', '.join(texts) or '()'}]"

    def _constant(self, op: tir.ConstOp) -> tuple[str, int]:
        value = op.value
        if isinstance(value, StringAttr):
            return quoted(value.data), POSTFIX
        if not is_natural(value):
            return explicit(value), POSTFIX
        text = number_text(value)
        return text, UNARY if text.startswith("-") else POSTFIX

    def _infix(self, symbol: str, precedence: int, op: Operation) -> tuple[str, int]:
        lhs, rhs = op.operands
        # Comparisons do not associate: both sides bind more tightly.
        left = self.adapted(lhs, rhs, precedence + (precedence == COMPARE))
        return f"{left} {symbol} {self.adapted(rhs, lhs, precedence + 1)}", precedence

    def _pair(self, name: str, op: tir.BinaryOp) -> str:
        return f"{name}({self.adapted(op.lhs, op.rhs)}, {self.adapted(op.rhs, op.lhs)})"

    def _chain(self, op: tir.BinaryOp, kind: type[tir.BinaryOp]) -> list[str]:
        parts = [self.text(op.rhs)]
        left = op.lhs
        while isinstance(left.owner, kind) and left not in self.names:
            parts.append(self.text(left.owner.rhs))
            left = left.owner.lhs
        parts.append(self.text(left))
        return parts[::-1]

    def _call(self, op: tir.CallOp) -> tuple[str, int]:
        name, arguments = op.intrinsic.data, list(op.arguments)
        if op.result is None or op.callee is not None:
            raise self.refuse(op)
        dtype = type_to_dtype(op.result.type)
        types = [a.type for a in arguments]
        same = all(t == op.result.type for t in types)
        is_float = "float" in dtype
        row = INTRINSICS.get(name)
        if row is not None and len(arguments) == row.arity and same:
            if row.symbol and row.arity == 2 and not is_float:
                return self._infix(row.symbol, row.precedence, op)
            takes = row.operands is FLOATS or (row.operands is NUMBERS and (is_float or row.arity == 2))
            if takes and row.te_name:
                return f"{row.te or 'tir.' + name}({', '.join(self.text(a) for a in arguments)})", POSTFIX
        if name == "bitwise_not" and len(arguments) == 1 and same and not is_float:
            return f"~{self.text(arguments[0], UNARY)}", UNARY
        texts = [self.text(a) for a in arguments]
        if name == "isnan" and len(arguments) == 1 and type_to_dtype(types[0]) in ("float32", "float64"):
            return f"te.isnan({texts[0]})", POSTFIX
        if name in ("likely", "popcount") and len(arguments) == 1 and same and not is_float:
            return f"tir.{name}({texts[0]})", POSTFIX
        if name == "clz" and len(arguments) == 1 and dtype == "int32":
            return f"tir.clz({texts[0]})", POSTFIX
        if name == "reinterpret" and len(arguments) == 1:
            return f'tir.reinterpret("{dtype}", {texts[0]})', POSTFIX
        if (name, len(arguments)) in (("q_multiply_shift", 4), ("q_multiply_shift_per_axis", 7)) and dtype == "int32":
            return f"tir.{name}({', '.join(texts)})", POSTFIX
        if name in ("call_extern", "call_pure_extern") and arguments:
            return f"tir.{name}({', '.join([quoted(dtype), *texts])})", POSTFIX
        if name == "call_packed" and dtype == "int32" and arguments:
            return f"tir.call_packed({', '.join(texts)})", POSTFIX
        if name == "tvm_access_ptr" and len(arguments) == 5 and (pointer := self._access_pointer(op, texts)):
            return pointer, POSTFIX
        return f"tir.call_intrin({', '.join([quoted(dtype), quoted('tir.' + name), *texts])})", POSTFIX

    def _access_pointer(self, op: tir.CallOp, texts: list[str]) -> str | None:
        annotation, data, _, _, mask = op.arguments
        bits = constant_of(mask)
        if not isinstance(data.owner, tir.BufferGetOp) or data.owner.field.data != "data" or bits is None:
            return None
        if not isinstance(annotation.owner, tir.CallOp) or annotation.type != _element_type(data.owner.buffer):
            return None
        modes = {1: "r", 2: "w", 3: "rw"}
        mode = modes.get(bits.value.value.data) if isinstance(bits.value, IntegerAttr) else None
        if mode is None or op.result is None:
            return None
        kind = type_to_dtype(op.result.type)
        return f'{self.text(data.owner.buffer)}.access_ptr("{mode}", "{kind}", 1, {texts[2]}, {texts[3]})'
