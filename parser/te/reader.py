"""Tokens to syntax tree, with syntax errors in the user's terms."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from ...support.diagnostics import MirError, error_at
from ...support.source_text import characters
from ..lalr import Parser, Table, Tokens, load_table, reducers
from ..source import Source
from . import tree
from .lexer import LexError, tokenize

_Head: TypeAlias = "tuple[list[str], str | None]"
"""Parameters, and the name behind a star."""

_GRAMMAR = Path(__file__).with_name("te.lark")


@cache
def _table() -> Table:
    return load_table(_GRAMMAR)


def read_function(source: Source) -> tree.Function:
    """The tree of an item. Raises MirError for a syntax error."""
    try:
        tokens = tokenize(source.item.text)
    except LexError as error:
        raise error_at(source.location(error.position), error.message, error.note) from None
    table = _table()
    parser = Parser(table, tokens, reducers(table, _Builder(tokens, source)))
    failed = parser.run()
    if failed is not None:
        raise _syntax_error(source, tokens, failed, parser)
    if not parser.finish():
        raise error_at(source.location(len(source.item.text.rstrip())), "the function ends too early")
    result = parser.result
    assert isinstance(result, tree.Function)
    return result


_SPOKEN = {
    "NAME": "a name", "NUMBER": "a number", "RPAR": "')'", "RSQB": "']'", "RBRACE": "'}'", "COMMA": "','", "COLON": "':'",
    "EQUAL": "'='", "NEWLINE": "the end of the line", "INDENT": "an indented body", "IN": "'in'", "ELSE": "'else'",
    "DEF": "'def'", "LPAR": "'('",
}  # fmt: skip
_OPEN = {"LPAR": ")", "LSQB": "]", "LBRACE": "}"}
_CLOSE = {"RPAR", "RSQB", "RBRACE"}
_HEADS = {"DEF", "FOR", "IF", "ELIF", "ELSE", "WITH"}


def _syntax_error(source: Source, tokens: Tokens, failed: int, parser: Parser) -> MirError:
    kinds, starts = tokens.kinds, tokens.starts
    kind, word = kinds[failed], tokens.texts[failed]
    location = source.location(starts[failed])
    expected = parser.table.expected(parser.states[-1])
    before = kinds[failed - 1] if failed else ""
    open_at = _open_bracket(kinds, failed)
    if kind == "FOREIGN":
        return error_at(
            location,
            f"'{word}' has no place in a TE function",
            "it holds definitions by te.var, te.placeholder, te.compute…, and returns [inputs…, outputs…]",
        )
    if (
        open_at is not None
        and kind not in _CLOSE
        and (kind in ("NEWLINE", "EQUAL", "DEF", "RETURN") or starts[failed] > _line_end(source, starts[open_at]))
    ):
        closer = _OPEN[kinds[open_at]]
        return error_at(
            source.location(starts[open_at]),
            f"this '{tokens.texts[open_at]}' is never closed",
            f"write '{closer}' at its end",
        )
    if kind in _CLOSE and open_at is None:
        return error_at(location, f"this '{word}' closes nothing", "remove it, or open the bracket before")
    if kind in _CLOSE and open_at is not None and _OPEN[kinds[open_at]] != word:
        return error_at(
            location,
            f"'{word}' does not match the '{tokens.texts[open_at]}' that is open",
            f"write '{_OPEN[kinds[open_at]]}'",
        )
    if kind == "NEWLINE" and "COLON" in expected and _heads_line(kinds, failed):
        return error_at(location, "a ':' is missing before the body", "def, for, if, else and with lines end with ':'")
    if "INDENT" in expected:
        return error_at(location, "the body is missing", "indent it under the line that ends with ':'")
    if kind == "INDENT":
        return error_at(location, "this line is indented more than the one above it", "only a body is indented further")
    if kind == "IS":
        return error_at(location, "'is' has no place in a TE function", "write == to compare")
    if kind == "EQUAL" and ("COMPARE" in expected or _heads_line(kinds, failed)):
        return error_at(location, "'=' assigns, it does not compare", "write == to compare")
    if "NAME" in expected and kind not in ("NAME", "NUMBER", "STRING"):
        found = f"'{word}'" if word else "the end of the line"
        return error_at(location, f"an expression is expected here, not {found}")
    if kind in ("NAME", "NUMBER", "STRING", "LAMBDA") and before in ("NAME", "NUMBER", "STRING", "RPAR", "RSQB"):
        return error_at(
            location,
            "an operator or a comma is missing between two expressions",
            "values in a list are separated by ','",
        )
    names = [spoken for terminal, spoken in _SPOKEN.items() if terminal in expected]
    what = f"unexpected '{word}'" if word else "the line ends too early"
    return error_at(location, what, *([f"expected {' or '.join(names)}"] if names else []))


def _open_bracket(kinds: list[str], end: int) -> int | None:
    """The innermost bracket that is open before token `end`."""
    pending: list[int] = []
    for index in range(end):
        if kinds[index] in _OPEN:
            pending.append(index)
        elif kinds[index] in _CLOSE and pending:
            pending.pop()
    return pending[-1] if pending else None


def _line_end(source: Source, position: int) -> int:
    end = source.item.text.find("\n", position)
    return end if end >= 0 else len(source.item.text)


def _heads_line(kinds: list[str], end: int) -> bool:
    start = end
    while start and kinds[start - 1] not in ("NEWLINE", "INDENT", "DEDENT"):
        start -= 1
    return kinds[start] in _HEADS


def _keyword(argument: Any) -> tuple[int, tree.Expr] | None:
    return argument if isinstance(argument, tuple) else None  # pyright: ignore[reportUnknownVariableType]


class _Builder:
    """One method for each rule; terminals arrive as token indices."""

    def __init__(self, tokens: Tokens, source: Source):
        self.texts, self.starts, self.source = tokens.texts, tokens.starts, source

    def refuse(self, token: int, message: str, *notes: str) -> MirError:
        return error_at(self.source.location(self.starts[token]), message, *notes)

    # fmt: off
    def on_list_of(self, item: Any) -> list[Any]: return [item]
    def on_nothing(self) -> list[Any]: return []
    def on_first(self, items: Any, _: int) -> Any: return items
    def on_decorators(self, *parts: Any) -> list[Any]: return [parts[0]] if len(parts) == 1 else [*parts[0], parts[1]]
    def on_decorator(self, at: int, name: Any, end: int) -> Any: return name
    def on_param(self, name: int) -> tuple[int, bool]: return name, False
    def on_star_param(self, star: int, name: int) -> tuple[int, bool]: return name, True
    def on_returns(self, *_: Any) -> None: return None
    def on_block(self, newline: int, indent: int, body: Any, dedent: int) -> Any: return self._flat(body)
    def on_suite(self, line: Any) -> Any: return line
    def on_statement(self, statement: Any) -> Any: return statement
    def on_simple_line(self, simples: Any, *_: int) -> Any: return simples
    def on_pass_(self, at: int) -> Any: return tree.Pass(self.starts[at])
    def on_no_else(self) -> Any: return []
    def on_else_suite(self, at: int, colon: int, body: Any) -> Any: return body
    def on_expression(self, value: Any) -> Any: return tree.Evaluate(value.at, value)
    def on_return_nothing(self, at: int) -> Any: return tree.Return(self.starts[at], None)
    def on_return_value(self, at: int, value: Any) -> Any: return tree.Return(self.starts[at], value)
    def on_tuple_one(self, item: Any, comma: int) -> Any: return tree.Display(item.at, [item], False)
    def on_tuple_many(self, item: Any, comma: int, items: Any, *_: int) -> Any: return tree.Display(item.at, [item, *items], False)
    def on_starred(self, star: int, value: Any) -> Any: return tree.Starred(self.starts[star], value)
    def on_keyword(self, name: int, equal: int, value: Any) -> Any: return (name, value)
    def on_name(self, name: int) -> Any: return tree.Name(self.starts[name], self.texts[name])
    def on_empty_tuple(self, left: int, right: int) -> Any: return tree.Display(self.starts[left], [], False)
    def on_empty_list(self, left: int, right: int) -> Any: return tree.Display(self.starts[left], [], True)
    def on_empty_dict(self, left: int, right: int) -> Any: return tree.DictDisplay(self.starts[left], [])
    def on_list_display(self, left: int, items: Any, *_: int) -> Any: return tree.Display(self.starts[left], items, True)
    def on_dict_display(self, left: int, pairs: Any, *_: int) -> Any: return tree.DictDisplay(self.starts[left], pairs)
    def on_pair(self, key: Any, colon: int, value: Any) -> Any: return (key, value)
    def on_attribute(self, base: Any, dot: int, name: int) -> Any: return tree.Attribute(base.at, base, self.texts[name])
    def on_index(self, base: Any, left: int, items: Any, right: int) -> Any: return tree.Index(base.at, base, *items)
    def on_subscripts(self, items: Any) -> Any: return items, False
    def on_subscripts_tuple(self, items: Any, comma: int) -> Any: return items, True
    def on_slice(self, start: Any, colon: int, stop: Any) -> Any: return tree.Slice(self.starts[colon], start, stop)
    def on_no_bound(self) -> Any: return None
    def on_binary(self, left: Any, op: int, right: Any) -> Any: return tree.Binary(self.starts[op], self.texts[op], left, right)
    def on_unary(self, op: int, operand: Any) -> Any: return tree.Unary(self.starts[op], self.texts[op], operand)
    def on_connective(self, left: Any, op: int, right: Any) -> Any: return tree.Connective(self.starts[op], self.texts[op], left, right)
    def on_assign_first(self, target: Any, equal: int, value: Any) -> Any: return [target, value]
    def on_assign_more(self, parts: Any, equal: int, value: Any) -> Any: return [*parts, value]
    # fmt: on

    def on_append(self, items: list[Any], *rest: Any) -> list[Any]:
        items.append(rest[-1])
        return items

    on_append_second = on_append

    def on_start(self, decorators: list[tree.Expr], function: tree.Function) -> tree.Function:
        function.decorators = decorators
        return function

    def on_params(self, *parts: Any) -> _Head:
        names: list[str] = []
        rest: str | None = None
        declared: list[tuple[int, bool]] = parts[0] if parts else []
        for token, starred in declared:
            name = self.texts[token]
            if rest is not None:
                raise self.refuse(token, f"parameter '{name}' stands behind *{rest}, which takes all that follows")
            if name in names:
                raise self.refuse(token, f"parameter '{name}' is declared twice")
            if starred:
                rest = name
            else:
                names.append(name)
        return names, rest

    def on_function(
        self, at: int, name: int, left: int, head: _Head, right: int, returns: None, colon: int, body: list[tree.Stmt]
    ) -> tree.Function:
        params, rest = head
        return tree.Function(self.starts[at], self.texts[name], params, rest, body)

    def on_for_loop(self, at: int, target: Any, in_: int, iterable: Any, colon: int, body: Any) -> tree.For:
        return tree.For(self.starts[at], target, iterable, body)

    def on_if_else(self, at: int, condition: Any, colon: int, body: Any, orelse: Any) -> tree.If:
        return tree.If(self.starts[at], condition, body, orelse)

    def on_elif_part(self, at: int, condition: Any, colon: int, body: Any, orelse: Any) -> list[tree.Stmt]:
        return [tree.If(self.starts[at], condition, body, orelse)]

    def on_with_block(self, at: int, context: Any, colon: int, body: Any) -> tree.With:
        return tree.With(self.starts[at], context, None, body)

    def on_with_as(self, at: int, context: Any, as_: int, target: Any, colon: int, body: Any) -> tree.With:
        return tree.With(self.starts[at], context, target, body)

    def on_assign(self, parts: list[Any]) -> tree.Assign:
        return tree.Assign(parts[0].at, parts[:-1], parts[-1])

    def on_augmented(self, target: Any, op: int, value: Any) -> tree.Augmented:
        return tree.Augmented(self.starts[op], self.texts[op][:-1], target, value)

    def on_compare(self, left: Any, op: int, right: Any) -> tree.Binary:
        if isinstance(left, tree.Binary) and not left.grouped and left.op in ("<", "<=", ">", ">=", "==", "!="):
            raise self.refuse(op, "comparisons cannot be chained here", "write te.all(a < b, b < c)")
        return tree.Binary(self.starts[op], self.texts[op], left, right)

    def on_parenthesized(self, left: int, value: Any, right: int) -> Any:
        if isinstance(value, tree.Binary):
            value.grouped = True
        return value

    def on_conditional(self, then: Any, if_: int, condition: Any, else_: int, orelse: Any) -> tree.Conditional:
        return tree.Conditional(self.starts[if_], condition, then, orelse)

    def on_lambda_(self, at: int, params: Any, colon: int, body: Any) -> tree.Lambda:
        return tree.Lambda(self.starts[at], params[0], params[1], body)

    def on_call(self, function: Any, left: int, arguments: list[Any], right: int) -> tree.Call:
        keywords: list[tuple[str, tree.Expr]] = []
        positional: list[tree.Expr] = []
        for argument in arguments:
            pair = _keyword(argument)
            if pair is not None:
                token, value = pair
                name = self.texts[token]
                if any(name == other for other, _ in keywords):
                    raise self.refuse(token, f"argument '{name}' is given twice")
                keywords.append((name, value))
            elif keywords and not isinstance(argument, tree.Starred):
                raise error_at(self.source.location(argument.at), "a positional argument stands behind one with a name")
            else:
                positional.append(argument)
        return tree.Call(function.at, function, positional, keywords)

    def on_number(self, token: int) -> tree.Literal:
        text = self.texts[token].replace("_", "")
        try:
            value: int | float
            if len(text) > 100 and "." not in text:
                raise self.refuse(token, "this number is too large")
            if text[:2].lower() in ("0x", "0b", "0o"):
                value = int(text, 0)
            elif text.isdecimal():
                if text[0] == "0" and text.strip("0"):
                    raise self.refuse(
                        token, f"'{self.texts[token]}' is no number", "a decimal integer does not begin with 0"
                    )
                value = int(text)
            else:
                value = float(text)
        except ValueError:
            raise self.refuse(token, f"'{self.texts[token]}' is no number") from None
        return tree.Literal(self.starts[token], value)

    def on_string(self, tokens: list[int]) -> tree.Literal:
        parts: list[str] = []
        for token in tokens:
            try:
                parts.append(characters(str(ast.literal_eval(self.texts[token]))))
            except (SyntaxError, ValueError):
                raise self.refuse(token, "this string has an escape that cannot be read") from None
        return tree.Literal(self.starts[tokens[0]], "".join(parts))

    def on_constant(self, token: int) -> tree.Literal:
        return tree.Literal(self.starts[token], {"True": True, "False": False, "None": None}[self.texts[token]])

    def _flat(self, body: list[Any]) -> list[tree.Stmt]:
        statements: list[tree.Stmt] = []
        for statement in body:
            statements += statement if isinstance(statement, list) else [statement]
        return statements
