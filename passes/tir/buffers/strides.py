"""The strides of buffers, as expressions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from xdsl.ir import SSAValue

from ....dialects import tir
from ....dialects.arith import Analyzer, Expr
from ....dialects.tir.buffer import BufferOp


def extents_of(analyzer: Analyzer, buffer: SSAValue) -> list[Expr]:
    """Returns the extents of a buffer."""
    owner = buffer.owner
    if isinstance(owner, BufferOp):
        return [analyzer.expr(e) for e in owner.extents()]
    assert isinstance(buffer.type, tir.BufferType)
    return [analyzer.expr(e) for e in buffer.type.static_shape or ()]


def strides_of(analyzer: Analyzer, buffer: SSAValue) -> list[Expr]:
    """Returns the strides of a buffer, in elements: its own, or those of row-major order."""
    owner = buffer.owner
    given = owner.stride_values() if isinstance(owner, BufferOp) else None
    if given is not None:
        return [analyzer.expr(s) for s in given]
    return row_major(extents_of(analyzer, buffer))


def row_major(extents: Sequence[Expr]) -> list[Expr]:
    """Returns the strides of compact memory with these extents."""
    strides: list[Expr] = []
    step = Expr((), 1)
    for extent in reversed(extents):
        strides.append(step)
        step = step * extent
    return strides[::-1]


def memory_extents(buffer: SSAValue) -> list[int] | None:
    """Returns the extents of the compact buffer of which this one is the first elements in each dimension.

    With strides (20, 5, 1) and extents (2, 3, 4) these are (2, 4, 5); of a compact buffer they are its own. None where extents or strides
    are not numbers, or do not fit.
    """
    owner = buffer.owner
    assert isinstance(buffer.type, tir.BufferType)
    shape = buffer.type.static_shape
    strides = owner.stride_values() if isinstance(owner, BufferOp) else None
    if shape is None or strides is None:
        return None if shape is None else list(shape)
    steps = [stride for stride in strides if isinstance(stride, int) and stride > 0]
    if len(steps) < len(shape) or steps[-1] != 1 or any(outer % inner for outer, inner in pairwise(steps)):
        return None
    extents = [shape[0], *(outer // inner for outer, inner in pairwise(steps))]
    return extents if all(size <= extent for size, extent in zip(shape, extents, strict=True)) else None
