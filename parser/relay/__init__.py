"""Relay's text format, TVM's version 0.0.5: reading and printing."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from ..items import Item, ParseContext


class RelayFormat:
    """The format of Relay items, see `parser.items.Format`."""

    def parse(self, items: Sequence[Item], context: ParseContext) -> list[list[Operation]]:
        from .reading import read_items

        return read_items(items, context)

    def owns(self, op: Operation) -> bool:
        return op.name in ("relay.func", "relay.type_data")

    def print(self, groups: Sequence[Sequence[Operation]], module: ModuleOp) -> list[str]:
        from .printer import print_groups

        return print_groups(groups, module)


FORMAT = RelayFormat()
