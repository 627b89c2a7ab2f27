"""`mir-opt --check-rules`: is each rule true, do they come to an end, does none hide another?

`equal` runs both sides of Relay rules on programs that `generate` makes of the pattern; `integers` proves rules of integer
arithmetic, and `scalars` tries those of TIR on numbers of every dtype; `terminate` looks for measures that the rules decrease. `check_swallowed` compares patterns, as `terms`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from .....dialects import rule as ir
from .....dialects.rule import RewriteOp
from .....support.diagnostics import Diagnostic, MirError, error_at
from .....support.text import counted
from ...engine.library import select_rules
from .equal import check_meaning, examples_of
from .terminate import check_termination
from .terms import condition_key, conditions, results, roots, subsumes

__all__ = ["check_module", "check_rules"]


def check_module(module: ModuleOp) -> tuple[str, list[Diagnostic]]:
    """Checks a module's rules; returns a summary and all diagnostics. Its functions are example programs.

    Raises:
        MirError: where the module has no rules.
    """
    rules = select_rules(module)
    found: dict[str, list[RewriteOp]] = {}
    problems = check_rules(rules, examples_of(module), found)
    lines = [f"{counted(len(rules), 'rule')} checked"]
    for what, some in found.items():
        names = ", ".join(f"@{rule.sym_name.data}" for rule in some)
        verb = r"\1" if len(some) > 1 else r"\1s"
        lines.append(f"{names}: {re.sub('<(.*)>', verb, what)}")
    return "\n".join(lines), problems


def check_rules(
    rules: Sequence[RewriteOp], examples: Sequence[ModuleOp] = (), found: dict[str, list[RewriteOp]] | None = None
) -> list[Diagnostic]:
    """Returns all problems of verified rules that are applied together.

    `examples` are typed programs to try.

    `found` is filled with what is known of the rules: how they were proven, and why they come to an end.
    """
    import numpy as np

    with np.errstate(all="ignore"):
        return _check_rules(rules, examples, {} if found is None else found)


def _check_rules(
    rules: Sequence[RewriteOp], examples: Sequence[ModuleOp], known: dict[str, list[RewriteOp]]
) -> list[Diagnostic]:
    found: list[Diagnostic] = []
    patterns = [rule for rule in rules if roots(rule) == results(rule)]
    if patterns:
        # Those of merge-composite: they change nothing.
        known["only a pattern"] = patterns
        rules = [rule for rule in rules if rule not in patterns]
    reasons: dict[str, list[RewriteOp]] = {}
    marked = [rule for rule in rules if rule.is_fast]
    if marked:
        known["<hold> for real numbers"] = marked
    for rule in rules:
        if rule.level.data == "relay":
            problem = check_meaning(rule, examples)
            found += [] if problem is None else [problem]
        else:
            found += _check_integers(rule, known)
    found += check_termination(rules, lambda cycle: _loops(cycle, examples), reasons)
    known.update((f"<come> to an end {reason}", some) for reason, some in reasons.items())
    return found + check_swallowed(rules)


def _check_integers(rule: RewriteOp, known: dict[str, list[RewriteOp]]) -> list[Diagnostic]:
    from .integers import NEVER, UNSAID, prove

    try:
        problem, verdict = prove(rule)
    except ImportError:
        raise error_at(
            rule, f"rule @{rule.sym_name.data} is proven by z3, which is not installed", "pip install 'mirstack[z3]'"
        ) from None
    if rule.level.data == "tir" and (problem is None or NEVER in problem.message or UNSAID in problem.message):
        from .scalars import check_scalars

        wrong, tried = check_scalars(rule)
        if wrong is not None:
            return [wrong]
        if any("float" in dtype for dtype in tried):
            known.setdefault("<hold> for all floats that were tried", []).append(rule)
        if tried and problem is not None:
            if UNSAID in problem.message:
                known.setdefault("<hold> for all values that were tried", []).append(rule)
            return []
    if problem is not None:
        return [problem]
    known.setdefault(verdict, []).append(rule)
    return []


def _loops(cycle: Sequence[RewriteOp], examples: Sequence[ModuleOp]) -> bool:
    """Returns whether rules with conditions loop for ever on some program of the form of one of them."""
    if any(rule.level.data != "relay" for rule in cycle):
        return True
    from ...engine.rewriter import RuleIndex, apply_rules
    from .generate import instances

    index = RuleIndex.of(cycle)
    programs = [module.clone() for module in examples]
    programs += [made.module for rule in cycle for made in instances(rule, 40) if made is not None]
    for program in programs:
        try:
            for function in program.ops:
                apply_rules(function, index)
        except MirError as error:
            if "do not come to an end" in error.diagnostics[0].message:
                return True
    return False


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
