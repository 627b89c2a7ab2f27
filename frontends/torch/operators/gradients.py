"""Gradients of layers, which programs of training call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from ..node import FxNode, pair
from ..registry import operator
from .pooling import batched, unbatched
from .reduction import over


@operator("avg_pool2d_backward")
def avg_pool_gradient(
    node: FxNode, gradient: SSAValue, x: SSAValue, kernel: Any, stride: Any, padding: Any, ceil: bool, counts_padding: bool,
    divisor: int | None = None,
) -> SSAValue:  # fmt: skip
    """Spreads the gradient of each mean over its window."""
    kernel, padding = pair(kernel), pair(padding)
    if divisor is not None:
        if not counts_padding or ceil:
            raise node.refuse("another divisor with ceil_mode, or where padding does not count")
        gradient = node.call(
            "multiply", gradient, node.builder.constant(kernel[0] * kernel[1] / divisor, node.builder.dtype(gradient))
        )
    found = node.call(
        "nn.avg_pool2d_grad", batched(node, gradient, 2), batched(node, x, 2), pool_size=kernel,
        strides=pair(stride) if stride else kernel, padding=[*padding, *padding], ceil_mode=bool(ceil),
        count_include_pad=bool(counts_padding),
    )  # fmt: skip
    return unbatched(node, found, x)


@operator("_adaptive_avg_pool2d_backward")
def adaptive_gradient(node: FxNode, gradient: SSAValue, x: SSAValue) -> SSAValue:
    """Multiplies by the transposed matrices of means, of rows and of columns."""
    for axis in (-2, -1):
        size, parts = node.static(x)[axis], node.static(gradient)[axis]
        matrix = np.zeros((size, parts))
        for part in range(parts):
            begin, end = part * size // parts, -(-(part + 1) * size // parts)
            matrix[begin:end, part] = 1 / (end - begin)
        weight = node.builder.constant(matrix, node.builder.dtype(gradient))
        last = node.transposed(gradient, axis, -1)
        gradient = node.transposed(node.call("nn.dense", last, weight), axis, -1)
    return gradient


@operator("max_pool2d_with_indices_backward")
def max_pool_gradient(node: FxNode, gradient: SSAValue, x: SSAValue, *rest: Any) -> SSAValue:
    """Adds each element of the gradient to the place that its window's maximum was at."""
    indices, shape, given = rest[-1], node.static(x), node.static(gradient)
    images = int(np.prod(shape[:-2], dtype=np.int64))
    dtype = node.builder.dtype(gradient)
    area = shape[-2] * shape[-1]
    zeros = node.call("full", node.builder.constant(0, dtype), shape=[images, area], dtype=dtype)
    rows = [images, given[-2] * given[-1]]
    flat, at = (node.call("reshape", each, newshape=rows) for each in (gradient, indices))
    found = node.call("scatter_elements", zeros, at, flat, axis=1, reduction="add")
    return node.call("reshape", found, newshape=list(shape))


@operator("convolution_backward")
def convolution_gradient(
    node: FxNode, gradient: SSAValue, x: SSAValue, weight: SSAValue, _sizes: Any, stride: Any, padding: Any, dilation: Any,
    is_transposed: bool, output_padding: Any, groups: int, wanted: Sequence[bool],
) -> list[SSAValue | None]:  # fmt: skip
    """Returns the gradients of data, weight and bias of a convolution over two axes."""
    if node.rank(x) != 4:
        raise node.refuse("only gradients of convolutions over two axes can be computed here")
    if is_transposed:
        raise node.refuse("gradients of transposed convolutions cannot be computed here")
    stride, padding, dilation = pair(stride), pair(padding), pair(dilation)
    kernel = node.static(weight)
    attributes: dict[str, Any] = {
        "strides": stride, "padding": [*padding, *padding], "dilation": dilation, "groups": groups,
        "kernel_size": list(kernel[2:]),
    }  # fmt: skip
    results: list[SSAValue | None] = [None, None, None]
    if wanted[0]:
        sizes, given = node.static(x)[2:], node.static(gradient)[2:]
        missing = [
            sizes[k] - ((given[k] - 1) * stride[k] - 2 * padding[k] + dilation[k] * (kernel[2 + k] - 1) + 1)
            for k in range(2)
        ]
        results[0] = node.call(
            "nn.conv2d_transpose", gradient, weight, channels=kernel[1] * groups, output_padding=missing, **attributes
        )
    if wanted[1]:
        results[1] = node.call(
            "nn.conv2d_backward_weight", gradient, x, channels=kernel[0], kernel_layout="NCHW", **attributes
        )
    if wanted[2]:
        results[2] = over(node, "sum", gradient, [0, 2, 3])
    return results


def _normalized(node: FxNode, x: SSAValue, mean: SSAValue, deviation: SSAValue) -> SSAValue:
    return node.call("multiply", node.call("subtract", x, mean), deviation)


def _data_gradient(
    node: FxNode, gradient: SSAValue, normalized: SSAValue, deviation: SSAValue, dims: list[int]
) -> SSAValue:
    """Returns deviation · (g - mean(g) - normalized · mean(g · normalized)) over the normalized axes."""
    first = over(node, "mean", gradient, dims, True)
    second = over(node, "mean", node.call("multiply", gradient, normalized), dims, True)
    rest = node.call("subtract", node.call("subtract", gradient, first), node.call("multiply", normalized, second))
    return node.call("multiply", rest, deviation)


@operator("native_layer_norm_backward")
def layer_norm_gradient(
    node: FxNode, gradient: SSAValue, x: SSAValue, shape: Sequence[Any], mean: SSAValue, deviation: SSAValue,
    weight: SSAValue | None, bias: SSAValue | None, wanted: Sequence[bool],
) -> list[SSAValue | None]:  # fmt: skip
    """Returns the gradients of data, weight and bias."""
    rank = node.rank(x)
    inner = list(range(rank - len(shape), rank))
    outer = list(range(rank - len(shape)))
    normalized = _normalized(node, x, mean, deviation)
    weighted = gradient if weight is None else node.call("multiply", gradient, weight)

    def summed(value: SSAValue) -> SSAValue:
        return over(node, "sum", value, outer) if outer else value

    return [
        _data_gradient(node, weighted, normalized, deviation, inner) if wanted[0] else None,
        summed(node.call("multiply", gradient, normalized)) if wanted[1] and weight is not None else None,
        summed(gradient) if wanted[2] and bias is not None else None,
    ]


@operator("native_group_norm_backward")
def group_norm_gradient(
    node: FxNode, gradient: SSAValue, x: SSAValue, mean: SSAValue, deviation: SSAValue, weight: SSAValue | None,
    images: Any, channels: int, area: Any, groups: int, wanted: Sequence[bool],
) -> list[SSAValue | None]:  # fmt: skip
    """Returns the gradients, computed on (images, groups, channels of a group, area)."""
    count = node.number(images, "the batch")
    form = [count, groups, channels // groups, node.number(area, "the area")]
    g, data = (node.call("reshape", each, newshape=form) for each in (gradient, x))
    mean, deviation = (node.call("reshape", each, newshape=[count, groups, 1, 1]) for each in (mean, deviation))
    normalized = _normalized(node, data, mean, deviation)
    weighted = g
    if weight is not None:
        weighted = node.call("multiply", g, node.call("reshape", weight, newshape=[1, groups, channels // groups, 1]))
    results: list[SSAValue | None] = [None, None, None]
    if wanted[0]:
        results[0] = node.reshaped(_data_gradient(node, weighted, normalized, deviation, [2, 3]))
    if wanted[1]:
        sums = over(node, "sum", node.call("multiply", g, normalized), [0, 3])
        results[1] = node.call("reshape", sums, newshape=[channels])
    if wanted[2]:
        results[2] = node.call("reshape", over(node, "sum", g, [0, 3]), newshape=[channels])
    return results
