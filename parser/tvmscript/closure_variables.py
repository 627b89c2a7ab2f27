"""Evaluates what a script takes from the Python around it: names become literals, Python is computed.

    shape = (16, 4)                        for i in range(shape[0] // len(shape)):    →    for i in range(8):
    @T.macro
    def clear(X, i): X[i] = 0              clear(A, vi)                               →    A[vi] = 0

A value without a literal (a function, a variable of `tir`) stays in the tree as `Captured`, which `captured_values` reads.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Sequence as AnySequence
from dataclasses import dataclass, fields, is_dataclass
from inspect import Parameter
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, cast

import numpy as np

from ...dialects.tir.node.expr import Expr as Node
from ...support.diagnostics import MirError
from ...support.text import quoted
from ..python.literals import is_string, number, string
from ..python.tree import (
    Assign,
    Binary,
    Call,
    Captured,
    Expr,
    Expression,
    For,
    Function,
    If,
    Index,
    Keyword,
    Lambda,
    Member,
    Module,
    Sequence,
    Slice,
    Stmt,
    Token,
    Unary,
    With,
    token_of,
)
from ..python.tree import Mapping as Dictionary
from .macro import Macro, moved

if TYPE_CHECKING:
    from .reader import Reader

Part = TypeVar("Part", bound=Any)

BUILTINS: dict[str, object] = {
    function.__name__: function
    for function in (len, int, float, str, bool, min, max, abs, sum, list, tuple, sorted, reversed, round, divmod)
}
"""Functions of Python that scripts may call at any time."""
_WORDS = frozenset(["T", "I", "cls", "range"])
_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": lambda a, b: a / b,
    "//": lambda a, b: a // b, "%": lambda a, b: a % b, "**": lambda a, b: a**b, "<<": lambda a, b: a << b,
    ">>": lambda a, b: a >> b, "&": lambda a, b: a & b, "|": lambda a, b: a | b, "^": lambda a, b: a ^ b,
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
    "and": lambda a, b: a and b, "or": lambda a, b: a or b,
}  # fmt: skip
_PREFIXES: dict[str, Callable[[Any], Any]] = {
    "-": operator.neg, "+": operator.pos, "~": operator.inv, "not": operator.not_,
}  # fmt: skip
_MOST_BITS = 1 << 12
_LONGEST = 1 << 16
_PLAIN = frozenset([str, int, float, bool, list, tuple, dict])
_METHODS = frozenset(
    ["upper", "lower", "startswith", "endswith", "strip", "get", "items", "keys", "values", "index", "count"]
)
"""What is looked up of texts, numbers, lists and dictionaries."""
_DEEPEST_MACRO = 64
_NOT_PYTHON = object()


def with_captured(tree: Function | Module, captured: Mapping[str, object], reader: Reader) -> Function | Module:
    """Returns the tree with the names that its functions do not define replaced by those captured.

    Raises MirError for an expression that cannot be evaluated.
    """
    if isinstance(tree, Module):
        members = [with_captured(m, captured, reader) if isinstance(m, Function) else m for m in tree.members]
        return Module(tree.decorators, tree.name, cast("list[Function | Stmt]", members))
    own = set(_bound(tree))
    outer = {name: value for name, value in captured.items() if name not in own}
    return _Evaluator(outer, reader, own).rebuilt(tree)


def _bound(function: Function) -> Iterator[str]:
    """Yields the names that a function's statements bind.

    As in Python, such a name belongs to the function everywhere in it.
    """
    yield from (str(parameter.name) for parameter in function.parameters)
    pending: list[Any] = list(function.body)
    while pending:
        node = pending.pop()
        match node:
            case For():
                yield from _names(node.target)
            case Assign():
                yield from _names(node.target)
            case With():
                for _, target in node.items:
                    yield from _names(target)
            case _:
                target = getattr(node, "target", None)
                if target is not None:
                    yield from _names(target)
        for block in ("body", "orelse"):
            pending += getattr(node, block, None) or []


def _names(target: Expr | None) -> Iterator[str]:
    if isinstance(target, Sequence):
        for item in target.items:
            yield from _names(item)
    elif isinstance(target, Token):
        yield str(target)


@dataclass(frozen=True)
class _Replaced:
    """The expression that replaces a name of a macro."""

    node: Expr


class _Evaluator:
    """Evaluates the parts of a tree that are all Python, and expands macros.

    `own` are the names that the function binds, which a hygienic macro (`hidden` ones) does not see.
    """

    def __init__(
        self,
        captured: Mapping[str, object],
        reader: Reader,
        own: set[str],
        hidden: frozenset[str] = frozenset(),
        depth: int = 0,
    ):
        self.captured, self.reader, self.own, self.hidden, self.depth = captured, reader, own, hidden, depth

    def finished(self, node: Part) -> Part:
        """Returns a part of the tree evaluated; what of it has a literal is that."""
        found = self.evaluated(node)
        if isinstance(found, Captured):
            written = literal(found.value, found.token.start)
            return cast("Part", found if written is None else written)
        return found

    def evaluated(self, node: Part) -> Part:
        """Returns a part of the tree evaluated; a `Captured` where all of it is Python."""
        match node:
            case Token():
                return cast("Part", self.name(node) if node.type == "NAME" else node)
            case Captured():
                return cast("Part", node)
            case Lambda():
                inner = {name: value for name, value in self.captured.items() if name not in node.parameters}
                hidden = self.hidden.difference(node.parameters)
                body = _Evaluator(inner, self.reader, self.own, hidden, self.depth).finished(node.body)
                return cast("Part", Lambda(node.token, node.parameters, body))
            case list():
                return cast("Part", self.several(cast("list[Any]", node)))
            case tuple():
                return cast("Part", tuple(self.finished(item) for item in cast("tuple[Any, ...]", node)))
            case Binary() | Unary() | Index() | Member() | Sequence() | Call() | Slice() | Dictionary():
                return cast("Part", self.expression(node))
            case _:
                return cast("Part", self.rebuilt(node) if is_dataclass(node) else node)

    def rebuilt(self, node: Part) -> Part:
        """Evaluates the parts of a node, except the names of keywords, parameters and functions."""
        kept = ("name", "op", "token", "decorators")
        parts = {
            field.name: value if field.name in kept else self.finished(value)
            for field in fields(node)
            for value in (getattr(node, field.name),)
        }
        return cast("Part", type(node)(**parts))

    def several(self, nodes: list[Any]) -> list[Any]:
        """Evaluates a list: `*shape` becomes its items, a branch whose condition is known its side."""
        found: list[Any] = []
        for node in nodes:
            if isinstance(node, If):
                condition = self.evaluated(node.condition)
                if isinstance(condition, Captured) and isinstance(condition.value, bool | np.bool_):
                    found += self.several(cast("list[Any]", node.body if condition.value else node.orelse))
                    continue
            elif isinstance(node, Unary) and node.op == "*":
                items = self.evaluated(node.operand)
                if isinstance(items, Captured) and isinstance(items.value, list | tuple):
                    found += [_shown(item, items.token) for item in cast("AnySequence[object]", items.value)]
                    continue
                if isinstance(items, Sequence):
                    found += map(self.finished, items.items)
                    continue
            elif isinstance(node, Expression) and isinstance(node.value, Call):
                callee = self.evaluated(node.value.function)
                if isinstance(callee, Captured) and isinstance(callee.value, Macro):
                    found += self.expanded(callee.value, callee.token, node.value)
                    continue
            found.append(self.finished(node))
        return found

    def expanded(self, macro: Macro, token: Token, call: Call) -> list[Any]:
        """Returns the statements of a macro with arguments in place of its parameters.

        Names that it binds are renamed where the function around has them.
        """
        if self.depth == _DEEPEST_MACRO:
            self.reader.fail(token, f"macros call one another to a depth of more than {_DEEPEST_MACRO}")
        arguments = self.several(cast("list[Any]", call.arguments))
        keywords = {str(keyword.name): self.finished(keyword.value) for keyword in call.keywords}
        try:
            given = macro.signature.bind(*arguments, **keywords)
        except TypeError as error:
            self.reader.fail(token, f"macro '{macro.name}': {error}", f"it is {macro.name}{macro.signature}")
        replaced: dict[str, object] = {}
        for name, parameter in macro.signature.parameters.items():
            value: Any = given.arguments.get(name, parameter.default)
            if parameter.kind is Parameter.VAR_POSITIONAL:
                replaced[name] = _Replaced(Sequence(list(given.arguments.get(name, ()))))
            elif parameter.kind is Parameter.VAR_KEYWORD:
                items = cast("dict[str, Expr]", given.arguments.get(name, {})).items()
                replaced[name] = _Replaced(Dictionary([(Token("STRING", quoted(key)), item) for key, item in items]))
            elif name in given.arguments:
                replaced[name] = value.value if isinstance(value, Captured) else _Replaced(value)
            else:
                replaced[name] = value
        bound = set(_bound(macro.tree)) - replaced.keys()
        renamed = {name: _Replaced(Token("NAME", self.unused(name))) for name in bound if name in self.own}
        around: Mapping[str, object] = macro.captured
        if not macro.hygienic:
            around = {name: value for name, value in self.reader.context.captured.items() if name not in self.own}
        outer = {name: value for name, value in around.items() if name not in bound}
        hidden = frozenset(self.own - outer.keys() - bound - replaced.keys()) if macro.hygienic else frozenset[str]()
        base = self.reader.source.annex(macro.item)
        inside = _Evaluator({**outer, **renamed, **replaced}, self.reader, self.own, hidden, self.depth + 1)
        self.own |= bound
        return inside.several(moved(macro.tree.body, base))

    def unused(self, name: str) -> str:
        """Returns a name like the given one that the function does not have yet, and keeps it."""
        number = 1
        while f"{name}_{number}" in self.own:
            number += 1
        self.own.add(f"{name}_{number}")
        return f"{name}_{number}"

    def name(self, token: Token) -> Expr:
        """Returns a captured name's value; attributes are looked up, `config.size`."""
        base, *attributes = token.split(".")
        if base in self.hidden:
            self.reader.fail(
                token,
                f"the macro does not see '{base}' of the function that calls it",
                "pass it as an argument, or define the macro by @T.macro(hygienic=False)",
            )
        if base not in self.captured or base in _WORDS:
            return token
        value = self.captured[base]
        if isinstance(value, _Replaced):
            return self.attribute(value.node, attributes, token)
        for attribute in attributes:
            try:
                value = _attribute(value, attribute)
            except AttributeError:
                # A function of the file's module is called by the same name as one that another module has.
                return token
        return Captured(token, value)

    def attribute(self, node: Expr, attributes: list[str], token: Token) -> Expr:
        """Returns `node.a.b`; a name stays one token."""
        if isinstance(node, Token) and node.type == "NAME":
            start = token.start if node.start < 0 else node.start
            return Token("NAME", ".".join((node, *attributes)), start)
        for attribute in attributes:
            node = Member(node, Token("MEMBER", f".{attribute}", token.start))
        return node

    def expression(self, node: Expr) -> Expr:
        """Evaluates an expression whose parts are all Python, if one of them is captured."""
        parts = list(self.parts(node))
        values = [_value(part) for part in parts]
        captured = next((part for part in parts if isinstance(part, Captured)), None)
        known = captured is not None and not any(value is _NOT_PYTHON for value in values)
        if known and isinstance(node, Binary | Unary) and node.op in ("and", "or", "not"):
            # Of expressions of tir these are operators of the script.
            known = not any(isinstance(value, Node) for value in values)
        if known and not (isinstance(node, Call) and not callable(values[0])):
            assert captured is not None
            token = token_of(node) or captured.token
            try:
                return Captured(token, _computed(node, values))
            except Exception as error:
                self.refuse(token, node, error)
        return self.combined(node, parts)

    def parts(self, node: Expr) -> Iterator[Any]:
        """Yields the evaluated parts of an expression, in the order of `combined`."""
        match node:
            case Binary():
                yield self.evaluated(node.left)
                yield self.evaluated(node.right)
            case Unary():
                yield self.evaluated(node.operand)
            case Index():
                yield self.evaluated(node.base)
                yield from map(self.evaluated, node.items)
            case Member():
                yield self.evaluated(node.base)
            case Sequence():
                yield from self.several(cast("list[Any]", node.items))
            case Slice():
                yield from (
                    part if part is None else self.evaluated(part) for part in (node.start, node.stop, node.step)
                )
            case Dictionary():
                for key, value in node.pairs:
                    yield self.evaluated(key)
                    yield self.evaluated(value)
            case Call():
                yield self.evaluated(node.function)
                yield from self.several(cast("list[Any]", node.arguments))
                yield from (Keyword(k.name, self.finished(k.value)) for k in node.keywords)
            case _:
                return

    def combined(self, node: Expr, parts: list[Any]) -> Expr:
        """Builds an expression of evaluated parts."""
        function = parts[0] if isinstance(node, Call) else None
        parts = [self.finished(part) if isinstance(part, Captured) else part for part in parts]
        match node:
            case Binary():
                return Binary(node.op, parts[0], parts[1])
            case Unary():
                return Unary(node.op, parts[0])
            case Index():
                item = _item(parts[0], parts[1:])
                return Index(parts[0], parts[1:]) if item is None else item
            case Member():
                return Member(parts[0], node.name)
            case Sequence():
                return Sequence(parts, node.is_list, node.bracket)
            case Slice():
                return Slice(parts[0], parts[1], parts[2], node.colon)
            case Dictionary():
                return Dictionary(list(zip(parts[::2], parts[1::2], strict=True)), node.brace)
            case Call():
                # What is not a function of Python may be one of the file by the same name.
                plain = isinstance(function, Captured) and not callable(function.value)
                callee = node.function if plain or function is None else function
                keywords = [part for part in parts[1:] if isinstance(part, Keyword)]
                return Call(callee, [part for part in parts[1:] if not isinstance(part, Keyword)], keywords)
            case _:
                return node

    def refuse(self, token: Token, node: Expr, error: Exception) -> NoReturn:
        """Raises the error of an expression that Python could not evaluate."""
        what = f"'{token}(…)'" if isinstance(node, Call) else "this expression"
        if isinstance(error, MirError):
            first = error.diagnostics[0]
            self.reader.fail(token, f"{what}: {first.message}", *(note.message for note in first.notes))
        self.reader.fail(token, f"{what} cannot be evaluated in Python: {type(error).__name__}: {error}")


def _item(base: Expr, items: list[Expr]) -> Expr | None:
    """Returns an item of a list or dictionary that is written out; None for any other index."""
    key = _value(items[0]) if len(items) == 1 else _NOT_PYTHON
    if isinstance(base, Sequence) and isinstance(key, int) and -len(base.items) <= key < len(base.items):
        return base.items[key]
    if isinstance(base, Dictionary) and key is not _NOT_PYTHON:
        return next((value for name, value in base.pairs if _value(name) == key), None)
    return None


def _shown(value: object, token: Token) -> Expr:
    written = literal(value, token.start)
    return Captured(token, value) if written is None else written


def _refuse_number(where: Expr, message: str, /, *notes: str) -> NoReturn:
    raise ValueError(message)


def _value(node: Any) -> object:
    """Returns the value of an evaluated part, `_NOT_PYTHON` for one that only the script has."""
    try:
        match node:
            case None:
                return None
            case Captured():
                return node.value
            case Token() if node.type == "NUMBER":
                return number(node, _refuse_number)
            case Token() if node in ("True", "False", "None"):
                return {"True": True, "False": False, "None": None}[node]
            case Keyword():
                return _value(node.value) if _value(node.value) is _NOT_PYTHON else node
            case Unary() if node.op in ("-", "+"):
                value = _value(node.operand)
                return value if value is _NOT_PYTHON else _PREFIXES[node.op](value)
            case Sequence():
                items = [_value(item) for item in node.items]
                if any(item is _NOT_PYTHON for item in items):
                    return _NOT_PYTHON
                return items if node.is_list else tuple(items)
            case Slice():
                bounds = [_value(bound) for bound in (node.start, node.stop, node.step)]
                return _NOT_PYTHON if any(bound is _NOT_PYTHON for bound in bounds) else slice(*bounds)
            case _ if is_string(node):
                return string(node, _refuse_number)
            case _:
                return _NOT_PYTHON
    except ValueError:
        return _NOT_PYTHON


def _attribute(value: Any, name: str) -> Any:
    """Returns an attribute that a script may look up. Raises AttributeError for any other."""
    plain = type(value) in _PLAIN or any(value is known for known in BUILTINS.values())
    if name.startswith("_") or (plain and name not in _METHODS):
        raise AttributeError(f"a script does not look up '{name}'")
    return getattr(value, name)


def _check_length(op: str, left: Any, right: Any) -> None:
    """Refuses a list or text of which a short script would make a long one."""
    if op == "%":
        raise TypeError("a script does not format text by %")
    items, count = (right, left) if isinstance(left, int) else (left, right)
    if isinstance(count, int) and len(items) * count > _LONGEST:
        raise OverflowError(f"the result has more than {_LONGEST} items")


def _computed(node: Expr, values: list[Any]) -> object:
    """Returns the value of an expression, given those of its parts."""
    match node:
        case Binary():
            if node.op in ("**", "<<") and isinstance(values[0], int) and isinstance(values[1], int):
                bits = values[1] * (values[0].bit_length() if node.op == "**" else 1)
                if bits > _MOST_BITS:
                    raise OverflowError(f"the result has more than {_MOST_BITS} bits")
            if node.op in ("*", "%") and any(isinstance(value, str | list | tuple) for value in values):
                _check_length(node.op, values[0], values[1])
            return _OPERATORS[node.op](values[0], values[1])
        case Unary():
            return _PREFIXES[node.op](values[0])
        case Index():
            base, *items = values
            return base[items[0] if len(items) == 1 else tuple(items)]
        case Member():
            return _attribute(values[0], node.name[1:])
        case Sequence():
            return values if node.is_list else tuple(values)
        case Slice():
            return slice(*values)
        case Dictionary():
            return dict(zip(values[::2], values[1::2], strict=True))
        case _:
            function, *arguments = values
            keywords = {str(k.name): _value(k.value) for k in arguments if isinstance(k, Keyword)}
            return function(*(a for a in arguments if not isinstance(a, Keyword)), **keywords)


def literal(value: object, start: int) -> Expr | None:
    """The literal of a Python value, at an offset of the text; None for a value that has none."""
    if isinstance(value, np.generic):
        value = value.item()
    match value:
        case bool() | None:
            return Token("NAME", str(value), start)
        case int() | float() if value < 0:
            positive = literal(-value, start)
            return None if positive is None else Unary(Token("PREFIX", "-", start), positive)
        case int():
            return Token("NUMBER", str(value), start)
        case float():
            return Token("NUMBER", repr(value), start) if value < float("inf") else None
        case str():
            return Token("STRING", quoted(value), start)
        case np.dtype():
            return Token("STRING", quoted(value.name), start)
        case type() if issubclass(value, np.generic):
            return Token("STRING", quoted(np.dtype(value).name), start)
        case np.ndarray() if value.dtype.kind in "biuf":
            return literal(value.tolist(), start)
        case list() | tuple():
            items = [literal(item, start) for item in cast("AnySequence[object]", value)]
            if None in items:
                # Some of them are functions or variables: each is looked at by itself.
                items = [_shown(item, Token("NAME", "", start)) for item in cast("AnySequence[object]", value)]
            return Sequence([item for item in items if item is not None], isinstance(value, list))
        case dict() if all(isinstance(key, str) for key in cast("dict[object, object]", value)):
            pairs = [(literal(k, start), literal(v, start)) for k, v in cast("dict[str, object]", value).items()]
            kept = [(key, item) for key, item in pairs if key is not None and item is not None]
            return Dictionary(kept, start) if len(kept) == len(pairs) else None
        case _:
            return None
