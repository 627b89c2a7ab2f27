"""Post-dominator tree of a data-flow graph, with the largest edge weight on every path; in O(n log n)."""

from __future__ import annotations

from collections.abc import Sequence


class PostDominatorTree:
    """Immediate post-dominators of nodes 0…n-1, where every edge leads to a higher number.

    `parent[i]` is the node through which every path from i goes first, or None when there is none (i's value leaves
    the graph, or its paths never meet). `weight[i]` is the largest edge weight on any path from i to it.

    Ancestors are found through one jump pointer a node (Myers, "An applicative random-access stack", 1983), so that a
    graph of long parallel paths costs no more than a chain.
    """

    parent: list[int | None]
    weight: list[int]

    def __init__(self, successors: Sequence[Sequence[tuple[int, int]]], leaves: Sequence[bool], opaque: int):
        """Builds the tree. `successors[i]` holds (node, edge weight).

        `leaves[i]`: i is used outside, with weight `opaque`.
        """
        count = len(successors)
        self.parent = [None] * count
        self.weight = [opaque] * count
        self._depth = [1] * count
        self._jump: list[int | None] = [None] * count
        self._jump_weight = [opaque] * count
        for node in range(count - 1, -1, -1):
            edges = successors[node]
            if leaves[node] or not edges:
                continue
            meeting: int | None
            meeting, weight = edges[0]
            for successor, edge_weight in edges[1:]:
                if meeting is None:
                    break
                meeting, path_weight = self._common(meeting, successor)
                weight = max(weight, edge_weight, path_weight)
            if meeting is not None:
                self._attach(node, meeting, weight)

    def _attach(self, node: int, parent: int, weight: int) -> None:
        self.parent[node] = parent
        self.weight[node] = weight
        self._depth[node] = self._depth[parent] + 1
        jump = self._jump[parent]
        # Myers' rule: the jump is as long as two equal jumps of the parent together, otherwise one step.
        if jump is not None:
            further = self._jump[jump]
            span = self._depth[parent] - self._depth[jump]
            if further is not None and self._depth[jump] - self._depth[further] == span:
                self._jump[node] = further
                self._jump_weight[node] = max(weight, self._jump_weight[parent], self._jump_weight[jump])
                return
        self._jump[node] = parent
        self._jump_weight[node] = weight

    def _common(self, a: int, b: int) -> tuple[int | None, int]:
        """The nearest common ancestor of two nodes, and the largest weight on the way from both to it."""
        weight = 0
        if self._depth[a] < self._depth[b]:
            a, b = b, a
        while self._depth[a] > self._depth[b]:
            a, weight = self._step(a, self._depth[b], weight)
        while a != b:
            jump_a, jump_b = self._jump[a], self._jump[b]
            if jump_a is None or jump_b is None:
                return None, weight
            if jump_a != jump_b:
                weight = max(weight, self._jump_weight[a], self._jump_weight[b])
                a, b = jump_a, jump_b
            else:
                parent_a, parent_b = self.parent[a], self.parent[b]
                assert parent_a is not None and parent_b is not None
                weight = max(weight, self.weight[a], self.weight[b])
                a, b = parent_a, parent_b
        return a, weight

    def _step(self, node: int, depth: int, weight: int) -> tuple[int, int]:
        """One move of `node` toward its ancestor at `depth`: by its jump where that does not overshoot."""
        jump, parent = self._jump[node], self.parent[node]
        if jump is not None and self._depth[jump] >= depth:
            return jump, max(weight, self._jump_weight[node])
        assert parent is not None
        return parent, max(weight, self.weight[node])
