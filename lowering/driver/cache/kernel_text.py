"""Writes a kernel as text that identifies it.

The text is JSON: a list of attributes in MLIR's syntax, each once, then the op, in which numbers refer to them:

    [name, operands, results, properties, attributes, regions]

Operands are the numbers of values, in the order of their definitions; results and the arguments of blocks are each a
type and a name hint; properties and attributes are pairs of a key and a value. A region is a list of blocks, a block the list of
its arguments and its ops. Places in the source are left out, and there are no successors.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.printer import Printer

from ....support.diagnostics import source_position
from ....support.operands import operands_of
from ....support.walk import walk_ops

Places = list[tuple[str, int, int] | None]
"""File, line and column of each op of a kernel, in the order of the text."""


class KernelText:
    """Texts of ops. Each attribute is put into words once: many ops share it."""

    def __init__(self) -> None:
        # By identity: attributes that are equal may read differently, as 0.0 and -0.0 do. They are kept, so that no other gets their
        # place in memory.
        self._known: dict[int, tuple[Attribute, str]] = {}
        self._printer = _Printer()

    def __call__(self, op: Operation) -> str:
        """The text of an op and all that is in it."""
        numbers: dict[str, int] = {}
        values: dict[SSAValue, int] = {}
        known = self._known

        def number(attribute: Attribute) -> int:
            entry = known.get(id(attribute))
            if entry is None:
                entry = known[id(attribute)] = attribute, self._printer.text(attribute)
            return numbers.setdefault(entry[1], len(numbers))

        def pairs(named: Mapping[str, Attribute]) -> list[Any]:
            return [(key, number(attribute)) for key, attribute in named.items()]

        def declared(made: Sequence[SSAValue]) -> list[Any]:
            for value in made:
                values[value] = len(values)
            return [(number(value.type), value.name_hint) for value in made]

        def written(op: Operation) -> list[Any]:
            assert not op.successors
            operands = [values[operand] for operand in operands_of(op)]
            results = declared(op.results)
            regions = [
                [(declared(block.args), [written(inner) for inner in block.ops]) for block in region.blocks]
                for region in op.regions
            ]
            return [op.name, operands, results, pairs(op.properties), pairs(op.attributes), regions]

        tree = written(op)
        return json.dumps([list(numbers), tree], separators=(",", ":"))


def places_of(op: Operation) -> Places:
    """Returns the place of an op and of all ops in it."""
    return [source_position(each.location) for each in walk_ops(op)]


class _Printer(Printer):
    def __init__(self) -> None:
        super().__init__(print_generic_format=True)
        self._parts: list[str] = []

    def text(self, attribute: Attribute) -> str:
        """An attribute in MLIR's syntax."""
        self._parts.clear()
        self.print_attribute(attribute)
        return "".join(self._parts)

    def print_string(self, text: str, *, indent: int | None = None) -> None:
        self._parts.append(text)
