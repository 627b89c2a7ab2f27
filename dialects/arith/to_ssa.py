"""Builds the SSA ops that compute analyzer expressions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

from xdsl.builder import Builder
from xdsl.dialects.builtin import DictionaryAttr, FloatAttr, IntegerAttr, IntegerType, StringAttr
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint

from ..tir.arithmetic import (
    AddOp,
    AndOp,
    BinaryOp,
    EqOp,
    GeOp,
    LeOp,
    LtOp,
    MaxOp,
    MinOp,
    MulOp,
    NeOp,
    NotOp,
    OrOp,
    SubOp,
)
from ..tir.expr import CallOp, CastOp, ConstOp, IfThenElseOp, SelectOp, YieldOp, single_block
from ..tir.scalar_ops import BINARY_ROWS
from ..tir.types import I1, I32, I64, is_unsigned
from . import expr as x
from .expr import Atom, Expr, Function, Kind, Symbol, logical_not


def to_ssa(
    expr: Expr,
    builder: Builder,
    type: Attribute = I32,
    values: dict[Atom, SSAValue] | None = None,
    *,
    order: Callable[[Atom], int] | None = None,
    shared: bool = True,
    products: Mapping[Atom, Sequence[Expr]] | None = None,
) -> SSAValue:
    """Builds ops at the builder's insertion point that compute `expr` as a value of `type`.

    `values` maps symbols to SSA values, and may replace other variables; variables of another width are cast. Terms of a sum are in
    the order of TVM's canonical form: those added before the constant and those subtracted, larger coefficients first; `order`
    decides between the others (by default, the order of creation), `products` lists the factors of some products in order. A
    repeated subexpression is built once, if `shared`.
    """
    if not expr.terms and isinstance(type, IntegerType) and type.width.data != 1:
        return builder.insert(ConstOp.int(expr.const, type)).result
    return _Emitter(builder, values or {}, order or _serial, shared, products or {}).emit(expr, type)


def _serial(atom: Atom) -> int:
    return atom.serial


_NO_LIMIT = 1 << 62
_OF_WHOLE_OPERANDS = frozenset((Kind.MIN, Kind.MAX, Kind.FLOORDIV, Kind.FLOORMOD, Kind.TRUNCDIV, Kind.TRUNCMOD))


def _is_int32(number: int) -> bool:
    return -(1 << 31) <= number < 1 << 31


def _factors(atom: Atom) -> tuple[int, int]:
    """Returns (lower, upper) of an atom `x % upper // lower`; 1 and infinity for missing parts."""
    lower, upper = 1, _NO_LIMIT
    if atom.kind is Kind.FLOORDIV and atom.operands[1].value:
        lower = atom.operands[1].const
        inner = atom.operands[0].atom
        if inner is None:
            return lower, upper
        atom = inner
    if atom.kind is Kind.FLOORMOD and atom.operands[1].value:
        upper = atom.operands[1].const
    return lower, upper


def _is_subtracted(number: int, type: IntegerType) -> bool:
    """Returns True if a number is written as subtracted.

    A type's least number is added: it has no positive counterpart.
    """
    return number < 0 and number != -1 << type.width.data - 1


class _Emitter:
    """Builds ops; if `shared`, a repeated subexpression is built once."""

    def __init__(
        self,
        builder: Builder,
        values: dict[Atom, SSAValue],
        order: Callable[[Atom], int],
        shared: bool,
        products: Mapping[Atom, Sequence[Expr]],
    ):
        self.builder = builder
        self.values = values
        self.order = order
        self.shared = shared
        self.products = products
        self.built: dict[tuple[Expr, Attribute], SSAValue] = {}

    def add(self, op: Operation) -> SSAValue:
        return self.builder.insert(op).results[0]

    def emit(self, expr: Expr, type: Attribute) -> SSAValue:
        atom = expr.atom
        if atom is not None and atom.kind is Kind.VAR and self.type_of(atom) is type:
            return self.variable(atom)
        if not self.shared:
            return self.emit_bool(expr) if type == I1 else self.emit_sum(expr, type)
        key = (expr, type)
        value = self.built.get(key)
        if value is None:
            value = self.built[key] = self.emit_bool(expr) if type == I1 else self.emit_sum(expr, type)
        return value

    def rank(self, term: tuple[Atom, int]) -> tuple[int, int, int, int]:
        """Returns the sort key of a sum's term in TVM's canonical form."""
        lower, upper = _factors(term[0])
        return -term[1], -lower, -upper, self.order(term[0])

    def emit_sum(self, expr: Expr, type: Attribute) -> SSAValue:
        if not isinstance(type, IntegerType):
            assert expr.atom is not None
            return self.emit_atom(expr.atom, type)
        total: SSAValue | None = None
        terms = sorted(expr.terms, key=self.rank) if len(expr.terms) > 1 else expr.terms
        # An added constant comes before subtracted terms, unless it would be the first.
        pending = expr.const
        for atom, coefficient in terms:
            if coefficient < 0 and pending > 0 and total is not None:
                total = self.add(AddOp(total, self.const(pending, type)))
                pending = 0
            value = self.emit_atom(atom, type)
            if total is None:
                if coefficient < 0 and pending > 0:
                    total, pending = self.const(pending, type), 0
                else:
                    total = value if coefficient == 1 else self.add(MulOp(value, self.const(coefficient, type)))
                    continue
            subtracts = _is_subtracted(coefficient, type)
            amount = -coefficient if subtracts else coefficient
            if amount != 1:
                value = self.add(MulOp(value, self.const(amount, type)))
            total = self.add(SubOp(total, value) if subtracts else AddOp(total, value))
        if total is None:
            return self.const(expr.const, type)
        if pending:
            subtracts = _is_subtracted(pending, type)
            amount = self.const(-pending if subtracts else pending, type)
            total = self.add(SubOp(total, amount) if subtracts else AddOp(total, amount))
        return total

    def const(self, value: int, type: Attribute) -> SSAValue:
        return self.add(ConstOp.int(value, type))

    def emit_bool(self, expr: Expr) -> SSAValue:
        """Builds `expr` of value 0 or 1 as a bool."""
        if not expr.terms:
            return self.const(int(expr.const != 0), I1)
        if expr.atom is not None:
            return self.emit_atom(expr.atom, I1)
        inverse = logical_not(expr)
        atom = inverse.atom
        if atom is not None and atom.kind is Kind.EQ:
            return self.compare(atom.operands[0], NeOp)
        if atom is not None and atom.kind is Kind.AND:
            parts = [self.emit(logical_not(e), I1) for e in atom.operands]
            return self.chain(OrOp, parts)
        if atom is not None and (atom.kind in (Kind.GE, Kind.SELECT, Kind.CALL) or self.type_of(atom) == I1):
            return self.add(NotOp(self.emit_atom(atom, I1)))
        return self.add(NeOp(self.emit_sum(expr, I32), self.const(0, I32)))

    def ordered(self, operands: tuple[Expr, ...]) -> list[Expr]:
        """Operands that may be in any order, as `order` has their terms; numbers come last."""
        return sorted(operands, key=lambda e: min((self.order(a) for a, _ in e.terms), default=_NO_LIMIT))

    def chain(self, op: type[AndOp] | type[OrOp] | type[MinOp] | type[MaxOp], parts: list[SSAValue]) -> SSAValue:
        total = parts[0]
        for part in parts[1:]:
            total = self.add(op(total, part))
        return total

    def compare(self, expr: Expr, equality: type[EqOp] | type[NeOp] | None) -> SSAValue:
        """Builds `expr` == 0 or != 0 (>= 0 for None), with positive and negative terms on opposite sides."""
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
        """Returns the type to compute `expr` in: i64 if an operand or a number needs it, otherwise i32."""
        pending, seen = [expr], set[Atom]()
        while pending:
            current = pending.pop()
            if not _is_int32(current.const):
                return I64
            for atom, coefficient in current.terms:
                if not _is_int32(coefficient):
                    return I64
                if atom in seen:
                    continue
                seen.add(atom)
                type = self.type_of(atom)
                if type is None:
                    pending += atom.operands[1:] if atom.kind is Kind.SELECT else atom.operands
                elif isinstance(type, IntegerType) and type.width.data + (is_unsigned(type) and type != I1) > 32:
                    return I64
        return I32

    def type_of(self, atom: Atom) -> Attribute | None:
        if atom.kind is Kind.VAR:
            value = self.values.get(atom)
            if value is not None:
                return value.type
            return cast("SSAValue", atom.payload).type if type(atom.payload) is not Symbol else None
        if atom.kind in (Kind.GE, Kind.EQ, Kind.AND):
            return I1
        if isinstance(atom.payload, Function):
            return atom.payload.result
        return None

    def emit_atom(self, atom: Atom, type: Attribute) -> SSAValue:
        natural = self.type_of(atom)
        if atom.kind in _OF_WHOLE_OPERANDS and isinstance(type, IntegerType) and type != I64:
            # The lower bits of a sum, a product or a choice depend on those of its operands only; of these they do not.
            natural = I64 if type.width.data >= 64 else self.widest(Expr(((atom, 1),), 0))
        if natural is not None and natural is not type and natural != type:
            return self.add(CastOp(self.emit_atom(atom, natural), type))
        operands = atom.operands
        match atom.kind:
            case Kind.VAR:
                return self.variable(atom)
            case Kind.GE:
                return self.compare(operands[0], None)
            case Kind.EQ:
                return self.compare(operands[0], EqOp)
            case Kind.AND:
                return self.chain(AndOp, [self.emit(e, I1) for e in operands])
            case Kind.MIN:
                return self.chain(MinOp, [self.emit(e, type) for e in self.ordered(operands)])
            case Kind.MAX:
                return self.chain(MaxOp, [self.emit(e, type) for e in self.ordered(operands)])
            case Kind.PRODUCT:
                factors = self.products.get(atom) or sorted(operands, key=lambda e: self.order(e.terms[0][0]))
                values = [self.emit(e, type) for e in factors]
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

    def variable(self, atom: Atom) -> SSAValue:
        """Returns the value of a variable."""
        value = self.values.get(atom)
        if value is None:
            if not isinstance(atom.payload, SSAValue):
                raise ValueError(f"the symbol {atom.payload} has no SSA value")
            value = atom.payload
        return value

    def emit_select(self, atom: Atom, type: Attribute) -> SSAValue:
        condition, if_true, if_false = atom.operands
        if not atom.payload:
            return self.add(SelectOp(self.emit(condition, I1), self.emit(if_true, type), self.emit(if_false, type)))
        regions: list[Region] = []
        for side in (if_true, if_false):
            region = single_block()
            inner = Builder(InsertPoint.at_end(region.block))
            value = to_ssa(side, inner, type, self.values, order=self.order, shared=self.shared, products=self.products)
            inner.insert(YieldOp(value))
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


_EMIT: dict[Kind, type[BinaryOp]] = {Kind[row.analyzer.upper()]: op for op, row in BINARY_ROWS.items() if row.divides}
