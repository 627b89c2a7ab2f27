"""`dead-code-elimination`: erases unused ops, calls of pure functions included.

    let %a = exp(%x); %x   ->   %x

As TVM's DeadCodeElimination: a call goes when the functions that it may reach write no reference and hold no stateful
operator. With `inline-once` a variable that is used once loses its `let`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass

from ....dialects.relay import ir
from ....dialects.relay.text import local_text
from ....support.trace import Tracer, tracer
from ....support.walk import walk_ops
from ...common.dce import erase_dead_ops
from ..common.purity import CallEffects
from ..common.rewriting import erase_lets


@dataclass(frozen=True)
class DeadCodeElimination(ModulePass):
    """Erase what nothing observable depends on, in Relay functions."""

    name = "dead-code-elimination"
    tells: ClassVar[bool] = True

    inline_once: bool = False
    """Also take the `let` from what is used once, outside of local functions (which may run more than once)."""
    ignore_impurity: bool = False
    """Erase calls whatever the functions that they reach do."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        trace = tracer(self.name)
        erase_dead_ops(op, lambda root: CallEffects(root, ignore_impurity=self.ignore_impurity), trace)
        if self.inline_once:
            inline_single_uses(op, trace)


def inline_single_uses(module: ModuleOp, trace: Tracer | None = None) -> None:
    """Erases each `let` whose variable is used once, by the function that binds it."""
    home: dict[Block | None, Operation] = {}
    lets: list[ir.LetOp] = []
    for op in walk_ops(module):
        function = op if isinstance(op, ir.FuncOp | ir.FnOp) else home.get(op.parent, module)
        home |= {block: function for region in op.regions for block in region.blocks}
        if isinstance(op, ir.LetOp) and not binds_recursion(op):
            lets.append(op)
    single = [let for let in lets if _is_used_once(let, home)]
    if trace is not None:
        for let in single:
            trace(let, f"{local_text(let.var_name.data)} is used once: its let goes")
    erase_lets(module, single)


def _is_used_once(let: ir.LetOp, home: Mapping[Block | None, Operation]) -> bool:
    use = let.result.get_user_of_unique_use()
    return use is not None and home[use.parent] is home[let.parent]


def binds_recursion(let: ir.LetOp) -> bool:
    """Returns whether the variable is the name by which a local function calls itself.

    Its `let` must stay.
    """
    return isinstance(let.value.owner, ir.FnOp) and let.value.owner.self_name is not None
