"""Reads and writes at computed indices."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from ....dialects.array import numpy_dtype
from ....dialects.relay.operators.common._lazy import numeric
from ..node import FxNode
from ..registry import operator
from .creation import filled
from .shape import sliced


def _from_end(node: FxNode, index: SSAValue, size: Any) -> SSAValue:
    """Returns indices of which negative ones count from the end."""
    index = node.cast(index, "int64")
    zero = node.builder.constant(0, "int64")
    return node.call(
        "where", node.call("less", index, zero), node.call("add", index, node.tensor(size, "int64")), index
    )


def places_of(node: FxNode, mask: SSAValue) -> list[SSAValue]:
    """Returns the places of elements that are not 0, a vector for each axis."""
    places = node.cast(node.call("argwhere", node.cast(mask, "bool")), "int64")
    return [node.call("take", places, node.builder.constant(axis, "int64"), axis=1) for axis in range(node.rank(mask))]


def _expanded(node: FxNode, indices: Sequence[SSAValue | None]) -> list[SSAValue | None]:
    """Replaces masks of bool by the indices of what they select, one for each of their axes."""
    found: list[SSAValue | None] = []
    for index in indices:
        if index is not None and node.builder.dtype(index) in ("bool", "uint8"):
            found += places_of(node, index)
        else:
            found.append(index)
    return found


def _moved(node: FxNode, x: SSAValue, indices: Sequence[SSAValue | None]) -> tuple[list[int], int, list[SSAValue]]:
    """Returns the axes, indexed ones first, the place of the indices' axes in the result, and indices."""
    places = [axis for axis, index in enumerate(indices) if index is not None]
    order = [*places, *(axis for axis in range(node.rank(x)) if axis not in places)]
    adjacent = places == list(range(places[0], places[0] + len(places)))
    taken = [_from_end(node, index, node.size_of(x, axis)) for axis, index in enumerate(indices) if index is not None]
    return order, places[0] if adjacent else 0, taken


@operator("index", "_unsafe_index")
def index(node: FxNode, x: SSAValue, indices: Sequence[SSAValue | None]) -> SSAValue:
    """Returns the elements at tensors of indices, or where a mask is true."""
    indices = _expanded(node, indices)
    if all(each is None for each in indices):
        return x
    order, place, taken = _moved(node, x, indices)
    if len(taken) == 1:
        return node.call("take", x, taken[0], axis=order[0])
    if order != sorted(order):
        x = node.call("transpose", x, axes=order)
    found = node.call("adv_index", node.builder.tuple([x, *taken]))
    count = max(node.rank(each) for each in taken)
    if place:
        rest = node.rank(found) - count
        axes = [*range(count, count + place), *range(count), *range(count + place, count + rest)]
        found = node.call("transpose", found, axes=axes)
    return found


@operator("index_put", "_unsafe_index_put")
def index_put(
    node: FxNode, x: SSAValue, indices: Sequence[SSAValue | None], values: SSAValue, accumulate: bool = False
) -> SSAValue:
    """Replaces the elements at tensors of indices, or where a mask is true; or adds to them."""
    given = [each for each in indices if each is not None]
    if not given:
        return node.builder.broadcast_to(values, node.builder.shape_tensor(x))
    masks = [each for each in given if node.builder.dtype(each) == "bool"]
    if len(given) == 1 and masks and not accumulate and node.builder.static_shape(values) in ((), (1,)):
        mask = masks[0]
        before = next(axis for axis, each in enumerate(indices) if each is not None)
        for _ in range(node.rank(x) - before - node.rank(mask)):
            mask = node.call("expand_dims", mask, axis=-1)
        return node.call("where", mask, node.call("reshape", values, newshape=[]), x)
    order, place, taken = _moved(node, x, _expanded(node, indices))
    count = max(node.rank(each) for each in taken)
    common = _common_sizes(node, taken)
    rest = [node.size_of(x, axis) for axis in order[len(taken) :]]
    full = [*rest[:place], *common, *rest[place:]]
    values = _spread(node, node.cast(values, node.builder.dtype(x)), full)
    if place:
        axes = [*range(place, place + count), *range(place), *range(place + count, len(full))]
        values = node.call("transpose", values, axes=axes)
    moved = x if order == sorted(order) else node.call("transpose", x, axes=order)
    spread = [_spread(node, each, common) for each in taken]
    at = node.call("stack", node.builder.tuple(spread), axis=0)
    found = node.call("scatter_nd", moved, at, values, mode="add" if accumulate else "update")
    back = [order.index(axis) for axis in range(len(order))]
    return found if order == sorted(order) else node.call("transpose", found, axes=back)


def _common_sizes(node: FxNode, tensors: Sequence[SSAValue]) -> list[Any]:
    """Returns the sizes to which tensors are broadcast; an open one is a tensor of rank 0.

    Raises Refused where two open sizes are not known to be equal.
    """
    rank = max(map(node.rank, tensors))
    common: list[Any] = []
    for axis in range(-rank, 0):
        found = {
            node.builder.extents(each)[axis]: node.size_of(each, axis) for each in tensors if node.rank(each) >= -axis
        }
        known = [size for size in found if isinstance(size, int) and size != 1]
        opened = [size for extent, size in found.items() if not isinstance(extent, int)]
        if len(opened) > 1 and not known:
            raise node.refuse("indices of several open sizes cannot be broadcast here")
        common.append([*known, *opened, 1][0])
    return common


def _spread(node: FxNode, value: SSAValue, sizes: Sequence[Any]) -> SSAValue:
    """Broadcasts to sizes of which some may be computed."""
    if all(isinstance(each, int) for each in sizes):
        return node.call("broadcast_to", value, shape=list(sizes))
    return node.builder.broadcast_to(value, node.size_tensor(sizes))


@operator("histc")
def histogram(node: FxNode, x: SSAValue, bins: int = 100, least: Any = 0, most: Any = 0) -> SSAValue:
    """Counts elements in parts of equal width between two numbers, or of equal ones, between the extremes."""
    b = node.builder
    dtype = b.dtype(x)
    flat = node.call("reshape", x, newshape=[-1])
    low, high = (node.tensor(each, dtype) for each in (least, most))
    if least == most:
        one = b.constant(1, dtype)
        low, high = (node.call(name, flat, axis=[0]) for name in ("min", "max"))
        is_one = node.call("equal", low, high)
        low, high = (
            node.call("where", is_one, node.call(name, each, one), each)
            for name, each in (("subtract", low), ("add", high))
        )
    distance = node.call("multiply", node.call("subtract", flat, low), b.constant(bins, dtype))
    place = node.call("cast", node.call("divide", distance, node.call("subtract", high, low)), dtype="int64")
    place = node.call("minimum", place, b.constant(bins - 1, "int64"))
    is_inside = node.call("logical_and", node.call("greater_equal", flat, low), node.call("less_equal", flat, high))
    # Elements outside are counted nowhere: an index outside of the tensor is not written.
    place = node.call("where", is_inside, place, b.constant(bins, "int64"))
    zeros = node.call("full", b.constant(0, dtype), shape=[bins], dtype=dtype)
    at = node.call("expand_dims", place, axis=0)
    return node.call("scatter_nd", zeros, at, node.call("ones_like", flat), mode="add")


@operator("index_select")
def index_select(node: FxNode, x: SSAValue, dim: int, places: SSAValue) -> SSAValue:
    """Selects of a number, or by one index."""
    if node.rank(x) == 0:
        return x
    if node.rank(places) == 0:
        places = node.call("reshape", places, newshape=[1])
    return node.call("take", x, places, axis=dim)


@operator("gather")
def gather(node: FxNode, x: SSAValue, dim: int, places: SSAValue, *_: Any) -> SSAValue:
    """Gathers along an axis; along the others as many elements as there are indices."""
    rank = node.rank(x)
    if rank == 0 or node.rank(places) == 0:
        vector = node.call("reshape", x, newshape=[-1])
        return node.call("reshape", node.call("take", vector, places, axis=0), newshape=[0] * node.rank(places))
    axis = dim % rank
    own, given = node.builder.extents(x), node.builder.extents(places)
    for other in range(rank):
        if other != axis and own[other] != given[other]:
            x = sliced(node, x, other, 0, node.size_of(places, other))
    return node.call("gather", x, places, axis=axis)


def _scatter(node: FxNode, x: SSAValue, dim: int, places: SSAValue, source: SSAValue, reduction: str) -> SSAValue:
    rank = node.rank(x)
    if rank == 0:
        x, places, source = (node.call("reshape", each, newshape=[1]) for each in (x, places, source))
        return node.call("reshape", _scatter(node, x, 0, places, source, reduction), newshape=[])
    if node.rank(places) == 0:
        places, source = (node.call("reshape", each, newshape=[1]) for each in (places, source))
    own, given = node.builder.static_shape(places), node.builder.static_shape(source)
    if own is not None and 0 in own:
        return x
    if own is not None and given is not None and own != given:
        source = node.call("strided_slice", source, begin=[0] * rank, end=list(own), strides=[1] * rank)
    dtype = node.builder.dtype(x)
    if dtype == "bool":
        found = node.call("cast", x, dtype="int8")
        return node.cast(_scatter(node, found, dim, places, node.call("cast", source, dtype="int8"), reduction), "bool")
    return node.call("scatter_elements", x, places, node.cast(source, dtype), axis=dim % rank, reduction=reduction)


@operator("scatter")
def scatter(node: FxNode, x: SSAValue, dim: int, places: SSAValue, source: Any) -> SSAValue:
    """Replaces elements along an axis by a tensor's or by a number."""
    if not isinstance(source, SSAValue):
        value = node.builder.constant(source, node.builder.dtype(x))
        shape = node.builder.static_shape(places)
        if shape is None:
            source = node.call("dyn.broadcast_to", value, node.builder.shape_tensor(places))
        else:
            source = node.call("broadcast_to", value, shape=list(shape)) if shape else value
    return _scatter(node, x, dim, places, source, "update")


@operator("scatter_add")
def scatter_add(node: FxNode, x: SSAValue, dim: int, places: SSAValue, source: SSAValue) -> SSAValue:
    """Adds to elements along an axis."""
    return _scatter(node, x, dim, places, source, "add")


@operator("scatter_reduce")
def scatter_reduce(
    node: FxNode, x: SSAValue, dim: int, places: SSAValue, source: SSAValue, reduce: str, includes_self: bool = True
) -> SSAValue:
    """Reduces into elements along an axis; without those of the tensor itself where it says so."""
    dtype = node.builder.dtype(x)
    own = node.builder.static_shape(places)
    if own is not None and 0 in own:
        return x
    mode = {"sum": "add", "mean": "add", "prod": "mul", "amax": "max", "amin": "min"}[reduce]
    ones = node.call("ones_like", source)
    if not includes_self:
        is_int = "float" not in dtype
        limits = np.iinfo(dtype) if is_int and dtype != "bool" else None
        least, most = (limits.min, limits.max) if limits is not None else (-inf, inf) if not is_int else (0, 1)
        neutral = {"add": 0, "mul": 1, "max": least, "min": most}[mode]
        fill = node.call("full_like", source, node.builder.constant(neutral, dtype))
        x = _scatter(node, x, dim, places, fill, "update")
    found = _scatter(node, x, dim, places, source, mode)
    if reduce != "mean":
        return found
    counts = node.call("ones_like", x)
    if not includes_self:
        counts = _scatter(node, counts, dim, places, node.call("zeros_like", source), "update")
    counts = _scatter(node, counts, dim, places, ones, "add")
    counts = node.call("maximum", counts, node.builder.constant(1, dtype))
    return node.call("divide" if "float" in dtype else "floor_divide", found, counts)


@operator("masked_scatter")
def masked_scatter(node: FxNode, x: SSAValue, mask: SSAValue, source: SSAValue) -> SSAValue:
    """Replaces the elements where a mask is true by those of a tensor, in order."""
    shape = node.builder.shape_tensor(x)
    mask = node.builder.broadcast_to(mask, shape)
    flat = node.call("reshape", node.cast(mask, "int64"), newshape=[-1])
    place = node.call("subtract", node.call("cumsum", flat, axis=0, dtype="int64"), node.builder.constant(1, "int64"))
    taken = node.call("take", node.call("reshape", source, newshape=[-1]), place, axis=0)
    return node.call("where", mask, node.builder.reshape(taken, shape), x)


@operator("nonzero")
def nonzero(node: FxNode, x: SSAValue) -> SSAValue:
    """Returns the places of elements that are not 0."""
    if node.rank(x) == 0:
        raise node.refuse("the places of a number cannot be computed here")
    return node.cast(node.call("argwhere", node.cast(x, "bool")), "int64")


@operator("_embedding_bag", "_embedding_bag_forward_only")
def embedding_bag(
    node: FxNode, weight: SSAValue, indices: SSAValue, offsets: SSAValue, _scale: bool = False, mode: int = 0, _sparse: bool = False,
    factors: SSAValue | None = None, has_last: bool = False, padding_index: int = -1,
) -> list[SSAValue | None]:  # fmt: skip
    """Returns sums, means or maxima of bags of rows. Raises Refused where the other results are used."""
    if any(node.uses(k) for k in (1, 2, 3)):
        raise node.refuse("of an embedding of bags only the first result can be computed here")
    b = node.builder
    length, dtype = node.static(indices, "the indices")[0], b.dtype(weight)
    bags, width = (node.number(each, "a size") for each in node.extents(0))
    indices, offsets = node.cast(indices, "int64"), node.cast(offsets, "int64")
    if has_last:
        offsets = node.call("strided_slice", offsets, begin=[0], end=[bags], strides=[1])
    rows = node.call("take", weight, indices, axis=0)
    if factors is not None:
        rows = node.call("multiply", rows, node.call("expand_dims", factors, axis=1))
    places = b.integers(list(range(length)))
    bag = node.call("searchsorted", offsets, places, right=True, dtype="int64")
    bag = node.call("subtract", bag, b.constant(1, "int64"))
    kept = node.call("full", b.constant(1, dtype), shape=[length], dtype=dtype)
    if padding_index >= 0:
        # Rows of padding go to no bag: an index outside of the tensor is not written.
        is_padding = node.call("equal", indices, b.constant(padding_index, "int64"))
        bag = node.call("where", is_padding, b.constant(bags, "int64"), bag)
    at = node.call("expand_dims", bag, axis=0)
    least = numeric.lowest(numpy_dtype(dtype)) if mode == 2 else 0
    start = node.call("full", b.constant(least, dtype), shape=[bags, width], dtype=dtype)
    found = node.call("scatter_nd", start, at, rows, mode="max" if mode == 2 else "add")
    zeros = node.call("full", b.constant(0, dtype), shape=[bags], dtype=dtype)
    counts = node.call("expand_dims", node.call("scatter_nd", zeros, at, kept, mode="add"), axis=1)
    if mode == 1:
        found = node.call("divide", found, node.call("maximum", counts, b.constant(1, dtype)))
    if mode == 2:
        found = node.call("where", node.call("equal", counts, b.constant(0, dtype)), b.constant(0, dtype), found)
    return [found, None, None, None]


@operator("embedding_dense_backward")
def embedding_gradient(
    node: FxNode, gradient: SSAValue, indices: SSAValue, count: Any, padding_index: Any, by_frequency: bool
) -> SSAValue:
    """Adds rows of the gradient to the rows that were read."""
    rows = node.number(count, "the number of rows")
    width = node.static(gradient)[-1]
    dtype = node.builder.dtype(gradient)
    flat = node.call("reshape", node.cast(indices, "int64"), newshape=[-1])
    given = node.call("reshape", gradient, newshape=[-1, width])
    at = node.call("expand_dims", flat, axis=0)
    if by_frequency:
        ones = node.call("ones_like", node.cast(flat, dtype))
        zeros = node.call("full", node.builder.constant(0, dtype), shape=[rows], dtype=dtype)
        counts = node.call("take", node.call("scatter_nd", zeros, at, ones, mode="add"), flat, axis=0)
        given = node.call("divide", given, node.call("expand_dims", counts, axis=1))
    kept = node.call("not_equal", flat, node.builder.constant(padding_index, "int64"))
    given = node.call("where", node.call("expand_dims", kept, axis=1), given, node.builder.constant(0, dtype))
    return node.call("scatter_nd", filled(node, [rows, width], 0), at, given, mode="add")
