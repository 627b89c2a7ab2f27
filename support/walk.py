"""Walks over IR that take a bounded stack however deep regions nest."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Block, Operation, SSAValue


def walk_ops(root: Operation) -> Iterator[Operation]:
    """Yields `root` and every op inside, before the ops of its regions, in program order; linear.

    The op that was just yielded may be changed inside its regions, but must not be detached, before the next is asked for.
    """
    yield root
    pending: list[Operation | Block] = blocks_of(root)
    while pending:
        place = pending.pop()
        op = place.first_op if isinstance(place, Block) else place
        while op is not None:
            following = op.next_op
            yield op
            if op.regions:
                if following is not None:
                    pending.append(following)
                pending += blocks_of(op)
                break
            op = following


def all_ops(root: Operation) -> list[Operation]:
    """Returns the ops of `walk_ops` as a list, in a third of the time."""
    ops = [root]
    add = ops.append
    pending: list[Operation | Block] = blocks_of(root)
    while pending:
        place = pending.pop()
        op = place.first_op if isinstance(place, Block) else place
        while op is not None:
            add(op)
            following = op.next_op
            if op.regions:
                if following is not None:
                    pending.append(following)
                pending += blocks_of(op)
                break
            op = following
    return ops


def ops_in(block: Block) -> list[Operation]:
    """Returns a block's ops as a list, so that they may be moved. (`list(block.ops)` counts them first.)"""
    ops: list[Operation] = []
    op = block.first_op
    while op is not None:
        ops.append(op)
        op = op.next_op
    return ops


def blocks_of(op: Operation) -> list[Operation | Block]:
    """Returns the blocks of an op's regions, the last one first: to be taken from a list's end."""
    blocks: list[Operation | Block] = []
    for region in reversed(op.regions):
        block = region.last_block
        while block is not None:
            blocks.append(block)
            block = block.prev_block
    return blocks


def op_around(op: Operation) -> Operation | None:
    """Returns the op that a region with `op` in it belongs to; None at the top."""
    block = op.parent
    region = None if block is None else block.parent
    return None if region is None else region.parent


def owner_op(value: SSAValue) -> Operation | None:
    """Returns the op that defines a value, or whose region has it as an argument."""
    owner = value.owner
    return owner.parent_op() if isinstance(owner, Block) else owner


def enclosing(op: Operation, until: Operation | None = None) -> Iterator[Operation]:
    """Yields the ops around `op`, innermost first, up to `until`, which is left out."""
    parent = op_around(op)
    while parent is not None and parent is not until:
        yield parent
        parent = op_around(parent)


def following(op: Operation) -> list[Operation]:
    """Returns the ops after `op` in its block, in order; a list, so that they may be moved."""
    found: list[Operation] = []
    while (after := op.next_op) is not None:
        found.append(after)
        op = after
    return found


def post_order(root: Operation) -> list[Operation]:
    """Returns `root` and every op inside, each after the ops of its regions; they may be erased."""
    # Outer before inner, reversed, is inner before outer (siblings run from last to first, which no caller minds).
    ops = all_ops(root)
    ops.reverse()
    return ops
