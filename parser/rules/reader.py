"""Tokens to syntax tree, with syntax errors in the user's terms."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from xdsl.dialects.builtin import FileLineColLoc

from ...support.diagnostics import MirError, error_at
from ...support.text import did_you_mean
from ..lalr import (
    BRACKETS,
    CLOSERS,
    LexError,
    Parser,
    ParsingTable,
    Tokens,
    load_table,
    open_brackets,
    reducers,
)
from ..source import Source
from . import tree
from .lexer import CLAUSES, INFIX, tokenize

_GRAMMAR = Path(__file__).with_name("rules.lark")


@cache
def _table() -> ParsingTable:
    return load_table(_GRAMMAR)


def read_item(source: Source) -> tree.Rewrite | tree.Ruleset | tree.Operator | tree.KernelRule:
    """The tree of an item, or of the first lines of a schedule rule. Raises MirError for a syntax error."""
    try:
        tokens = tokenize(source.item.text)
    except LexError as error:
        raise error_at(source.location(error.position), error.message, *error.notes) from None
    table = _table()
    parser = Parser(table, tokens, reducers(table, _Builder(tokens, source)))
    failed = parser.run()
    if failed is not None:
        raise _syntax_error(source, tokens, failed, parser)
    if not parser.finish():
        raise _early_end(source, tokens)
    result = parser.result
    assert isinstance(result, tree.Rewrite | tree.Ruleset | tree.Operator | tree.KernelRule)
    return result


KERNEL_FORM = "a schedule rule is: rule for nn.dense(%x, %w) where condition, above @T.schedule"
_SPOKEN = {
    "LBRACE": "'{'", "RBRACE": "'}'", "FATARROW": "'=>'", "RPAR": "')'", "RSQB": "']'", "COMMA": "','", "EQUAL": "'='",
    "GLOBAL": "a name such as @simplify", "NAME": "a name", "LOCAL": "a value such as %x", "NUMBER": "a number",
}  # fmt: skip
# Tokens that a value may begin with.
_STARTS = frozenset(
    ["LOCAL", "ATTR", "NUMBER", "NAME", "STRING", "TRUE", "FALSE", "NONE", "UNDERSCORE", "LPAR", "LSQB"]
)


_OPERATOR_FORM = "an operator is: operator my.name(%x: Tensor, alpha=1.0) -> Tensor { compute @f }"


def _early_end(source: Source, tokens: Tokens) -> MirError:
    """Returns the error of a rule whose text ends before it does."""
    if tokens.kinds[:1] == ["OPERATOR"]:
        return error_at(
            source.location(max(len(source.item.text.rstrip()) - 1, 0)), "the operator ends too early", _OPERATOR_FORM
        )
    is_kernels = bool({"RULE", "OPTIONAL"} & set(tokens.kinds[:1]))
    form = KERNEL_FORM if is_kernels else "a rule is: rewrite @name { lhs => rhs where condition }"
    stack = open_brackets(tokens.kinds, len(tokens.kinds))
    if stack and "//" not in source.item.text:
        start = tokens.starts[stack[-1]]
        return error_at(source.location(start), f"this '{source.item.text[start]}' is never closed", form)
    comment = "'//' begins a comment, which ends with the line; a floor division is written floordiv(%x, %y)"
    return error_at(
        source.location(max(len(source.item.text.rstrip()) - 1, 0)),
        "the rule ends too early",
        *([form, comment] if "//" in source.item.text else [form]),
    )


def _syntax_error(source: Source, tokens: Tokens, failed: int, parser: Parser) -> MirError:
    kind, word = tokens.kinds[failed], tokens.texts[failed]
    location = source.location(tokens.starts[failed])
    if tokens.kinds[0] == "OPERATOR" and (failed == 0 or "GRADIENT" not in tokens.kinds[:failed]):
        return _operator_error(location, tokens, failed, {k for k in parser.table.expected(parser.settling()[-1])})
    expected = {k for state in parser.settling() for k in parser.table.expected(state) if parser.accepts(k)}
    stack = open_brackets(tokens.kinds, failed)
    open_at = stack[-1] if stack else None
    opener = "" if open_at is None else tokens.kinds[open_at]
    if kind in BRACKETS and not any(CLOSERS[tokens.kinds[bracket]] == kind for bracket in stack):
        return error_at(location, f"this '{word}' closes nothing", "remove it, or open the bracket before")
    ends_side = kind in ("FATARROW", "WHERE") and opener in ("LPAR", "LSQB")
    if open_at is not None and (ends_side or (kind in BRACKETS and CLOSERS[opener] != kind)):
        return error_at(
            source.location(tokens.starts[open_at]),
            f"this '{tokens.texts[open_at]}' is never closed",
            f"write '{BRACKETS[CLOSERS[opener]]}' at its end",
        )
    before = tokens.kinds[failed - 1] if failed else ""
    if kind == "RBRACE" and "FATARROW" in expected:
        return error_at(location, "a rule has two sides", "write what it becomes after '=>': lhs => rhs")
    if before == "LBRACE" and kind in ("FATARROW", "RBRACE"):
        return error_at(location, "this rule has no pattern", "a rule is: lhs => rhs where condition")
    if before == "FATARROW" and kind == "RBRACE":
        return error_at(location, "this rule has no replacement", "write what the pattern becomes: lhs => rhs")
    if kind == "ARROW":
        return error_at(location, "unexpected '->'", "the sides of a rule are separated by '=>'")
    if before == "BENEFIT":
        return error_at(location, f"unexpected '{word}'", "write benefit(2)")
    if before == "POWER":
        return error_at(
            location, f"unexpected '{word}'", "all other attributes are **$rest, or **_ where they do not matter"
        )
    if "ELSE" in expected and "IF" not in expected:
        return error_at(location, "a choice of two has no second", "write what it is otherwise: a if condition else b")
    if kind == "FATARROW" and tokens.kinds[0] in ("RULE", "OPTIONAL"):
        return error_at(location, "a schedule rule replaces nothing: it has no '=>'", KERNEL_FORM)
    if kind == "FATARROW":
        return error_at(location, "a rule has one '=>'", "begin the next rule with rewrite @name { … }")
    if word == "fast":
        return error_at(location, "unexpected 'fast'", "it marks a rule: fast rewrite @name { … }, on one line")
    if (
        kind == "NAME"
        and before == "NUMBER"
        and tokens.starts[failed - 1] + len(number := tokens.texts[failed - 1]) == tokens.starts[failed]
    ):
        return error_at(
            location,
            f"the number {number} of a rule takes no suffix '{word}'",
            f"a pattern's {number} matches constants of every dtype; const({number}, %x.dtype) makes one in a replacement",
        )
    if word == "%":
        return error_at(location, "a name is missing after '%'", "values of a pattern are written %x")
    if kind == "SEMICOLON":
        note = (
            "rules of a set follow each other without a separator"
            if before == "RBRACE"
            else "separate roots and conditions with ','"
        )
        return error_at(location, "nothing in a rule ends with ';'", note)
    if kind == "NAME" and failed and tokens.kinds[failed - 1] in ("LOCAL", "RPAR", "NUMBER") and word == "when":
        return error_at(location, f"unexpected '{word}'", "a condition follows 'where'")
    if kind == "EQUAL" and tokens.kinds[failed - 1] == "NAME":
        return error_at(
            location, "unexpected '='", "to compare write ==; only a call's attributes are written name=value"
        )
    if kind in _STARTS and "COMMA" in expected and opener in ("LPAR", "LSQB"):
        return error_at(location, f"a comma is missing before '{word}'")
    if kind in _STARTS and "FATARROW" in expected and opener == "LBRACE":
        return error_at(location, "a rule has two sides", "write '=>' between them: lhs => rhs")
    if "INCLUDE" in expected:
        return error_at(location, f"unexpected '{word}'", "a set holds rewrite @name { … } and include @other")
    if before == "FOR":
        return error_at(location, f"unexpected '{word}'", "write for tir; without it, a rule is for relay")
    name = tokens.texts[failed - 1] if failed else ""
    if kind == "COLON" and before == "NAME":
        return error_at(location, "unexpected ':'", f"an op's attribute is written {name}=…")
    if name == "let" and kind == "LOCAL":
        return error_at(
            source.location(tokens.starts[failed - 1]), "unexpected 'let'", f"a value is named without it: {word} = …"
        )
    if before == "NAME" and "LPAR" in expected and "FATARROW" not in expected:
        return error_at(
            source.location(tokens.starts[failed - 1]),
            f"'{name}' alone is not a value",
            f'a captured value is %{name}, an attribute ${name}, an op {name}(…), a string "{name}"',
        )
    if expected == {"GLOBAL"}:
        return error_at(location, f"unexpected '{word}'", "rules and sets have names that begin with '@'")
    wanted = [_SPOKEN[name] for name in _SPOKEN if name in expected]
    hint = (
        f"expected {', '.join(wanted[:-1])} or {wanted[-1]}"
        if len(wanted) > 1
        else f"expected {wanted[0]}"
        if wanted
        else ""
    )
    return error_at(location, f"unexpected '{word}'", *([hint] if hint else []))


def _operator_error(location: FileLineColLoc, tokens: Tokens, failed: int, expected: set[str]) -> MirError:
    """Returns the syntax error of an operator outside of its gradient."""
    word = tokens.texts[failed]
    if "GRADIENT" in expected:
        return error_at(
            location,
            f"an operator has no clause '{word}'{did_you_mean(word, CLAUSES)}",
            f"its clauses are {', '.join(CLAUSES)}",
        )
    if tokens.kinds[failed] == "ATTR":
        return error_at(location, f"unexpected '{word}'", f"an attribute is declared without a sign: {word[1:]}=1.0")
    return error_at(location, f"unexpected '{word}'", _OPERATOR_FORM)


class _Builder:
    """One method for each alternative of the grammar; a token's value is its index."""

    def __init__(self, tokens: Tokens, source: Source):
        self.texts, self.starts, self.source = tokens.texts, tokens.starts, source

    def _at(self, token: int) -> int:
        return self.starts[token]

    def _name(self, token: int) -> str:
        return self.texts[token].lstrip("%$@")

    def _error(self, token: int, message: str, *notes: str) -> MirError:
        return error_at(self.source.location(self._at(token)), message, *notes)

    # fmt: off
    # Lists
    def on_nothing(self) -> list[Any]: return []
    def on_one(self, item: Any) -> list[Any]: return [item]
    def on_first(self, value: Any, _: int) -> Any: return value
    def on_second(self, _: int, value: Any) -> Any: return value

    # Items
    def on_rewrite(self, keyword: int, name: int, header: tree.Header, _1: int, lhs: Any, _2: int, rhs: Any, where: Any, _3: int) -> tree.Rewrite: return tree.Rewrite(self._at(keyword), self._name(name), header, lhs, rhs, where)
    def on_fast_rewrite(self, fast: int, _: int, name: int, header: tree.Header, *rest: Any) -> tree.Rewrite: return self.on_rewrite(fast, name, replace(header, fast=True), *rest)
    def on_kernel_header_plain(self, _: int) -> int: return 1
    def on_kernel_rule(self, keyword: int, benefit: int, patterns: Any, where: Any) -> tree.KernelRule: return tree.KernelRule(self._at(keyword), benefit, patterns, where)
    def on_optional_rule(self, keyword: int, _: int, *rest: Any) -> tree.KernelRule: return replace(self.on_kernel_rule(keyword, *rest), optional=True)
    def on_header_empty(self) -> tree.Header: return tree.Header()
    def on_header_level(self, header: tree.Header, word: int, name: int) -> tree.Header: return replace(header, level=self.texts[name])
    def on_bind_attr(self, name: int, _: int, value: tree.Node) -> tree.Bind: return tree.Bind(self._at(name), self._name(name), value)
    def on_bind_value(self, name: int, _: int, value: tree.Node) -> tree.Named: return tree.Named(self._at(name), self._name(name), value)

    # Operators
    def on_operator(self, keyword: int, name: int, _1: int, parameters: list[tree.Declared], _2: int, result: str, _3: int, clauses: list[tree.Clause], _4: int) -> tree.Operator: return tree.Operator(self._at(keyword), self.texts[name], parameters, result, clauses)
    def on_parameter_value(self, name: int, type: str) -> tree.Declared: return tree.Declared(self._at(name), self._name(name), type)
    def on_parameter_tuple(self, name: int, _: int, type: str) -> tree.Declared: return tree.Declared(self._at(name), self._name(name), type, is_tuple=True)
    def on_parameter_required(self, name: int, _: int, kind: tuple[str, bool]) -> tree.Declared: return tree.Declared(self._at(name), self.texts[name], kind=kind[0], nullable=kind[1])
    def on_parameter_kind(self, name: int, _1: int, kind: tuple[str, bool], _2: int, default: tree.Node) -> tree.Declared: return tree.Declared(self._at(name), self.texts[name], kind=kind[0], nullable=kind[1], default=default)
    def on_parameter_default(self, name: int, _: int, default: tree.Node) -> tree.Declared: return tree.Declared(self._at(name), self.texts[name], kind="", default=default)
    def on_annotation_none(self) -> str: return "Tensor"
    def on_kind_name(self, name: int) -> tuple[str, bool]: return self.texts[name], False
    def on_kind_nullable(self, name: int, _: int) -> tuple[str, bool]: return self.texts[name], True
    def on_type_any(self, name: int) -> str: return self.texts[name]
    def on_type_shape(self, name: int, _1: int, _2: int, dims: list[str], _3: int, _4: int, dtype: int, _5: int) -> str: return f"{self.texts[name]}[({', '.join(dims)}), {self.texts[dtype]}]"
    def on_dim(self, token: int) -> str: return self.texts[token]
    def on_clause_word(self, word: int, name: int) -> tree.Clause: return tree.Clause(self._at(word), self.texts[word], [(self._at(name), self.texts[name])])
    def on_clause_compute(self, word: int, names: list[int]) -> tree.Clause: return tree.Clause(self._at(word), self.texts[word], [(self._at(name), self._name(name)) for name in names])
    def on_clause_gradient(self, word: int, values: list[tree.Node]) -> tree.Clause: return tree.Clause(self._at(word), self.texts[word], values=values)
    def on_clause_text(self, word: int, string: int) -> tree.Clause: return tree.Clause(self._at(word), self.texts[word], values=[self.on_string(string)])
    def on_next(self, items: list[Any], item: Any) -> list[Any]: return [*items, item]

    # Expressions
    def on_conditional(self, a: tree.Node, _1: int, condition: tree.Node, _2: int, b: tree.Node) -> tree.Node: return tree.Operation(a.at, "ifelse", (condition, a, b))
    def on_or_(self, a: tree.Node, _: int, b: tree.Node) -> tree.Node: return tree.Operation(a.at, "or_", (a, b))
    def on_and_(self, a: tree.Node, _: int, b: tree.Node) -> tree.Node: return tree.Operation(a.at, "and_", (a, b))
    def on_not_(self, word: int, a: tree.Node) -> tree.Node: return tree.Operation(self._at(word), "not_", (a,))
    def on_binary(self, a: tree.Node, operator: int, b: tree.Node) -> tree.Node: return tree.Operation(a.at, INFIX[self.texts[operator]], (a, b))
    def on_in_(self, a: tree.Node, _: int, b: tree.Node) -> tree.Node: return tree.Operation(a.at, "contains", (b, a))
    def on_not_in(self, a: tree.Node, _1: int, _2: int, b: tree.Node) -> tree.Node: return tree.Operation(a.at, "not_", (self.on_in_(a, _2, b),))
    def on_member(self, value: tree.Node, _: int, name: int) -> tree.Node: return tree.RuleMember(value.at, value, self.texts[name])
    def on_field(self, value: tree.Node, index: int) -> tree.Node: return tree.Field(value.at, value, int(self.texts[index][1:]))
    def on_index(self, value: tree.Node, _1: int, index: tree.Node, _2: int) -> tree.Node: return tree.Operation(value.at, "getitem", (value, index))
    def on_slice_(self, value: tree.Node, _1: int, start: tree.Node, _2: int, stop: tree.Node, _3: int) -> tree.Node: return tree.Operation(value.at, "slice", (value, start, stop))
    def on_bound_none(self) -> tree.Node: return tree.Literal(0, None)
    def on_local(self, name: int) -> tree.Node: return tree.Local(self._at(name), self._name(name))
    def on_run(self, name: int, _: int) -> tree.Node: return tree.Run(self._at(name), self._name(name))
    def on_attr(self, name: int) -> tree.Node: return tree.Attr(self._at(name), self._name(name))
    def on_wildcard(self, word: int) -> tree.Node: return tree.Wildcard(self._at(word))
    def on_number(self, number: int) -> tree.Node: return tree.Literal(self._at(number), self._number(number))
    def on_constant(self, word: int) -> tree.Node: return tree.Literal(self._at(word), {"True": True, "False": False, "None": None}[self.texts[word]])
    # A run alone in parentheses is a tuple of any length.
    def on_paren(self, open: int, value: tree.Node, _: int) -> tree.Node: return tree.Tuple(self._at(open), (value,)) if isinstance(value, tree.Run) else value
    def on_tuple_empty(self, open: int, _: int) -> tree.Node: return tree.Tuple(self._at(open), ())
    def on_tuple_one(self, open: int, value: tree.Node, *_: int) -> tree.Node: return tree.Tuple(self._at(open), (value,))
    def on_tuple_more(self, open: int, value: tree.Node, _: int, rest: list[tree.Node], *__: int) -> tree.Node: return tree.Tuple(self._at(open), (value, *rest))
    def on_list_empty(self, open: int, _: int) -> tree.Node: return tree.Tuple(self._at(open), (), brackets=True)
    def on_list_(self, open: int, items: list[tree.Node], *_: int) -> tree.Node: return tree.Tuple(self._at(open), items, brackets=True)

    # Calls
    def on_callee_name(self, name: int) -> tree.RuleCallee: return tree.RuleCallee(self._at(name), (self.texts[name],))
    def on_callee_attr(self, name: int) -> tree.RuleCallee: return tree.RuleCallee(self._at(name), (), self._name(name))
    def on_callee_choice(self, open: int, names: list[int], _: int) -> tree.RuleCallee: return tree.RuleCallee(self._at(open), [self.texts[name] for name in names])
    def on_callee_choice_named(self, open: int, names: list[int], _: int, capture: int) -> tree.RuleCallee: return replace(self.on_callee_choice(open, names, _), capture=self._name(capture))
    def on_keyword(self, name: int, _: int, value: tree.Node) -> _Keyword: return _Keyword(name, self.texts[name], value)
    def on_rest(self, star: int, name: int) -> _Rest: return _Rest(star, self._name(name))
    def on_rest_any(self, star: int, _: int) -> _Rest: return _Rest(star, "")
    # fmt: on

    def on_more(self, items: list[Any], _: int, item: Any) -> list[Any]:
        items.append(item)
        return items

    def on_ruleset(self, keyword: int, name: int, header: tree.Header, _1: int, members: Any, _2: int) -> tree.Ruleset:
        rules = [m for m in members if isinstance(m, tree.Rewrite)]
        includes: list[tuple[int, str]] = [m for m in members if not isinstance(m, tree.Rewrite)]
        return tree.Ruleset(self._at(keyword), self._name(name), header, includes, rules)

    def on_kernel_header_benefit(self, word: int, _1: int, number: int, _2: int, _3: int) -> int:
        return self.on_header_benefit(tree.Header(), word, _1, number, _2).benefit or 0

    def on_header_benefit(self, header: tree.Header, word: int, _1: int, number: int, _2: int) -> tree.Header:
        value = self._number(number)
        if not isinstance(value, int):
            raise self._error(
                number, "a benefit is an integer", "of rules that match, that of the greatest is tried first"
            )
        return tree.Header(value, header.level)

    def on_members_include(self, members: list[Any], _: int, names: list[int]) -> list[Any]:
        members += [(self._at(name), self._name(name)) for name in names]
        return members

    def on_members_item(self, members: list[Any], item: tree.Rewrite | tree.Ruleset) -> list[Any]:
        if isinstance(item, tree.Ruleset):
            raise error_at(
                self.source.location(item.at),
                "a ruleset inside of a ruleset",
                f"write it beside this one, and here: include @{item.name}",
            )
        members.append(item)
        return members

    def on_unary_sign(self, sign: int, a: tree.Node) -> tree.Node:
        if self.texts[sign] == "+":
            return a
        if isinstance(a, tree.Literal) and isinstance(a.value, int | float) and not isinstance(a.value, bool):
            return tree.Literal(self._at(sign), -a.value)
        return tree.Operation(self._at(sign), "neg", (a,))

    def _number(self, token: int) -> int | float:
        text = self.texts[token]
        base = 16 if text[:2] in ("0x", "0X") else 10
        if base == 10 and any(c in text for c in ".eE"):
            return float(text)
        if len(text) > MOST_DIGITS:
            raise self._error(token, "this number is too large")
        return int(text, base)

    def on_string(self, string: int) -> tree.Node:
        try:
            return tree.Literal(self._at(string), json.loads(self.texts[string]))
        except ValueError:
            raise self._error(string, "this string has an escape that is none", "write \\\\ for a backslash") from None

    def on_call(self, callee: tree.RuleCallee, _1: int, arguments: list[Any], _2: int) -> tree.Node:
        args: list[tree.Node] = []
        keywords: list[tuple[int, str, tree.Node]] = []
        rest: tuple[int, str] | None = None
        for argument in arguments:
            if isinstance(argument, _Keyword):
                if argument.name in (name for _, name, _ in keywords):
                    raise self._error(argument.token, f"the attribute '{argument.name}' is given twice")
                keywords.append((self._at(argument.token), argument.name, argument.value))
            elif isinstance(argument, _Rest):
                if rest is not None:
                    raise self._error(argument.token, "a call takes over one set of other attributes")
                rest = (self._at(argument.token), argument.name)
            else:
                if keywords or rest:
                    raise error_at(
                        self.source.location(argument.at), "an argument after an attribute", "write arguments first"
                    )
                args.append(argument)
        return tree.RuleCall(callee.at, callee, args, keywords, rest)


@dataclass(frozen=True)
class _Keyword:
    token: int
    name: str
    value: tree.Node


@dataclass(frozen=True)
class _Rest:
    token: int
    name: str


MOST_DIGITS = 100
"""Digits of an integer: no type holds a number of more."""
