"""Deduces the range of a variable from a condition, as `tvm.arith.deduce_bound`."""

from __future__ import annotations

from collections.abc import Mapping

from ...dialects.arith.node_analyzer import NodeAnalyzer
from ...dialects.tir import node as ex
from ...dialects.tir.node import Const, Expr, IntImm, Range, Var
from ...dialects.tir.node.functor import expr_parts
from ...support.arguments import check
from ...support.public_names import public_names
from .int_set import IntervalSet, evaluate, neg_inf, pos_inf

Sets = Mapping[Var, "IntervalSet | Range"]

_FLIPPED = {"<=": ">=", ">=": "<=", "==": "=="}


class _NotDeduced(Exception):
    """Says that a condition bounds the variable in no way that is known."""


def deduce_bound(var: Var, cond: Expr, hint_map: Sets, relax_map: Sets) -> IntervalSet:
    """Returns the values of a variable for which a comparison is true.

    The set is empty where they are not known. Variables of `relax_map` take all of their values, and the comparison is true for each of them; `hint_map` says which
    signs factors have.

        deduce_bound(a, a * 4 + b < c, {}, {})      # IntervalSet[neg_inf, (c - 1 - b) // 4]
    """
    check(var, "var", "a variable", Var)
    check(cond, "cond", "an expression", Expr)
    deduction = _Deduction(var, hint_map, relax_map)
    try:
        order, value = deduction.solved(cond)
    except _NotDeduced:
        return IntervalSet(pos_inf(), neg_inf())
    value = deduction.analyzer.simplify(value)
    return IntervalSet(value if order != "<=" else neg_inf(), value if order != ">=" else pos_inf())


class _Deduction:
    def __init__(self, var: Var, hints: Sets, relaxed: Sets):
        self.var = var
        self.hints = hints
        self.relaxed = relaxed
        self.analyzer = NodeAnalyzer()

    def uses(self, e: Expr) -> int:
        """Returns how often the variable occurs in an expression."""
        pending, count = [e], 0
        while pending:
            part = pending.pop()
            count += part is self.var
            pending += expr_parts(part)
        return count

    def solved(self, cond: Expr) -> tuple[str, Expr]:
        """Returns the order of the variable and a value that the comparison is equivalent to."""
        order, side, value = self.compared(cond)
        if self.relaxed:
            side, value = self.relax(order, side, value)
        if self.uses(side) != 1:
            raise _NotDeduced
        while side is not self.var:
            order, side, value = self.step(order, side, value)
        return order, value

    def compared(self, cond: Expr) -> tuple[str, Expr, Expr]:
        """Returns the comparison with the variable's side first, as one of integers that includes its end."""
        match cond:
            case ex.LT() | ex.LE():
                order = "<="
            case ex.GT() | ex.GE():
                order = ">="
            case ex.EQ():
                order = "=="
            case _:
                raise _NotDeduced
        strict = int(isinstance(cond, ex.LT | ex.GT))
        a, b = cond.args
        if self.uses(a) + self.uses(b) != 1:
            raise _NotDeduced
        if self.uses(b):
            a, b, order = b, a, _FLIPPED[order]
        if strict:
            b = b - 1 if order == "<=" else b + 1
        return order, a, b

    def relax(self, order: str, side: Expr, value: Expr) -> tuple[Expr, Expr]:
        """Returns the ends of both sides for which the comparison is true at all values of relaxed variables."""
        sides, values = (evaluate(e, self.relaxed, self.analyzer) for e in (side, value))
        side, value = (sides.max_value, values.min_value) if order == "<=" else (sides.min_value, values.max_value)
        if any(end is pos_inf() or end is neg_inf() for end in (side, value)):
            raise _NotDeduced
        if order == "==":
            others = (sides.max_value, values.min_value)
            if any(end is pos_inf() or end is neg_inf() for end in others):
                raise _NotDeduced
            if not all(self.analyzer.prove_equal(a, b) for a, b in zip((side, value), others, strict=True)):
                raise _NotDeduced
        return side, value

    def step(self, order: str, side: Expr, value: Expr) -> tuple[str, Expr, Expr]:
        """Takes the outermost operation from the variable's side to the other."""
        if not isinstance(side, ex.Add | ex.Sub | ex.Mul | ex.FloorDiv):
            raise _NotDeduced
        a, b = side.args
        is_left = bool(self.uses(a))
        inner, other = (a, b) if is_left else (b, a)
        if isinstance(side, ex.Add):
            return order, inner, value - other
        if isinstance(side, ex.Sub):
            return (order, inner, value + other) if is_left else (_FLIPPED[order], inner, other - value)
        if isinstance(side, ex.Mul):
            return self.multiplied(order, inner, other, value)
        if not is_left or order == "==":
            raise _NotDeduced
        return self.divided(order, inner, other, value)

    def multiplied(self, order: str, inner: Expr, factor: Expr, value: Expr) -> tuple[str, Expr, Expr]:
        if self.sign(factor) < 0:
            order = _FLIPPED[order]
        is_whole = self.analyzer.prove_equal(ex.floormod(value, factor), IntImm(value.dtype, 0))
        quotient = ex.floordiv(value, factor)
        if order == "==" and not (isinstance(self.analyzer.simplify(factor), Const) and is_whole):
            raise _NotDeduced
        return order, inner, quotient if is_whole or order != ">=" else quotient + 1

    def divided(self, order: str, inner: Expr, divisor: Expr, value: Expr) -> tuple[str, Expr, Expr]:
        sign = self.sign(divisor)
        # value <= inner // divisor begins at value * divisor, inner // divisor <= value ends before (value + 1) * divisor.
        end = value * divisor if order == ">=" else (value + 1) * divisor - sign
        return (order if sign > 0 else _FLIPPED[order]), inner, end

    def sign(self, e: Expr) -> int:
        values = evaluate(e, self.hints, self.analyzer)
        if values.min_value is not neg_inf() and self.analyzer.prove(ex.greater(values.min_value, 0)):
            return 1
        if values.max_value is not pos_inf() and self.analyzer.prove(ex.less(values.max_value, 0)):
            return -1
        raise _NotDeduced


__dir__ = public_names(__name__)
