"""Converts ONNX operators that change shapes, cut, join and repeat tensors."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, groupby
from typing import cast

from xdsl.ir import SSAValue

from ....dialects.extents import MOST_EXTENT
from ....support.text import counted
from ...common.graph_builder import GraphBuilder
from ...common.open_sizes import Extent, OpenSize, computed, product, total
from ...common.slices import sliced, static_slice
from ..node import Node
from ..registry import operator
from ..values import Value

PADDINGS = ("constant", "reflect", "edge", "wrap")


def checked_axes(node: Node, axes: Sequence[int], rank: int) -> list[int]:
    """Returns axes counted from the first.

    Raises Refused for one outside of `rank`, or named twice.
    """
    for axis in axes:
        if not -rank <= axis < rank:
            raise node.refuse(f"axis {axis} is outside of a tensor of rank {rank}")
    found = [axis % rank for axis in axes]
    if len(set(found)) < len(found):
        raise node.refuse(f"the axes {list(axes)} name an axis twice")
    return found


def axes_of(node: Node, index: int) -> list[int] | None:
    """Returns the axes of an attribute, or from opset 13 on of input `index`; None without."""
    return node.ints("axes") if node.opset < 13 else node.integers(index, "the axes")


@operator("Reshape")
def reshape_by_attribute(node: Node) -> SSAValue:
    """Converts `Reshape` with the shape as an attribute: opsets 1 to 4."""
    return node.builder.reshape(node[0], node.ints("shape") or [], allowzero=False)


@operator("Reshape", since=5)
def reshape(node: Node) -> SSAValue:
    """Converts `Reshape`: static wherever the sizes are known, or are sizes of the data."""
    return node.builder.reshape(node[0], node[1], allowzero=bool(node.attr("allowzero", 0)))


@operator("Flatten")
def flatten(node: Node) -> SSAValue:
    """Converts `Flatten` to a reshape to two dimensions: (2,3,4), axis=2 -> (6,4)."""
    builder, x = node.builder, node[0]
    sizes, axis = builder.extents(x), int(node.attr("axis", 1))
    if not -len(sizes) <= axis <= len(sizes):
        raise node.refuse(f"axis {axis} is outside of a tensor of rank {len(sizes)}")
    axis += len(sizes) if axis < 0 else 0
    parts = [product(*part) for part in (sizes[:axis], sizes[axis:])]
    if all(isinstance(part, OpenSize) for part in parts):
        shape = builder.shape_tensor(x)
        ends = [
            builder.call("strided_slice", shape, begin=[low], end=[high])
            for low, high in ((0, axis), (axis, len(sizes)))
        ]
        products = [builder.call("prod", end, axis=[0], keepdims=True) for end in ends]
        return builder.reshape(x, builder.call("concatenate", builder.tuple(products), axis=0))
    return builder.reshape(x, [-1 if isinstance(part, OpenSize) else part for part in parts])


@operator("Squeeze")
def squeeze(node: Node) -> SSAValue:
    """Converts `Squeeze`; without axes all that are of size 1, which must be known."""
    x = node[0]
    if node.opset >= 13 and node.has(1) and node.builder.array(node[1]) is None:
        return node.call("dyn.squeeze", x, counted_from_first(node, node[1], node.rank(0)))
    axes, sizes = axes_of(node, 1), node.builder.extents(x)
    if axes is None:
        if any(isinstance(size, OpenSize) for size in sizes):
            raise node.refuse("without axes every dimension must be known, not open", "name the axes to remove")
        axes = [axis for axis, size in enumerate(sizes) if size == 1]
    axes = checked_axes(node, axes, len(sizes))
    return node.call("squeeze", x, axis=axes) if axes else x


@operator("Unsqueeze")
def unsqueeze(node: Node) -> SSAValue:
    """Converts `Unsqueeze`: axes are of the result."""
    if node.opset >= 13 and node.has(1) and node.builder.array(node[1]) is None:
        return _unsqueeze_at_run_time(node)
    axes = axes_of(node, 1) or []
    return expand_dims(node.builder, node[0], checked_axes(node, axes, node.rank(0) + len(axes)))


def counted_from_first(node: Node, axes: SSAValue, rank: int) -> SSAValue:
    """Creates axes (int64) counted from the first; negative ones count from the last of `rank`."""
    return node.call("floor_mod", node.call("cast", axes, dtype="int64"), node.builder.integers(rank))


def length(node: Node, value: SSAValue, what: str) -> int:
    """Returns the length of a vector, the number of `what`.

    Raises Refused where it is known only at run time.
    """
    sizes = node.builder.extents(value)
    size = sizes[0] if sizes else 1
    if not isinstance(size, int):
        raise node.refuse(f"the number of {what} must be known, not open")
    return size


def _unsqueeze_at_run_time(node: Node) -> SSAValue:
    """Inserts axes that are computed: of the new shape, a place that is named is 1."""
    builder, x = node.builder, node[0]
    rank = node.rank(0) + length(node, node[1], "axes")
    axes = builder.call("expand_dims", counted_from_first(node, builder.reshape(node[1], [-1]), rank), axis=1)
    named = builder.call("any", builder.call("equal", axes, builder.integers(list(range(rank)))), axis=[0])
    kept = builder.call("cast", builder.call("logical_not", named), dtype="int64")
    places = builder.call("subtract", builder.call("cumsum", kept, axis=0), builder.integers(1))
    if node.rank(0) == 0:
        return builder.reshape(x, [1] * rank)
    sizes = builder.call("take", builder.shape_tensor(x), places, axis=0)
    return builder.call("dyn.reshape", x, builder.call("where", named, builder.integers(1), sizes), allowzero=True)


def expand_dims(builder: GraphBuilder, value: SSAValue, axes: Sequence[int]) -> SSAValue:
    """Inserts axes of size 1, named by their places in the result."""
    for _, run in groupby(enumerate(sorted(axes)), key=lambda pair: pair[1] - pair[0]):
        places = [axis for _, axis in run]
        value = builder.call("expand_dims", value, axis=places[0], num_newaxis=len(places))
    return value


@operator("Concat")
def concat(node: Node) -> SSAValue:
    """Converts `Concat`."""
    tensors = node.tensors()
    axis = node.axis(node.rank(0), 1)
    if len(tensors) == 1:
        return tensors[0]
    return node.call("concatenate", node.builder.tuple(tensors), axis=axis)


# Parts ---------------------------------------------------------------------------------------------------------------


@operator("Split")
def split(node: Node) -> list[Value | None]:
    """Converts `Split`: parts of given sizes, or equal ones, of which the last may be smaller."""
    x, builder, count = node[0], node.builder, len(node.outputs)
    axis = node.axis(node.rank(0), 0)
    size = builder.extents(x)[axis]
    parts: list[Extent] | None = None
    if node.has(1):
        parts = builder.elements(node[1])
        if parts is None:
            return _cut_at_run_time(node, x, axis, builder.call("cumsum", node[1], axis=0, dtype="int64"), count)
    elif node.attr("split") is not None and node.opset < 13:
        parts = list[Extent](node.ints("split") or [])
    if parts is None:
        count = int(node.attr("num_outputs", count))
        part = computed(lambda whole: -(-whole // count), size)
        parts = [*[part] * (count - 1), computed(lambda whole, one: whole - one * (count - 1), size, part)]
    return list(split_into(node, x, axis, parts))


def split_into(node: Node, x: SSAValue, axis: int, parts: Sequence[Extent]) -> list[SSAValue]:
    """Splits a tensor into parts of these sizes along an axis.

    Raises Refused where they do not add up.
    """
    builder = node.builder
    size = builder.extents(x)[axis]
    whole = total(*parts)
    if isinstance(whole, int) and isinstance(size, int) and whole != size:
        raise node.refuse(f"the parts have {counted(whole, 'element')} along axis {axis}, and the data has {size}")
    if len(parts) == 1:
        return [x]
    if all(isinstance(part, int) for part in parts[:-1]):
        edges = list(accumulate(cast("Sequence[int]", parts[:-1])))
        if any(
            part < 0
            for part in (*cast("Sequence[int]", parts[:-1]), *([parts[-1]] if isinstance(parts[-1], int) else []))
        ):
            raise node.refuse(f"a part of axis {axis} would have a negative size")
        return builder.tuple_parts(builder.call("split", x, indices_or_sections=edges, axis=axis))
    if all(part == parts[0] for part in parts):
        return builder.tuple_parts(builder.call("split", x, indices_or_sections=len(parts), axis=axis))
    shape = builder.extents(x)
    if node.has(1):
        edges_tensor = builder.call("cumsum", node[1], axis=0, dtype="int64")
    else:
        one = builder.call(
            "floor_divide",
            builder.call("add", builder.size(x, axis), builder.integers(len(parts) - 1)),
            builder.integers(len(parts)),
        )
        edges_tensor = builder.call("multiply", one, builder.integers(list(range(1, len(parts) + 1))))
    found = cast("list[SSAValue]", _cut_at_run_time(node, x, axis, edges_tensor, len(parts)))
    return [
        builder.sized(each, [*shape[:axis], part, *shape[axis + 1 :]]) for each, part in zip(found, parts, strict=True)
    ]


def _cut_at_run_time(node: Node, x: SSAValue, axis: int, edges: SSAValue, count: int) -> list[Value | None]:
    """Cuts a tensor at places that are computed: the ends of the parts."""
    builder = node.builder
    begin = builder.integers([0])
    found: list[Value | None] = []
    for number in range(count):
        end = builder.call("strided_slice", edges, begin=[number], end=[number + 1])
        found.append(builder.call("dyn.strided_slice", x, begin, end, builder.integers([1]), axes=[axis]))
        begin = end
    return found


@operator("Slice")
def slice_by_attributes(node: Node) -> SSAValue:
    """Converts `Slice` with bounds as attributes: opsets 1 to 9."""
    starts = node.ints("starts") or []
    axes = checked_axes(node, node.ints("axes", list(range(len(starts)))) or [], node.rank(0))
    return static_slice(node.builder, node[0], axes, starts, node.ints("ends") or [], [1] * len(axes))


@operator("Slice", since=10)
def slice_(node: Node) -> SSAValue:
    """Converts `Slice`: static where the bounds are known or are the data's own sizes."""
    builder, rank = node.builder, node.rank(0)
    given = [builder.extents(node[place])[0] for place in (1, 2, 3, 4) if node.has(place)]
    count = next((each for each in given if isinstance(each, int)), None)
    computed_axes = node.has(3) and builder.array(node[3]) is None
    if computed_axes or count is None:
        bounds = [
            _of_every_axis(node, node.tensor(place), default) for place, default in ((1, 0), (2, MOST_EXTENT), (4, 1))
        ]
        return sliced(node.builder, node[0], list(range(rank)), *bounds)
    starts, ends = (builder.reshape(node[place], [count]) for place in (1, 2))
    steps = node[4] if node.has(4) else builder.integers([1] * count)
    axes = node.integers(3, "the axes")
    axes = list(range(count)) if axes is None else checked_axes(node, axes, rank)
    return sliced(node.builder, node[0], axes, starts, ends, builder.reshape(steps, [count]))


def _of_every_axis(node: Node, bounds: SSAValue | None, default: int) -> SSAValue:
    """Returns the bounds of all axes where the sliced axes, or their number, are computed."""
    builder, rank = node.builder, node.rank(0)
    defaults = builder.integers([default] * rank)
    if bounds is None:
        return defaults
    bounds = node.call("cast", bounds, dtype="int64")
    if node.has(3):
        return node.call("scatter_elements", defaults, counted_from_first(node, node[3], rank), bounds, axis=0)
    both = node.call("concatenate", builder.tuple([bounds, defaults]), axis=0)
    return node.call("take", both, builder.integers(list(range(rank))), axis=0)


# Repetition ----------------------------------------------------------------------------------------------------------


@operator("Expand")
def expand(node: Node) -> SSAValue:
    """Converts `Expand`: broadcasts both ways."""
    return expand_to(node.builder, node[0], node[1])


def expand_to(builder: GraphBuilder, x: SSAValue, shape: SSAValue) -> SSAValue:
    """Broadcasts a tensor and a shape with each other: (3,1) and [2,1,4] -> (2,3,4)."""
    wanted, own = builder.elements(shape), builder.extents(x)
    joint = list[Extent]()
    if wanted is not None:
        rank = max(len(wanted), len(own))
        pairs = zip([1] * (rank - len(own)) + list(own), [1] * (rank - len(wanted)) + wanted, strict=True)
        joint = [computed(_broadcast_size, size, target) for size, target in pairs]
        if all(isinstance(size, int) for size in joint):
            return builder.broadcast_to(x, cast("list[int]", joint))
        if joint == list(own):
            return x
        if joint == wanted:
            return builder.broadcast_to(x, shape)
    count = builder.extents(shape)[0]
    if isinstance(count, int):
        # Ones in front, so that both are of one rank.
        own_shape = builder.call("cast", builder.shape_tensor(x), dtype=builder.dtype(shape))
        own_shape, shape = (_with_ones(builder, each, max(count, len(own))) for each in (own_shape, shape))
        ones = builder.call("equal", shape, builder.constant(1, builder.dtype(shape)))
        shape = builder.call("where", ones, own_shape, shape)
    result = builder.call("dyn.broadcast_to", x, shape)
    return result if wanted is None else builder.sized(result, joint)


def _broadcast_size(size: int, target: int) -> int:
    return target if size == 1 else size


def _with_ones(builder: GraphBuilder, shape: SSAValue, rank: int) -> SSAValue:
    missing = rank - cast("int", builder.extents(shape)[0])
    if not missing:
        return shape
    ones = builder.constant([1] * missing, builder.dtype(shape))
    return builder.call("concatenate", builder.tuple([ones, shape]), axis=0)


@operator("Tile")
def tile_axis(node: Node) -> SSAValue:
    """Converts `Tile` of opset 1: `tiles` times along one axis."""
    tiles, axis = node.integers(1, "the number of tiles"), node.integers(2, "the axis")
    repeats = [1] * node.rank(0)
    repeats[(axis or [0])[0]] = (tiles or [1])[0]
    return tiled(node.builder, node[0], node.builder.integers(repeats))


@operator("Tile", since=6)
def tile(node: Node) -> SSAValue:
    """Converts `Tile`."""
    return tiled(node.builder, node[0], node[1])


def tiled(builder: GraphBuilder, x: SSAValue, repeats: SSAValue) -> SSAValue:
    """Repeats a tensor along each axis, by numbers that may be computed."""
    known, sizes = builder.elements(repeats), builder.extents(x)
    if known is not None and all(isinstance(each, int) and each > 0 for each in known):
        return x if all(each == 1 for each in known) else builder.call("tile", x, reps=cast("list[int]", known))
    result = builder.call("dyn.tile", x, repeats)
    if known is None:
        return result
    return builder.sized(result, [product(*pair) for pair in zip(sizes, known, strict=True)])


# Padding -------------------------------------------------------------------------------------------------------------


@operator("Pad")
def pad_by_attributes(node: Node) -> SSAValue:
    """Converts `Pad` with its widths as attributes: opsets 1 to 10."""
    widths = node.ints("pads") or node.ints("paddings") or []
    value = node.scalar(float(node.attr("value", 0.0)), node[0])
    return pad(node, node[0], widths, value)


@operator("Pad", since=11)
def pad_by_inputs(node: Node) -> SSAValue:
    """Converts `Pad`: in all modes, along all axes or those named."""
    builder, x = node.builder, node[0]
    value = node.scalar(0, x) if not node.has(2) else builder.reshape(node[2], [])
    pads = builder.call("cast", node[1], dtype="int64")
    if not node.has(3):
        return padded(node, x, list(range(node.rank(0))), pads, value)
    if builder.array(node[3]) is not None:
        return padded(node, x, checked_axes(node, node.integers(3) or [], node.rank(0)), pads, value)
    rank = node.rank(0)
    axes = counted_from_first(node, node[3], rank)
    both = builder.call("concatenate", builder.tuple([axes, builder.call("add", axes, builder.integers(rank))]), axis=0)
    every = builder.call("scatter_elements", builder.integers([0] * (2 * rank)), both, pads, axis=0)
    return padded(node, x, list(range(rank)), every, value)


def padded(node: Node, x: SSAValue, axes: Sequence[int], pads: SSAValue, value: SSAValue) -> SSAValue:
    """Pads axes of a tensor by widths that may be computed: those before each axis, then those after."""
    builder, rank, count = node.builder, node.builder.rank(x), len(axes)
    given_pads = builder.extents(pads)[0]
    if isinstance(given_pads, int) and given_pads != 2 * count:
        raise node.refuse(f"{counted(given_pads, 'pad')} for {counted(count, 'axis')}; there must be {2 * count}")
    given = builder.elements(pads)
    if given is not None and all(isinstance(each, int) for each in given):
        widths = [0] * (2 * rank)
        for at, axis in enumerate(axes):
            widths[axis], widths[rank + axis] = cast("int", given[at]), cast("int", given[count + at])
        return pad(node, x, widths, value)
    sizes = list(builder.extents(x))
    for at, axis in enumerate(axes):
        sizes[axis] = builder.sizes.fresh() if given is None else total(sizes[axis], given[at], given[count + at])
    mode = node.choice("mode", "constant", PADDINGS)
    if mode == "wrap":
        for at, axis in enumerate(axes):
            low, high = (builder.call("take", pads, builder.integers(place), axis=0) for place in (at, count + at))
            x = _wrapped(builder, x, axis, low, high, sizes[axis])
        return x
    pairs = builder.call("transpose", builder.reshape(pads, [2, count]), axes=[1, 0])
    if list(axes) != list(range(rank)):
        rows = [builder.integers([[0, 0]])] * rank
        for at, axis in enumerate(axes):
            rows[axis] = builder.call("strided_slice", pairs, begin=[at], end=[at + 1], axes=[0])
        pairs = builder.call("concatenate", builder.tuple(rows), axis=0)
    return builder.sized(builder.call("dyn.nn.pad", x, pairs, value, pad_mode=mode), sizes)


def _wrapped(builder: GraphBuilder, x: SSAValue, axis: int, low: SSAValue, high: SSAValue, size: Extent) -> SSAValue:
    """Repeats a tensor beyond both ends of an axis, to `size` elements."""
    end = builder.call("add", builder.size(x, axis), high)
    places = builder.call("arange", builder.call("negative", low), end, builder.integers(1), dtype="int64")
    wrapped = builder.call("take", x, places, axis=axis, mode="wrap")
    shape = builder.extents(x)
    return builder.sized(wrapped, [*shape[:axis], size, *shape[axis + 1 :]])


def pad(node: Node, x: SSAValue, widths: Sequence[int], value: SSAValue) -> SSAValue:
    """Pads a tensor: `widths` are those before each axis, then those after; negative ones cut off."""
    builder, rank = node.builder, node.rank(0)
    if len(widths) != 2 * rank:
        raise node.refuse(f"{counted(len(widths), 'pad')} for {counted(rank, 'axis')}; there must be {2 * rank}")
    mode = node.choice("mode", "constant", PADDINGS)
    pairs = list(zip(widths[:rank], widths[rank:], strict=True))
    if not any(widths):
        return x
    if mode == "constant":
        return builder.call("nn.pad", x, value, pad_width=pairs)
    x = _cut(builder, x, pairs)
    pairs = [(max(low, 0), max(high, 0)) for low, high in pairs]
    if not any(low or high for low, high in pairs):
        return x
    if mode in ("edge", "reflect"):
        return builder.call("nn.pad", x, value, pad_width=pairs, pad_mode=mode)
    for axis, (low, high) in enumerate(pairs):
        if low or high:
            size = total(builder.extents(x)[axis], low, high)
            x = _wrapped(builder, x, axis, builder.integers(low), builder.integers(high), size)
    return x


def _cut(builder: GraphBuilder, x: SSAValue, pairs: Sequence[tuple[int, int]]) -> SSAValue:
    """Cuts off what negative widths name."""
    axes = [axis for axis, pair in enumerate(pairs) if min(pair) < 0]
    if not axes:
        return x
    begin = [max(-pairs[axis][0], 0) for axis in axes]
    end = [pairs[axis][1] if pairs[axis][1] < 0 else MOST_EXTENT for axis in axes]
    return builder.call("strided_slice", x, begin=begin, end=end, strides=[1] * len(axes), axes=axes)


@operator("CenterCropPad")
def center_crop_pad(node: Node) -> SSAValue:
    """Converts `CenterCropPad`: cuts or pads both sides of axes, the odd element at the end."""
    builder, x = node.builder, node[0]
    axes = node.ints("axes")
    axes = list(range(node.rank(0))) if axes is None else checked_axes(node, axes, node.rank(0))
    wanted = builder.call("cast", node[1], dtype="int64")
    sizes = builder.call("take", builder.shape_tensor(x), builder.integers(axes), axis=0)
    zero, two = builder.integers(0), builder.integers(2)
    cut = builder.call("maximum", builder.call("subtract", sizes, wanted), zero)
    begin = builder.call("floor_divide", cut, two)
    end = builder.call("add", begin, builder.call("minimum", sizes, wanted))
    x = sliced(node.builder, x, axes, begin, end, builder.integers([1] * len(axes)))
    added = builder.call("maximum", builder.call("subtract", wanted, sizes), zero)
    low = builder.call("floor_divide", added, two)
    pads = builder.call("concatenate", builder.tuple([low, builder.call("subtract", added, low)]), axis=0)
    return padded(node, x, axes, pads, node.scalar(0, x))


@operator("Trilu", since=14)
def trilu(node: Node) -> SSAValue:
    """Converts `Trilu`: the elements on one side of a diagonal, the others 0."""
    builder, x = node.builder, node[0]
    rows, columns = (
        builder.call("arange", builder.integers(0), builder.size(x, axis), builder.integers(1), dtype="int64")
        for axis in (-2, -1)
    )
    k = builder.reshape(node[1], []) if node.has(1) else builder.integers(0)
    beyond = builder.call("subtract", columns, builder.call("expand_dims", rows, axis=1))
    kept = builder.call("greater_equal" if node.attr("upper", 1) else "less_equal", beyond, k)
    return builder.call("where", kept, x, node.scalar(0, x))
