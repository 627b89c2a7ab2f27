"""Reads and prints rewrite rules, `rewrite @name { lhs => rhs where condition }`, and sets of them.

`lexer` and `reader` (grammar: `rules.lark`) make a syntax tree, `build` makes ops of the rule dialect, `printer` writes
them back.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.utils.exceptions import VerifyException

from ...support.diagnostics import MirError
from ..items import Item, ParseContext


class RulesFormat:
    """The text format of the rule dialect."""

    def parse(self, items: Sequence[Item], context: ParseContext) -> list[list[Operation]]:
        """One op for each item."""
        from ..source import Source
        from .build import build_item
        from .reader import read_item
        from .tree import Rewrite, Ruleset

        found: list[list[Operation]] = []
        for item in items:
            source = Source(item)
            try:
                tree = read_item(source)
                assert isinstance(tree, Rewrite | Ruleset)
                found.append([build_item(source, tree)])
            except (MirError, VerifyException) as error:
                context.report(error, item.location())
                found.append([])
        return found

    def owns(self, op: Operation) -> bool:
        """Returns whether an op of a module is a rule or a set of rules."""
        return op.name in ("rule.rewrite", "rule.set")

    def print(self, groups: Sequence[Sequence[Operation]], module: ModuleOp) -> list[str]:
        """Each run of rules as text."""
        from .printer import print_rule

        return ["\n\n".join(print_rule(op) for op in group) for group in groups]


FORMAT = RulesFormat()
