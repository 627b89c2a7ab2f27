"""When an expression is such as a pattern says; the rules are those of TVM's DFPatternMatcher."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from xdsl.ir import Attribute

from ....passes.relay.fusion.post_dominators import PostDominatorTree
from ....support.deep_stack import in_deep_stack
from ....support.diagnostics import MirError
from ...ir.node import Node
from ...ir.op import Op, plain
from ...ir.structural import structural_equal
from ..expr import Call, Constant, Function, If, Let, RelayExpr, Tuple, TupleGetItem, Var
from ..graph import parts, post_order
from ..ty import TensorType, Type, from_attribute
from . import patterns
from .patterns import CallPattern, DFPattern, DominatorPattern


class Graph:
    """An expression's nodes in order of evaluation, and which use which; found when first needed."""

    def __init__(self, root: RelayExpr):
        self.root = root

    @cached_property
    def nodes(self) -> list[Node]:
        """Every node, after what it is made of."""
        return list(post_order(self.root))

    @cached_property
    def users(self) -> dict[Node, list[Node]]:
        """The nodes that each node is a part of."""
        users: dict[Node, list[Node]] = {node: [] for node in self.nodes}
        for node in self.nodes:
            for part in dict.fromkeys(parts(node)):
                users[part].append(node)
        return users

    @cached_property
    def dominated(self) -> dict[Node, list[Node]]:
        """The nodes that each node dominates at once: all paths out of them go through it first."""
        number = {node: index for index, node in enumerate(self.nodes)}
        successors = [[(number[user], 0) for user in self.users[node]] for node in self.nodes]
        tree = PostDominatorTree(successors, [node is self.root for node in self.nodes], 0)
        dominated: dict[Node, list[Node]] = {}
        for node, parent in zip(self.nodes, tree.parent, strict=True):
            if parent is not None:
                dominated.setdefault(self.nodes[parent], []).append(node)
        return dominated

    @cached_property
    def types(self) -> Mapping[Node, Attribute]:
        """Returns the types found by inference, for nodes without one; none if inference fails."""
        from ..export import node_types

        try:
            return node_types(self.root)
        except MirError:
            return {}

    def type_of(self, node: Node) -> Type | None:
        """A node's type, or None when it is not known."""
        if isinstance(node, Constant):
            return TensorType(node.value.data.shape, node.value.data.dtype)
        known = node.known_type if isinstance(node, RelayExpr) else None
        if known is None and isinstance(node, Var) and node.type_annotation is not None:
            return node.type_annotation
        if known is None:
            known = self.types.get(node)
        return None if known is None else from_attribute(known)


class Matcher:
    """Matches patterns against the nodes of one graph; `matched` maps each pattern to its nodes."""

    def __init__(self, root: RelayExpr, graph: Graph | None = None):
        self.graph = graph or Graph(root)
        self.matched: dict[DFPattern, list[Node]] = {}
        self._order: list[DFPattern] = []
        self._remembers = True

    def match(self, pattern: DFPattern, node: Node) -> bool:
        """Returns whether the node matches the pattern."""
        self.matched.clear()
        self._order.clear()
        self._remembers = True
        return in_deep_stack(lambda: self._match(pattern, node))

    def _match(self, pattern: DFPattern, node: Node) -> bool:
        if self._remembers and pattern in self.matched:
            return self.matched[pattern][0] is node
        mark = len(self._order)
        if not _CASES[type(pattern)](self, pattern, node):
            self._forget(mark)
            return False
        self.matched.setdefault(pattern, []).append(node)
        self._order.append(pattern)
        return True

    def _forget(self, mark: int) -> None:
        """Takes back what was matched since."""
        while len(self._order) > mark:
            pattern = self._order.pop()
            self.matched[pattern].pop()
            if not self.matched[pattern]:
                del self.matched[pattern]

    def _all(self, wanted: Sequence[DFPattern], nodes: Sequence[Node]) -> bool:
        if len(wanted) != len(nodes):
            return False
        mark = len(self._order)
        for pattern, node in zip(wanted, nodes, strict=True):
            if not self._match(pattern, node):
                self._forget(mark)
                return False
        return True

    # Calls ---------------------------------------------------------------------------------------------------------

    def _call(self, pattern: CallPattern, node: Node) -> bool:
        if not isinstance(node, Call):
            return False
        mark = len(self._order)
        if self._match(pattern.op, node.op):
            if pattern.args is None or self._all(pattern.args, node.args):
                return True
            return _calls(pattern, "add", "multiply") and self._all(pattern.args[::-1], node.args)
        self._forget(mark)
        return self._reassociated(pattern, node)

    def _reassociated(self, pattern: CallPattern, node: Call) -> bool:
        """`(a * b) / c` is `a * (b / c)`, and the other way round."""
        args = pattern.args
        if args is None or len(args) != 2 or not isinstance(node.op, Op):
            return False
        inside = {arg.op.name for arg in node.args if isinstance(arg, Call) and isinstance(arg.op, Op)}
        if _calls(pattern, "divide") and node.op.name == "multiply" and "divide" in inside:
            product = args[0]
            if not isinstance(product, CallPattern) or not _calls(product, "multiply") or product.args is None:
                return False
            for first, second in (product.args, product.args[::-1]):
                quotient = CallPattern(pattern.op, (first, args[1]))
                if self._match(CallPattern(product.op, (second, quotient)), node):
                    return True
            return False
        if _calls(pattern, "multiply") and node.op.name == "divide" and "multiply" in inside:
            for quotient, factor in (args, args[::-1]):
                if isinstance(quotient, CallPattern) and _calls(quotient, "divide") and quotient.args is not None:
                    product = CallPattern(pattern.op, (quotient.args[0], factor))
                    return self._match(CallPattern(quotient.op, (product, quotient.args[1])), node)
        return False

    # Other forms ---------------------------------------------------------------------------------------------------

    def _expr(self, pattern: patterns.ExprPattern, node: Node) -> bool:
        if isinstance(pattern.expr, Op) or isinstance(node, Op):
            return pattern.expr is node
        return pattern.expr is node or (type(pattern.expr) is type(node) and structural_equal(pattern.expr, node))

    def _function(self, pattern: patterns.FunctionPattern, node: Node) -> bool:
        if not isinstance(node, Function):
            return False
        return (pattern.params is None or self._all(pattern.params, node.params)) and self._match(
            pattern.body, node.body
        )

    def _let(self, pattern: patterns.LetPattern, node: Node) -> bool:
        return isinstance(node, Let) and self._all(pattern.inputs(), (node.var, node.value, node.body))

    def _tuple(self, pattern: patterns.TuplePattern, node: Node) -> bool:
        return isinstance(node, Tuple) and (pattern.fields is None or self._all(pattern.fields, node.fields))

    def _get_item(self, pattern: patterns.TupleGetItemPattern, node: Node) -> bool:
        if not isinstance(node, TupleGetItem) or pattern.index not in (-1, node.index):
            return False
        return self._match(pattern.tuple, node.tuple_value)

    def _attr(self, pattern: patterns.AttrPattern, node: Node) -> bool:
        return self._match(pattern.pattern, node) and _has_attributes(node, pattern.attrs)

    def _type(self, pattern: patterns.TypePattern, node: Node) -> bool:
        return self._match(pattern.pattern, node) and self.graph.type_of(node) == pattern.type

    def _dtype(self, pattern: patterns.DataTypePattern, node: Node) -> bool:
        if not self._match(pattern.pattern, node):
            return False
        type = self.graph.type_of(node)
        return isinstance(type, TensorType) and type.dtype == pattern.dtype

    def _shape(self, pattern: patterns.ShapePattern, node: Node) -> bool:
        if not self._match(pattern.pattern, node):
            return False
        type = self.graph.type_of(node)
        return isinstance(type, TensorType) and type.shape == TensorType(pattern.shape, type.dtype).shape

    # Dominators ----------------------------------------------------------------------------------------------------

    def _dominator(self, pattern: DominatorPattern, node: Node) -> bool:
        if not self._match(pattern.child, node):
            return False
        follows = self._follows_path(pattern, node)
        self._remembers = True
        return follows and self._reaches_parent(pattern, node)

    def _follows_path(self, pattern: DominatorPattern, child: Node) -> bool:
        """Returns whether all that `child` is computed from comes from one parent, along the path.

        Arguments are followed from left to right.
        """
        seen = {child}
        pending = [child]
        while pending:
            node = pending.pop()
            if node is not child:
                self._remembers = True
                if self._match(pattern.parent, node):
                    continue
                self._remembers = False
                if not self._match(pattern.path, node):
                    return False
            inputs = node.args if isinstance(node, Call) else parts(node)
            if not inputs:
                return False
            fresh = [part for part in dict.fromkeys(inputs) if part not in seen]
            seen.update(fresh)
            pending += reversed(fresh)
        return True

    def _reaches_parent(self, pattern: DominatorPattern, child: Node) -> bool:
        """Returns whether some parent is dominated by `child`."""
        pending = [child]
        while pending:
            for inner in self.graph.dominated.get(pending.pop(), ()):
                if self._match(pattern.parent, inner):
                    return True
                pending.append(inner)
        return False


_CASES: dict[type[DFPattern], Callable[[Matcher, Any, Node], bool]] = {
    patterns.WildcardPattern: lambda self, pattern, node: True,
    patterns.ConstantPattern: lambda self, pattern, node: isinstance(node, Constant),
    patterns.VarPattern: lambda self, pattern, node: isinstance(node, Var) and pattern.name in ("", node.name_hint),
    patterns.ExprPattern: Matcher._expr,  # pyright: ignore[reportPrivateUsage]
    patterns.CallPattern: Matcher._call,  # pyright: ignore[reportPrivateUsage]
    patterns.FunctionPattern: Matcher._function,  # pyright: ignore[reportPrivateUsage]
    patterns.IfPattern: lambda self, pattern, node: (
        isinstance(node, If) and self._all(pattern.inputs(), parts(node))  # pyright: ignore[reportPrivateUsage]
    ),
    patterns.LetPattern: Matcher._let,  # pyright: ignore[reportPrivateUsage]
    patterns.TuplePattern: Matcher._tuple,  # pyright: ignore[reportPrivateUsage]
    patterns.TupleGetItemPattern: Matcher._get_item,  # pyright: ignore[reportPrivateUsage]
    patterns.AltPattern: lambda self, pattern, node: (
        self._match(pattern.left, node) or self._match(pattern.right, node)  # pyright: ignore[reportPrivateUsage]
    ),
    patterns.AttrPattern: Matcher._attr,  # pyright: ignore[reportPrivateUsage]
    patterns.TypePattern: Matcher._type,  # pyright: ignore[reportPrivateUsage]
    patterns.DataTypePattern: Matcher._dtype,  # pyright: ignore[reportPrivateUsage]
    patterns.ShapePattern: Matcher._shape,  # pyright: ignore[reportPrivateUsage]
    patterns.DominatorPattern: Matcher._dominator,  # pyright: ignore[reportPrivateUsage]
}


def _calls(pattern: CallPattern, *names: str) -> bool:
    """Returns whether a pattern is a call of one of these operators."""
    callee = pattern.op.expr if isinstance(pattern.op, patterns.ExprPattern) else None
    return isinstance(callee, Op) and callee.name in names


def _has_attributes(node: Node, wanted: Mapping[str, object]) -> bool:
    match node:
        case Op():
            entry = None if node.operator is None else node.operator.entry
            return entry is not None and all(
                name == "TOpPattern" and int(entry.pattern) == plain(value) for name, value in wanted.items()
            )
        case Call() | Function():
            attrs = node.attrs
            operator = node.op.operator if isinstance(node, Call) and isinstance(node.op, Op) else None
            for name, value in wanted.items():
                if attrs is None or name not in attrs:
                    return False
                value: Any = plain(value)
                if operator is not None:
                    value = operator.entry.specs[name].convert(value)
                if plain(attrs[name]) != value:
                    return False
            return True
        case _:
            return False
