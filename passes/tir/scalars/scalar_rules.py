"""Rules on scalars, `simplify.mir` and the like, applied op by op in the course of a walk."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from ....dialects.rule.knowledge import Knowledge, knowing
from ...rules.engine.rewriter import RuleDriver
from ...rules.engine.shipped import shipped_rules
from ...rules.engine.stats import current_stats


class ScalarRules(RuleDriver):
    """Applies the rules of a file that ships to one op at a time; `knowledge` answers their conditions.

    The op that was replaced stays, without a use: the walk that comes to it goes on from it, and erases what is dead at its end. Ops that
    use it come later in the walk.
    """

    def __init__(self, file: str, knowledge: Knowledge):
        self.made: list[Operation] = []
        self.knowledge = knowledge
        super().__init__(None, shipped_rules(file), False, current_stats())
        self.roots = self.rules.by_root
        """The names of the ops that some rule may replace."""

    def settle(self, op: Operation) -> list[Operation]:
        """Rewrites `op` and its replacements until no rule matches; returns the new ops in use, in order."""
        programs = self.rules.candidates(op) if op.name in self.roots else ()
        if not programs:
            return []
        self.made.clear()
        with knowing(self.knowledge):
            if self.stats is not None:
                self.visit(op)
            elif not any(self.attempt(program, op) for program in programs):
                return []
            while self.pending:
                self.visit(self.pending.popitem()[0])
        self.lineage.clear()
        return [made for made in self.made if made.results[0].first_use is not None]

    def push(self, op: Operation) -> None:
        """Queues an op to be visited next."""
        super().push(op)
        self.made.append(op)

    def push_users(self, value: SSAValue) -> None:
        """Users come later in the walk."""

    def erase_unused(self, ops: object) -> None:
        """Does nothing: the walk erases what is dead."""
