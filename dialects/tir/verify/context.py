"""Defines the context that the rules share: knowledge at the current op, and where findings go."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from xdsl.ir import BlockArgument, Operation, SSAValue

from ....support.diagnostics import Diagnostic, Severity, location_of
from ...arith import Analyzer, Atom, Expr
from ...arith import expr as x
from ...arith.bounds import INF
from ..stmt import ForOp


@dataclass
class Context:
    """The state of one walk."""

    diagnostics: list[Diagnostic] = field(default_factory=list[Diagnostic])
    analyzer: Analyzer = field(default_factory=Analyzer)
    # Loop variables with constant bounds: their loops run through every value.
    exact: set[Atom] = field(default_factory=set[Atom])
    # How many conditions, or loops that may not run, are around.
    guards: int = 0

    def report(
        self,
        where: Operation | SSAValue,
        message: str,
        *notes: str | tuple[str, Operation | SSAValue],
        severity: Severity = "error",
    ) -> None:
        diagnostic = Diagnostic(message, location_of(where), severity=severity)
        for note in notes:
            if isinstance(note, str):
                diagnostic = diagnostic.with_note(note)
            else:
                diagnostic = diagnostic.with_note(note[0], location_of(note[1]))
        self.diagnostics.append(diagnostic)

    def count(self, e: Expr) -> int:
        """Returns the product of the variables' numbers of values: an upper bound of those of `e`."""
        total = 1
        for atom in x.free_vars(e):
            bound = self.analyzer.const_int_bound(Expr(((atom, 1),), 0))
            if bound.min_value <= -INF or bound.max_value >= INF:
                return INF
            total *= max(0, bound.max_value - bound.min_value + 1)
        return total

    def is_attained(self, e: Expr) -> bool:
        """Returns True if the ends of the constant bound of `e` are values that it takes.

        That holds if it is affine in loops over constant ranges, and no condition guards it.
        """
        return self.guards == 0 and all(atom in self.exact for atom, _ in e.terms)

    def loops_of(self, e: Expr) -> list[BlockArgument]:
        """Returns the loop variables in an expression."""
        return [
            a.payload
            for a in x.free_vars(e)
            if isinstance(a.payload, BlockArgument) and isinstance(a.payload.block.parent_op(), ForOp)
        ]

    def loop_notes(self, loops: list[BlockArgument]) -> Iterator[tuple[str, Operation]]:
        for var in loops:
            op = var.block.parent_op()
            if isinstance(op, ForOp):
                bound = self.analyzer.const_int_bound(var)
                yield f"loop '{op.var_name.data}' runs from {bound.min_value} to {bound.max_value}", op
