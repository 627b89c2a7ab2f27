"""`merge-composite`: moves the ops that a pattern matches into functions.

Partition by the user's patterns.

As TVM's MergeComposite, with the left sides of rules as the patterns: `rewrite @dense_add { %r = add(nn.dense(%x, %w), %b) => %r }`
makes of each dense layer and its bias a function with the attribute `Composite="dense_add"`, called in their place. It is
`Primitive`, so that it becomes one kernel. The values of the captures are its parameters.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from time import perf_counter
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import DictionaryAttr, ModuleOp, StringAttr
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from ....dialects.relay import ir
from ....dialects.relay.operator import OperatorOp
from ....dialects.rule import RewriteOp
from ....support.diagnostics import error_at
from ....support.edit import insert_op_before
from ....support.locations import fuse_locations
from ....support.trace import tracer
from ...changes import tell_rewrite
from ...rules.engine.library import load_rules, select_rules
from ...rules.engine.program import Match, Program, compile_rule
from ...rules.engine.stats import RuleStats, current_stats
from ..common.function_attributes import open_ops
from ..functional.infer_type import ensure_types
from .fuse_ops import outline

_MEMBERS = (OperatorOp, ir.TupleOp, ir.TupleGetItemOp, ir.ConstantOp)


@dataclass(frozen=True)
class MergeComposite(ModulePass):
    """Make functions of the ops that the left sides of rules match.

    The rules are those of `file` (of the module itself if none is given), of the set or rule `set` alone if named.
    Ops inside a pattern must be used there alone: a producer with another user is left as it is. Patterns of greater
    benefit come first, then those written first; each is looked for from the end of the program, and no op is merged twice.
    """

    name = "merge-composite"
    tells: ClassVar[bool] = True
    file: str | None = None
    set: str | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Raises MirError for what is wrong in the rules, and for rules of several roots or of other dialects."""
        rules = select_rules(op if self.file is None else load_rules(self.file), self.set)
        patterns = [_pattern(rule) for rule in sorted(rules, key=lambda rule: -rule.benefit.value.data)]
        ensure_types(op)
        by_name: dict[str, list[Operation]] = {}
        for each in reversed(list(open_ops(op))):
            by_name.setdefault(each.name, []).append(each)
        merged = set[Operation]()
        trace = tracer(self.name)
        for pattern in patterns:
            started = perf_counter()
            stats = RuleStats()
            for root in (root for name in pattern.root_names for root in by_name.get(name, ())):
                if root not in merged:
                    stats.tries += 1
                    match = pattern.match(root)
                    if match is not None:
                        stats.hits += 1
                        if trace is not None:
                            note = "the pattern", pattern.rule.location
                            tell_rewrite(trace, f"@{pattern.name}: ", [*match.matched, root], "one function", note)
                        merged.update(_merge(pattern.name, match))
            stats.seconds = perf_counter() - started
            counted = current_stats()
            if counted is not None:
                counted[pattern.name] = stats


def _pattern(rule: RewriteOp) -> Program:
    if rule.level.data != "relay":
        raise error_at(
            rule,
            f"merge-composite: @{rule.sym_name.data} is a rule for {rule.level.data}",
            "functions are made of Relay's operators",
        )
    pattern = compile_rule(rule, _can_be_function)
    if len(pattern.roots) != 1:
        raise error_at(
            rule,
            f"merge-composite: @{pattern.name} has {len(pattern.roots)} roots",
            "a function gives one value: write a pattern of one root",
        )
    return pattern


def _can_be_function(match: Match) -> bool:
    """Returns whether a match is pure data flow of one block, and only its root is used elsewhere."""
    (root,) = match.roots
    inside = {root, *match.matched}
    if not any(isinstance(op, OperatorOp) for op in inside):
        return False
    for op in inside:
        if isinstance(op, ir.ConstantOp):
            continue  # Every user can have one of its own.
        if not isinstance(op, _MEMBERS) or op.parent is not root.parent:
            return False
        if op is not root and any(use.operation not in inside for use in op.results[0].uses):
            return False
    return True


def _merge(name: str, match: Match) -> list[Operation]:
    """Moves the matched ops into a function; returns them."""
    (root,) = match.roots
    inside = {root, *match.matched}
    for constant in [op for op in inside if isinstance(op, ir.ConstantOp)]:
        if any(use.operation not in inside for use in constant.result.uses):
            inside.remove(constant)
            inside.add(_own(constant, root, inside))
    ops = _in_order(root, inside)
    location = fuse_locations(op.location for op in ops if not isinstance(op, ir.ConstantOp))
    call = outline(ops)
    function = call.callee.owner
    assert isinstance(function, ir.FnOp)
    function.properties["attrs"] = DictionaryAttr({**function.attrs.data, "Composite": StringAttr(name)})
    function.location = call.location = location
    return ops


def _own(constant: ir.ConstantOp, root: Operation, inside: Iterable[Operation]) -> ir.ConstantOp:
    """A copy of a constant for the ops that are merged."""
    copy = constant.clone()
    copy.location = constant.location
    insert_op_before(copy, root)
    for op in inside:
        if any(operand is constant.result for operand in op.operands):
            op.operands = [copy.result if operand is constant.result else operand for operand in op.operands]
    return copy


def _in_order(root: Operation, inside: set[Operation]) -> list[Operation]:
    """Returns the ops, each after those whose results it uses, in the order of operands."""
    order: dict[Operation, None] = {}
    pending: list[tuple[Operation, bool]] = [(root, False)]
    while pending:
        op, done = pending.pop()
        if done:
            order[op] = None
        elif op not in order:
            pending.append((op, True))
            owners = [operand.owner for operand in op.operands]
            pending += [
                (owner, False) for owner in reversed(owners) if isinstance(owner, Operation) and owner in inside
            ]
    return list(order)
