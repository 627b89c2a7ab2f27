"""Reads kernels back from the texts that identify them, which is how a process gets one from another.

`KernelText` writes the text; the places in the source, which it leaves out, come beside it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import (
    UNKNOWN_LOC,
    ArrayAttr,
    Builtin,
    DictionaryAttr,
    FileLineColLoc,
    FusedLoc,
    IntAttr,
    LocationAttr,
    NameLoc,
    NoneAttr,
    StringAttr,
    UnknownLoc,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.parser import Parser

from ....dialects import te, tir
from ....dialects.array import MIRSTACK
from ....support.walk import walk_ops


def location_json(location: Attribute) -> Any:
    """Returns a location as plain data; None for one that no reader makes.

    Unknown: [], of a file: [file, line, column], of a node: [name, location], of several: [null, location, …].
    """
    match location:
        case UnknownLoc():
            return []
        case FileLineColLoc():
            return [location.filename.data, location.line.data, location.column.data]
        case NameLoc():
            inner = location_json(location.location)
            return None if inner is None else [location.desc.data, inner]
        case FusedLoc(metadata=NoneAttr(), locations=ArrayAttr(data=parts)):
            inner = [location_json(part) for part in parts]
            return None if None in inner else [None, *inner]
        case _:
            return None


def location_of_json(data: Sequence[Any]) -> LocationAttr:
    """Returns the location that `location_json` converted."""
    match data:
        case [str(file), int(line), int(column)]:
            return FileLineColLoc(StringAttr(file), IntAttr(line), IntAttr(column))
        case [str(name), [*inner]]:
            return NameLoc(StringAttr(name), location_of_json(inner))
        case [None, *parts]:
            return FusedLoc(ArrayAttr([location_of_json(part) for part in parts]), NoneAttr())
        case _:
            return UNKNOWN_LOC


def locations_json(op: Operation) -> list[Any] | None:
    """Returns the locations of an op and of all in it; None where one is not converted."""
    found = [location_json(each.location) for each in walk_ops(op)]
    return None if None in found else found


class KernelReader:
    """Reads kernels, each attribute once."""

    def __init__(self) -> None:
        self._context = Context()
        for dialect in (Builtin, te.TE, tir.TIR, MIRSTACK):
            self._context.load_dialect(dialect)
        self._attributes: dict[str, Attribute] = {}

    def __call__(self, text: str, locations: Sequence[Sequence[Any]]) -> Operation:
        """Returns the op of a text of `KernelText`, whose ops were written at `locations`."""
        listed: list[str | list[int] | dict[str, int]]
        tree: Any
        listed, tree = json.loads(text)
        attributes: list[Attribute] = []
        for each in listed:
            match each:
                case str():
                    attributes.append(self._attribute(each))
                case list():
                    attributes.append(ArrayAttr([attributes[number] for number in each]))
                case _:
                    attributes.append(DictionaryAttr({key: attributes[number] for key, number in each.items()}))
        values: list[SSAValue] = []

        def declare(made: Sequence[SSAValue], about: Sequence[tuple[int, str | None]]) -> None:
            for value, (_, hint) in zip(made, about, strict=True):
                value.name_hint = hint
                values.append(value)

        def block_of(arguments: Sequence[tuple[int, str | None]], ops: Sequence[Any]) -> Block:
            block = Block(arg_types=[attributes[type] for type, _ in arguments])
            declare(block.args, arguments)
            for each in ops:
                block.add_op(read(each))
            return block

        def read(about: Sequence[Any]) -> Operation:
            name: str
            operands: list[int]
            results: list[tuple[int, str | None]]
            properties: list[tuple[str, int]]
            further: list[tuple[str, int]]
            regions: list[list[tuple[list[tuple[int, str | None]], list[Any]]]]
            name, operands, results, properties, further, regions = about
            op = self._context.get_op(name).create(
                operands=[values[number] for number in operands],
                result_types=[attributes[type] for type, _ in results],
                properties={key: attributes[number] for key, number in properties},
                attributes={key: attributes[number] for key, number in further},
                regions=[Region() for _ in regions],
            )
            declare(op.results, results)
            for region, blocks in zip(op.regions, regions, strict=True):
                for block in blocks:
                    region.add_block(block_of(*block))
            return op

        op = read(tree)
        for each, location in zip(walk_ops(op), locations, strict=True):
            each.location = location_of_json(location)
        return op

    def _attribute(self, text: str) -> Attribute:
        known = self._attributes.get(text)
        if known is None:
            known = self._attributes[text] = Parser(self._context, text).parse_attribute()
        return known
