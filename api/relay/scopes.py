"""Finds the scope in which each node of a graph is computed: the innermost that holds all its uses.

Bodies of functions, branches and clauses are scopes. A node that two branches use is computed before them; one that only one
branch uses is computed there. This is the rule of TVM's ToBasicBlockNormalForm.
"""

from __future__ import annotations

from xdsl.ir import Block

from ..ir.node import Node
from .graph import LEAVES, parts, post_order, scope_starts


class Scope:
    """A scope, and its block. Ancestors are found through one jump pointer each (Myers, 1983)."""

    __slots__ = ("block", "depth", "jump", "parent")

    def __init__(self, parent: Scope | None = None):
        self.block: Block | None = None
        self.parent = parent
        self.depth = 0 if parent is None else parent.depth + 1
        self.jump: Scope = self
        if parent is not None:
            far = parent.jump
            self.jump = far.jump if parent.depth - far.depth == far.depth - far.jump.depth else parent

    def at_depth(self, depth: int) -> Scope:
        """The scope around this one, or this one, at that depth."""
        scope = self
        while scope.depth > depth:
            scope = scope.jump if scope.jump.depth >= depth else scope.parent or scope
        return scope

    def common(self, other: Scope) -> Scope:
        """The innermost scope that holds both."""
        depth = min(self.depth, other.depth)
        a, b = self.at_depth(depth), other.at_depth(depth)
        while a is not b:
            if a.jump is not b.jump:
                a, b = a.jump, b.jump
            else:
                a, b = a.parent or a, b.parent or b
        return a

    def holds(self, other: Scope) -> bool:
        """Returns whether `other` is this scope or inside it."""
        return other.depth >= self.depth and other.at_depth(self.depth) is self


def find_scopes(root: Node) -> tuple[dict[Node, Scope], dict[tuple[Node, int], Scope]]:
    """Returns the scope of each node except leaves, and the scopes that parts open, by node and index.

    The root has a scope of its own.
    """
    top = Scope()
    home: dict[Node, Scope] = {root: top}
    opened: dict[tuple[Node, int], Scope] = {}
    for node in reversed(list(post_order(root))):
        if isinstance(node, LEAVES):
            continue
        own, first_scope = home[node], scope_starts(node)
        for place, part in enumerate(parts(node)):
            scope = own
            if place >= first_scope:
                scope = opened[node, place] = Scope(own)
            if not isinstance(part, LEAVES):
                known = home.get(part)
                home[part] = scope if known is None else known.common(scope)
    return home, opened
