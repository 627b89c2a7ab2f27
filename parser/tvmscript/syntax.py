"""Text to syntax tree: the grammar, its indenter, operator precedence, and syntax errors in the user's terms."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

from lark import Lark, Token, Transformer, UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from ...support.diagnostics import MirError, error_at
from ..grammar import load_grammar
from .errors import syntax_error
from .tree import (
    Annotated,
    Assert,
    Assign,
    Augmented,
    Binary,
    Call,
    Expr,
    Expression,
    For,
    Function,
    If,
    Index,
    Keyword,
    Lambda,
    Mapping,
    Member,
    Module,
    Parameter,
    Return,
    Sequence,
    Slice,
    Stmt,
    Unary,
    While,
    With,
)

if TYPE_CHECKING:
    from ..items import Item

COMPARISONS = frozenset(["<", "<=", ">", ">=", "==", "!="])
_PRECEDENCE = {
    "or": 1, "and": 2, "not": 3, **dict.fromkeys(COMPARISONS, 4), "|": 5, "^": 6, "&": 7, "<<": 8, ">>": 8,
    "+": 9, "-": 9, "*": 10, "/": 10, "//": 10, "%": 10, "@": 10, "**": 12,
}  # fmt: skip
_SIGN_PRECEDENCE = 11


class _Prefixed:
    """`not x`, `-x` before its place in the expression is known: it may take in what follows x."""

    __slots__ = ("op", "operand")

    def __init__(self, op: Token, operand: Expr | _Prefixed):
        self.op, self.operand = op, operand


def order(pieces: list[Any]) -> Expr:
    """The tree of operands (perhaps prefixed) and infix operators in turn, by Python's precedence; without recursion."""
    if len(pieces) == 3 and type(pieces[0]) is not _Prefixed and type(pieces[2]) is not _Prefixed:
        return Binary(pieces[1], pieces[0], pieces[2])
    operands: list[Expr] = []
    waiting: list[tuple[int, Token, bool]] = []
    # The right operand of the comparisons made here, should a further comparison follow: a < b < c.
    chained: dict[int, Expr] = {}

    def reduce() -> None:
        precedence, op, prefix = waiting.pop()
        right = operands.pop()
        if prefix:
            operands.append(Unary(op, right))
            return
        left = operands.pop()
        if precedence != 4:
            operands.append(Binary(op, left, right))
            return
        middle = chained.get(id(left))
        if middle is None:
            node = Binary(op, left, right)
        else:
            node = Binary(Token.new_borrow_pos("OPERATOR", "and", op), left, Binary(op, middle, right))
        chained[id(node)] = right
        operands.append(node)

    for piece in pieces:
        if type(piece) is Token and piece.type == "OPERATOR":
            precedence = _PRECEDENCE[piece]
            # `**` groups to the right and binds tighter than a sign to its left.
            while waiting and (waiting[-1][0] > precedence or (waiting[-1][0] == precedence and precedence != 12)):
                reduce()
            waiting.append((precedence, piece, False))
            continue
        while type(piece) is _Prefixed:
            waiting.append((3 if piece.op == "not" else _SIGN_PRECEDENCE, piece.op, True))
            piece = piece.operand
        operands.append(piece)
    while waiting:
        reduce()
    return operands[0]


class _TreeBuilder(Transformer[Token, Any]):
    """Called by the parser at each reduction; lark's own tree is never built."""

    # fmt: off
    def start(self, c: list[Any]) -> Function | Module: return c[0]
    def flat(self, c: list[Any]) -> Expr: return order(c)
    def prefixed(self, c: list[Any]) -> _Prefixed: return _Prefixed(c[0], c[1])
    def group(self, c: list[Any]) -> Expr: return c[0]
    def tuple(self, c: list[Any]) -> Expr: return Sequence(c)
    def list(self, c: list[Any]) -> Expr: return Sequence(c)
    def dict(self, c: list[Any]) -> Expr: return Mapping(c)
    def pair(self, c: list[Any]) -> Any: return (c[0], c[1])
    def index(self, c: list[Any]) -> Expr: return Index(c[0], c[1])
    def member(self, c: list[Any]) -> Expr: return Member(c[0], c[1])
    def slice(self, c: list[Any]) -> Expr: return Slice(c[0], c[1], c[2])
    def arguments(self, c: list[Any]) -> Any: return c
    def keyword(self, c: list[Any]) -> Any: return Keyword(c[0], c[2])
    def concat(self, c: list[Any]) -> Expr: return Call(Token.new_borrow_pos("NAME", "+", c[0]), c, [])
    def result(self, c: list[Any]) -> Expr | None: return c[0]
    def parameters(self, c: list[Any]) -> Any: return c
    def parameter(self, c: list[Any]) -> Parameter: return Parameter(c[0], c[1])
    def decorator(self, c: list[Any]) -> Expr: return c[0]
    def for_(self, c: list[Any]) -> Stmt: return For(c[0], c[1], c[2], c[3])
    def while_(self, c: list[Any]) -> Stmt: return While(c[0], c[1], c[2])
    def if_(self, c: list[Any]) -> Stmt: return If(c[0], c[1], c[2], c[3] if type(c[3]) is list else [c[3]])
    def with_(self, c: list[Any]) -> Stmt: return With(c[0], c[1:-1], c[-1])
    def with_item(self, c: list[Any]) -> Any: return (c[0], c[1])
    def simple_line(self, c: list[Any]) -> Any: return c
    def expression(self, c: list[Any]) -> Stmt: return Expression(c[0])
    def assign(self, c: list[Any]) -> Stmt: return Assign(c[0], c[1], c[2])
    def augmented(self, c: list[Any]) -> Stmt: return Augmented(c[0], c[1], c[2])
    def annotated(self, c: list[Any]) -> Stmt: return Annotated(c[0], c[1], c[3])
    def assert_(self, c: list[Any]) -> Stmt: return Assert(c[0], c[1], c[2])
    def return_(self, c: list[Any]) -> Stmt: return Return(c[0], c[1])
    def pass_(self, c: list[Any]) -> None: return None
    # fmt: on

    def subscripts(self, c: list[Any]) -> list[Expr]:
        if len(c) == 1 and isinstance(c[0], Sequence):
            return c[0].items
        return c

    def call(self, c: list[Any]) -> Expr:
        arguments = c[1]
        for argument in arguments:
            if type(argument) is Keyword:
                break
        else:
            return Call(c[0], arguments, [])
        return Call(
            c[0],
            [a for a in arguments if type(a) is not Keyword],
            [a for a in arguments if type(a) is Keyword],
        )

    def lambda_(self, c: list[Any]) -> Expr:
        return Lambda(c[0], [p for p in c[1:-1] if p is not None], c[-1])

    def else_(self, c: list[Any]) -> list[Stmt]:
        return c[0] if c else []

    def suite(self, c: list[Any]) -> list[Stmt]:
        body: list[Stmt] = []
        for statement in c:
            if type(statement) is list:
                body += [s for s in statement if s is not None]
            else:
                body.append(statement)
        return body

    def function(self, c: list[Any]) -> Function:
        *decorators, name, parameters, result, body = c
        return Function(decorators, name, parameters, result, body)

    def module(self, c: list[Any]) -> Module:
        at = next(
            i for i, child in enumerate(c) if type(child) is Token and child.type == "NAME" and _is_class_name(c, i)
        )
        members: list[Function | Stmt] = []
        for member in c[at + 1 :]:
            members += [s for s in member if s is not None] if type(member) is list else [member]
        return Module(c[:at], c[at], members)


def _is_class_name(children: list[Any], at: int) -> bool:
    """Whether child `at` is the class's name: decorators, which may be names too, come before it, members (no tokens) after."""
    return at + 1 >= len(children) or type(children[at + 1]) is not Token


class _Indenter:
    """Python's layout: blank lines and lines inside brackets do not count, indentation opens and closes suites."""

    always_accept = ("_NL",)
    TAB = 8

    def __init__(self) -> None:
        self.open: list[Token] = []

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        self.open = brackets = []
        levels = [0]
        for token in stream:
            kind = token.type
            if kind == "_NL":
                if brackets:
                    continue
                indent = token.rsplit("\n", 1)[1]
                yield token
                if "#" in indent:
                    # A comment in the last line of the text: its indentation means nothing.
                    continue
                width = indent.count(" ") + indent.count("\t") * self.TAB
                if width > levels[-1]:
                    levels.append(width)
                    yield Token.new_borrow_pos("_INDENT", indent, token)
                else:
                    while width < levels[-1]:
                        levels.pop()
                        yield Token.new_borrow_pos("_DEDENT", indent, token)
                    if width != levels[-1]:
                        raise _BadDedent(token.end_line or 1, width)
            else:
                if kind in _OPENING:
                    brackets.append(token)
                elif kind in _CLOSING and brackets:
                    brackets.pop()
                yield token
        while len(levels) > 1:
            levels.pop()
            yield Token("_DEDENT", "")


_OPENING = frozenset(["LPAR", "LSQB", "LBRACE"])
_CLOSING = frozenset(["RPAR", "RSQB", "RBRACE"])


class _BadDedent(Exception):
    def __init__(self, line: int, width: int):
        super().__init__()
        self.line, self.width = line, width


@cache
def _parser() -> tuple[Lark, _Indenter]:
    indenter = _Indenter()
    return load_grammar(__package__ or "", "tvmscript.lark", transformer=_TreeBuilder(), postlex=indenter), indenter


def parse_item(item: Item) -> Function | Module:
    """The tree of a decorated function or class. Raises MirError for a syntax error."""
    parser, indenter = _parser()
    text = item.text + "\n"
    try:
        return parser.parse(text)  # pyright: ignore[reportReturnType]
    except _BadDedent as error:
        raise error_at(
            item.location(error.line, error.width + 1),
            "this line's indentation matches no line above it",
            "statements of one block start at the same column",
        ) from None
    except (UnexpectedToken, UnexpectedCharacters) as error:
        raise syntax_error(error, item, list(indenter.open), lambda example: _reject(parser, example)) from None


def _reject(parser: Lark, example: str) -> UnexpectedInput | None:
    try:
        parser.parse(example)
    except UnexpectedInput as error:
        return error
    except (_BadDedent, MirError):
        return None
    return None
