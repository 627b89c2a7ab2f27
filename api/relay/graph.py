"""Expressions as a graph: what each is made of, and walks over it that do not recurse."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from ..ir.node import Node
from ..ir.op import Op
from .adt import Constructor, Match, pattern_vars
from .expr import (
    Call,
    Constant,
    Function,
    GlobalVar,
    If,
    Let,
    RefCreate,
    RefRead,
    RefWrite,
    RelayExpr,
    Tuple,
    TupleGetItem,
    Var,
    place_error,
)

LEAVES = (Var, Constant, GlobalVar, Op, Constructor)
"""Nodes that are written where they are used."""


def parts(node: Node) -> Sequence[Node]:
    """Returns the subexpressions of a node in order of evaluation, without the variables that it binds."""
    match node:
        case Call():
            return node.args if isinstance(node.op, Op) else (node.op, *node.args)
        case Tuple():
            return node.fields
        case TupleGetItem():
            return (node.tuple_value,)
        case Let():
            return (node.value, node.body)
        case If():
            return (node.cond, node.true_branch, node.false_branch)
        case Function():
            return (node.body,)
        case Match():
            return (node.data, *(clause.rhs for clause in node.clauses))
        case RefCreate():
            return (node.value,)
        case RefRead():
            return (node.ref,)
        case RefWrite():
            return (node.ref, node.value)
        case Var() | Constant() | GlobalVar() | Op() | Constructor():
            return ()
        case _:
            raise place_error(node, f"{type(node).__name__} is not a Relay expression")


def binders(node: Node) -> Sequence[Var]:
    """The variables that a node binds inside it."""
    match node:
        case Function():
            return node.params
        case Let():
            return (node.var,)
        case Match():
            return [var for clause in node.clauses for var in pattern_vars(clause.lhs)]
        case _:
            return ()


def scope_starts(node: Node) -> int:
    """Returns the number of parts that are computed in the node's own scope; each other part has its own."""
    match node:
        case If() | Match():
            return 1
        case Function():
            return 0
        case _:
            return len(parts(node))


def post_order(root: Node, kinds: type[Node] | tuple[type[Node], ...] = Node) -> Iterator[Node]:
    """Every node of the graph once, each after its parts, leaves too; operators are left out.

    Nodes that are not of `kinds`, and what only they are made of, are left out as well.
    """
    seen: set[Node] = set()
    pending: list[tuple[Node, bool]] = [(root, False)]
    while pending:
        node, opened = pending.pop()
        if opened:
            yield node
            continue
        if node in seen:
            continue
        seen.add(node)
        pending.append((node, True))
        pending += [(part, False) for part in reversed(parts(node)) if part not in seen and isinstance(part, kinds)]


def free_vars(expr: RelayExpr) -> list[Var]:
    """Returns the variables that nothing in the expression binds, in the order in which they are met."""
    bound = {variable for node in post_order(expr) for variable in binders(node)}
    return [node for node in post_order(expr) if isinstance(node, Var) and node not in bound]


def rebuild(node: RelayExpr, new: Callable[[Node], Node]) -> RelayExpr:
    """The node with each part replaced by `new(part)`; itself when none differs."""
    old = parts(node)
    fresh = [new(part) for part in old]
    if all(a is b for a, b in zip(old, fresh, strict=True)):
        return node
    return with_parts(node, fresh)


def with_parts(node: RelayExpr, fresh: Sequence[object]) -> RelayExpr:
    """A copy of the node made of other parts, given in the order of `parts`."""
    from .adt import Clause

    values: Sequence[RelayExpr] = fresh  # type: ignore[assignment]
    span = node.span
    match node:
        case Call():
            if isinstance(node.op, Op):
                return Call(node.op, values, node.attrs, node.written_type_args, span)
            return Call(values[0], values[1:], node.attrs, node.written_type_args, span)
        case Tuple():
            return Tuple(values, span)
        case TupleGetItem():
            return TupleGetItem(values[0], node.index, span)
        case Let():
            return Let(node.var, values[0], values[1], span)
        case If():
            return If(values[0], values[1], values[2], span)
        case Function():
            return Function(node.params, values[0], node.ret_type, node.type_params, node.attrs, span)
        case Match():
            clauses = [Clause(old.lhs, rhs) for old, rhs in zip(node.clauses, values[1:], strict=True)]
            return Match(values[0], clauses, node.complete, span)
        case RefCreate():
            return RefCreate(values[0], span)
        case RefRead():
            return RefRead(values[0], span)
        case RefWrite():
            return RefWrite(values[0], values[1], span)
        case _:
            return node


def substitute(root: RelayExpr, values: Mapping[Var, RelayExpr]) -> RelayExpr:
    """Substitutes values for variables; a node that holds none of them stays the same object."""
    new: dict[Node, Node] = {}
    for node in post_order(root):
        if isinstance(node, Var):
            new[node] = values.get(node, node)
        else:
            new[node] = rebuild(node, lambda part: new.get(part, part)) if isinstance(node, RelayExpr) else node
    found = new[root]
    assert isinstance(found, RelayExpr)
    return found
