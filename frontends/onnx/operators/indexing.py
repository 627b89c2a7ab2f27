"""Converts ONNX operators that read, write, select and order elements by indices."""

from __future__ import annotations

import numpy as np
from xdsl.ir import SSAValue

from ...common.graph_builder import GraphBuilder
from ..node import Node
from ..registry import operator
from ..values import Value

REDUCTIONS = {"none": "update", "add": "add", "mul": "mul", "max": "max", "min": "min"}
"""Relay's modes of scattering by ONNX' reductions."""


@operator("Gather")
def gather(node: Node) -> SSAValue:
    """Converts `Gather` to `take`; constant negative indices are counted from the first."""
    builder, x, at = node.builder, node[0], node[1]
    axis = node.axis(node.rank(0), 0)
    known, size = builder.array(at), builder.extents(x)[axis]
    if known is not None and isinstance(size, int):
        if known.size and not -size <= known.min() <= known.max() < size:
            raise node.refuse(f"an index is outside of axis {axis}, which has {size} elements")
        at = builder.array_constant(np.where(known < 0, known + size, known).astype(known.dtype))
        return node.call("take", x, at, axis=axis)
    return node.call("take", x, at, axis=axis, mode="wrap")


def last_axis_first(builder: GraphBuilder, at: SSAValue) -> SSAValue:
    """Moves the last axis, along which ONNX' index vectors are, before all others, where Relay's are."""
    rank = builder.rank(at)
    return builder.call("transpose", at, axes=[rank - 1, *range(rank - 1)])


@operator("GatherND", since=11)
def gather_nd(node: Node) -> SSAValue:
    """Converts `GatherND`."""
    depth = node.builder.extents(node[1])[-1]
    if not isinstance(depth, int):
        raise node.refuse("the last dimension of the indices must be known, not open")
    at = last_axis_first(node.builder, node[1])
    return node.call("gather_nd", node[0], at, batch_dims=int(node.attr("batch_dims", 0)), index_rank=depth)


def _reduction(node: Node) -> str:
    return REDUCTIONS[node.choice("reduction", "none", list(REDUCTIONS))]


@operator("GatherElements", since=11)
def gather_elements(node: Node) -> SSAValue:
    """Converts `GatherElements`; of axes along which there are fewer indices the first elements are taken."""
    b, x, indices = node.builder, node[0], node[1]
    axis, wanted = node.axis(b.rank(x), 0), b.extents(indices)
    others = [
        place
        for place, (own, size) in enumerate(zip(b.extents(x), wanted, strict=True))
        if place != axis and own != size
    ]
    if others:
        shape = b.shape_tensor(indices)
        end = b.call("take", shape, b.integers(others), axis=0)
        zeros, ones = b.integers([0] * len(others)), b.integers([1] * len(others))
        known = b.array(end)
        if known is None:
            x = b.call("dyn.strided_slice", x, zeros, end, ones, axes=others)
        else:
            x = b.call("strided_slice", x, begin=[0] * len(others), end=known.tolist(), axes=others)
    return b.call("gather", x, indices, axis=axis)


@operator("ScatterElements", since=11)
def scatter_elements(node: Node) -> SSAValue:
    """Converts `ScatterElements`."""
    axis = node.axis(node.rank(0), 0)
    return node.call("scatter_elements", node[0], node[1], node[2], axis=axis, reduction=_reduction(node))


@operator("ScatterND", since=11)
def scatter_nd(node: Node) -> SSAValue:
    """Converts `ScatterND`."""
    return node.call("scatter_nd", node[0], last_axis_first(node.builder, node[1]), node[2], mode=_reduction(node))


@operator("TensorScatter", since=24)
def tensor_scatter(node: Node) -> SSAValue:
    """Converts `TensorScatter`: writes updates into a cache, for each batch from an index of its own on.

    past (B,…,S,D), update (B,…,s,D), write_indices (B) -> (B,…,S,D). In the mode circular, places wrap around.
    """
    builder, past, update = node.builder, node[0], node[1]
    rank = node.rank(0)
    axis = node.axis(rank, -2)
    places = builder.call("arange", builder.integers(0), builder.size(update, axis), builder.integers(1), dtype="int64")
    places = builder.reshape(places, [-1 if at == axis else 1 for at in range(rank)])
    if node.has(2):
        starts = builder.call("cast", node[2], dtype="int64")
        places = builder.call("add", places, builder.reshape(starts, [-1 if at == 0 else 1 for at in range(rank)]))
    if node.attr("mode", "linear") == "circular":
        places = builder.call("floor_mod", places, builder.size(past, axis))
    return node.call(
        "scatter_elements", past, builder.broadcast_to(places, builder.shape_tensor(update)), update, axis=axis
    )


@operator("OneHot")
def one_hot(node: Node) -> SSAValue:
    """Converts `OneHot`: negative indices count from the end, and those outside of the depth are nowhere."""
    builder = node.builder
    depth = builder.reshape(builder.call("cast", node[1], dtype="int64"), [])
    off, on = (builder.reshape(builder.call("take", node[2], builder.integers(at), axis=0), []) for at in (0, 1))
    at = builder.call("cast", node[0], dtype="int64")
    at = builder.call("where", builder.call("less", at, builder.integers(0)), builder.call("add", at, depth), at)
    rank, axis = node.rank(0), int(node.attr("axis", -1))
    if not -rank - 1 <= axis <= rank:
        raise node.refuse(f"axis {axis} is outside of a tensor of rank {rank + 1}")
    axis %= rank + 1
    known = builder.elements(depth)
    if known is not None and isinstance(known[0], int) and known[0] > 0:
        return builder.call("one_hot", at, on, off, depth=known[0], axis=axis)
    result = builder.call("dyn.one_hot", at, on, off, depth, axis=axis)
    sizes = list(builder.extents(at))
    sizes.insert(axis, builder.sizes.fresh() if known is None else known[0])
    return builder.sized(result, sizes)


@operator("Compress", since=9)
def compress(node: Node) -> SSAValue:
    """Converts `Compress`: the slices along an axis, or the elements, where a condition is true."""
    builder, x = node.builder, node[0]
    places = builder.call("squeeze", builder.call("argwhere", node[1]), axis=[1])
    if node.attr("axis") is None:
        return builder.call("take", builder.reshape(x, [-1]), places, axis=0)
    return builder.call("take", x, places, axis=node.axis(node.rank(0)))


@operator("TopK")
def top_k(node: Node) -> list[Value | None]:
    """Converts `TopK`: values and indices (int64) of the largest or smallest elements, in order."""
    builder, x = node.builder, node[0]
    axis = node.axis(node.rank(0), -1)
    settings = {"axis": axis, "ret_type": "both", "is_ascend": not node.attr("largest", 1), "dtype": "int64"}
    k = builder.reshape(node[1], []) if node.opset >= 10 else builder.integers(int(node.attr("k", 1)))
    known = builder.elements(k)
    count = None if known is None else known[0]
    if isinstance(count, int):
        # Relay's topk takes 0 to be all.
        found = builder.tuple_parts(builder.call("topk", x, k=max(count, 1), **settings))
        if count:
            return list(found)
        return [builder.call("strided_slice", each, begin=[0], end=[0], axes=[axis]) for each in found]
    sizes = list(builder.extents(x))
    sizes[axis] = builder.sizes.fresh() if count is None else count
    most = builder.call("minimum", builder.call("cast", k, dtype="int64"), builder.size(x, axis))
    one = builder.integers(1)
    found = builder.tuple_parts(builder.call("dyn.topk", x, builder.call("maximum", most, one), **settings))
    bounds = builder.integers([0]), builder.reshape(most, [1]), builder.integers([1])
    return [builder.sized(builder.call("dyn.strided_slice", each, *bounds, axes=[axis]), sizes) for each in found]


@operator("Unique", since=11)
def unique(node: Node) -> list[Value | None]:
    """Converts `Unique`: the distinct elements or slices, their first places, numbers and counts."""
    builder, x = node.builder, node[0]
    is_sorted = bool(node.attr("sorted", 1))
    if node.attr("axis") is None:
        flat = builder.reshape(x, [-1])
        values, *indices = _unique(builder, flat, is_sorted)
        return [values, *indices]
    axis = node.axis(node.rank(0))
    if builder.extents(x)[axis] == 0:
        raise node.refuse(f"axis {axis} has no elements")
    _, first, inverse, counts = _unique(builder, _ranks(node, x, axis, is_sorted), True)
    return [builder.call("take", x, first, axis=axis), first, inverse, counts]


def _unique(builder: GraphBuilder, flat: SSAValue, is_sorted: bool) -> list[SSAValue]:
    found = builder.tuple_parts(builder.call("unique", flat, sorted=is_sorted, return_counts=True))
    values, first, inverse, _, counts = found
    return [values, *(builder.call("cast", each, dtype="int64") for each in (first, inverse, counts))]


def _ranks(node: Node, x: SSAValue, axis: int, is_sorted: bool) -> SSAValue:
    """Returns a number for each slice along an axis: equal for equal slices, in their order.

    Slices are compared in pairs, element by element; without `is_sorted` they are ordered as they come first.
    """
    builder, rank = node.builder, node.rank(0)
    order = [axis, *(other for other in range(rank) if other != axis)]
    size = builder.extents(x)[axis]
    rows = builder.call("transpose", x, axes=order)
    rows = (
        builder.reshape(rows, [size, -1])
        if isinstance(size, int)
        else builder.call("nn.batch_flatten", rows)
        if rank > 1
        else builder.reshape(rows, [-1, 1])
    )
    here, there = builder.call("expand_dims", rows, axis=1), builder.call("expand_dims", rows, axis=0)
    differs = builder.call("not_equal", here, there)
    if not is_sorted:
        equal = builder.call("logical_not", builder.call("any", differs, axis=[2]))
        return builder.call("argmax", builder.call("cast", equal, dtype="int32"), axis=[1])
    # Where two slices differ first decides; of equal ones this is the first element, which is not above the other.
    place = builder.call("argmax", builder.call("cast", differs, dtype="int32"), axis=[2], keepdims=True)
    above = builder.call(
        "gather", builder.call("cast", builder.call("greater", here, there), dtype="int32"), place, axis=2
    )
    return builder.call("sum", above, axis=[1, 2])
