"""The strides of buffers, as expressions."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from ...dialects import tir
from ...dialects.tir.analysis import Analyzer, Expr
from ...dialects.tir.buffer import BufferOp


def extents_of(analyzer: Analyzer, buffer: SSAValue) -> list[Expr]:
    """The extents of a buffer."""
    owner = buffer.owner
    if isinstance(owner, BufferOp):
        return [analyzer.expr(e) for e in owner.extents()]
    assert isinstance(buffer.type, tir.BufferType)
    return [analyzer.expr(e) for e in buffer.type.static_shape or ()]


def strides_of(analyzer: Analyzer, buffer: SSAValue) -> list[Expr]:
    """The strides of a buffer, in elements: those given, or those of row-major order."""
    owner = buffer.owner
    given = owner.stride_values() if isinstance(owner, BufferOp) else None
    if given is not None:
        return [analyzer.expr(s) for s in given]
    return row_major(extents_of(analyzer, buffer))


def row_major(extents: Sequence[Expr]) -> list[Expr]:
    """The strides of compact memory with these extents."""
    strides: list[Expr] = []
    step = Expr((), 1)
    for extent in reversed(extents):
        strides.append(step)
        step = step * extent
    return strides[::-1]
