"""The call graph of Relay's global functions, and the functions that may call themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ....dialects.relay import ir
from ....support import graph
from ....support.walk import walk_ops


@dataclass(frozen=True)
class Component:
    """Functions that reach each other (most often one alone); `is_recursive` if one may call itself."""

    names: tuple[str, ...]
    is_recursive: bool


def called_by(function: ir.FuncOp) -> list[str]:
    """Returns the global functions that a function calls or hands on as values, each once."""
    names: dict[str, None] = {}
    for op in walk_ops(function):
        match op:
            case ir.CallGlobalOp():
                names[op.callee.root_reference.data] = None
            case ir.GlobalRefOp():
                names[op.symbol.root_reference.data] = None
            case _:
                pass
    return list(names)


def components(functions: Mapping[str, ir.FuncOp]) -> Iterator[Component]:
    """Iterates over the strongly connected components of the call graph, callees first."""
    calls = {
        name: [callee for callee in called_by(function) if callee in functions] for name, function in functions.items()
    }
    for names in graph.components(calls):
        yield Component(tuple(names), len(names) > 1 or names[0] in calls[names[0]])


def recursive_functions(functions: Mapping[str, ir.FuncOp]) -> set[str]:
    """Returns the functions that may come to call themselves.

    They are those on a cycle of the call graph, and, as a closure may be any function, all those that call a closure or a parameter.
    """
    recursive = {name for each in components(functions) if each.is_recursive for name in each.names}
    return recursive | {n for n, f in functions.items() if any(isinstance(op, ir.CallOp) for op in walk_ops(f))}
