"""Replaces names that the Python around a script defines by the literals of their values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Sequence as AnySequence
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar, cast

import numpy as np

from ...support.text import quoted
from ..python.tree import Assign, Expr, For, Function, Lambda, Module, Sequence, Stmt, Token, Unary, With

Node = TypeVar("Node", bound=Any)


def with_captured(tree: Function | Module, captured: Mapping[str, object]) -> Function | Module:
    """Returns the tree with literals in place of captured names that the function itself does not define.

    Numbers, strings, booleans, dtypes, and lists and tuples of such have literals; a name of any other value stays.
    """
    if isinstance(tree, Module):
        members = [with_captured(m, captured) if isinstance(m, Function) else m for m in tree.members]
        return Module(tree.decorators, tree.name, cast("list[Function | Stmt]", members))
    own = set(_bound(tree))
    outer = {name: value for name, value in captured.items() if name not in own}
    return _replaced(tree, outer)


def _bound(function: Function) -> Iterator[str]:
    """Yields the names that a function's statements bind.

    As in Python, such a name belongs to the function everywhere in it.
    """
    yield from (str(parameter.name) for parameter in function.parameters)
    pending: list[Any] = list(function.body)
    while pending:
        node = pending.pop()
        match node:
            case For():
                yield from _names(node.target)
            case Assign():
                yield from _names(node.target)
            case With():
                for _, target in node.items:
                    yield from _names(target)
            case _:
                target = getattr(node, "target", None)
                if target is not None:
                    yield from _names(target)
        for block in ("body", "orelse"):
            pending += getattr(node, block, None) or []


def _names(target: Expr | None) -> Iterator[str]:
    if isinstance(target, Sequence):
        for item in target.items:
            yield from _names(item)
    elif isinstance(target, Token):
        yield str(target)


def _replaced(node: Node, captured: Mapping[str, object]) -> Node:
    """Clones a part of the tree, each captured name replaced by its literal; the callee of a call is kept."""
    if isinstance(node, Token):
        found = literal(captured[node], node.start) if node.type == "NAME" and node in captured else None
        return cast("Node", node if found is None else found)
    if isinstance(node, list | tuple):
        items = [_replaced(item, captured) for item in cast("list[Any]", node)]
        return cast("Node", items if isinstance(node, list) else tuple(items))
    if isinstance(node, Lambda):
        captured = {name: value for name, value in captured.items() if name not in node.parameters}
        return cast("Node", Lambda(node.token, node.parameters, _replaced(node.body, captured)))
    if not is_dataclass(node):
        return node
    # Only expressions are looked up: the names that keywords, parameters and functions have are not.
    kept = ("name", "op", "token", "function")
    parts = {
        field.name: value if field.name in kept and isinstance(value, Token) else _replaced(value, captured)
        for field in fields(node)
        for value in (getattr(node, field.name),)
    }
    return cast("Node", type(node)(**parts))


def literal(value: object, start: int) -> Expr | None:
    """The literal of a Python value, at an offset of the text; None for a value that has none."""
    if isinstance(value, np.generic):
        value = value.item()
    match value:
        case bool() | None:
            return Token("NAME", str(value), start)
        case int() | float() if value < 0:
            positive = literal(-value, start)
            return None if positive is None else Unary(Token("PREFIX", "-", start), positive)
        case int():
            return Token("NUMBER", str(value), start)
        case float():
            return Token("NUMBER", repr(value), start) if value < float("inf") else None
        case str():
            return Token("STRING", quoted(value), start)
        case np.dtype():
            return Token("STRING", quoted(value.name), start)
        case type() if issubclass(value, np.generic):
            return Token("STRING", quoted(np.dtype(value).name), start)
        case list() | tuple():
            items = [literal(item, start) for item in cast("AnySequence[object]", value)]
            return None if None in items else Sequence([item for item in items if item is not None])
        case _:
            return None
