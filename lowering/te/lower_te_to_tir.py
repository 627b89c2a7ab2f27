"""`lower-te-to-tir`: every TE function of a module becomes a TIR function of the same name, in its place."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects import te
from .create_prim_func import create_prim_func


@dataclass(frozen=True)
class LowerTEToTIR(ModulePass):
    """Lower TE functions to TIR: a loop nest with a block for each tensor."""

    name = "lower-te-to-tir"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in list(op.ops):
            if isinstance(function, te.FuncOp):
                lowered = create_prim_func(function)
                Rewriter.insert_op(lowered, InsertPoint.before(function))
                function.detach()
                function.erase()
