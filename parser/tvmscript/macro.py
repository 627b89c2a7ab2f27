"""`@T.macro`: statements that a script takes over where it calls the macro by name."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from inspect import Signature
from typing import Any, TypeVar, cast

from ..items import Item
from ..python.tree import Function, Token
from .syntax import parse_item

Node = TypeVar("Node", bound=Any)


@dataclass(frozen=True, eq=False)
class Macro:
    """A function whose statements replace its calls.

    A hygienic macro takes its names from where it is defined (`captured`), another one from where it is called.
    """

    name: str
    signature: Signature
    item: Item
    tree: Function
    captured: Mapping[str, object]
    hygienic: bool

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        raise TypeError(f"macro '{self.name}' is called in a script, on a line of its own")

    def __repr__(self) -> str:
        return f"T.macro({self.name}{self.signature})"


def read_macro(
    text: str, file: str, line: int, indent: int, signature: Signature, captured: Mapping[str, object], hygienic: bool
) -> Macro:
    """Reads the source of a function as a macro. Raises MirError for an error in it."""
    item = Item("tvmscript", "T.macro", _without_parameters(text), file, line, indent)
    tree = parse_item(item)
    assert isinstance(tree, Function)
    return Macro(str(tree.name), signature, item, tree, captured, hygienic)


def _without_parameters(text: str) -> str:
    """Blanks the parameters, which may have defaults and stars: Python has read them."""
    function = ast.parse(text).body[0]
    assert isinstance(function, ast.FunctionDef)
    lines = text.split("\n")
    first, body = function.lineno - 1, function.body[0]
    last = body.lineno - 1
    if last == first:
        # The body follows the colon on the same line.
        rest = lines[first].encode()[body.col_offset :].decode()
        lines[first] = f"def {function.name}():".ljust(len(lines[first]) - len(rest)) + rest
    else:
        lines[first:last] = [f"def {function.name}():", *[""] * (last - first - 1)]
    return "\n".join(lines)


def moved(node: Node, by: int) -> Node:
    """Returns a part of a tree whose tokens are at offsets greater by a number."""
    if isinstance(node, Token):
        return cast("Node", Token(node.type, str(node), node.start + by) if node.start >= 0 else node)
    if isinstance(node, list):
        return cast("Node", [moved(item, by) for item in cast("list[Any]", node)])
    if isinstance(node, tuple):
        return cast("Node", tuple(moved(item, by) for item in cast("tuple[Any, ...]", node)))
    if isinstance(node, int) and not isinstance(node, bool):
        return cast("Node", node + by if node >= 0 else node)
    if is_dataclass(node):
        parts = {field.name: moved(getattr(node, field.name), by) for field in fields(node)}
        return cast("Node", cast("Any", type(node))(**parts))
    return cast("Node", node)
