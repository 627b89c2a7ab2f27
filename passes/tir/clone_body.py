"""Clones of a loop's body, and what must be hoisted out of it before."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from xdsl.builder import Builder
from xdsl.ir import Block, Operation, SSAValue

from ...dialects import tir
from ...dialects.tir.operators import ExprBuilder, Value, as_const
from ...support.edit import (
    block_of_ops,
    builder_before,
    clone_nested,
    detach,
    erase_op,
    insert_op_before,
    insert_ops_before,
)
from ...support.walk import all_ops, ops_in, owner_op
from .rewriting import acts_until_end


def hoist_views(loop: tir.ForOp) -> None:
    """Hoists views of memory (`T.Buffer(…, data=p)`) and symbolic variables out of a loop.

    Only those computed from values outside; clones of the body then share them.
    """
    ops = all_ops(loop)
    inside = set(ops)
    for op in ops:
        if _is_view(op) and not any(owner_op(operand) in inside for operand in op.operands):
            inside.discard(op)
            detach(op)
            insert_op_before(op, loop)


def _is_view(op: Operation) -> bool:
    """Returns whether the op only describes a view of memory, or names a variable."""
    kind = type(op)
    if type(op) is tir.DeclBufferOp:
        return bool(op.implicit.value.data)
    if kind is tir.ConstOp or kind is tir.BufferGetOp:
        return any(type(use.operation) is tir.DeclBufferOp for use in op.results[0].uses)
    return kind is tir.VarOp


def copy_ops(ops: Iterable[Operation], values: Mapping[SSAValue, SSAValue]) -> list[Operation]:
    """Clones ops that belong together, some operands replaced by `values`."""
    mapper = dict(values)
    return [clone_nested(op, mapper) for op in ops]


def shifted(value: SSAValue, amount: int, anchor: Operation) -> SSAValue:
    """Builds `value + amount` before `anchor`; of a constant, a constant."""
    builder, number = builder_before(anchor), as_const(value)
    if number is not None:
        return builder.insert(tir.ConstOp.int(int(number.value) + amount, value.type)).result
    if not amount:
        return value
    return builder.insert(tir.AddOp(value, builder.insert(tir.ConstOp.int(amount, value.type)).result)).result


def _unshare(value: SSAValue, made: Operation | None) -> None:
    """Clones a sum that was just `made` for each op that uses it, so that it prints as part of that op."""
    if not isinstance(made, tir.AddOp) or made is not value.owner:
        return
    seen: set[Operation] = set()
    for use in list(value.uses):
        op = use.operation
        if op in seen or op.parent is None:
            continue
        if seen:
            amount = made.rhs.owner
            assert isinstance(amount, tir.ConstOp)
            copies = copy_ops([amount, made], {})
            for copy in copies:
                op.parent.insert_op_before(copy, op)
            for index, operand in enumerate(op.operands):
                if operand is value:
                    op.operands[index] = copies[1].results[0]
        seen.add(op)


def add_to_variable(loop: tir.ForOp, amount: Callable[[Builder], SSAValue]) -> None:
    """Replaces each use of a loop's variable by the variable plus an amount, computed before that use."""
    seen: set[Operation] = set()
    for use in list(loop.loop_var.uses):
        op = use.operation
        if op in seen:
            continue
        seen.add(op)
        builder = builder_before(op)
        value = builder.insert(tir.AddOp(loop.loop_var, amount(builder))).result
        op.operands = [value if operand is loop.loop_var else operand for operand in op.operands]


def replace_at_uses(ops: Iterable[Operation], variable: SSAValue, compute: Callable[[ExprBuilder], Value]) -> None:
    """Replaces a variable in each of `ops` that uses it by a value computed right before the op."""
    for op in ops:
        if variable in op.operands:
            builder = ExprBuilder(op.location)
            value = builder.value(compute(builder))
            insert_ops_before(builder.ops, op)
            op.operands = [value if operand is variable else operand for operand in op.operands]


def variables_of(loop: tir.ForOp) -> list[SSAValue]:
    """Returns the values that are the loop's variable."""
    return [loop.loop_var] if loop.var is None else [loop.loop_var, loop.var]


def clone_iteration(loop: tir.ForOp, iteration: int) -> list[Operation]:
    """Clones one iteration of a loop before it; returns the new statements, in order."""
    value = shifted(loop.min, iteration, loop)
    ops = copy_ops(ops_in(loop.body.block), dict.fromkeys(variables_of(loop), value))
    before = loop.prev_op
    made = insert_iteration(ops, loop, is_last=False)
    _unshare(value, before)
    return made


def move_last_iteration(loop: tir.ForOp, iteration: int) -> list[Operation]:
    """Replaces a loop by its own body as the given iteration; returns the statements, in order."""
    value = shifted(loop.min, iteration, loop)
    inside = set(all_ops(loop))
    for variable in variables_of(loop):
        variable.replace_uses_with_if(value, lambda use: use.operation in inside and use.operation is not loop)
    _unshare(value, loop.prev_op)
    ops = ops_in(loop.body.block)
    for op in ops:
        detach(op)
    made = insert_iteration(ops, loop, is_last=loop.next_op is None)
    erase_op(loop)
    return made


def insert_iteration(ops: list[Operation], loop: tir.ForOp, is_last: bool) -> list[Operation]:
    """Inserts statements before the loop, in a scope where something among them would act on what follows."""
    if not is_last and any(acts_until_end(op) for op in ops):
        block = Block()
        block.add_ops(ops)
        scope = tir.ScopeOp(block_of_ops(block.ops))
        scope.location = loop.location
        ops = [scope]
    insert_ops_before(ops, loop)
    return ops
