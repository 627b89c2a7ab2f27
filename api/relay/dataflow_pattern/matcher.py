"""Matches patterns against the nodes of an expression; the rules are those of TVM's DFPatternMatcher.

Each kind of pattern says by its method `fits` which nodes it matches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from xdsl.ir import Attribute

from ....passes.relay.fusion.post_dominators import PostDominatorTree
from ....support.deep_stack import in_deep_stack
from ....support.diagnostics import MirError
from ...ir.node import Node
from ..export import node_types
from ..expr import Constant, RelayExpr, Var
from ..graph import parts, post_order
from ..ty import TensorType, Type, from_attribute

if TYPE_CHECKING:
    from .patterns import DFPattern


class Graph:
    """An expression's nodes in order of evaluation, and which use which; found when first needed."""

    def __init__(self, root: RelayExpr):
        self.root = root

    @cached_property
    def nodes(self) -> list[Node]:
        """Every node, after what it is made of."""
        return list(post_order(self.root))

    @cached_property
    def users(self) -> dict[Node, list[Node]]:
        """The nodes that each node is a part of."""
        users: dict[Node, list[Node]] = {node: [] for node in self.nodes}
        for node in self.nodes:
            for part in dict.fromkeys(parts(node)):
                users[part].append(node)
        return users

    @cached_property
    def dominated(self) -> dict[Node, list[Node]]:
        """The nodes that each node dominates at once: all paths out of them go through it first."""
        number = {node: index for index, node in enumerate(self.nodes)}
        successors = [[(number[user], 0) for user in self.users[node]] for node in self.nodes]
        tree = PostDominatorTree(successors, [node is self.root for node in self.nodes], 0)
        dominated: dict[Node, list[Node]] = {}
        for node, parent in zip(self.nodes, tree.parent, strict=True):
            if parent is not None:
                dominated.setdefault(self.nodes[parent], []).append(node)
        return dominated

    @cached_property
    def types(self) -> Mapping[Node, Attribute]:
        """Returns the types found by inference, for nodes without one; none if inference fails."""
        try:
            return node_types(self.root)
        except MirError:
            return {}

    def type_of(self, node: Node) -> Type | None:
        """A node's type, or None when it is not known."""
        if isinstance(node, Constant):
            return TensorType(node.value.data.shape, node.value.data.dtype)
        known = node.known_type if isinstance(node, RelayExpr) else None
        if known is None and isinstance(node, Var) and node.type_annotation is not None:
            return node.type_annotation
        if known is None:
            known = self.types.get(node)
        return None if known is None else from_attribute(known)


class Matcher:
    """Matches patterns against the nodes of one graph; `matched` maps each pattern to its nodes."""

    def __init__(self, root: RelayExpr, graph: Graph | None = None):
        self.graph = graph or Graph(root)
        self.matched: dict[DFPattern, list[Node]] = {}
        self._order: list[DFPattern] = []
        self.remembers = True

    def match(self, pattern: DFPattern, node: Node) -> bool:
        """Returns whether the node matches the pattern."""
        self.matched.clear()
        self._order.clear()
        self.remembers = True
        return in_deep_stack(lambda: self.fits(pattern, node))

    def fits(self, pattern: DFPattern, node: Node) -> bool:
        """Returns whether a part of the pattern matches a node; once matched, it matches only that node."""
        if self.remembers and pattern in self.matched:
            return self.matched[pattern][0] is node
        mark = self.mark()
        if not pattern.fits(self, node):
            self.forget(mark)
            return False
        self.matched.setdefault(pattern, []).append(node)
        self._order.append(pattern)
        return True

    def mark(self) -> int:
        """Returns a point to which `forget` goes back."""
        return len(self._order)

    def forget(self, mark: int) -> None:
        """Undoes the matches of parts since `mark`."""
        while len(self._order) > mark:
            pattern = self._order.pop()
            self.matched[pattern].pop()
            if not self.matched[pattern]:
                del self.matched[pattern]

    def all_fit(self, wanted: Sequence[DFPattern], nodes: Sequence[Node]) -> bool:
        """Returns whether as many nodes as patterns match them, in order."""
        if len(wanted) != len(nodes):
            return False
        mark = self.mark()
        for pattern, node in zip(wanted, nodes, strict=True):
            if not self.fits(pattern, node):
                self.forget(mark)
                return False
        return True
