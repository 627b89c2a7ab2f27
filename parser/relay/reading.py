"""The items of a `.mir` file that are Relay text, to ops."""

from __future__ import annotations

import gc
import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from json import JSONDecodeError
from pathlib import Path

from xdsl.ir import Operation

from ...dialects.relay.infer.inference import infer_ops
from ...dialects.relay.ir import TypeDataOp
from ...support.diagnostics import error_at
from ..items import Item, ParseContext, symbol_of
from ..lalr import LexError, Parser, ParsingTable, Step, Tokens, load_table, reducers
from .builder import Builder, Statements
from .constants import CONSTANTS_FILE, ConstantError, Constants
from .errors import explain
from .lexer import tokenize
from .metadata import Metadata
from .reader import unquote

GRAMMAR = Path(__file__).with_name("relay.lark")

_DIRECTIVE = re.compile(r'\s*+#\[\s*+(\w++)\s*+(?:=\s*+("(?:[^"\\\n]|\\.)*+"))?\s*+\]')
_VERSIONS = ("0.0.4", "0.0.5")


def read_items(items: Sequence[Item], context: ParseContext) -> list[list[Operation]]:
    """Parses each item to its ops, in order. Errors are reported to the context; none is raised."""
    with _without_collection():
        results = _FileReader(context).read(items)
        if context.infers and not context.errors:
            ops = [op for some in results for op in some]
            symbols = {**context.symbols, **{name: op for op in ops if (name := symbol_of(op)) is not None}}
            for error in infer_ops(ops, symbols):
                context.report(error)
        return results


@contextmanager
def _without_collection() -> Generator[None]:
    """Disables garbage collection meanwhile.

    Reading creates many objects that stay, which the collector would visit again and again.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class _FileReader:
    def __init__(self, context: ParseContext):
        self.context = context

    def read(self, items: Sequence[Item]) -> list[list[Operation]]:
        """Directives first, then data types (their names mean something in functions), then the rest."""
        metadata = Metadata()
        for item in items:
            if item.kind == "#[metadata]":
                metadata = self._metadata(item)
        metadata.given = self.context.nodes
        constants = Constants(metadata, self.context.directory)
        for item in items:
            if item.kind.startswith("#[") and item.kind != "#[metadata]":
                self._directive(item, constants)
        if constants.side_file is not None:
            self.context.module.attributes[CONSTANTS_FILE] = constants.side_file
        table = load_table(GRAMMAR)
        builder = Builder(self.context, metadata, constants)
        for op in self.context.symbols.values():
            if isinstance(op, TypeDataOp):
                builder.declare(op)
        steps = reducers(table, builder)
        tokens = [None if item.kind.startswith("#[") else self._tokens(item) for item in items]
        for some in tokens:
            if some is not None:
                _declare_types(some, builder)
        results: list[list[Operation]] = [[] for _ in items]
        types_first = sorted(range(len(items)), key=lambda i: items[i].kind not in ("type", "extern"))
        for index in types_first:
            some = tokens[index]
            if some is not None and some.kinds:
                builder.begin(items[index], some)
                op = _read(table, steps, some, builder)
                results[index] = [] if op is None else [op]
        return results

    def _metadata(self, item: Item) -> Metadata:
        start = item.text.index("]") + 1
        line = 1
        column = len(item.text) - len(item.text.lstrip()) + 1
        try:
            return Metadata(item.text[start:])
        except JSONDecodeError as error:
            line += item.text.count("\n", 0, start + error.pos)
            column = start + error.pos - item.text.rfind("\n", 0, start + error.pos)
            message = f"the #[metadata] section is not JSON: {error.msg[0].lower()}{error.msg[1:]}"
        except ValueError as error:
            message = f"the #[metadata] section cannot be read: {error}"
        self.context.error(item.location(line, column), message)
        broken = Metadata()
        broken.is_broken = True
        return broken

    def _directive(self, item: Item, constants: Constants) -> None:
        match = _DIRECTIVE.match(item.text)
        column = len(item.text) - len(item.text.lstrip()) + 1
        name, value = (None, None) if match is None else match.groups()
        text = None if value is None else unquote(value)
        location = item.location(1, column)
        if name == "version" and text is not None:
            if text not in _VERSIONS:
                self.context.error(
                    location, f'Relay text of version "{text}" is not read here', f"read are {', '.join(_VERSIONS)}"
                )
        elif name == "constants" and text is not None:
            try:
                constants.open(text)
            except ConstantError as error:
                self.context.error(location, error.message, *error.notes)
                constants.is_broken = True
        else:
            self.context.error(
                location,
                f"'{item.kind}' is not understood",
                'known are #[version = "0.0.5"], #[constants = "weights.npz"] and #[metadata]',
            )

    def _tokens(self, item: Item) -> Tokens | None:
        try:
            return tokenize(item.text)
        except LexError as error:
            line = item.text.count("\n", 0, error.position) + 1
            column = error.position - item.text.rfind("\n", 0, error.position)
            self.context.error(item.location(line, column), error.message)
            return None


def _declare_types(tokens: Tokens, builder: Builder) -> None:
    """Notes which data types an item declares, so that types may refer to later ones."""
    kinds = tokens.kinds
    if not kinds or "TYPE" not in (kinds[0], kinds[1] if len(kinds) > 1 else ""):
        return
    place = kinds.index("TYPE")
    if place + 1 < len(kinds) and kinds[place + 1] == "NAME":
        parameters, end = 0, place + 2
        if kinds[end : end + 1] == ["LSQB"]:
            close = kinds.index("RSQB", end) if "RSQB" in kinds else end
            parameters = kinds[end:close].count("NAME")
        builder.type_names[tokens.texts[place + 1]] = parameters


def _read(table: ParsingTable, steps: Sequence[Step], tokens: Tokens, builder: Builder) -> Operation | None:
    """One item's op. After an error reading goes on at the next statement, so that each one is reported."""
    parser = Parser(table, tokens, steps)
    position: int | None = parser.run()
    if position is None and parser.finish():
        result = parser.result
        return result if isinstance(result, Operation) else None
    told = -1
    while position is not None:
        if position <= told:
            break  # Nothing was gained by going on from here.
        _complain(parser, position, builder)
        told = position
        position = _recover(parser, position, builder)
        if position is not None:
            position = parser.run(position)
    else:
        if told < 0:
            _complain(parser, len(tokens.kinds), builder)
    builder.scopes.forget()
    return None


def _complain(parser: Parser, position: int, builder: Builder) -> None:
    complaint = explain(parser, position)
    where = builder.behind(complaint.token) if complaint.behind else builder.at(complaint.token)
    (diagnostic,) = error_at(where, complaint.message, *complaint.notes).diagnostics
    if complaint.before is not None:
        token, note = complaint.before
        diagnostic = diagnostic.with_note(note, builder.at(token))
    builder.context.report(diagnostic)


def _recover(parser: Parser, position: int, builder: Builder) -> int | None:
    """Mends the parser after an error at a token: the token to go on with, or None when there is none.

    Where only a semicolon is missing, it is put in. Else what was read of the broken statement is dropped, and what
    remains of it skipped, up to its semicolon or the brace that ends its block; the names that it would have bound mean
    a value that nobody complains about.
    """
    values, kinds = parser.values, parser.tokens.kinds
    if position < len(kinds) and kinds[position] in ("BIND_GRAPH", "LET"):
        stacks = list(parser.states), list(values)
        if parser.feed("SEMICOLON", position):
            return position
        parser.states[:], values[:] = stacks
    start = position
    while values and not isinstance(values[-1], Statements):
        value = values.pop()
        start = value if isinstance(value, int) else start
        parser.states.pop()
    if not values:
        return None
    marker = values[-1]
    assert isinstance(marker, Statements)
    scopes = builder.scopes
    while scopes.frame is not marker.frame and scopes.frame is not None:
        scopes.pop()
    depth = _open_braces(parser, position)
    for index in range(position, len(kinds)):
        kind = kinds[index]
        if kind == "LBRACE":
            depth += 1
        elif kind == "RBRACE":
            depth -= 1
            if depth < 0:
                # The block ends here: an expression that has been complained about is its value.
                return index if parser.feed("ERROR", index) else None
        elif kind == "SEMICOLON" and depth == 0:
            builder.bind_to_nothing(start, index)
            return index + 1 if index + 1 < len(kinds) else None
    return None


def _open_braces(parser: Parser, position: int) -> int:
    """Counts the braces, opened since the statements on the stack began, that are open before a token."""
    # The token before the statements is the nearest one on the stack; braces are counted from there.
    start = next((v for v in reversed(parser.values) if isinstance(v, int)), -1)
    depth = 0
    for kind in parser.tokens.kinds[start + 1 : position]:
        depth += (kind == "LBRACE") - (kind == "RBRACE")
    return max(depth, 0)
