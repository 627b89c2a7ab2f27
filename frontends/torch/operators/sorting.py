"""Sorting and the largest elements."""

from __future__ import annotations

from typing import Any

from xdsl.ir import SSAValue

from ..node import FxNode
from ..registry import operator


@operator("sort")
def sort(node: FxNode, x: SSAValue, *rest: Any) -> list[SSAValue]:
    """Sorts along an axis; returns values and positions. Equal elements keep their order."""
    if node.overload == "stable":
        rest = rest[1:]
    dim, descending = (*rest, -1, False)[:2] if len(rest) < 2 else rest[:2]
    if node.rank(x) == 0:
        return [x, node.builder.constant(0, "int64")]
    axis = dim % node.rank(x)
    keys = node.cast(x, "int8") if node.builder.dtype(x) == "bool" else x
    places = node.call("argsort", keys, axis=axis, is_ascend=not descending, dtype="int64")
    return [node.call("gather", x, places, axis=axis), places]


@operator("topk")
def topk(node: FxNode, x: SSAValue, k: Any, dim: int, largest: bool, _sorted: bool) -> list[SSAValue]:
    """Returns the `k` largest or smallest elements and their positions."""
    if node.rank(x) == 0:
        return [x, node.builder.constant(0, "int64")]
    axis = dim % node.rank(x)
    if isinstance(k, SSAValue):
        found = node.call("dyn.topk", x, k, axis=axis, is_ascend=not largest, dtype="int64", ret_type="both")
    elif k == 0:
        nothing = node.call("strided_slice", x, begin=[0], end=[0], strides=[1], axes=[axis])
        return [nothing, node.call("cast", nothing, dtype="int64")]
    else:
        found = node.call("topk", x, k=int(k), axis=axis, is_ascend=not largest, dtype="int64", ret_type="both")
    return node.builder.tuple_parts(found)
