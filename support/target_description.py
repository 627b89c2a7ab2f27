"""Describes processors in the words of users: fields over one of LLVM's processors.

    target "my-cpu" { cpu = "haswell", lanes = 8, l2 = 2M }    ↔    my-cpu=haswell:lanes=8:l2=2097152

The text on the right is a processor wherever LLVM's names are: in options, in the keys of what is compiled, in other processes.
A field is a row of FIELDS; what a program may write follows from it, and so do messages and the documentation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from .text import did_you_mean

FieldValue: TypeAlias = "int | str | tuple[str, ...]"
Kind = Literal["number", "bytes", "text", "texts"]


class DescriptionError(Exception):
    """Error in a description: the field that it is about (None for the whole), a message, a note."""

    def __init__(self, field: str | None, message: str, note: str):
        super().__init__(message)
        self.field, self.message, self.note = field, message, note


@dataclass(frozen=True)
class Field:
    """A field: the kind of its value, the least one, and what it says."""

    kind: Kind
    least: int
    doc: str


FIELDS: Mapping[str, Field] = {
    "cpu": Field(
        "text", 0, "LLVM's name of the processor that code is made for; the other fields are its own unless given"
    ),
    "lanes": Field("number", 1, "how many elements of float32 a vector has; no more than the processor's"),
    "vector_registers": Field("number", 4, "how many vector registers schedules count on"),
    "l1": Field("bytes", 1 << 10, "bytes of the first data cache"),
    "l2": Field("bytes", 1 << 10, "bytes of the second cache that one core may count on"),
    "l3": Field("bytes", 1 << 10, "bytes of the third cache that one core may count on"),
    "cores": Field("number", 1, "how many threads parallel loops use where nothing else says so"),
    "features": Field("texts", 0, "instructions to use, of those that the processor has"),
}
"""The fields of a description by name."""

_SPOKEN: Mapping[Kind, str] = {
    "number": "a whole number",
    "bytes": "a number of bytes, such as 48K or 2M",
    "text": "a text in quotes",
    "texts": 'a list of texts, such as ["vnni"]',
}
_NAME = re.compile(r"[A-Za-z0-9][\w.+-]*")
_WORD = re.compile(r"[\w.+-]+")


@dataclass(frozen=True)
class Description:
    """A processor by its name, with the fields that are given."""

    name: str
    fields: Mapping[str, FieldValue]

    @property
    def cpu(self) -> str:
        """Returns LLVM's name of the processor."""
        return str(self.fields["cpu"])

    @property
    def text(self) -> str:
        """Returns the description as one word: `my-cpu=haswell:lanes=8`."""
        parts = [f"{self.name}={self.cpu}"]
        for name, value in self.fields.items():
            if name != "cpu":
                parts.append(f"{name}={','.join(value) if isinstance(value, tuple) else value}".replace(",", "+"))
        return ":".join(parts)

    @staticmethod
    def of(name: str, fields: Mapping[str, object]) -> Description:
        """Returns a description. Raises DescriptionError for a field that there is not, and for a wrong value."""
        if not _NAME.fullmatch(name):
            raise DescriptionError(
                None, f"'{name}' is not a name of a target", "a name has letters, digits, and -, _, . or + between them"
            )
        if "cpu" not in fields:
            raise DescriptionError(
                None,
                f"the target '{name}' does not say which processor it is",
                'write cpu = "haswell", LLVM\'s name of the processor that code is made for',
            )
        ordered = {key: value for key, value in fields.items() if key not in FIELDS}
        ordered |= {key: fields[key] for key in FIELDS if key in fields}
        return Description(name, {key: _checked(key, value) for key, value in ordered.items()})

    @staticmethod
    def read(text: str) -> Description | None:
        """Returns the description that a processor's text is; None for a name of LLVM's."""
        head, *parts = text.split(":")
        name, equals, cpu = head.partition("=")
        if not equals:
            return None
        fields: dict[str, FieldValue] = {"cpu": cpu}
        for part in parts:
            key, _, value = part.partition("=")
            known = FIELDS.get(key)
            if known is not None and known.kind in ("number", "bytes"):
                fields[key] = int(value) if value.isdecimal() else value
            else:
                fields[key] = tuple(value.split("+")) if value else ()
        return Description.of(name, fields)


def _checked(name: str, value: object) -> FieldValue:
    field = FIELDS.get(name)
    if field is None:
        raise DescriptionError(
            name, f"a target has no field '{name}'{did_you_mean(name, FIELDS)}", f"its fields are {', '.join(FIELDS)}"
        )
    match field.kind:
        case "number" | "bytes":
            if isinstance(value, int) and not isinstance(value, bool):
                if not field.least <= value < 1 << 48:
                    raise DescriptionError(name, f"'{name}' is {field.least} or more, not {value}", field.doc)
                return value
        case "text":
            if isinstance(value, str) and _WORD.fullmatch(value):
                return value
        case "texts":
            if isinstance(value, tuple) and all(isinstance(each, str) and _WORD.fullmatch(each) for each in value):  # pyright: ignore[reportUnknownVariableType]
                return value  # pyright: ignore[reportUnknownVariableType]
    raise DescriptionError(name, f"'{name}' is {_SPOKEN[field.kind]}", field.doc)
