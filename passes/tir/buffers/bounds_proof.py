"""Proves that indices are inside buffers, from the loops, axes and conditions around them, and sizes."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager

from xdsl.ir import SSAValue

from ....dialects import tir
from ....dialects.arith import Analyzer, Expr, Kind, Scope
from ....dialects.arith.expr import ZERO, as_expr, eq, ge, gt, le, logical_not, lt, ne

ONE = as_expr(1)
DIVISIONS = (Kind.FLOORDIV, Kind.FLOORMOD)


class BoundsProof:
    """Proves facts about indices from what is known at a place of a function.

    `expanding` are pairs of sizes, the first of which is 1 or equal to the second (it broadcasts).
    """

    def __init__(self, analyzer: Analyzer, expanding: Sequence[tuple[Expr, Expr]]):
        self.analyzer = analyzer
        self.expanding = expanding
        self.extents: list[Expr] = []
        """How often the loops and block axes around an op run where they depend on sizes: at least once."""
        self.axes: list[tuple[SSAValue, SSAValue]] = []
        """The axes of the blocks around an op, and what each is bound to, outer ones first."""

    @contextmanager
    def bind(self, variable: SSAValue, low: SSAValue, extent: SSAValue) -> Generator[None]:
        """Inside, a loop's or axis' variable has its range, which is not empty."""
        size = self.analyzer.expr(extent)
        known = len(self.extents)
        if size.terms:
            self.extents.append(size)
        with self.analyzer.bind(variable, low, extent):
            yield
        del self.extents[known:]

    @contextmanager
    def inside_block(self, op: tir.BlockOp) -> Generator[None]:
        """Inside, the axes of a block have their ranges, and what it supposes holds."""
        known = len(self.axes)
        with ExitStack() as scopes:
            for axis, low, extent in zip(op.iter_vars, op.dom_mins, op.dom_extents, strict=True):
                scopes.enter_context(self.bind(axis, low, extent))
            if op.predicate is not None:
                scopes.enter_context(self.analyzer.constraint(op.predicate))
            self.axes += zip(op.iter_vars, op.bindings, strict=True)
            yield
        del self.axes[known:]

    def is_inside(self, at: Expr, size: Expr) -> bool:
        """Returns whether 0 <= at < size is proven."""
        return self.is_within(at, at, size)

    def is_within(self, low: Expr, high: Expr, size: Expr) -> bool:
        """Returns whether 0 <= low and high < size are proven.

        The proof may need the bindings of axes: of an axis of extent 16 bound to 8 + i the loops may reach only a part.
        """
        if self._is_within(low, high, size):
            return True
        with ExitStack() as scopes:
            for axis, value in self.axes:
                scopes.enter_context(self.analyzer.bind(axis, value))
            return bool(self.axes) and self._is_within(low, high, size)

    def _is_within(self, low: Expr, high: Expr, size: Expr) -> bool:
        if self.is_not_negative(low) and self.is_below(high, size):
            return True
        for known, target in self.expanding:
            if known == size:
                cases = (self.analyzer.constraint(eq(size, other)) for other in (ONE, target))
                return all(self._is_within_where(case, low, high, size) for case in cases)
        return False

    def _is_within_where(self, case: Scope, low: Expr, high: Expr, size: Expr) -> bool:
        with case:
            return self.is_not_negative(low) and self.is_below(high, size)

    def is_not_negative(self, at: Expr) -> bool:
        """Returns whether 0 <= at is proven."""
        return self.holds(at, self.is_not_negative, Kind.MAX, Kind.MIN) or self.is_proven(at, None)

    def is_below(self, at: Expr, size: Expr) -> bool:
        """Returns whether at < size is proven."""

        def below(each: Expr) -> bool:
            return self.is_below(each, size)

        return self.holds(at, below, Kind.MIN, Kind.MAX) or self.is_proven(at, size)

    def holds(self, at: Expr, claim: Callable[[Expr], bool], one: Kind, both: Kind) -> bool:
        """Returns whether a claim holds of a minimum, maximum or select.

        It must hold of one operand (`one`), of each (`both`), or of each side of a select under its condition.
        """
        atom = at.atom
        if atom is None:
            return False
        if atom.kind in (one, both):
            return (any if atom.kind is one else all)(map(claim, atom.operands))
        if atom.kind is not Kind.SELECT:
            return False
        condition, *sides = atom.operands
        for side, chosen in zip(sides, (condition, logical_not(condition)), strict=True):
            with ExitStack() as scopes:
                self.suppose(chosen, scopes)
                if not claim(side):
                    return False
        return True

    def suppose(self, condition: Expr, scopes: ExitStack) -> None:
        """Within the scopes a condition holds, and so what it says of sizes that broadcast."""
        scopes.enter_context(self.analyzer.constraint(condition))
        for size, target in self.expanding:
            if condition == ne(size, ONE):
                scopes.enter_context(self.analyzer.constraint(eq(size, target)))

    def is_proven(self, at: Expr, size: Expr | None) -> bool:
        """Returns whether 0 <= at (`size` is None) or at < size is proven.

        a // d is below size where 0 <= a < size * d, and a % d where d <= size. Divided by 0 both are 0, which is not below a size of 0.
        """
        atom = at.atom
        if atom is not None and atom.kind in DIVISIONS and self.analyzer.can_prove(ge(atom.operands[1], ZERO)):
            dividend, divisor = atom.operands
            if atom.kind is Kind.FLOORMOD:
                if size is None:
                    return True
                if self.analyzer.can_prove(le(divisor, size)) and (
                    self.analyzer.can_prove(gt(size, ZERO)) or self.is_positive(divisor)
                ):
                    return True
            elif self.is_not_negative(dividend) and (size is None or self.is_below(dividend, size * divisor)):
                return True
        return self.analyzer.can_prove(ge(at, ZERO) if size is None else lt(at, size))

    def is_positive(self, divisor: Expr) -> bool:
        """Returns whether 0 < divisor, known 0 <= divisor: were it 0, a loop around would have no iterations."""
        if self.analyzer.can_prove(gt(divisor, ZERO)):
            return True
        with self.analyzer.constraint(eq(divisor, ZERO)):
            return any(self.analyzer.can_prove(le(extent, ZERO)) for extent in self.extents)
