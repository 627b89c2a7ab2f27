"""Rewrite rules in Python: expressions on operators, which become the IR of a `.mir` file's rules.

    from mirstack import rules

    x, y, z = rules.values("x y z")
    m = rules.op.multiply(x, y)
    fma = rules.rewrite("fma", rules.op.add(m, z), rules.op.ewise_fma(x, y, z), where=[rules.one_use(m)])
    module = rules.apply(module, [fma])

Every function that a rule's text may call is here by its name (`rules.one_use`, `rules.compose`); Python's operators mean on
values what they mean in the text, `&`, `|` and `~` being `and`, `or` and `not`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias, cast

from xdsl.dialects.builtin import LocationAttr, ModuleOp
from xdsl.ir import Block, Operation, Region

from ..dialects import rule as ir
from ..dialects.rule.functions import FUNCTIONS, named_function
from ..parser.rules import tree
from ..parser.rules.build import build_item
from ..parser.rules.expression_text import callee_text, expression_text, rest_text
from ..support.arguments import check, integer, items
from ..support.diagnostics import file_loc
from ..support.verify import verify
from .ir.module import IRModule

__all__ = [
    "Expr", "any_value", "apply", "attr", "const", "fold", "function", "ifelse", "let", "one_of", "op", "rest", "rewrite",
    "ruleset", "run", "tuple_of", "values",
]  # fmt: skip

Argument: TypeAlias = "Expr | int | float | bool | str | Sequence[Argument] | None"


class Expr:
    """An expression of a rule: a captured value or attribute, an op applied to some, a condition."""

    __slots__ = ("_capture", "_make")
    __hash__ = object.__hash__

    def __init__(self, make: Callable[[_Names], tree.Node], capture: str | None = None):
        self._make, self._capture = make, capture

    def named(self, name: str) -> Expr:
        """Returns the same op of a pattern, captured as `%name`; otherwise a shared op is named automatically."""
        return Expr(self._make, name)

    def isin(self, items: Argument) -> Expr:
        """`self in items`"""
        return _operation("contains", items, self)

    def __getattr__(self, name: str) -> Expr:
        # Notebooks ask for `_repr_html_` and others of one underscore.
        if name.startswith("_"):
            raise AttributeError(name)
        return Expr(lambda names: tree.RuleMember(0, names.node(self), name))

    def __getitem__(self, index: Any) -> Expr:
        if isinstance(index, slice):
            return _operation("slice", self, cast("Any", index).start, cast("Any", index).stop)
        return _operation("getitem", self, index)

    def field(self, index: int) -> Expr:
        """A field of a tuple: `%t.0`."""
        return Expr(lambda names: tree.Field(0, names.node(self), index))

    def __add__(self, other: Argument) -> Expr:
        return _operation("add", self, other)

    def __radd__(self, other: Argument) -> Expr:
        return _operation("add", other, self)

    def __sub__(self, other: Argument) -> Expr:
        return _operation("sub", self, other)

    def __rsub__(self, other: Argument) -> Expr:
        return _operation("sub", other, self)

    def __mul__(self, other: Argument) -> Expr:
        return _operation("mul", self, other)

    def __rmul__(self, other: Argument) -> Expr:
        return _operation("mul", other, self)

    def __truediv__(self, other: Argument) -> Expr:
        return _operation("truediv", self, other)

    def __rtruediv__(self, other: Argument) -> Expr:
        return _operation("truediv", other, self)

    def __mod__(self, other: Argument) -> Expr:
        return _operation("mod", self, other)

    def __neg__(self) -> Expr:
        return _operation("neg", self)

    def __lt__(self, other: Argument) -> Expr:
        return _operation("lt", self, other)

    def __le__(self, other: Argument) -> Expr:
        return _operation("le", self, other)

    def __gt__(self, other: Argument) -> Expr:
        return _operation("gt", self, other)

    def __ge__(self, other: Argument) -> Expr:
        return _operation("ge", self, other)

    def __eq__(self, other: Any) -> Expr:  # type: ignore[override]
        return _operation("eq", self, other)

    def __ne__(self, other: Any) -> Expr:  # type: ignore[override]
        return _operation("ne", self, other)

    def __and__(self, other: Argument) -> Expr:
        return _operation("and_", self, other)

    def __or__(self, other: Argument) -> Expr:
        return _operation("or_", self, other)

    def __invert__(self) -> Expr:
        return _operation("not_", self)

    def __repr__(self) -> str:
        return expression_text(_ShownNames().node(self))

    def __bool__(self) -> bool:
        raise TypeError(
            "a rule's condition is known only when the rule is applied: write &, | and ~ for and, or and not"
        )

    def __iter__(self) -> Any:
        raise TypeError("how long a captured value is, is known only when the rule is applied")


class _Let(Expr):
    """`%s = …` or `$s = …` of a where clause."""

    __slots__ = ("bind",)

    def __init__(self, name: str, value: Expr, is_attribute: bool):
        if is_attribute:
            super().__init__(lambda names: tree.Attr(0, name))
            self.bind: Callable[[_Names], tree.Node | tree.Bind] = lambda names: tree.Bind(0, name, names.node(value))
        else:
            super().__init__(lambda names: tree.Local(0, name))
            self.bind = lambda names: tree.Named(0, name, names.node(value))

    def __repr__(self) -> str:
        return expression_text(self.bind(_ShownNames()))


class _Names:
    """The names of a rule's expressions while it is built: those of the pattern are used by name after it."""

    def __init__(self) -> None:
        self.in_pattern = True
        self.captures: dict[int, str] = {}
        self.used: set[int] = set()
        self.pattern_ops: dict[int, Expr] = {}

    def node(self, value: Argument) -> tree.Node:
        """The syntax tree of an expression or a Python value."""
        if not isinstance(value, Expr):
            if isinstance(value, Sequence) and not isinstance(value, str):
                return tree.Tuple(0, [self.node(item) for item in value], brackets=True)
            return tree.Literal(0, value)
        key = id(value)
        if not self.in_pattern and key in self.pattern_ops:
            self.used.add(key)
            return tree.Local(0, self.captures[key])
        node = value._make(self)  # pyright: ignore[reportPrivateUsage]
        is_op = isinstance(node, tree.RuleCall | tree.Tuple | tree.Field | tree.Operation)
        if not self.in_pattern or not is_op:
            return node
        own = value._capture  # pyright: ignore[reportPrivateUsage]
        if key not in self.captures:
            self.captures[key] = own or f"v{len(self.captures)}"
            self.pattern_ops[key] = value
        if own is None and key not in self.used:
            return node
        return tree.Named(0, self.captures[key], node)


class _ShownNames(_Names):
    """The names of an expression that is shown: of a large one only a part, the rest as `%…`."""

    def __init__(self) -> None:
        super().__init__()
        self.left = _SHOWN_NODES

    def node(self, value: Argument) -> tree.Node:
        self.left -= 1
        return tree.Local(0, "…") if self.left < 0 else super().node(value)


_SHOWN_NODES = 100
"""Expressions share parts: as text they may be exponentially larger than what they were made of."""


def _operation(function: str, *args: Argument) -> Expr:
    return Expr(lambda names: tree.Operation(0, function, tuple(names.node(arg) for arg in args)))


def values(names: str) -> Any:
    """Captures `%x`, one for each of the names, which blanks separate; a tuple of them unless it is one."""
    check(names, "names", "names with blanks between them, such as 'x y'", str)
    found = tuple(Expr(lambda _, name=name: tree.Local(0, name)) for name in names.split())
    return found[0] if len(found) == 1 else found


def run(name: str) -> Expr:
    """`%xs...`: any number of neighbouring operands."""
    check(name, "name", "the name of a capture", str)
    return Expr(lambda _: tree.Run(0, name))


def any_value() -> Expr:
    """`_`: any value."""
    return Expr(lambda _: tree.Wildcard(0))


def attr(name: str) -> Expr:
    """`$a`: an attribute of the pattern."""
    check(name, "name", "the name of an attribute's capture", str)
    return Expr(lambda _: tree.Attr(0, name))


class _Rest:
    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return rest_text(self.name)


def rest(name: str) -> _Rest:
    """`**$rest`: the attributes that are not named; the last argument of an op."""
    check(name, "name", "the name of a capture", str)
    return _Rest(name)


def tuple_of(*fields: Argument) -> Expr:
    """`(a, b)`: a tuple of values."""
    return Expr(lambda names: tree.Tuple(0, [names.node(field) for field in fields]))


def let(name: str, value: Argument, *, attribute: bool = False) -> Expr:
    """Binds `%name = value` (`$name` for an attribute) among the conditions; list it in `where`."""
    check(name, "name", "the name of a value", str)
    if not isinstance(value, Expr):
        return _Let(name, Expr(lambda names: names.node(value)), attribute)
    return _Let(name, value, attribute)


def fold(value: Argument) -> Expr:
    """The value computed while rewriting; the rule applies only where it is constant."""
    return _call(tree.RuleCallee(0, ("fold",)), (value,), {})


def const(value: Argument, dtype: Argument | None = None) -> Expr:
    """A number or an array as a constant of the program."""
    return _call(tree.RuleCallee(0, ("const",)), (value,) if dtype is None else (value, dtype), {})


def ifelse(condition: Argument, on_true: Argument, on_false: Argument) -> Expr:
    """`on_true if condition else on_false`, of values or attributes."""
    return _operation("ifelse", condition, on_true, on_false)


def _call(callee: tree.RuleCallee, args: Sequence[Argument | _Rest], attributes: dict[str, Argument]) -> Expr:
    others = [arg for arg in args if isinstance(arg, _Rest)]
    operands = [arg for arg in args if not isinstance(arg, _Rest)]

    def make(names: _Names) -> tree.Node:
        nodes = [names.node(arg) for arg in operands]
        keywords = [(0, name, names.node(value)) for name, value in attributes.items()]
        return tree.RuleCall(0, callee, nodes, keywords, (0, others[0].name) if others else None)

    return Expr(make)


class _Op:
    """An op by its name: `op.nn.dense`, `op.arith.addi`; called, it is applied."""

    def __init__(self, names: Sequence[str] = (), capture: str | None = None):
        self._names, self._capture = names, capture

    def __getattr__(self, name: str) -> _Op:
        if name.startswith("_"):
            raise AttributeError(name)
        return _Op([f"{self._names[0]}.{name}" if self._names else name])

    def __call__(self, *args: Argument | _Rest, **attributes: Argument) -> Expr:
        return _call(tree.RuleCallee(0, tuple(self._names), self._capture), args, attributes)

    def __repr__(self) -> str:
        return callee_text(tree.RuleCallee(0, self._names, self._capture)) or "every op"


op = _Op()
"""Every op: `op.add(x, y)`, `op.nn.dense(x, w, units=rules.attr("units"))`."""


def one_of(*names: str, capture: str | None = None) -> _Op:
    """One of several ops; without names, that which a pattern captured: `one_of(capture="op")(x)`."""
    for name in names:
        check(name, "each argument of one_of", "the name of an op", str)
    return _Op(names, capture)


class _Caller:
    """The place in Python where a rule was made, in the role of a source text."""

    def __init__(self, location: LocationAttr):
        self._location = location

    def location(self, at: int) -> LocationAttr:
        """The same for every part of the rule."""
        return self._location


def rewrite(
    name: str,
    lhs: Expr | Sequence[Expr],
    rhs: Argument | tuple[Argument, ...],
    *,
    where: Iterable[Argument] = (),
    benefit: int = 1,
    level: str = "relay",
    fast: bool = False,
) -> ir.RewriteOp:
    """Returns the verified rule `rewrite @name benefit(n) for level { lhs => rhs where … }`.

    Several roots are lists. `fast` marks a rule that holds for real numbers, not for all floats: `fast rewrite @name …`.
    Raises MirError, at the line of this call, for an error in it.
    """
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    check(name, "name", "the name of the rule", str)
    check(level, "level", "the name of a dialect, such as 'relay'", str)
    benefit = integer(benefit, "benefit", 0)
    roots = [lhs] if isinstance(lhs, Expr) else items(lhs, "lhs", "patterns, or one pattern", Expr)
    if not roots:
        raise ValueError("lhs has no pattern")
    made = list(rhs) if isinstance(rhs, list | tuple) and len(roots) > 1 else [cast("Argument", rhs)]
    names = _Names()
    for root in roots:
        names.node(root)
    # Behind the pattern it is known which of its ops are used again; then it is made once more, with their names.
    conditions = items(where, "where", "conditions")
    names.in_pattern = False
    nodes = [each.bind(names) if isinstance(each, _Let) else names.node(each) for each in conditions]
    results = [names.node(each) for each in made]
    names.in_pattern = True
    patterns = [names.node(root) for root in roots]
    item = tree.Rewrite(0, name, tree.Header(benefit, level, fast), patterns, results, nodes)
    source = cast("Any", _Caller(file_loc(frame.f_code.co_filename, frame.f_lineno, 1)))
    found = build_item(source, item)
    assert isinstance(found, ir.RewriteOp)
    verify(ModuleOp([found]))
    found.detach()
    return found


def ruleset(name: str, rules: Iterable[ir.RewriteOp], include: Sequence[str] = ()) -> ir.RulesetOp:
    """The set `ruleset @name { include … rules }`."""
    check(name, "name", "the name of the set", str)
    given = items(rules, "rules", "rules that rules.rewrite made", ir.RewriteOp)
    include = items(include, "include", "names of sets", str)
    block = Block()
    block.add_ops([rule.clone() if rule.parent is not None else rule for rule in given])
    return ir.RulesetOp(name, Region(block), include)


def apply(
    module: IRModule,
    rules: Iterable[ir.RewriteOp | ir.RulesetOp] | ModuleOp,
    *,
    name: str | None = None,
    mode: str = "fixpoint",
    strict_math: bool = False,
) -> IRModule:
    """Returns a copy of a module rewritten by rules.

    Args:
        rules: rules and sets, or a module of them as `mirstack.parse` returns; `name` chooses one set or rule among them.
        mode: "fixpoint" until none applies, "once" if replacements are left as they are, "saturate" for the cheapest form.
        strict_math: whether rules marked `fast` leave computations on floats alone.

    Raises:
        MirError: if types cannot be inferred, a replacement does not fit, or the rules do not come to an end.
    """
    from ..dialects.relay.infer import infer_types
    from ..passes.rules.apply_rules import check_mode, rewrite_all
    from ..passes.rules.engine.library import select_rules

    check(module, "module", "an IRModule (of a module of xDSL: IRModule.of_op)", IRModule)
    check_mode(mode)
    if not isinstance(rules, ModuleOp):
        given = items(rules, "rules", "rules and sets", ir.RewriteOp, ir.RulesetOp)
        rules = ModuleOp([cast("Operation", rule.clone()) for rule in given])
    table = rules
    chosen = select_rules(table, name)
    copy = module.op.clone()
    infer_types(copy)
    rewrite_all(copy, chosen, mode, strict_math)
    return IRModule.of_op(copy)


def function(name: str | None = None, *, arity: int | None, wants_values: bool = False) -> Any:
    """Decorates a Python function that rules may call by its name. Raises ValueError if the name is taken."""
    return named_function(name, arity=arity, wants_values=wants_values)


def __getattr__(name: str) -> Callable[..., Expr]:
    if name not in FUNCTIONS:
        raise AttributeError(f"module 'mirstack.rules' has no function '{name}'")

    def call(*args: Argument) -> Expr:
        return _call(tree.RuleCallee(0, (name,)), args, {})

    call.__name__ = call.__qualname__ = name
    call.__doc__ = FUNCTIONS[name].doc
    return call


def __dir__() -> list[str]:
    return sorted({*__all__, *FUNCTIONS})
