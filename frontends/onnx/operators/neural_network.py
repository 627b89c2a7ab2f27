"""Converts ONNX operators: convolutions, pooling, normalizations, losses.

Conv(x, w, b, pads=[1,1,1,1])      →  nn.bias_add(nn.conv2d(%x, %w, padding=[1, 1, 1, 1]), %b)
MaxPool(x, auto_pad="SAME_UPPER")  →  nn.max_pool2d(%x, padding=…)      the padding follows from the size, or is computed
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.ir import SSAValue

from ....support.text import counted
from ...common.open_sizes import Extent
from ..node import Node
from ..registry import operator

if TYPE_CHECKING:
    from ..values import Value

AUTO_PADS = ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")

WIDE = ("float32", "float64")
"""The dtypes in which statistics are computed; narrower ones are converted to the first."""


def spatial_rank(node: Node, most: int = 3) -> int:
    """Returns the number of spatial axes of input 0. Raises Refused above `most`, and for none."""
    rank = node.rank(0) - 2
    if not 1 <= rank <= most:
        raise node.refuse(f"the data has rank {rank + 2}; it must have rank 3 to {most + 2}")
    return rank


def widened(node: Node, value: SSAValue) -> SSAValue:
    """Returns a value in a dtype that is wide enough for statistics."""
    return value if node.builder.dtype(value) in WIDE else node.call("cast", value, dtype=WIDE[0])


def cast_to(node: Node, value: SSAValue, dtype: str) -> SSAValue:
    """Returns a value in a dtype; itself if it is of that one."""
    return value if node.builder.dtype(value) == dtype else node.call("cast", value, dtype=dtype)


def along_axis(node: Node, vector: SSAValue, axis: int, rank: int) -> SSAValue:
    """Returns a tensor whose first axis is `axis` of a tensor of `rank`, so that it broadcasts to it."""
    more = rank - axis - node.builder.rank(vector)
    return vector if more <= 0 else node.call("expand_dims", vector, axis=-1, num_newaxis=more)


# Windows ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Window:
    """The windows of a convolution or pooling along its spatial axes."""

    kernel: Sequence[int]
    strides: Sequence[int]
    dilations: Sequence[int]
    before: Sequence[int]
    after: Sequence[int]

    @property
    def reach(self) -> list[int]:
        """The places from the first to the last element of a window, by axis."""
        return [(k - 1) * d + 1 for k, d in zip(self.kernel, self.dilations, strict=True)]

    @property
    def padding(self) -> list[int]:
        """The padding as Relay has it."""
        return [*self.before, *self.after]

    def with_ceil(self) -> Window:
        """Returns the window whose padding at the end makes the number of places as `ceil_mode` does.

        Places are counted up to the stride's last part, but a window must not begin after the elements and the padding before them.
        """
        after = [
            min(pad + stride - 1, reach - 1)
            for pad, stride, reach in zip(self.after, self.strides, self.reach, strict=True)
        ]
        return Window(self.kernel, self.strides, self.dilations, self.before, after)


def padded_window(node: Node, x: SSAValue, kernel: Sequence[int], fill: float = 0.0) -> tuple[SSAValue, Window]:
    """Returns the data, and the windows that a node's attributes describe.

    Where `auto_pad` depends on a size that is known at run time, the data is padded here.
    """
    rank = len(kernel)
    ones = [1] * rank
    strides, dilations = node.ints("strides") or ones, node.ints("dilations") or ones
    pads = node.ints("pads") or [0] * (2 * rank)
    if not len(strides) == len(dilations) == rank or len(pads) != 2 * rank:
        raise node.refuse(f"strides, dilations and pads must fit {counted(rank, 'spatial axis')}")
    mode = node.choice("auto_pad", "NOTSET", AUTO_PADS)
    if mode == "VALID":
        pads = [0] * (2 * rank)
    window = Window(kernel, strides, dilations, pads[:rank], pads[rank:])
    if mode not in ("SAME_UPPER", "SAME_LOWER"):
        return x, window
    totals: list[int] = []
    for size, stride, reach in zip(node.builder.extents(x)[2:], strides, window.reach, strict=True):
        if stride == 1:
            totals.append(reach - 1)
        elif isinstance(size, int):
            totals.append(max((-(-size // stride) - 1) * stride + reach - size, 0))
        else:
            padded = _pad_to_same(node, x, window, fill, upper=mode == "SAME_UPPER")
            return padded, Window(kernel, strides, dilations, [0] * rank, [0] * rank)
    small, large = [total // 2 for total in totals], [total - total // 2 for total in totals]
    before, after = (small, large) if mode == "SAME_UPPER" else (large, small)
    return x, Window(kernel, strides, dilations, before, after)


def _pad_to_same(node: Node, x: SSAValue, window: Window, fill: float, *, upper: bool) -> SSAValue:
    """Pads so that there are size / stride places, rounded up, along each spatial axis; sizes of run time."""
    builder, rank = node.builder, len(window.kernel)
    size = node.call("strided_slice", builder.shape_tensor(x), begin=[2], end=[2 + rank], strides=[1])
    stride, reach = builder.integers(window.strides), builder.integers(window.reach)
    places = node.call(
        "floor_divide", node.call("add", size, builder.integers([s - 1 for s in window.strides])), stride
    )
    last = node.call("multiply", node.call("subtract", places, builder.integers(1)), stride)
    total = node.call("subtract", node.call("add", last, reach), size)
    total = node.call("maximum", total, builder.integers(0))
    small = node.call("floor_divide", total, builder.integers(2))
    large = node.call("subtract", total, small)
    both = node.call("stack", builder.tuple([small, large] if upper else [large, small]), axis=1)
    widths = node.call("concatenate", builder.tuple([builder.integers([[0, 0], [0, 0]]), both]), axis=0)
    return node.call("dyn.nn.pad", x, widths, node.scalar(fill, x))


# Convolutions ----------------------------------------------------------------------------------------------------------


def _kernel(node: Node, weight: SSAValue) -> list[int]:
    """Returns the sizes of a weight's window."""
    stated = node.ints("kernel_shape")
    own = node.builder.extents(weight)[2:]
    if stated and len(stated) == len(own):
        return stated
    if not all(isinstance(size, int) for size in own):
        raise node.refuse("the window must be of a known size: the weight has open sizes, and kernel_shape is left out")
    return [int(size) for size in own if isinstance(size, int)]


def _with_bias(node: Node, value: SSAValue, index: int) -> SSAValue:
    bias = node.tensor(index)
    return value if bias is None else node.call("nn.bias_add", value, bias)


@operator("Conv")
def conv(node: Node) -> SSAValue:
    """Lowers `Conv` to `nn.conv1d` to `nn.conv3d` and `nn.bias_add`."""
    rank, weight = spatial_rank(node), node[1]
    kernel = _kernel(node, weight)
    x, window = padded_window(node, node[0], kernel)
    result = node.call(
        f"nn.conv{rank}d",
        x,
        weight,
        strides=list(window.strides),
        padding=window.padding,
        dilation=list(window.dilations),
        groups=int(node.attr("group", 1)),
        **_channels(node.builder.extents(weight)[0], kernel),
    )
    return _with_bias(node, result, 2)


def _channels(channels: Extent, kernel: Sequence[int]) -> dict[str, Any]:
    """Returns the attributes of the result's channels and of the window, where they are known."""
    return {"channels": channels, "kernel_size": list(kernel)} if isinstance(channels, int) else {}


@operator("ConvTranspose")
def conv_transpose(node: Node) -> SSAValue:
    """Lowers `ConvTranspose` to `nn.conv1d_transpose` to `nn.conv3d_transpose`, and a slice or padding.

    `output_shape`, and `auto_pad` with it, determine the padding: total = (size - 1) * stride + output_padding + reach - output.
    Negative padding enlarges the result.
    """
    rank, weight = spatial_rank(node), node[1]
    kernel, groups = _kernel(node, weight), int(node.attr("group", 1))
    ones = [1] * rank
    strides, dilations = node.ints("strides") or ones, node.ints("dilations") or ones
    extra = node.ints("output_padding") or [0] * rank
    pads = node.ints("pads") or [0] * (2 * rank)
    before, after = pads[:rank], pads[rank:]
    wanted = node.ints("output_shape")
    mode = node.choice("auto_pad", "NOTSET", AUTO_PADS)
    reach = Window(kernel, strides, dilations, before, after).reach
    if wanted or mode != "NOTSET":
        totals: list[int] = []
        for axis, size in enumerate(node.builder.extents(node[0])[2:]):
            if wanted:
                if not isinstance(size, int):
                    raise node.refuse("output_shape needs data of known sizes, not open ones")
                totals.append((size - 1) * strides[axis] + extra[axis] + reach[axis] - wanted[-rank:][axis])
            else:
                # The result has size * stride places: (size - 1) * stride + extra + reach - total.
                totals.append(0 if mode == "VALID" else extra[axis] + reach[axis] - strides[axis])
        if not wanted and mode != "VALID":
            totals = [max(total, 0) for total in totals]
        small = [max(total, 0) // 2 for total in totals]
        large = [max(total, 0) - part for total, part in zip(totals, small, strict=True)]
        before, after = (small, large) if mode == "SAME_UPPER" else (large, small)
        # A result that is larger than all that the elements reach is enlarged at its end.
        after = [part + min(total, 0) for part, total in zip(after, totals, strict=True)]
    outputs = node.builder.extents(weight)[1]
    result = node.call(
        f"nn.conv{rank}d_transpose",
        node[0],
        weight,
        strides=strides,
        padding=[max(pad, 0) for pad in (*before, *after)],
        dilation=dilations,
        groups=groups,
        output_padding=extra,
        **_channels(outputs * groups if isinstance(outputs, int) else outputs, kernel),
    )
    if min(*before, *after) < 0:
        widths = [0, 0, 0, 0, *(max(-pad, 0) for pair in zip(before, after, strict=True) for pad in pair)]
        pairs = [widths[at : at + 2] for at in range(0, len(widths), 2)]
        result = node.call("nn.pad", result, node.scalar(0, result), pad_width=pairs)
    return _with_bias(node, result, 2)


@operator("DeformConv")
def deform_conv(node: Node) -> SSAValue:
    """Lowers `DeformConv` to `nn.deformable_conv2d`.

    With a mask the samples of each tap become channels first, by a weight of ones and zeros; a 1x1 convolution multiplies them.
    """
    if node.rank(0) != 4:
        raise node.refuse("the data must have rank 4: two spatial axes")
    builder, weight, mask = node.builder, node[1], node.tensor(4)
    kernel = _kernel(node, weight)
    x, window = padded_window(node, node[0], kernel)
    groups, moved = int(node.attr("group", 1)), int(node.attr("offset_group", 1))
    channels, taps = builder.extents(x)[1], prod(kernel)
    used, used_groups = weight, groups
    if mask is not None:
        if not isinstance(channels, int):
            raise node.refuse("with a mask the number of channels must be known, not open")
        used_groups = channels
        picks = np.tile(np.eye(taps, dtype=builder.dtype(x)), (channels, 1)).reshape(channels * taps, 1, *kernel)
        used = builder.array_constant(picks)
    result = node.call(
        "nn.deformable_conv2d",
        x,
        node[2],
        used,
        strides=list(window.strides),
        padding=window.padding,
        dilation=list(window.dilations),
        groups=used_groups,
        deformable_groups=moved,
    )
    if mask is not None and isinstance(channels, int):
        samples = node.call("reshape", result, newshape=[0, moved, channels // moved, taps, -1])
        factors = node.call("reshape", mask, newshape=[0, moved, 1, taps, -1])
        samples = node.call("reshape_like", node.call("multiply", samples, factors), result)
        filters = node.call("reshape", weight, newshape=[0, channels // groups * taps, 1, 1])
        result = node.call("nn.conv2d", samples, filters, groups=groups)
    return _with_bias(node, result, 3)


@operator("CausalConvWithState", since=27)
def causal_conv_with_state(node: Node) -> list[SSAValue]:
    """Lowers `CausalConvWithState` to a depthwise `nn.conv1d` of the state and the data.

    The next state is the end of both.
    """
    x, weight = node[0], node[1]
    channels, _, width = node.builder.extents(weight)
    if not isinstance(channels, int) or not isinstance(width, int):
        raise node.refuse("the shape of the weight must be known, not open")
    state, before = node.tensor(3), 0
    data = x
    if state is not None:
        data = node.call("concatenate", node.builder.tuple([state, x]), axis=2)
    else:
        before = width - 1
    y = node.call("nn.conv1d", data, weight, padding=[before, 0], groups=channels)
    y = _with_bias(node, y, 2)
    if node.choice("activation", "none", ("none", "silu", "swish")) in ("silu", "swish"):
        wide = widened(node, y)
        y = cast_to(node, node.call("multiply", wide, node.call("sigmoid", wide)), node.dtype(0))
    if before:
        data = node.call("nn.pad", data, node.scalar(0, data), pad_width=[[0, 0], [0, 0], [before, 0]])
    size = node.builder.extents(data)[2]
    begin = 1 - width if width > 1 else size if isinstance(size, int) else 1 << 40
    rest = node.call("strided_slice", data, begin=[begin], end=[1 << 40], strides=[1], axes=[2])
    return [y, rest]


# Pooling ---------------------------------------------------------------------------------------------------------------


def _lowest(dtype: str) -> float:
    if dtype.startswith(("int", "uint")):
        return float(np.iinfo(np.dtype(dtype)).min)
    return -np.inf


def _pool_window(node: Node, fill: float = 0.0) -> tuple[SSAValue, Window, Window]:
    """Returns the data, its windows without and with the places that `ceil_mode` adds."""
    kernel = node.ints("kernel_shape")
    if kernel is None or len(kernel) != node.rank(0) - 2:
        raise node.refuse("kernel_shape must have a number for each spatial axis")
    x, window = padded_window(node, node[0], kernel, fill)
    return x, window, window.with_ceil() if node.attr("ceil_mode", 0) else window


def _pool(node: Node, kind: str, x: SSAValue, window: Window, **attributes: Any) -> SSAValue:
    return node.call(
        f"nn.{kind}_pool{len(window.kernel)}d",
        x,
        pool_size=list(window.kernel),
        strides=list(window.strides),
        dilation=list(window.dilations),
        padding=window.padding,
        **attributes,
    )


@operator("MaxPool")
def max_pool(node: Node) -> list[SSAValue | None]:
    """Lowers `MaxPool` to `nn.max_pool1d` to `nn.max_pool3d`.

    Indices are computed by an `argmax` of each window.
    """
    spatial_rank(node)
    lowest = _lowest(node.dtype(0))
    x, _, window = _pool_window(node, lowest)
    if len(node.outputs) < 2 or not node.outputs[1]:
        return [_pool(node, "max", x, window)]
    if x is not node[0]:
        raise node.refuse("indices are not supported where auto_pad depends on open sizes")
    values = _pool(node, "max", x, window)
    return [values, _max_indices(node, x, window, lowest)]


def _max_indices(node: Node, x: SSAValue, window: Window, lowest: float) -> SSAValue:
    """Returns the positions of the maxima in the flattened data.

    They are counted by rows, or by columns with `storage_order`.
    """
    builder, rank = node.builder, len(window.kernel)
    pairs = [[0, 0], [0, 0], *([low, high] for low, high in zip(window.before, window.after, strict=True))]
    padded = node.call("nn.pad", x, node.scalar(lowest, x), pad_width=pairs)
    views = node.call("sliding_window", padded, axis=2, window_shape=window.reach, strides=list(window.strides))
    axes = list(range(2 + rank, 2 + 2 * rank))
    if max(window.dilations) > 1:
        views = node.call(
            "strided_slice", views, begin=[0] * rank, end=window.reach, strides=list(window.dilations), axes=axes
        )
    views = node.call("reshape", views, newshape=[0] * (2 + rank) + [-1])
    tap = node.call("cast", node.call("argmax", views, axis=[2 + rank]), dtype="int64")
    by_columns = bool(node.attr("storage_order", 0))
    order = range(rank) if by_columns else reversed(range(rank))
    sizes = [builder.size(x, axis) for axis in range(rank + 2)]
    result: SSAValue | None = None
    factor: SSAValue = builder.integers(1)
    for axis in order:
        inner = prod(window.kernel[axis + 1 :])
        offset = node.call("floor_divide", tap, builder.integers(inner)) if inner > 1 else tap
        if axis > 0:
            offset = node.call("floor_mod", offset, builder.integers(window.kernel[axis]))
        place = _steps(node, builder.size(tap, 2 + axis), window.strides[axis], -window.before[axis])
        place = along_axis(node, place, 2 + axis, 2 + rank)
        offset = node.call("add", node.call("multiply", offset, builder.integers(window.dilations[axis])), place)
        term = node.call("multiply", offset, factor)
        result = term if result is None else node.call("add", result, term)
        factor = node.call("multiply", factor, sizes[2 + axis])
    assert result is not None
    images = node.call("multiply", sizes[0], sizes[1])
    first = node.call("multiply", _steps(node, images, 1, 0), factor)
    first = builder.reshape(first, [*builder.extents(x)[:2], *[1] * rank])
    return node.call("add", result, first)


def _steps(node: Node, count: SSAValue, step: int, start: int) -> SSAValue:
    """Returns start + step * k for k below `count`."""
    builder = node.builder
    numbers = node.call("arange", builder.integers(0), count, builder.integers(1), dtype="int64")
    return node.call("add", node.call("multiply", numbers, builder.integers(step)), builder.integers(start))


@operator("AveragePool")
def average_pool(node: Node) -> SSAValue:
    """Lowers `AveragePool` to `nn.avg_pool1d` to `nn.avg_pool3d`.

    With `count_include_pad` the padding counts, but not what `ceil_mode` adds after it: the data is then padded first.
    """
    spatial_rank(node)
    x, plain, window = _pool_window(node)
    if x is not node[0]:
        return _average_of_padded(node, x, window)
    if not node.attr("count_include_pad", 0):
        return _pool(node, "avg", x, window)
    if window.after == plain.after:
        return _pool(node, "avg", x, window, count_include_pad=True)
    pads = [(low, min(high, all_)) for low, high, all_ in zip(plain.before, plain.after, window.after, strict=True)]
    x = node.call("nn.pad", x, node.scalar(0, x), pad_width=[[0, 0], [0, 0], *map(list, pads)])
    rest = [all_ - high for (_, high), all_ in zip(pads, window.after, strict=True)]
    return _pool(node, "avg", x, Window(window.kernel, window.strides, window.dilations, [0] * len(pads), rest))


def _average_of_padded(node: Node, x: SSAValue, window: Window) -> SSAValue:
    """Averages data that was padded at run time.

    Unless the padding counts, sums are divided by the number of elements in each window.
    """
    sums = _pool(node, "avg", x, window, count_include_pad=True)
    if node.attr("count_include_pad", 0):
        return sums
    counted, _ = padded_window(node, node.call("ones_like", node[0]), window.kernel)
    return node.call("divide", sums, _pool(node, "avg", counted, window, count_include_pad=True))


@operator("LpPool")
def lp_pool(node: Node) -> SSAValue:
    """Lowers `LpPool` to the root of sums of powers, by `nn.avg_pool1d` to `nn.avg_pool3d`."""
    spatial_rank(node)
    x, _, window = _pool_window(node)
    order = int(node.attr("p", 2))
    mean = _pool(node, "avg", _powers(node, x, order), window, count_include_pad=True)
    return _root(node, node.call("multiply", mean, node.scalar(prod(window.kernel), mean)), order)


def _powers(node: Node, x: SSAValue, order: int) -> SSAValue:
    if order == 2:
        return node.call("multiply", x, x)
    size = node.call("abs", x)
    return size if order == 1 else node.call("power", size, node.scalar(order, x))


def _root(node: Node, x: SSAValue, order: int) -> SSAValue:
    if order == 2:
        return node.call("sqrt", x)
    return x if order == 1 else node.call("power", x, node.scalar(1 / order, x))


@operator("GlobalLpPool")
def global_lp_pool(node: Node) -> SSAValue:
    """Lowers `GlobalLpPool` to the root of the sum of powers."""
    order = int(node.attr("p", 2))
    total = node.call("sum", _powers(node, node[0], order), axis=list(range(2, node.rank(0))), keepdims=True)
    return _root(node, total, order)


@operator("GlobalAveragePool", "GlobalMaxPool")
def global_pool(node: Node) -> SSAValue:
    """Lowers global pooling to `nn.global_avg_pool2d` and its kin; of other ranks to a reduction."""
    is_max = node.op_type == "GlobalMaxPool"
    rank = node.rank(0) - 2
    if 1 <= rank <= 3:
        return node.call(f"nn.global_{'max' if is_max else 'avg'}_pool{rank}d", node[0])
    return node.call("max" if is_max else "mean", node[0], axis=list(range(2, rank + 2)), keepdims=True)


@operator("MaxUnpool")
def max_unpool(node: Node) -> SSAValue:
    """Lowers `MaxUnpool` to `scatter_elements` into zeros.

    Indices count in the image before `output_shape` enlarges it.
    """
    builder, x = node.builder, node[0]
    kernel = node.ints("kernel_shape") or []
    rank = len(kernel)
    strides, pads = node.ints("strides") or [1] * rank, node.ints("pads") or [0] * (2 * rank)
    sizes: list[SSAValue] = [builder.size(x, 0), builder.size(x, 1)]
    for axis in range(rank):
        more = kernel[axis] - strides[axis] - pads[axis] - pads[rank + axis]
        size = node.call("multiply", builder.size(x, 2 + axis), builder.integers(strides[axis]))
        sizes.append(node.call("add", size, builder.integers(more)))
    shape = node.call("stack", builder.tuple(sizes), axis=0)
    total = node.call("prod", shape, axis=[0], keepdims=True)
    places, values = (node.call("reshape", value, newshape=[-1]) for value in (node[1], x))
    zeros = builder.broadcast_to(node.call("reshape", node.scalar(0, x), newshape=[1]), total)
    result = builder.reshape(node.call("scatter_elements", zeros, places, values, axis=0), shape)
    wanted = node.tensor(2)
    if wanted is None:
        return result
    more = node.call("subtract", cast_to(node, wanted, "int64"), shape)
    zeros = node.call("zeros_like", more)
    return node.call("dyn.nn.pad", result, node.call("stack", builder.tuple([zeros, more]), axis=1), node.scalar(0, x))


# Normalizations --------------------------------------------------------------------------------------------------------


def _is_training(node: Node) -> bool:
    if node.opset >= 14:
        return bool(node.attr("training_mode", 0))
    if node.opset < 7:
        return not node.attr("is_test", 0)
    return len([name for name in node.outputs if name]) > 1


@operator("BatchNormalization")
def batch_normalization(node: Node) -> list[Value | None]:
    """Lowers `BatchNormalization` to `nn.batch_norm`; in training to the batch's own mean and variance."""
    epsilon, rank = float(node.attr("epsilon", 1e-5)), node.rank(0)
    if _is_training(node):
        return _trained_batch_norm(node, epsilon)
    if not node.attr("spatial", 1):
        x, scale, shift, mean, var = (node[index] for index in range(5))
        spread = node.call("sqrt", node.call("add", var, node.scalar(epsilon, var)))
        normal = node.call("divide", node.call("subtract", x, mean), spread)
        return [node.call("add", node.call("multiply", normal, scale), shift)]
    dtypes = [node.dtype(index) for index in range(5)]
    wide = dtypes[0] if len(set(dtypes)) == 1 else WIDE[int("float64" in dtypes)]
    parts = [cast_to(node, node[index], wide) for index in range(5)]
    if rank < 2:
        raise node.refuse("the data must have an axis of channels: rank 2 or more")
    result = node.builder.field(node.call("nn.batch_norm", *parts, epsilon=epsilon), 0)
    return [cast_to(node, result, dtypes[0])]


def _trained_batch_norm(node: Node, epsilon: float) -> list[Value | None]:
    rank, dtype = node.rank(0), node.dtype(0)
    if node.opset < 14 or len(node.outputs) > 3:
        raise node.refuse("training is supported from opset 14 on, with 3 outputs")
    x = widened(node, node[0])
    axes = [axis for axis in range(rank) if axis != 1]
    mean = node.call("mean", x, axis=axes, keepdims=True)
    var = node.call("variance", x, mean, axis=axes, keepdims=True)
    scale, shift = (cast_to(node, along_axis(node, node[i], 1, rank), node.builder.dtype(x)) for i in (1, 2))
    spread = node.call("sqrt", node.call("add", var, node.scalar(epsilon, x)))
    y = node.call("divide", node.call("subtract", x, mean), spread)
    y = cast_to(node, node.call("add", node.call("multiply", y, scale), shift), dtype)
    momentum = float(node.attr("momentum", 0.9))
    running: list[Value | None] = [y]
    for index, current in ((3, mean), (4, var)):
        old = node[index]
        new = cast_to(node, node.call("reshape", current, newshape=[-1]), node.dtype(index))
        kept = node.call("multiply", old, node.scalar(momentum, old))
        running.append(node.call("add", kept, node.call("multiply", new, node.scalar(1 - momentum, old))))
    return running


@operator("InstanceNormalization")
def instance_normalization(node: Node) -> SSAValue:
    """Lowers `InstanceNormalization` to `nn.instance_norm`."""
    return node.call("nn.instance_norm", node[0], node[1], node[2], epsilon=float(node.attr("epsilon", 1e-5)))


@operator("GroupNormalization", since=18)
def group_normalization(node: Node) -> SSAValue:
    """Lowers `GroupNormalization` to `nn.group_norm`; in opset 18 scale and bias are those of groups."""
    groups, channels = int(node.attr("num_groups")), node.builder.extents(node[0])[1]
    scale, shift = node[1], node[2]
    if node.opset < 21:
        if not isinstance(channels, int):
            raise node.refuse("before opset 21 the number of channels must be known, not open")
        scale, shift = (node.call("repeat", each, repeats=channels // groups, axis=0) for each in (scale, shift))
    epsilon = float(node.attr("epsilon", 1e-5))
    return node.call("nn.group_norm", node[0], scale, shift, num_groups=groups, epsilon=epsilon)


def _normalized_size(node: Node, axis: int) -> list[Extent]:
    return list(node.builder.extents(node[0])[axis:])


@operator("LayerNormalization")
def layer_normalization(node: Node) -> list[Value | None]:
    """Lowers `LayerNormalization` to `nn.layer_norm`; of several axes on data in which they are one.

    Mean and inverse deviation, where they are used, are computed in the dtype of `stash_type`.
    """
    builder, rank = node.builder, node.rank(0)
    axis, epsilon = node.axis(rank, -1), float(node.attr("epsilon", 1e-5))
    sizes = _normalized_size(node, axis)
    scale, shift = _vector(node, node[1], sizes), node.tensor(2)
    x = node[0] if len(sizes) == 1 else builder.reshape(node[0], [*builder.extents(node[0])[:axis], -1])
    center = shift is not None
    beta = node.call("zeros_like", scale) if shift is None else _vector(node, shift, sizes)
    y = node.call("nn.layer_norm", x, scale, beta, axis=-1, epsilon=epsilon, center=center)
    if len(sizes) > 1:
        y = node.call("reshape_like", y, node[0])
    found: list[Value | None] = [y]
    if any(node.outputs[1:]):
        wide = widened(node, node[0])
        axes = list(range(axis, rank))
        mean = node.call("mean", wide, axis=axes, keepdims=True)
        var = node.call("variance", wide, mean, axis=axes, keepdims=True)
        found += [mean, node.call("rsqrt", node.call("add", var, node.scalar(epsilon, wide)))]
    return found


def _vector(node: Node, value: SSAValue, sizes: Sequence[Extent]) -> SSAValue:
    """Returns a scale or bias as one vector over the normalized axes."""
    if node.builder.extents(value) == tuple(sizes):
        return value if len(sizes) == 1 else node.call("reshape", value, newshape=[-1])
    builder, rank = node.builder, node.rank(0)
    end = builder.shape_tensor(node[0])
    shape = node.call("strided_slice", end, begin=[rank - len(sizes)], end=[rank], strides=[1])
    return builder.reshape(builder.broadcast_to(value, shape), [-1])


@operator("RMSNormalization", since=23)
def rms_normalization(node: Node) -> SSAValue:
    """Lowers `RMSNormalization` to x / sqrt(mean(x²) + epsilon) * scale, in the dtype of `stash_type`."""
    rank = node.rank(0)
    axis = node.axis(rank, -1)
    x = widened(node, node[0])
    mean = node.call("mean", node.call("multiply", x, x), axis=list(range(axis, rank)), keepdims=True)
    factor = node.call("rsqrt", node.call("add", mean, node.scalar(float(node.attr("epsilon", 1e-5)), x)))
    normal = cast_to(node, node.call("multiply", x, factor), node.dtype(0))
    wide = WIDE[int("float64" in (node.dtype(0), node.dtype(1)))] if node.dtype(1) != node.dtype(0) else node.dtype(1)
    result = node.call("multiply", cast_to(node, normal, wide), cast_to(node, node[1], wide))
    return cast_to(node, result, node.dtype(1))


@operator("LRN")
def lrn(node: Node) -> SSAValue:
    """Lowers `LRN` to `nn.lrn`, of an even size to a mean of squares.

    Its window has one neighbour more after an element than before.
    """
    size, x = int(node.attr("size")), node[0]
    alpha, beta, bias = (
        float(node.attr(name, value)) for name, value in (("alpha", 1e-4), ("beta", 0.75), ("bias", 1.0))
    )
    if size % 2:
        return node.call("nn.lrn", x, size=size, alpha=alpha, beta=beta, bias=bias)
    flat = node.call("reshape", node.call("multiply", x, x), newshape=[0, 0, -1])
    flat = node.call("expand_dims", flat, axis=1)
    mean = node.call(
        "nn.avg_pool2d", flat, pool_size=[size, 1], padding=[(size - 1) // 2, 0, size // 2, 0], count_include_pad=True
    )
    mean = node.call("reshape_like", mean, x)
    norm = node.call("add", node.call("multiply", mean, node.scalar(alpha, x)), node.scalar(bias, x))
    return node.call("divide", x, node.call("power", norm, node.scalar(beta, x)))


# Training --------------------------------------------------------------------------------------------------------------


@operator("Dropout")
def dropout(node: Node) -> list[Value | None]:
    """Lowers `Dropout` at inference to its input, and a mask of ones.

    Refuses training with a ratio above 0.
    """
    x = node[0]
    ratio = node.builder.array(node.tensor(1))
    if ratio is None or ratio.any():
        training = node.array(2, "training_mode")
        if training is not None and training.any():
            raise node.refuse(
                "training_mode drops elements at random", "a compiled function returns the same for equal inputs"
            )
    if not any(node.outputs[1:]):
        return [x]
    mask = node.call("ones_like", x)
    # Before opset 10 the mask has the data's dtype.
    return [x, mask if node.opset < 10 else node.call("cast", mask, dtype="bool")]


@operator("NegativeLogLikelihoodLoss", since=12)
def negative_log_likelihood_loss(node: Node) -> SSAValue:
    """Lowers `NegativeLogLikelihoodLoss` to `nn.nll_loss`."""
    return _nll_loss(node, node[0])


@operator("SoftmaxCrossEntropyLoss", since=12)
def softmax_cross_entropy_loss(node: Node) -> list[Value | None]:
    """Lowers `SoftmaxCrossEntropyLoss` to `nn.nll_loss` of `nn.log_softmax` along the classes."""
    logarithms = node.call("nn.log_softmax", node[0], axis=1)
    return [_nll_loss(node, logarithms), logarithms]


def _nll_loss(node: Node, x: SSAValue) -> SSAValue:
    ignored = node.attr("ignore_index")
    reduction = node.choice("reduction", "mean", ("mean", "sum", "none"))
    targets, weights = node[1], node.tensor(2)
    classes = node.builder.extents(x)[1]
    if weights is None:
        ones = node.call("reshape", node.scalar(1, x), newshape=[1])
        if isinstance(classes, int):
            weights = node.call("broadcast_to", ones, shape=[classes])
        else:
            weights = node.builder.broadcast_to(ones, node.builder.reshape(node.builder.size(x, 1), [1]))
    # A class that no target has, where none is ignored.
    index = np.iinfo(np.int32).min if ignored is None else int(ignored)
    return node.call("nn.nll_loss", x, targets, weights, reduction=reduction, ignore_index=index)
