"""Converts a node of another framework's graph by rules."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import cast

from xdsl.ir import Operation, SSAValue

from ...dialects.relay.operator import OperatorOp
from ...dialects.rule.functions import NoMatch
from ...dialects.rule.levels.imported import NodeOp
from ...dialects.rule.ops import MatchOp
from ...passes.rules.engine.program import Match, Program
from ...passes.rules.engine.rewriter import RuleIndex
from ...support.diagnostics import MirError
from .graph_builder import GraphBuilder


def convert_by_rules(
    op: NodeOp, files: Iterable[RuleIndex], builder: GraphBuilder, needed: Collection[str] = ()
) -> SSAValue | None:
    """Returns the replacement of the first rule that matches a node, or None; drops the node.

    Rules that do not name the attributes `needed` do not count.
    """
    try:
        for rules in files:
            for program in rules.candidates(op):
                if needed and not _attributes(program).issuperset(needed):
                    continue
                match = program.match(op)
                made = None if match is None else _made(builder, program, match)
                if made is not None:
                    return made
    finally:
        op.drop_all_references()
    return None


def _attributes(program: Program) -> set[str]:
    """Returns the attributes that a rule's pattern names."""
    return {name.data for op in program.rule.walk() if isinstance(op, MatchOp) for name in op.attr_names.data}


def _made(builder: GraphBuilder, program: Program, match: Match) -> SSAValue | None:
    """Returns the value that a rule replaces a node by; None where a condition does not hold after all."""
    slots = match.slots
    like = match.roots[0].results[0]
    pending: list[Operation] = []
    try:
        for make in program.makers:
            op = cast("Operation | None", make(slots, like))
            if op is None:
                continue
            pending.append(op)
            op.location = builder.location
            slot = program.made[len(pending) - 1]
            slots[slot] = builder.add(op) if isinstance(op, OperatorOp) else builder.insert(op)
    except (NoMatch, KeyError):
        return None
    except MirError as error:
        raise error.__cause__ or error from None
    return cast("SSAValue", slots[program.results[0]])
