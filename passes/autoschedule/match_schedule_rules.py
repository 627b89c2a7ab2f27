"""The pass `match-schedule-rules`: lists in a kernel's attribute the written rules that are for it.

    rule for nn.dense(%x, %w) where $rows = 4          fn (%p0, %p1, Primitive=1) { nn.dense(%p0, %p1) }
    @T.schedule                                    →   fn (%p0, %p1, Primitive=1, schedule_rule="dense_rows(rows=4)") { … }
    def dense_rows(sch, rows): …

`default-schedule` applies them to the function of loops that the kernel becomes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import DictionaryAttr, ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from ...support.extensions import loaded
from ..common.described_cpu import described_cpu
from ..option_range import require_range

if TYPE_CHECKING:
    from ...dialects.relay.ir import FnOp
    from ...dialects.schedule import RuleOp
    from ...support.target import Target
    from ..rules.engine.program import Program


@dataclass(frozen=True)
class MatchScheduleRules(ModulePass):
    """Name the written schedule rules that are for a kernel in its attribute.

    The rules are those of the module, then those that are loaded; of greater benefit first. `cpu`, `threads` and `caches` are the
    target's, as of default-schedule, of which conditions may ask.
    """

    name = "match-schedule-rules"
    tells: ClassVar[bool] = False

    cpu: str = ""
    threads: int = 0
    caches: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Raises MirError where a condition cannot be computed, and for a number that is not an integer."""
        require_range(op, "threads", self.threads, 0)
        rules = [each for each in op.ops if each.name == "schedule.rule"]
        known = {_name(rule) for rule in rules}
        rules += [each.value for each in loaded("schedule.rule") if each.name not in known]  # type: ignore[misc]
        if rules:
            from ...support.target import named

            _match(op, rules, named(described_cpu(op.ops, self.cpu), self.threads or None, self.caches))  # type: ignore[arg-type]


def _name(rule: Operation) -> str:
    return rule.properties["sym_name"].data  # type: ignore[attr-defined]


def _match(module: ModuleOp, rules: list[RuleOp], target: Target) -> None:
    """Marks the kernels of a module."""
    from ...dialects.relay.ir import FnOp
    from ...support.walk import walk_ops
    from ..relay.functional.infer_type import ensure_types
    from ..relay.fusion.fuse_ops import is_kernel
    from ..rules.engine.program import compile_rule
    from .rule_names import RULE
    from .written_rules import listed

    ensure_types(module)
    programs = [(rule, compile_rule(rule.pattern)) for rule in rules]  # type: ignore[arg-type]
    programs.sort(key=lambda each: -each[1].rule.benefit.value.data)
    for kernel in [op for op in walk_ops(module) if isinstance(op, FnOp) and is_kernel(op)]:
        found = list(_rules_for(kernel, programs, target))
        if found:
            kernel.properties["attrs"] = DictionaryAttr({**kernel.attrs.data, RULE: listed(found)})


def _rules_for(
    kernel: FnOp, programs: list[tuple[RuleOp, Program]], target: Target
) -> Iterator[tuple[str, Mapping[str, int]]]:
    """Yields the rules that a kernel matches, with their numbers, up to the first that is not optional."""
    from ...dialects.relay.operator import OperatorOp
    from ...dialects.rule.kernel_functions import Kernel, at_kernel

    ops = list(reversed(list(kernel.body.block.ops)))
    with at_kernel(Kernel(sum(isinstance(op, OperatorOp) for op in ops), target)):
        for rule, program in programs:
            for op in ops:
                match = program.match(op) if op.name in program.root_names else None
                if match is not None:
                    yield program.name, _numbers(rule, program.captures(match))
                    break
            else:
                continue
            if rule.optional is None:
                return


def _numbers(rule: RuleOp, captures: Mapping[str, object]) -> dict[str, int]:
    """Returns what the rule's script is given. Raises MirError for what is not an integer."""
    from ...support.diagnostics import error_at

    numbers: dict[str, int] = {}
    for parameter in rule.script.parameters.data:
        value = captures[parameter.data]
        if not isinstance(value, int) or isinstance(value, bool):
            raise error_at(
                rule.script,
                f"${parameter.data} is {value!r} here, and schedules are given integers",
                "int(…) makes one of a float, len(…) of a shape",
            )
        numbers[parameter.data] = value
    return numbers
