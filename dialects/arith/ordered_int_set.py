"""Computes intervals of expressions while variables run; the ends keep the written order of terms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from .. import tir
from ..te import tensor as te
from ..tir import node as ex
from ..tir.node import Apply, Call, Choice, Const, Expr, IterVar, Range, Var, call
from .ordered import Arith, is_zero, number


@dataclass(frozen=True, eq=False)
class IntSet:
    """The integers from `min` to `max`; None where that side has no known end."""

    min: Expr | None
    max: Expr | None

    @staticmethod
    def point(value: Expr) -> IntSet:
        """Returns the set of one value."""
        return IntSet(value, value)

    @staticmethod
    def of_range(range: Range) -> IntSet:
        """Returns the set of a range's values."""
        return IntSet(range.min, ex.subtract(ex.add(range.min, range.extent), number(1, range.extent.dtype)))

    @property
    def is_point(self) -> bool:
        """Returns whether it holds one value only."""
        return self.min is not None and self.min is self.max


EVERYTHING = IntSet(None, None)

Sets = Mapping[int, IntSet]
"""Sets of variables' values, by the variable's id."""


class Interval:
    """Evaluates expressions over sets; terms are taken as independent: results are never too small."""

    def __init__(self, arith: Arith):
        self.arith = arith

    def matches(self, values: IntSet, range: Range) -> bool:
        """Returns whether the set is the range, for sure."""
        whole = IntSet.of_range(range)
        if values.min is None or values.max is None or whole.min is None or whole.max is None:
            return False
        return self.arith.prove_equal(values.min, whole.min) and self.arith.prove_equal(values.max, whole.max)

    def of(self, e: Expr, sets: Sets) -> IntSet:
        """Returns an interval that holds the values of `e`."""
        return self._of(e, sets, {})

    def range_of(self, values: IntSet, whole: Range) -> Range:
        """Returns the set as a range; `whole` where an end is unknown."""
        if values.min is None or values.max is None:
            return whole
        if values.is_point:
            return Range.from_min_extent(values.min, number(1, values.min.dtype))
        return Range.from_min_extent(
            values.min, self.arith.simplify(ex.add(ex.subtract(values.max, values.min), number(1, values.min.dtype)))
        )

    def union(self, parts: list[IntSet]) -> IntSet:
        """Returns the least interval that holds all."""
        if not parts:
            return EVERYTHING
        low, high = parts[0].min, parts[0].max
        for part in parts[1:]:
            low = None if low is None or part.min is None else self._least(low, part.min)
            high = None if high is None or part.max is None else self._most(high, part.max)
        if len(parts) == 1:
            return parts[0]
        return IntSet(low, high)

    def _least(self, a: Expr, b: Expr) -> Expr:
        return self.arith.simplify(ex.minimum(a, b))

    def _most(self, a: Expr, b: Expr) -> Expr:
        return self.arith.simplify(ex.maximum(a, b))

    def _of(self, e: Expr, sets: Sets, memo: dict[int, IntSet]) -> IntSet:
        found = memo.get(id(e))
        if found is None:
            found = memo[id(e)] = self._evaluate(e, sets, memo)
        return found

    def _evaluate(self, e: Expr, sets: Sets, memo: dict[int, IntSet]) -> IntSet:
        known = sets.get(id(e))
        if known is not None:
            return known
        match e:
            case Const() | Var() | IterVar():
                return IntSet.point(e)
            case Apply() if e.op is tir.SelectOp:
                return self.union([self._of(e.args[1], sets, memo), self._of(e.args[2], sets, memo)])
            case Apply() if e.op is tir.CastOp:
                inner = self._of(e.args[0], sets, memo)
                if inner.is_point and inner.min is not None:
                    return IntSet.point(ex.cast(e.dtype, inner.min))
                low = None if inner.min is None else ex.cast(e.dtype, inner.min)
                return IntSet(low, None if inner.max is None else ex.cast(e.dtype, inner.max))
            case Apply() if e.dtype in ("int32", "int64") and len(e.args) == 2:
                return self._binary(e, self._of(e.args[0], sets, memo), self._of(e.args[1], sets, memo))
            case Choice():
                return self.union([self._of(e.then_value, sets, memo), self._of(e.else_value, sets, memo)])
            case te.Read() | Call():
                parts = [self._of(a, sets, memo) for a in e.args]
                points = [p.min for p in parts if p.is_point and p.min is not None]
                if len(points) != len(parts):
                    return EVERYTHING
                if isinstance(e, te.Read):
                    return IntSet.point(te.Read(e.tensor, points))
                given = iter(points)
                operands = tuple(next(given) if isinstance(o, Expr) else o for o in e.operands)
                return IntSet.point(call(e.intrinsic, operands, e.dtype))
            case _:
                return EVERYTHING

    def _binary(self, e: Apply, a: IntSet, b: IntSet) -> IntSet:
        if a.min is not None and b.min is not None and a.is_point and b.is_point:
            if a.min is e.args[0] and b.min is e.args[1]:
                return IntSet.point(e)
            return IntSet.point(ex.BUILD[e.op](a.min, b.min))
        if e.op is tir.AddOp:
            return IntSet(_with(ex.add, a.min, b.min), _with(ex.add, a.max, b.max))
        if e.op is tir.SubOp:
            return IntSet(_with(ex.subtract, a.min, b.max), _with(ex.subtract, a.max, b.min))
        if e.op is tir.MulOp:
            return self._product(a, b)
        if e.op in (tir.FloorDivOp, tir.DivOp):
            return self._quotient(e, a, b)
        if e.op in (tir.FloorModOp, tir.ModOp):
            return self._remainder(e, a, b)
        if e.op is tir.MinOp:
            return IntSet(_with(ex.minimum, a.min, b.min), _either(ex.minimum, a.max, b.max))
        if e.op is tir.MaxOp:
            return IntSet(_either(ex.maximum, a.min, b.min), _with(ex.maximum, a.max, b.max))
        return EVERYTHING

    def _product(self, a: IntSet, b: IntSet) -> IntSet:
        if a.is_point:
            a, b = b, a
        factor = b.min
        if factor is None or not b.is_point:
            return EVERYTHING
        if is_zero(factor):
            return b
        low, high = _with(ex.multiply, a.min, factor), _with(ex.multiply, a.max, factor)
        if self.arith.prove(ex.greater_equal(factor, number(0, factor.dtype))):
            return IntSet(low, high)
        if self.arith.prove(ex.less_equal(factor, number(0, factor.dtype))):
            return IntSet(high, low)
        return EVERYTHING

    def _positive(self, b: IntSet) -> Expr | None:
        divisor = b.min
        if divisor is None or not b.is_point or not self.arith.prove(ex.greater(divisor, number(0, divisor.dtype))):
            return None
        return divisor

    def _quotient(self, e: Apply, a: IntSet, b: IntSet) -> IntSet:
        divisor = self._positive(b)
        if divisor is None:
            return EVERYTHING
        divide = ex.floordiv if e.op is tir.FloorDivOp else ex.truncdiv
        return IntSet(_with(divide, a.min, divisor), _with(divide, a.max, divisor))

    def _remainder(self, e: Apply, a: IntSet, b: IntSet) -> IntSet:
        divisor = b.min
        # Of a symbolic divisor it does not count that loops over it run: the check of a remainder is written out, as in TVM.
        if divisor is None or not b.is_point or Arith().bounds(divisor)[0] < 1:
            return EVERYTHING
        if e.op is tir.ModOp and (a.min is None or not self.arith.prove(ex.greater_equal(a.min, number(0, e.dtype)))):
            return EVERYTHING
        if a.min is not None and a.max is not None:
            turn = ex.floordiv(a.min, divisor)
            if self.arith.prove_equal(turn, ex.floordiv(a.max, divisor)):
                base = ex.multiply(turn, divisor)
                return IntSet(ex.subtract(a.min, base), ex.subtract(a.max, base))
        return IntSet(number(0, e.dtype), ex.subtract(divisor, number(1, e.dtype)))


def _with(build: Callable[[Expr, Expr], Expr], a: Expr | None, b: Expr | None) -> Expr | None:

    return None if a is None or b is None else build(a, b)


def _either(build: Callable[[Expr, Expr], Expr], a: Expr | None, b: Expr | None) -> Expr | None:
    """Returns `build` of both ends, or the known end if one is unknown: it bounds the result alone."""
    if a is None or b is None:
        return b if a is None else a
    return build(a, b)
