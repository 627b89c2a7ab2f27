"""Equal calls as one node, but those that the user wants kept: `EliminateCommonSubexpr(fskip)`."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from ...dialects.relay.operator import get_operator
from ..ir.node import Node
from ..ir.op import Op
from .expr import Call, Function, RelayExpr, TupleGetItem
from .graph import post_order, rebuild

Skip = Callable[[RelayExpr], bool]
"""Whether an expression is to stay as it is."""


def merge_equal(function: Function, fskip: Skip) -> Function:
    """Merges each call of an operator, and each field of a tuple, with an equal one before it.

    Operators without arguments and those with an effect stay, as do those for which `fskip` is true; it is called on expressions
    whose arguments are merged already. Linear in the number of nodes.
    """
    new: dict[Node, Node] = {}
    known: dict[Hashable, RelayExpr] = {}
    for node in post_order(function):
        if not isinstance(node, RelayExpr):
            new[node] = node
            continue
        made = rebuild(node, lambda part: new.get(part, part))
        key = _key(made)
        new[node] = made if key is None or fskip(made) else known.setdefault(key, made)
    result = new[function]
    assert isinstance(result, Function)
    return result


def _key(node: RelayExpr) -> Hashable | None:
    """Equal for expressions that compute the same; None for one that is not merged."""
    match node:
        case Call() if isinstance(node.op, Op) and node.args:
            operator = get_operator(node.op.name)
            if operator is None or operator.stateful:
                return None
            return (operator.name, tuple(map(id, node.args)), repr(node.attrs and sorted(node.attrs.items())))
        case TupleGetItem():
            return (id(node.tuple_value), node.index)
        case _:
            return None
