"""Scalar expressions as tir ops, each use written out as TVM has it."""

from __future__ import annotations

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Block, Operation, Region, SSAValue

from ....dialects import tir
from ....dialects.te import expr as ex
from ....dialects.te import extern as ext
from ....dialects.te.emit import number_of, type_of
from ....dialects.te.expr import Expr, IterVar, Var, current_location
from .storage_flatten import Memory, Stride

MOST_REPEATED = 4096
"""An expression whose parts are shared is written out at each use where that makes at most so many ops."""


class ExprEmitter:
    """Emits expressions into a block; `values` are the variables in sight, by id."""

    aliases: dict[int, Memory]

    def __init__(self, block: Block):
        self.block = block
        self.values: dict[int, SSAValue] = {}
        self.buffers: dict[int, SSAValue] = {}
        # What holds, or is, the pointer to a buffer's memory.
        self.pointers: dict[int, SSAValue] = {}
        self.extents: dict[int, Expr] = {}
        self.aliases = {}
        self._shared: dict[int, SSAValue] | None = None
        self._kept: list[object] = []

    def define(self, variable: Expr, value: SSAValue) -> None:
        """From now on, `variable` is `value`."""
        self.values[id(variable)] = value
        self._kept.append(variable)

    def add_op(self, op: Operation) -> None:
        """Adds an op at the end of the block."""
        if op.location == UNKNOWN:
            op.location = current_location()
        self.block.add_op(op)

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
            case ex.Const():
                op = tir.ConstOp.create(properties={"value": number_of(e)}, result_types=[type_of(e.dtype)])
                return self.add(op)
            case Var() | IterVar():
                found = self.values.get(id(e))
                if found is None:
                    raise ex.fail(
                        f"no parameter binds the symbolic size '{e.name}'",
                        "a size is bound where it is, by itself, an extent of a parameter, or is a parameter",
                    )
                return found
            case ex.Apply():
                operands = [self.expr(a) for a in e.args]
                return self.add(e.op.create(operands=operands, result_types=[type_of(e.dtype)]))
            case ex.IfThenElse():
                condition = self.expr(e.args[0])
                sides = [self._side(e.then_value), self._side(e.else_value)]
                return self.add(tir.IfThenElseOp(condition, sides[0], sides[1], type_of(e.dtype)))
            case ext.Load():
                return self.add(tir.LoadOp(self.buffers[id(e.buffer)], [self.expr(a) for a in e.args]))
            case Stride():
                assert e.memory.buffer is not None
                return self.add(tir.BufferGetOp(e.memory.buffer, "strides", type_of(e.dtype), e.dim))
            case ext.BufferField():
                return self._pointer(e)
            case ex.Call():
                return self._call(e)
            case _:
                raise ex.fail(f"an expression of kind {type(e).__name__} cannot be emitted")

    def _pointer(self, e: ext.BufferField) -> SSAValue:
        source = self.pointers.get(id(e.buffer), self.buffers[id(e.buffer)])
        if not isinstance(source.type, tir.BufferType):
            return source
        pointer = tir.HandleType.get(source.type.dtype, source.type.scope.data)
        return self.add(tir.BufferGetOp(source, e.field, pointer))

    def _call(self, e: ex.Call) -> SSAValue:
        operands: list[SSAValue] = []
        for operand in e.operands:
            if isinstance(operand, Expr):
                operands.append(self.expr(operand))
            elif isinstance(operand, str):
                operands.append(self.add(tir.ConstOp(StringAttr(operand))))
            else:
                raise ex.fail(f"{ex.describe(operand)} cannot be an argument of T.{e.intrinsic}")
        return self.add(tir.CallOp(e.intrinsic, operands, type_of(e.dtype)))

    def _side(self, value: Expr) -> Region:
        block = Block()
        outer, self.block = self.block, block
        shared, self._shared = self._shared, None if self._shared is None else dict(self._shared)
        try:
            self.add_op(tir.YieldOp(self.expr(value)))
        finally:
            self.block, self._shared = outer, shared
        return Region(block)


UNKNOWN = ex.UNKNOWN_LOC


def _parts(e: Expr) -> tuple[Expr, ...]:
    return (*e.args, e.then_value, e.else_value) if isinstance(e, ex.IfThenElse) else e.args
