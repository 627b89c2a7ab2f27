"""Which Relay functions call which."""

from __future__ import annotations

from collections.abc import Mapping

from ....dialects.relay import ir as relay
from ....support.walk import walk_ops


def calls_of(function: relay.FuncOp) -> list[str]:
    """The global functions that a function calls or hands on as values, each once."""
    names: dict[str, None] = {}
    for op in walk_ops(function):
        match op:
            case relay.CallGlobalOp():
                names[op.callee.root_reference.data] = None
            case relay.GlobalRefOp():
                names[op.symbol.root_reference.data] = None
            case _:
                pass
    return list(names)


def recursive_functions(functions: Mapping[str, relay.FuncOp]) -> set[str]:
    """The functions that may come to call themselves: those on a cycle of the call graph (Tarjan, 1972), and, as a
    closure may be any function, all those that call a closure or a parameter."""
    calls = {name: [c for c in calls_of(f) if c in functions] for name, f in functions.items()}
    recursive = {n for n, f in functions.items() if any(isinstance(op, relay.CallOp) for op in walk_ops(f))}
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    for start in functions:
        if start in index:
            continue
        work: list[tuple[str, int]] = [(start, 0)]
        while work:
            name, position = work.pop()
            if position == 0:
                index[name] = low[name] = len(index)
                stack.append(name)
                on_stack.add(name)
            else:
                callee = calls[name][position - 1]
                low[name] = min(low[name], low[callee] if callee in on_stack else low[name])
            for next_position in range(position, len(calls[name])):
                callee = calls[name][next_position]
                if callee not in index:
                    work += [(name, next_position + 1), (callee, 0)]
                    break
                if callee in on_stack:
                    low[name] = min(low[name], index[callee])
            else:
                if low[name] == index[name]:
                    component: list[str] = []
                    while not component or component[-1] != name:
                        component.append(stack.pop())
                        on_stack.discard(component[-1])
                    if len(component) > 1 or name in calls[name]:
                        recursive |= set(component)
    return recursive
