"""Compares programs up to the names of what they bind, and hashes them accordingly.

A program is written as a list of tokens in which variables and shared nodes are numbers, assigned in the order of a walk; two
programs are equal when their lists are. One walk each, however deep the program.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import TypeAlias, cast

from ...dialects.relay.operator import AttrValue
from ...dialects.tir.node.buffer import Buffer, BufferRegion
from ...dialects.tir.node.expr import CommReducer, Expr, Range
from ...dialects.tir.node.stmt import Stmt
from ...dialects.tir.structural_key import FLOATS, structural_form
from ...support.deep_stack import in_deep_stack
from ...support.diagnostics import Diagnostic, MirTypeError
from ...support.source_text import text_bytes
from ..nd import NDArray
from ..relay import adt, expr, ty
from ..relay.graph import parts
from .module import IRModule
from .node import ContentNode, Node
from .op import Op, plain
from .prim_func import PrimFunc

Comparable: TypeAlias = "Node | IRModule | PrimFunc | Sequence[Comparable] | Mapping[str, Comparable] | AttrValue"
"""What can be compared: expressions, types, modules, attributes, lists of them."""

Token: TypeAlias = "tuple[object, ...]"


def structural_equal(lhs: object, rhs: object, map_free_vars: bool = False) -> bool:
    """Returns whether two programs are equal up to the names of variables; sharing must be equal, too.

    Free variables are equal to themselves only, unless `map_free_vars`.
    """
    return lhs is rhs or _differing_labels(lhs, rhs, map_free_vars) is None


def assert_structural_equal(lhs: object, rhs: object, map_free_vars: bool = False) -> None:
    """Raises ValueError, with the paths to the first difference and what is there, when the two differ."""
    if lhs is rhs or (found := _first_difference(lhs, rhs, map_free_vars)) is None:
        return
    (first, one), (second, other) = found
    raise ValueError(f"not structurally equal: the first has at {first}\n{one}\nand the second at {second}\n{other}")


def structural_hash(node: object, map_free_vars: bool = False) -> int:
    """A number that is the same for what is structurally equal."""
    hasher = hashlib.blake2b(digest_size=8)
    for token, _ in _tokens(node, map_free_vars):
        hasher.update(text_bytes(repr(token)))
    return int.from_bytes(hasher.digest(), "little", signed=True)


Place: TypeAlias = "tuple[str, object]"
"""A path such as `<root>.body.args[0]`, and what is there."""


def get_first_structural_mismatch(lhs: object, rhs: object, map_free_vars: bool = False) -> tuple[str, str] | None:
    """Returns the paths to the first parts that differ, `<root>.body.args[0]`; None where none does."""
    found = None if lhs is rhs else _first_difference(lhs, rhs, map_free_vars)
    return None if found is None else (found[0][0], found[1][0])


def _first_difference(lhs: object, rhs: object, map_free_vars: bool) -> tuple[Place, Place] | None:
    labels = _differing_labels(lhs, rhs, map_free_vars)
    if labels is None:
        return None
    ours, theirs = _place(lhs, labels[0]), _place(rhs, labels[1])
    if ours[0] != theirs[0]:
        ours, theirs = _around(lhs, rhs, ours[0], theirs[0])
    return _refined(ours, theirs)


def _differing_labels(lhs: object, rhs: object, map_free_vars: bool) -> tuple[object, object] | None:
    """The parts that the first differing tokens are about; None where all tokens are equal."""
    pairs = zip_longest(_tokens(lhs, map_free_vars), _tokens(rhs, map_free_vars), fillvalue=(None, None))
    return next(((first, second) for (one, first), (other, second) in pairs if one != other), None)


def _around(lhs: object, rhs: object, first: str, second: str) -> tuple[Place, Place]:
    """The innermost parts of both, at one path, that are at these paths or around them."""
    path, ours, theirs = "<root>", lhs, rhs
    while True:
        parts = dict(_named_parts(theirs))
        for name, part in _named_parts(ours):
            whole = path + name
            if name in parts and all(
                each == whole or each.startswith((f"{whole}.", f"{whole}[")) for each in (first, second)
            ):
                path, ours, theirs = whole, part, parts[name]
                break
        else:
            return (path, ours), (path, theirs)


def _place(root: object, wanted: object) -> Place:
    """Finds a part of a program; the root where it is none, as where one program ends first."""
    seen: set[int] = {id(root)}
    level: list[Place] = [("<root>", root)]
    while level:
        following: list[Place] = []
        for path, value in level:
            if value is wanted:
                return path, value
            for name, part in _named_parts(value):
                if id(part) not in seen:
                    seen.add(id(part))
                    following.append((path + name, part))
        level = following
    return "<root>", root


def _refined(first: Place, second: Place) -> tuple[Place, Place]:
    """Returns the places of two parts, or inside them those of the first that differ by themselves."""
    while type(first[1]) is type(second[1]) and not isinstance(first[1], expr.Var):
        ours, theirs = _named_parts(first[1]), _named_parts(second[1])
        differing = [
            ((first[0] + name, part), (second[0] + other_name, other))
            for (name, part), (other_name, other) in zip(ours, theirs, strict=False)
            if name == other_name and part is not other and not _is_alike(part, other)
        ]
        if len(ours) != len(theirs) or not differing:
            break
        first, second = differing[0]
    return first, second


def _is_alike(part: object, other: object) -> bool:
    """Returns whether two parts are equal by themselves; of variables their types are compared."""
    if isinstance(part, expr.Var) and isinstance(other, expr.Var):
        return structural_equal(part.type_annotation, other.type_annotation)
    return structural_equal(part, other, map_free_vars=True)


def _named_parts(value: object) -> list[tuple[str, object]]:
    """The parts of a node, of a module or of a list, with the ends of their paths."""
    match value:
        case IRModule():
            return [(f'.functions[I.GlobalVar("{v.name_hint}")]', function) for v, function in value.functions.items()]
        case expr.Call():
            return [(".op", value.op), *_listed(".args", value.args), *_attribute_parts(value.attrs)]
        case expr.Function():
            types = [(".ret_type", value.ret_type)]
            return [*_listed(".params", value.params), (".body", value.body), *types, *_attribute_parts(value.attrs)]
        case expr.Tuple():
            return _listed(".fields", value.fields)
        case expr.TupleGetItem():
            return [(".tuple_value", value.tuple_value), (".index", value.index)]
        case expr.Let():
            return [(".var", value.var), (".value", value.value), (".body", value.body)]
        case expr.If():
            branches = [(".true_branch", value.true_branch), (".false_branch", value.false_branch)]
            return [(".cond", value.cond), *branches]
        case adt.Match():
            clauses = [(f".clauses[{index}].rhs", clause.rhs) for index, clause in enumerate(value.clauses)]
            return [(".data", value.data), *clauses]
        case expr.Constant():
            return [(".data", value.data)]
        case expr.RefCreate() | expr.RefWrite():
            return (
                [(".ref", value.ref), (".value", value.value)]
                if isinstance(value, expr.RefWrite)
                else [(".value", value.value)]
            )
        case expr.RefRead():
            return [(".ref", value.ref)]
        case PrimFunc():
            return [(".body", value.body), (".ret_type", value.ret_type), *_attribute_parts(value.attrs)]
        case Stmt():
            return [(f".{name}", getattr(value, name)) for name in value.FIELDS]
        case Expr():
            names = [name for name in ("a", "b", "value", "indices") if hasattr(value, name)]
            return [(f".{name}", getattr(value, name)) for name in names]
        case list() | tuple():
            return _listed("", cast("Sequence[object]", value))
        case _:
            return []


def _listed(name: str, parts: Sequence[object]) -> list[tuple[str, object]]:
    return [(f"{name}[{index}]", part) for index, part in enumerate(parts)]


def _attribute_parts(attrs: Mapping[str, object] | None) -> list[tuple[str, object]]:
    return [(f".attrs.{name}", value) for name, value in sorted((attrs or {}).items())]


Labelled: TypeAlias = "Iterator[tuple[Token, object]]"
"""Tokens, each with the part of the program that it is about."""


def _tokens(value: object, map_free_vars: bool) -> Labelled:
    match value:
        case IRModule():
            for variable, function in sorted(value.functions.items(), key=lambda item: item[0].name_hint):
                yield ("function", variable.name_hint), value
                yield from _tokens(function, map_free_vars)
            for _, data in sorted(value.type_definitions.items(), key=lambda item: item[0].name_hint):
                yield from _tokens(data, map_free_vars)
        case PrimFunc():
            text, floats = structural_form(value.op)
            yield ("prim_func", text, tuple(map(_Float, floats))), value
        case Stmt() | Expr() | Buffer() | Range() | BufferRegion() | CommReducer():
            from ...dialects.tir.node.structural import tokens

            # An expression may be deeper than Python's stack.
            for token in in_deep_stack(lambda: list(tokens(value, map_free_vars))):
                yield token, value
        case adt.TypeData():
            yield _Writer(map_free_vars).data(value), value
        case adt.Pattern():
            yield _Writer(map_free_vars).alone(value), value
        case adt.Clause():
            yield _Writer(map_free_vars).alone(value.lhs), value
            yield from _tokens(value.rhs, map_free_vars)
        case ty.Type():
            yield _Writer(map_free_vars).type(value), value
        case ContentNode():
            yield ("content", type(value).__name__), value
            yield from _tokens(list(value.content()), map_free_vars)
        case Node():
            yield from _Writer(map_free_vars).node(value)
        case NDArray():
            yield ("array", value.dtype, value.shape, value.numpy().tobytes()), value
        case list() | tuple():
            items = cast("Sequence[object]", value)
            yield ("list", len(items)), value
            for item in items:
                yield from _tokens(item, map_free_vars)
        case _:
            yield ("value", _attribute(plain(value))), value


class _Writer:
    """Writes one program as tokens; a node's token refers by number to its parts, which precede it."""

    def __init__(self, map_free_vars: bool):
        self.numbers: dict[Node, int] = {}
        self.variables: dict[Node, object] = {}
        self.type_variables: dict[str, int] = {}
        self.map_free_vars = map_free_vars

    def node(self, root: Node) -> Labelled:
        """The tokens of a program."""
        pending: list[tuple[Node, bool]] = [(root, False)]
        while pending:
            node, opened = pending.pop()
            if opened:
                self.numbers[node] = len(self.numbers)
                yield self._close(node), node
                continue
            if node in self.numbers or self._is_leaf(node):
                continue
            pending.append((node, True))
            for token in self._open(node):
                yield token, node
            pending += [(part, False) for part in reversed(parts(node))]
        if root not in self.numbers:
            yield ("leaf", self._use(root)), root

    def data(self, data: adt.TypeData) -> Token:
        """A data type, its parameters by number."""
        for variable in data.type_vars:
            self.type_variables[variable.name_hint] = len(self.type_variables)
        fields = [(c.name_hint, tuple(map(self.type, c.inputs))) for c in data.constructors]
        return ("type", data.header.name_hint, tuple(int(v.kind) for v in data.type_vars), tuple(fields))

    def alone(self, pattern: adt.Pattern) -> Token:
        """A pattern, its variables by number."""
        for variable in adt.pattern_vars(pattern):
            self._bind(variable)
        return ("pattern", self._pattern(pattern))

    def _is_leaf(self, node: Node) -> bool:
        if isinstance(node, expr.Tuple) and not node.fields:
            return True
        return isinstance(node, expr.Var | expr.Constant | expr.GlobalVar | Op | adt.Constructor)

    def _open(self, node: Node) -> Iterator[Token]:
        """Yields the tokens before a node's parts: those of the variables that it binds."""
        match node:
            case expr.Function():
                for variable in node.type_params:
                    self.type_variables[variable.name_hint] = len(self.type_variables)
                types = [self.type(param.type_annotation) for param in node.params]
                for param in node.params:
                    self._bind(param)
                yield ("fn", tuple(int(variable.kind) for variable in node.type_params), tuple(types))
            case expr.Let():
                self._bind(node.var)
                yield ("let", self.type(node.var.type_annotation))
            case adt.Match():
                for clause in node.clauses:
                    for variable in adt.pattern_vars(clause.lhs):
                        self._bind(variable)
                yield ("match", len(node.clauses))
            case _:
                pass

    def _bind(self, variable: expr.Var) -> None:
        self.variables[variable] = len(self.variables)

    def _use(self, node: Node) -> object:
        """A part, as a token names it."""
        match node:
            case expr.Var():
                if node not in self.variables:
                    number = len(self.variables) if self.map_free_vars else id(node)
                    self.variables[node] = (
                        "free",
                        number,
                        self.type(node.type_annotation) if self.map_free_vars else (),
                    )
                return ("var", self.variables[node])
            case expr.Constant():
                box = node.value.data
                return ("constant", box.dtype, box.shape, box.digest)
            case expr.GlobalVar():
                return ("global", node.name_hint)
            case Op():
                return ("op", node.name)
            case adt.Constructor():
                return ("constructor", node.belong_to.name_hint, node.name_hint)
            case expr.Tuple() if not node.fields:
                return ("unit",)
            case _:
                return self.numbers[node]

    def _close(self, node: Node) -> Token:
        used = tuple(self._use(part) for part in parts(node))
        match node:
            case expr.Call():
                callee = node.op.name if isinstance(node.op, Op) else None
                types = tuple(self.type(t) for t in node.written_type_args)
                return ("call", callee, used, _attributes(node.attrs), types)
            case expr.TupleGetItem():
                return ("get", used, node.index)
            case expr.Function():
                return ("end fn", used, self.type(node.ret_type), _attributes(node.attrs))
            case expr.Let():
                return ("in", self.variables[node.var], used)
            case adt.Match():
                patterns = tuple(self._pattern(clause.lhs) for clause in node.clauses)
                return ("end match", used, patterns, node.complete)
            case _:
                return (type(node).__name__, used)

    def _pattern(self, pattern: adt.Pattern) -> Token:
        match pattern:
            case adt.PatternVar():
                return ("var", self.variables[pattern.var])
            case adt.PatternConstructor():
                inner = tuple(self._pattern(p) for p in pattern.patterns)
                return (pattern.constructor.belong_to.name_hint, pattern.constructor.name_hint, inner)
            case adt.PatternTuple():
                return ("tuple", tuple(self._pattern(p) for p in pattern.patterns))
            case _:
                return ("_",)

    def _dimension(self, dim: ty.Dim) -> object:
        return ty.dimension_key(dim, self.map_free_vars) if ty.is_expression(dim) else repr(dim)

    def type(self, type: ty.Type | None) -> Token:
        """A type, its variables by number."""
        match type:
            case None | ty.IncompleteType():
                return ("unknown",)
            case ty.TensorType():
                return ("tensor", type.dtype, tuple(self._dimension(dim) for dim in type.shape))
            case ty.TypeVar():
                return ("type var", self.type_variables.get(type.name_hint, type.name_hint))
            case ty.TupleType():
                return ("tuple", tuple(self.type(field) for field in type.fields))
            case ty.FuncType():
                for variable in type.type_params:
                    self.type_variables[variable.name_hint] = len(self.type_variables)
                inputs = tuple(self.type(arg) for arg in type.arg_types)
                return (
                    "func",
                    tuple(int(variable.kind) for variable in type.type_params),
                    inputs,
                    self.type(type.ret_type),
                )
            case ty.TypeCall():
                return ("data", type.func.name_hint, tuple(self.type(arg) for arg in type.args))
            case ty.RefType():
                return ("ref", self.type(type.value))
            case ty.GlobalTypeVar():
                return ("global type", type.name_hint)
            case _:
                raise MirTypeError(Diagnostic(f"{type!r} is not a type"))


class _Float:
    """A floating-point attribute, equal to any within `FLOATS` of it.

    All have one hash, so that equal ones have.
    """

    __slots__ = ("value",)

    def __init__(self, value: float):
        self.value = value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Float):
            return False
        a, b = self.value, other.value
        return a == b or abs(a - b) < FLOATS or (a != a and b != b)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return "float"


def _attributes(attrs: Mapping[str, object] | None) -> object:
    """Attributes in any order; an integer of TIR is that integer."""
    return tuple((name, _attribute(plain(value))) for name, value in sorted((attrs or {}).items()))


def _attribute(value: object) -> object:
    match value:
        case float():
            return _Float(value)
        case list() | tuple():
            return tuple(_attribute(item) for item in cast("Sequence[object]", value))
        case _:
            return repr(value)
