"""The pass `lower-init-block`: a reduction block's `T.init` becomes a branch that is taken before the first update."""

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
        """Lowers every init of the module; those of reductions that may be over nothing become blocks of their own."""
        from .decompose_open_reductions import DecomposeOpenReductions

        DecomposeOpenReductions().apply(ctx, op)
        for init in ops_of(op, tir.InitOp):
            lower_init(init)
