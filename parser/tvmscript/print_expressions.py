"""Expressions as text, in the style of TVM 0.16's printer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    NoneType,
    StringAttr,
    UnitAttr,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...dialects.tir.arithmetic import BinaryOp, DivOp, NotOp, SubOp
from ...dialects.tir.buffer import BufferGetOp, BufferRegionOp, LoadOp
from ...dialects.tir.expr import (
    BroadcastOp,
    CallOp,
    CastOp,
    CommReducerOp,
    ConstOp,
    IfThenElseOp,
    LetOp,
    RampOp,
    SelectOp,
    ShuffleOp,
    YieldOp,
)
from ...dialects.tir.intrinsics import DTYPE_FIRST, DTYPE_LAST, KNOWN, intrinsic_type
from ...dialects.tir.literals import float_literal, integer_literal
from ...dialects.tir.operators import as_const, fold, wrap
from ...dialects.tir.scalar_ops import BINARY_ROWS, Precedence
from ...dialects.tir.stmt import IterVarOp, TargetOp
from ...dialects.tir.types import (
    I32,
    HandleType,
    MetadataAttr,
    NameAttr,
    StringType,
    TargetAttr,
    element_of,
    is_scalable,
    lanes_of,
    type_to_dtype,
)
from ...support.diagnostics import error_at
from .inlined_values import Plan, is_stop
from .names import Names

_COMPARISON, _NOT, _SUM, ATOM = Precedence.COMPARISON, Precedence.NOT, Precedence.SUM, Precedence.ATOM
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def quoted(text: str) -> str:
    """A string literal."""
    if text.isprintable() and "\\" not in text and '"' not in text:
        return f'"{text}"'
    escaped = (_ESCAPES.get(c) or (c if c.isprintable() else _code(c)) for c in text)
    return f'"{"".join(escaped)}"'


def _code(char: str) -> str:
    point = ord(char)
    return f"\\x{point:02x}" if point < 256 else f"\\u{point:04x}" if point < 65536 else f"\\U{point:08x}"


def dtype(type: Attribute) -> str:
    """The dtype's name in quotes."""
    return quoted(type_to_dtype(type))


def annotation(type: Attribute) -> str:
    """A type as an annotation: `T.int32`, `T.handle("float32", "global")`."""
    if isinstance(type, HandleType):
        if isinstance(type.pointee, NoneType):
            return "T.handle"
        pointee = "void" if isinstance(type.pointee, UnitAttr) else type_to_dtype(type.pointee)
        scope = f", {quoted(type.scope.data)}" if type.scope.data else ""
        return f"T.handle({quoted(pointee)}{scope})"
    return f"T.{type_to_dtype(type)}"


def float_text(value: float, type: Attribute) -> str:
    """Prints a float constant, `T.float32(0.1)`."""
    return float_literal(value, type_to_dtype(type))


def integer_text(value: int, type: Attribute) -> str:
    """An integer constant: an int32 as it is, others with their dtype."""
    return integer_literal(value if type == I32 else wrap(value, type), type_to_dtype(type))


def attribute_text(attr: Attribute, where: Operation | None = None) -> str:
    """A constant of an annotation."""
    match attr:
        case StringAttr():
            return quoted(attr.data)
        case IntegerAttr():
            return integer_text(attr.value.data, attr.type)
        case FloatAttr():
            return float_text(attr.value.data, attr.type)
        case ArrayAttr():
            return f"[{', '.join(attribute_text(a, where) for a in attr.data)}]"
        case DictionaryAttr():
            return dictionary_text(attr, where)
        case NoneType() | UnitAttr():
            return "None"
        case TargetAttr():
            return f"T.target({attribute_text(attr.config, where)})"
        case MetadataAttr():
            return f"metadata[{quoted(attr.kind.data)}][{attr.index.data}]"
        case NameAttr():
            return attr.value.data
        case _:
            raise error_at(
                where,
                f"an annotation holds {attr}, which has no text",
                "it is made of numbers, strings, lists and dictionaries",
            )


def dictionary_text(attr: DictionaryAttr, where: Operation | None = None) -> str:
    """`{"key": value, …}`."""
    return "{" + ", ".join(f"{quoted(k)}: {attribute_text(v, where)}" for k, v in attr.data.items()) + "}"


class ExpressionPrinter:
    """Prints expressions of one function."""

    def __init__(self, names: Names, plan: Plan, callees: dict[str, str]):
        self.names, self.plan, self.callees = names, plan, callees

    def text(self, value: SSAValue) -> str:
        """An expression where any may stand."""
        return self.expression(value)[0]

    def texts(self, values: Sequence[SSAValue]) -> str:
        """Expressions with commas between."""
        return ", ".join([self.expression(v)[0] for v in values])

    def within(self, value: SSAValue, precedence: int, *, right: bool = False) -> str:
        """An operand of an operator that binds as tightly as `precedence`."""
        text, own = self.expression(value)
        keeps = own > precedence or (own == precedence and not right)
        return text if keeps else f"({text})"

    def expression(self, value: SSAValue) -> tuple[str, int]:
        """An expression and how tightly it binds."""
        name = self.names.of.get(value)
        if name is not None:
            return name, ATOM
        op = value.owner
        kind = type(op)
        if kind is ConstOp:
            return self.const(op), ATOM  # pyright: ignore
        if isinstance(op, Block) or op not in self.plan.inline:
            self.names.name(value)
            self.unprintable(value)
        if kind is LoadOp:
            return self.load(op), ATOM  # pyright: ignore
        if isinstance(op, BinaryOp):
            return self.binary(op)
        return self.other(op, value)

    def unprintable(self, value: SSAValue) -> NoReturn:
        raise error_at(value, "this value has no TVMScript text")

    def const(self, op: ConstOp) -> str:
        attr, type_ = op.value, op.result.type
        if isinstance(attr, IntegerAttr):
            return integer_text(attr.value.data, type_)
        if isinstance(attr, FloatAttr):
            return float_text(attr.value.data, type_)
        return quoted(attr.data)

    def binary(self, op: BinaryOp) -> tuple[str, int]:
        """Prints an infix operator if Python reads it as the same node, otherwise a function."""
        kind = type(op)
        row = BINARY_ROWS[kind]
        precedence = row.precedence
        if row.symbol and self.as_operator(op):
            # Comparisons chain in Python: one inside another is always in parentheses.
            chained = precedence == _COMPARISON
            left = self.within(op.lhs, precedence, right=chained)
            return f"{left} {row.symbol} {self.within(op.rhs, precedence, right=True)}", precedence
        return f"T.{row.printed or row.node}({self.text(op.lhs)}, {self.text(op.rhs)})", ATOM

    def as_operator(self, op: BinaryOp) -> bool:
        if isinstance(op, DivOp) and isinstance(element_of(op.lhs.type), IntegerType):
            return False
        if type(op.lhs.owner) is not ConstOp and type(op.rhs.owner) is not ConstOp:
            return True
        try:
            return fold(type(op), op.lhs, op.rhs) is None
        except ZeroDivisionError:
            return False

    def other(self, op: Operation, value: SSAValue) -> tuple[str, int]:
        match op:
            case CallOp():
                return self.call(op), ATOM
            case CastOp():
                return f"T.Cast({dtype(op.result.type)}, {self.text(op.value)})", ATOM
            case NotOp():
                if isinstance(op.value.owner, ConstOp):
                    return f"T.Not({self.text(op.value)})", ATOM
                return f"not {self.within(op.value, _NOT)}", _NOT
            case SelectOp():
                return f"T.Select({self.texts(op.operands)})", ATOM
            case IfThenElseOp():
                sides = [self.region_expression(r.block) for r in op.regions]
                return f"T.if_then_else({self.text(op.condition)}, {', '.join(sides)})", ATOM
            case RampOp():
                return f"T.Ramp({self.text(op.base)}, {self.text(op.stride)}, {lanes_text(op.result.type)})", ATOM
            case BroadcastOp():
                return f"T.Broadcast({self.text(op.value)}, {lanes_text(op.result.type)})", ATOM
            case ShuffleOp():
                indices = ", ".join(str(i.data) for i in op.indices.data)
                return f"T.Shuffle([{self.texts(op.vectors)}], [{indices}])", ATOM
            case BufferGetOp():
                dim = "" if op.dim is None else f"[{op.dim.value.data}]"
                return f"{self.names.name(op.buffer)}.{op.field.data}{dim}", ATOM
            case BufferRegionOp():
                return self.region(op), ATOM
            case IterVarOp():
                return self.iter_var(op), ATOM
            case TargetOp():
                return f"T.target({attribute_text(op.config, op)})", ATOM
            case CommReducerOp():
                return self.reducer(op), ATOM
            case _:
                self.unprintable(value)

    # Accesses

    def load(self, op: LoadOp) -> str:
        """`A[i, j]`; with a predicate `A.vload([i], predicate=p)`."""
        name = self.names.name(op.buffer)
        if op.predicate is not None:
            return f"{name}.vload([{self.texts(op.indices)}], predicate={self.text(op.predicate)})"
        return f"{name}[{self.indices(op.indices)}]"

    def indices(self, indices: Sequence[SSAValue]) -> str:
        """The indices of a load or store."""
        return ", ".join([self.access_index(i) for i in indices]) if indices else "()"

    def access_index(self, index: SSAValue) -> str:
        """One index; a ramp with a constant stride is a slice."""
        op = index.owner
        if not isinstance(op, RampOp) or index in self.names.of:
            return self.text(index)
        stride = as_const(op.stride)
        if stride is None or stride.value == 0:
            return self.text(index)
        step = "" if stride.value == 1 else f":{self.text(op.stride)}"
        lanes = lanes_of(op.result.type)
        type_ = op.base.type
        if is_scalable(op.result.type):
            extent = (
                f"T.vscale() * {lanes * abs(int(stride.value))}" if lanes * abs(stride.value) != 1 else "T.vscale()"
            )
            base = as_const(op.base)
            start = self.text(op.base)
            if base is not None and base.value == 0:
                return f"{start}:{extent}{step}"
            return f"{start}:{self.within(op.base, _SUM)} + {extent}{step}"
        base = as_const(op.base)
        distance = lanes * int(stride.value)
        if base is not None:
            return f"{self.text(op.base)}:{integer_text(int(base.value) + distance, type_)}{step}"
        start, own = self.expression(op.base)
        padded = start if own >= _SUM else f"({start})"
        return f"{start}:{padded} + {integer_text(distance, type_)}{step}"

    def region(self, op: BufferRegionOp) -> str:
        """`A[i, 0:4]`."""
        spans = [self.span(low, extent) for low, extent in zip(op.mins, op.extents, strict=True)]
        return f"{self.names.name(op.buffer)}[{', '.join(spans) if spans else '()'}]"

    def span(self, low: SSAValue, extent: SSAValue) -> str:
        """One dimension of a region."""
        size = as_const(extent)
        if size is not None and size.value == 1:
            return self.text(low)
        return f"{self.text(low)}:{self.stop(low, extent)}"

    def stop(self, low: SSAValue, extent: SSAValue) -> str:
        """Prints the end of a range that begins at `low`."""
        a, b = as_const(low), as_const(extent)
        if a is not None and b is not None:
            return integer_text(int(a.value) + int(b.value), low.type)
        if a is not None and a.value == 0:
            return self.text(extent)
        op = extent.owner
        if isinstance(op, SubOp) and extent not in self.names.of and is_stop(low, extent):
            return self.text(op.lhs)
        return f"{self.within(low, _SUM)} + {self.within(extent, _SUM, right=True)}"

    # Calls

    def call(self, op: CallOp) -> str:
        """A call of an intrinsic or function."""
        name = op.intrinsic.data
        if op.callee is not None:
            symbol = op.callee.string_value()
            return f"{self.callees.get(symbol, symbol)}({self.texts(op.arguments)})"
        arguments = [self.text(a) for a in op.arguments]
        result = op.result.type if op.result is not None else NoneType()
        if name in DTYPE_FIRST:
            arguments.insert(0, dtype(result))
        elif name in DTYPE_LAST:
            arguments.append(dtype(result))
        elif (name not in KNOWN and not name.startswith("tir.")) or not self.has_usual_type(op, result):
            return (
                f"T.call_intrin({', '.join([dtype(result), quoted('tir.' + name.removeprefix('tir.')), *arguments])})"
            )
        return f"T.{name}({', '.join(arguments)})"

    def has_usual_type(self, op: CallOp, result: Attribute) -> bool:
        """Returns whether the reader infers this dtype for a call whose text does not state it."""
        return result == intrinsic_type(op.intrinsic.data, [a.type for a in op.arguments])

    def iter_var(self, op: IterVarOp) -> str:
        dom = "None"
        if len(op.dom):
            dom = f"T.Range({self.text(op.dom[0])}, {self.stop(op.dom[0], op.dom[1])})"
        return f"T.iter_var({self.text(op.var)}, {dom}, {quoted(op.iter_type.data)}, {quoted(op.thread_tag.data)})"

    def reducer(self, op: CommReducerOp) -> str:
        hints = [] if op.arg_names is None else [a.data for a in op.arg_names.data]
        with self.names.scope():
            args = op.combiner.block.args
            names = [
                self.names.define(arg, hints[i] if i < len(hints) else arg.name_hint or "x")
                for i, arg in enumerate(args)
            ]
            last = op.combiner.block.last_op
            values = list(last.operands) if last is not None else []
            body = self.with_lets(op.combiner.block, values, tuple=len(values) > 1)
        return f"T.comm_reducer(lambda {', '.join(names)}: {body}, [{self.texts(op.identities)}])"

    # Regions that are expressions

    def region_expression(self, block: Block) -> str:
        """The value that a region yields."""
        last = block.last_op
        if not isinstance(last, YieldOp):
            raise error_at(block.parent_op(), "this region yields no value")
        return self.with_lets(block, last.values)

    def with_lets(self, block: Block, values: Sequence[SSAValue], *, tuple: bool = False) -> str:
        """Values of a region; what needs a name there is bound by `T.Let`."""
        bound: list[tuple[str, str]] = []
        with self.names.scope():
            for op in block.ops:
                if op in self.plan.inline or isinstance(op, YieldOp):
                    continue
                if isinstance(op, LetOp):
                    text = self.text(op.value)
                    bound.append((self.names.define(op.result, op.var_name.data), text))
                elif op in self.plan.lets:
                    text = self.definition(op)
                    bound.append((self.names.define(op.results[0], op.results[0].name_hint or "v"), text))
                else:
                    raise error_at(
                        op,
                        f"'{op.name}' stands where only expressions may",
                        "TVMScript has no text for a statement in an expression, such as a check that a pass put there; "
                        "MLIR's form (-t mlir) has",
                    )
            text = ", ".join(self.text(v) for v in values)
            text = f"({text})" if tuple else text
            for name, value in reversed(bound):
                text = f"T.Let({text}, where={{{name}: {value}}})"
        return text

    def definition(self, op: Operation) -> str:
        """The expression of an op that is given a name."""
        self.plan.inline.add(op)
        try:
            return self.text(op.results[0])
        finally:
            self.plan.inline.discard(op)


def lanes_text(type: Attribute) -> str:
    """The number of lanes of a vector type."""
    lanes = lanes_of(type)
    if is_scalable(type):
        return "T.vscale()" if lanes == 1 else f"T.vscale() * {lanes}"
    return str(lanes)


def is_string(value: SSAValue) -> bool:
    """Returns whether a value is a string immediate."""
    return isinstance(value.type, StringType)
