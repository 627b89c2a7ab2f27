"""TE in the Python of TVM's tutorials: `@te.func def f(): …; return [A, B]`, read and written.

`parser.python` makes a syntax tree (`syntax`), `evaluate` carries it out with the builder of the te dialect,
`printer` writes a function back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.utils.exceptions import VerifyException

from ...support.diagnostics import MirError, error_at
from ..items import Item, ParseContext

if TYPE_CHECKING:
    from .evaluate import Evaluator
    from .names import Builtin


class TEFormat:
    """The text format of `te.func`."""

    def parse(self, items: Sequence[Item], context: ParseContext) -> list[list[Operation]]:
        """Parses each item to at most one op: scripts first, then functions, then schedules of them."""
        evaluators: dict[str, Evaluator] = {}
        scripts: dict[str, Builtin] = {}
        results: dict[int, list[Operation]] = {}
        order = {"te.hybrid.script": 0, "te.func": 1, "te.schedule": 2}
        for place, item in sorted(enumerate(items), key=lambda pair: order.get(pair[1].kind, 1)):
            results[place] = self._parse(item, context, evaluators, scripts)
        return [results[place] for place in range(len(items))]

    def _parse(
        self, item: Item, context: ParseContext, evaluators: dict[str, Evaluator], scripts: dict[str, Builtin]
    ) -> list[Operation]:
        from ..source import Source
        from .evaluate import Evaluator
        from .syntax import read_function

        source = Source(item)
        try:
            function = read_function(item)
            if item.kind == "te.hybrid.script":
                from .hybrid import HybridFunction
                from .names import Builtin

                # A script has no op of its own: each call of it becomes one.
                scripts[str(function.name)] = Builtin(str(function.name), HybridFunction(source, function))
                return []
            evaluator = Evaluator(source, scripts, context.failed)
            if item.kind == "te.schedule":
                return [evaluator.run_schedule(function, evaluators)]
            made = evaluator.run(function)
            evaluators[str(function.name)] = evaluator
            return [made]
        except (MirError, VerifyException) as error:
            context.report_item(error, item)
            return []

    def owns(self, op: Operation) -> bool:
        """Returns whether an op of a module is a TE function, or the schedule of one."""
        return op.name in ("te.func", "te.schedule")

    def print(self, groups: Sequence[Sequence[Operation]], module: ModuleOp) -> list[str]:
        """Each run of functions and schedules as text."""
        from ...dialects.te import FuncOp, ScheduleOp
        from .printer import print_function, print_schedule_of

        functions = {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp)}

        def text(op: Operation) -> str:
            if not isinstance(op, ScheduleOp) or op.target is None:
                return print_function(op)
            name = op.target.root_reference.data
            if name not in functions:
                raise error_at(op, f"there is no TE function '{name}' to schedule")
            return print_schedule_of(op, functions[name])

        return ["\n\n\n".join(map(text, group)) for group in groups]


FORMAT = TEFormat()
