"""Computes the effect on memory of evaluating an expression: none, reading or writing."""

from __future__ import annotations

from xdsl.ir import Block, Operation

from . import arithmetic, buffer, expr, stmt
from .intrinsics import Effect, intrinsic_effect

NONE, READ, WRITE = 0, 1, 2

LEAVES = (expr.ConstOp, buffer.BufferGetOp, buffer.BufferRegionOp, stmt.IterVarOp, stmt.TargetOp, expr.CommReducerOp)
"""Ops that are repeated at each use: constants, fields of buffers, regions, nodes of attributes."""

EXPRESSIONS = (
    arithmetic.BinaryOp, arithmetic.NotOp, expr.SelectOp, expr.CastOp, expr.RampOp, expr.BroadcastOp, expr.ShuffleOp,
    buffer.LoadOp, expr.CallOp, expr.IfThenElseOp,
)  # fmt: skip
"""Ops that compute a value."""

DECLARATIONS = (expr.VarOp, expr.LetOp)
"""Ops that name one."""


class Evaluation:
    """The effects of the ops in some blocks, of which those inside of others come later."""

    def __init__(self, blocks: list[Block]):
        self._effects: dict[Operation, int] = {}
        for block in reversed(blocks):
            parent = block.parent_op()
            if isinstance(parent, expr.IfThenElseOp):
                worst = max((self.effect(op) for op in block.ops), default=NONE)
                self._effects[parent] = max(worst, self._effects.get(parent, NONE))

    def effect(self, op: Operation) -> int:
        """Returns the effect of evaluating `op` on memory: NONE, READ or, for other than expressions, WRITE."""
        if isinstance(op, expr.CallOp):
            kind = Effect.OPAQUE if op.callee is not None else intrinsic_effect(op.intrinsic.data)
            return NONE if kind is Effect.PURE else READ if kind is Effect.READ else WRITE
        if isinstance(op, buffer.LoadOp):
            return READ
        if isinstance(op, expr.IfThenElseOp):
            return self._effects.get(op, NONE)
        return NONE if isinstance(op, EXPRESSIONS + LEAVES + DECLARATIONS) else WRITE


def blocks_inside(root: Block) -> list[Block]:
    """Returns `root` and the blocks inside it, outer ones first."""
    blocks = [root]
    for block in blocks:
        blocks += [inner for op in block.ops for region in op.regions for inner in region.blocks]
    return blocks
