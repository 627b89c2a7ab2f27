"""Products of matrices, convolutions, distances."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from ...common.transposes import transposed_operand
from ..node import FxNode, pair
from ..registry import operator
from .reduction import over
from .shape import sliced


def product(node: FxNode, a: SSAValue, b: SSAValue) -> SSAValue:
    """Multiplies two matrices: as a dense layer, whose weight is the transpose of `b`."""
    weight = transposed_operand(b)
    if weight is not None:
        return node.call("nn.dense", a, weight)
    return node.call("nn.matmul", a, b)


@operator("mm")
def mm(node: FxNode, a: SSAValue, b: SSAValue) -> SSAValue:
    """Multiplies two matrices."""
    return product(node, a, b)


@operator("linear")
def linear(node: FxNode, x: SSAValue, weight: SSAValue, bias: SSAValue | None = None) -> SSAValue:
    """Multiplies by a transposed weight and adds a bias."""
    found = (
        node.call("nn.dense", x, weight)
        if node.rank(weight) == 2
        else over(node, "sum", node.call("multiply", x, weight), -1)
    )
    return found if bias is None else node.call("add", found, bias)


def _scaled(node: FxNode, value: SSAValue, factor: Any) -> SSAValue:
    return value if factor == 1 else node.call("multiply", value, node.tensor(factor, node.builder.dtype(value)))


@operator("addmm")
def addmm(node: FxNode, bias: SSAValue, a: SSAValue, b: SSAValue, beta: Any, alpha: Any) -> SSAValue:
    """Adds a product of matrices to a tensor."""
    found = _scaled(node, product(node, a, b), alpha)
    return found if beta == 0 else node.call("add", found, _scaled(node, bias, beta))


@operator("bmm")
def bmm(node: FxNode, a: SSAValue, b: SSAValue) -> SSAValue:
    """Multiplies batches of matrices."""
    plain = transposed_operand(b)
    return node.call("nn.batch_matmul", a, b if plain is None else plain, transpose_b=plain is not None)


@operator("transformers::grouped_mm_fallback", "_grouped_mm")
def grouped_product(
    node: FxNode, x: SSAValue, weight: SSAValue, ends: SSAValue | None = None, bias: SSAValue | None = None, _dtype: Any = None
) -> SSAValue:  # fmt: skip
    """Multiplies groups of rows by a matrix each, as experts of a mixture do.

    x (S,K), weight (G,K,N), ends (G) → (S,N): rows ends[g-1] to ends[g] are multiplied by weight[g]; rows of no group are 0.
    """
    b = node.builder
    if ends is None or bias is not None or (node.rank(x), node.rank(weight)) != (2, 3):
        raise node.refuse("only groups of rows, each with a matrix of its own, can be multiplied here")
    groups, depth, width = node.static(weight, "the weight")
    dtype = b.dtype(x)
    ends = node.cast(ends, "int64")
    plain = transposed_operand(weight)
    begin: SSAValue = b.constant(0, "int64")
    parts: list[SSAValue] = []
    for group in range(groups):
        end = node.call("take", ends, b.integers(group), axis=0)
        rows = b.set_extents(sliced(node, x, 0, begin, end), (b.sizes.fresh(), depth))
        own = node.call("take", weight if plain is None else plain, b.integers(group), axis=0)
        parts.append(node.call("nn.matmul" if plain is None else "nn.dense", rows, own))
        begin = end
    rest = node.call("subtract", node.tensor(node.size_of(x, 0), "int64"), begin)
    zeros = node.call("dyn.full", b.constant(0, dtype), node.size_tensor([rest, width]), dtype=dtype)
    parts.append(b.set_extents(zeros, (b.sizes.fresh(), width)))
    return node.call("concatenate", b.tuple(parts), axis=0)


@operator("convolution")
def convolution(
    node: FxNode, x: SSAValue, weight: SSAValue, bias: SSAValue | None, stride: Any, padding: Any, dilation: Any,
    is_transposed: bool, output_padding: Any, groups: int,
) -> SSAValue:  # fmt: skip
    """Convolves over one to three axes, or scatters by a transposed convolution."""
    rank = node.rank(x) - 2
    kernel = node.static(weight, "the weight")
    before = pair(padding, rank)
    attributes: dict[str, Any] = {
        "strides": pair(stride, rank), "padding": [*before, *before], "dilation": pair(dilation, rank), "groups": groups,
        "kernel_size": list(kernel[2:]),
    }  # fmt: skip
    if is_transposed:
        attributes |= {"output_padding": pair(output_padding, rank), "channels": kernel[1] * groups}
        found = node.call(f"nn.conv{rank}d_transpose", x, weight, **attributes)
    else:
        found = node.call(f"nn.conv{rank}d", x, weight, channels=kernel[0], **attributes)
    return found if bias is None else node.call("nn.bias_add", found, bias, axis=1)


def distances(node: FxNode, difference: SSAValue, p: float) -> SSAValue:
    """Returns the p-norm over the last axis."""
    dtype = node.builder.dtype(difference)
    zero = node.builder.constant(0, dtype)
    if p == 0:
        return over(node, "sum", node.cast(node.call("not_equal", difference, zero), dtype), -1)
    magnitude = node.call("abs", difference)
    if p == inf:
        return over(node, "max", magnitude, -1)
    if p == 1:
        return over(node, "sum", magnitude, -1)
    if p == 2:
        return node.call("sqrt", over(node, "sum", node.call("multiply", difference, difference), -1))
    powers = over(node, "sum", node.call("power", magnitude, node.builder.constant(p, dtype)), -1)
    return node.call("power", powers, node.builder.constant(1 / p, dtype))


@operator("_cdist_forward")
def cdist(node: FxNode, first: SSAValue, second: SSAValue, p: float, *_: Any) -> SSAValue:
    """Returns the distances of each row of one matrix from each of another."""
    rank = node.rank(first)
    a = node.call("expand_dims", first, axis=rank - 1)
    b = node.call("expand_dims", second, axis=node.rank(second) - 2)
    return distances(node, node.call("subtract", a, b), p)


@operator("_pdist_forward")
def pdist(node: FxNode, x: SSAValue, p: float = 2.0) -> SSAValue:
    """Returns the distances of each pair of rows, the first row's first."""
    rows = node.static(x)[0]
    first, second = np.triu_indices(rows, 1)
    a, b = (
        node.call("take", x, node.builder.array_constant(each.astype(np.int64)), axis=0) for each in (first, second)
    )
    return distances(node, node.call("subtract", a, b), p)


@operator("col2im")
def col2im(
    node: FxNode, x: SSAValue, output_size: Sequence[int], kernel: Any, dilation: Any, padding: Any, stride: Any
) -> SSAValue:
    """Adds up overlapping windows: each one's elements to their places in the padded image."""
    height, width = (node.number(each, "a size") for each in output_size)
    kernel, dilation, padding, stride = (pair(each) for each in (kernel, dilation, padding, stride))
    shape = node.static(x)
    batched = len(shape) == 3
    images = shape[0] if batched else 1
    channels = shape[-2] // (kernel[0] * kernel[1])
    counts = [
        (size + 2 * padding[k] - dilation[k] * (kernel[k] - 1) - 1) // stride[k] + 1
        for k, size in enumerate((height, width))
    ]
    rows, columns = (
        np.arange(kernel[k])[:, None] * dilation[k] + np.arange(counts[k])[None, :] * stride[k] for k in range(2)
    )
    wide = width + 2 * padding[1]
    places = rows[:, None, :, None] * wide + columns[None, :, None, :]
    area = (height + 2 * padding[0]) * wide
    dtype = node.builder.dtype(x)
    flat = node.call("reshape", x, newshape=[images * channels, places.size], allowzero=True)
    zeros = node.call("full", node.builder.constant(0, dtype), shape=[images * channels, area], dtype=dtype)
    index = np.broadcast_to(places.reshape(1, -1), (images * channels, places.size)).astype(np.int64)
    found = node.call(
        "scatter_elements",
        zeros,
        node.builder.array_constant(np.ascontiguousarray(index)),
        flat,
        axis=1,
        reduction="add",
    )
    found = node.call("reshape", found, newshape=[images * channels, height + 2 * padding[0], wide], allowzero=True)
    found = node.call(
        "strided_slice",
        found,
        begin=padding,
        end=[padding[0] + height, padding[1] + width],
        strides=[1, 1],
        axes=[1, 2],
    )
    return node.reshaped(found)
