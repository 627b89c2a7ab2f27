"""Shared parts of the Relay reader: the tokens of one item, locations, errors; and types."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Sequence

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    FileLineColLoc,
    IntAttr,
    LocationAttr,
    StringAttr,
    TensorType,
    TupleType,
)
from xdsl.ir import Attribute

from ...dialects.relay.types import MAX_DIMENSION, UNKNOWN, AdtType, FuncType, RefType, TypeVarType, why_no_tensor
from ...dialects.tir.types import dtype_to_type
from ...support.diagnostics import MirError, error_at
from ...support.source_text import characters
from ...support.text import counted, did_you_mean
from ..items import Item, ParseContext
from ..lalr import Tokens
from .lexer import SCALARS
from .metadata import Metadata


class RelayReader:
    """The tokens of the item being read, with what its rules need to make types and to complain.

    Rules of the grammar call `on_NAME` with a token's index for each terminal.
    """

    def __init__(self, context: ParseContext, metadata: Metadata):
        self.context = context
        self.metadata = metadata
        self.tokens = Tokens()
        self.texts: list[str] = []
        # The type of memory.alloc_storage is there without a declaration, so that its text reads back.
        self.type_names: dict[str, int] = {"Storage": 0}
        """Data types of the file, with the number of their parameters."""
        self._type_vars: list[str] = []
        self._tensor_types: dict[str, Attribute] = {}
        self._numbers: dict[int, IntAttr] = {}
        self._file = StringAttr(context.file)
        self._lines: list[int] = [0]
        self._line_attr = IntAttr(1)
        self._line_start = self._line_end = 0
        self._first_line = 1

    def begin(self, item: Item, tokens: Tokens) -> None:
        """Turns to an item."""
        self.tokens, self.texts = tokens, tokens.texts
        self._file = StringAttr(item.file)
        self._first_line = item.line
        self._lines = [0]
        find, position = item.text.find, 0
        while (position := find("\n", position) + 1) > 0:
            self._lines.append(position)
        self._line_start = self._line_end = 0
        self._type_vars.clear()

    # Places and errors ---------------------------------------------------------------------------------------------

    def at(self, token: int) -> LocationAttr:
        """The place of a token; that of the last one for an index past the end."""
        starts = self.tokens.starts
        if token >= len(starts):
            if not starts:
                return self.at_offset(0)
            return self.at_offset(starts[-1] + len(self.texts[-1]))
        start = starts[token]
        if not self._line_start <= start < self._line_end:
            self._find_line(start)
        column = start - self._line_start + 1
        number = self._numbers.get(column)
        if number is None:
            number = self._numbers[column] = IntAttr(column)
        return self._location(number)

    def _location(self, column: IntAttr) -> LocationAttr:
        """Creates a `FileLineColLoc` of the present line without verifying it, as each op needs one."""
        location = object.__new__(FileLineColLoc)
        object.__setattr__(location, "filename", self._file)
        object.__setattr__(location, "line", self._line_attr)
        object.__setattr__(location, "column", column)
        return location

    def behind(self, token: int) -> LocationAttr:
        """Returns the location right after a token."""
        return self.at_offset(self.tokens.starts[token] + len(self.texts[token]))

    def at_offset(self, offset: int) -> LocationAttr:
        """The place of a character of the item."""
        self._find_line(offset)
        return self._location(IntAttr(offset - self._line_start + 1))

    def _find_line(self, offset: int) -> None:
        lines = self._lines
        line = bisect_right(lines, offset)
        self._line_attr = IntAttr(self._first_line + line - 1)
        self._line_start = lines[line - 1]
        self._line_end = lines[line] if line < len(lines) else 1 << 62

    def error(self, token: int, message: str, *notes: str) -> None:
        """Reports an error at a token; reading goes on."""
        self.context.report(error_at(self.at(token), message, *notes))

    def name_at(self, token: int) -> str:
        """The name that a LOCAL, GLOBAL or STRING token writes: without its sign, and without quotes."""
        text = self.texts[token].lstrip("%@")
        return unquote(text) if text.startswith('"') else text

    # Types ---------------------------------------------------------------------------------------------------------

    def on_type_names(self, *args: object) -> list[str]:
        """Type parameters; they are known until `drop_type_vars`."""
        if not args:
            return []
        names: list[str] = args[1]  # type: ignore[assignment]
        self._type_vars += names
        return names

    def drop_type_vars(self, names: Sequence[str]) -> None:
        """Ends the scope of type parameters."""
        if names:
            del self._type_vars[len(self._type_vars) - len(names) :]

    def on_names(self, *args: object) -> list[str]:
        if len(args) == 1:
            return [self.texts[args[0]]]  # type: ignore[index]
        names: list[str] = args[0]  # type: ignore[assignment]
        token: int = args[2]  # type: ignore[assignment]
        if self.texts[token] in names:
            self.error(token, f"the type parameter '{self.texts[token]}' is there twice")
        names.append(self.texts[token])
        return names

    # fmt: off
    def on_annotation(self, *args: object) -> object: return args[1] if args else None
    def on_result_type(self, *args: object) -> object: return args[1] if args else UNKNOWN
    def on_named_type(self, token: int) -> Attribute: return self.on_applied_type(token)
    def on_reference_type(self, *args: object) -> Attribute: return RefType(args[2])  # type: ignore[arg-type]
    def on_unknown_type(self, _: int) -> Attribute: return UNKNOWN
    def on_types(self, *args: object) -> object: return args[0]
    def on_data_head(self, _: int, name: int, parameters: list[str]) -> tuple[int, list[str]]: return name, parameters
    def on_constructor(self, *args: object) -> tuple[int, Sequence[Attribute]]: return args[0], args[2] if len(args) == 4 else ()  # type: ignore[return-value]
    # fmt: on

    def on_tuple_type(self, *args: object) -> Attribute:
        """The type of a tuple; of a function, where parentheses hold one alone: `(fn (A) -> A)`."""
        fields: Sequence[Attribute] = args[1] if len(args) == 3 else ()  # type: ignore[assignment]
        end: int = args[-1]  # type: ignore[assignment]
        if len(fields) == 1 and isinstance(fields[0], FuncType) and self.tokens.kinds[end - 1] != "COMMA":
            return fields[0]
        return TupleType(ArrayAttr(fields))  # type: ignore[arg-type]

    def on_tensor_type(self, token: int) -> Attribute:
        text = self.texts[token]
        found = self._tensor_types.get(text)
        if found is None:
            found = self._read_tensor_type(token, text)
            if found is not UNKNOWN:
                self._tensor_types[text] = found
        return found

    def _read_tensor_type(self, token: int, text: str) -> Attribute:
        opening, comma = text.index("(") + 1, text.rindex(",")
        element = self._element_type(token, text[comma + 1 : -1], comma + 1)
        dims = text[opening : text.rindex(")", 0, comma)].split(",")
        if dims and not dims[-1].strip():
            dims.pop()
        shape: list[int] = []
        place = opening
        for dim in dims:
            size = self._dimension(token, dim, place)
            place += len(dim) + 1
            if size is None or element is None:
                return UNKNOWN
            shape.append(size)
        if element is None:
            return UNKNOWN
        type = TensorType(element, shape)
        reason = why_no_tensor(type)
        if reason is not None:
            self.error(token, f"a tensor of this type {reason}")
            return UNKNOWN
        return type

    def _element_type(self, token: int, dtype: str, place: int = 0) -> Attribute | None:
        """The type of a dtype's text, which stands `place` characters into a token."""
        try:
            return dtype_to_type(dtype.strip())
        except MirError as error:
            first = error.diagnostics[0]
            self._error_inside(token, place, dtype, first.message, *(note.message for note in first.notes))
            return None

    def _error_inside(self, token: int, place: int, text: str, message: str, *notes: str) -> None:
        """Reports an error at a text, blanks around it left out, that begins `place` characters into a token."""
        blanks = len(text) - len(text.lstrip())
        where = self.at_offset(self.tokens.starts[token] + place + blanks)
        self.context.report(error_at(where, message, *notes))

    def _dimension(self, token: int, written: str, place: int) -> int | None:
        """A dimension from its text: a number, or what is only known at run time (`?`, a symbolic size)."""
        text = written.strip()
        digits = text.partition("i")[0]
        if digits.isdecimal() and digits.isascii() and text[len(digits) :] in ("", "i32", "i64"):
            if len(digits) < 20 and int(digits) < MAX_DIMENSION:
                return int(digits)
            self._error_inside(token, place, written, f"the dimension {digits} is too large")
            return None
        if text == "?":
            return DYNAMIC_INDEX
        reference = text.removeprefix("meta[").removesuffix("]").split("][")
        if text.startswith("meta[tir.") and len(reference) == 2 and reference[1].isdecimal():
            try:
                return self.metadata.dimension(reference[0], int(reference[1]))
            except ValueError as error:
                self._error_inside(token, place, written, f"{text}: {error}")
                return None
        self._error_inside(
            token,
            place,
            written,
            f"'{text}' is not a dimension",
            "a dimension is a number from 0 on, or ? where it is known only at run time",
        )
        return None

    def on_scalar_type(self, token: int) -> Attribute:
        element = self._element_type(token, self.texts[token])
        return UNKNOWN if element is None else TensorType(element, [])

    def on_applied_type(self, token: int, *rest: object) -> Attribute:
        name = self.texts[token]
        arguments: Sequence[Attribute] = rest[1] if len(rest) == 3 else ()  # type: ignore[assignment]
        if name in self._type_vars:
            if arguments:
                self.error(token, f"the type parameter '{name}' takes no arguments")
            return TypeVarType.get(name)
        wanted = self.type_names.get(name)
        if wanted is None:
            known = [*self._type_vars, *self.type_names, "Tensor", *sorted(SCALARS)]
            self.error(token, f"unknown type '{name}'{suggest(name, known)}", self._type_help(name))
            return UNKNOWN
        if len(arguments) != wanted:
            self.error(token, f"the data type '{name}' takes {counted(wanted, 'type argument')}, not {len(arguments)}")
            return UNKNOWN
        return AdtType.get(name, arguments)

    def _type_help(self, name: str) -> str:
        if name == "Tensor":
            return "a tensor's type is written Tensor[(2, 3), float32]: its shape in parentheses, then its dtype"
        return "a data type is declared by 'type Name[A] { Constructor(A), }', a type parameter by 'def @f[A](…)'"

    def on_function_type(self, *args: object) -> Attribute:
        names: list[str] = args[1]  # type: ignore[assignment]
        inputs: Sequence[Attribute] = args[3] if len(args) == 7 else ()  # type: ignore[assignment]
        self.drop_type_vars(names)
        return FuncType.get(inputs, args[-1], names)  # type: ignore[arg-type]

    def on_type_list(self, *args: object) -> object:
        if len(args) == 1:
            return [args[0]]
        args[0].append(args[2])  # type: ignore[attr-defined]
        return args[0]

    # Data types ----------------------------------------------------------------------------------------------------

    def on_constructors(self, *args: object) -> object:
        if not args:
            return []
        args[0].append(args[1])  # type: ignore[attr-defined]
        return args[0]


def unquote(text: str) -> str:
    """The string that a quoted token means."""
    try:
        return characters(json.loads(text, strict=False))
    except ValueError:
        # An escape that JSON does not know means the character after the backslash.
        return text[1:-1].replace("\\", "")


def suggest(name: str, known: Sequence[str]) -> str:
    """`; did you mean 'x'?`, or nothing when no known name is close."""
    return did_you_mean(name, [other for other in known if other != name], 0.6)


def array_of(items: Sequence[str]) -> ArrayAttr[StringAttr]:
    """Names as an attribute."""
    return ArrayAttr([StringAttr(item) for item in items])
