"""`to-graph-normal-form`: uses values directly instead of `let` variables, and drops unneeded ones.

    let %a = exp(%x); let %b = exp(%y); %a   ->   exp(%x)

As TVM's ToGraphNormalForm. The order of evaluation stays, and so do, with their `let`s, values needed only for the references
that they write. A local function that calls itself keeps the `let` that names it.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ....dialects.relay import ir
from ....support.walk import walk_ops
from ...common.dce import erase_dead_ops
from ..common.purity import CallEffects
from ..common.rewriting import erase_lets
from .dead_code_elimination import binds_recursion


@dataclass(frozen=True)
class ToGraphNormalForm(ModulePass):
    """Take the lets away, leaving the graph of values."""

    name = "to-graph-normal-form"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        erase_dead_ops(op, CallEffects)
        lets = [inner for inner in walk_ops(op) if isinstance(inner, ir.LetOp)]
        erase_lets(op, [let for let in lets if let.result.first_use is not None and not binds_recursion(let)])
