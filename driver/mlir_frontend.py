"""Reads MLIR text: xDSL's parser, with the place of every op, and diagnostics for every failure."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable

from xdsl.context import Context
from xdsl.dialects.builtin import UNKNOWN_LOC, ArrayAttr, DictionaryAttr, FileLineColLoc, IntAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, AttributeInvT, Operation, ParametrizedAttribute, SSAValue
from xdsl.parser import Parser, ParserState, UnresolvedOperand
from xdsl.utils.exceptions import MultipleSpansParseError, ParseError, VerifyException
from xdsl.utils.lexer import Input, Span
from xdsl.utils.mlir_lexer import MLIRLexer

from ..support.diagnostics import Diagnostic, MirError, error_at
from .errors import did_you_mean

_UNKNOWN_OP = re.compile(r"Operation (\S+) is not registered")


class LineTable:
    """Finds lines and columns in logarithmic time; xDSL counts newlines from the start each time."""

    def __init__(self, text: str, first_line: int):
        self.first_line = first_line
        self.starts = [0]
        start = text.find("\n")
        while start >= 0:
            self.starts.append(start + 1)
            start = text.find("\n", start + 1)

    def __getitem__(self, position: int) -> tuple[int, int]:
        line = bisect_right(self.starts, position)
        return self.first_line + line - 1, position - self.starts[line - 1] + 1


class LinearLexer(MLIRLexer):
    """xDSL's lexer without exponential time on strings that are never closed.

    xDSL's regular expression for strings tries all ways to divide their characters.
    """

    _unescaped_characters_regex = re.compile(r'"(?:[^"\\\n\v\f]|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*"')


_DEFINITIONS = ("te.func", "tir.prim_func", "rule.operator")
MAX_PARTS = 1 << 16


def _parts(value: Attribute) -> Iterable[Attribute]:
    """Returns the attributes that an attribute is made of."""
    match value:
        case ParametrizedAttribute():
            return value.parameters
        case ArrayAttr():
            return value.data
        case DictionaryAttr():
            return value.data.values()
        case _:
            return ()


class LocatedParser(Parser):
    """xDSL's parser; an op without `loc(…)` takes the place at which its text begins."""

    def __init__(self, ctx: Context, text: str, name: str, first_line: int):
        super().__init__(ctx, "", name)
        self._parser_state = ParserState(LinearLexer(Input(text, name)))
        self.lines = LineTable(text, first_line)
        self.file = StringAttr(name)
        self.last_op = 0  # Where the op begins that was begun last.
        self._counted: dict[int, int] = {}  # The parts of what aliases name, by id, which stays theirs.
        self.first_use: dict[str, int] = {}  # Where a value was first used before its definition.
        self._functions: dict[str, Operation] = {}  # Functions and operators that the text defines, by name.

    def parse_operation(self) -> Operation:
        start = self.last_op = self.pos
        op = super().parse_operation()
        if op.location == UNKNOWN_LOC:
            op.location = self.location(start)
        if op.name in _DEFINITIONS and isinstance(name := op.properties.get("sym_name"), StringAttr):
            # What identifies an operator is computed again.
            op.properties.pop("digest", None)
            self._functions[name.data] = op
        return op

    def _get_op_by_name(self, name: str) -> type[Operation]:
        """Returns the class of an op; an operator may be one that the text has defined."""
        definition = self._functions.get(name.removeprefix("relay."))
        if name.startswith("relay.") and definition is not None and definition.name == "rule.operator":
            from ..dialects.relay.operator import operator_class
            from ..dialects.rule import DefineOperatorOp

            assert isinstance(definition, DefineOperatorOp)
            return operator_class(definition.define(definition.functions_among(self._functions)))
        return super()._get_op_by_name(name)

    def _parse_alias_def(self):
        """Reads `!pair = tuple<i32, i32>`. Raises MirError for one of more than MAX_PARTS parts.

        An alias may name another twice, and that another: xDSL hashes, compares and prints part by part what comes of it.
        """
        start = self.pos
        super()._parse_alias_def()  # pyright: ignore[reportPrivateUsage]
        name, value = next(reversed(self.attribute_aliases.items()))
        if self._count(value) > MAX_PARTS:
            raise error_at(
                self.location(start),
                f"the alias '{name}' has more than {MAX_PARTS} parts",
                "each part counts as often as it is there: tuple<!t, !t> is twice as large as !t",
            )

    def _count(self, value: Attribute) -> int:
        found = self._counted.get(id(value))
        if found is None:
            found = self._counted[id(value)] = 1 + sum(self._count(part) for part in _parts(value))
        return found

    def resolve_operand(self, operand: UnresolvedOperand, type: AttributeInvT) -> SSAValue[AttributeInvT]:
        if operand.operand_name not in self.ssa_values:
            self.first_use.setdefault(operand.operand_name, operand.span.start)
        return super().resolve_operand(operand, type)

    def undefined(self) -> list[Diagnostic]:
        """Returns an error for each value that is used, but not defined in all of the text."""
        names = [name for name in self.forward_ssa_references if name in self.first_use]
        return [Diagnostic(f"%{name} is used but not defined", self.location(self.first_use[name])) for name in names]

    def location(self, position: int) -> FileLineColLoc:
        line, column = self.lines[position]
        return FileLineColLoc(self.file, IntAttr(line), IntAttr(column))


def parse_mlir(ctx: Context, text: str, name: str, first_line: int = 1, implicit_module: bool = True) -> ModuleOp:
    """Returns the module that `text` writes in MLIR's syntax, with the dialects registered in `ctx`.

    Raises:
        MirError: for the first thing that cannot be read; xDSL's parser does not go on after an error.
    """
    parser: LocatedParser | None = None
    try:
        parser = LocatedParser(ctx, text, name, first_line)
        return parser.parse_module(implicit_module)
    except MirError:
        raise
    except ParseError as error:
        lines = LineTable(text, first_line)
        if parser is not None and error.msg.startswith("values used but not defined") and parser.undefined():
            raise MirError(parser.undefined()) from None
        location = _span_location(error.span, name, lines)
        if parser is not None and _UNKNOWN_OP.fullmatch(error.msg):
            location = parser.location(parser.last_op)
        diagnostic = Diagnostic(in_house_style(error.msg) + _nearest_op(error.msg, ctx), location)
        if isinstance(error, MultipleSpansParseError):
            for span, note in error.refs:
                diagnostic = diagnostic.with_note(
                    note or error.ref_text or "see also", _span_location(span, name, lines)
                )
    except VerifyException as error:
        diagnostic = Diagnostic(in_house_style(str(error)), _here(parser))
    except Exception as error:
        # What dialects' own parsing takes for granted surfaces as any kind of error: it is still the input's.
        message = f"this cannot be read ({type(error).__name__}: {' '.join(str(error).split())})"
        diagnostic = Diagnostic(message, _here(parser))
        raise MirError(diagnostic) from error
    raise MirError(diagnostic)


def in_house_style(message: str) -> str:
    """Returns xDSL's message on one line, with a small first letter and no final period."""
    line = " ".join(message.split()).rstrip(".!")
    return line[:1].lower() + line[1:] if line[1:2].islower() else line


def _nearest_op(message: str, ctx: Context) -> str:
    """Returns a hint to the registered op nearest to one that is not registered."""
    unknown = _UNKNOWN_OP.fullmatch(message)
    if unknown is None:
        return ""
    dialect, _, _ = unknown[1].partition(".")
    known = list(ctx.registered_dialect_names)
    if dialect not in known:
        return did_you_mean(dialect, known)
    return did_you_mean(unknown[1], [op.name for op in ctx.loaded_ops])


def _here(parser: LocatedParser | None) -> FileLineColLoc:
    if parser is None:
        return FileLineColLoc(StringAttr("<input>"), IntAttr(1), IntAttr(1))
    return parser.location(parser.pos)


def _span_location(span: Span[str] | Span[bytes], name: str, lines: LineTable) -> FileLineColLoc:
    line, column = lines[span.start]
    return FileLineColLoc(StringAttr(name), IntAttr(line), IntAttr(column))
