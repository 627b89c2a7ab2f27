"""Hoists an op, with all that it depends on, out of the blocks around it."""

from __future__ import annotations

from collections.abc import Set

from xdsl.ir import Block, BlockArgument, Operation

from ...dialects.relay.ir import LEAVES
from ...support.walk import walk_ops


def hoist(op: Operation, target: Block, around: Set[Block]) -> bool:
    """Moves `op` and the ops it depends on into `target`, a block around it.

    They are inserted before the op of `target` that contains `op`. `around` holds `target` and the blocks around it, whose values
    are visible there. The blocks between `op` and `target` may still be unattached (their op is not built yet): then the ops are
    appended to `target`. Returns False, and moves nothing, if `op` depends on an argument of a block inside `target`.
    """
    needed: list[Operation] = []
    seen: set[Operation] = set()
    pending: list[tuple[Operation, bool]] = [(op, False)]
    while pending:
        current, expanded = pending.pop()
        if expanded:
            needed.append(current)
            continue
        if current in seen or current.parent in around:
            continue
        seen.add(current)
        pending.append((current, True))
        own = {block for inner in walk_ops(current) for region in inner.regions for block in region.blocks}
        for inner in walk_ops(current):
            for operand in inner.operands:
                if isinstance(operand, BlockArgument):
                    if operand.block not in own and operand.block not in around:
                        return False
                elif isinstance(operand.owner, Operation) and operand.owner.parent not in own:
                    pending.append((operand.owner, False))
    place = _child_of(op, target) or _first_waiting(target)
    for moved in needed:
        moved.detach()
        if place is None:
            target.add_op(moved)
        else:
            target.insert_op_before(moved, place)
    return True


def _first_waiting(target: Block) -> Operation | None:
    """The first of the leaves at the block's end that wait for the op being built to use them."""
    place, op = None, target.last_op
    while isinstance(op, LEAVES) and op.results[0].first_use is None:
        place, op = op, op.prev_op
    return place


def _child_of(op: Operation, target: Block) -> Operation | None:
    """The op of `target` that holds `op`, or None when the chain upward ends before `target`."""
    current: Operation | None = op
    while current is not None and current.parent is not target:
        current = None if current.parent is None else current.parent.parent_op()
    return current
