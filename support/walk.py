"""Walks over IR that take a bounded stack however deep regions nest."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Operation


def walk_ops(root: Operation) -> Iterator[Operation]:
    """`root` and every op inside it, each before the ops of its regions, in program order; linear, without recursion.

    The op that was just given may be changed inside its regions, but must not be detached, before the next is asked for.
    """
    yield root
    pending = [(op for region in root.regions for block in region.blocks for op in block.ops)]
    while pending:
        op = next(pending[-1], None)
        if op is None:
            pending.pop()
            continue
        yield op
        if op.regions:
            pending.append(inner for region in op.regions for block in region.blocks for inner in block.ops)


def post_order(root: Operation) -> list[Operation]:
    """Every op inside `root` and `root` itself, each after the ops of its regions; a list, so that they may be erased."""
    # Outer before inner, reversed, is inner before outer (siblings run from last to first, which no caller minds).
    return list(reversed(list(walk_ops(root))))
