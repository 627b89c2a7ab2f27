"""Builds the syntax tree of a text: nodes by the grammar's rules, operators by precedence."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ...support.diagnostics import error_at
from ..lalr import LexError, Parser, ParsingTable, Tokens, load_table, reducers
from ..source import Source
from .lexer import Language, tokenize
from .tree import (
    Annotated,
    Assert,
    Assign,
    Augmented,
    Binary,
    Call,
    Conditional,
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
    Token,
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
_PREFIX_PRECEDENCE = {"*": 0, "not": 3}
_SIGN_PRECEDENCE = 11


class _Prefixed:
    """`not x`, `-x` before its place in the expression is known: it may take in what follows x."""

    __slots__ = ("op", "operand")

    def __init__(self, op: Token, operand: Expr | _Prefixed):
        self.op, self.operand = op, operand


def order(pieces: list[Any]) -> Expr:
    """Builds the tree of alternating operands (perhaps prefixed) and infix operators, without recursion.

    `a + b * c` → `a + (b * c)`; `a < b < c` → `a < b and b < c`. Precedence is Python's.
    """
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
            operands.append(right if op == "+" else Unary(op, right))
            return
        left = operands.pop()
        node = Binary(op, left, right)
        if precedence == 4:
            middle = chained.get(id(left))
            if middle is not None:
                node = Binary(Token("OPERATOR", "and", op.start), left, Binary(op, middle, right))
            chained[id(node)] = right
        operands.append(node)

    for piece in pieces:
        if isinstance(piece, Token) and piece.type == "OPERATOR":
            precedence = _PRECEDENCE[piece]
            # `**` groups to the right and binds tighter than a sign to its left.
            while waiting and (waiting[-1][0] > precedence or (waiting[-1][0] == precedence and precedence != 12)):
                reduce()
            waiting.append((precedence, piece, False))
            continue
        while isinstance(piece, _Prefixed):
            waiting.append((_PREFIX_PRECEDENCE.get(piece.op, _SIGN_PRECEDENCE), piece.op, True))
            piece = piece.operand
        operands.append(piece)
    while waiting:
        reduce()
    return operands[0]


class _TreeBuilder:
    """One method a rule. Values are the tree's nodes; of a token, its index."""

    def __init__(self, tokens: Tokens):
        self.texts, self.starts = tokens.texts, tokens.starts

    def token(self, kind: str, at: int) -> Token:
        """The token at an index."""
        return Token(kind, self.texts[at], self.starts[at])

    # fmt: off
    # Lists
    def on_nothing(self, *_: int) -> None: return None
    def on_none(self) -> list[Any]: return []
    def on_one(self, value: Any) -> list[Any]: return [value]
    def on_two(self, first: Any, comma: int, second: Any) -> list[Any]: return [first, second]
    def on_first(self, value: Any, comma: int) -> list[Any]: return [value]
    def on_trailing(self, values: list[Any], *_: int) -> list[Any]: return values

    # Expressions
    def on_name(self, at: int) -> Expr: return Token("NAME", self.texts[at], self.starts[at])
    def on_number(self, at: int) -> Expr: return Token("NUMBER", self.texts[at], self.starts[at])
    def on_string(self, at: int) -> Expr: return Token("STRING", self.texts[at], self.starts[at])
    def on_member(self, base: Expr, at: int) -> Expr: return Member(base, self.token("MEMBER", at))
    def on_group(self, left: int, value: Expr, right: int) -> Expr: return value
    def on_empty(self, left: int, right: int) -> Expr: return Sequence([], bracket=self.starts[left])
    def on_list(self, left: int, items: list[Expr], right: int) -> Expr: return Sequence(items, True, self.starts[left])
    def on_empty_dict(self, left: int, right: int) -> Expr: return Mapping([], self.starts[left])
    def on_dict(self, left: int, pairs: list[Any], *_: int) -> Expr: return Mapping(pairs, self.starts[left])
    def on_pair(self, key: Expr, colon: int, value: Expr) -> Any: return (key, value)
    def on_tuple(self, items: list[Expr], *_: int) -> Expr: return Sequence(items)
    def on_tuple_of_one(self, item: Expr, comma: int) -> Expr: return Sequence([item])
    def on_flat(self, pieces: list[Any]) -> Expr: return order(pieces)
    def on_alone(self, value: Any) -> Expr: return order([value]) if type(value) is _Prefixed else value
    def on_prefixed(self, at: int, operand: Any) -> Any: return _Prefixed(self.token("PREFIX", at), operand)
    def on_keyword(self, at: int, equal: int, value: Expr) -> Any: return Keyword(self.token("NAME", at), value)
    def on_slice(self, start: Any, colon: int, stop: Any) -> Expr: return Slice(start, stop, None, self.starts[colon])
    def on_stepped_slice(self, start: Any, c: int, stop: Any, d: int, step: Any) -> Expr: return Slice(start, stop, step, self.starts[c])
    def on_star_name(self, star: int, at: int) -> Token: return self.token("STAR", at)
    def on_conditional(self, then: Expr, at: int, condition: Expr, e: int, orelse: Expr) -> Expr: return Conditional(self.token("IF", at), condition, then, orelse)
    def on_lambda(self, at: int, names: list[Token], colon: int, body: Expr) -> Expr: return Lambda(self.token("LAMBDA", at), names, body)
    def on_bare_lambda(self, at: int, colon: int, body: Expr) -> Expr: return Lambda(self.token("LAMBDA", at), [], body)

    # Statements
    def on_expression(self, value: Expr) -> Stmt: return Expression(value)
    def on_assign(self, target: Expr, at: int, value: Expr) -> Stmt: return Assign(target, self.token("EQUAL", at), value)
    def on_chained(self, before: Assign, at: int, value: Expr) -> Stmt: return Assign(before.target, before.token, value, [*before.more, before.value])
    def on_augmented(self, target: Expr, at: int, value: Expr) -> Stmt: return Augmented(target, self.token("AUGMENTED", at), value)
    def on_declaration(self, target: Expr, colon: int, type: Expr) -> Stmt: return Annotated(target, type, None)
    def on_annotated(self, target: Expr, colon: int, type: Expr, at: int, value: Expr) -> Stmt: return Annotated(target, type, value)
    def on_assert(self, at: int, condition: Expr) -> Stmt: return Assert(self.token("ASSERT", at), condition, None)
    def on_assert_with_message(self, at: int, condition: Expr, comma: int, message: Expr) -> Stmt: return Assert(self.token("ASSERT", at), condition, message)
    def on_return(self, at: int, value: Expr) -> Stmt: return Return(self.token("RETURN", at), value)
    def on_bare_return(self, at: int) -> Stmt: return Return(self.token("RETURN", at), None)
    def on_pass(self, at: int) -> None: return None
    def on_simple_one(self, statement: Stmt | None) -> list[Stmt]: return [] if statement is None else [statement]
    def on_simple_more(self, line: list[Stmt], semicolon: int, statement: Stmt | None) -> list[Stmt]: return line if statement is None else [*line, statement]
    def on_body_first(self, value: Any) -> list[Any]: return cast("list[Any]", value) if isinstance(value, list) else [value]
    def on_indented(self, newline: int, indent: int, body: list[Stmt], dedent: int) -> list[Stmt]: return body
    def on_for(self, at: int, target: Expr, i: int, iterable: Expr, c: int, body: list[Stmt]) -> Stmt: return For(self.token("FOR", at), target, iterable, body)
    def on_while(self, at: int, condition: Expr, colon: int, body: list[Stmt]) -> Stmt: return While(self.token("WHILE", at), condition, body)
    def on_if(self, at: int, condition: Expr, colon: int, body: list[Stmt], orelse: list[Stmt]) -> Stmt: return If(self.token("IF", at), condition, body, orelse)
    def on_else(self, at: int, colon: int, body: list[Stmt]) -> list[Stmt]: return body
    def on_elif(self, at: int, condition: Expr, colon: int, body: list[Stmt], orelse: list[Stmt]) -> list[Stmt]: return [self.on_if(at, condition, colon, body, orelse)]
    def on_with(self, at: int, items: list[Any], colon: int, body: list[Stmt]) -> Stmt: return With(self.token("WITH", at), items, body)
    def on_with_item(self, value: Expr) -> Any: return (value, None)
    def on_with_item_as(self, value: Expr, at: int, target: Expr) -> Any: return (value, target)

    # Items
    def on_decorator(self, at: int, value: Expr, newline: int) -> Expr: return value
    def on_result(self, arrow: int, value: Expr) -> Expr: return value
    def on_bare_parameter(self, at: int) -> Parameter: return Parameter(self.token("NAME", at), None)
    def on_star_parameter(self, star: int, at: int) -> Parameter: return Parameter(self.token("STAR", at), None)
    def on_parameter(self, at: int, colon: int, type: Expr) -> Parameter: return Parameter(self.token("NAME", at), type)
    def on_function(self, decorators: list[Expr], at: int, name: int, left: int, parameters: list[Parameter], right: int, result: Expr | None, colon: int, body: list[Stmt]) -> Function: return Function(decorators, self.token("DEF", at), self.token("NAME", name), parameters, result, body)
    def on_bare_function(self, at: int, *rest: Any) -> Function: return self.on_function([], at, *rest)
    def on_short_module(self, decorators: list[Expr], at: int, name: int, bases: None, colon: int, members: list[Any]) -> Module: return Module(decorators, self.token("NAME", name), members)
    def on_module(self, decorators: list[Expr], at: int, name: int, bases: None, colon: int, newline: int, indent: int, members: list[Any], dedent: int) -> Module: return Module(decorators, self.token("NAME", name), members)
    # fmt: on

    def on_more(self, values: list[Any], value: Any) -> list[Any]:
        values.append(value)
        return values

    def on_joined(self, values: list[Any], comma: int, value: Any) -> list[Any]:
        return self.on_more(values, value)

    def on_body_more(self, body: list[Any], value: Any) -> list[Any]:
        if type(value) is list:
            body += value
        else:
            body.append(value)
        return body

    def on_infix(self, left: Any, at: int, right: Any) -> list[Any]:
        return [left, Token("OPERATOR", self.texts[at], self.starts[at]), right]

    def on_infix_more(self, pieces: list[Any], at: int, right: Any) -> list[Any]:
        pieces.append(Token("OPERATOR", self.texts[at], self.starts[at]))
        pieces.append(right)
        return pieces

    def on_concat(self, before: Expr, at: int) -> Expr:
        """Strings side by side are one; the tree keeps them as a call of `+`."""
        part = self.token("STRING", at)
        if isinstance(before, Call):
            before.arguments.append(part)
            return before
        assert isinstance(before, Token)
        return Call(Token("NAME", "+", before.start), [before, part], [])

    def on_call(self, function: Expr, left: int, arguments: list[Any], right: int) -> Expr:
        for argument in arguments:
            if type(argument) is Keyword:
                keywords = [a for a in arguments if type(a) is Keyword]
                return Call(function, [a for a in arguments if type(a) is not Keyword], keywords)
        return Call(function, arguments, [])

    def on_index(self, base: Expr, left: int, items: list[Expr], right: int) -> Expr:
        if len(items) == 1 and type(items[0]) is Sequence:
            items = items[0].items
        return Index(base, items)


@cache
def table() -> ParsingTable:
    """The grammar's table."""
    return load_table(Path(__file__).with_name("python.lark"))


def parse_tree(item: Item, language: Language) -> Function | Module:
    """The tree of a decorated function or class. Raises MirError for a syntax error."""
    try:
        tokens, brackets = tokenize(item.text, language)
    except LexError as error:
        raise error_at(Source(item).location(error.position), error.message, *error.notes) from None
    parser = Parser(table(), tokens, reducers(table(), _TreeBuilder(tokens)))
    failed = parser.run()
    if failed is None and parser.finish():
        return parser.result  # pyright: ignore[reportReturnType]
    from .errors import syntax_error  # Only a text with an error needs it.

    at = len(tokens.kinds) if failed is None else failed
    raise syntax_error(parser, tokens, at, brackets, Source(item).location, item.text, language)
