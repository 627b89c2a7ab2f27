"""Undoes what a rule did to a function before a primitive was refused."""

from __future__ import annotations

from ...dialects import tir
from ...support.edit import insert_op_before
from ..schedule import Schedule


def start_again(sch: Schedule, function: tir.PrimFuncOp, spare: tir.PrimFuncOp, length: int) -> tir.PrimFuncOp:
    """Puts a copy of the function, made when its trace was so long, in its place; returns the copy."""
    insert_op_before(spare, function)
    function.detach()
    while len(sch.trace) > length:
        sch.trace.pop()
    return spare
