"""Patterns: small graphs of nodes, each of which constrains an expression."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ...ir.node import Node
from ...ir.op import Op, plain
from ...ir.structural import structural_equal
from ..expr import Call, Constant, Function, If, Let, RelayExpr, Tuple, TupleGetItem, Var
from ..graph import parts, post_order
from ..ty import TensorType, Type
from . import rewriting
from .matcher import Matcher


class DFPattern:
    """A pattern. One that occurs several times in a larger one matches the same expression each time.

    `p(a, b)` is a call, `p(None)` one of any arguments, `p | q` either, `p + q` and the like calls of operators.
    """

    __slots__ = ()

    def inputs(self) -> Sequence[DFPattern]:
        """Returns the patterns that this one is made of."""
        return ()

    def fits(self, matcher: Matcher, node: Node) -> bool:
        """Returns whether a node matches, by the matcher's state; each kind of pattern defines it."""
        raise NotImplementedError

    def boundary(self, nodes: Sequence[Node]) -> Sequence[Node]:
        """Returns the inputs of a match at the nodes that this part of the pattern matched."""
        return () if self.inputs() else nodes

    def interior(self, matched: Mapping[DFPattern, Sequence[Node]]) -> Iterable[Node]:
        """Returns nodes that belong to a match even if no pattern names them; none of them is an input."""
        return ()

    def wants_constant(self) -> bool:
        """Returns whether a constant that matches is part of the match, not an input of it."""
        return False

    def __call__(self, *args: DFPattern | None) -> CallPattern:
        given = [arg for arg in args if arg is not None]
        if args == (None,):
            return CallPattern(self, None)
        if len(given) < len(args):
            raise TypeError("None stands for any arguments, and then it is the only one: p(None)")
        return CallPattern(self, given)

    def __repr__(self) -> str:
        return _pattern_text(self)

    def __or__(self, other: DFPattern) -> AltPattern:
        return AltPattern(self, other)

    def __add__(self, other: DFPattern) -> CallPattern:
        return is_op("add")(self, other)

    def __sub__(self, other: DFPattern) -> CallPattern:
        return is_op("subtract")(self, other)

    def __mul__(self, other: DFPattern) -> CallPattern:
        return is_op("multiply")(self, other)

    def __truediv__(self, other: DFPattern) -> CallPattern:
        return is_op("divide")(self, other)

    def has_attr(self, attrs: Mapping[str, object]) -> AttrPattern:
        """This, with attributes of these values."""
        return AttrPattern(self, attrs)

    def has_type(self, ttype: Type) -> TypePattern:
        """This, of that type."""
        return TypePattern(self, ttype)

    def has_dtype(self, dtype: str) -> DataTypePattern:
        """This, of that dtype."""
        return DataTypePattern(self, dtype)

    def has_shape(self, shape: Sequence[object]) -> ShapePattern:
        """This, of that shape."""
        return ShapePattern(self, shape)

    def optional(self, option_constructor: Callable[[DFPattern], DFPattern]) -> AltPattern:
        """This, or what the function makes around it."""
        return self | option_constructor(self)

    def dominates(self, parent: DFPattern, path: DFPattern | None = None) -> DominatorPattern:
        """This, with every path to it coming from `parent` through nodes that match `path`."""
        return DominatorPattern(parent, WildcardPattern() if path is None else path, self)

    def match(self, expr: RelayExpr) -> bool:
        """Returns whether the expression matches."""
        return match(self, expr)

    def partition(
        self,
        expr: RelayExpr,
        attrs: Mapping[str, object] | None = None,
        check: Callable[[Any], bool] = lambda _: True,
    ) -> RelayExpr:
        """The expression with each match that `check` accepts put into a function of its own."""
        return rewriting.partition(self, expr, attrs, check)


class ExprPattern(DFPattern):
    """This expression, up to the names of what it binds; an operator is itself."""

    __slots__ = ("expr",)

    def __init__(self, expr: RelayExpr | Op):
        self.expr = expr

    def fits(self, matcher: Matcher, node: Node) -> bool:
        if isinstance(self.expr, Op) or isinstance(node, Op):
            return self.expr is node
        return self.expr is node or (type(self.expr) is type(node) and structural_equal(self.expr, node))

    def wants_constant(self) -> bool:
        return isinstance(self.expr, Constant)


class VarPattern(DFPattern):
    """A variable, of that name unless it is empty."""

    __slots__ = ("name",)

    def __init__(self, name_hint: str = ""):
        self.name = name_hint

    def fits(self, matcher: Matcher, node: Node) -> bool:
        return isinstance(node, Var) and self.name in ("", node.name_hint)


class ConstantPattern(DFPattern):
    """A constant."""

    __slots__ = ()

    def fits(self, matcher: Matcher, node: Node) -> bool:
        return isinstance(node, Constant)

    def wants_constant(self) -> bool:
        return True


class WildcardPattern(DFPattern):
    """Anything."""

    __slots__ = ()

    def fits(self, matcher: Matcher, node: Node) -> bool:
        return True


class CallPattern(DFPattern):
    """A call of what matches `op`, with arguments that match `args`; any arguments when that is None."""

    __slots__ = ("args", "op")

    def __init__(self, op: DFPattern, args: Sequence[DFPattern] | None):
        self.op = op
        self.args = None if args is None else tuple(args)

    def inputs(self) -> Sequence[DFPattern]:
        return (self.op, *(self.args or ()))

    def fits(self, matcher: Matcher, node: Node) -> bool:
        if not isinstance(node, Call):
            return False
        mark = matcher.mark()
        if matcher.fits(self.op, node.op):
            if self.args is None or matcher.all_fit(self.args, node.args):
                return True
            return self._calls("add", "multiply") and matcher.all_fit(self.args[::-1], node.args)
        matcher.forget(mark)
        return self._reassociated(matcher, node)

    def boundary(self, nodes: Sequence[Node]) -> Sequence[Node]:
        return [arg for node in nodes if isinstance(node, Call) for arg in node.args] if self.args is None else ()

    def _calls(self, *names: str) -> bool:
        """Returns whether this is a call of one of these operators."""
        callee = self.op.expr if isinstance(self.op, ExprPattern) else None
        return isinstance(callee, Op) and callee.name in names

    def _reassociated(self, matcher: Matcher, node: Call) -> bool:
        """Matches `(a * b) / c` as `a * (b / c)`, and the other way round."""
        args = self.args
        if args is None or len(args) != 2 or not isinstance(node.op, Op):
            return False
        inside = {arg.op.name for arg in node.args if isinstance(arg, Call) and isinstance(arg.op, Op)}
        if self._calls("divide") and node.op.name == "multiply" and "divide" in inside:
            product = args[0]
            if not isinstance(product, CallPattern) or not product._calls("multiply") or product.args is None:
                return False
            for first, second in (product.args, product.args[::-1]):
                quotient = CallPattern(self.op, (first, args[1]))
                if matcher.fits(CallPattern(product.op, (second, quotient)), node):
                    return True
            return False
        if self._calls("multiply") and node.op.name == "divide" and "multiply" in inside:
            for quotient, factor in (args, args[::-1]):
                if isinstance(quotient, CallPattern) and quotient._calls("divide") and quotient.args is not None:
                    product = CallPattern(self.op, (quotient.args[0], factor))
                    return matcher.fits(CallPattern(quotient.op, (product, quotient.args[1])), node)
        return False


class FunctionPattern(DFPattern):
    """A function of such parameters (any when None) and such a body."""

    __slots__ = ("body", "params")

    def __init__(self, params: Sequence[DFPattern] | None, body: DFPattern):
        self.params = None if params is None else tuple(params)
        self.body = body

    def inputs(self) -> Sequence[DFPattern]:
        return (*(self.params or ()), self.body)

    def fits(self, matcher: Matcher, node: Node) -> bool:
        if not isinstance(node, Function):
            return False
        return (self.params is None or matcher.all_fit(self.params, node.params)) and matcher.fits(self.body, node.body)

    def interior(self, matched: Mapping[DFPattern, Sequence[Node]]) -> Iterable[Node]:
        return [node for f in matched.get(self, ()) if isinstance(f, Function) for node in post_order(f.body)]


class IfPattern(DFPattern):
    """A branch."""

    __slots__ = ("cond", "false_branch", "true_branch")

    def __init__(self, cond: DFPattern, true_branch: DFPattern, false_branch: DFPattern):
        self.cond, self.true_branch, self.false_branch = cond, true_branch, false_branch

    def inputs(self) -> Sequence[DFPattern]:
        return (self.cond, self.true_branch, self.false_branch)

    def fits(self, matcher: Matcher, node: Node) -> bool:
        return isinstance(node, If) and matcher.all_fit(self.inputs(), parts(node))


class LetPattern(DFPattern):
    """A let."""

    __slots__ = ("body", "value", "var")

    def __init__(self, var: DFPattern, value: DFPattern, body: DFPattern):
        self.var, self.value, self.body = var, value, body

    def inputs(self) -> Sequence[DFPattern]:
        return (self.var, self.value, self.body)

    def fits(self, matcher: Matcher, node: Node) -> bool:
        return isinstance(node, Let) and matcher.all_fit(self.inputs(), (node.var, node.value, node.body))


class TuplePattern(DFPattern):
    """A tuple of such fields; any fields when None."""

    __slots__ = ("fields",)

    def __init__(self, fields: Sequence[DFPattern] | None):
        self.fields = None if fields is None else tuple(fields)

    def inputs(self) -> Sequence[DFPattern]:
        return self.fields or ()

    def fits(self, matcher: Matcher, node: Node) -> bool:
        return isinstance(node, Tuple) and (self.fields is None or matcher.all_fit(self.fields, node.fields))

    def boundary(self, nodes: Sequence[Node]) -> Sequence[Node]:
        return [part for node in nodes for part in parts(node)] if self.fields is None else super().boundary(nodes)


class TupleGetItemPattern(DFPattern):
    """A field of a tuple, of any index when that is None."""

    __slots__ = ("index", "tuple")

    def __init__(self, tuple_value: DFPattern, index: int | None = None):
        self.tuple = tuple_value
        self.index = -1 if index is None else index

    def inputs(self) -> Sequence[DFPattern]:
        return (self.tuple,)

    def fits(self, matcher: Matcher, node: Node) -> bool:
        if not isinstance(node, TupleGetItem) or self.index not in (-1, node.index):
            return False
        return matcher.fits(self.tuple, node.tuple_value)


class AltPattern(DFPattern):
    """Either; the left one is tried first."""

    __slots__ = ("left", "right")

    def __init__(self, left: DFPattern, right: DFPattern):
        self.left, self.right = left, right

    def inputs(self) -> Sequence[DFPattern]:
        return (self.left, self.right)

    def fits(self, matcher: Matcher, node: Node) -> bool:
        return matcher.fits(self.left, node) or matcher.fits(self.right, node)

    def wants_constant(self) -> bool:
        return self.left.wants_constant() or self.right.wants_constant()


class AttrPattern(DFPattern):
    """Matches a call, an operator or a function with these attributes.

    An operator has `TOpPattern`, its fusion kind.
    """

    __slots__ = ("attrs", "pattern")

    def __init__(self, pattern: DFPattern, attrs: Mapping[str, object]):
        self.pattern = pattern
        self.attrs = dict(attrs)

    def inputs(self) -> Sequence[DFPattern]:
        return (self.pattern,)

    def fits(self, matcher: Matcher, node: Node) -> bool:
        return matcher.fits(self.pattern, node) and _has_attributes(node, self.attrs)


class TypePattern(DFPattern):
    """Matches expressions of that type that match `pattern`."""

    __slots__ = ("pattern", "type")

    def __init__(self, pattern: DFPattern, ttype: Type):
        self.pattern = pattern
        self.type = ttype

    def inputs(self) -> Sequence[DFPattern]:
        return (self.pattern,)

    def fits(self, matcher: Matcher, node: Node) -> bool:
        return matcher.fits(self.pattern, node) and matcher.graph.type_of(node) == self.type


class DataTypePattern(DFPattern):
    """Matches tensors of that dtype that match `pattern`."""

    __slots__ = ("dtype", "pattern")

    def __init__(self, pattern: DFPattern, dtype: str):
        self.pattern = pattern
        self.dtype = dtype

    def inputs(self) -> Sequence[DFPattern]:
        return (self.pattern,)

    def fits(self, matcher: Matcher, node: Node) -> bool:
        if not matcher.fits(self.pattern, node):
            return False
        type = matcher.graph.type_of(node)
        return isinstance(type, TensorType) and type.dtype == self.dtype


class ShapePattern(DFPattern):
    """Matches tensors of that shape that match `pattern`."""

    __slots__ = ("pattern", "shape")

    def __init__(self, pattern: DFPattern, shape: Sequence[object]):
        self.pattern = pattern
        self.shape = tuple(shape)

    def inputs(self) -> Sequence[DFPattern]:
        return (self.pattern,)

    def fits(self, matcher: Matcher, node: Node) -> bool:
        if not matcher.fits(self.pattern, node):
            return False
        type = matcher.graph.type_of(node)
        return isinstance(type, TensorType) and type.shape == TensorType(self.shape, type.dtype).shape


class DominatorPattern(DFPattern):
    """`child`, which every path from a `parent` goes through, along nodes that match `path`."""

    __slots__ = ("child", "parent", "path")

    def __init__(self, parent: DFPattern, path: DFPattern, child: DFPattern):
        self.parent, self.path, self.child = parent, path, child

    def inputs(self) -> Sequence[DFPattern]:
        return (self.parent, self.path, self.child)

    def fits(self, matcher: Matcher, node: Node) -> bool:
        if not matcher.fits(self.child, node):
            return False
        follows = self._follows_path(matcher, node)
        matcher.remembers = True
        return follows and self._reaches_parent(matcher, node)

    def interior(self, matched: Mapping[DFPattern, Sequence[Node]]) -> Iterable[Node]:
        return (*matched.get(self.parent, ()), *matched.get(self.path, ()))

    def _follows_path(self, matcher: Matcher, child: Node) -> bool:
        """Returns whether all that `child` is computed from comes from one parent, along the path.

        Arguments are followed from left to right.
        """
        seen = {child}
        pending = [child]
        while pending:
            node = pending.pop()
            if node is not child:
                matcher.remembers = True
                if matcher.fits(self.parent, node):
                    continue
                matcher.remembers = False
                if not matcher.fits(self.path, node):
                    return False
            inputs = node.args if isinstance(node, Call) else parts(node)
            if not inputs:
                return False
            fresh = [part for part in dict.fromkeys(inputs) if part not in seen]
            seen.update(fresh)
            pending += reversed(fresh)
        return True

    def _reaches_parent(self, matcher: Matcher, child: Node) -> bool:
        """Returns whether some parent is dominated by `child`."""
        pending = [child]
        while pending:
            for inner in matcher.graph.dominated.get(pending.pop(), ()):
                if matcher.fits(self.parent, inner):
                    return True
                pending.append(inner)
        return False


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


def wildcard() -> WildcardPattern:
    """Anything."""
    return WildcardPattern()


def is_var(name: str = "") -> VarPattern:
    """A variable, of that name unless it is empty."""
    return VarPattern(name)


def is_constant() -> ConstantPattern:
    """A constant."""
    return ConstantPattern()


def is_expr(expr: RelayExpr) -> ExprPattern:
    """This very expression, or one structurally equal to it."""
    return ExprPattern(expr)


def is_op(op_name: str) -> ExprPattern:
    """The operator of that name, to be called: `is_op("add")(a, b)`. Raises MirError where there is none."""
    return ExprPattern(Op.get(op_name))


def is_tuple(fields: Sequence[DFPattern] | None) -> TuplePattern:
    """A tuple of such fields; any tuple when None."""
    return TuplePattern(fields)


def is_tuple_get_item(tuple_value: DFPattern, index: int | None = None) -> TupleGetItemPattern:
    """A field of such a tuple, of any index when that is None."""
    return TupleGetItemPattern(tuple_value, index)


def is_if(cond: DFPattern, true_branch: DFPattern, false_branch: DFPattern) -> IfPattern:
    """A branch of such parts."""
    return IfPattern(cond, true_branch, false_branch)


def is_let(var: DFPattern, value: DFPattern, body: DFPattern) -> LetPattern:
    """A let of such parts."""
    return LetPattern(var, value, body)


def has_type(ttype: Type, pattern: DFPattern | None = None) -> TypePattern:
    """Matches an expression of that type that matches the pattern (by default any)."""
    return TypePattern(pattern or WildcardPattern(), ttype)


def has_dtype(dtype: str, pattern: DFPattern | None = None) -> DataTypePattern:
    """Matches a tensor of that dtype that matches the pattern (by default any)."""
    return DataTypePattern(pattern or WildcardPattern(), dtype)


def has_shape(shape: Sequence[object], pattern: DFPattern | None = None) -> ShapePattern:
    """Matches a tensor of that shape that matches the pattern (by default any)."""
    return ShapePattern(pattern or WildcardPattern(), shape)


def has_attr(attrs: Mapping[str, object], pattern: DFPattern | None = None) -> AttrPattern:
    """Matches an expression with these attributes that matches the pattern (by default any)."""
    return AttrPattern(pattern or WildcardPattern(), attrs)


def dominates(parent: DFPattern, path: DFPattern, child: DFPattern) -> DominatorPattern:
    """`child`, with every path to it coming from `parent` through nodes that match `path`."""
    return DominatorPattern(parent, path, child)


def match(pattern: DFPattern, expr: RelayExpr) -> bool:
    """Returns whether the expression matches the pattern."""
    return Matcher(expr).match(pattern, expr)


_LONGEST = 400
"""The most characters of a part's text; the rest is cut off. A part that is shared is written each time."""


def _pattern_text(root: DFPattern) -> str:
    """The text of a pattern; nothing recurses, and nothing grows faster than the pattern."""
    texts: dict[DFPattern, str] = {}
    pending: list[tuple[DFPattern, bool]] = [(root, False)]
    while pending:
        pattern, ready = pending.pop()
        if ready:
            text = _text(pattern, texts.__getitem__)
            texts[pattern] = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
        elif pattern not in texts:
            pending.append((pattern, True))
            pending += [(part, False) for part in pattern.inputs()]
    return texts[root]


def _text(pattern: DFPattern, of: Callable[[DFPattern], str]) -> str:
    def several(parts: Sequence[DFPattern] | None) -> str:
        return "..." if parts is None else ", ".join(map(of, parts))

    match pattern:
        case WildcardPattern():
            return "*"
        case ConstantPattern():
            return "constant"
        case VarPattern():
            return f"%{pattern.name or '*'}"
        case ExprPattern():
            return pattern.expr.name if isinstance(pattern.expr, Op) else f"<{pattern.expr}>"
        case CallPattern():
            return f"{of(pattern.op)}({several(pattern.args)})"
        case FunctionPattern():
            return f"fn ({several(pattern.params)}) {{ {of(pattern.body)} }}"
        case IfPattern():
            branches = of(pattern.true_branch), of(pattern.false_branch)
            return f"if ({of(pattern.cond)}) {{ {branches[0]} }} else {{ {branches[1]} }}"
        case LetPattern():
            return f"let {of(pattern.var)} = {of(pattern.value)}; {of(pattern.body)}"
        case TuplePattern():
            return f"({several(pattern.fields)})"
        case TupleGetItemPattern():
            return f"{of(pattern.tuple)}.{'*' if pattern.index == -1 else pattern.index}"
        case AltPattern():
            return f"({of(pattern.left)} | {of(pattern.right)})"
        case AttrPattern():
            return f"{of(pattern.pattern)}{{{', '.join(f'{name}={value!r}' for name, value in pattern.attrs.items())}}}"
        case TypePattern():
            return f"({of(pattern.pattern)}: {pattern.type})"
        case DataTypePattern():
            return f"({of(pattern.pattern)}: {pattern.dtype})"
        case ShapePattern():
            return f"({of(pattern.pattern)}: [{', '.join(map(str, pattern.shape))}])"
        case DominatorPattern():
            return f"dominates({of(pattern.parent)}, {of(pattern.path)}, {of(pattern.child)})"
        case _:
            return type(pattern).__name__
