"""Checks forms of expressions: that of basic blocks, in which values of other blocks are used by name."""

from __future__ import annotations

from dataclasses import dataclass

from ..ir.node import Node
from .expr import RelayExpr
from .graph import LEAVES, parts, post_order, scope_starts


@dataclass(frozen=True, eq=False)
class _Block:
    """A function's body, a branch or a clause, inside of another block."""

    outer: _Block | None
    depth: int


def check_basic_block_normal_form(expr: RelayExpr) -> bool:
    """Returns whether each value is used in its own block alone, except through a variable.

    Blocks are bodies of functions, branches of ifs and clauses of matches. A value that several blocks use belongs to the innermost block
    around them, and must be bound there by a let.
    """
    root = _Block(None, 0)
    uses: dict[Node, list[_Block]] = {expr: [root]}
    for node in reversed(list(post_order(expr))):
        blocks = uses[node]
        home = blocks[0]
        for block in blocks[1:]:
            home = _common(home, block)
        if not isinstance(node, LEAVES) and any(block is not home for block in blocks):
            return False
        own = scope_starts(node)
        for index, part in enumerate(parts(node)):
            uses.setdefault(part, []).append(home if index < own else _Block(home, home.depth + 1))
    return True


def _common(one: _Block, other: _Block) -> _Block:
    """Returns the innermost block around both."""
    while one is not other:
        if one.depth >= other.depth:
            assert one.outer is not None
            one = one.outer
        else:
            assert other.outer is not None
            other = other.outer
    return one
