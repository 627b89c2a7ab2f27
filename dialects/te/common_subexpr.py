"""Decides which values of a body are printed once under a name, and which are repeated at each use."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Block, Operation, SSAValue

from ...support.op_kinds import Kinds
from ...support.walk import ops_in
from .. import tir
from ..tir.intrinsics import Effect, intrinsic_effect
from .compute import ComputeOp, ExternOp
from .ops import CommReducerOp, ReadOp

EXPRESSIONS = (*tir.BINARY_OPS, tir.ConstOp, tir.NotOp, tir.SelectOp, tir.IfThenElseOp, tir.CastOp, tir.CallOp, ReadOp)
"""Ops that compute one scalar."""
_SCALARS = Kinds(*EXPRESSIONS)
_WITH_BODIES = Kinds(ComputeOp, ExternOp, CommReducerOp)


def is_effectful(op: Operation) -> bool:
    """Returns whether writing the op twice would do something else than computing it once."""
    return isinstance(op, tir.CallOp) and intrinsic_effect(op.intrinsic.data) is Effect.OPAQUE


def shared_values(block: Block, most: int) -> set[SSAValue]:
    """Returns the values of a body used more than once; none if repeating them adds at most `most` ops.

    A value with effects is always included.
    """
    uses: dict[SSAValue, int] = {}
    sizes: dict[SSAValue, int] = {}
    expressions: list[Operation] = []
    for op in _inner_first(block):
        for value in op.operands:
            uses[value] = uses.get(value, 0) + 1
        if op.results and _SCALARS[type(op)]:
            size = 1
            for value in op.operands:
                size += sizes.get(value, 1)
            for region in op.regions:
                last = region.block.last_op
                if isinstance(last, tir.YieldOp):
                    size += sum(sizes.get(v, 1) for v in last.values)
            # Sizes double along a chain of shared values: numbers stay small.
            sizes[op.results[0]] = min(size, 1 << 40)
            if not isinstance(op, tir.ConstOp):
                expressions.append(op)
    repeated = [op for op in expressions if uses.get(op.results[0], 0) > 1]
    added = sum((uses[op.results[0]] - 1) * sizes[op.results[0]] for op in repeated)
    if added <= most and not any(map(is_effectful, repeated)):
        return set()
    return {op.results[0] for op in repeated}


def tree_size(root: SSAValue) -> int:
    """Returns the number of ops of an expression written as a tree (2 ** 40 for any more)."""
    sizes: dict[SSAValue, int] = {}
    pending = [root]
    while pending:
        value = pending[-1]
        op = value.owner
        if value in sizes or isinstance(op, Block) or not _SCALARS[type(op)]:
            sizes.setdefault(value, 1)
            pending.pop()
            continue
        parts = list(op.operands)
        for region in op.regions:
            last = region.block.last_op
            parts += last.operands if last is not None else ()
        missing = [v for v in parts if v not in sizes]
        if missing:
            pending += missing
            continue
        pending.pop()
        sizes[value] = min(1 + sum(sizes[v] for v in parts), 1 << 40)
    return sizes[root]


def _inner_first(block: Block) -> Iterator[Operation]:
    """Iterates over the ops of a block, each after those of its regions; bodies of tensors are left out."""
    for op in ops_in(block):
        if op.regions and not _WITH_BODIES[type(op)]:
            for region in op.regions:
                for inner in region.blocks:
                    yield from _inner_first(inner)
        yield op
