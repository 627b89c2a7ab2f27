"""Places leaves (constants and names of functions, which the text writes in their only user)."""

from __future__ import annotations

from xdsl.ir import Operation

from ...support.walk import walk_ops
from . import ir


def place_leaves(op: Operation) -> None:
    """Moves the leaves that only `op` uses to right before it, in the order of its operands."""
    before = op
    for operand in reversed(op.operands):
        leaf = operand.owner
        if isinstance(leaf, ir.LEAVES) and operand.has_one_use():
            block = before.parent
            if before.prev_op is not leaf and block is not None:
                leaf.detach()
                block.insert_op_before(leaf, before)
            before = leaf


def place_all_leaves(root: Operation) -> None:
    """Places the leaves of every op inside `root`; linear, as each leaf is moved at most once."""
    for op in walk_ops(root):
        if op.operands:
            place_leaves(op)
