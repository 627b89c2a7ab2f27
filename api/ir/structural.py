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
from ...support.diagnostics import Diagnostic, MirTypeError
from ...support.source_text import text_bytes
from ..nd import NDArray
from ..relay import adt, expr, ty
from ..relay.graph import parts
from .module import IRModule
from .node import Node
from .op import Op, plain
from .prim_func import PrimFunc

Comparable: TypeAlias = "Node | IRModule | PrimFunc | Sequence[Comparable] | Mapping[str, Comparable] | AttrValue"
"""What can be compared: expressions, types, modules, attributes, lists of them."""

Token: TypeAlias = "tuple[object, ...]"


def structural_equal(lhs: object, rhs: object, map_free_vars: bool = False) -> bool:
    """Returns whether two programs are equal up to the names of variables; sharing must be equal, too.

    Free variables are equal to themselves only, unless `map_free_vars`.
    """
    if lhs is rhs:
        return True
    # One that ends before the other has None in place of a token.
    return all(a == b for a, b in zip_longest(_tokens(lhs, map_free_vars), _tokens(rhs, map_free_vars)))


def assert_structural_equal(lhs: object, rhs: object, map_free_vars: bool = False) -> None:
    """Raises ValueError, with both as text, when the two differ."""
    if not structural_equal(lhs, rhs, map_free_vars):
        raise ValueError(f"the two are not structurally equal: the first is\n{lhs}\nand the second is\n{rhs}")


def structural_hash(node: object, map_free_vars: bool = False) -> int:
    """A number that is the same for what is structurally equal."""
    hasher = hashlib.blake2b(digest_size=8)
    for token in _tokens(node, map_free_vars):
        hasher.update(text_bytes(repr(token)))
    return int.from_bytes(hasher.digest(), "little", signed=True)


def _tokens(value: object, map_free_vars: bool) -> Iterator[Token]:
    match value:
        case IRModule():
            for variable, function in sorted(value.functions.items(), key=lambda item: item[0].name_hint):
                yield ("function", variable.name_hint)
                yield from _tokens(function, map_free_vars)
            for header, data in sorted(value.type_definitions.items(), key=lambda item: item[0].name_hint):
                fields = [(c.name_hint, [str(field) for field in c.inputs]) for c in data.constructors]
                yield ("type", header.name_hint, len(data.type_vars), repr(fields))
        case PrimFunc():
            from ...dialects.tir.structural_key import structural_key

            yield ("prim_func", structural_key(value.op))
        case Stmt() | Expr() | Buffer() | Range() | BufferRegion() | CommReducer():
            from ...dialects.tir.node.structural import tokens

            yield from tokens(value, map_free_vars)
        case ty.Type():
            yield _Writer(map_free_vars).type(value)
        case Node():
            yield from _Writer(map_free_vars).node(value)
        case NDArray():
            yield ("array", value.dtype, value.shape, value.numpy().tobytes())
        case list() | tuple():
            items = cast("Sequence[object]", value)
            yield ("list", len(items))
            for item in items:
                yield from _tokens(item, map_free_vars)
        case _:
            yield ("value", _attribute(plain(value)))


class _Writer:
    """Writes one program as tokens; a node's token refers by number to its parts, which precede it."""

    def __init__(self, map_free_vars: bool):
        self.numbers: dict[Node, int] = {}
        self.variables: dict[Node, object] = {}
        self.type_variables: dict[str, int] = {}
        self.map_free_vars = map_free_vars

    def node(self, root: Node) -> Iterator[Token]:
        """The tokens of a program."""
        pending: list[tuple[Node, bool]] = [(root, False)]
        while pending:
            node, opened = pending.pop()
            if opened:
                self.numbers[node] = len(self.numbers)
                yield self._close(node)
                continue
            if node in self.numbers or self._is_leaf(node):
                continue
            pending.append((node, True))
            yield from self._open(node)
            pending += [(part, False) for part in reversed(parts(node))]
        if root not in self.numbers:
            yield ("leaf", self._use(root))

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
                yield ("fn", len(node.type_params), tuple(types))
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
                    self.variables[node] = len(self.variables) if self.map_free_vars else ("free", id(node))
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

    def type(self, type: ty.Type | None) -> Token:
        """A type, its variables by number."""
        match type:
            case None | ty.IncompleteType():
                return ("unknown",)
            case ty.TensorType():
                return ("tensor", type.dtype, tuple(repr(dim) for dim in type.shape))
            case ty.TypeVar():
                return ("type var", self.type_variables.get(type.name_hint, type.name_hint))
            case ty.TupleType():
                return ("tuple", tuple(self.type(field) for field in type.fields))
            case ty.FuncType():
                for variable in type.type_params:
                    self.type_variables[variable.name_hint] = len(self.type_variables)
                inputs = tuple(self.type(arg) for arg in type.arg_types)
                return ("func", len(type.type_params), inputs, self.type(type.ret_type))
            case ty.TypeCall():
                return ("data", type.func.name_hint, tuple(self.type(arg) for arg in type.args))
            case ty.RefType():
                return ("ref", self.type(type.value))
            case ty.GlobalTypeVar():
                return ("global type", type.name_hint)
            case _:
                raise MirTypeError(Diagnostic(f"{type!r} is not a type"))


FLOATS = 1e-9
"""How far apart floating-point attributes may be that are equal, as in TVM: 1e-5 is what float32 makes of it."""


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
