"""Edits that several passes on TIR share: finding ops by kind, moving bodies, erasing dead ops."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TypeVar, cast

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, ModuleOp
from xdsl.ir import Block, Operation, OpResult, SSAValue
from xdsl.passes import ModulePass

from ...dialects import tir
from ...dialects.interned import i32_array
from ...dialects.tir.buffer import AccessOp
from ...dialects.tir.operators import Const, ExprBuilder
from ...support.diagnostics import error_at
from ...support.edit import (
    block_of_ops,
    builder_at_end,
    builder_before,
    erase_op,
    insert_ops_before,
    move_before,
    replace_all_uses_with,
    set_type,
)
from ...support.effects import is_side_effect_free
from ...support.op_kinds import Kinds
from ...support.operands import operands_of
from ...support.walk import all_ops, ops_in, post_order

OpT = TypeVar("OpT", bound=Operation)


def prim_funcs(module: ModuleOp) -> list[tir.PrimFuncOp]:
    """Returns the prim_funcs at the top of the module."""
    return [op for op in module.body.block.ops if isinstance(op, tir.PrimFuncOp)]


def ops_of(root: Operation, kind: type[OpT]) -> list[OpT]:
    """Returns every op of this kind inside `root`, outer before inner, in order."""
    of_kind = _of_kind(kind)
    return cast("list[OpT]", [op for op in all_ops(root) if of_kind[type(op)]])


class PrimFuncPass(ModulePass):
    """A pass that rewrites each prim_func at the top of a module by itself, as TVM's passes of this name."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrites every prim_func of the module."""
        for func in prim_funcs(op):
            self.apply_to(func)

    @abstractmethod
    def apply_to(self, func: tir.PrimFuncOp, /) -> None:
        """Rewrites one prim_func."""


@cache
def _of_kind(kind: type[Operation]) -> Kinds:
    return Kinds(kind)


def set_operands(op: Operation, *groups: Sequence[SSAValue]) -> None:
    """Sets the operands of an op with operand segments, one group per segment."""
    op.operands = [value for group in groups for value in group]
    op.properties["operandSegmentSizes"] = i32_array(*map(len, groups))


def set_indices(op: AccessOp, indices: Sequence[SSAValue], buffer: SSAValue | None = None) -> None:
    """Sets other indices of an access, and another buffer."""
    target = op.buffer if buffer is None else buffer
    if isinstance(op, tir.LoadOp):
        set_operands(op, [target], indices, [] if op.predicate is None else [op.predicate])
    elif isinstance(op, tir.StoreOp):
        set_operands(op, [target], indices, [] if op.predicate is None else [op.predicate], [op.value])


def multiply_extent(buffer: tir.DeclBufferOp, factor: int) -> None:
    """Multiplies the extent of a buffer of one dimension: `(16,)` by 2 is `(32,)`, `(n,)` is `(n * 2,)`."""
    type_ = buffer.result.type
    (extent,) = type_.shape.data
    if isinstance(extent, IntegerAttr):
        shape = ArrayAttr([IntegerAttr(extent.value.data * factor, extent.type)])
        set_type(buffer.result, tir.BufferType(shape, type_.dtype, type_.scope))
        return
    builder = ExprBuilder(buffer.location)
    (old,) = buffer.shape
    size = builder.value(builder.binary(tir.MulOp, old, Const(factor, old.type)))
    insert_ops_before(builder.ops, buffer)
    buffer.operands[0 if buffer.source is None else 1] = size


def erase_dead(root: Operation) -> None:
    """Erases the pure ops inside `root` that nothing uses, and what only they used."""
    for op in post_order(root):
        if op is not root and op.results and is_dead(op):
            erase_op(op)


def erase_if_dead(*values: SSAValue) -> None:
    """Erases the ops that define values, in order, if pure and unused; then, likewise, those of operands."""
    pending = list(reversed(values))
    while pending:
        dead = pending.pop()
        if type(dead) is OpResult and dead.op.parent is not None and is_dead(dead.op):
            pending += operands_of(dead.op)
            erase_op(dead.op)


def is_same_tree(a: SSAValue, b: SSAValue) -> bool:
    """Returns whether two values are computed by trees of the same ops on the same values."""
    pending = [(a, b)]
    while pending:
        left, right = pending.pop()
        if left is right:
            continue
        one, other = left.owner, right.owner
        if not isinstance(one, Operation) or not isinstance(other, Operation) or type(one) is not type(other):
            return False
        if left.type != right.type or one.properties != other.properties or one.attributes != other.attributes:
            return False
        if (
            len(one.operands) != len(other.operands)
            or one.regions
            or not (one.operands or isinstance(one, tir.ConstOp))
        ):
            return False
        pending += zip(one.operands, other.operands, strict=True)
    return True


def is_dead(op: Operation) -> bool:
    """Returns whether the op has no effect and no use."""
    for result in op.results:
        if result.first_use is not None:
            return False
    if _READS[type(op)]:
        return True
    if type(op) is tir.IfThenElseOp:
        return all(_only_reads(inner) for region in op.regions for inner in region.block.ops)
    return is_side_effect_free(op)


_READS = Kinds(tir.LoadOp, tir.BufferRegionOp, tir.BufferGetOp)


def _only_reads(op: Operation) -> bool:
    return isinstance(op, tir.LoadOp) or (not op.regions and is_side_effect_free(op))


_DECLARATIONS = Kinds(
    tir.LoadOp, tir.BufferRegionOp, tir.BufferGetOp, tir.VarOp, tir.LetOp, tir.DeclBufferOp, tir.MatchBufferOp,
    tir.AllocBufferOp, tir.EnvThreadOp, tir.IterVarOp, tir.TargetOp,
)  # fmt: skip


def insert_nothing(anchor: Operation) -> None:
    """Puts `T.evaluate(0)` before an op that is about to go and leaves a region without statements."""
    block = anchor.parent
    assert block is not None
    if any(is_statement(op) for op in block.ops if op is not anchor):
        return
    builder = builder_before(anchor)
    builder.insert(tir.EvaluateOp(builder.insert(tir.ConstOp.int(0)).result))


def is_statement(op: Operation) -> bool:
    """Returns whether the op has an effect of its own, rather than being a part of a statement."""
    return not _DECLARATIONS[type(op)] and (not op.results or not is_side_effect_free(op))


def statements_of(block: Block) -> Iterator[Operation]:
    """Yields the statements of a block, in order."""
    return filter(is_statement, block.ops)


def only_statement(block: Block) -> Operation | None:
    """Returns the statement of a block that has one; None if it has none, or several."""
    statements = statements_of(block)
    first = next(statements, None)
    return None if next(statements, None) is not None else first


def acts_until_end(op: Operation) -> bool:
    """Returns whether the op acts until the end of its region: an attribute, a launch of threads, memory."""
    if isinstance(op, tir.DeclBufferOp):
        return op.source is None and not op.implicit.value.data
    return isinstance(op, tir.AttrOp | tir.AllocateOp | tir.AllocateConstOp | tir.LaunchThreadOp | tir.RealizeOp)


def nothing_at_end(block: Block) -> None:
    """Ends a block without statements by `T.evaluate(0)`."""
    parent = block.parent_op()
    assert parent is not None
    builder = builder_at_end(block, parent.location)
    builder.insert(tir.EvaluateOp(builder.insert(tir.ConstOp.int(0)).result))


def replace_by_side(op: tir.IfOp | tir.IfThenElseOp, taken: bool, keep_statement: bool = True) -> list[Operation]:
    """Replaces a branch by one of its sides; returns the ops of the side, in order.

    With `keep_statement`, `T.evaluate(0)` is left where a region would be without statements.
    """
    region = op.then_region if taken else op.else_region
    ops = ops_in(region.block) if region.blocks else []
    if isinstance(op, tir.IfThenElseOp):
        last = ops.pop()
        assert isinstance(last, tir.YieldOp)
        value = last.values[0]
        move_before(ops, op)
        replace_all_uses_with(op.result, value)
    elif op.next_op is not None and any(map(acts_until_end, ops)):
        # What acts until the end of its region must end where the branch did.
        inner = block_of_ops(ops)
        ops.clear()
        ops.append(builder_before(op).insert(tir.ScopeOp(inner)))
    else:
        move_before(ops, op)
        if not ops and keep_statement:
            insert_nothing(op)
    erase_op(op)
    return ops


def lower_init(init: tir.InitOp) -> None:
    """Replaces `with T.init(): S` by S under the condition that all reduction axes are at their start."""
    block = init.parent_op()
    if not isinstance(block, tir.BlockOp):
        raise error_at(
            init, "T.init stands outside of a block", "it belongs directly into the block that it initializes"
        )
    builder = builder_before(init)
    first: SSAValue | None = None
    for kind, variable, low in zip(block.iter_types.data, block.iter_vars, block.dom_mins, strict=True):
        if kind.data != "R":
            continue
        at_start = builder.insert(tir.EqOp(variable, low)).result
        first = at_start if first is None else builder.insert(tir.AndOp(first, at_start)).result
    ops = list(init.body.block.ops)
    if first is None:
        # Without reduction axes every instance is a first one.
        for op in ops:
            op.detach()
            builder.insert(op)
    else:
        builder.insert(tir.IfOp(first, block_of_ops(ops)))
    erase_op(init)
