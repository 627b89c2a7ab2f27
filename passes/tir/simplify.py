"""The pass `simplify`: arithmetic in its canonical form, branches whose condition is known without it.

What is known at a place are the ranges of the loops, axes and threads around it and the conditions of the branches that lead
there, as in TVM's `tir.transform.Simplify`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from ...dialects import tir
from ...dialects.tir.analysis import Analyzer
from ...dialects.tir.analysis import expr as x
from ...dialects.tir.expr import LogicalOp
from ...dialects.tir.operators import as_const
from .boolean_simplifier import BooleanSimplifier
from .expression_simplifier import ExpressionSimplifier
from .rewriting import (
    erase_dead,
    insert_nothing,
    prim_funcs,
    replace_by_side,
    set_operands,
)
from .transitive import prove_transitively

Visit: TypeAlias = "Generator[Visit, None, None]"
"""The visit of a block: gives the visits of the blocks inside, each to be finished before it goes on."""


def run_visits(first: Visit) -> None:
    """Runs a visit and those that it gives, without recursion."""
    stack = [first]
    while stack:
        inner = next(stack[-1], None)
        if inner is None:
            stack.pop()
        else:
            stack.append(inner)


class StatementSimplifier:
    """Visits a function's statements in order, each under what is known there."""

    def __init__(self, expressions: ExpressionSimplifier, booleans: BooleanSimplifier | None = None):
        self.analyzer = expressions.analyzer
        self.expressions = expressions
        self.booleans = booleans

    def run(self, func: tir.PrimFuncOp) -> None:
        """Simplifies one function."""
        run_visits(self.block(func.body.block, lambda: None))
        erase_dead(func)

    def block(self, block: Block, learn: Callable[[], None]) -> Visit:
        """The ops of a block in turn. What is learnt there, by `learn` first, is forgotten at its end."""
        with self.analyzer.constraint(x.TRUE):
            learn()
            pending = deque(block.ops)
            while pending:
                op = pending.popleft()
                match op:
                    case tir.IfOp() | tir.IfThenElseOp() if (condition := as_const(op.condition)) is not None:
                        pending.extendleft(reversed(replace_by_side(op, bool(condition.value))))
                    case tir.IfOp() | tir.IfThenElseOp():
                        yield from self.sides(op)
                    case _:
                        yield from self.statement(op)

    def sides(self, op: tir.IfOp | tir.IfThenElseOp) -> Visit:
        """Both sides of a branch, each where its condition holds."""
        condition = op.condition
        if condition.type != tir.types.I1:
            for region in op.regions:
                yield from self.regions([region])
            return
        for region, holds in ((op.then_region, True), (op.else_region, False)):
            known = self.analyzer.expr(condition) if holds else x.logical_not(self.analyzer.expr(condition))
            for block in region.blocks:
                yield self.block(block, lambda known=known: _ignore(self.analyzer.constraint(known)))

    def regions(self, regions: list[Region] | tuple[Region, ...]) -> Visit:
        """Blocks where nothing more is known than here."""
        for region in regions:
            for block in region.blocks:
                yield self.block(block, lambda: None)

    def statement(self, op: Operation) -> Visit:
        """One op, whose operands are simple already."""
        match op:
            case tir.ForOp():
                yield self.block(op.body.block, lambda: self.bind_loop(op))
            case tir.BlockOp():
                predicate = None if op.predicate is None else as_const(op.predicate)
                if predicate is not None and predicate.value:
                    set_operands(op, op.dom_mins, op.dom_extents, op.bindings, [])
                yield self.block(op.body.block, lambda: self.bind_axes(op))
            case tir.StoreOp():
                self.store(op)
            case tir.LaunchThreadOp():
                for variable in (op.result, op.env):
                    if variable is not None:
                        self.analyzer.bind(variable, 0, op.extent)
            case tir.AssertOp():
                self.assertion(op)
            case tir.VarOp():
                if op.size_var is not None and isinstance(op.result.type, type(tir.types.I32)):
                    self.analyzer.mark_global_non_neg_value(op.result)
            case _:
                yield from self.regions(op.regions)
                if not op.regions:
                    self.expressions.visit(op)
                    if self.booleans is not None and isinstance(op, LogicalOp):
                        self.booleans.visit(op)

    def bind_loop(self, op: tir.ForOp) -> None:
        """The range of a loop's variable."""
        for variable in (op.loop_var, op.var):
            if variable is not None:
                self.analyzer.bind(variable, op.min, op.extent)

    def bind_axes(self, op: tir.BlockOp) -> None:
        """The domains of a block's axes, and its predicate."""
        if op.predicate is not None:
            self.analyzer.constraint(op.predicate)
        for variable, low, extent in zip(op.iter_vars, op.dom_mins, op.dom_extents, strict=True):
            self.analyzer.bind(variable, low, extent)

    def assertion(self, op: tir.AssertOp) -> None:
        """What is asserted holds from there on; an assertion of what is known is dropped."""
        condition = as_const(op.condition)
        if condition is not None and condition.value:
            op.detach()
            op.erase()
        else:
            self.analyzer.constraint(op.condition)

    def store(self, op: tir.StoreOp) -> None:
        """A store of what was just loaded from the same place does nothing."""
        load = op.value.owner
        if not isinstance(load, tir.LoadOp) or load.buffer is not op.buffer or load.parent is not op.parent:
            return
        if op.predicate is not None or load.predicate is not None or not _only_reads_between(load, op):
            return
        if all(self._equal(a, b) for a, b in zip(load.indices, op.indices, strict=True)):
            insert_nothing(op)
            op.detach()
            op.erase()

    def _equal(self, a: SSAValue, b: SSAValue) -> bool:
        return a is b or (
            a.type == b.type and isinstance(a.type, type(tir.types.I32)) and self.analyzer.can_prove_equal(a, b)
        )


def _ignore(_: object) -> None:
    return None


def _only_reads_between(first: Operation, last: Operation) -> bool:
    """Whether from `first` to `last`, a few ops, nothing is written."""
    op = first.next_op
    for _ in range(64):
        if op is last:
            return True
        if op is None or isinstance(op, tir.StoreOp | tir.EvaluateOp) or op.regions:
            return False
        if isinstance(op, tir.CallOp) and not op.result:
            return False
        op = op.next_op
    return False


@dataclass(frozen=True)
class Simplify(ModulePass):
    """Simplifies expressions and drops branches that are never, or always, taken.

    `transitively_prove_inequalities` follows chains of known inequalities, `convert_boolean_to_and_of_ors` brings conditions
    into conjunctive normal form, `apply_constraints_to_boolean_branches` simplifies each part of a condition under the others.
    """

    name = "simplify"
    transitively_prove_inequalities: bool = False
    convert_boolean_to_and_of_ors: bool = False
    apply_constraints_to_boolean_branches: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Simplifies every prim_func of the module."""
        for func in prim_funcs(op):
            self.simplify(func)

    def simplify(self, func: tir.PrimFuncOp) -> None:
        """Simplifies one function."""
        analyzer = Analyzer()
        if self.transitively_prove_inequalities:
            expressions = ExpressionSimplifier(analyzer, prove_transitively)
        else:
            expressions = ExpressionSimplifier(analyzer)
        booleans = BooleanSimplifier(
            expressions, self.convert_boolean_to_and_of_ors, self.apply_constraints_to_boolean_branches
        )
        StatementSimplifier(expressions, booleans).run(func)
