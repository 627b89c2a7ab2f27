"""The pass `lower-init-block`: a reduction block's `T.init` becomes a branch that is taken before the first update."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from ....dialects import tir
from ....support.diagnostics import error_at
from ....support.edit import block_of_ops, builder_before, erase_op
from ..rewriting import ops_of


def lower_init(init: tir.InitOp) -> None:
    """`with T.init(): S` becomes `if` every reduction axis is at the start of its domain: S."""
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


@dataclass(frozen=True)
class LowerInitBlock(ModulePass):
    """Replaces `T.init` by a branch on the reduction axes."""

    name = "lower-init-block"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Lowers every init of the module; those of reductions that may be over nothing become blocks of their own."""
        from .decompose_open_reductions import DecomposeOpenReductions

        DecomposeOpenReductions().apply(ctx, op)
        for init in ops_of(op, tir.InitOp):
            lower_init(init)
