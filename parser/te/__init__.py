"""TE in the Python of TVM's tutorials: `@te.func def f(): …; return [A, B]`, read and written.

`lexer` and `reader` (grammar: `te.lark`) make a syntax tree, `evaluate` carries it out with the builder of the te dialect,
`printer` writes a function back.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from ...support.diagnostics import MirError
from ..items import Item, ParseContext


class TEFormat:
    """The text format of `te.func`."""

    def parse(self, items: Sequence[Item], context: ParseContext) -> list[list[Operation]]:
        """One function for each item."""
        return [self._parse(item, context) for item in items]

    def _parse(self, item: Item, context: ParseContext) -> list[Operation]:
        from ..source import Source
        from .evaluate import Evaluator
        from .reader import read_function

        if item.kind != "te.func":
            context.error(
                item.location(),
                f"'@{item.kind}' items are not read",
                "a TE function is an item of its own: @te.func above def name(): …; return [A, B]",
            )
            return []
        source = Source(item)
        try:
            return [Evaluator(source).run(read_function(source))]
        except MirError as error:
            context.report(error)
            return []

    def owns(self, op: Operation) -> bool:
        """Whether an op of a module is a TE function."""
        return op.name == "te.func"

    def print(self, groups: Sequence[Sequence[Operation]], module: ModuleOp) -> list[str]:
        """Each run of functions as text."""
        from .printer import print_function

        return ["\n\n\n".join(print_function(op) for op in group) for group in groups]


FORMAT = TEFormat()
