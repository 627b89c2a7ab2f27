"""Plans the background stages of a pipeline: groups of statements that are committed, and their waits.

A statement that reads what stage S writes in the background waits until at most so many of S's commits are in flight, as
its own iteration allows: the difference of the iterations that producer and consumer have reached.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.ir import SSAValue

from ....dialects.arith import Analyzer, Expr
from ....dialects.arith import expr as x
from ....dialects.arith.expr import logical_and, lt
from ....support.diagnostics import error_at
from .pipeline_stages import Statement


@dataclass(eq=False)
class Copy:
    """A statement in one part of the pipeline: its iteration, and when it runs."""

    statement: Statement
    turn: Expr
    predicate: Expr
    low: Expr
    """The part of the predicate that says that the first iteration has started."""
    waits: list[tuple[int, Expr, Expr | None]] = field(default_factory=list[tuple[int, Expr, "Expr | None"]])
    """Stage, number that may be in flight, and the condition under which that number is right."""
    commits: int | None = None
    """The stage whose queue its group is committed to."""
    group: int = 0


@dataclass(eq=False)
class _Local:
    """A background stage in one part of the pipeline."""

    groups: int = 0
    consumed: bool = False
    head: Expr | None = None
    predicate: Expr | None = None
    seen: set[SSAValue] = field(default_factory=set[SSAValue])
    wait: tuple[Copy, Expr] | None = None


class AsyncStages:
    """The background stages through prologue, body and epilogue."""

    def __init__(self, statements: Sequence[Statement], start: Expr):
        self.writes: dict[int, set[SSAValue]] = {}
        self.heads: dict[int, Expr | None] = {}
        for statement in statements:
            if statement.is_async:
                self.writes.setdefault(statement.stage, set()).update(statement.writes)
                self.heads[statement.stage] = start - 1

    def producer(self, statement: Statement) -> int | None:
        """The background stage whose results a statement reads.

        Raises MirError where there are several.
        """
        found = {
            stage
            for stage, buffers in self.writes.items()
            if stage <= statement.stage and any(buffer in buffers for buffer in statement.reads)
        }
        if len(found) > 1:
            raise error_at(
                statement.block,
                f"statement {statement.place} of the software pipeline reads what stages {', '.join(map(str, sorted(found)))} write in the background",
                "a statement waits for one background stage only",
            )
        return next(iter(found), None)

    def part(self, copies: Sequence[Copy], normalized: Analyzer, extent: Expr) -> None:
        """Decides about the waits and commits of one part, in which `normalized` knows the loop's variable."""
        local: dict[int, _Local] = {}
        group_of: dict[SSAValue, int] = {}
        for copy in copies:
            statement = copy.statement
            if statement.is_async:
                state = local.setdefault(statement.stage, _Local())
                if not state.groups or state.consumed:
                    state.groups += 1
                    state.consumed = False
                copy.commits, copy.group = statement.stage, state.groups
                group_of.update(dict.fromkeys(statement.writes, state.groups))
                state.head = copy.turn
                if state.predicate is None or normalized.can_prove(state.predicate):
                    state.predicate = copy.predicate
                else:
                    state.predicate = normalized.simplify(logical_and(state.predicate, copy.predicate))
            stage = self.producer(statement)
            if stage is not None:
                local.setdefault(stage, _Local()).consumed = True
        for copy in copies:
            self.wait(copy, local, group_of, normalized)
        for stage, state in local.items():
            if state.wait is not None:
                copy, count = state.wait
                unsure = state.predicate is not None and not normalized.can_prove(state.predicate)
                copy.waits.append((stage, count, state.predicate if unsure else None))
            head = self.heads[stage]
            known = state.predicate is not None and normalized.can_prove(state.predicate)
            self.heads[stage] = head + extent if known and head is not None else None

    def wait(self, copy: Copy, local: dict[int, _Local], group_of: dict[SSAValue, int], normalized: Analyzer) -> None:
        """Makes a statement that reads a result of a background stage wait for it."""
        statement = copy.statement
        if statement.is_async:
            local[statement.stage].seen.update(statement.writes)
        stage = self.producer(statement)
        if stage is None:
            return
        state = local[stage]
        heads: list[Expr | None] = []
        if not state.groups:
            heads.append(self.heads[stage])
        else:
            assert state.head is not None
            done: set[int] = set()
            for buffer in statement.reads:
                if buffer in self.writes[stage] and group_of[buffer] not in done:
                    done.add(group_of[buffer])
                    # What this part's iteration has not written yet was written in the iteration before.
                    heads.append(state.head if buffer in state.seen else state.head - 1)
        count: Expr = x.ZERO
        for head in heads:
            if head is None or not normalized.can_prove_ge0(head):
                count = x.ZERO
                break
            count = count + normalized.simplify(head - copy.turn)
        if state.wait is None:
            state.wait = (copy, count)
        elif normalized.can_prove(lt(count, state.wait[1])):
            state.wait = (state.wait[0], count)
