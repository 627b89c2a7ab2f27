"""The pass `unroll-choices`: unrolls loops whose variable chooses between values, each choice made.

Rows of a constant matrix are written as choices by the row's number, and the loop over rows is of kind unrolled:

    for i in T.unroll(2):
        B[i] = T.Select(i == 0, A[0] + A[1], A[0] - A[1])

What does not depend on the variable is computed once, before; each iteration keeps what is chosen for it:

    B[0] = A[0] + A[1]
    B[1] = A[0] - A[1]

A code generator that unrolls the loop would compute every row in each iteration first, to find which of them it needs.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from ....dialects import tir
from ....dialects.arith import Analyzer
from ....dialects.arith.expr import Atom, Expr, as_expr, substitute
from ....dialects.tir.operators import as_const
from ....support.edit import builder_before, clone_nested, detach, erase_op, insert_op_before
from ....support.effects import is_side_effect_free
from ....support.operands import operands_of
from ....support.walk import ops_in
from ..clone_body import hoist_views
from ..rewriting import PrimFuncPass, erase_dead, ops_of

MAX_ITERATIONS = 16
"""A loop of more iterations is not unrolled."""


@dataclass(frozen=True)
class UnrollChoices(PrimFuncPass):
    """Unroll loops of kind unrolled that hold nothing but stores of what their variable chooses."""

    name = "unroll-choices"

    def apply_to(self, function: tir.PrimFuncOp) -> None:
        """Unrolls where every choice by the variable is known in each iteration."""
        changed = False
        for loop in ops_of(function, tir.ForOp):
            if loop.kind.data == "unrolled" and any(type(o) is tir.SelectOp for o in loop.body.block.ops):
                changed |= _unroll(loop)
        if changed:
            erase_dead(function)


def _unroll(loop: tir.ForOp) -> bool:
    """Unrolls a loop; returns whether it could."""
    low, extent = as_const(loop.min), as_const(loop.extent)
    if low is None or low.value != 0 or extent is None or not 0 < extent.value <= MAX_ITERATIONS:
        return False
    hoist_views(loop)
    ops = ops_in(loop.body.block)
    stores = [op for op in ops if isinstance(op, tir.StoreOp)]
    others = [op for op in ops if type(op) is not tir.StoreOp]
    written = {_memory(store.buffer) for store in stores}
    for op in others:
        if type(op) is tir.LoadOp:
            if _memory(op.buffer) in written:
                return False
        elif op.regions or not (is_side_effect_free(op) or _is_view(op)):
            return False
    varying: set[SSAValue] = {loop.loop_var}
    for op in others:
        if not varying.isdisjoint(operands_of(op)):
            varying.update(op.results)
    iterations = [_Iteration(loop, number, varying) for number in range(int(extent.value))]
    chosen = [op for op in others if isinstance(op, tir.SelectOp) and op.condition in varying]
    if not chosen or any(iteration.known(op.condition) is None for iteration in iterations for op in chosen):
        return False
    for op in others:
        if varying.isdisjoint(op.results):
            detach(op)
            insert_op_before(op, loop)
    for iteration in iterations:
        for store in stores:
            iteration.copy(store)
    erase_op(loop)
    return True


def _is_view(op: Operation) -> bool:
    """Returns whether the op declares a view of memory that exists already."""
    return type(op) is tir.DeclBufferOp and op.source is not None


def _memory(buffer: SSAValue) -> SSAValue:
    """Returns the memory of a buffer: the buffer or handle that it is a view of, or itself."""
    while isinstance(op := buffer.owner, tir.DeclBufferOp) and op.source is not None:
        data = op.source.owner
        buffer = data.buffer if isinstance(data, tir.BufferGetOp) else op.source
        if not isinstance(data, tir.BufferGetOp):
            break
    return buffer


class _Iteration:
    """One iteration of a loop, written before it."""

    def __init__(self, loop: tir.ForOp, number: int, varying: set[SSAValue]):
        self.builder = builder_before(loop)
        self.varying = varying
        self.analyzer = Analyzer()
        atom = self.analyzer.expr(loop.loop_var).atom
        assert atom is not None
        self.values: dict[Atom, Expr] = {atom: as_expr(number)}
        self.variable, self.number = loop.loop_var, number
        self.made: dict[SSAValue, SSAValue] = {}

    def known(self, condition: SSAValue) -> bool | None:
        """Returns the value of a condition in this iteration; None where that is not known."""
        op = condition.owner
        if isinstance(op, tir.BroadcastOp):
            op = op.value.owner
        if not isinstance(op, tir.EqOp):
            return None
        difference = self.analyzer.expr(op.lhs) - self.analyzer.expr(op.rhs)
        value = substitute(difference, self.values).value
        return None if value is None else value == 0

    def copy(self, op: Operation) -> Operation:
        """Clones `op` and its loop-dependent operands for this iteration."""
        copy = clone_nested(op, {operand: self.value(operand) for operand in operands_of(op)})
        self.builder.insert(copy)
        return copy

    def value(self, value: SSAValue) -> SSAValue:
        """Returns a value as it is in this iteration, cloning what computes it."""
        if value not in self.varying:
            return value
        found = self.made.get(value)
        if found is None:
            op = value.owner
            if value is self.variable:
                found = self.builder.insert(tir.ConstOp.int(self.number, value.type)).result
            elif isinstance(op, tir.SelectOp) and op.condition in self.varying:
                found = self.value(op.true_value if self.known(op.condition) else op.false_value)
            else:
                assert isinstance(op, Operation)
                found = self.copy(op).results[0]
            self.made[value] = found
        return found
