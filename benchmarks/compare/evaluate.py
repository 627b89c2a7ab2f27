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
"""Computes a tensor, or a tuple of them, from (node, arguments…); for each number of arguments, as lambdas need it."""


def shared_functions(library: Any) -> dict[str, Function]:
    """Returns the operators of Relay's name in `library`, jax.numpy or torch, and Python's arithmetic."""

    def named(name: str) -> Function:
        function = getattr(library, name)
        return lambda node, *xs: function(*xs)

    return {
        **{name: named(name) for name in ("maximum", "minimum", "exp", "log", "sqrt", "tanh", "where")},
        "power": named("power" if hasattr(library, "power") else "pow"),
        "add": lambda node, x, y: x + y,
        "subtract": lambda node, x, y: x - y,
        "multiply": lambda node, x, y: x * y,
        "divide": lambda node, x, y: x / y,
        "less": lambda node, x, y: x < y,
        "negative": lambda node, x: -x,
        "reshape": lambda node, x: x.reshape(node.outputs[0].shape),
        "nn.batch_flatten": lambda node, x: x.reshape(node.outputs[0].shape),
    }


def evaluate(
    graph: Graph, functions: Mapping[str, Function], inputs: Sequence[Any], constants: Sequence[Any]
) -> tuple[Any, ...]:
    """Computes the graph's results by `functions`. Raises KeyError for an operator that has no function."""
    values: dict[int, Any] = {}
    for value, given in zip((*graph.inputs, *graph.constants), (*inputs, *constants), strict=True):
        values[id(value)] = given
    for node in graph.nodes:
        result = functions[node.op](node, *(values[id(value)] for value in node.inputs))
        results = result if node.gives_tuple else (result,)
        for output, each in zip(node.outputs, results, strict=False):
            values[id(output)] = each
    return tuple(values[id(value)] for value in graph.results)
