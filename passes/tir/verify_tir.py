"""The pass `verify-tir`: checks the rules that span a whole prim_func, anywhere in a pipeline."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ...dialects.tir.verify import check_module


@dataclass(frozen=True)
class VerifyTIR(ModulePass):
    """Raises MirError for every broken rule; see `dialects.tir.verify`.

    With `runs`, an access out of bounds is one.
    """

    name = "verify-tir"
    runs: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        check_module(op, runs=self.runs)
