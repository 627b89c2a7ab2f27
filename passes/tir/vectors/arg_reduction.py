"""Matches the conditions by which reductions such as argmax keep their old value: orders, NaN first.

old > term or old == term and at < k                                   integers
old > term or old != old and term == term
    or (old == term or old != old) and at < k                          floats: NaN beats every number, the first NaN others
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue

from ....dialects import tir

Compare = tir.GtOp | tir.GeOp | tir.LtOp | tir.LeOp


@dataclass(frozen=True)
class ChoiceOrder:
    """A condition's parts: the comparison of the old value with the term, the tie, and what decides a tie."""

    order: Compare
    equal: tir.EqOp | None = None
    """None where ties are decided by `order`."""
    places: SSAValue | None = None
    nan: tuple[tir.NeOp, tir.EqOp, tir.NeOp] | None = None
    """`old != old`, `term == term`, and `old != old` of the tie: None where NaN is not looked at."""


def behind_let(value: SSAValue) -> SSAValue:
    """Returns the value that a let binds."""
    while isinstance(value.owner, tir.LetOp):
        value = value.owner.value
    return value


def choice_order(condition: SSAValue) -> ChoiceOrder | None:
    """Matches a condition as an order; which values are compared, the caller must check."""
    op = behind_let(condition).owner
    if isinstance(op, Compare):
        return ChoiceOrder(op)
    if not isinstance(op, tir.OrOp):
        return None
    first, tie = behind_let(op.lhs).owner, behind_let(op.rhs).owner
    if not isinstance(tie, tir.AndOp):
        return None
    equal = behind_let(tie.lhs).owner
    if isinstance(first, Compare) and isinstance(equal, tir.EqOp):
        return ChoiceOrder(first, equal, tie.rhs)
    if not isinstance(first, tir.OrOp) or not isinstance(equal, tir.OrOp):
        return None
    order, both = behind_let(first.lhs).owner, behind_let(first.rhs).owner
    same, other = behind_let(equal.lhs).owner, behind_let(equal.rhs).owner
    if not isinstance(order, Compare) or not isinstance(both, tir.AndOp):
        return None
    nan, number = behind_let(both.lhs).owner, behind_let(both.rhs).owner
    if not (isinstance(nan, tir.NeOp) and isinstance(number, tir.EqOp)):
        return None
    if not (isinstance(same, tir.EqOp) and isinstance(other, tir.NeOp)):
        return None
    return ChoiceOrder(order, same, tie.rhs, (nan, number, other))
