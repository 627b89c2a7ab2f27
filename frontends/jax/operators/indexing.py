"""Reads and writes at computed places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from xdsl.ir import SSAValue

from ...common.open_sizes import Extent
from ...common.refusal import Refused
from ..node import HloNode
from ..registry import operator
from ..stablehlo import FieldsAttr
from .bodies import body_text
from .control_flow import Written, row_read, row_written
from .shape import counted, sliced


def _index(node: HloNode, value: SSAValue) -> SSAValue:
    """Returns places in a dtype that places have here."""
    return value if node.builder.dtype(value) in ("int32", "int64") else node.call("cast", value, dtype="int64")


def _limited(node: HloNode, start: SSAValue, most: int | SSAValue) -> SSAValue:
    """Returns the first places of slices, moved so that the slices are inside."""
    dtype = node.builder.dtype(start)
    limit = node.constant(most, dtype) if isinstance(most, int) else node.cast(most, dtype)
    return node.call("minimum", node.call("maximum", start, node.constant(0, dtype)), limit)


def _span(node: HloNode, start: SSAValue, length: int) -> SSAValue:
    """Returns the places of a slice along a new last axis."""
    dtype = node.builder.dtype(start)
    places = node.constant(np.arange(length), dtype)
    return node.call("add", node.call("expand_dims", start, axis=node.builder.rank(start)), places)


@operator("dynamic_slice")
def dynamic_slice(node: HloNode) -> SSAValue:
    """Returns a slice of known size whose place is computed."""
    sizes = node.ints("slice_sizes")
    row = row_read(node, sizes)
    if row is not None:
        return row
    x, *starts = node.operands
    own = node.builder.extents(x)
    for axis, (start, length) in enumerate(zip(starts, sizes, strict=True)):
        if length == own[axis]:
            continue
        size = node.size(x, axis, "the size of an axis that a slice is taken of")
        known = node.builder.array(start)
        if known is not None:
            first = max(0, min(int(known), size - length))
            begins, ends = [0] * len(own), [2**63 - 1] * len(own)
            begins[axis], ends[axis] = first, first + length
            x = sliced(node, x, begins, ends)
        else:
            places = _span(node, _limited(node, _index(node, start), size - length), length)
            x = node.call("take", x, places, axis=axis)
    return x


@operator("dynamic_update_slice")
def dynamic_update_slice(node: HloNode) -> SSAValue | Written:
    """Replaces a slice at a place that is computed."""
    return row_written(node, update_slice) or update_slice(node)


def update_slice(node: HloNode) -> SSAValue:
    """Replaces a slice: by concatenation where its place is known, otherwise element by element."""
    x, update, *starts = node.operands
    b = node.builder
    sizes = node.static(update, "a slice that is written")
    axes = [axis for axis, length in enumerate(sizes) if b.extents(x)[axis] != length]
    if not axes:
        return update
    if 0 in sizes:
        return x
    known = b.array(starts[axes[0]])
    if len(axes) == 1 and known is not None:
        return _spliced(node, x, update, axes[0], int(known))
    taken, inside = update, list[SSAValue]()
    rank = len(sizes)
    for axis in axes:
        size = node.size(x, axis, "the size of an axis that a slice is written to")
        start = _limited(node, _index(node, starts[axis]), size - sizes[axis])
        dtype = b.dtype(start)
        place = node.call("subtract", node.constant(np.arange(size), dtype), start)
        taken = node.call("take", taken, place, axis=axis)
        after = node.call("greater_equal", place, node.constant(0, dtype))
        before = node.call("less", place, node.constant(sizes[axis], dtype))
        within = node.call("logical_and", after, before)
        inside.append(node.call("reshape", within, newshape=[size, *[1] * (rank - 1 - axis)]))
    mask = inside[0]
    for each in inside[1:]:
        mask = node.call("logical_and", mask, each)
    return node.call("where", mask, taken, x)


def _spliced(node: HloNode, x: SSAValue, update: SSAValue, axis: int, start: int) -> SSAValue:
    """Replaces a slice, shorter than the tensor along one axis, at a known place."""
    size, length = node.size(x, axis, "the size of an axis"), node.size(update, axis, "the size of a slice")
    start = max(0, min(start, size - length))
    parts = [update]
    if start > 0:
        parts.insert(0, node.call("strided_slice", x, begin=[0], end=[start], strides=[1], axes=[axis]))
    if start + length < size:
        parts.append(node.call("strided_slice", x, begin=[start + length], end=[size], strides=[1], axes=[axis]))
    return node.call("concatenate", node.builder.tuple(parts), axis=axis)


def _components(node: HloNode, indices: SSAValue, axis: int) -> list[SSAValue]:
    """Returns the components of index vectors, which are along an axis or, without one, single numbers."""
    b = node.builder
    if axis == b.rank(indices):
        return [indices]
    count = node.size(indices, axis, "the length of index vectors")
    if count == 0:
        raise Refused("its index vectors have no elements")
    if count == 1:
        return [node.call("squeeze", indices, axis=[axis])]
    return [node.call("take", indices, b.constant(place, "int32"), axis=axis) for place in range(count)]


def _counts(node: HloNode, like: SSAValue, axis: int, dtype: str) -> SSAValue:
    """Returns 0, 1, 2, … along an axis of a tensor, of a shape that is broadcast with the tensor's."""
    size = node.size(like, axis, "the size of a batch")
    return node.constant(np.arange(size).reshape([size, *[1] * (node.builder.rank(like) - 1 - axis)]), dtype)


@operator("gather", "dynamic_gather")
def gather(node: HloNode) -> SSAValue:
    """Gathers slices at index vectors."""
    fields = node.fields("dimension_numbers")
    x, indices = node.operands[:2]
    b = node.builder
    sizes: Sequence[Extent] = node.ints("slice_sizes") if node.name == "gather" else node.sizes(node.operands[2])
    own = b.extents(x)
    batching = fields.axes("operand_batching_dims")
    removed = fields.axes("collapsed_slice_dims") + batching
    parts = _components(node, _index(node, indices), fields.number("index_vector_dim"))
    batch_rank = b.rank(parts[0])
    starts = _starts(node, fields, "start_index_map", "operand_batching_dims", "start_indices_batching_dims", parts)
    # Axes that slices contain whole are not indexed, except one where slices are the whole tensor.
    whole = [axis for axis, size in enumerate(own) if axis not in removed and sizes[axis] == size]
    if len(whole) == len(own):
        whole.remove(min(starts))
    indexed = [axis for axis in range(len(own)) if axis not in whole]
    windows = [axis for axis in indexed if axis not in removed]
    places: list[SSAValue] = []
    for axis in indexed:
        start = starts.get(axis)
        if start is None:
            start = node.constant(0, "int32")
        elif axis not in batching:
            start = _limited(node, start, _last_start(node, x, axis, sizes[axis]))
        places.append(_window(node, start, axis, sizes[axis]) if axis in windows else start)
    places = _aligned(node, places, [axis in windows for axis in indexed], batch_rank)
    found, at = _taken(node, x, indexed, whole, places, batch_rank + len(windows))
    labels = [("x", axis) for axis in whole]
    labels[at:at] = [*(("batch", axis) for axis in range(batch_rank)), *(("x", axis) for axis in windows)]
    offsets = fields.axes("offset_dims")
    batch = iter(range(batch_rank))
    window = iter(axis for axis in range(len(own)) if axis not in removed)
    wanted = [
        ("x", next(window)) if axis in offsets else ("batch", next(batch)) for axis in range(batch_rank + len(offsets))
    ]
    return node.transposed(found, [labels.index(each) for each in wanted])


def _last_start(node: HloNode, x: SSAValue, axis: int, length: Extent) -> int | SSAValue:
    """Returns the last place along an axis where a slice of `gather` is inside."""
    b = node.builder
    size = b.extents(x)[axis]
    if isinstance(length, int) and isinstance(size, int):
        return size - length
    if isinstance(length, int):
        taken = b.constant(length, "int64")
    else:
        taken = node.cast(node.call("take", node.operands[2], node.constant(axis, "int32"), axis=0), "int64")
    return node.call("subtract", b.size(x, axis), taken)


def _window(node: HloNode, start: SSAValue, axis: int, length: Extent) -> SSAValue:
    """Returns the places of a slice of `gather` along a new last axis."""
    if isinstance(length, int):
        return _span(node, start, length)
    b = node.builder
    span = node.cast(counted(node, node.operands[2], axis, length), b.dtype(start))
    return node.call("add", node.call("expand_dims", start, axis=b.rank(start)), span)


def _starts(
    node: HloNode, fields: FieldsAttr, mapped: str, batching: str, indices_batching: str, parts: Sequence[SSAValue]
) -> dict[int, SSAValue]:
    """Returns by axis where slices begin: components of index vectors, or the place in the batch."""
    found = dict(zip(fields.axes(mapped), parts, strict=False))
    vector = fields.number("index_vector_dim")
    for axis, of_indices in zip(fields.axes(batching), fields.axes(indices_batching), strict=True):
        at = of_indices - (of_indices > vector)
        found[axis] = _counts(node, parts[0], at, node.builder.dtype(parts[0]))
    return found


def _aligned(node: HloNode, places: Sequence[SSAValue], spans: Sequence[bool], batch: int) -> list[SSAValue]:
    """Returns places as they are broadcast: the axes of the batch first, then one for each span."""
    count = sum(spans)
    found: list[SSAValue] = []
    number = 0
    for each, is_span in zip(places, spans, strict=True):
        rank = node.builder.rank(each)
        behind = count
        if is_span:
            missing = batch + 1 - rank
            if missing:
                each = node.call("expand_dims", each, axis=0, num_newaxis=missing)
            if number:
                each = node.call("expand_dims", each, axis=batch, num_newaxis=number)
            number += 1
            behind -= number
        if behind and (is_span or rank):
            each = node.call("expand_dims", each, axis=node.builder.rank(each), num_newaxis=behind)
        found.append(each)
    return found


def _taken(
    node: HloNode, x: SSAValue, indexed: Sequence[int], free: Sequence[int], places: Sequence[SSAValue], rank: int
) -> tuple[SSAValue, int]:
    """Returns the slices at places, and where the axes of places are among the free ones."""
    b = node.builder
    if len(indexed) == 1:
        axis = indexed[0]
        return node.call("take", x, places[0], axis=axis), axis
    x = node.transposed(x, [*indexed, *free])
    if max(b.rank(each) for each in places) < rank:
        first = places[0]
        places = [node.call("expand_dims", first, axis=0, num_newaxis=rank - b.rank(first)), *places[1:]]
    return node.call("adv_index", b.tuple([x, *places])), 0


_MODES = {
    "a1": "update",
    "add(a0,a1)": "add",
    "multiply(a0,a1)": "mul",
    "minimum(a0,a1)": "min",
    "maximum(a0,a1)": "max",
}


@operator("scatter")
def scatter(node: HloNode) -> SSAValue:
    """Replaces slices at index vectors, or combines with them; slices that are not inside are left out."""
    if len(node.given) != 3:
        raise Refused("several tensors at once cannot be written here")
    fields = node.fields("scatter_dimension_numbers")
    x, indices, updates = node.operands
    b = node.builder
    body = body_text(node, node.op.regions[0].block)
    mode = _MODES.get(body[0] if len(body) == 1 else "")
    if mode is None:
        raise Refused(f"it combines elements by {', '.join(body)}; only sums, products and extremes, or none")
    if b.dtype(x) == "bool":
        if mode in ("add", "mul"):
            mode = "max" if mode == "add" else "min"
        x, updates = (node.cast(each, "int8") for each in (x, updates))
    own, given = node.static(x), node.static(updates, "the update")
    inserted = fields.axes("inserted_window_dims") + fields.axes("input_batching_dims")
    parts = _components(node, _index(node, indices), fields.number("index_vector_dim"))
    starts = _starts(
        node, fields, "scatter_dims_to_operand_dims", "input_batching_dims", "scatter_indices_batching_dims", parts
    )
    batch_rank = b.rank(parts[0])
    update_axes = fields.axes("update_window_dims")
    window_axes = [axis for axis in range(len(own)) if axis not in inserted]
    axis_in_update = dict(zip(window_axes, update_axes, strict=True))
    lengths = {axis: given[at] for axis, at in axis_in_update.items()}
    free = [axis for axis in window_axes if axis not in starts and lengths[axis] == own[axis]]
    indexed = [axis for axis in range(len(own)) if axis not in free]
    windows = [axis for axis in indexed if axis in lengths]
    dtype = b.dtype(parts[0])
    valid = _all_inside(node, starts, {axis: own[axis] - lengths.get(axis, 1) for axis in starts})
    places: list[SSAValue] = []
    for axis in indexed:
        start = starts.get(axis, node.constant(0, dtype))
        if valid is not None and not places:
            # A slice that is not inside is left out by a place after the end.
            start = node.call("where", valid, start, node.constant(own[axis], dtype))
        places.append(_span(node, start, lengths[axis]) if axis in lengths else start)
    places = _aligned(node, places, [axis in windows for axis in indexed], batch_rank)
    batch = [at for at in range(len(given)) if at not in update_axes]
    common = [*(given[at] for at in batch), *(lengths[axis] for axis in windows)]
    stacked = node.call("stack", b.tuple([b.broadcast_to(each, common) for each in places]), axis=0)
    updates = node.transposed(updates, [*batch, *(axis_in_update[axis] for axis in (*windows, *free))])
    order = [*indexed, *free]
    found = node.call("scatter_nd", node.transposed(x, order), stacked, updates, mode=mode)
    return node.cast(node.transposed(found, [order.index(axis) for axis in range(len(order))]), node.dtype())


def _all_inside(node: HloNode, starts: Mapping[int, SSAValue], last: Mapping[int, int]) -> SSAValue | None:
    """Returns which slices are inside, from 0 to the last of their axis; None without places."""
    found: SSAValue | None = None
    for axis, start in starts.items():
        dtype = node.builder.dtype(start)
        inside = node.call(
            "logical_and",
            node.call("greater_equal", start, node.constant(0, dtype)),
            node.call("less_equal", start, node.constant(last[axis], dtype)),
        )
        found = inside if found is None else node.call("logical_and", found, inside)
    return found
