"""Axes that choose among expressions: compared with constants, as rows of a constant matrix are.

Such an axis is unrolled, so that the choices are made when code is generated, and each iteration keeps one of the expressions.
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from ...dialects import tir
from ...dialects.arith import Analyzer
from ...dialects.arith.expr import free_vars
from ..schedule.analysis.structure import const_int
from ..tir.rewriting import ops_of
from .block_shape import Shape

MAX_CHOICES = 16
"""An axis of more iterations than these is a loop like any other."""


def selector_axes(shape: Shape) -> list[SSAValue]:
    """Returns the axes on which, alone, several choices of the block depend."""
    analyzer = Analyzer()
    axes = {analyzer.expr(axis).atom: axis for axis in shape.axes}
    choices: dict[SSAValue, set[int]] = {}
    for op in ops_of(shape.block, tir.SelectOp):
        if not isinstance(op.condition.owner, tir.EqOp):
            continue
        condition = op.condition.owner
        number = const_int(condition.rhs)
        used = [axes[atom] for atom in free_vars(analyzer.expr(condition.lhs)) if atom in axes]
        if number is not None and len(used) == 1:
            choices.setdefault(used[0], set()).add(number)
    return [axis for axis, numbers in choices.items() if 2 <= len(numbers) < MAX_CHOICES]
