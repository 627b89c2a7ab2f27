"""Finds the results of a graph that are views of its inputs, which torch makes itself.

    def forward(x): y = view(x, [n * m]); z = slice(y, 0, 1); return z, relu(z)      copies of y and z are torch's; relu is compiled

AOTAutograd makes such a result again from the input, by the strides and the offset in memory of what the graph returned.
"""

from __future__ import annotations

import operator
from typing import Any


def copy_input_views(module: Any) -> list[Any]:
    """Gives each result that is a view of an input nodes of its own; returns those."""
    copies: list[Any] = []
    output = next(node for node in module.graph.nodes if node.op == "output")
    results = list(output.args[0])
    for place, result in enumerate(results):
        chain = _chain(result)
        if not chain:
            continue
        made = chain[-1].args[0]
        with module.graph.inserting_before(output):
            for node in reversed(chain):
                source, made = made, module.graph.node_copy(node)
                made.args = (source, *node.args[1:])
                copies.append(made)
        results[place] = made
    if copies:
        output.args = (tuple(results),)
    return copies


def _chain(node: Any) -> list[Any]:
    """Returns the views that lead to a node, the last first; none where they do not begin at an input."""
    found: list[Any] = []
    while _is_view(node):
        found.append(node)
        node = node.args[0]
    return found if getattr(node, "op", "") == "placeholder" else []


def _is_view(node: Any) -> bool:
    """Returns whether a node's results share the memory of its first argument."""
    if getattr(node, "op", "") != "call_function":
        return False
    schema = getattr(node.target, "_schema", None)
    if schema is None:
        return node.target is operator.getitem
    aliases = [each.alias_info for each in schema.returns]
    return bool(aliases) and all(each is not None and not each.is_write for each in aliases)
