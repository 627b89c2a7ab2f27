"""Expressions as Relay text."""

from __future__ import annotations

from ...support.deep_stack import in_deep_stack
from . import expr
from .export import export_function
from .graph import free_vars


def expression_text(node: expr.RelayExpr, *, header: bool = False, metadata: bool = False) -> str:
    """An expression's text; a line `free_var %x: …;` stands before it for each variable that is not bound in it."""
    from ...parser.relay.printer import expression_text as text_of

    if isinstance(node, expr.Var):
        text = f"%{node.name_hint}"
        return f"free_var {text}: {node.type_annotation};\n{text}" if node.type_annotation is not None else text
    if isinstance(node, expr.GlobalVar):
        return f"@{node.name_hint}"
    free = free_vars(node)
    is_function = isinstance(node, expr.Function) and not free
    whole = node if isinstance(node, expr.Function) and is_function else expr.Function(free, node, span=node.span)
    op = export_function("", whole)
    text = in_deep_stack(lambda: text_of(op, is_function=is_function, header=header, metadata=metadata))
    return text.rstrip("\n")
