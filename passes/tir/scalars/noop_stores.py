"""Stores of what is there already: `A[i] = A[i]`."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from ....dialects import tir
from ....dialects.arith import Analyzer
from ....dialects.arith.from_ssa import is_index_type

MAX_DISTANCE = 64
"""A load further away from its store, in ops, is not looked at."""


def stores_what_is_there(op: tir.StoreOp, analyzer: Analyzer) -> bool:
    """Returns whether a store writes back what was loaded from its element, nothing written in between."""
    load = op.value.owner
    if not isinstance(load, tir.LoadOp) or load.buffer is not op.buffer or load.parent is not op.parent:
        return False
    if op.predicate is not None or load.predicate is not None or not _only_reads_between(load, op):
        return False
    return all(_equal(a, b, analyzer) for a, b in zip(load.indices, op.indices, strict=True))


def _equal(a: SSAValue, b: SSAValue, analyzer: Analyzer) -> bool:
    return a is b or (a.type == b.type and is_index_type(a.type) and analyzer.can_prove_equal(a, b))


def _only_reads_between(first: Operation, last: Operation) -> bool:
    op = first.next_op
    for _ in range(MAX_DISTANCE):
        if op is last:
            return True
        if op is None or op.regions or not op.results or isinstance(op, tir.CallOp):
            return False
        op = op.next_op
    return False
