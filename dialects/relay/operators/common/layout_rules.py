"""Defines the layout rules of operators; `layouts.layout_rule_of` finds them.

The rules are those of TVM's FInferCorrectLayout. An operator without one (reshape, softmax) takes its arguments as they
were written. A rule refuses a new layout by returning the old one.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DYNAMIC_INDEX

from ...layouts import (
    SCALAR,
    Layout,
    Layouts,
    LayoutUse,
    blocks_of_one,
    last_dims,
    layout_rule,
    of_dims,
    place_of,
    transformed_like,
)
from ...operator import AttrValue
from ..conv.convolution import weight_layout
from .layout_strings import layout, parse_layout

CHANNELS = layout("C")
"""The layout of vectors of one element per channel: scales, zero points, means."""


# Elementwise and broadcast operators -----------------------------------------------------------------------------------


@layout_rule(
    "exp", "fast_exp", "log", "log2", "log10", "sqrt", "rsqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "fast_tanh",
    "asin", "acos", "atan", "asinh", "acosh", "atanh", "erf", "fast_erf", "sigmoid", "floor", "ceil", "trunc", "round", "nearbyint",
    "sign", "abs", "negative", "logical_not", "bitwise_not", "isnan", "isinf", "isfinite", "copy", "zeros_like",
    "ones_like", "full_like", "clip", "cast", "cast_like", "reinterpret", "fixed_point_multiply", "nn.relu",
    "nn.leaky_relu", "annotation.stop_fusion",
)  # fmt: skip
def elementwise(use: LayoutUse) -> Layouts | None:
    """Keeps any layout of the first argument; the others only lend their type."""
    ret = use.new[0] if use.new else use.old[0]
    if ret is None or use.counts[0] != 1:
        return None
    return Layouts([ret, *_as_they_come(use, 1)], [ret])


@layout_rule("nn.dropout")
def _dropout(use: LayoutUse) -> Layouts | None:
    ret = use.new[0] if use.new else use.old[0]
    return None if ret is None else Layouts([ret], [ret, ret])


@layout_rule(
    "add", "subtract", "multiply", "divide", "trunc_divide", "floor_divide", "mod", "trunc_mod", "floor_mod", "power",
    "maximum", "minimum", "left_shift", "right_shift", "bitwise_and", "bitwise_or", "bitwise_xor", "logical_and",
    "logical_or", "logical_xor", "equal", "not_equal", "less", "less_equal", "greater", "greater_equal",
)  # fmt: skip
def broadcast(use: LayoutUse) -> Layouts | None:
    """Keeps the layout of the argument of more dimensions; the other one follows as far as it has them."""
    shapes = use.shape(0), use.shape(1)
    if shapes[0] is None or shapes[1] is None:
        return None
    ranks = [len(shapes[0]), len(shapes[1])]
    largest = 0 if ranks[0] >= ranks[1] else 1
    written = list(use.old[:2])
    for known, unknown in ((0, 1), (1, 0)):
        source = written[known]
        if written[unknown] is None and source is not None and ranks[known] >= ranks[unknown]:
            written[unknown] = _broadcast_along(source, (shapes[0], shapes[1])[unknown])
    first, second = written
    if first is None or second is None:
        return None
    if use.new is None:
        return Layouts([first, second], [(first, second)[largest]])
    leader = 0 if len(use.new[0].axes) >= len(use.new[1].axes) else 1
    follower = (first, second)[1 - leader]
    target = transformed_like(follower, (first, second)[leader], use.new[leader])
    shape = shapes[1 - leader]
    if target is None or shape is None:
        return None
    target = blocks_of_one(target, follower, shape)
    if target is None:
        return None
    inputs = [use.new[leader], target] if leader == 0 else [target, use.new[leader]]
    # The leader need not be the argument of more dimensions, whose layout the result has.
    return Layouts(inputs, [inputs[largest]])


def _broadcast_along(known: Layout, shape: Sequence[int]) -> Layout | None:
    """Returns the layout of a tensor that is broadcast with one of a known layout.

    It is that of the last dimensions, with a block of 1 for a dimension of one element.
    """
    last = last_dims(known, len(shape))
    sizes = zip(last.dims, shape, strict=True) if last else ()
    return last and of_dims([(letter, block and (1 if size == 1 else block)) for (letter, block), size in sizes])


@layout_rule("qnn.add", "qnn.subtract", "qnn.mul")
def _quantized_broadcast(use: LayoutUse) -> Layouts | None:
    if not _all_scalars(use, 2):
        return None
    found = broadcast(use)
    return found and Layouts([*found.inputs, *_as_they_come(use, 2)], found.outputs)


@layout_rule(
    "qnn.exp", "qnn.sqrt", "qnn.rsqrt", "qnn.erf", "qnn.log", "qnn.sigmoid", "qnn.tanh", "qnn.hardswish", "qnn.abs",
    "qnn.leaky_relu",
)  # fmt: skip
def _quantized_elementwise(use: LayoutUse) -> Layouts | None:
    return elementwise(use) if _all_scalars(use, 1) else None


# Operators with an axis ------------------------------------------------------------------------------------------------------


@layout_rule("nn.batch_norm")
def _batch_norm(use: LayoutUse) -> Layouts | None:
    found = _with_axis(use)
    return found and Layouts([found[0], *[CHANNELS] * 4], [found[0], CHANNELS, CHANNELS], {"axis": found[1]})


@layout_rule("nn.layer_norm")
def _layer_norm(use: LayoutUse) -> Layouts | None:
    found = _with_axis(use)
    return found and Layouts([found[0], CHANNELS, CHANNELS], [found[0]], {"axis": found[1]})


@layout_rule("nn.bias_add")
def _bias_add(use: LayoutUse) -> Layouts | None:
    found = _with_axis(use)
    return found and Layouts([found[0], CHANNELS], [found[0]], {"axis": found[1]})


@layout_rule("fixed_point_multiply_per_axis")
def _fixed_point_multiply_per_axis(use: LayoutUse) -> Layouts | None:
    """Follows the axis of multipliers and shifts, where there is one axis: they are vectors along it."""
    old = use.old[0]
    axes: tuple[int, ...] = use.attrs.axes
    if old is None or len(axes) != 1:
        return None
    place = axes[0] % len(old.dims)
    letter, block = old.dims[place]
    moved = None if use.new is None or block is not None else place_of(use.new[0], letter)
    if use.new is None or moved is None:
        return Layouts([old, *[CHANNELS] * 3], [old], {"axes": (place,)})
    return Layouts([use.new[0], *[CHANNELS] * 3], [use.new[0]], {"axes": (moved,)})


@layout_rule("nn.instance_norm", "nn.group_norm")
def _norm_by_batch(use: LayoutUse) -> Layouts | None:
    """Keeps layouts whose first dimension is the batch; follows the axis as `layer_norm`."""
    old = use.old[0]
    if old is None or (use.new and (not use.new[0].dims or use.new[0].dims[0] != old.dims[0])):
        return _stay(use, [CHANNELS, CHANNELS])
    return _layer_norm(use)


@layout_rule("qnn.requantize", "qnn.quantize", "qnn.dequantize")
def _requantize(use: LayoutUse) -> Layouts | None:
    if _all_scalars(use, 1):
        # The axis has no effect, and may not even be an axis of the tensor.
        return elementwise(use)
    found = _with_axis(use)
    rest = [CHANNELS] * (len(use.types) - 1)
    return found and Layouts([found[0], *rest], [found[0]], {"axis": found[1]})


@layout_rule("nn.prelu")
def _prelu(use: LayoutUse) -> Layouts | None:
    return _stay(use, [CHANNELS])


@layout_rule("nn.l2_normalize")
def _l2_normalize(use: LayoutUse) -> Layouts | None:
    old = use.old[0]
    if old is None:
        return None
    if use.new is None or use.attrs.axis is None:
        return _stay(use, []) if use.new is None else Layouts(use.new, use.new)
    given: tuple[int, ...] = use.attrs.axis
    axes = [place_of(use.new[0], old.dims[axis][0]) for axis in given]
    if any(axis is None for axis in axes):
        return _stay(use, [])
    return Layouts(use.new, use.new, {"axis": tuple(axes)})


def _with_axis(use: LayoutUse) -> tuple[Layout, int] | None:
    """Returns the first argument's layout, new if its attribute `axis` is whole there, and that axis."""
    old = use.old[0]
    if old is None:
        return None
    axis: int = use.attrs.axis % len(old.dims)
    if use.new is not None:
        place = place_of(use.new[0], old.dims[axis][0])
        if place is not None and old.dims[axis][1] is None:
            return use.new[0], place
    return old, axis


@layout_rule("sum", "prod", "max", "min", "all", "any", "mean", "variance", "argmax", "argmin")
def _reduce(use: LayoutUse) -> Layouts | None:
    """Axes are followed by name; a reduced block is reduced with its axis."""
    old = use.old[0]
    if old is None:
        return None
    rank = len(old.dims)
    given = {axis % rank for axis in use.attrs.axis or range(rank)} if rank else set[int]()
    reduced = set(range(rank)) - given if use.attrs.exclude else given
    axes = {old.dims[axis][0] for axis in reduced}
    ret = use.new[0] if use.new else old
    if ret != old and reduced != {d for d, (letter, _) in enumerate(old.dims) if letter in axes}:
        ret = old  # part of a split axis
    places = [d for d, (letter, _) in enumerate(ret.dims) if letter in axes] if ret != old else sorted(reduced)
    if ret != old and "select_last_index" in use.attrs and len(places) != 1:
        # The index of an element among several axes depends on their order.
        ret, places = old, sorted(reduced)
    kept = [(letter, block and 1) if d in places else (letter, block) for d, (letter, block) in enumerate(ret.dims)]
    means = of_dims(kept)
    left = [dim for d, dim in enumerate(ret.dims) if d not in places]
    out = means if use.attrs.keepdims else of_dims(left)
    if out is None or means is None:
        return None
    inputs = [ret]
    if len(use.types) == 2:  # variance is given the mean, its axes kept
        inputs.append(means)
    attrs: dict[str, AttrValue] = {}
    if ret != old:
        # Empty axes would mean all axes.
        attrs = {"axis": tuple(places), "exclude": False} if places else {}
    return Layouts(inputs, [out], attrs)


# Operators that move, cut and join --------------------------------------------------------------------------------------------


@layout_rule("transpose")
def _transpose(use: LayoutUse) -> Layouts | None:
    old = use.old[0]
    if old is None:
        return None
    rank = len(old.dims)
    axes = [axis % rank for axis in (use.attrs.axes or range(rank - 1, -1, -1))]
    out = of_dims([old.dims[axis] for axis in axes])
    if out is None:
        return None
    if use.new is not None and sorted(use.new[0].dims, key=str) == sorted(old.dims, key=str):
        places = tuple(use.new[0].dims.index(old.dims[axis]) for axis in axes)
        return Layouts(use.new, [out], {"axes": places})
    return Layouts([old], [out])


@layout_rule("squeeze")
def _squeeze(use: LayoutUse) -> Layouts | None:
    old, shape = use.old[0], use.shape(0)
    if old is None or shape is None:
        return None
    axes: Sequence[int] = [d for d, n in enumerate(shape) if n == 1] if use.attrs.axis is None else use.attrs.axis
    letters = {old.dims[axis][0] for axis in axes}
    gone = {axis % len(shape) for axis in axes}
    if use.new is not None and all(place_of(use.new[0], old.dims[axis][0]) is not None for axis in axes):
        ret = use.new[0]
        places = [d for d, (letter, _) in enumerate(ret.dims) if letter in letters]
        out = of_dims([dim for d, dim in enumerate(ret.dims) if d not in places])
        return out and Layouts([ret], [out], {"axis": tuple(places)})
    out = of_dims([dim for d, dim in enumerate(old.dims) if d not in gone])
    return out and Layouts([old], [out])


@layout_rule("nn.pad")
def _pad(use: LayoutUse) -> Layouts | None:
    old = use.old[0]
    if old is None:
        return None
    if use.new is None or any(block is not None for _, block in old.dims):
        return _stay(use, [SCALAR])
    widths = {letter: use.attrs.pad_width[d] for d, (letter, _) in enumerate(old.dims)}
    ret = use.new[0]
    if any(block is not None and any(widths[letter]) for letter, block in ret.dims):
        return _stay(use, [SCALAR])
    width = tuple(tuple(widths[letter]) if block is None else (0, 0) for letter, block in ret.dims)
    return Layouts([ret, SCALAR], [ret], {"pad_width": width})


@layout_rule("strided_slice")
def _strided_slice(use: LayoutUse) -> Layouts | None:
    old = use.old[0]
    if old is None:
        return None
    attrs = None if use.new is None or use.new[0] == old else _slices(use, old, use.new[0])
    return _stay(use, []) if attrs is None or use.new is None else Layouts(use.new, use.new, attrs)


def _slices(use: LayoutUse, old: Layout, new: Layout) -> dict[str, AttrValue] | None:
    """Returns the attributes of a slice in the new layout; None where it cuts through blocks."""
    shape = use.shape(0)
    if shape is None or any(block is not None for _, block in old.dims):
        return None
    sized = use.attrs.slice_mode == "size"
    begins, ends = list(use.attrs.begin), list(use.attrs.end)
    axes = range(len(begins)) if use.attrs.axes is None else use.attrs.axes
    strides = [*(() if sized else use.attrs.strides or ()), *[1] * len(begins)][: len(begins)]
    places: list[int] = []
    for i, axis in enumerate(axes):
        letter = old.dims[axis][0]
        block = new.block(letter)
        places.append(new.places(letter)[0])
        if block == 1:
            continue
        whole = sized and ends[i] == -1
        beyond = not sized and ends[i] >= shape[axis] != DYNAMIC_INDEX
        end = shape[axis] if beyond else ends[i]
        if strides[i] != 1 or begins[i] % block or (end % block and not whole):
            return None
        begins[i], ends[i] = begins[i] // block, -1 if whole else end // block
    return {"begin": begins, "end": ends, "strides": strides, "axes": places}


@layout_rule("split")
def _split(use: LayoutUse) -> Layouts | None:
    old, shape = use.old[0], use.shape(0)
    if old is None or shape is None:
        return None
    axis: int = use.attrs.axis % len(shape)
    parts: int | tuple[int, ...] = use.attrs.indices_or_sections
    sections = parts if isinstance(parts, int) else None
    cuts: tuple[int, ...] = () if isinstance(parts, int) else parts
    count = len(cuts) + 1 if sections is None else sections
    letter, whole = old.dims[axis]
    if use.new is not None and whole is None and old != use.new[0]:
        block = use.new[0].block(letter)
        place = use.new[0].places(letter)[0]
        if block == 1:
            return Layouts(use.new, [use.new[0]] * count, {"axis": place})
        if sections is None:
            if not any(index % block for index in cuts):
                indices = tuple(index // block for index in cuts)
                return Layouts(use.new, [use.new[0]] * count, {"axis": place, "indices_or_sections": indices})
        elif shape[axis] != DYNAMIC_INDEX and not shape[axis] % (block * sections):
            return Layouts(use.new, [use.new[0]] * count, {"axis": place})
    return Layouts([old], [old] * count)


@layout_rule("concatenate")
def _concatenate(use: LayoutUse) -> Layouts | None:
    """Keeps a new layout that all tensors share, otherwise the old one of the first that is known."""
    count = use.counts[0]
    old = next((known for known in use.old[:count] if known is not None), None)
    shape = use.shape(0) if count else None
    if old is None or shape is None or len(old.dims) != len(shape):
        return None
    axis: int = use.attrs.axis % len(shape)
    letter, block = old.dims[axis]
    rest = _as_they_come(use, count)
    if use.new is not None and block is None and len(set(use.new[:count])) == 1:
        ret = use.new[0]
        if letter in ret.axes:
            return Layouts([*[ret] * count, *rest], [ret], {"axis": ret.places(letter)[0]})
    if block is not None:
        return None
    return Layouts([*[old] * count, *rest], [old], {"axis": axis})


@layout_rule("qnn.concatenate")
def _quantized_concatenate(use: LayoutUse) -> Layouts | None:
    return _concatenate(use) if _all_scalars(use, use.counts[0]) else None


@layout_rule("slice_like")
def _slice_like(use: LayoutUse) -> Layouts | None:
    first, second = use.old
    if first is None or first != second:
        return None
    if use.new is None or use.new[0] != use.new[1]:
        return Layouts([first, first], [first])
    ret = use.new[0]
    axes: Sequence[int] | None = use.attrs.axes
    places = None if axes is None else tuple(ret.places(first.dims[axis][0])[0] for axis in axes)
    return Layouts([ret, ret], [ret], {"axes": places})


# Operators with layout attributes ------------------------------------------------------------------------------------------------


@layout_rule(
    "nn.conv1d", "nn.conv2d", "nn.conv3d", "nn.conv1d_transpose", "nn.conv2d_transpose", "nn.conv3d_transpose",
    "nn.contrib_conv2d_NCHWc", "nn.contrib_depthwise_conv2d_NCHWc", "nn.deformable_conv2d", "qnn.conv2d",
    "qnn.conv2d_transpose", "image.dilation2d",
)  # fmt: skip
def _convolution(use: LayoutUse) -> Layouts | None:
    data, kernel = layout(use.attrs.data_layout), weight_layout(use.attrs, use.shape(1) or ())
    out = layout(use.attrs.get("out_layout") or use.attrs.data_layout)
    if "deformable_groups" in use.attrs:
        return Layouts([data, data, layout(use.attrs.kernel_layout)], [out])
    return Layouts([data, kernel, *[CHANNELS] * (len(use.types) - 2)], [out])


@layout_rule(
    *[f"nn.{kind}_pool{d}d" for kind in ("max", "avg", "global_max", "global_avg", "adaptive_max", "adaptive_avg") for d in (1, 2, 3)],
    "qnn.avg_pool2d", "image.resize1d", "image.resize2d", "image.resize3d", "nn.upsampling", "nn.upsampling3d",
)  # fmt: skip
def _window(use: LayoutUse) -> Layouts | None:
    """Keeps any layout of the same axes in which the spatial ones are whole."""
    own = layout(use.attrs.layout)
    rest = [CHANNELS] * (len(use.types) - 1)
    if use.attrs.get("out_layout"):
        return Layouts([own, *rest], [layout(use.attrs.out_layout)])
    if use.new is not None:
        ret = use.new[0]
        spatial = [letter for letter in own.axes if letter not in "NC"]
        if sorted(ret.axes) == sorted(own.axes) and all(place_of(ret, letter) is not None for letter in spatial):
            return Layouts([ret, *rest], [ret], {"layout": ret.text})
    return Layouts([own, *rest], [own])


@layout_rule("vision.roi_align", "vision.roi_pool", "image.crop_and_resize")
def _boxes(use: LayoutUse) -> Layouts | None:
    """Keeps the layout of the data; each box has its result in place of the batch."""
    own = layout(use.attrs.layout)
    return Layouts([own, *[layout("BX"), layout("B")][: len(use.types) - 1]], [own])


@layout_rule("nn.dense")
def _dense(use: LayoutUse) -> Layouts | None:
    shape = use.shape(0)
    rows = layout("NC")
    return Layouts([rows, rows], [rows]) if shape is not None and len(shape) == 2 else None


@layout_rule("nn.contrib_dense_pack")
def _dense_pack(use: LayoutUse) -> Layouts | None:
    weight = parse_layout(use.attrs.weight_layout)
    return weight and Layouts([layout("NC"), weight], [layout("NC")])


def _stay(use: LayoutUse, rest: Sequence[Layout]) -> Layouts | None:
    """Returns the first argument as it was written."""
    old = use.old[0]
    return None if old is None else Layouts([old, *rest], [old])


def _as_they_come(use: LayoutUse, start: int) -> list[Layout]:
    """Returns the layouts that arguments from `start` on have, whichever they are."""
    return [*use.new[start:]] if use.new else [known or SCALAR for known in use.old[start:]]


def _all_scalars(use: LayoutUse, start: int) -> bool:
    """Returns whether arguments from `start` on are scalars: quantization parameters of the whole tensor."""
    return all(use.shape(index) == () for index in range(start, len(use.types)))
