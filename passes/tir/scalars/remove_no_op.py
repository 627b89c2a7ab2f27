"""The pass `remove-no-op`: statements that do nothing are taken away, and what held nothing but them."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass

from ....dialects import tir
from ....dialects.arith import Analyzer
from ....dialects.arith import expr as x
from ....dialects.arith.expr import le, logical_not
from ....dialects.tir.open_reductions import starts_empty_reduction
from ....dialects.tir.types import I1
from ....support.edit import builder_before, erase_op, move_to_end
from ....support.effects import is_side_effect_free
from ...option_range import require_range
from ..analyzed_walk import AnalyzedWalk, Visit
from ..rewriting import erase_dead, is_dead, is_statement, nothing_at_end, prim_funcs, replace_by_side
from .expression_simplifier import ExpressionSimplifier
from .store_dataflow import remove_overwritten, stores_what_is_there

_OPENING = (tir.AttrOp, tir.LaunchThreadOp, tir.RealizeOp)
"""Ops that act on the statements after them."""

_MEMORY = (tir.AllocateOp, tir.AllocateConstOp, tir.DeclBufferOp, tir.AllocBufferOp)


class NoOpRemover(AnalyzedWalk):
    """Visits statements in order; what held only what does nothing does nothing itself."""

    def __init__(self, analyzer: Analyzer):
        super().__init__(analyzer)
        self.expressions = ExpressionSimplifier(analyzer)

    def visit(self, op: Operation) -> Generator[Visit, None, Iterable[Operation] | None]:
        """Visits one op: its regions first."""
        if isinstance(op, tir.IfOp) and (decided := self.decide(op)) is not None:
            return replace_by_side(op, decided, keep_statement=False)
        if isinstance(op, tir.ForOp) and self.analyzer.can_prove(le(self.analyzer.expr(op.extent), x.ZERO)):
            if not starts_empty_reduction(op):
                erase_op(op)
            return None
        yield from self.inside(op)
        if isinstance(op, tir.IfOp):
            _tidy_branch(op, self.expressions)
        elif self.does_nothing(op):
            erase_op(op)
        return None

    def decide(self, op: tir.IfOp) -> bool | None:
        """Returns whether the branch is always (True) or never (False) taken; None where that is not known."""
        if op.condition.type != I1:
            return None
        condition = self.analyzer.expr(op.condition)
        if self.analyzer.can_prove(condition):
            return True
        return False if self.analyzer.can_prove(logical_not(condition)) else None

    def does_nothing(self, op: Operation) -> bool:
        """Returns whether a statement has no effect; its regions were visited."""
        match op:
            case tir.EvaluateOp():
                call = op.value.owner
                return not isinstance(call, tir.CallOp) or is_side_effect_free(call)
            case tir.StoreOp():
                return stores_what_is_there(op, self.analyzer)
            case tir.ForOp():
                return op.var is None and _is_empty(op.body.block)
            case tir.ScopeOp():
                return _is_empty(op.body.block)
            case tir.AssertOp():
                return self.analyzer.can_prove(op.condition)
            case _:
                return False

    def leave(self, block: Block) -> None:
        """Erases unused memory, and ops that act on the statements after them where there are none."""
        nothing_follows = True
        for op in reversed(list(block.ops)):
            unused = not any(result.uses for result in op.results)
            if unused and (
                isinstance(op, _MEMORY)
                or (op.results and is_dead(op))
                or (nothing_follows and isinstance(op, _OPENING))
            ):
                erase_op(op)
            elif is_statement(op):
                nothing_follows = False
        if isinstance(block.parent_op(), tir.BlockOp | tir.PrimFuncOp | tir.InitOp | tir.WhileOp) and _is_empty(block):
            nothing_at_end(block)


def _is_empty(block: Block) -> bool:
    return not any(is_statement(op) for op in block.ops)


def _tidy_branch(op: tir.IfOp, expressions: ExpressionSimplifier) -> None:
    """Erases a branch without statements; negates the condition of one with only an `else`."""
    has_else = bool(op.else_region.blocks) and not _is_empty(op.else_region.block)
    if not _is_empty(op.then_region.block):
        if not has_else and op.else_region.blocks:
            block = op.else_region.block
            op.else_region.erase_block(block)
        return
    if not has_else:
        erase_op(op)
        return
    for inner in reversed(list(op.then_region.block.ops)):
        erase_op(inner)
    move_to_end(op.else_region.block.ops, op.then_region.block)
    op.else_region.erase_block(op.else_region.block)
    contrary = builder_before(op).insert(tir.NotOp(op.condition))
    op.operands[0] = contrary.result
    expressions.rules.settle(contrary)


def remove_no_ops(func: tir.PrimFuncOp) -> None:
    """Removes what does nothing from one function."""
    NoOpRemover(Analyzer()).run(func)
    erase_dead(func)


@dataclass(frozen=True)
class RemoveNoOp(ModulePass):
    """Removes statements without effect, loops without iterations, branches never taken.

    With `use_dataflow_analysis`, also stores to elements that are written again before anything reads them, in at most
    `max_simplification_steps` rounds (0: until nothing changes).
    """

    name = "remove-no-op"
    use_dataflow_analysis: bool = False
    max_simplification_steps: int = 0

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Cleans every prim_func of the module. Raises MirError for fewer rounds than none."""
        require_range(op, "max-simplification-steps", self.max_simplification_steps, 0)
        for func in prim_funcs(op):
            if self.use_dataflow_analysis:
                rounds = 0
                while remove_overwritten(func) and (rounds := rounds + 1) != self.max_simplification_steps:
                    pass
            remove_no_ops(func)
