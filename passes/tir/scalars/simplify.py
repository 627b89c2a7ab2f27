"""The pass `simplify`: arithmetic in its canonical form, branches whose condition is known without it.

    for i in range(8):
        if i < 10: B[i + 0] = A[i * 2 - i]     →     for i in range(8): B[i] = A[i]

What is known at a place are the ranges of the loops, axes and threads around it and the conditions of the branches that lead
there, as in TVM's `tir.transform.Simplify`. Scalars are rewritten by the rules of `simplify.mir`; conditions of several parts
(`BooleanSimplifier`) are not: whether a part is superfluous depends on all others, which a pattern of fixed size does not see.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from xdsl.builder import Builder
from xdsl.ir import Operation, SSAValue

from ....dialects import tir
from ....dialects.arith import Analyzer, Expr, Kind
from ....dialects.arith.expr import conjuncts, logical_not, logical_or
from ....dialects.arith.from_ssa import is_index_type
from ....dialects.tir.arithmetic import LogicalOp
from ....dialects.tir.operators import as_const
from ....dialects.tir.types import I1
from ....support.edit import builder_before, erase_op
from ..analyzed_walk import AnalyzedWalk, Visit
from ..rewriting import PrimFuncPass, erase_dead, insert_nothing, is_same_tree, replace_by_side, set_operands
from .expression_simplifier import ARITHMETIC, ExpressionSimplifier
from .store_dataflow import only_reads_between, propagate_contents, stores_what_is_there

# Conditions of several parts

MAX_PARTS = 12
"""Conditions of more parts stay as they are."""


class BooleanSimplifier:
    """Rewrites the outermost `and` or `or` of a condition, in the two ways that TVM's extensions name."""

    def __init__(self, expressions: ExpressionSimplifier, normal_form: bool, constraints: bool):
        self.analyzer = expressions.analyzer
        self.prove = expressions.prove
        self.normal_form = normal_form
        self.constraints = constraints

    def visit(self, op: LogicalOp) -> None:
        """Replaces the result of the op, where one of the ways applies."""
        if op.result.type != I1 or not (self.normal_form or self.constraints):
            return
        if all(isinstance(use.operation, tir.AndOp | tir.OrOp) for use in op.result.uses):
            return  # A part of a larger condition, which is visited later.
        clauses = _clauses(op.result, self.normal_form)
        if clauses is None:
            return
        reduced = self.reduce(_distinct(clauses) if self.normal_form else clauses)
        if self.normal_form or reduced != clauses:
            new = _build(reduced, builder_before(op))
            op.result.replace_all_uses_with(new)

    def reduce(self, clauses: list[list[SSAValue]]) -> list[list[SSAValue]]:
        """Drops the clauses of an `and` of `or`s, and the parts of clauses, that the rest implies."""
        kept = [list(clause) for clause in clauses]
        for index in range(len(kept)):
            others = [c for k, c in enumerate(kept) if k != index and c]
            with ExitStack() as scopes:
                if self.constraints:
                    for other in others:
                        scopes.enter_context(self.analyzer.constraint(self._any(other)))
                clause = self._reduce_clause(kept[index])
            if clause is None:
                kept[index] = []
            elif not clause:
                return [[]]
            else:
                kept[index] = clause
        return [clause for clause in kept if clause]

    def _reduce_clause(self, clause: list[SSAValue]) -> list[SSAValue] | None:
        """Returns the parts that matter; None for a clause that is true, nothing for one that is false."""
        if self.prove(self.analyzer, self._any(clause)):
            return None
        parts = list(clause)
        for part in clause:
            others = [p for p in parts if p is not part]
            with ExitStack() as scopes:
                for other in others:
                    scopes.enter_context(self.analyzer.constraint(logical_not(self.analyzer.expr(other))))
                if self.prove(self.analyzer, logical_not(self.analyzer.expr(part))):
                    parts = others
                elif others and self.prove(self.analyzer, self.analyzer.expr(part)):
                    return None
        return parts

    def _any(self, parts: Sequence[SSAValue]) -> Expr:
        return logical_or(*(self.analyzer.expr(part) for part in parts))


def _parts(value: SSAValue, kind: type[tir.AndOp] | type[tir.OrOp]) -> list[SSAValue] | None:
    """Returns the operands of a chain of one connective; None for too many."""
    found: list[SSAValue] = []
    pending = [value]
    while pending:
        current = pending.pop()
        op = current.owner
        if isinstance(op, kind):
            pending += (op.rhs, op.lhs)
        else:
            found.append(current)
        if len(found) + len(pending) > MAX_PARTS:
            return None
    return found


def _clauses(value: SSAValue, multiply: bool) -> list[list[SSAValue]] | None:
    """Returns a condition as an `and` of `or`s of its parts; None for too many.

    An `and` within an `or` is a part unless `multiply`.
    """
    conjuncts = _parts(value, tir.AndOp)
    if conjuncts is None:
        return None
    clauses: list[list[SSAValue]] = []
    for conjunct in conjuncts:
        alternatives = _parts(conjunct, tir.OrOp)
        if alternatives is None:
            return None
        product: list[list[SSAValue]] = [[]]
        for alternative in alternatives:
            is_part = not multiply or not isinstance(alternative.owner, tir.AndOp)
            inner = [[alternative]] if is_part else _clauses(alternative, multiply)
            if inner is None or len(product) * len(inner) > MAX_PARTS:
                return None
            product = [[*left, *right] for left in product for right in inner]
        clauses += product
    return clauses if len(clauses) <= MAX_PARTS else None


def _distinct(clauses: list[list[SSAValue]]) -> list[list[SSAValue]]:
    """Returns the clauses without those whose parts another one has, in any order."""
    kept: list[list[SSAValue]] = []
    for clause in clauses:
        if not any(all(any(_is_same(a, b) for b in clause) for a in other) for other in kept):
            kept.append(clause)
    return kept


def _is_same(a: SSAValue, b: SSAValue) -> bool:
    """Returns whether two parts of a condition, without stores between them, have one value."""
    if a is b:
        return True
    one, other = a.owner, b.owner
    if not isinstance(one, Operation) or not isinstance(other, Operation) or not is_same_tree(a, b):
        return False
    return only_reads_between(one, other) or only_reads_between(other, one)


def _build(clauses: list[list[SSAValue]], builder: Builder) -> SSAValue:
    """Builds an `and` of `or`s: true without clauses; a clause without parts is false."""
    total: SSAValue | None = None
    for clause in clauses:
        either: SSAValue | None = None
        for part in clause:
            either = part if either is None else builder.insert(tir.OrOp(either, part)).result
        if either is None:
            return builder.insert(tir.ConstOp.int(0, I1)).result
        total = either if total is None else builder.insert(tir.AndOp(total, either)).result
    return builder.insert(tir.ConstOp.int(1, I1)).result if total is None else total


# Chains of inequalities: from a < b and b < c, a < c

MAX_STEPS = 4
"""How many inequalities a proof may add up."""

MAX_TRIES = 200
"""How many sums a proof may try."""


def prove_transitively(analyzer: Analyzer, condition: Expr) -> bool:
    """Returns whether the condition is proven, by known inequalities that are added up where needed."""
    if analyzer.can_prove(condition):
        return True
    return all(_prove(analyzer, part) for part in conjuncts(condition))


def _prove(analyzer: Analyzer, condition: Expr) -> bool:
    atom = condition.atom
    if atom is not None and atom.kind is Kind.GE:
        return _at_least_zero(analyzer, atom.operands[0])
    if atom is not None and atom.kind is Kind.EQ:
        return _at_least_zero(analyzer, atom.operands[0]) and _at_least_zero(analyzer, -atom.operands[0])
    negated = logical_not(condition).atom
    if negated is not None and negated.kind is Kind.EQ:  # a != b: one of them is above the other
        e = negated.operands[0]
        return _at_least_zero(analyzer, e - 1) or _at_least_zero(analyzer, -e - 1)
    if negated is not None and negated.kind is Kind.GE:
        return _at_least_zero(analyzer, -negated.operands[0] - 1)
    return False


def _at_least_zero(analyzer: Analyzer, e: Expr) -> bool:
    """Returns whether e is a sum of known inequalities and of something that is never negative."""
    seen = {e}
    level = [e]
    for _ in range(MAX_STEPS):
        following: list[Expr] = []
        for current in level:
            if analyzer.const_int_bound(current).min_value >= 0:
                return True
            for atom, coefficient in current.terms:
                for fact in analyzer.known(atom).facts:
                    factor = fact.coefficient(atom)
                    # Only a fact that takes the term away brings it closer.
                    if factor * coefficient <= 0 or coefficient % factor:
                        continue
                    rest = current - fact.scaled(coefficient // factor)
                    if rest not in seen and len(seen) < MAX_TRIES:
                        seen.add(rest)
                        following.append(rest)
        level = following
    return any(analyzer.const_int_bound(current).min_value >= 0 for current in level)


class StatementSimplifier(AnalyzedWalk):
    """Visits a function's statements in order, each under what is known there."""

    def __init__(self, expressions: ExpressionSimplifier, booleans: BooleanSimplifier, assumptions: bool = False):
        super().__init__(expressions.analyzer)
        self.assumptions = assumptions
        self.expressions = expressions
        self.booleans = booleans

    def run(self, func: tir.PrimFuncOp) -> None:
        """Simplifies one function."""
        super().run(func)
        erase_dead(func)

    def visit(self, op: Operation) -> Generator[Visit, None, Iterable[Operation] | None]:
        """Visits one op, whose operands are simplified."""
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
            case tir.CallOp() if self.assumptions and op.intrinsic.data == "assume":
                self.analyzer.constraint(op.arguments[0])
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
        """Visits one op, whose operands were rewritten; replaces a branch whose condition is known by a side."""
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
class Simplify(PrimFuncPass):
    """Simplifies expressions and drops branches that are never, or always, taken.

    `transitively_prove_inequalities` follows chains of known inequalities, `convert_boolean_to_and_of_ors` brings conditions
    into conjunctive normal form, `apply_constraints_to_boolean_branches` simplifies each part of a condition under the others,
    `propagate_knowns_to_prove_conditional` takes into account what was stored into buffers before, in conditions, and
    `propagate_knowns_to_simplify_expressions` in all expressions; the first takes `T.assume` as true, too.
    """

    name = "simplify"
    transitively_prove_inequalities: bool = False
    propagate_knowns_to_prove_conditional: bool = False
    propagate_knowns_to_simplify_expressions: bool = False
    convert_boolean_to_and_of_ors: bool = False
    apply_constraints_to_boolean_branches: bool = False

    def apply_to(self, func: tir.PrimFuncOp) -> None:
        """Simplifies one prim_func."""
        simplify_function(func, self)


def simplify_function(func: tir.PrimFuncOp, options: Simplify | None = None) -> None:
    """Simplifies one function."""
    options = options or Simplify()
    if options.propagate_knowns_to_prove_conditional or options.propagate_knowns_to_simplify_expressions:
        propagate_contents(func, everywhere=options.propagate_knowns_to_simplify_expressions)
    analyzer = Analyzer()
    if options.transitively_prove_inequalities:
        expressions = ExpressionSimplifier(analyzer, prove_transitively)
    else:
        expressions = ExpressionSimplifier(analyzer)
    booleans = BooleanSimplifier(
        expressions, options.convert_boolean_to_and_of_ors, options.apply_constraints_to_boolean_branches
    )
    StatementSimplifier(expressions, booleans, options.propagate_knowns_to_prove_conditional).run(func)
