"""`mir-opt --check-rules`: is each rule true, do they come to an end, does none hide another?

`equal` runs both sides of Relay rules on programs that `generate` makes of the pattern; `integers` proves rules of integer
arithmetic, and `scalars` tries those of TIR on numbers of every dtype; `terminate` looks for measures that the rules decrease; `swallowed` compares patterns, as `terms`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp

from .....dialects.rule import RewriteOp
from .....support.diagnostics import Diagnostic, MirError, error_at
from .....support.text import counted
from ...engine.library import select_rules
from .equal import check_meaning, examples_of
from .swallowed import check_swallowed
from .terminate import check_termination
from .terms import results, roots

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
