"""Walks a function's statements with an analyzer that knows what holds at each place.

Loops, axes and threads bind the ranges of their variables, branches and assertions add their conditions, as in TVM's
`IRMutatorWithAnalyzer`. What a region adds is forgotten at its end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from typing import TypeAlias

from xdsl.ir import Block, Operation, Region

from ...dialects import tir
from ...dialects.arith import Analyzer, Expr
from ...dialects.arith import expr as x
from ...dialects.arith.expr import logical_not
from ...dialects.arith.from_ssa import is_index_type
from ...dialects.tir.types import I1
from ...support.walk import enclosing

Visit: TypeAlias = "Generator[Visit, None, None]"
"""The visit of a block, a generator: yields the visits of the blocks inside, each to be finished before it resumes."""

Learn: TypeAlias = Callable[[], object]


def run_visits(first: Visit) -> None:
    """Runs a visit and the visits that it yields, with a stack instead of recursion."""
    stack = [first]
    while stack:
        inner = next(stack[-1], None)
        if inner is None:
            stack.pop()
        else:
            stack.append(inner)


def analyzer_at(op: Operation) -> Analyzer:
    """Returns an analyzer that knows the ranges of the loops around an op."""
    analyzer = Analyzer()
    for loop in reversed([outer for outer in enclosing(op) if isinstance(outer, tir.ForOp)]):
        if is_index_type(loop.loop_var.type):
            analyzer.bind(loop.loop_var, loop.min, loop.extent)
    return analyzer


class AnalyzedWalk:
    """Visits each op in program order.

    Derived classes override `visit`, and `leave`, which is called at the end of each block.
    """

    def __init__(self, analyzer: Analyzer):
        self.analyzer = analyzer

    def run(self, func: tir.PrimFuncOp) -> None:
        """Walks through a function."""
        run_visits(self.block(func.body.block))

    def block(self, block: Block, learn: Learn | None = None) -> Visit:
        """Visits the ops of a block in order, under what `learn` adds to the analyzer."""
        with self.analyzer.constraint(x.TRUE):
            if learn is not None:
                learn()
            pending = deque(block.ops)
            while pending:
                op = pending.popleft()
                instead = yield from self.visit(op)
                pending.extendleft(reversed(list(instead or ())))
            self.leave(block)

    def visit(self, op: Operation) -> Generator[Visit, None, Iterable[Operation] | None]:
        """Visits one op, whose operands were visited; returns the ops that replaced it, to be visited next."""
        yield from self.inside(op)
        return None

    def leave(self, block: Block) -> None:
        """Visits the end of a block, under what is known there."""

    def inside(self, op: Operation) -> Visit:
        """Visits the regions of an op under what holds there; an op without regions adds what holds after it."""
        match op:
            case tir.ForOp():
                yield self.block(op.body.block, lambda: self.bind_loop(op))
            case tir.BlockOp():
                yield self.block(op.body.block, lambda: self.bind_axes(op))
            case tir.IfOp() | tir.IfThenElseOp() if op.condition.type == I1:
                condition = self.analyzer.expr(op.condition)
                yield from self.regions([op.then_region], condition)
                yield from self.regions([op.else_region], logical_not(condition))
            case tir.LaunchThreadOp():
                for variable in (op.result, op.env):
                    if variable is not None:
                        self.analyzer.bind(variable, 0, op.extent)
            case tir.AssertOp():
                self.analyzer.constraint(op.condition)
            case tir.VarOp():
                if op.size_var is not None and is_index_type(op.result.type):
                    self.analyzer.mark_global_non_neg_value(op.result)
            case _:
                yield from self.regions(op.regions)

    def regions(self, regions: Iterable[Region], condition: Expr = x.TRUE) -> Visit:
        """Visits the blocks of regions, where the condition holds."""
        for region in regions:
            for block in region.blocks:
                yield self.block(block, lambda: self.analyzer.constraint(condition))

    def bind_loop(self, op: tir.ForOp) -> None:
        """Adds the range of a loop's variable."""
        for variable in (op.loop_var, op.var):
            if variable is not None and is_index_type(variable.type):
                self.analyzer.bind(variable, op.min, op.extent)

    def bind_axes(self, op: tir.BlockOp) -> None:
        """Adds the domains of a block's axes, and its predicate."""
        if op.predicate is not None:
            self.analyzer.constraint(op.predicate)
        for variable, low, extent in zip(op.iter_vars, op.dom_mins, op.dom_extents, strict=True):
            if is_index_type(variable.type):
                self.analyzer.bind(variable, low, extent)
