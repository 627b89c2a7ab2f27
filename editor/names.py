"""Resolves the names of an item by its tokens alone, so that a text with errors has names, too.

A name is visible from its definition to the end of the block around it. Functions are names of the whole file.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal, TypeAlias

from ..parser.items import Item
from ..parser.lalr import LexError, Tokens
from ..parser.python.lexer import Language

Kind: TypeAlias = Literal["function", "parameter", "variable", "buffer", "loop", "block", "type"]


@dataclass(eq=False)
class Symbol:
    """A name with one meaning, and where the item writes it."""

    name: str
    kind: Kind
    places: list[Occurrence] = field(default_factory=list["Occurrence"])
    statement: tuple[int, int] = (0, 0)
    """The text that defines it: a parameter, or a statement from its first target on."""
    index: int = 0
    """Its number among the targets of the statement."""

    @property
    def definition(self) -> Occurrence:
        """Returns where it is first defined."""
        return next((place for place in self.places if place.defines), self.places[0])


@dataclass(frozen=True, eq=False)
class Occurrence:
    """A name in the text of an item; its symbol is None where the item does not define it."""

    name: str
    start: int
    end: int
    symbol: Symbol | None = None
    defines: bool = False


@dataclass(frozen=True)
class Names:
    """The occurrences of names in an item, in order, and the names visible at one place."""

    occurrences: list[Occurrence]
    visible: dict[str, Symbol]

    def at(self, offset: int) -> Occurrence | None:
        """Returns the name at an offset, or right before it."""
        return next((each for each in self.occurrences if each.start <= offset <= each.end), None)


def tokens_of(item: Item) -> Tokens:
    """Returns the tokens of an item; what cannot be read is left out up to the end of its line."""
    return _tokens(item.format, item.text)


_KEPT = 1024
"""The items whose tokens and names are kept: those of the texts that are open."""


BRACED = ("relay", "rules", "definitions", "target")
"""The formats of items in braces."""


@lru_cache(maxsize=_KEPT)
def _tokens(format: str, text: str) -> Tokens:
    head = _RULE_HEAD.match(text) if format == "schedule" else None
    if head is None:
        return _tolerant(text, _tokenizer(format))
    # Above its script, a schedule rule is written as rules are.
    first, rest = _tolerant(head[0], _tokenizer("rules")), _tolerant(text[head.end() :], _tokenizer(format))
    starts = [head.end() + start for start in rest.starts]
    return Tokens(first.kinds + rest.kinds, first.texts + rest.texts, first.starts + starts)


_RULE_HEAD = re.compile(r"(?:optional[ \t]+)?rule\b.*?\n(?=@)", re.DOTALL)


def _tokenizer(format: str) -> Callable[[str], Tokens]:
    match format:
        case "relay":
            from ..parser.relay.lexer import tokenize as relay

            return relay
        case "rules" | "definitions" | "target":
            from ..parser.rules.lexer import tokenize as rules

            return rules
        case _:
            from ..parser.python.lexer import tokenize as python

            language = _language(format)
            return lambda text: python(text, language)[0]


def _language(format: str) -> Language:
    if format == "te":
        from ..parser.te.syntax import TE

        return TE
    from ..parser.tvmscript.syntax import TVMSCRIPT

    return TVMSCRIPT


_ATTEMPTS = 20


def _tolerant(text: str, tokenize: Callable[[str], Tokens]) -> Tokens:
    """Tokenizes a text; what cannot be read becomes blanks up to the end of its line."""
    # Directives are cut off before Relay's text is split.
    if text.lstrip(" ").startswith("#["):
        return Tokens()
    for _ in range(_ATTEMPTS):
        try:
            return tokenize(text)
        except LexError as error:
            at = error.position
            # An unclosed string or comment: the rest of its line.
            end = text.find("\n", at)
            end = len(text) if end < 0 else end
            # The indentation of what is skipped must not count either, so the line becomes a comment where it has nothing else.
            skipped = text[at:end]
            text = text[:at] + " " * len(skipped) + text[end:]
    return Tokens()


def names_in(item: Item, until: int | None = None) -> Names:
    """Resolves the names of an item; those at its offset `until`, or its end, are visible."""
    return _names(item.format, item.text, until)


@lru_cache(maxsize=_KEPT)
def _names(format: str, text: str, until: int | None) -> Names:
    scan = (_BracedScan if format in BRACED else _PythonScan)(format, text, until)
    scan.run()
    visible: dict[str, Symbol] = {}
    for scope in scan.seen if scan.seen is not None else scan.scopes:
        visible.update(scope)
    return Names(sorted(scan.occurrences, key=lambda each: each.start), visible)


class _Scan(ABC):
    """A pass over the tokens with a stack of scopes."""

    def __init__(self, format: str, text: str, until: int | None):
        self.format, self.text = format, text
        self.tokens = _tokens(format, text)
        self.kinds, self.texts, self.starts = self.tokens.kinds, self.tokens.texts, self.tokens.starts
        self.until = until
        self.occurrences: list[Occurrence] = []
        self.scopes: list[dict[str, Symbol]] = [{}]
        self.seen: list[dict[str, Symbol]] | None = None
        self.pending: dict[int, Symbol] = {}
        """Symbols that become visible after their statement, by the offset of their definition."""

    @abstractmethod
    def run(self) -> None:
        """Scans all tokens."""

    def passing(self, index: int) -> None:
        """Notes the names visible at `until` at the first token that begins there or later."""
        if self.until is not None and self.seen is None and self.starts[index] >= self.until:
            self.seen = [dict(scope) for scope in self.scopes]

    def kind(self, index: int) -> str:
        """Returns the kind of a token; "" for an index past the ends."""
        return self.kinds[index] if 0 <= index < len(self.kinds) else ""

    def find(self, name: str) -> Symbol | None:
        """Returns what a name means here."""
        return next((scope[name] for scope in reversed(self.scopes) if name in scope), None)

    def note(self, name: str, start: int, symbol: Symbol | None, defines: bool = False) -> None:
        """Adds an occurrence."""
        each = Occurrence(name, start, start + len(name), symbol, defines)
        self.occurrences.append(each)
        if symbol is not None:
            symbol.places.append(each)

    def define(
        self,
        name: str,
        start: int,
        kind: Kind,
        scope: dict[str, Symbol],
        statement: tuple[int, int] | None = None,
        index: int = 0,
    ) -> Symbol:
        """Defines a name in a scope; where the scope has it, it is the same symbol."""
        symbol = scope.get(name)
        if symbol is None:
            symbol = Symbol(name, kind, statement=statement or (start, start + len(name)), index=index)
            scope[name] = symbol
        self.note(name, start, symbol, True)
        return symbol


class _BracedScan(_Scan):
    """Relay and rules: `%x` and `%0` in braces, `@f` in the whole file."""

    def run(self) -> None:
        """Scans all tokens."""
        # Scopes with the depth of brackets at which they end; parameters wait for the brace after them.
        depth, waiting = 0, dict[str, Symbol]()
        ends: list[int] = []
        clause: list[int] = []
        # `let %x = value;` and `%0 = value;` bind after the semicolon: (token of the name, depth).
        binding: list[tuple[int, int]] = []
        in_head = in_pattern = False
        head_depth = pattern_depth = 0
        kinds, texts, starts = self.kinds, self.texts, self.starts
        rules = self.format != "relay"
        for index, kind in enumerate(kinds):
            self.passing(index)
            text, start = texts[index], starts[index]
            if kind in ("LPAR", "LBRACE", "LSQB", "BLOCK_PAREN"):
                depth += 1
                if kind == "LBRACE" or kind == "BLOCK_PAREN":
                    self.scopes.append(waiting)
                    waiting = {}
                    ends.append(depth)
                    if kind == "LBRACE":
                        in_head = False
                        in_pattern, pattern_depth = self._matches(index), depth
            elif kind in ("RPAR", "RBRACE", "RSQB"):
                self._bind(binding, depth, start)
                while clause and clause[-1] >= depth:
                    clause.pop()
                    self.scopes.pop()
                    in_pattern, pattern_depth = True, depth
                if kind == "RBRACE":
                    in_pattern = False
                if ends and ends[-1] == depth:
                    ends.pop()
                    if len(self.scopes) > 1:
                        self.scopes.pop()
                depth = max(depth - 1, 0)
            elif kind in ("DEF", "FN"):
                in_head, head_depth = True, depth + 1
            elif kind == "FAT_ARROW" and not rules:
                in_pattern = False
                self.scopes.append(waiting)
                waiting = {}
                clause.append(depth)
            elif kind == "COMMA" and clause and clause[-1] == depth:
                self._bind(binding, depth, start)
                clause.pop()
                self.scopes.pop()
                in_pattern, pattern_depth = True, depth
            elif kind == "SEMICOLON":
                self._bind(binding, depth, start)
            elif kind == "BIND_GRAPH":
                name = text[:-1].rstrip()
                binding.append((index, depth))
                self._later(name, start)
            elif kind in ("LOCAL", "GRAPH"):
                if rules:
                    self._use_or_define(text, start)
                elif in_head and depth == head_depth and self.kind(index - 1) in ("LPAR", "COMMA"):
                    end = self._end_of_parameter(index)
                    self.define(text, start, "parameter", waiting, (start, end))
                elif self.kind(index - 1) == "LET":
                    binding.append((index, depth))
                    self._later(text, start)
                elif in_pattern and depth >= pattern_depth:
                    self.define(text, start, "variable", waiting)
                else:
                    self.note(text, start, self.find(text))
            elif kind == "GLOBAL":
                self.note(text, start, None, self.kind(index - 1) in ("DEF", "REWRITE", "RULESET"))

    def _matches(self, brace: int) -> bool:
        """Returns whether a brace opens the clauses of a `match (…)`."""
        depth = 0
        for index in range(brace - 1, max(brace - 400, -1), -1):
            kind = self.kinds[index]
            depth += (kind == "RPAR") - (kind in ("LPAR", "BLOCK_PAREN"))
            if depth == 0:
                return self.kind(index - 1) == "MATCH"
        return False

    def _later(self, name: str, start: int) -> None:
        """Notes a definition whose symbol comes with `_bind`."""
        symbol = Symbol(name, "variable", statement=(start, start + len(name)))
        self.note(name, start, symbol, True)
        self.pending[start] = symbol

    def _bind(self, binding: list[tuple[int, int]], depth: int, end: int) -> None:
        """Makes what was bound at this depth or deeper visible, after its value."""
        while binding and binding[-1][1] >= depth:
            token, _ = binding.pop()
            symbol = self.pending.pop(self.starts[token])
            symbol.statement = (self.starts[token], end)
            self.scopes[-1][symbol.name] = symbol

    def _use_or_define(self, name: str, start: int) -> None:
        """A rule's variable means the same in all of the rule."""
        scope = self.scopes[-1]
        if self.find(name) is None:
            self.define(name, start, "variable", scope)
        else:
            self.note(name, start, self.find(name))

    def _end_of_parameter(self, index: int) -> int:
        depth = 0
        for at in range(index, len(self.kinds)):
            kind = self.kinds[at]
            depth += (kind in ("LPAR", "LSQB", "LBRACE")) - (kind in ("RPAR", "RSQB", "RBRACE"))
            if depth < 0 or (depth == 0 and kind == "COMMA"):
                return self.starts[at]
        return len(self.text)


class _PythonScan(_Scan):
    """Items in Python's form: TVMScript, schedules, TE."""

    def run(self) -> None:
        """Scans all tokens, statement by statement."""
        self.blocks = self.format == "tvmscript"
        self.lambdas: list[tuple[int, int]] = []
        waiting: dict[str, Symbol] | None = None
        index, count = 0, len(self.kinds)
        self.functions: list[int] = []
        while index < count:
            kind = self.kinds[index]
            self.passing(index)
            if kind == "INDENT":
                self.scopes.append(waiting if waiting is not None else {})
                waiting = None
                index += 1
            elif kind == "DEDENT":
                if len(self.scopes) > 1:
                    self.scopes.pop()
                index += 1
            elif kind in ("NEWLINE", "SEMICOLON", "COLON"):
                index += 1
            else:
                end = self._end_of_statement(index)
                made = self._statement(index, end)
                waiting = made if made is not None else waiting
                index = end

    def _end_of_statement(self, index: int) -> int:
        """Returns the token after a statement; that of a header ends before the line's end."""
        depth = 0
        for at in range(index, len(self.kinds)):
            kind = self.kinds[at]
            depth += (kind in ("LPAR", "LSQB", "LBRACE")) - (kind in ("RPAR", "RSQB", "RBRACE"))
            if kind in ("NEWLINE", "INDENT", "DEDENT") or (kind == "SEMICOLON" and depth <= 0):
                return max(at, index + 1)
        return len(self.kinds)

    def _statement(self, index: int, end: int) -> dict[str, Symbol] | None:
        """Resolves a statement; returns the scope of the block after it, where it is a header."""
        match self.kinds[index]:
            case "DEF" | "INNER":
                return self._function(index, end)
            case "CLASS":
                if self.kind(index + 1) == "NAME":
                    self.note(self.texts[index + 1], self.starts[index + 1], None, True)
                return {}
            case "FOR":
                until = next((at for at in range(index, end) if self.kinds[at] == "IN"), end)
                return self._header(index + 1, until, range(until, end), "loop", end)
            case "WITH":
                marks = [at for at in range(index, end) if self.kinds[at] == "AS"]
                if not marks:
                    self._uses(index, end)
                    return {}
                return self._header(marks[0] + 1, end, range(index, marks[0]), "variable", end)
            case "AT":
                self._uses(index, end)
                return None
            case _:
                self._assignment(index, end)
                return {} if self.blocks or self.kinds[index] in ("IF", "ELSE", "ELIF", "WHILE") else None

    def _function(self, index: int, end: int) -> dict[str, Symbol]:
        scope: dict[str, Symbol] = {}
        if self.kind(index + 1) == "NAME":
            name, start = self.texts[index + 1], self.starts[index + 1]
            if len(self.scopes) > 1 and self.kinds[index] == "INNER":
                self.define(name, start, "function", self.scopes[-1])
            else:
                self.note(name, start, None, True)
        depth, after_colon = 0, False
        for at in range(index + 2, end):
            kind = self.kinds[at]
            depth += (kind in ("LPAR", "LSQB", "LBRACE")) - (kind in ("RPAR", "RSQB", "RBRACE"))
            if depth == 1 and kind in ("COMMA", "LPAR"):
                after_colon = False
            elif depth == 1 and kind == "COLON":
                after_colon = True
            elif kind == "NAME" and depth == 1 and not after_colon:
                stop = self._end_of_argument(at, end)
                is_buffer = self.texts[at + 2 : at + 3] == ["T.Buffer"]
                self.define(
                    self.texts[at],
                    self.starts[at],
                    "buffer" if is_buffer else "parameter",
                    scope,
                    (self.starts[at], stop),
                )
            elif kind == "NAME":
                self._use(at, scope)
        return scope

    def _end_of_argument(self, index: int, end: int) -> int:
        depth = 0
        for at in range(index, end):
            kind = self.kinds[at]
            depth += (kind in ("LPAR", "LSQB", "LBRACE")) - (kind in ("RPAR", "RSQB", "RBRACE"))
            if depth < 0 or (depth == 0 and kind == "COMMA"):
                return self.starts[at]
        return self.starts[end - 1]

    def _header(self, first: int, last: int, uses: range, kind: Kind, end: int) -> dict[str, Symbol]:
        """Resolves `for targets in …:` and `with … as targets:`."""
        self._uses(uses.start, uses.stop)
        # Of languages that are carried out as Python is, targets stay visible after the block.
        scope: dict[str, Symbol] = {}
        target = scope if self.blocks else self.scopes[-1]
        statement = (self.starts[first - 1], self._offset(end))
        names = [at for at in range(first, last) if self.kinds[at] == "NAME"]
        for number, at in enumerate(names):
            self.define(self.texts[at], self.starts[at], kind, target, statement, number)
        return scope

    def _offset(self, end: int) -> int:
        return self.starts[end] if end < len(self.starts) else len(self.text)

    def _assignment(self, index: int, end: int) -> None:
        depth = 0
        equals: list[int] = []
        for at in range(index, end):
            kind = self.kinds[at]
            depth += (kind in ("LPAR", "LSQB", "LBRACE")) - (kind in ("RPAR", "RSQB", "RBRACE"))
            if depth == 0 and kind in ("EQUAL", "CHAINED"):
                equals.append(at)
        annotated = self.kinds[index] == "NAME" and self.kind(index + 1) == "COLON" and index + 1 < end
        if annotated:
            self._uses(index + 2, end)
            self._target(index, 0, (index, end))
            return
        if not equals:
            self._uses(index, end)
            return
        self._uses(equals[-1] + 1, end)
        start = index
        for equal in equals:
            self._targets(start, equal, (index, end))
            start = equal + 1

    def _targets(self, start: int, stop: int, statement: tuple[int, int]) -> None:
        """Defines `a, b` and `(a, b)`; in `A[i, j]` names are used."""
        number, depth = 0, 0
        for at in range(start, stop):
            kind = self.kinds[at]
            if kind == "LSQB" and self.kind(at - 1) in ("NAME", "RSQB", "RPAR", "MEMBER"):
                depth += 1
            elif kind == "RSQB" and depth:
                depth -= 1
            elif kind == "NAME" and depth == 0 and self.kind(at + 1) != "LSQB" and "." not in self.texts[at]:
                self._target(at, number, statement)
                number += 1
            elif kind == "NAME":
                self._use(at)

    def _target(self, at: int, number: int, statement: tuple[int, int]) -> None:
        first, end = statement
        value = next((self.texts[k + 1] for k in range(first, end - 1) if self.kinds[k] in ("EQUAL", "COLON")), "")
        kind: Kind = "buffer" if value in _BUFFERS else "block" if value.endswith(".get_block") else "variable"
        scope = self.scopes[-1]
        if not self.blocks:
            # Names of a function that is carried out are those of the whole function.
            scope = next((s for s in reversed(self.scopes) if self.texts[at] in s), scope)
        self.define(self.texts[at], self.starts[at], kind, scope, (self.starts[first], self._offset(end)), number)

    def _uses(self, start: int, end: int) -> None:
        """Resolves the names of expressions, with the parameters of lambdas."""
        depth = 0
        opened: list[int] = []
        in_parameters = False
        mark = len(self.scopes)
        for at in range(start, end):
            self.passing(at)
            kind = self.kinds[at]
            if kind in ("LPAR", "LSQB", "LBRACE"):
                depth += 1
            elif kind in ("RPAR", "RSQB", "RBRACE"):
                depth -= 1
                while opened and opened[-1] > depth:
                    opened.pop()
                    self.scopes.pop()
            elif kind == "LAMBDA":
                self.scopes.append({})
                opened.append(depth)
                in_parameters = True
            elif kind == "COLON" and in_parameters:
                in_parameters = False
            elif kind == "COMMA" and opened and opened[-1] == depth and not in_parameters:
                opened.pop()
                self.scopes.pop()
            elif kind == "NAME" and in_parameters:
                self.define(self.texts[at], self.starts[at], "parameter", self.scopes[-1])
            elif kind == "NAME" and not (depth and self.kind(at + 1) == "EQUAL"):
                self._use(at)
        del self.scopes[mark:]

    def _use(self, at: int, scope: dict[str, Symbol] | None = None) -> None:
        text, start = self.texts[at], self.starts[at]
        base = text.partition(".")[0]
        symbol = (scope or {}).get(base) or self.find(base)
        if symbol is not None or base == text or (self.format == "te" and base not in _LIBRARIES):
            self.note(base, start, symbol)
        elif base not in _LIBRARIES:
            # `Module.f`: a function of a class by its last name.
            name = text.rpartition(".")[2]
            self.note(name, start + len(text) - len(name), None)


_LIBRARIES = frozenset(["T", "I", "te", "tir", "tvm", "math"])
_BUFFERS = ("T.Buffer", "T.alloc_buffer", "T.match_buffer", "T.decl_buffer", "T.buffer_decl", "T.allocate")


def functions_named(name: str, items: list[tuple[Item, Names]]) -> Iterator[tuple[Item, Occurrence]]:
    """Yields all places of a file where a function of this name is written, definitions first."""
    found = [
        (item, each)
        for item, names in items
        for each in names.occurrences
        if each.symbol is None and plain(each.name) == name
    ]
    yield from sorted(found, key=lambda pair: not pair[1].defines)


def plain(name: str) -> str:
    """Returns the name without `%` or `@`."""
    return name.lstrip("%@")
