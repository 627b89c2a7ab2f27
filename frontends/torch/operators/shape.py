"""Operators that change shapes: views, slices, concatenation, repetition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from ...common.refusal import Refused
from ..node import END, FxNode
from ..registry import operator


@operator("view", "_unsafe_view", "reshape")
def view(node: FxNode, x: SSAValue, size: Sequence[Any]) -> SSAValue:
    """Reshapes; of a computed size the shape that torch has inferred counts."""
    wanted = node.extents()
    static = node.builder.reshape_attributes(x, wanted)
    if static is not None:
        return node.reshaped(x)
    return node.builder.reshape(x, node.size_tensor(size))


@operator("permute")
def permute(node: FxNode, x: SSAValue, _dims: Any) -> SSAValue:
    """Returns a tensor of rank 0 as it is."""
    return x


@operator("transpose")
def transpose(node: FxNode, x: SSAValue, first: int, second: int) -> SSAValue:
    """Exchanges two axes."""
    return node.transposed(x, first, second)


@operator("t")
def t(node: FxNode, x: SSAValue) -> SSAValue:
    """Returns a vector as it is."""
    return x


@operator("squeeze")
def squeeze(node: FxNode, x: SSAValue, dims: Any = None) -> SSAValue:
    """Removes axes of size 1."""
    own = node.builder.extents(x)
    if isinstance(dims, list) and not dims:
        return x
    removed = [axis for axis in node.axes(dims, len(own)) if own and own[axis] == 1]
    return node.call("squeeze", x, axis=removed) if removed else x


@operator("expand")
def expand(node: FxNode, x: SSAValue, size: Sequence[Any], *_: Any) -> SSAValue:
    """Broadcasts; -1 leaves a dimension."""
    wanted = node.extents()
    if wanted == node.builder.extents(x):
        return x
    if all(isinstance(each, int) for each in wanted):
        return node.call("broadcast_to", x, shape=list(wanted))
    missing = len(size) - node.rank(x)
    full = [node.size_of(x, axis - missing) if each == -1 else each for axis, each in enumerate(size)]
    return node.builder.broadcast_to(x, node.size_tensor(full))


@operator("expand_as")
def expand_as(node: FxNode, x: SSAValue, like: SSAValue) -> SSAValue:
    """Broadcasts to the shape of a tensor."""
    return node.builder.broadcast_to(x, node.builder.shape_tensor(like))


def sliced(node: FxNode, x: SSAValue, axis: int, begin: Any, end: Any, step: int = 1) -> SSAValue:
    """Returns the elements begin:end:step along an axis."""
    if isinstance(begin, int) and isinstance(end, int):
        return node.call("strided_slice", x, begin=[begin], end=[end], strides=[step], axes=[axis])
    rank = node.rank(x)
    begins, ends, steps = [0] * rank, [END] * rank, [1] * rank
    begins[axis], ends[axis], steps[axis] = begin, end, step
    return node.call("dyn.strided_slice", x, *(node.size_tensor(each) for each in (begins, ends, steps)))


@operator("slice")
def slice_axis(node: FxNode, x: SSAValue, dim: int, begin: Any, end: Any, step: int) -> SSAValue:
    """Returns the elements begin:end:step along an axis."""
    begin, end = 0 if begin is None else begin, END if end is None else end
    if begin == 0 and step == 1 and node.extents() == node.builder.extents(x):
        return x
    return sliced(node, x, dim % node.rank(x), begin, end, step)


@operator("select")
def select(node: FxNode, x: SSAValue, dim: int, index: Any) -> SSAValue:
    """Returns one slice, without its axis."""
    axis = dim % node.rank(x)
    if isinstance(index, SSAValue):
        return node.call("take", x, index, axis=axis, mode="wrap")
    found = sliced(node, x, axis, index, END if index == -1 else index + 1)
    return node.call("squeeze", found, axis=[axis])


@operator("cat")
def cat(node: FxNode, tensors: Sequence[SSAValue], dim: int = 0) -> SSAValue:
    """Concatenates; vectors without elements do not count."""
    dtype = node.dtype()
    rank = len(node.extents())
    kept = [
        each for each in tensors if node.rank(each) == rank and not (rank > 1 and node.builder.extents(each) == (0,))
    ]
    kept = [node.cast(each, dtype) for each in kept]
    return kept[0] if len(kept) == 1 else node.call("concatenate", node.builder.tuple(kept), axis=dim % max(rank, 1))


@operator("stack")
def stack(node: FxNode, tensors: Sequence[SSAValue], dim: int = 0) -> SSAValue:
    """Concatenates along a new axis."""
    return node.call("stack", node.builder.tuple([node.cast(each, node.dtype()) for each in tensors]), axis=dim)


@operator("split_with_sizes", "split")
def split(node: FxNode, x: SSAValue, sizes: Any, dim: int = 0) -> list[SSAValue]:
    """Cuts a tensor into parts; of a size that is computed, the last part may be smaller."""
    axis = dim % node.rank(x)
    if isinstance(sizes, SSAValue):
        sizes = [sizes] * len(node.fx.meta["val"])
    if isinstance(sizes, int):
        sizes = [part.shape[axis] for part in node.fx.meta["val"]]
    if len(sizes) == 1:
        return [x]
    if all(isinstance(each, int) for each in sizes):
        places = [int(each) for each in np.cumsum(sizes)[:-1]]
        return node.builder.tuple_parts(node.call("split", x, indices_or_sections=places, axis=axis))
    parts: list[SSAValue] = []
    begin: Any = 0
    for size in sizes:
        end = node.call("add", node.tensor(begin, "int64"), node.tensor(size, "int64"))
        parts.append(sliced(node, x, axis, begin, end))
        begin = end
    return parts


@operator("repeat")
def repeat(node: FxNode, x: SSAValue, repeats: Sequence[Any]) -> SSAValue:
    """Repeats the tensor as a whole."""
    for _ in range(len(repeats) - node.rank(x)):
        x = node.call("expand_dims", x, axis=0)
    counts = node.sizes(repeats)
    if isinstance(counts, SSAValue):
        return node.call("dyn.tile", x, counts)
    return x if all(count == 1 for count in counts) else node.call("tile", x, reps=counts)


@operator("flip")
def flip(node: FxNode, x: SSAValue, dims: Sequence[int]) -> SSAValue:
    """Reverses the order along axes."""
    for dim in dims:
        if node.rank(x):
            x = node.call("reverse", x, axis=dim % node.rank(x))
    return x


@operator("diagonal")
def diagonal(node: FxNode, x: SSAValue, offset: int, first: int, second: int) -> SSAValue:
    """Returns a diagonal of two axes as the last axis, gathered from the flattened axes."""
    rank = node.rank(x)
    first, second = first % rank, second % rank
    shape = node.static(x)
    rows, columns = shape[first], shape[second]
    count = max(0, min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns))
    places = np.arange(count) * (columns + 1) + (offset if offset >= 0 else -offset * columns)
    rest = [axis for axis in range(rank) if axis not in (first, second)]
    x = node.call("transpose", x, axes=[*rest, first, second])
    x = node.call("reshape", x, newshape=[*(shape[axis] for axis in rest), rows * columns], allowzero=True)
    return node.call("take", x, node.builder.integers(places.tolist()), axis=len(rest))


@operator("sym_size")
def sym_size(node: FxNode, x: SSAValue, dim: int) -> Any:
    """Returns a size: a number, or a tensor of rank 0."""
    return node.size_of(x, dim % node.rank(x))


@operator("sym_numel")
def sym_numel(node: FxNode, x: SSAValue) -> Any:
    """Returns the number of elements."""
    shape = node.builder.static_shape(x)
    return node.call("ndarray_size", x, dtype="int64") if shape is None else int(np.prod(shape, dtype=np.int64))


@operator("sym_stride")
def sym_stride(node: FxNode, x: SSAValue, dim: int) -> Any:
    """Returns the distance of neighbours along an axis: tensors are row-major here."""
    found: Any = 1
    for axis in range(dim % node.rank(x) + 1, node.rank(x)):
        size = node.size_of(x, axis)
        if isinstance(size, int) and isinstance(found, int):
            found = found * size
        else:
            found = node.call("multiply", node.tensor(found, "int64"), node.tensor(size, "int64"))
    return found


@operator("sym_storage_offset")
def sym_storage_offset(node: FxNode, x: SSAValue) -> int:
    """Returns 0: each tensor has memory of its own here."""
    return 0


@operator("slice_scatter")
def slice_scatter(node: FxNode, x: SSAValue, source: SSAValue, dim: int, begin: Any, end: Any, step: int) -> SSAValue:
    """Replaces elements begin:end:step along an axis: of step 1 by slices around the source."""
    axis = dim % node.rank(x)
    size = node.builder.extents(x)[axis]
    begin, end = 0 if begin is None else begin, END if end is None else end
    source = node.cast(source, node.dtype())
    # None where the elements that are replaced are known only at run time.
    places: range | None = None
    if isinstance(size, int) and isinstance(begin, int) and isinstance(end, int):
        places = range(size)[begin:end:step]
    if places is not None and not places:
        return x
    if step == 1:
        before = [] if begin == 0 else [sliced(node, x, axis, 0, begin)]
        after = [] if end == END or (places is not None and places.stop == size) else [sliced(node, x, axis, end, END)]
        parts = [*before, source, *after]
        return source if len(parts) == 1 else node.call("concatenate", node.builder.tuple(parts), axis=axis)
    if places is None or not isinstance(size, int):
        raise Refused(f"a step of {step} along a dimension that is known only at run time")
    # Each place is taken from the tensor or, after it, from the source.
    order = np.arange(size)
    order[places.start : places.stop : step] = size + np.arange(len(places))
    both = node.call("concatenate", node.builder.tuple([x, source]), axis=axis)
    return node.call("take", both, node.builder.array_constant(order), axis=axis)


@operator("select_scatter")
def select_scatter(node: FxNode, x: SSAValue, source: SSAValue, dim: int, index: int) -> SSAValue:
    """Replaces one slice."""
    axis = dim % node.rank(x)
    source = node.call("expand_dims", node.cast(source, node.dtype()), axis=axis)
    return slice_scatter(node, x, source, axis, index, END if index == -1 else index + 1, 1)


@operator("constant_pad_nd")
def constant_pad_nd(node: FxNode, x: SSAValue, pad: Sequence[Any], value: Any = 0) -> SSAValue:
    """Pads with a number, or cuts off where a width is negative; widths begin at the last axis."""
    rank = node.rank(x)
    widths = [[0, 0] for _ in range(rank)]
    numbers = [node.number(each, "a width") for each in pad]
    for place in range(len(numbers) // 2):
        widths[rank - 1 - place] = numbers[2 * place : 2 * place + 2]
    if any(each < 0 for axis in widths for each in axis):
        begins = [max(0, -before) for before, _ in widths]
        ends = [after if after < 0 else END for _, after in widths]
        x = node.call("strided_slice", x, begin=begins, end=ends, strides=[1] * rank, axes=list(range(rank)))
        widths = [[max(0, before), max(0, after)] for before, after in widths]
    if not any(each for axis in widths for each in axis):
        return x
    return node.call("nn.pad", x, node.tensor(value, node.builder.dtype(x)), pad_width=widths)
