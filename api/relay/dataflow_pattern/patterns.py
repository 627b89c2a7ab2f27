"""Patterns: small graphs of nodes, each of which constrains an expression."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...ir.op import Op
from ..expr import RelayExpr
from ..ty import Type

if TYPE_CHECKING:
    from collections.abc import Callable as _Callable


class DFPattern:
    """A pattern. One that occurs several times in a larger one matches the same expression each time.

    `p(a, b)` is a call, `p(None)` one of any arguments, `p | q` either, `p + q` and the like calls of operators.
    """

    __slots__ = ()

    def inputs(self) -> Sequence[DFPattern]:
        """The patterns that this one is made of."""
        return ()

    def __call__(self, *args: DFPattern | None) -> CallPattern:
        given = [arg for arg in args if arg is not None]
        if args == (None,):
            return CallPattern(self, None)
        if len(given) < len(args):
            raise TypeError("None stands for any arguments, and then it is the only one: p(None)")
        return CallPattern(self, given)

    def __str__(self) -> str:
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
        from .rewriting import partition

        return partition(self, expr, attrs, check)


class ExprPattern(DFPattern):
    """This expression, up to the names of what it binds; an operator is itself."""

    __slots__ = ("expr",)

    def __init__(self, expr: RelayExpr | Op):
        self.expr = expr


class VarPattern(DFPattern):
    """A variable, of that name unless it is empty."""

    __slots__ = ("name",)

    def __init__(self, name_hint: str = ""):
        self.name = name_hint


class ConstantPattern(DFPattern):
    """A constant."""

    __slots__ = ()


class WildcardPattern(DFPattern):
    """Anything."""

    __slots__ = ()


class CallPattern(DFPattern):
    """A call of what matches `op`, with arguments that match `args`; any arguments when that is None."""

    __slots__ = ("args", "op")

    def __init__(self, op: DFPattern, args: Sequence[DFPattern] | None):
        self.op = op
        self.args = None if args is None else tuple(args)

    def inputs(self) -> Sequence[DFPattern]:
        return (self.op, *(self.args or ()))


class FunctionPattern(DFPattern):
    """A function of such parameters (any when None) and such a body."""

    __slots__ = ("body", "params")

    def __init__(self, params: Sequence[DFPattern] | None, body: DFPattern):
        self.params = None if params is None else tuple(params)
        self.body = body

    def inputs(self) -> Sequence[DFPattern]:
        return (*(self.params or ()), self.body)


class IfPattern(DFPattern):
    """A branch."""

    __slots__ = ("cond", "false_branch", "true_branch")

    def __init__(self, cond: DFPattern, true_branch: DFPattern, false_branch: DFPattern):
        self.cond, self.true_branch, self.false_branch = cond, true_branch, false_branch

    def inputs(self) -> Sequence[DFPattern]:
        return (self.cond, self.true_branch, self.false_branch)


class LetPattern(DFPattern):
    """A let."""

    __slots__ = ("body", "value", "var")

    def __init__(self, var: DFPattern, value: DFPattern, body: DFPattern):
        self.var, self.value, self.body = var, value, body

    def inputs(self) -> Sequence[DFPattern]:
        return (self.var, self.value, self.body)


class TuplePattern(DFPattern):
    """A tuple of such fields; any fields when None."""

    __slots__ = ("fields",)

    def __init__(self, fields: Sequence[DFPattern] | None):
        self.fields = None if fields is None else tuple(fields)

    def inputs(self) -> Sequence[DFPattern]:
        return self.fields or ()


class TupleGetItemPattern(DFPattern):
    """A field of a tuple, of any index when that is None."""

    __slots__ = ("index", "tuple")

    def __init__(self, tuple_value: DFPattern, index: int | None = None):
        self.tuple = tuple_value
        self.index = -1 if index is None else index

    def inputs(self) -> Sequence[DFPattern]:
        return (self.tuple,)


class AltPattern(DFPattern):
    """Either; the left one is tried first."""

    __slots__ = ("left", "right")

    def __init__(self, left: DFPattern, right: DFPattern):
        self.left, self.right = left, right

    def inputs(self) -> Sequence[DFPattern]:
        return (self.left, self.right)


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


class TypePattern(DFPattern):
    """Matches expressions of that type that match `pattern`."""

    __slots__ = ("pattern", "type")

    def __init__(self, pattern: DFPattern, ttype: Type):
        self.pattern = pattern
        self.type = ttype

    def inputs(self) -> Sequence[DFPattern]:
        return (self.pattern,)


class DataTypePattern(DFPattern):
    """Matches tensors of that dtype that match `pattern`."""

    __slots__ = ("dtype", "pattern")

    def __init__(self, pattern: DFPattern, dtype: str):
        self.pattern = pattern
        self.dtype = dtype

    def inputs(self) -> Sequence[DFPattern]:
        return (self.pattern,)


class ShapePattern(DFPattern):
    """Matches tensors of that shape that match `pattern`."""

    __slots__ = ("pattern", "shape")

    def __init__(self, pattern: DFPattern, shape: Sequence[object]):
        self.pattern = pattern
        self.shape = tuple(shape)

    def inputs(self) -> Sequence[DFPattern]:
        return (self.pattern,)


class DominatorPattern(DFPattern):
    """`child`, which every path from a `parent` goes through, along nodes that match `path`."""

    __slots__ = ("child", "parent", "path")

    def __init__(self, parent: DFPattern, path: DFPattern, child: DFPattern):
        self.parent, self.path, self.child = parent, path, child

    def inputs(self) -> Sequence[DFPattern]:
        return (self.parent, self.path, self.child)


def all_patterns(root: DFPattern) -> Iterator[DFPattern]:
    """Every node of a pattern, once."""
    seen: set[DFPattern] = set()
    pending = [root]
    while pending:
        pattern = pending.pop()
        if pattern not in seen:
            seen.add(pattern)
            yield pattern
            pending += reversed(pattern.inputs())


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
    from .matcher import Matcher

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


if TYPE_CHECKING:
    Check = _Callable[[RelayExpr], bool]
