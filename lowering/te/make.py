"""Creates loads and stores, the most frequent ops, without the cost of their constructors."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import UNKNOWN_LOC
from xdsl.ir import SSAValue

from ...dialects import tir
from ...dialects.interned import i32_array
from ...dialects.plain_op import SEGMENTS
from ...support.edit import create_op


def load(buffer: SSAValue, indices: Sequence[SSAValue]) -> tir.LoadOp:
    """A load of one element."""
    assert isinstance(buffer.type, tir.BufferType)
    sizes = i32_array(1, len(indices), 0)
    return create_op(tir.LoadOp, [buffer, *indices], [buffer.type.dtype], {SEGMENTS: sizes}, UNKNOWN_LOC)


def store(value: SSAValue, buffer: SSAValue, indices: Sequence[SSAValue]) -> tir.StoreOp:
    """A store of one element."""
    sizes = i32_array(1, len(indices), 0, 1)
    return create_op(tir.StoreOp, [buffer, *indices, value], (), {SEGMENTS: sizes}, UNKNOWN_LOC)
