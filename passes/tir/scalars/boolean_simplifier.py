"""Conditions of several parts: each part under the others, and conjunctive normal form.

Not rules: whether a part is superfluous depends on all others, which a pattern of fixed size does not see.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from xdsl.builder import Builder
from xdsl.ir import SSAValue

from ....dialects import tir
from ....dialects.arith import Expr
from ....dialects.arith.expr import logical_not, logical_or
from ....dialects.tir.arithmetic import LogicalOp
from ....dialects.tir.types import I1
from ....support.edit import builder_before
from .expression_simplifier import ExpressionSimplifier

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
        reduced = self.reduce(clauses)
        if self.normal_form or reduced != clauses:
            new = _build(reduced, builder_before(op))
            op.result.replace_all_uses_with(new)

    def reduce(self, clauses: list[list[SSAValue]]) -> list[list[SSAValue]]:
        """An `and` of `or`s without the clauses, and the parts of clauses, that the rest makes superfluous."""
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
        """The parts that matter; None for one that is true, nothing for one that is false."""
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
    """The operands of a chain of one connective; None for too many."""
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


def _build(clauses: list[list[SSAValue]], builder: Builder) -> SSAValue:
    """The ops of an `and` of `or`s: true without clauses, a clause without parts is false."""
    total: SSAValue | None = None
    for clause in clauses:
        either: SSAValue | None = None
        for part in clause:
            either = part if either is None else builder.insert(tir.OrOp(either, part)).result
        if either is None:
            return builder.insert(tir.ConstOp.int(0, I1)).result
        total = either if total is None else builder.insert(tir.AndOp(total, either)).result
    return builder.insert(tir.ConstOp.int(1, I1)).result if total is None else total
