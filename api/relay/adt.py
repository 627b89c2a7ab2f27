"""Algebraic data types and matches in Python, with TVM's names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from zlib import crc32

from ...support.deep_stack import in_deep_stack
from ...support.public_names import public_names
from ...support.source_text import characters
from ..ir.node import Node, Span
from .expr import Call, RelayExpr, Var
from .ty import GlobalTypeVar, Type, TypeVar


class Constructor(RelayExpr):
    """A constructor of a data type: called, it makes a value of it."""

    __slots__ = ("belong_to", "inputs", "name_hint", "tag")

    tag: int
    """The number among all constructors, which the data type assigns; -1 before."""

    def __init__(self, name_hint: str, inputs: Sequence[Type], belong_to: GlobalTypeVar):
        self._place(None)
        self.name_hint = characters(name_hint)
        self.inputs = tuple(inputs)
        self.belong_to = belong_to
        self.tag = -1

    def __call__(self, *args: RelayExpr) -> Call:
        return Call(self, args)


class TypeData(Node):
    """A data type.

    `TypeData(List, [A], [Constructor("Nil", [], List), Constructor("Cons", [A, List(A)], List)])`
    """

    __slots__ = ("constructors", "header", "type_vars")

    def __init__(self, header: GlobalTypeVar, type_vars: Sequence[TypeVar], constructors: Sequence[Constructor]):
        self.span = None
        self.header = header
        self.type_vars = tuple(type_vars)
        self.constructors = tuple(constructors)
        # A hash that is the same in every process, so that tags of several types differ; never 0, which is that of tuples.
        first = (crc32(header.name_hint.encode()) % 127 + 1) << 24
        for index, constructor in enumerate(self.constructors):
            constructor.tag = first | index

    def __repr__(self) -> str:
        variables = f"[{_listed(self.type_vars)}]" if self.type_vars else ""
        constructors = [
            f"{each.name_hint}({_listed(each.inputs)})" if each.inputs else each.name_hint for each in self.constructors
        ]
        return f"type {self.header.name_hint}{variables} {{ {', '.join(constructors)} }}"


class Pattern(Node):
    """A pattern of a match's clause."""

    __slots__ = ()


class PatternWildcard(Pattern):
    """Anything."""

    __slots__ = ()

    def __init__(self) -> None:
        self.span = None

    def __repr__(self) -> str:
        return "_"


class PatternVar(Pattern):
    """Anything, to be called `var`."""

    __slots__ = ("var",)

    def __init__(self, var: Var):
        self.span = None
        self.var = var

    def __repr__(self) -> str:
        return f"%{self.var.name_hint}"


class PatternConstructor(Pattern):
    """A value made by that constructor, whose fields match the patterns (any fields without patterns)."""

    __slots__ = ("constructor", "patterns")

    def __init__(self, constructor: Constructor, patterns: Sequence[Pattern] | None = None):
        self.span = None
        self.constructor = constructor
        wildcards = [PatternWildcard() for _ in constructor.inputs]
        self.patterns = tuple(wildcards if patterns is None else patterns)

    def __repr__(self) -> str:
        name = self.constructor.name_hint
        return in_deep_stack(lambda: f"{name}({_listed(self.patterns)})" if self.patterns else name)


class PatternTuple(Pattern):
    """A tuple whose fields match the patterns."""

    __slots__ = ("patterns",)

    def __init__(self, patterns: Sequence[Pattern] | None = None):
        self.span = None
        self.patterns = tuple(patterns or ())

    def __repr__(self) -> str:
        comma = "," if len(self.patterns) == 1 else ""
        return in_deep_stack(lambda: f"({_listed(self.patterns)}{comma})")


class Clause(Node):
    """`lhs => rhs`."""

    __slots__ = ("lhs", "rhs")

    def __init__(self, lhs: Pattern, rhs: RelayExpr):
        self.span = None
        self.lhs = lhs
        self.rhs = rhs

    def __repr__(self) -> str:
        return f"{self.lhs} => {self.rhs}"


class Match(RelayExpr):
    """`Match(data, clauses)`: the value of the first clause that matches; if `complete`, one always does."""

    __slots__ = ("clauses", "complete", "data")

    def __init__(self, data: RelayExpr, clauses: Sequence[Clause], complete: bool = True, span: Span | None = None):
        self._place(span)
        self.data = data
        self.clauses = tuple(clauses)
        self.complete = complete


def _listed(items: Sequence[object]) -> str:
    return ", ".join(map(repr, items))


def pattern_vars(pattern: Pattern) -> Iterator[Var]:
    """The variables that a pattern binds, left to right."""
    pending = [pattern]
    while pending:
        part = pending.pop()
        match part:
            case PatternVar():
                yield part.var
            case PatternConstructor() | PatternTuple():
                pending += reversed(part.patterns)
            case _:
                pass


__dir__ = public_names(__name__)
