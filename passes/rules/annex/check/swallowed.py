"""Rules that never apply because an earlier one takes all that they match."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.ir import SSAValue

from .....dialects import rule as ir
from .....support.diagnostics import Diagnostic
from .terms import condition_key, conditions, roots, subsumes


def check_swallowed(rules: Sequence[ir.RewriteOp]) -> list[Diagnostic]:
    """Returns a diagnostic for each rule that an earlier one swallows.

    The earlier rule's pattern is as general, and its conditions are as weak.
    """
    found: list[Diagnostic] = []
    ordered = sorted(rules, key=lambda rule: -rule.benefit.value.data)
    by_root: dict[str, list[ir.RewriteOp]] = {}
    for rule in ordered:
        first = roots(rule)[0].owner
        assert isinstance(first, ir.MatchOp)
        names = [name.data for name in first.names.data]
        earlier = next((e for e in by_root.get(names[0], []) if _swallows(e, rule)), None)
        if earlier is not None:
            found.append(
                Diagnostic(
                    f"rule @{rule.sym_name.data} never applies: @{earlier.sym_name.data} comes first wherever it matches",
                    rule.location,
                )
                .with_note("this rule is as general", earlier.location)
                .with_note("give the special rule a greater benefit(…), or write it first")
            )
        for name in names:
            by_root.setdefault(name, []).append(rule)
    return found


def _swallows(general: ir.RewriteOp, special: ir.RewriteOp) -> bool:
    theirs, ours = roots(special), roots(general)
    if len(ours) != 1 or len(theirs) != 1 or _may_decline(general):
        return False
    bound: dict[SSAValue, Any] = {}
    if not subsumes(ours[0], theirs[0], bound):
        return False
    known = {condition_key(condition, {}) for condition in conditions(special)}
    return all(condition_key(condition, bound) in known for condition in conditions(general))


def _may_decline(rule: ir.RewriteOp) -> bool:
    """Returns whether a rule may decline though its conditions hold: by a fold, or a bind without a value."""
    return any(
        isinstance(op, ir.FoldOp) or (isinstance(op, ir.ComputeOp) and op.capture is not None)
        for op in rule.body.block.ops
    )
