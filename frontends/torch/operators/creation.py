"""Operators that create tensors: constants, ranges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from ....dialects.array import numpy_dtype
from ..node import FxNode
from ..registry import operator


def filled(node: FxNode, size: Sequence[Any], value: Any) -> SSAValue:
    """Creates a tensor of one value; a size may be computed."""
    dtype = node.dtype()
    shape = node.sizes(size)
    scalar = node.tensor(value, dtype)
    if not isinstance(shape, SSAValue):
        return node.call("full", scalar, shape=shape, dtype=dtype)
    return node.call("dyn.full", scalar, shape, dtype=dtype)


@operator("full")
def full(node: FxNode, size: Sequence[Any], value: Any, *_: Any) -> SSAValue:
    """Creates a tensor of one value."""
    return filled(node, size, value)


@operator("full_like", "fill")
def full_like(node: FxNode, x: SSAValue, value: Any, *_: Any) -> SSAValue:
    """Creates a tensor of one value and of a tensor's shape."""
    return filled(node, [node.size_of(x, axis) for axis in range(node.rank(x))], value)


@operator("empty", "empty_strided", "empty_permuted")
def empty(node: FxNode, size: Sequence[Any], *_: Any) -> SSAValue:
    """Creates zeros: elements that are not set may be any."""
    return filled(node, size, 0)


@operator("scalar_tensor")
def scalar_tensor(node: FxNode, value: Any, *_: Any) -> SSAValue:
    """Creates a tensor of rank 0."""
    return node.tensor(value, node.dtype())


@operator("arange")
def arange(node: FxNode, start: Any, *rest: Any) -> SSAValue:
    """Creates the numbers from `start`, or 0, to `end`."""
    if node.overload == "start_step":
        end, step = rest[0], rest[1]
    elif node.overload == "start":
        end, step = rest[0], 1
    else:
        start, end, step = 0, start, 1
    dtype = node.dtype()
    if not any(isinstance(each, SSAValue) for each in (start, end, step)):
        return node.builder.array_constant(np.arange(start, end, step).astype(numpy_dtype(dtype)))
    kind = "float64" if any(isinstance(each, float) for each in (start, end, step)) else "int64"
    given = [node.tensor(each, kind) for each in (start, end, step)]
    return node.cast(node.call("arange", *given, dtype=kind), dtype)
