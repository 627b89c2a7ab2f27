"""Reads and prints descriptions of targets: `target "my-cpu" { cpu = "haswell", lanes = 8, l2 = 2M }`.

The fields are those of `support.target_description.FIELDS`; a value is a number, which may end in K, M or G, a text, or a list of texts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import NoReturn

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from ...dialects.target import DescribeTargetOp
from ...support.diagnostics import MirError, error_at
from ...support.target import DESCRIPTION, family_of, with_description
from ...support.target_description import FIELDS, Description, DescriptionError, FieldValue
from ..items import Item, ParseContext
from ..source import Source

_TOKEN = re.compile(
    r"(?:\s|//[^\n]*)*+(?:(?P<text>\"(?:[^\"\\\n]|\\.)*\")|(?P<number>\d+)(?P<unit>[KMG]?)(?!\w)|(?P<word>[A-Za-z_]\w*)|(?P<sign>[{}\[\]=,]))"
)
_REST = re.compile(r"(?:\s|//[^\n]*)*+")
_FORM = 'a target is: target "my-cpu" { cpu = "haswell", lanes = 8, l2 = 2M }'
_UNITS = {"": 0, "K": 10, "M": 20, "G": 30}


class _Reader:
    """Reads one item, token by token."""

    def __init__(self, item: Item):
        self.source, self.text, self.pos = Source(item), item.text, 0
        self.match: re.Match[str] | None = None
        self.start = 0
        self.next()

    def next(self) -> None:
        """Moves to the next token; `match` is None at the end, and at what is not a token."""
        rest = _REST.match(self.text, self.pos)
        self.start = rest.end() if rest else self.pos
        self.match = _TOKEN.match(self.text, self.pos)
        self.pos = self.match.end() if self.match else self.start

    def fail(self, at: int, message: str, *notes: str) -> NoReturn:
        """Raises an error at an offset of the text."""
        raise error_at(self.source.location(min(at, max(len(self.text) - 1, 0))), message, *notes)

    def take(self, kind: str, spoken: str) -> str:
        """Returns the text of the token, which must be of a kind, and moves on."""
        if self.match is None or self.match[kind] is None:
            found = self.text[self.start : self.start + 1]
            shown = f"'{found}'" if found else "the end"
            self.fail(self.start, f"expected {spoken} here, not {shown}", _FORM)
        text = self.match[kind]
        self.next()
        return text

    def sign(self, sign: str) -> None:
        """Moves over a sign, which must be there."""
        if not self.is_sign(sign):
            found = "the end" if self.match is None else f"'{self.match[0].strip()}'"
            self.fail(self.start, f"expected '{sign}' here, not {found}", _FORM)
        self.next()

    def is_sign(self, sign: str) -> bool:
        """Returns whether the token is this sign."""
        return self.match is not None and self.match["sign"] == sign

    def target(self) -> DescribeTargetOp:
        """Returns the item's op."""
        begin = self.start
        self.take("word", "target")
        name_at = self.start
        name = self.string("the target's name in quotes")
        if family_of(name) is not None or name == "native":
            self.fail(
                name_at,
                f"'{name}' is the name of a processor that is known already",
                "give the description another name",
            )
        self.sign("{")
        fields: dict[str, FieldValue] = {}
        places: dict[str, int] = {}
        while not self.is_sign("}"):
            at = self.start
            key = self.take("word", "the name of a field")
            if key in fields:
                self.fail(at, f"'{key}' is given twice", _FORM)
            self.sign("=")
            places[key] = self.start if key in FIELDS else at
            fields[key] = self.value()
            if not self.is_sign("}"):
                self.sign(",")
        self.next()
        try:
            description = Description.of(name, fields)
            with_description(description)
        except DescriptionError as error:
            self.fail(places.get(error.field or "", name_at), error.message, error.note)
        op = DescribeTargetOp(description)
        op.location = self.source.location(begin)
        return op

    def string(self, spoken: str) -> str:
        """Returns a text in quotes."""
        at = self.start
        text = self.take("text", spoken)
        try:
            return json.loads(text)
        except ValueError:
            self.fail(at, "this text has an escape that is none", "write it without backslashes")

    def value(self) -> FieldValue:
        """Returns the value of a field."""
        if self.match is not None and self.match["number"] is not None:
            digits, unit = self.match["number"], self.match["unit"]
            if len(digits) > 15:
                self.fail(self.start, "this number is too large", _FORM)
            self.next()
            return int(digits) << _UNITS[unit]
        if not self.is_sign("["):
            return self.string("a number, a text in quotes, or a list of texts")
        self.next()
        found: list[str] = []
        while not self.is_sign("]"):
            found.append(self.string("a text in quotes"))
            if not self.is_sign("]"):
                self.sign(",")
        self.next()
        return tuple(found)


def read_target(item: Item) -> DescribeTargetOp:
    """Returns the op of an item. Raises MirError at what is wrong in it."""
    return _Reader(item).target()


class TargetFormat:
    """The text format of descriptions of targets."""

    def parse(self, items: Sequence[Item], context: ParseContext) -> list[list[Operation]]:
        """Returns one op for each item."""
        found: list[list[Operation]] = []
        for item in items:
            try:
                found.append([read_target(item)])
            except MirError as error:
                context.report(error, item.location())
                found.append([])
        return found

    def owns(self, op: Operation) -> bool:
        """Returns whether an op of a module describes a target."""
        return op.name == DESCRIPTION

    def print(self, groups: Sequence[Sequence[Operation]], module: ModuleOp) -> list[str]:
        """Returns each run of descriptions as text."""
        return ["\n\n".join(print_target(op) for op in group if isinstance(op, DescribeTargetOp)) for group in groups]


def print_target(op: DescribeTargetOp) -> str:
    """Returns a description as an item, a field a line where there are many."""
    described = op.description
    fields = [f"{name} = {_shown(name, value)}" for name, value in described.fields.items()]
    line = f"target {json.dumps(described.name)} {{ {', '.join(fields)} }}"
    if len(line) <= 120:
        return line
    return "\n".join([f"target {json.dumps(described.name)} {{", *(f"  {each}," for each in fields), "}"])


def _shown(name: str, value: FieldValue) -> str:
    match value:
        case int() if FIELDS[name].kind == "bytes":
            unit = next((u for u in "GMK" if value % (1 << _UNITS[u]) == 0), "")
            return f"{value >> _UNITS[unit]}{unit}"
        case int():
            return str(value)
        case str():
            return json.dumps(value)
        case _:
            return json.dumps(list(value))


FORMAT = TargetFormat()
