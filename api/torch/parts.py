"""Cuts a graph into parts to compile and parts with operators that cannot be imported.

    a = conv(x)   b = relu(a)   c = histc(b)   d = add(b, c)   e = mul(c, d)        histc cannot be imported

    level 0, compiled: a, b          level 1, torch: c          level 2, compiled: d, e

A node's level is the least that is even for a compiled node, odd for one of torch's, and not below those of its operands. Sizes are
computed in each part that uses them. Operators that draw random numbers keep their order.
"""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ...frontends.torch.importer import is_size
from ...frontends.torch.tensors import require_torch


@dataclass(frozen=True)
class Part:
    """A part of a graph, as a module of its own."""

    module: Any
    inputs: Sequence[Any]
    """The nodes of the whole graph whose values it takes."""
    results: Sequence[Any]
    """The nodes whose values it returns, in a tuple."""
    is_compiled: bool


def parts_of(module: Any, refused: Collection[Any]) -> list[Part]:
    """Returns the parts of a graph in the order to run them; the last returns the graph's results."""
    levels = _levels(module, refused)
    members: dict[int, list[Any]] = defaultdict(list)
    for node, level in levels.items():
        if not is_size(node):
            members[level].append(node)
    order = {node: place for place, node in enumerate(module.graph.nodes)}
    output = next(node for node in module.graph.nodes if node.op == "output")
    wanted = {level: _required(nodes, levels, level) for level, nodes in members.items()}
    last = _required(output.all_input_nodes, levels, None)
    crossing = {node for _, inputs in (*wanted.values(), last) for node in inputs}
    parts: list[Part] = []
    for level in sorted(members):
        results = [node for node in members[level] if node in crossing]
        if results:
            parts.append(_part(module, *wanted[level], results, order, level % 2 == 0))
    return [*parts, _part(module, *last, output.args[0], order, False)]


def _levels(module: Any, refused: Collection[Any]) -> dict[Any, int]:
    """Returns the level of each call: even ones are compiled, odd ones torch's."""
    levels: dict[Any, int] = {}
    drawn: list[int] = []
    """The level of the last call that draws random numbers."""
    for node in module.graph.nodes:
        if node.op != "call_function":
            continue
        before = [levels[each] for each in node.all_input_nodes if each in levels]
        if is_size(node) or node.target is operator.getitem:
            levels[node] = max(before, default=-1)
            continue
        own = int(node in refused)
        levels[node] = max([own, *(level + (level % 2 != own) for level in (*before, *drawn))])
        if _draws(node):
            drawn = [levels[node]]
    return levels


def _draws(node: Any) -> bool:
    """Returns whether a node draws random numbers."""
    return require_torch().Tag.nondeterministic_seeded in getattr(node.target, "tags", ())


def _required(nodes: Iterable[Any], levels: dict[Any, int], level: int | None) -> tuple[set[Any], set[Any]]:
    """Returns the nodes to copy into a part of a level, and those whose values it takes."""
    copied: set[Any] = set()
    inputs: set[Any] = set()
    left = list(nodes)
    while left:
        node = left.pop()
        if node in copied or node in inputs:
            continue
        if node.op == "get_attr" or is_size(node) or (node.op == "call_function" and levels[node] == level):
            copied.add(node)
            left += node.all_input_nodes
        else:
            inputs.add(node)
    return copied, inputs


def _part(
    module: Any, copied: set[Any], inputs: set[Any], results: Any, order: dict[Any, int], is_compiled: bool
) -> Part:
    """Builds a part: `copied` are its nodes, in `order`, `inputs` the nodes whose values it takes."""
    torch = require_torch()
    graph = torch.fx.Graph()
    values: dict[Any, Any] = {}
    taken = sorted(inputs, key=order.__getitem__)
    for node in taken:
        values[node] = graph.placeholder(node.name)
        values[node].meta = dict(node.meta)
    for node in sorted(copied, key=order.__getitem__):
        values[node] = graph.node_copy(node, values.__getitem__)
    graph.output(tuple(values[each] if isinstance(each, torch.fx.Node) else each for each in results))
    return Part(torch.fx.GraphModule(module, graph), taken, list(results), is_compiled)


class Parts:
    """Runs the parts of a graph, called with its inputs; returns a list of its results."""

    def __init__(self, module: Any, parts: Sequence[tuple[Part, Callable[..., Sequence[Any]]]]):
        self.inputs = [node for node in module.graph.nodes if node.op == "placeholder"]
        last = {node: place for place, (part, _) in enumerate(parts) for node in part.inputs}
        self.steps = [
            (run, part.inputs, part.results, [node for node in part.inputs if last[node] == place])
            for place, (part, run) in enumerate(parts)
        ]

    def __call__(self, *inputs: Any) -> list[Any]:
        """Runs the parts in order; values are dropped after their last use."""
        values = dict(zip(self.inputs, inputs, strict=True))
        *steps, (finish, left, _, _) = self.steps
        for run, taken, results, dropped in steps:
            given = [values[node] for node in taken]
            for node in dropped:
                del values[node]
            found = run(*given)
            del given
            values.update(zip(results, found, strict=True))
        return list(finish(*[values[node] for node in left]))
