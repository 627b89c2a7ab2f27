"""Rewrites matches by a function of the user, and outlines matches into functions.

A match may not overlap another, and its inner nodes must not be used outside of it, so that nothing is
computed twice. Matches nearer to the result come first. As in TVM's PatternGrouper.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from xdsl.ir import Operation

from ....support.deep_stack import in_deep_stack
from ....support.diagnostics import Diagnostic, MirError
from ...ir.module import IRModule
from ...ir.node import Node
from ...ir.op import Op
from ...ir.structural import structural_equal
from ..export import node_types
from ..expr import Call, Constant, Function, GlobalVar, RelayExpr, TupleGetItem, Var, as_expr
from ..graph import binders, parts, post_order, rebuild
from .matcher import Graph, Matcher

if TYPE_CHECKING:
    from .patterns import DFPattern

MOST_ROUNDS = 100
"""Rewriting that goes on for more rounds than this is taken to go on for ever."""

NAME = "PartitionedFromPattern"


class DFPatternCallback:
    """A rewrite: a derived class sets `pattern` in its `__init__`; `callback` returns replacements.

    `require_type`: expressions have types when they are matched. `rewrite_once`: a single round.
    """

    def __init__(self, require_type: bool = False, rewrite_once: bool = False):
        self.pattern: DFPattern | None = None
        self.require_type = require_type
        self.rewrite_once = rewrite_once

    def __repr__(self) -> str:
        return f"{type(self).__name__}({'no pattern' if self.pattern is None else self.pattern})"

    def rewrite(self, expr: RelayExpr) -> RelayExpr:
        """The expression, rewritten by this."""
        return rewrite(self, expr)

    def callback(self, pre: RelayExpr, post: RelayExpr, node_map: Mapping[DFPattern, Sequence[Any]]) -> RelayExpr:
        """Returns the replacement of a match.

        `pre` is the match, `post` the match after its parts were rewritten; `node_map` holds the rewritten expressions of each node of
        the pattern.
        """
        raise TypeError(f"{type(self).__name__} needs a method callback(pre, post, node_map)")


def rewrite(
    callbacks: DFPatternCallback | Sequence[DFPatternCallback], expr: RelayExpr, mod: IRModule | None = None
) -> RelayExpr:
    """Rewrites an expression until nothing changes; `mod` holds the functions it calls, for their types.

    Raises:
        MirError: when that does not come to an end.
    """
    rules = [callbacks] if isinstance(callbacks, DFPatternCallback) else list(callbacks)
    functions = () if mod is None else tuple(mod.op.ops)
    return in_deep_stack(lambda: _rewrite(rules, expr, functions))


def _rewrite(rules: Sequence[DFPatternCallback], expr: RelayExpr, functions: Sequence[Operation]) -> RelayExpr:
    once = all(rule.rewrite_once for rule in rules)
    for _ in range(MOST_ROUNDS):
        last = expr
        for rule in rules:
            if rule.pattern is None:
                raise TypeError(f"{type(rule).__name__} sets no pattern")
            expr = _round(rule, rule.pattern, _typed(expr, functions) if rule.require_type else expr)
        if once or expr is last or structural_equal(expr, last):
            return expr
    names = ", ".join(type(rule).__name__ for rule in rules)
    raise MirError(
        Diagnostic(f"rewriting by {names} did not come to an end in {MOST_ROUNDS} rounds").with_note(
            "a rule's result must not match again, or be smaller each time"
        )
    )


def _typed(expr: RelayExpr, functions: Sequence[Operation]) -> RelayExpr:
    """The expression with the types that inference finds."""
    for node, type in node_types(expr, functions).items():
        if isinstance(node, RelayExpr) and node.known_type is None:
            node.known_type = type
    return expr


@dataclass(eq=False)
class _Group:
    """A match: its root, its members, its inputs from outside, and the nodes that each pattern matched."""

    root: Node
    members: set[Node]
    inputs: list[Node]
    matched: dict[DFPattern, list[Node]]


def _groups(pattern: DFPattern, root: RelayExpr) -> dict[Node, _Group]:
    """The matches in an expression by their roots."""
    graph = Graph(root)
    matcher = Matcher(root, graph)
    taken: set[Node] = set()
    found: dict[Node, _Group] = {}
    inside = _partitioned(graph)
    every = list(_all_patterns(pattern))
    for node in reversed(graph.nodes):
        if node in taken or node in inside or isinstance(node, Op):
            continue
        if matcher.match(pattern, node):
            group = _group(node, every, {p: list(m) for p, m in matcher.matched.items()}, graph)
            if group is not None and taken.isdisjoint(group.members):
                taken |= group.members
                found[node] = group
    return found


def _all_patterns(root: DFPattern) -> Iterator[DFPattern]:
    """Yields every node of a pattern once."""
    seen: set[DFPattern] = set()
    pending = [root]
    while pending:
        pattern = pending.pop()
        if pattern not in seen:
            seen.add(pattern)
            yield pattern
            pending += reversed(pattern.inputs())


def _partitioned(graph: Graph) -> set[Node]:
    """Returns the nodes in functions that `partition` made before."""
    functions = [node for node in graph.nodes if isinstance(node, Function) and NAME in node.attrs]
    return {inner for function in functions for inner in post_order(function.body)}


def _group(root: Node, every: Sequence[DFPattern], matched: dict[DFPattern, list[Node]], graph: Graph) -> _Group | None:
    """The match as a group; None when something in it is needed outside."""
    interior = {node for pattern in every for node in pattern.interior(matched)}
    inputs: dict[Node, None] = {}
    for pattern in every:
        for node in pattern.boundary(matched.get(pattern, ())):
            stays = isinstance(node, Constant) and pattern.wants_constant()
            if node not in interior and not isinstance(node, Op | Function) and not stays:
                inputs[node] = None
    inputs.pop(root, None)
    members, used = _members(root, inputs)
    # What a member binds is known inside of the match only: so is whatever is made of it.
    while inner := _dependents(members, graph).intersection(used):
        inputs = {value: None for value in inputs if value not in inner}
        members, used = _members(root, inputs)
    bound = {var for node in members for var in binders(node)}
    used.update(dict.fromkeys(node for node in members if isinstance(node, Var) and node not in bound))
    for node in members:
        shared = node is not root and not isinstance(node, Constant | Var)
        if shared and any(user not in members for user in graph.users[node]):
            return None
    return _Group(root, {m for m in members if not isinstance(m, Constant | Var)}, list(used), matched)


def _members(root: Node, inputs: Container[Node]) -> tuple[dict[Node, None], dict[Node, None]]:
    """Returns the nodes of a match from its root down to its inputs, and the inputs that it reaches."""
    members: dict[Node, None] = {}
    used: dict[Node, None] = {}
    pending = [root]
    while pending:
        node = pending.pop()
        if node in members:
            continue
        if node in inputs:
            used[node] = None
            continue
        members[node] = None
        pending += reversed(parts(node))
    return members, used


def _dependents(members: Iterable[Node], graph: Graph) -> set[Node]:
    """The variables that members bind, and what is made of them where they are bound."""
    found: set[Node] = set()
    for binder in members:
        pending: list[Node] = list(binders(binder))
        while pending:
            node = pending.pop()
            if node not in found and node is not binder:
                found.add(node)
                pending += graph.users.get(node, ())
    return found


def _round(rule: DFPatternCallback, pattern: DFPattern, root: RelayExpr) -> RelayExpr:
    """Rewrites each match once."""
    groups = _groups(pattern, root)
    if not groups:
        return root

    def replace(node: RelayExpr, post: RelayExpr, new: Callable[[Node], Node]) -> RelayExpr:
        node_map = {p: [new(node) for node in nodes] for p, nodes in groups[node].matched.items()}
        return as_expr(rule.callback(node, post, node_map))

    return _rebuilt(root, groups, replace)


def _rebuilt(
    root: RelayExpr,
    groups: Mapping[Node, _Group],
    replace: Callable[[RelayExpr, RelayExpr, Callable[[Node], Node]], RelayExpr],
) -> RelayExpr:
    new: dict[Node, Node] = {}

    def of(node: Node) -> Node:
        return new.get(node, node)

    for node in post_order(root):
        if not isinstance(node, RelayExpr):
            continue
        post = rebuild(node, of)
        new[node] = replace(node, post, of) if node in groups else post
    result = new[root]
    assert isinstance(result, RelayExpr)
    return result


def partition(
    pattern: DFPattern,
    expr: RelayExpr,
    attrs: Mapping[str, object] | None = None,
    check: Callable[[Any], bool] = lambda _: True,
) -> RelayExpr:
    """Outlines each match whose root `check` accepts into a function, which is called in its place.

    The function has the attributes, and `PartitionedFromPattern`, which names its operators.
    """
    found = in_deep_stack(lambda: _groups(pattern, expr))
    groups = {root: group for root, group in found.items() if check(root)}
    if not groups:
        return expr
    numbers = {root: index for index, root in enumerate(groups)}

    def outline(node: RelayExpr, _: RelayExpr, new: Callable[[Node], Node]) -> RelayExpr:
        group = groups[node]
        variables = {
            value: Var(f"FunctionVar_{numbers[node]}_{n}", span=value.span) for n, value in enumerate(group.inputs)
        }
        body, name = _body(group, variables)
        function = Function(list(variables.values()), body, None, None, {**(attrs or {}), NAME: name}, node.span)
        return Call(function, [new(value) for value in group.inputs], span=node.span)  # type: ignore[list-item]

    return _rebuilt(expr, groups, outline)


def _body(group: _Group, variables: Mapping[Node, Var]) -> tuple[RelayExpr, str]:
    """Returns a match's expression on variables in place of its inputs, and its name, from its operators."""
    new: dict[Node, Node] = dict(variables)
    names: list[str] = []
    pending: list[tuple[Node, bool]] = [(group.root, False)]
    while pending:
        node, opened = pending.pop()
        if opened:
            assert isinstance(node, RelayExpr)
            new[node] = rebuild(node, lambda part: new.get(part, part))
            names.append(_word(node))
        elif node not in new and isinstance(node, RelayExpr):
            pending.append((node, True))
            pending += [(part, False) for part in reversed(parts(node))]
    result = new[group.root]
    assert isinstance(result, RelayExpr)
    return result, "".join(names)


def _word(node: Node) -> str:
    """Returns the part of a match's name that a node contributes, in TVM's words."""
    match node:
        case Call():
            return f"{node.op.name}_" if isinstance(node.op, Op) else "Call_"
        case TupleGetItem():
            return f"TupleGetItem{node.index}_"
        case Function():
            return "Function"
        case Constant() | Var() | GlobalVar():
            return ""
        case _:
            return f"{type(node).__name__}_"
