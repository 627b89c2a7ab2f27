"""Which global functions call or name which, and which of them may come to call themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ....dialects.relay import ir
from ....support.walk import walk_ops


@dataclass(frozen=True)
class Component:
    """Functions that reach each other (most often one alone); `is_recursive` when one may come to call itself."""

    names: tuple[str, ...]
    is_recursive: bool


def called_by(function: ir.FuncOp) -> list[str]:
    """The global functions that a function calls or hands on as values, each once."""
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
    """The strongly connected components of the call graph, each behind those that it calls (Tarjan, 1972)."""
    calls: dict[str, Sequence[str]] = {
        name: [callee for callee in called_by(function) if callee in functions] for name, function in functions.items()
    }
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    closed: set[str] = set()
    for start in functions:
        work = [(start, iter(calls[start]))] if start not in index else []
        if work:
            index[start] = low[start] = len(index)
            stack.append(start)
        while work:
            name, rest = work[-1]
            for callee in rest:
                if callee not in index:
                    index[callee] = low[callee] = len(index)
                    stack.append(callee)
                    work.append((callee, iter(calls[callee])))
                    break
                if callee not in closed:
                    low[name] = min(low[name], index[callee])
            else:
                work.pop()
                if work:
                    caller = work[-1][0]
                    low[caller] = min(low[caller], low[name])
                if low[name] == index[name]:
                    names: list[str] = []
                    while not names or names[-1] != name:
                        names.append(stack.pop())
                    closed.update(names)
                    yield Component(tuple(names), len(names) > 1 or name in calls[name])
