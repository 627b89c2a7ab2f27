"""Orders the nodes of a graph, each after those that compute its inputs.

ONNX wants them so; some writers append nodes at the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any


def in_order(nodes: Sequence[Any]) -> Sequence[Any]:
    """Returns nodes, each after those that compute what it and the graphs inside it use.

    Nodes that are in order stay as they are. Nodes that wait for each other have no order: one of them comes before what it uses.
    """
    maker = {name: place for place, node in enumerate(nodes) for name in node.output if name}
    needs = [{maker[name] for name in _used(node) if name in maker} - {place} for place, node in enumerate(nodes)]
    if all(each < place for place, needed in enumerate(needs) for each in needed):
        return nodes
    order: dict[int, None] = {}
    for first in range(len(nodes)):
        waiting = [first]
        entered: set[int] = set()
        while waiting:
            place = waiting[-1]
            missing = [each for each in sorted(needs[place]) if each not in order and each not in entered]
            if place in order or (place in entered and not missing):
                waiting.pop()
                order.setdefault(place)
                continue
            entered.add(place)
            waiting += reversed(missing)
    return [nodes[place] for place in order]


def _used(node: Any) -> Iterator[str]:
    """Yields the names that a node uses, and those that the graphs inside it use or define."""
    pending = [node]
    while pending:
        each = pending.pop()
        yield from each.input
        for attribute in each.attribute:
            graphs = [attribute.g, *attribute.graphs] if attribute.HasField("g") else attribute.graphs
            for graph in graphs:
                pending += graph.node
                yield from (output.name for output in graph.output)
