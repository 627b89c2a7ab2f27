"""Algorithms on graphs: strongly connected components, disjoint sets, block orders and dominators."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Generic, TypeVar

from xdsl.ir import Block

T = TypeVar("T", bound=Hashable)


def components(edges: Mapping[T, Iterable[T]]) -> Iterator[list[T]]:
    """Iterates over the strongly connected components, each after those that it leads to (Tarjan, 1972).

    {a: [b], b: [c], c: [b]}  →  [c, b], [a]

    Every node is a key of `edges`.
    """
    index: dict[T, int] = {}
    low: dict[T, int] = {}
    stack: list[T] = []
    closed: set[T] = set()
    for start in edges:
        if start in index:
            continue
        index[start] = low[start] = len(index)
        stack.append(start)
        work = [(start, iter(edges[start]))]
        while work:
            node, rest = work[-1]
            for target in rest:
                if target not in index:
                    index[target] = low[target] = len(index)
                    stack.append(target)
                    work.append((target, iter(edges[target])))
                    break
                if target not in closed:
                    low[node] = min(low[node], index[target])
            else:
                work.pop()
                if work:
                    above = work[-1][0]
                    low[above] = min(low[above], low[node])
                if low[node] == index[node]:
                    found: list[T] = []
                    while not found or found[-1] != node:
                        found.append(stack.pop())
                    closed.update(found)
                    yield found


class DisjointSets(Generic[T]):
    """Disjoint sets of items (union-find with path halving); an item that was never joined is alone."""

    def __init__(self) -> None:
        self.parent: dict[T, T] = {}

    def find(self, item: T) -> T:
        """Returns the representative of the item's set."""
        parent = self.parent
        while (above := parent.get(item, item)) is not item:
            parent[item] = item = parent.get(above, above)
        return item

    def join(self, item: T, into: T) -> None:
        """Joins the set of `item` to that of `into`, whose representative is kept."""
        item, into = self.find(item), self.find(into)
        if item != into:
            self.parent[item] = into


def reverse_postorder(entry: Block) -> list[Block]:
    """Returns the blocks reachable from the entry, each before its successors except along back edges."""
    order: list[Block] = []
    seen = {entry}
    pending: list[tuple[Block, Iterator[Block]]] = [(entry, _successors(entry))]
    while pending:
        block, successors = pending[-1]
        for successor in successors:
            if successor not in seen:
                seen.add(successor)
                pending.append((successor, _successors(successor)))
                break
        else:
            order.append(block)
            pending.pop()
    order.reverse()
    return order


def _successors(block: Block) -> Iterator[Block]:
    return iter(()) if block.last_op is None else iter(block.last_op.successors)


def dominator_tree(entry: Block) -> dict[Block, list[Block]]:
    """Returns the blocks that each reachable block dominates immediately.

    After Georgiadis, "Linear-Time Algorithms for Dominators and Related Problems": semidominators with path compression,
    then the nearest common ancestor (Semi-NCA).
    """
    order: list[Block] = []
    number: dict[Block, int] = {}
    parent: list[int] = []
    predecessors: list[list[int]] = []
    stack: list[tuple[Block, int]] = [(entry, 0)]
    edges: list[tuple[Block, Block]] = []
    while stack:
        block, above = stack.pop()
        if block in number:
            continue
        number[block] = len(order)
        order.append(block)
        parent.append(above)
        last = block.last_op
        if last is not None:
            for successor in last.successors:
                edges.append((block, successor))
                stack.append((successor, number[block]))
    predecessors = [[] for _ in order]
    for source, target in edges:
        predecessors[number[target]].append(number[source])
    semi = list(range(len(order)))
    best = list(range(len(order)))
    ancestor = [-1] * len(order)

    def evaluate(node: int) -> int:
        """Returns the vertex of least semidominator on the linked path above `node`."""
        if ancestor[node] < 0:
            return node
        path: list[int] = []
        current = node
        while ancestor[ancestor[current]] >= 0:
            path.append(current)
            current = ancestor[current]
        for step in reversed(path):
            up = ancestor[step]
            if semi[best[up]] < semi[best[step]]:
                best[step] = best[up]
            ancestor[step] = ancestor[up]
        return best[node]

    for node in range(len(order) - 1, 0, -1):
        for predecessor in predecessors[node]:
            semi[node] = min(semi[node], semi[evaluate(predecessor)])
        ancestor[node] = parent[node]
    immediate = list(parent)
    tree: dict[Block, list[Block]] = {}
    for node in range(1, len(order)):
        candidate = immediate[node]
        while candidate > semi[node]:
            candidate = immediate[candidate]
        immediate[node] = candidate
        tree.setdefault(order[candidate], []).append(order[node])
    return tree
