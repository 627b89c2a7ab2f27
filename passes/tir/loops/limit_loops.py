"""The pass `limit-loops`: loops end before the iterations that compute what nothing needs.

A schedule says so by annotations: `loop_limit: [scale, offset, unit, iterations]` on a loop, and `limits_loops: 1` on the loop around it
whose variable v counts. The loop then has at most floordiv(v * scale + offset, unit) * iterations iterations.

    for b in T.serial(4, annotations={"limits_loops": 1}):
        for k in T.serial(16, annotations={"loop_limit": [64, 64, 64, 4]}):

becomes

    for b in range(4):
        for k in range(T.min(16, (b * 64 + 64) // 64 * 4)):

It runs after blocks are gone: what a block reads and writes is declared as if all iterations ran. The extent is computed by plain
arithmetic, so that later passes need no knowledge of it.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr
from xdsl.ir import Attribute, SSAValue

from ....dialects import tir
from ....support.edit import builder_before
from ....support.walk import enclosing
from ..rewriting import PrimFuncPass, ops_of

LIMIT, LIMITS = "loop_limit", "limits_loops"
"""The annotations of the loop that ends early and of the one around it: see above."""


def limit(loop: tir.ForOp) -> None:
    """Ends one annotated loop where it may, and takes its annotation away."""
    known = dict(loop.annotations.data)
    numbers = _numbers(known.pop(LIMIT))
    loop.annotations = DictionaryAttr(known)
    loops = (each for each in enclosing(loop) if isinstance(each, tir.ForOp))
    outer = next((each for each in loops if LIMITS in each.annotations.data), None)
    if outer is None or numbers is None:
        return
    builder = builder_before(loop)
    scale, offset, unit, iterations = (
        builder.insert(tir.ConstOp.int(number, loop.loop_var.type)).result for number in numbers
    )
    v: SSAValue = outer.loop_var
    reached = builder.insert(tir.AddOp(builder.insert(tir.MulOp(v, scale)).result, offset)).result
    units = builder.insert(tir.FloorDivOp(reached, unit)).result
    most = builder.insert(tir.MulOp(units, iterations)).result
    extent = builder.insert(tir.MinOp(loop.extent, most)).result
    loop.operands[1] = extent


def _numbers(value: Attribute) -> tuple[int, ...] | None:
    """Reads four integers, the third of them positive; None for anything else."""
    if not isinstance(value, ArrayAttr):
        return None
    numbers = tuple(item.value.data for item in value.data if isinstance(item, IntegerAttr))
    return numbers if len(numbers) == len(value.data) == 4 and numbers[2] > 0 else None


@dataclass(frozen=True)
class LimitLoops(PrimFuncPass):
    """Ends loops annotated with `loop_limit` before the iterations that compute what nothing needs."""

    name = "limit-loops"

    def apply_to(self, function: tir.PrimFuncOp) -> None:
        """Limits every such loop of the module."""
        loops = list(ops_of(function, tir.ForOp))
        for loop in loops:
            if LIMIT in loop.annotations.data:
                limit(loop)
        for loop in loops:
            if LIMITS in loop.annotations.data:
                loop.annotations = DictionaryAttr({k: a for k, a in loop.annotations.data.items() if k != LIMITS})


__all__ = ["LIMIT", "LIMITS", "LimitLoops", "limit"]
