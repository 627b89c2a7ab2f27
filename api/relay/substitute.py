"""Values in place of variables."""

from __future__ import annotations

from collections.abc import Mapping

from ..ir.node import Node
from .expr import RelayExpr, Var
from .graph import post_order, rebuild


def substitute(root: RelayExpr, values: Mapping[Var, RelayExpr]) -> RelayExpr:
    """The expression with values in place of variables; what holds none of them stays the same node."""
    new: dict[Node, Node] = {}
    for node in post_order(root):
        if isinstance(node, Var):
            new[node] = values.get(node, node)
        else:
            new[node] = rebuild(node, lambda part: new.get(part, part)) if isinstance(node, RelayExpr) else node
    found = new[root]
    assert isinstance(found, RelayExpr)
    return found
