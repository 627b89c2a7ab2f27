"""Follows a graph with one function an operator: what jax and torch trace."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from .graph import Graph, Node

Function: TypeAlias = """(
    Callable[[Node, Any], Any]
    | Callable[[Node, Any, Any], Any]
    | Callable[[Node, Any, Any, Any], Any]
    | Callable[[Node, Any, Any, Any, Any, Any], Any]
    | Callable[..., Any]
)"""
"""(node, arguments…) to a tensor, or to a tuple of them where the node gives a tuple; by number of arguments, for lambdas' types."""


def evaluate(
    graph: Graph, functions: Mapping[str, Function], inputs: Sequence[Any], constants: Sequence[Any]
) -> tuple[Any, ...]:
    """The graph's results, computed by `functions`. Raises KeyError for an operator that is not among them."""
    values: dict[int, Any] = {}
    for value, given in zip((*graph.inputs, *graph.constants), (*inputs, *constants), strict=True):
        values[id(value)] = given
    for node in graph.nodes:
        result = functions[node.op](node, *(values[id(value)] for value in node.inputs))
        results = result if node.gives_tuple else (result,)
        for output, each in zip(node.outputs, results, strict=False):
            values[id(output)] = each
    return tuple(values[id(value)] for value in graph.results)
