"""Emits scalar expressions as tir ops, each use written out as TVM has it."""

from __future__ import annotations

from functools import cache

from xdsl.dialects.builtin import UNKNOWN_LOC, FloatAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ....support.edit import add_op
from ... import tir
from ...interned import integer
from ..types import dtype_to_type
from .buffer import Broadcast, Buffer, BufferField, BufferLoad, Let, Ramp, Shuffle
from .expr import (
    Apply,
    Call,
    Choice,
    Const,
    Expr,
    PointerType,
    StringImm,
    Var,
    current_location,
    describe,
    fail,
    is_float,
)

MOST_REPEATED = 4096
"""An expression whose parts are shared is written out at each use where that makes at most so many ops."""

type_of = cache(dtype_to_type)


def number_of(constant: Const) -> IntegerAttr | FloatAttr:
    """Returns a constant as an attribute of its dtype."""
    type = type_of(constant.dtype)
    if isinstance(constant.value, float) or is_float(constant.dtype):
        return FloatAttr(constant.value, type)  # type: ignore[arg-type]
    return integer(int(constant.value), type)  # type: ignore[arg-type]


def variable_type(variable: Var) -> Attribute:
    """Returns the type of a variable's value: a pointer's with what it points to."""
    kind = variable.type_annotation
    if isinstance(kind, PointerType):
        return tir.HandleType.get(type_of(kind.element_type.dtype), kind.storage_scope)
    return type_of(kind.dtype)


def hint(name: str) -> str | None:
    """Returns the name as a hint for SSA names, when it can be one."""
    return name if name.isidentifier() else None


class ExprEmitter:
    """Emits expressions into a block; `values` are the variables in sight, by id."""

    def __init__(self, block: Block):
        self.block = block
        self.values: dict[int, SSAValue] = {}
        self.buffers: dict[int, SSAValue] = {}
        self._shared: dict[int, SSAValue] | None = None
        self._kept: list[object] = []

    def define(self, variable: Expr, value: SSAValue) -> None:
        """From now on, `variable` is `value`."""
        self.values[id(variable)] = value
        self._kept.append(variable)

    def add_op(self, op: Operation) -> None:
        """Adds an op at the end of the block."""
        if op.location == UNKNOWN_LOC:
            op.location = current_location()
        add_op(self.block, op)

    def add(self, op: Operation) -> SSAValue:
        """Adds an op of one result."""
        self.add_op(op)
        return op.results[0]

    def share(self, e: Expr) -> None:
        """Computes repeated subexpressions of `e` once, until `unshare`, if writing them out would be long."""
        sizes: dict[int, int] = {}
        pending = [e]
        while pending:
            node = pending[-1]
            if id(node) in sizes:
                pending.pop()
                continue
            parts = _parts(node)
            missing = [p for p in parts if id(p) not in sizes]
            if missing:
                pending += missing
                continue
            pending.pop()
            sizes[id(node)] = min(1 + sum(sizes[id(p)] for p in parts), 1 << 40)
        self._shared = {} if sizes[id(e)] - len(sizes) > MOST_REPEATED else None

    def unshare(self) -> None:
        """Ends `share`."""
        self._shared = None

    def expr(self, e: Expr) -> SSAValue:
        """Returns the value of an expression."""
        found = None if self._shared is None else self._shared.get(id(e))
        if found is None:
            found = self._expr(e)
            if self._shared is not None:
                self._shared[id(e)] = found
        return found

    def _expr(self, e: Expr) -> SSAValue:
        match e:
            case Const():
                op = tir.ConstOp.create(properties={"value": number_of(e)}, result_types=[type_of(e.dtype)])
                return self.add(op)
            case StringImm():
                return self.add(tir.ConstOp(StringAttr(e.value)))
            case Var():
                found = self.values.get(id(e))
                if found is None:
                    found = self.field(e) if isinstance(e, BufferField) else self.undefined(e)
                return found
            case Apply():
                operands = [self.expr(a) for a in e.args]
                return self.add(e.op.create(operands=operands, result_types=[type_of(e.dtype)]))
            case Choice():
                condition = self.expr(e.args[0])
                sides = [self._side(e.then_value), self._side(e.else_value)]
                return self.add(tir.IfThenElseOp(condition, sides[0], sides[1], type_of(e.dtype)))
            case BufferLoad():
                predicate = None if e.predicate is None else self.expr(e.predicate)
                return self.add(tir.LoadOp(self.buffer(e.buffer), [self.expr(a) for a in e.args], predicate))
            case Call():
                return self.call(e)
            case Ramp():
                return self.add(tir.RampOp(self.expr(e.base), self.expr(e.stride), e.lanes, e.is_scalable))
            case Broadcast():
                return self.add(tir.BroadcastOp(self.expr(e.value), e.lanes, e.is_scalable))
            case Shuffle():
                return self.add(tir.ShuffleOp([self.expr(v) for v in e.vectors], e.indices))
            case Let():
                let = tir.LetOp(e.var.name, self.expr(e.value), variable_type(e.var))
                let.result.name_hint = hint(e.var.name)
                self.define(e.var, self.add(let))
                return self.expr(e.body)
            case _:
                return self.other(e)

    def undefined(self, variable: Var) -> SSAValue:
        """Returns the value of a variable that nothing defined. Raises MirError where there can be none."""
        raise fail(
            f"no parameter binds the symbolic size '{variable.name}'",
            "a size is bound where it is, by itself, an extent of a parameter, or is a parameter",
        )

    def other(self, e: Expr) -> SSAValue:
        """Returns the value of an expression of a kind that only a subclass knows."""
        raise fail(f"an expression of kind {type(e).__name__} cannot be emitted")

    def buffer(self, buffer: Buffer) -> SSAValue:
        """Returns the value of a buffer in sight."""
        return self.buffers[id(buffer)]

    def field(self, e: BufferField) -> SSAValue:
        """Returns what a buffer has that no variable holds."""
        source = self.buffer(e.buffer)
        assert isinstance(source.type, tir.BufferType)
        if e.field == "data":
            return self.add(
                tir.BufferGetOp(source, e.field, tir.HandleType.get(source.type.dtype, source.type.scope.data))
            )
        return self.add(tir.BufferGetOp(source, e.field, type_of(e.dtype), e.dim))

    def call(self, e: Call) -> SSAValue:
        """Returns the result of a call."""
        result = None if e.dtype == "void" else type_of(e.dtype)
        op = tir.CallOp(e.intrinsic, [self.operand(o, e) for o in e.operands], result, e.callee)
        self.add_op(op)
        return op.results[0] if op.results else self.nothing(e)

    def nothing(self, e: Call) -> SSAValue:
        """Returns the value of a call that returns none. Raises MirError where one is used."""
        raise fail(f"T.{e.intrinsic} returns nothing, so that its value cannot be used")

    def operand(self, operand: object, e: Call) -> SSAValue:
        """Returns the value of a call's argument."""
        if isinstance(operand, Expr):
            return self.expr(operand)
        raise fail(f"{describe(operand)} cannot be an argument of T.{e.intrinsic}")

    def _side(self, value: Expr) -> Region:
        block = Block()
        outer, self.block = self.block, block
        shared, self._shared = self._shared, None if self._shared is None else dict(self._shared)
        try:
            self.add_op(tir.YieldOp(self.expr(value)))
        finally:
            self.block, self._shared = outer, shared
        return Region(block)


def _parts(e: Expr) -> tuple[Expr, ...]:
    return (*e.args, e.then_value, e.else_value) if isinstance(e, Choice) else e.args
