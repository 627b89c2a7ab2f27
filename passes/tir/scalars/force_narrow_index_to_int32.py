"""The pass `force-narrow-index-to-int32`: parameters, sizes and index arithmetic of 64 bits in 32, as in TVM's pass of the name."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ..rewriting import prim_funcs
from .narrowing import Narrower


@dataclass(frozen=True)
class ForceNarrowIndexToInt32(ModulePass):
    """Narrows whatever indices and sizes are made of; that it fits is the user's promise."""

    name = "force-narrow-index-to-int32"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Narrows every prim_func of the module; raises MirError for a number that does not fit."""
        for func in prim_funcs(op):
            Narrower(32, force=True).narrow(func)
