"""Schedules as text: `@T.schedule(mm_relu) def mm_relu_tiled(sch): …`, and traces as TVM prints them.

The syntax is TVMScript's (`parser.tvmscript.syntax`); `reader` makes ops of the tree, `printer` writes them back.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.utils.exceptions import VerifyException

from ...support.diagnostics import MirError
from ..items import Item, ParseContext


class ScheduleFormat:
    """The text format of `schedule.script`."""

    def parse(self, items: Sequence[Item], context: ParseContext) -> list[list[Operation]]:
        """Returns one script for each item."""
        return [self._parse(item, context) for item in items]

    def _parse(self, item: Item, context: ParseContext) -> list[Operation]:
        from ..python.builder import parse_tree
        from .reader import SCHEDULE, ScriptReader

        try:
            if item.kind == "TensorIntrin":
                from .tensor_intrinsics import declare_intrinsic

                declare_intrinsic(item, context)
                return []
            if item.kind == "rule":
                from .rule_reader import read_rule

                return [read_rule(item, context)]
            return [ScriptReader(item, context).script(parse_tree(item, SCHEDULE))]
        except (MirError, VerifyException) as error:
            context.report(error, item.location())
            return []

    def owns(self, op: Operation) -> bool:
        """Returns whether an op of a module is a script, or a rule that has one."""
        return op.name in ("schedule.script", "schedule.rule")

    def print(self, groups: Sequence[Sequence[Operation]], module: ModuleOp) -> list[str]:
        """Returns each run of scripts as text."""
        from .printer import print_schedule

        return ["\n\n\n".join(map(print_schedule, group)) for group in groups]


FORMAT = ScheduleFormat()
