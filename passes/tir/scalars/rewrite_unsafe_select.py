"""The pass `rewrite-unsafe-select`: a `T.Select` with a load in a value becomes `T.if_then_else`.

    T.Select(i < 8, A[i], 0)     →     T.if_then_else(i < 8, A[i], 0)

A select evaluates both values, so that a load which is in bounds only under the condition may access memory outside of its buffer.
Not a rule: the ops that only one of the values is computed from move into a region, and their number is open.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Block, Operation, Region, SSAValue

from ....dialects import tir
from ....dialects.tir.types import I1
from ....support.edit import erase_op
from ....support.effects import is_side_effect_free
from ..rewriting import PrimFuncPass, is_dead, ops_of


def rewrite(select: tir.SelectOp) -> None:
    """Makes one select a choice, if a value of it loads what nothing else uses."""
    sides = [_computed_for(select, value) for value in (select.true_value, select.false_value)]
    if select.condition.type != I1 or not any(isinstance(op, tir.LoadOp) for side in sides for op in side):
        return
    home = select.parent
    assert home is not None
    regions: list[Region] = []
    for side, value in zip(sides, (select.true_value, select.false_value), strict=True):
        for op in side:
            op.detach()
        last = tir.YieldOp(value)
        last.location = select.location
        block = Block()
        block.add_ops([*side, last])
        regions.append(Region(block))
    choice = tir.IfThenElseOp(select.condition, regions[0], regions[1], select.result.type)
    choice.location = select.location
    home.insert_op_before(choice, select)
    choice.result.name_hint = select.result.name_hint
    select.result.replace_all_uses_with(choice.result)
    erase_op(select)


def _computed_for(select: tir.SelectOp, value: SSAValue) -> list[Operation]:
    """Returns the ops just before the select that compute one of its values and nothing else, in order."""
    if select.true_value is select.false_value or select.condition is value:
        return []
    found: set[Operation] = set()
    ordered: list[Operation] = []
    op = select.prev_op
    while op is not None and op.results and _only_reads(op):
        uses = list(op.results[0].uses)
        is_value = op.results[0] is value
        if uses and all(use.operation in found or (is_value and use.operation is select) for use in uses):
            found.add(op)
            ordered.append(op)
        op = op.prev_op
    return ordered[::-1]


def _only_reads(op: Operation) -> bool:
    """Returns whether an op may be evaluated a little later."""
    if isinstance(op, tir.LoadOp | tir.BufferGetOp | tir.BufferRegionOp):
        return True
    if isinstance(op, tir.IfThenElseOp):
        return all(isinstance(i, tir.LoadOp) or is_side_effect_free(i) for r in op.regions for i in r.block.ops)
    return is_side_effect_free(op)


@dataclass(frozen=True)
class RewriteUnsafeSelect(PrimFuncPass):
    """Replaces selects whose values load by `T.if_then_else`, which loads only the chosen value."""

    name = "rewrite-unsafe-select"

    def apply_to(self, func: tir.PrimFuncOp) -> None:
        """Rewrites the selects of one prim_func, inner ones first."""
        for select in ops_of(func, tir.SelectOp):
            if not is_dead(select):
                rewrite(select)
