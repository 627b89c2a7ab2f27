"""The ops that a lowered function is mostly made of, made without the cost of their general constructors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from xdsl.dialects.builtin import DenseArrayBase, i32
from xdsl.ir import SSAValue

from ...dialects import tir


@cache
def segments(*sizes: int) -> DenseArrayBase:
    """How many operands each group of an op has."""
    return DenseArrayBase.from_list(i32, sizes)


def load(buffer: SSAValue, indices: Sequence[SSAValue]) -> tir.LoadOp:
    """A load of one element."""
    assert isinstance(buffer.type, tir.BufferType)
    return tir.LoadOp.create(
        operands=[buffer, *indices],
        result_types=[buffer.type.dtype],
        properties={"operandSegmentSizes": segments(1, len(indices), 0)},
    )


def store(value: SSAValue, buffer: SSAValue, indices: Sequence[SSAValue]) -> tir.StoreOp:
    """A store of one element."""
    return tir.StoreOp.create(
        operands=[buffer, *indices, value],
        properties={"operandSegmentSizes": segments(1, len(indices), 0, 1)},
    )


def region(buffer: SSAValue, mins: Sequence[SSAValue], extents: Sequence[SSAValue]) -> tir.BufferRegionOp:
    """A box of a buffer."""
    return tir.BufferRegionOp.create(
        operands=[buffer, *mins, *extents],
        result_types=[REGION],
        properties={"operandSegmentSizes": segments(1, len(mins), len(extents))},
    )


REGION = tir.RegionType()
