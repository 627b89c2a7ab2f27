"""Between SSA values and analyzer expressions."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeAlias

from xdsl.builder import Builder
from xdsl.dialects.builtin import DictionaryAttr, FloatAttr, IntegerAttr, IntegerType, Signedness, StringAttr
from xdsl.ir import Attribute, Operation, OpResult, Region, SSAValue
from xdsl.rewriter import InsertPoint

from ..buffer import BufferGetOp, BufferOp
from ..expr import (
    AddOp,
    AndOp,
    CallOp,
    CastOp,
    ConstOp,
    DivOp,
    EqOp,
    FloorDivOp,
    FloorModOp,
    GeOp,
    GtOp,
    IfThenElseOp,
    LeOp,
    LetOp,
    LtOp,
    MaxOp,
    MinOp,
    ModOp,
    MulOp,
    NeOp,
    NotOp,
    OrOp,
    SelectOp,
    SubOp,
    YieldOp,
    single_block,
)
from ..intrinsics import Effect, intrinsic_effect
from ..types import I1, I32, I64, BufferType, is_unsigned
from . import expr as x
from .expr import Atom, Expr, Function, Kind


def is_index_type(type: Attribute) -> bool:
    """Whether arithmetic on this type is taken as that of unbounded integers: signed, 32 bits or more."""
    return isinstance(type, IntegerType) and type.width.data >= 32 and type.signedness.data is not Signedness.UNSIGNED


_BUILD: dict[type[Operation], Callable[..., Expr]] = {
    AddOp: Expr.__add__,
    SubOp: Expr.__sub__,
    MulOp: Expr.__mul__,
    DivOp: x.truncdiv,
    ModOp: x.truncmod,
    FloorDivOp: x.floordiv,
    FloorModOp: x.floormod,
    MinOp: x.minimum,
    MaxOp: x.maximum,
}
_COMPARE: dict[type[Operation], Callable[[Expr, Expr], Expr]] = {
    EqOp: x.eq,
    NeOp: x.ne,
    LtOp: x.lt,
    LeOp: x.le,
    GtOp: x.gt,
    GeOp: x.ge,
}
# Operators of other dtypes wrap around or round: all that is known is that they are functions of their operands.
_PURE = (*_BUILD, *_COMPARE, NotOp, SelectOp, CastOp)


def from_ssa(value: SSAValue, memo: dict[SSAValue, Expr]) -> Expr:
    """The expression of a scalar value. Lets are seen through; loads and what is no pure scalar become variables.

    `memo` holds what was converted before; it is valid while the ops in it are not changed. `T.likely` is dropped.
    """
    found = memo.get(value)
    if found is not None:
        return found
    pending = [value]
    while pending:
        current = pending[-1]
        if current in memo:
            pending.pop()
            continue
        needed = [v for v in _inputs(current) if v not in memo]
        if needed:
            pending += reversed(needed)
            continue
        pending.pop()
        result = _convert(current, memo)
        if len(result.terms) > x.MAX_TERMS or result.depth > x.MAX_DEPTH:
            result = x.var(current)
        memo[current] = result
    return memo[value]


def _inputs(value: SSAValue) -> tuple[SSAValue, ...]:
    """The values that the expression of `value` is made from; none for a variable."""
    if not isinstance(value, OpResult):
        return ()
    op = value.op
    match op:
        case ConstOp():
            return ()
        case LetOp():
            return (op.value,) if isinstance(op.value.type, IntegerType) else ()
        case IfThenElseOp():
            sides = _pure_sides(op)
            return () if sides is None else (op.condition, *sides)
        case CallOp():
            pure = op.callee is None and intrinsic_effect(op.intrinsic.data) is Effect.PURE
            return tuple(op.arguments) if pure and isinstance(value.type, IntegerType) else ()
        case BufferGetOp():
            extent = _buffer_extent(op)
            return (extent,) if isinstance(extent, SSAValue) else ()
        case AndOp() | OrOp():
            return tuple(op.operands)
        case _ if type(op) in _PURE:
            return tuple(op.operands)
        case _:
            return ()


def _buffer_extent(op: BufferGetOp) -> int | SSAValue | None:
    """What `A.shape[i]` is, where the op that makes A tells."""
    if op.field.data != "shape" or op.dim is None:
        return None
    source = op.buffer.owner
    if isinstance(source, BufferOp):
        return source.extents()[op.dim.value.data]
    type = op.buffer.type
    assert isinstance(type, BufferType)
    dim = type.shape.data[op.dim.value.data]
    return dim.value.data if isinstance(dim, IntegerAttr) else None


def _pure_sides(op: IfThenElseOp) -> tuple[SSAValue, SSAValue] | None:
    """The values of both sides when they only compute; None when one loads or calls what is not pure."""
    sides: list[SSAValue] = []
    for region in (op.then_region, op.else_region):
        for inner in region.block.ops:
            if isinstance(inner, CallOp):
                if inner.callee is not None or intrinsic_effect(inner.intrinsic.data) is not Effect.PURE:
                    return None
            elif isinstance(inner, YieldOp):
                sides.append(inner.values[0])
            elif not isinstance(inner, ConstOp | LetOp | AndOp | OrOp) and type(inner) not in _PURE:
                return None
    return sides[0], sides[1]


def _convert(value: SSAValue, memo: dict[SSAValue, Expr]) -> Expr:
    """The expression of one value, those of its inputs being in `memo`."""
    inputs = _inputs(value)
    operands = [memo[v] for v in inputs]
    if not isinstance(value, OpResult):
        return x.var(value)
    op, kind = value.op, type(value.op)
    match op:
        case ConstOp():
            literal = op.value
            if isinstance(literal, IntegerAttr):
                number, dtype = literal.value.data, value.type
                if isinstance(dtype, IntegerType) and is_unsigned(dtype):
                    number &= (1 << dtype.width.data) - 1
                return Expr((), number)
            return x.call(Function("const", value.type, ConstOp, (), literal), ())
        case LetOp():
            return operands[0] if operands else x.var(value)
        case BufferGetOp():
            extent = _buffer_extent(op)
            return Expr((), extent) if isinstance(extent, int) else operands[0] if operands else x.var(value)
        case AndOp():
            return x.logical_and(*operands)
        case OrOp():
            return x.logical_or(*operands)
        case NotOp():
            return x.logical_not(operands[0])
        case CastOp():
            return _cast(op, operands[0])
        case SelectOp():
            return x.select(operands[0], operands[1], operands[2]) if op.condition.type == I1 else x.var(value)
        case IfThenElseOp():
            return (
                x.select(operands[0], operands[1], operands[2], lazy=True)
                if operands and op.condition.type == I1
                else x.var(value)
            )
        case CallOp():
            return _call(op, value, operands) if inputs else x.var(value)
        case _ if kind in _BUILD and is_index_type(value.type):
            return _BUILD[kind](*operands)
        case _ if kind in _COMPARE and _orders_as_integers(inputs[0].type):
            return _COMPARE[kind](*operands)
        case _ if kind in _PURE:
            return x.call(_function(op.name, value.type, kind, inputs), operands)
        case _:
            return x.var(value)


def _function(
    name: str, result: Attribute, kind: type[Operation], inputs: tuple[SSAValue, ...], more: Hashable = ()
) -> Function:
    """The function that an op computes."""
    return Function(name, result, kind, tuple(v.type for v in inputs), more)


def _orders_as_integers(type: Attribute) -> bool:
    # Atoms of unsigned and narrow types stand for the numbers they hold; comparing them is exact in 64 bits.
    return isinstance(type, IntegerType) and (type.width.data < 64 or is_index_type(type))


def _cast(op: CastOp, operand: Expr) -> Expr:
    source, target = op.value.type, op.result.type
    if isinstance(source, IntegerType) and isinstance(target, IntegerType):
        if source == target:
            return operand
        if target == I1:
            return x.ne(operand, x.ZERO)
        widens = target.width.data > source.width.data or (
            target.width.data == source.width.data and is_unsigned(source) == is_unsigned(target)
        )
        if widens and (is_unsigned(source) or not is_unsigned(target)):
            return operand
        if (
            not operand.terms
            and is_index_type(target)
            and -(1 << (target.width.data - 1)) <= operand.const < 1 << (target.width.data - 1)
        ):
            return operand
    return x.call(_function(op.name, target, CastOp, (op.value,)), (operand,))


def _call(op: CallOp, value: SSAValue, operands: list[Expr]) -> Expr:
    name = op.intrinsic.data
    if name == "likely":
        return operands[0]
    if is_index_type(value.type) and len(operands) == 2 and not operands[1].terms:
        left, amount = operands[0], operands[1].const
        if name == "shift_left" and 0 <= amount < 62:
            return left.scaled(1 << amount)
        if name == "shift_right" and 0 <= amount < 62:
            return x.floordiv(left, Expr((), 1 << amount))
        if name == "bitwise_and" and amount >= 0 and amount & (amount + 1) == 0:
            return x.floormod(left, Expr((), amount + 1))
    others = DictionaryAttr(op.attributes)
    return x.call(_function(f"T.{name}", value.type, CallOp, tuple(op.arguments), others), operands)


Emit: TypeAlias = "Callable[[Operation], SSAValue]"


def to_ssa(expr: Expr, builder: Builder, type: Attribute = I32, values: dict[Atom, SSAValue] | None = None) -> SSAValue:
    """Ops at `builder`'s place that compute `expr` as a value of `type`; variables of another width are cast.

    `values` gives the values of variables that are symbols (or replaces those of others).
    """
    return _Emitter(builder, values or {}).emit(expr, type)


class _Emitter:
    """Builds ops; remembers what it built, so that a repeated subexpression is built once."""

    def __init__(self, builder: Builder, values: dict[Atom, SSAValue]):
        self.builder = builder
        self.values = values
        self.built: dict[tuple[Expr, Attribute], SSAValue] = {}

    def add(self, op: Operation) -> SSAValue:
        return self.builder.insert(op).results[0]

    def emit(self, expr: Expr, type: Attribute) -> SSAValue:
        key = (expr, type)
        value = self.built.get(key)
        if value is None:
            value = self.built[key] = self.emit_bool(expr) if type == I1 else self.emit_sum(expr, type)
        return value

    def emit_sum(self, expr: Expr, type: Attribute) -> SSAValue:
        if not isinstance(type, IntegerType):
            assert expr.atom is not None
            return self.emit_atom(expr.atom, type)
        total: SSAValue | None = None
        for atom, coefficient in sorted(expr.terms, key=lambda t: (t[1] < 0, -abs(t[1]), t[0].serial)):
            value = self.emit_atom(atom, type)
            if total is None:
                total = value if coefficient == 1 else self.add(MulOp(value, self.const(coefficient, type)))
                continue
            if abs(coefficient) != 1:
                value = self.add(MulOp(value, self.const(abs(coefficient), type)))
            total = self.add(SubOp(total, value) if coefficient < 0 else AddOp(total, value))
        if total is None:
            return self.const(expr.const, type)
        if expr.const:
            amount = self.const(abs(expr.const), type)
            total = self.add(SubOp(total, amount) if expr.const < 0 else AddOp(total, amount))
        return total

    def const(self, value: int, type: Attribute) -> SSAValue:
        return self.add(ConstOp.int(value, type))

    def emit_bool(self, expr: Expr) -> SSAValue:
        """`expr` of value 0 or 1 as a bool."""
        if not expr.terms:
            return self.const(int(expr.const != 0), I1)
        if expr.atom is not None:
            return self.emit_atom(expr.atom, I1)
        inverse = x.logical_not(expr)
        atom = inverse.atom
        if atom is not None and atom.kind is Kind.EQ:
            return self.compare(atom.operands[0], NeOp)
        if atom is not None and atom.kind is Kind.AND:
            parts = [self.emit(x.logical_not(e), I1) for e in atom.operands]
            return self.chain(OrOp, parts)
        if atom is not None and (atom.kind in (Kind.GE, Kind.SELECT, Kind.CALL) or self.type_of(atom) == I1):
            return self.add(NotOp(self.emit_atom(atom, I1)))
        return self.add(NeOp(self.emit_sum(expr, I32), self.const(0, I32)))

    def chain(self, op: type[AndOp] | type[OrOp] | type[MinOp] | type[MaxOp], parts: list[SSAValue]) -> SSAValue:
        total = parts[0]
        for part in parts[1:]:
            total = self.add(op(total, part))
        return total

    def compare(self, expr: Expr, equality: type[EqOp] | type[NeOp] | None) -> SSAValue:
        """`expr` == 0 or != 0, or >= 0 for None; positive terms on one side, negative on the other."""
        type = self.widest(expr)
        left = Expr(tuple(t for t in expr.terms if t[1] > 0), 0)
        right = Expr(tuple((a, -c) for a, c in expr.terms if c < 0), 0)
        if equality is not None:
            if not left.terms:
                left, right = right, x.as_expr(expr.const)
                return self.add(equality(self.emit(left, type), self.emit(right, type)))
            return self.add(equality(self.emit(left, type), self.emit(right - expr.const, type)))
        if not left.terms:
            return self.add(LtOp(self.emit(right, type), self.const(expr.const + 1, type)))
        if not right.terms:
            return self.add(GeOp(self.emit(left, type), self.const(-expr.const, type)))
        if expr.const == -1:
            return self.add(LtOp(self.emit(right, type), self.emit(left, type)))
        if expr.const < 0:
            return self.add(LtOp(self.emit(right - expr.const - 1, type), self.emit(left, type)))
        return self.add(LeOp(self.emit(right, type), self.emit(left + expr.const, type)))

    def widest(self, expr: Expr) -> Attribute:
        """The type to compute `expr` in: i64 where a variable in it needs that, else i32."""
        for atom in x.free_vars(expr):
            type = self.type_of(atom)
            if isinstance(type, IntegerType) and type.width.data + (is_unsigned(type) and type != I1) > 32:
                return I64
        return I32

    def type_of(self, atom: Atom) -> Attribute | None:
        if atom.kind is Kind.VAR:
            if atom in self.values:
                return self.values[atom].type
            return atom.payload.type if isinstance(atom.payload, SSAValue) else None
        if atom.kind in (Kind.GE, Kind.EQ, Kind.AND):
            return I1
        if isinstance(atom.payload, Function):
            return atom.payload.result
        return None

    def emit_atom(self, atom: Atom, type: Attribute) -> SSAValue:
        natural = self.type_of(atom)
        if natural is not None and natural != type:
            return self.add(CastOp(self.emit_atom(atom, natural), type))
        operands = atom.operands
        match atom.kind:
            case Kind.VAR:
                value = self.values.get(atom)
                if value is None:
                    if not isinstance(atom.payload, SSAValue):
                        raise ValueError(f"the symbol {atom.payload} has no SSA value")
                    value = atom.payload
                return value
            case Kind.GE:
                return self.compare(operands[0], None)
            case Kind.EQ:
                return self.compare(operands[0], EqOp)
            case Kind.AND:
                return self.chain(AndOp, [self.emit(e, I1) for e in operands])
            case Kind.MIN:
                return self.chain(MinOp, [self.emit(e, type) for e in operands])
            case Kind.MAX:
                return self.chain(MaxOp, [self.emit(e, type) for e in operands])
            case Kind.PRODUCT:
                values = [self.emit(e, type) for e in operands]
                total = values[0]
                for value in values[1:]:
                    total = self.add(MulOp(total, value))
                return total
            case Kind.SELECT:
                return self.emit_select(atom, type)
            case Kind.CALL:
                return self.emit_call(atom, type)
            case kind:
                return self.add(_EMIT[kind](self.emit(operands[0], type), self.emit(operands[1], type)))

    def emit_select(self, atom: Atom, type: Attribute) -> SSAValue:
        condition, if_true, if_false = atom.operands
        if not atom.payload:
            return self.add(SelectOp(self.emit(condition, I1), self.emit(if_true, type), self.emit(if_false, type)))
        regions: list[Region] = []
        for side in (if_true, if_false):
            region = single_block()
            inner = Builder(InsertPoint.at_end(region.block))
            inner.insert(YieldOp(to_ssa(side, inner, type, self.values)))
            regions.append(region)
        return self.add(IfThenElseOp(self.emit(condition, I1), regions[0], regions[1], type))

    def emit_call(self, atom: Atom, type: Attribute) -> SSAValue:
        function = atom.payload
        if not isinstance(function, Function):
            return self.add(MulOp(self.emit(atom.operands[0], type), self.emit(atom.operands[1], type)))
        if function.op is ConstOp:
            literal = function.more
            assert isinstance(literal, IntegerAttr | FloatAttr | StringAttr)
            return self.add(ConstOp(literal, function.result))
        operands = [self.emit(e, t) for e, t in zip(atom.operands, function.operands, strict=True)]
        if function.op is CallOp:
            op = CallOp(function.name.removeprefix("T."), operands, function.result)
            if isinstance(function.more, DictionaryAttr):
                op.attributes.update(function.more.data)
            return self.add(op)
        if function.op is CastOp:
            return self.add(CastOp(operands[0], function.result))
        build: Callable[..., Operation] = function.op
        return self.add(build(*operands))


_EMIT: dict[Kind, type[FloorDivOp] | type[FloorModOp] | type[DivOp] | type[ModOp]] = {
    Kind.FLOORDIV: FloorDivOp,
    Kind.FLOORMOD: FloorModOp,
    Kind.TRUNCDIV: DivOp,
    Kind.TRUNCMOD: ModOp,
}
