"""Prints an expression's syntax tree as the text of a rule."""

from __future__ import annotations

from . import tree
from .printer import function_text, literal_text


def expression_text(node: tree.Node | tree.Bind, outer: int = 0) -> str:
    """Returns the text of an expression, in parentheses where it binds less tightly than `outer`.

    RuleCall(add, [Local(x), Literal(1)])  →  add(%x, 1)
    """
    text, own = _text(node)
    return f"({text})" if own < outer else text


def callee_text(callee: tree.RuleCallee) -> str:
    """Returns the text of a callee: `nn.dense`, `[add, subtract]$op`, `$op`."""
    capture = "" if callee.capture is None else f"${callee.capture}"
    return (
        callee.names[0]
        if len(callee.names) == 1 and not capture
        else f"[{', '.join(callee.names)}]{capture}"
        if callee.names
        else capture
    )


def rest_text(name: str) -> str:
    """Returns the text of attributes that a call does not name: `**$rest`, `**_` without a name."""
    return f"**${name}" if name else "**_"


def _text(node: tree.Node | tree.Bind) -> tuple[str, int]:
    """Returns an expression's text, and how tightly it binds."""
    match node:
        case tree.Local():
            return f"%{node.name}", 9
        case tree.Run():
            return f"%{node.name}...", 9
        case tree.Attr():
            return f"${node.name}", 9
        case tree.Wildcard():
            return "_", 9
        case tree.Literal():
            text = literal_text(node.value)
            return text, 7 if text.startswith("-") else 9
        case tree.Named():
            return f"%{node.name} = {expression_text(node.value)}", 0
        case tree.Bind():
            return f"${node.name} = {expression_text(node.value)}", 0
        case tree.Tuple():
            items = [expression_text(item) for item in node.items]
            if node.brackets:
                return f"[{', '.join(items)}]", 9
            return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})", 9
        case tree.RuleCall():
            parts = [expression_text(arg) for arg in node.args]
            parts += [f"{name}={expression_text(value)}" for _, name, value in node.keywords]
            parts += [] if node.rest is None else [rest_text(node.rest[1])]
            return f"{callee_text(node.callee)}({', '.join(parts)})", 9
        case tree.RuleMember():
            return f"{expression_text(node.value, 8)}.{node.name}", 8
        case tree.Field():
            return f"{expression_text(node.value, 8)}.{node.index}", 8
        case tree.Operation():
            return function_text(node.function, node.args, expression_text)
