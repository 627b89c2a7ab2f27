"""Finds directly nested plain loops, which print as one: `for i, j in T.grid(4, 8)`."""

from __future__ import annotations

from collections.abc import Container

from xdsl.ir import Block, Operation, SSAValue

from ...dialects.tir.expr import LetOp
from ...dialects.tir.operators import as_const
from ...dialects.tir.stmt import ForOp


def loop_grid(op: ForOp, skipped: Container[Operation]) -> list[ForOp]:
    """Returns the plain loops, directly nested, that begin with `op`; `skipped` ops print no statement.

    No extent depends on the variable of a loop before it.
    """
    loops: list[ForOp] = []
    variables: set[SSAValue] = set()
    current: ForOp | None = op
    while current is not None and is_plain(current) and not _uses_any(current.extent, variables):
        loops.append(current)
        variables.add(current.loop_var)
        current = _only_loop(current.body.block, skipped)
    return loops


def _only_loop(block: Block, skipped: Container[Operation]) -> ForOp | None:
    """The loop that is a region's one statement."""
    found: ForOp | None = None
    for op in block.ops:
        if op in skipped:
            continue
        if found is not None or not isinstance(op, ForOp):
            return None
        found = op
    return found


def is_plain(op: ForOp) -> bool:
    """Returns whether a loop may be part of a `T.grid`."""
    low = as_const(op.min)
    return op.kind.data == "serial" and low is not None and low.value == 0 and not op.annotations.data


def _uses_any(value: SSAValue, variables: set[SSAValue]) -> bool:
    """Returns whether an expression depends on one of the variables."""
    if not variables:
        return False
    pending, seen = [value], {value}
    while pending:
        current = pending.pop()
        if current in variables:
            return True
        op = current.owner
        if isinstance(op, Operation) and not isinstance(op, LetOp):
            inner = list(op.operands)
            for region in op.regions:
                for block in region.blocks:
                    inner += [operand for o in block.ops for operand in o.operands]
            for operand in inner:
                if operand not in seen:
                    seen.add(operand)
                    pending.append(operand)
    return False
