"""A software pipeline as loops: prologue, body and epilogue, over buffers of several versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import DictionaryAttr, StringAttr
from xdsl.ir import Block, Operation, Region, SSAValue

from ....dialects import tir
from ....dialects.arith import Analyzer, Expr
from ....dialects.arith import expr as x
from ....dialects.arith.expr import eq, ge, logical_and, logical_not, lt, substitute
from ....dialects.arith.regions import infer_regions
from ....dialects.tir.operators import Const, ExprBuilder, Value
from ....support.diagnostics import error_at
from ....support.edit import builder_at_end, erase_op, move_to_end
from ....support.walk import walk_ops
from ..analyzed_walk import analyzer_at
from ..clone_body import replace_at_uses
from ..rewriting import erase_if_dead, set_operands
from .multi_version_buffer import Versions
from .pipeline_stages import ANNOTATIONS, Statement

# Background stages


@dataclass(eq=False)
class Copy:
    """A statement in one part of the pipeline: its iteration, and when it runs."""

    statement: Statement
    iteration: Expr
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
        """Returns the background stage whose results a statement reads.

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
                state.head = copy.iteration
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
            count = count + normalized.simplify(head - copy.iteration)
        if state.wait is None:
            state.wait = (copy, count)
        elif normalized.can_prove(lt(count, state.wait[1])):
            state.wait = (state.wait[0], count)


_HEAD = (tir.ReadsOp, tir.WritesOp, tir.AllocBufferOp, tir.MatchBufferOp)


@dataclass(eq=False)
class PipelinePhase:
    """Prologue, body or epilogue: the times from `start` to before `end`. A single time has no loop."""

    start: Expr
    end: Expr
    is_end: bool
    loop: tir.ForOp
    is_unit: bool
    delta: Expr
    """The start less that of the old loop: the new loop counts from the same start as the old one."""


class Pipeline:
    """One loop, of which the statements, the buffers of its own and their numbers of versions are known."""

    def __init__(
        self,
        loop: tir.ForOp,
        statements: Sequence[Statement],
        allocations: Sequence[tir.AllocBufferOp],
        versions: Mapping[SSAValue, int],
    ):
        self.loop = loop
        self.statements = sorted(statements, key=lambda statement: statement.order)
        self.allocations = allocations
        self.most = max(statement.stage for statement in statements)
        self.versions = Versions(loop, versions, all_at_once=self.most != 1)
        self.analyzer = analyzer_at(loop)
        self.type = loop.min.type
        self.low, self.extent = self.analyzer.expr(loop.min), self.analyzer.expr(loop.extent)
        self.background = AsyncStages(self.statements, self.low)
        self.inferred: list[tir.BlockOp] = []

    def emit(self) -> None:
        """Puts the pipeline into the place of the loop."""
        home = self.loop.parent
        assert home is not None
        whole = self.block(Block())
        home.insert_op_before(whole, self.loop)
        body = whole.body.block
        self.versions.allocate(self.allocations, body)
        start, end = self.low + self.most, self.low + self.extent
        # With fewer iterations than stages, the prologue may have reached the end of some.
        after = end if self.analyzer.can_prove_ge0(self.extent - self.most) else x.maximum(start, end)
        self.part(body, self.low, start, is_end=True)
        self.part(body, start, end, is_end=False)
        self.part(body, after, end + self.most, is_end=True)
        for block in (*self.inferred, whole):
            infer_regions(block)
        erase_op(self.loop)

    # Expressions

    def from_expr(self, e: Expr, builder: ExprBuilder) -> Value:
        """Computes an expression by new ops."""
        e = self.analyzer.simplify(e)
        if e.value is not None:
            return Const(e.value, self.type)
        block = Block()
        value = self.analyzer.to_ssa(e, builder_at_end(block, self.loop.location), self.type)
        for op in list(block.ops):
            op.detach()
            builder.ops.append(op)
        return value

    def iteration(self, part: PipelinePhase, stage: int, builder: ExprBuilder) -> Value:
        """Returns the iteration of a statement of that stage."""
        behind = Const(stage, self.type)
        if part.is_unit:
            return builder.binary(tir.SubOp, self.from_expr(part.start, builder), behind)
        skewed = builder.binary(tir.SubOp, part.loop.loop_var, behind)
        return builder.binary(tir.AddOp, skewed, self.from_expr(part.delta, builder))

    def condition(self, part: PipelinePhase, stage: int, low: Expr) -> tuple[list[Operation], SSAValue | None]:
        """Returns when a statement of a stage runs, as ops and a condition: `low`, and before the end.

        The condition is None where it always runs.
        """
        builder = ExprBuilder(self.loop.location)
        behind = Const(stage, self.type)
        if part.is_unit:
            skewed = self.iteration(part, stage, builder)
        else:
            moved = builder.binary(tir.AddOp, part.loop.loop_var, self.from_expr(part.delta, builder))
            skewed = builder.binary(tir.SubOp, moved, behind)
        right = builder.binary(tir.LtOp, skewed, self.from_expr(self.low + self.extent, builder))
        result: Value | None = None if isinstance(right, Const) else right
        if low != x.TRUE:
            first = ExprBuilder(self.loop.location)
            left = self.from_expr_bool(low, first)
            builder.ops = [*first.ops, *builder.ops]
            result = left if result is None else builder.binary(tir.AndOp, left, result)
        return builder.ops, None if result is None else builder.value(result)

    def from_expr_bool(self, e: Expr, builder: ExprBuilder) -> SSAValue:
        """Computes a condition by new ops."""
        block = Block()
        value = self.analyzer.to_ssa(e, builder_at_end(block, self.loop.location), tir.dtype_to_type("bool"))
        for op in list(block.ops):
            op.detach()
            builder.ops.append(op)
        return value

    def block(self, body: Block) -> tir.BlockOp:
        """Wraps statements in a block."""
        block = tir.BlockOp("", [], [], [], [], [], body=Region(body))
        block.location = self.loop.location
        return block

    # Parts

    def part(self, home: Block, start: Expr, end: Expr, *, is_end: bool) -> None:
        """Builds the statements of a range of times, each as many iterations late as its stage."""
        analyzer = self.analyzer
        extent = analyzer.simplify(end - start)
        if analyzer.can_prove_ge0(-extent):
            self.nothing(home)
            return
        loop = tir.ForOp(self.loop.var_name.data, self.loop.min, self.loop.extent)
        part = PipelinePhase(start, end, is_end, loop, extent.value == 1, start - self.low)
        variable, normalized = analyzer.expr(loop.loop_var), Analyzer()
        atom = variable.atom
        assert atom is not None
        copies: list[Copy] = []
        made: dict[Copy, tuple[list[Operation], tir.BlockOp]] = {}
        with analyzer.constraint(x.TRUE):
            if not part.is_unit:
                analyzer.bind(variable, start, extent)
                normalized.bind(variable, self.low, extent)
            for statement in self.statements:
                iteration = (start if part.is_unit else variable) - statement.stage
                low, high = ge(iteration, self.low), lt(iteration, self.low + self.extent)
                if analyzer.can_prove(logical_not(low)) or analyzer.can_prove(logical_not(high)):
                    continue
                low = self.reached(low, iteration, variable)
                moved: dict[x.Atom, Expr] = {} if part.is_unit else {atom: variable + part.delta}
                low, high = substitute(low, moved), substitute(high, moved)
                copies.append(Copy(statement, substitute(iteration, moved), logical_and(low, high), low))
        for copy in copies:
            made[copy] = self.copy(part, copy)
        if not copies:
            self.nothing(home)
            return
        self.background.part(copies, normalized, extent)
        self.place(home, part, copies, made)

    def reached(self, low: Expr, iteration: Expr, variable: Expr) -> Expr:
        """Returns the simplified condition that a statement's first iteration has started.

        It is an equation where that is the last time.
        """
        if self.analyzer.can_prove(low):
            return x.TRUE
        if self.analyzer.can_prove_ge0(self.low - iteration):
            return eq(variable, variable - iteration + self.low)
        return low

    def copy(self, part: PipelinePhase, copy: Copy) -> tuple[list[Operation], tir.BlockOp]:
        """Clones a statement for a part; returns it with the ops that compute its condition."""
        statement, variable = copy.statement, part.loop.loop_var
        mapper: dict[SSAValue, SSAValue] = {self.loop.loop_var: variable, **self.versions.made}
        if self.loop.var is not None:
            mapper[self.loop.var] = variable
        block = statement.block.clone(mapper)
        inside = list(walk_ops(block))

        def iteration(builder: ExprBuilder) -> Value:
            return self.iteration(part, statement.stage, builder)

        if part.is_unit or statement.stage or part.delta != x.ZERO:
            replace_at_uses(inside, variable, iteration)
        self.versions.rewrite(inside, iteration)
        ops, condition = self.condition(part, statement.stage, copy.low)
        if condition is not None:
            set_operands(block, [], [], [], [condition])
        return ops, block

    def place(
        self,
        home: Block,
        part: PipelinePhase,
        copies: Sequence[Copy],
        made: Mapping[Copy, tuple[list[Operation], tir.BlockOp]],
    ) -> None:
        """Puts the statements of a part in order, those that are committed together as one."""
        groups: list[list[Copy]] = []
        for copy in copies:
            last = groups[-1][-1] if groups else None
            key = (copy.commits, copy.group, copy.predicate)
            if last is not None and copy.commits is not None and key == (last.commits, last.group, last.predicate):
                groups[-1].append(copy)
            else:
                groups.append([copy])
        target = Block() if part.is_unit else part.loop.body.block
        for group in groups:
            ops, block = made[group[0]]
            for copy in group:
                self.open_scopes(part, copy, copies, made[copy][1])
            if group[0].commits is not None:
                self.commit(group[0].commits, [made[copy][1] for copy in group])
            target.add_ops(ops)
            target.add_op(block)
        only = target.last_op
        if part.is_unit and len(groups) == 1 and isinstance(only, tir.BlockOp) and only.predicate is None:
            move_to_end(target.ops, home)
            return
        if part.is_unit:
            block = self.block(target)
        else:
            builder = ExprBuilder(self.loop.location)
            extent = builder.value(self.from_expr(part.end - part.start, builder))
            block = self.block(Block())
            block.body.block.add_ops([*builder.ops, part.loop])
            self.finish(part, extent)
        home.add_op(block)
        self.inferred.append(block)

    def finish(self, part: PipelinePhase, extent: SSAValue) -> None:
        """Gives the loop of a part its extent, kind and annotations."""
        loop, old = part.loop, self.loop
        loop.operands = [old.min, extent]
        loop.location = old.location
        loop.annotations = DictionaryAttr({k: v for k, v in old.annotations.data.items() if k not in ANNOTATIONS})
        if part.is_end and isinstance(extent.owner, tir.ConstOp):
            loop.kind = StringAttr("unrolled")
        else:
            loop.kind, loop.thread = old.kind, old.thread

    def nothing(self, home: Block) -> None:
        """Adds a part without iterations."""
        block = self.block(Block())
        builder = builder_at_end(block.body.block, self.loop.location)
        builder.insert(tir.EvaluateOp(builder.insert(tir.ConstOp.int(0)).result))
        home.add_op(block)
        self.inferred.append(block)

    # What runs in the background

    def open_scopes(self, part: PipelinePhase, copy: Copy, copies: Sequence[Copy], block: tir.BlockOp) -> None:
        """Makes a statement wait for what it reads, and run in the background where its stage does."""
        builder = ExprBuilder(self.loop.location)
        for stage, count, predicate in copy.waits:
            self.attribute(builder, "async_wait_queue_scope", Const(stage))
            if count.terms and not count.const and all(coefficient < 0 for _, coefficient in count.terms):
                value: Value = builder.binary(tir.SubOp, Const(0, self.type), self.from_expr(-count, builder))
            else:
                value = self.from_expr(count, builder)
            if predicate is not None:
                producer = next((c for c in copies if c.predicate == predicate), None)
                condition: SSAValue | None
                if producer is None:
                    condition = self.from_expr_bool(predicate, builder)
                else:
                    ops, condition = self.condition(part, producer.statement.stage, producer.low)
                    builder.ops += ops
                if condition is not None:
                    value = self.if_then_else(builder, condition, value)
            self.attribute(builder, "async_wait_inflight_count", value)
        if copy.statement.is_async:
            self.attribute(builder, "async_scope", Const(1))
        if builder.ops:
            _insert_behind_head(block, builder.ops)

    def attribute(self, builder: ExprBuilder, key: str, value: Value) -> None:
        """Appends `T.attr(0, key, value)`."""
        made = tir.AttrOp(builder.value(Const(0)), key, builder.value(value))
        made.location = self.loop.location
        builder.ops.append(made)

    def if_then_else(self, builder: ExprBuilder, condition: SSAValue, value: Value) -> SSAValue:
        """Builds `T.if_then_else(condition, value, 0)`."""
        sides: list[Region] = []
        for side in (value, Const(0, value.type)):
            inner = ExprBuilder(self.loop.location)
            result = inner.value(side)
            block = Block()
            block.add_ops([*inner.ops, tir.YieldOp(result)])
            sides.append(Region(block))
        return builder.emit(tir.IfThenElseOp(condition, sides[0], sides[1], value.type))

    def commit(self, stage: int, blocks: Sequence[tir.BlockOp]) -> None:
        """Joins statements in one block, which is committed to the queue of a stage."""
        first = blocks[0]
        for block in blocks:
            _drop_regions(block)
        for block in blocks if len(blocks) > 1 else ():
            ops = [op for op in block.body.block.ops if not isinstance(op, tir.AllocBufferOp)]
            if block is not first:
                own = [op for op in block.body.block.ops if isinstance(op, tir.AllocBufferOp)]
                _insert_behind_head(first, [_detached(op) for op in own])
            if block is blocks[-1]:
                move_to_end(ops, first.body.block)
                continue
            # What opens a scope in one statement must not act on the next.
            inner = Block()
            move_to_end(ops, inner)
            scope = tir.ScopeOp(Region(inner))
            scope.location = block.location
            first.body.block.add_op(scope)
        first.block_name, first.annotations = StringAttr(""), DictionaryAttr({})
        builder = ExprBuilder(self.loop.location)
        self.attribute(builder, "async_commit_queue_scope", Const(stage))
        _insert_behind_head(first, builder.ops)
        self.inferred.append(first)


def _detached(op: Operation) -> Operation:
    op.detach()
    return op


def _insert_behind_head(block: tir.BlockOp, ops: Sequence[Operation]) -> None:
    """Puts ops before the statements of a block."""
    body = block.body.block
    last = next((op for op in reversed(list(body.ops)) if isinstance(op, _HEAD)), None)
    if last is not None:
        body.insert_ops_after(ops, last)
    elif body.first_op is not None:
        body.insert_ops_before(ops, body.first_op)
    else:
        body.add_ops(ops)


def _drop_regions(block: tir.BlockOp) -> None:
    """Takes away what a block says that it reads and writes."""
    for kind in (tir.ReadsOp, tir.WritesOp):
        op = block.find(kind)
        if op is not None:
            regions = list(op.operands)
            erase_op(op)
            for region in regions:
                erase_if_dead(region)
