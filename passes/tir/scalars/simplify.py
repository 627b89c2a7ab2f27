"""The pass `simplify`: arithmetic in its canonical form, branches whose condition is known without it.

What is known at a place are the ranges of the loops, axes and threads around it and the conditions of the branches that lead
there, as in TVM's `tir.transform.Simplify`.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from ....dialects import tir
from ....dialects.arith import Analyzer
from ....dialects.arith.from_ssa import is_index_type
from ....dialects.tir.arithmetic import LogicalOp
from ....dialects.tir.operators import as_const
from ....support.edit import erase_op
from ..analyzed_walk import AnalyzedWalk, Visit
from ..rewriting import erase_dead, insert_nothing, prim_funcs, replace_by_side, set_operands
from .boolean_simplifier import BooleanSimplifier
from .expression_simplifier import ARITHMETIC, ExpressionSimplifier
from .known_contents import propagate_contents
from .noop_stores import stores_what_is_there
from .transitive import prove_transitively


class StatementSimplifier(AnalyzedWalk):
    """Visits a function's statements in order, each under what is known there."""

    def __init__(self, expressions: ExpressionSimplifier, booleans: BooleanSimplifier):
        super().__init__(expressions.analyzer)
        self.expressions = expressions
        self.booleans = booleans

    def run(self, func: tir.PrimFuncOp) -> None:
        """Simplifies one function."""
        super().run(func)
        erase_dead(func)

    def visit(self, op: Operation) -> Generator[Visit, None, Iterable[Operation] | None]:
        """One op, whose operands are simple already."""
        match op:
            case tir.IfOp() | tir.IfThenElseOp() if (condition := as_const(op.condition)) is not None:
                return replace_by_side(op, bool(condition.value))
            case tir.BlockOp() if op.predicate is not None:
                predicate = as_const(op.predicate)
                if predicate is not None and predicate.value:
                    set_operands(op, op.dom_mins, op.dom_extents, op.bindings, [])
            case tir.AssertOp() if (condition := as_const(op.condition)) is not None and condition.value:
                erase_op(op)
                return None
            case tir.StoreOp() if stores_what_is_there(op, self.analyzer):
                insert_nothing(op)
                erase_op(op)
                return None
            case _ if not op.regions:
                self.expressions.visit(op)
                if isinstance(op, LogicalOp):
                    self.booleans.visit(op)
            case _:
                pass
        yield from self.inside(op)
        return None


class RuleWalk(AnalyzedWalk):
    """Applies a file of rules in order, under what is known; brings their results into canonical form.

    Comparisons are brought into canonical form, too.
    """

    def __init__(self, file: str):
        super().__init__(Analyzer())
        self.expressions = ExpressionSimplifier(self.analyzer)
        from .scalar_rules import ScalarRules

        self.rules = ScalarRules(file, self.expressions)

    def run(self, func: tir.PrimFuncOp) -> None:
        """Rewrites one function."""
        super().run(func)
        erase_dead(func)

    def visit(self, op: Operation) -> Generator[Visit, None, Iterable[Operation] | None]:
        """One op, whose operands were rewritten; a branch whose condition is known is without it."""
        if isinstance(op, tir.IfOp) and (condition := as_const(op.condition)) is not None:
            return replace_by_side(op, bool(condition.value))
        for made in self.rules.settle(op) if op.name in self.rules.roots else ():
            if isinstance(made, ARITHMETIC) and is_index_type(made.result.type):
                self.expressions.simplify_root(made.result)
        if isinstance(op, tir.CompareOp):
            self.expressions.compare(op)
        yield from self.inside(op)
        return None


@dataclass(frozen=True)
class Simplify(ModulePass):
    """Simplifies expressions and drops branches that are never, or always, taken.

    `transitively_prove_inequalities` follows chains of known inequalities, `convert_boolean_to_and_of_ors` brings conditions
    into conjunctive normal form, `apply_constraints_to_boolean_branches` simplifies each part of a condition under the others,
    `propagate_knowns_to_prove_conditional` takes into account what was stored into buffers before.
    """

    name = "simplify"
    transitively_prove_inequalities: bool = False
    propagate_knowns_to_prove_conditional: bool = False
    convert_boolean_to_and_of_ors: bool = False
    apply_constraints_to_boolean_branches: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Simplifies every prim_func of the module."""
        for func in prim_funcs(op):
            simplify_function(func, self)


def simplify_function(func: tir.PrimFuncOp, options: Simplify | None = None) -> None:
    """Simplifies one function."""
    options = options or Simplify()
    if options.propagate_knowns_to_prove_conditional:
        propagate_contents(func)
    analyzer = Analyzer()
    if options.transitively_prove_inequalities:
        expressions = ExpressionSimplifier(analyzer, prove_transitively)
    else:
        expressions = ExpressionSimplifier(analyzer)
    booleans = BooleanSimplifier(
        expressions, options.convert_boolean_to_and_of_ors, options.apply_constraints_to_boolean_branches
    )
    StatementSimplifier(expressions, booleans).run(func)
