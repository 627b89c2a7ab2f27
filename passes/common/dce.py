"""Dead code elimination: what nothing observable depends on is erased."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, OpResult
from xdsl.passes import ModulePass
from xdsl.traits import ConstantLike, IsTerminator

from ...support.graph import reverse_postorder
from ...support.trace import Tracer, tracer
from ...support.walk import walk_ops
from ..changes import op_name
from .effects import Effects


@dataclass(frozen=True)
class Dce(ModulePass):
    """Erases ops without observable effect that no live op uses, dead cycles and unreachable blocks.

    Marks from the ops that must stay and sweeps the others, so that each op is visited a constant number of times; xDSL's
    own repeats its walk until nothing changes and asks region ops for their effects at every level.
    """

    name = "dce"
    tells: ClassVar[bool] = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        erase_dead_ops(op, trace=tracer(self.name))


def erase_dead_ops(
    root: Operation, effects: Callable[[Operation], Effects] = Effects, trace: Tracer | None = None
) -> None:
    """Erases dead ops inside `root`, which is kept itself.

    `effects` finds the effects of the ops inside; `trace` receives what is erased.
    """
    _erase_unreachable_blocks(root)
    live = _live_ops(root, effects(root))
    # Users follow the ops that they use, so that from the back an op is erased when its uses are gone.
    dead = _outermost_dead(root, live)
    if trace is not None:
        for op in dead:
            if not op.has_trait(ConstantLike):
                trace(op, f"{op_name(op)} goes: nothing needs what it gives")
    for op in reversed(dead):
        op.detach()
        op.erase(safe_erase=False)


def _erase_unreachable_blocks(root: Operation) -> None:
    for op in walk_ops(root):
        for region in op.regions:
            if region.first_block is region.last_block:
                continue
            reachable = set(reverse_postorder(region.blocks[0]))
            for block in [b for b in reversed(region.blocks) if b not in reachable]:
                region.erase_block(block, safe_erase=False)


def _live_ops(root: Operation, effects: Effects) -> set[Operation]:
    live: set[Operation] = {root}
    pending: list[Operation] = []

    def mark(op: Operation) -> None:
        if op not in live:
            live.add(op)
            pending.append(op)

    for op in walk_ops(root):
        # A terminator lives as long as the op around it does.
        if op is not root and not _is_terminator(op) and not effects.is_removable(op):
            mark(op)
    for region in root.regions:
        for block in region.blocks:
            if block.last_op is not None and _is_terminator(block.last_op):
                mark(block.last_op)
    while pending:
        op = pending.pop()
        if (parent := op.parent_op()) is not None and parent is not root:
            mark(parent)
        for operand in op.operands:
            if isinstance(operand, OpResult):
                mark(operand.op)
            elif isinstance(owner := operand.owner, Block) and (around := owner.parent_op()) is not None:
                mark(around)
        for region in op.regions:
            for block in region.blocks:
                if block.last_op is not None and _is_terminator(block.last_op):
                    mark(block.last_op)
    return live


def _is_terminator(op: Operation) -> bool:
    return op.has_trait(IsTerminator, value_if_unregistered=False) or bool(op.successors)


def _outermost_dead(root: Operation, live: set[Operation]) -> list[Operation]:
    """The dead ops that are not inside another dead op, in the order of the text."""
    return [op for op in walk_ops(root) if op not in live and op.parent_op() in live]
