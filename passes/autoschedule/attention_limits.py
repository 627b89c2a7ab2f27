"""Attentions whose queries see keys up to a diagonal: blocks of rows skip the keys after it.

The scores are selected by the positions of query and key, `Select(key - query <= c, score, least number)`. Of what is not seen the softmax
makes 0, and no term of the sums after it need be computed. So the loops over keys end where a block of rows sees none (`limit-loops`).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import lcm
from typing import TYPE_CHECKING

from xdsl.ir import SSAValue

from ...dialects import tir
from ...dialects.arith import Analyzer
from ...dialects.arith.expr import Kind
from ...dialects.tir.operators import as_const
from ..schedule import BlockRV, LoopRV, Schedule
from ..schedule.analysis.block_kind import axis_kinds
from ..tir.loops.limit_loops import LIMIT, LIMITS
from .block_shape import shape_of
from .loop_nests import block_of, extent_of, loop_of_axis

if TYPE_CHECKING:
    from .attention import Attention

NEVER = -1e9
"""What a score is at most that no key has."""


def diagonal_of(attention: Attention) -> int | None:
    """Returns the c for which query r sees no key after r + c; None where it may see all.

    A stage of rows selects the scores, nothing else.
    """
    for stage in attention.rows:
        shape = shape_of(stage)
        batch = len(attention.scores.batch)
        if shape is None or len(shape.axes) != batch + 2 or len(shape.stores) != 1 or shape.reduction:
            continue
        select = shape.stores[0].value.owner
        if not isinstance(select, tir.SelectOp):
            continue
        least = as_const(select.false_value)
        if least is None or not least.value <= NEVER:
            continue
        row, column = shape.axes[batch:]
        found = _distance(select.condition, row, column)
        if found is not None and found >= 0:
            return found
    return None


def _distance(condition: SSAValue, row: SSAValue, column: SSAValue) -> int | None:
    """Returns the c of a condition column - row <= c."""
    owner = condition.owner
    while isinstance(owner, tir.SelectOp) and _truth(owner.true_value) is True and _truth(owner.false_value) is False:
        condition = owner.condition
        owner = condition.owner
    analyzer = Analyzer()
    atom = analyzer.expr(condition).atom
    if atom is None or atom.kind is not Kind.GE:
        return None
    rest = atom.operands[0] - analyzer.expr(row) + analyzer.expr(column)
    return rest.value


def _truth(value: SSAValue) -> bool | None:
    constant = as_const(value)
    return None if constant is None else bool(constant.value)


def limit_keys(
    sch: Schedule, rows: LoopRV, per_turn: int, loops: Sequence[tuple[LoopRV, int]], keys: int, diagonal: int
) -> None:
    """Ends loops over keys where an iteration of the loop over `rows` sees none of the keys that follow.

    Each loop comes with its keys per iteration.
    """
    unit = lcm(*(step for _, step in loops))
    if extent_of(sch, rows) == 1 or 2 * unit > keys:
        return
    sch.annotate(rows, LIMITS, 1)
    for loop, step in loops:
        sch.annotate(loop, LIMIT, [per_turn, per_turn + diagonal + unit - 1, unit, unit // step])


def key_loop(sch: Schedule, stage: BlockRV, keys: int) -> tuple[LoopRV, int] | None:
    """Returns the loop over the keys of a stage of rows and its keys per iteration; None if there is none."""
    op = block_of(sch, stage)
    places = [k for k, e in enumerate(op.dom_extents) if k >= len(op.iter_vars) - 2 and _extent(e) == keys]
    kinds = axis_kinds(op)
    place = next((k for k in places if kinds[k] == "R"), places[-1] if places else None)
    if place is None:
        return None
    loop = loop_of_axis(sch, stage, place)
    if loop is None:
        return None
    analyzer = Analyzer()
    outer = sch.resolve(loop)
    assert isinstance(outer, tir.ForOp)
    step = analyzer.expr(op.bindings[place]).coefficient(analyzer.expr(outer.loop_var).terms[0][0])
    return (loop, step) if step > 0 else None


def _extent(value: SSAValue) -> float | None:
    constant = as_const(value)
    return None if constant is None else constant.value
