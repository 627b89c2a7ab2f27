"""The pass `lower-init-block`: a reduction's `T.init` becomes a branch taken before the first update.

with T.init():                →     if vk == 0:
    C[vi] = 0                           C[vi] = 0
C[vi] = C[vi] + A[vi, vk]           C[vi] = C[vi] + A[vi, vk]
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ....dialects import tir
from ..rewriting import lower_init, ops_of


@dataclass(frozen=True)
class LowerInitBlock(ModulePass):
    """Replaces `T.init` by a branch on the reduction axes."""

    name = "lower-init-block"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Lowers every init of the module.

        The init of a reduction whose extent may be 0 becomes a block of its own (`decompose-open-reductions`).
        """
        from .decompose_open_reductions import DecomposeOpenReductions

        DecomposeOpenReductions().apply(ctx, op)
        for init in ops_of(op, tir.InitOp):
            lower_init(init)
