"""Defines the gradients of layers: convolutions, pooling, normalization, losses, random distributions."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import DYNAMIC_INDEX

from ...gradient import Backward, Term, gradient
from ...operator import AttrValue
from ..conv.convolution import spatial_padding

_LAYOUTS = {1: ("NCW", "OIW"), 2: ("NCHW", "OIHW"), 3: ("NCDHW", "OIDHW")}


def _with_line(x: Term) -> Term:
    """Returns a tensor of lines as one of images of one row."""
    return x.of("expand_dims", axis=2)


def _sides(padding: Sequence[int], rank: int) -> tuple[Sequence[int], Sequence[int]]:
    return spatial_padding(padding, rank) or ((0,) * rank, (0,) * rank)


@gradient("nn.conv1d", "nn.conv2d", "nn.conv3d")
def _conv(use: Backward) -> Sequence[Term]:
    data, weight = use.args
    attrs, g = use.attrs, use.gradient
    rank = len(data.shape) - 2
    layout, kernel_layout = _LAYOUTS[rank]
    if attrs.data_layout != layout or attrs.kernel_layout != kernel_layout or (attrs.out_layout or layout) != layout:
        raise use.refuse(
            f"the layouts must be {layout} and {kernel_layout}", "convert-layout gives a convolution that layout"
        )
    if rank == 3 and attrs.groups != 1:
        raise use.refuse("groups must be 1")
    strides, dilation = (list(each) for each in (attrs.strides, attrs.dilation))
    before, after = (list(each) for each in _sides(attrs.padding, rank))
    if data.dtype != g.dtype or weight.dtype != g.dtype:
        data, weight = (x.of("cast", dtype=g.dtype) for x in (data, weight))
    if rank == 1:
        # As images of one row.
        data, weight, g = (_with_line(x) for x in (data, weight, g))
        strides, dilation, before, after = [1, *strides], [1, *dilation], [0, *before], [0, *after]
    kernel = weight.shape[2:]
    padding = [*before, *after]
    sizes = [
        (count - 1) * strides[n] - before[n] - after[n] + (kernel[n] - 1) * dilation[n] + 1
        for n, count in enumerate(g.shape[2:])
    ]
    left = [data.shape[2 + n] - size for n, size in enumerate(sizes)]
    common: dict[str, AttrValue] = {
        "strides": strides, "padding": padding, "dilation": dilation, "groups": attrs.groups,
    }  # fmt: skip
    # In a depthwise convolution with several filters per channel, these are adjacent.
    if weight.shape[0] != g.shape[1]:
        weight = weight.of("reshape", newshape=[g.shape[1], 1, *kernel])
    to_data = g.of(f"nn.conv{len(kernel)}d_transpose", weight, output_padding=left, **common)
    to_weight = _to_weight(data, g, weight, common)
    return [_in_shape(to_data, use.args[0]), _in_shape(to_weight, use.args[1])]


def _in_shape(x: Term, like: Term) -> Term:
    """Returns a gradient in the shape of the argument, where it has another."""
    return x if x.shape == like.shape and x.shape.are_known else x.of("reshape_like", like)


def _to_weight(data: Term, g: Term, weight: Term, common: dict[str, AttrValue]) -> Term:
    """Returns the gradient of a convolution's weight (O, I, …), of its data and the result's gradient."""
    kernel = list(weight.shape[2:])
    if len(kernel) == 2:
        # Its kernel_layout is the data's, its out_layout the weight's.
        return g.of(
            "nn.conv2d_backward_weight", data, channels=weight.shape[0], kernel_size=kernel, kernel_layout="NCHW",
            out_layout="OIHW", **common,
        )  # fmt: skip
    # The sum is along the batch, the result's gradient is the kernel: strides and dilation are exchanged.
    turn = [1, 0, 2, 3, 4]
    swapped = {**common, "strides": common["dilation"], "dilation": common["strides"]}
    rows = data.of("transpose", axes=turn).of(
        "nn.conv3d", g.of("transpose", axes=turn), channels=g.shape[1], kernel_size=list(g.shape[2:]), **swapped
    )
    return rows.of("strided_slice", begin=[0] * 3, end=kernel, axes=[2, 3, 4]).of("transpose", axes=turn)


@gradient("nn.conv1d_transpose", "nn.conv2d_transpose", "nn.conv3d_transpose")
def _conv_transpose(use: Backward) -> Sequence[Term]:
    """Convolves the result's gradient: a transposed convolution is a convolution's gradient."""
    data, weight = use.args
    attrs, g = use.attrs, use.gradient
    rank = len(data.shape) - 2
    layout, turned = _LAYOUTS[rank][0], _LAYOUTS[rank][1].replace("OI", "IO")
    if attrs.data_layout != layout or attrs.kernel_layout != turned or (attrs.out_layout or layout) != layout:
        raise use.refuse(f"the layouts must be {layout} and {turned}", "convert-layout gives a convolution that layout")
    if rank == 3 and attrs.groups != 1:
        raise use.refuse("groups must be 1")
    strides, dilation = (list(each) for each in (attrs.strides, attrs.dilation))
    before, after = (list(each) for each in _sides(attrs.padding, rank))
    if rank == 1:
        data, weight, g = (_with_line(x) for x in (data, weight, g))
        strides, dilation, before, after = [1, *strides], [1, *dilation], [0, *before], [0, *after]
    common: dict[str, AttrValue] = {
        "strides": strides, "padding": [*before, *after], "dilation": dilation, "groups": attrs.groups,
    }  # fmt: skip
    kernel = list(weight.shape[2:])
    to_data = g.of(f"nn.conv{len(kernel)}d", weight, channels=weight.shape[0], kernel_size=kernel, **common)
    # With output_padding the last rows of the result may be further than the kernel reaches from any element.
    to_data = to_data.of("slice_like", data)
    return [_in_shape(to_data, use.args[0]), _in_shape(_to_weight(g, data, weight, common), use.args[1])]


@gradient("nn.max_pool2d", "nn.avg_pool2d")
def _pool2d(use: Backward) -> Sequence[Term]:
    given = use.op.given()
    return [use.gradient.of(f"{use.op.OPERATOR.name}_grad", use.args[0], **given)]


@gradient("nn.global_avg_pool2d")
def _global_avg_pool2d(use: Backward) -> Sequence[Term]:
    (x,) = use.args
    layout: str = use.attrs.layout
    size = [x.shape[layout.index(axis)] for axis in "HW"]
    return [use.gradient.of("nn.avg_pool2d_grad", x, pool_size=size, layout=layout)]


@gradient("nn.max_pool1d", "nn.avg_pool1d")
def _pool1d(use: Backward) -> Sequence[Term]:
    """Differentiates a pooling of lines as one of images of one row."""
    (x,) = use.args
    if use.attrs.layout != "NCW" or (use.attrs.out_layout or "NCW") != "NCW":
        raise use.refuse("the layout must be NCW")
    given = {k: v for k, v in use.op.given().items() if k not in ("layout", "out_layout")}
    before, after = _sides(use.attrs.padding, 1)
    for name in ("pool_size", "strides", "dilation"):
        given[name] = [1, *use.attrs[name]]
    given["padding"] = [0, *before, 0, *after]
    name = use.op.OPERATOR.name.replace("1d", "2d_grad")
    return [_with_line(use.gradient).of(name, _with_line(x), **given).of("squeeze", axis=[2])]


def _windows(use: Backward) -> list[int]:
    """Returns the window's size along each axis, of a global or adaptive pooling."""
    (x,) = use.args
    if (use.attrs.out_layout or use.attrs.layout) != use.attrs.layout:
        raise use.refuse("the layout of the result must be that of the data")
    windows: list[int] = []
    for place, sizes in enumerate(zip(x.type.get_shape(), use.result.type.get_shape(), strict=True)):
        if sizes == (DYNAMIC_INDEX, DYNAMIC_INDEX):
            # That of the images: nothing is pooled across them.
            windows.append(1)
            continue
        size, parts = x.shape[place], use.result.shape[place]
        if size % (parts or 1):
            raise use.refuse(f"{x.type.get_shape()} does not divide into {use.result.type.get_shape()} equal parts")
        windows.append(size // (parts or 1))
    return windows


def _spread(x: Term, windows: Sequence[int], like: Term) -> Term:
    """Copies each element of a pooling's result to its window's elements, in the data's shape."""
    if 0 in windows:
        return like.zeros  # Of no elements.
    for axis, count in enumerate(windows):
        if count != 1:
            x = x.of("repeat", repeats=count, axis=axis)
    return x


@gradient("nn.global_avg_pool1d", "nn.global_avg_pool3d", *(f"nn.adaptive_avg_pool{rank}d" for rank in (1, 2, 3)))
def _mean_of_parts(use: Backward) -> Sequence[Term]:
    windows = _windows(use)
    return [_spread(use.gradient * (1 / (prod(windows) or 1)), windows, use.args[0])]


@gradient(*(f"nn.{kind}_max_pool{rank}d" for kind in ("global", "adaptive") for rank in (1, 2, 3)))
def _largest_of_parts(use: Backward) -> Sequence[Term]:
    """Divides the gradient among the equal largest elements of each part."""
    (x,) = use.args
    windows = _windows(use)
    chosen = _spread(use.result, windows, x).of("equal", x).of("cast_like", x)
    mean = chosen.of(use.op.OPERATOR.name.replace("_max_", "_avg_"), **use.op.given())
    return [chosen * _spread(use.gradient / (mean * float(prod(windows))), windows, x)]


# Normalization -------------------------------------------------------------------------------------------------------


def _along(x: Term, axis: int, rank: int) -> Term:
    """Returns a vector along an axis of a tensor of more."""
    return x.of("reshape", newshape=[-1 if place == axis % rank else 1 for place in range(rank)])


def _normalized(x: Term, g: Term, axes: Sequence[int], epsilon: float) -> tuple[Term, Term]:
    """Returns the gradient of x from that of the normalized value, and the normalized value.

    x is normalized by its mean and deviation along `axes`.
    """
    centered = x - x.averaged(axes)
    scale = (centered * centered).averaged(axes).of("add", epsilon).of("rsqrt")
    normal = centered * scale
    return scale * (g - g.averaged(axes) - normal * (g * normal).averaged(axes)), normal


def _scaled(use: Backward, axis: int, axes: Sequence[int], shape: Sequence[int] | None = None) -> Sequence[Term]:
    """Returns the gradients of a normalization with scale and offset along `axis`.

    `shape` reshapes the data first.
    """
    x, gamma, beta = use.args
    g, rank = use.gradient, len(x.shape)
    others = [place for place in range(rank) if place != axis % rank]
    inner = g * _along(gamma, axis, rank) if use.attrs.scale else g
    if shape is None:
        to_x, normal = _normalized(x, inner, axes, use.attrs.epsilon)
    else:
        inside = [each.of("reshape", newshape=list(shape)) for each in (x, inner)]
        to_x, normal = (
            each.of("reshape_like", x) for each in _normalized(inside[0], inside[1], axes, use.attrs.epsilon)
        )
    to_gamma = (g * normal).summed(others, False) if use.attrs.scale else gamma.zeros
    return [to_x, to_gamma, g.summed(others, False) if use.attrs.center else beta.zeros]


@gradient("nn.layer_norm")
def _layer_norm(use: Backward) -> Sequence[Term]:
    return _scaled(use, use.attrs.axis, [use.attrs.axis])


@gradient("nn.instance_norm")
def _instance_norm(use: Backward) -> Sequence[Term]:
    rank = len(use.args[0].shape)
    axis = use.attrs.axis % rank
    return _scaled(use, axis, [place for place in range(1, rank) if place != axis])


@gradient("nn.group_norm")
def _group_norm(use: Backward) -> Sequence[Term]:
    sizes, groups = use.args[0].shape, use.attrs.num_groups
    if use.attrs.axis % len(sizes) != 1:
        raise use.refuse("the channels must be axis 1", "transpose the data first")
    batch, _, *rest = use.args[0].type.get_shape()
    if [batch, *rest].count(DYNAMIC_INDEX) > 1:
        raise use.refuse("more than one size is `?`")
    # One dimension follows from the others: -1 for `reshape`.
    shape = [batch, groups, sizes[1] // groups, *rest]
    return _scaled(use, 1, list(range(2, len(shape))), shape)


@gradient("nn.batch_norm")
def _batch_norm(use: Backward) -> Sequence[Term]:
    """Differentiates batch normalization at inference: means and variances are constants."""
    x, gamma, beta, mean, variance = use.args
    rank, axis = len(x.shape), use.attrs.axis
    others = [place for place in range(rank) if place != axis % rank]
    g, to_mean, to_variance = (use.gradient.field(k) for k in range(3))
    scale = variance.of("add", use.attrs.epsilon).of("rsqrt")
    normal = (x - _along(mean, axis, rank)) * _along(scale, axis, rank)
    inner = g * _along(gamma, axis, rank) if use.attrs.scale else g
    to_x = inner * _along(scale, axis, rank)
    to_gamma = (g * normal).summed(others, False) if use.attrs.scale else gamma.zeros
    to_beta = g.summed(others, False) if use.attrs.center else beta.zeros
    spread = (inner * normal).summed(others, False) * scale * scale * -0.5
    return [to_x, to_gamma, to_beta, to_mean - to_x.summed(others, False), to_variance + spread]


@gradient("nn.l2_normalize")
def _l2_normalize(use: Backward) -> Sequence[Term]:
    """Differentiates x over its norm, or over a bound where that is larger."""
    (x,) = use.args
    g, rank = use.gradient, len(x.shape)
    axes = [axis % rank for axis in use.attrs.axis or range(rank)]
    square, bound = (x * x).summed(axes), x.number(use.attrs.eps)
    norm = square.of("maximum", bound).of("sqrt")
    along = use.result * (g * use.result).summed(axes)
    return [bound.of("less", square).of("where", g - along, g) / norm]


@gradient("nn.lrn")
def _lrn(use: Backward) -> Sequence[Term]:
    """Differentiates x * s ** -beta; s is bias plus a share of the squares of `size` neighbours."""
    (x,) = use.args
    attrs, g = use.attrs, use.gradient
    rank, half = len(x.shape), attrs.size // 2
    axis: int = attrs.axis % rank
    width = [[half, half] if place == axis else [0, 0] for place in range(rank)]

    def neighbours(each: Term) -> Term:
        wide = each.of("nn.pad", 0.0, pad_width=width)
        parts = [wide.of("strided_slice", begin=[k], end=[k + x.shape[axis]], axes=[axis]) for k in range(2 * half + 1)]
        return sum(parts[1:], parts[0])

    scale = (neighbours(x * x) * (attrs.alpha / attrs.size)).of("add", attrs.bias)
    power = scale.of("power", -attrs.beta)
    return [g * power - x * neighbours(g * x * power / scale) * (2 * attrs.alpha * attrs.beta / attrs.size)]


@gradient("nn.prelu")
def _prelu(use: Backward) -> Sequence[Term]:
    x, alpha = use.args
    g, rank, axis = use.gradient, len(x.shape), use.attrs.axis
    below = x.of("less", x.zeros)
    slope = (below.of("where", g * x, x.zeros)).summed([place for place in range(rank) if place != axis % rank], False)
    return [below.of("where", g * _along(alpha, axis, rank), g), slope.of("collapse_sum_like", alpha)]


@gradient("nn.dropout")
def _dropout(use: Backward) -> Sequence[Term]:
    """Differentiates dropout at inference: it is the data itself."""
    return [use.gradient.field(0)]


@gradient("nn.nll_loss")
def _nll_loss(use: Backward) -> Sequence[Term]:
    predictions, targets, weights = use.args
    rank, classes = len(predictions.shape), weights.shape[0]
    one, zero = predictions.number(1), predictions.number(0)
    hot = targets.of("one_hot", one, zero, depth=classes, axis=1 if rank > 1 else -1, dtype=predictions.dtype)
    counts = targets.of("not_equal", float(use.attrs.ignore_index)).of("cast", dtype=predictions.dtype)
    hot = hot * (counts.of("expand_dims", axis=1) if rank > 1 else counts)
    g, along = use.gradient, 1 if rank > 1 else 0
    if use.attrs.reduction == "none":
        g = g.of("expand_dims", axis=1) if rank > 1 else g
    share = -(predictions * hot)
    if use.attrs.reduction == "mean":
        total = (hot * _along(weights, along, rank)).of("sum")
        g = g / total
        share = share - hot * use.result
    others = [place for place in range(rank) if place != along]
    return [-(hot * _along(weights, along, rank) * g), targets.zeros, (share * g).summed(others, False)]


# Random numbers: of a fixed key, they change with their scale and offset. ---------------------------------------------


@gradient("random.normal")
def _normal(use: Backward) -> Sequence[Term]:
    key, mean, scale = use.args
    g, y = use.gradient.field(1), use.result.field(1)
    shares = g, g * (y - mean) / scale
    return [key.zeros, *(s.of("sum").of("cast_like", x) for s, x in zip(shares, (mean, scale), strict=True))]


@gradient("random.uniform")
def _uniform(use: Backward) -> Sequence[Term]:
    key, low, high = use.args
    g, y, width = use.gradient.field(1), use.result.field(1), high - low
    shares = g * (high - y) / width, g * (y - low) / width
    return [key.zeros, *(s.of("sum").of("cast_like", x) for s, x in zip(shares, (low, high), strict=True))]
