"""Pooling by windows, and to a size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from ....dialects.array import numpy_dtype
from ....dialects.relay.operators.common._lazy import numeric
from ..node import FxNode, pair
from ..registry import operator


def batched(node: FxNode, x: SSAValue, rank: int) -> SSAValue:
    """Returns images with a batch axis."""
    return node.call("expand_dims", x, axis=0) if node.rank(x) == rank + 1 else x


def unbatched(node: FxNode, value: SSAValue, like: SSAValue) -> SSAValue:
    """Removes the batch axis where `like` has none."""
    return value if node.rank(value) == node.rank(like) else node.call("squeeze", value, axis=[0])


def _within(node: FxNode, value: SSAValue) -> SSAValue:
    """Cuts off windows that begin after the image, which torch does not count with `ceil_mode`."""
    own, wanted = node.builder.extents(value), node.extents()
    rank = node.rank(value)
    if own == wanted or not all(isinstance(size, int) for size in (*own, *wanted)):
        return value
    ends = [int(str(size)) for size in wanted]
    return node.call("strided_slice", value, begin=[0] * rank, end=ends, strides=[1] * rank)


@operator("avg_pool1d", "avg_pool2d", "avg_pool3d")
def avg_pool(
    node: FxNode,
    x: SSAValue,
    kernel: Any,
    stride: Any,
    padding: Any,
    ceil: bool,
    counts_padding: bool,
    divisor: int | None = None,
) -> SSAValue:
    """Averages over windows; another divisor than their size scales the result."""
    rank = int(node.name[len("avg_pool")])
    kernel, padding = pair(kernel, rank), pair(padding, rank)
    attributes: dict[str, Any] = {
        "pool_size": kernel, "strides": pair(stride, rank) if stride else kernel, "padding": [*padding, *padding],
        "ceil_mode": bool(ceil),
    }  # fmt: skip
    data = batched(node, x, rank)
    found = node.call(f"nn.avg_pool{rank}d", data, count_include_pad=bool(counts_padding), **attributes)
    if divisor is not None:
        # A window's sum is its mean times its size, where it is all in the image or in padding that is zeros.
        dtype = node.builder.dtype(x)
        widths = [[0, 0], [0, 0], *([each, each + kernel[k]] for k, each in enumerate(padding))]
        zero = node.builder.constant(0, dtype)
        filled = node.call("nn.pad", data, zero, pad_width=widths)
        extents = node.extents()[-rank:]
        strides = attributes["strides"]
        found = node.call(f"nn.avg_pool{rank}d", filled, pool_size=kernel, strides=strides)
        ends = [node.number(each, "a size") for each in extents]
        found = node.call(
            "strided_slice", found, begin=[0] * rank, end=ends, strides=[1] * rank, axes=list(range(2, 2 + rank))
        )
        found = node.call("multiply", found, node.builder.constant(np.prod(kernel) / divisor, dtype))
    return _within(node, unbatched(node, found, x))


@operator(
    "_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "adaptive_avg_pool2d", "adaptive_avg_pool1d", "adaptive_avg_pool3d"
)
def adaptive_avg_pool(node: FxNode, x: SSAValue, size: Any) -> SSAValue:
    """Averages over parts of the image, so many along each axis."""
    rank = int(node.name[-2])
    sizes = [node.number(each, "a size") for each in pair(size, rank)]
    data = batched(node, x, rank)
    if all(each == 1 for each in sizes):
        found = node.call(f"nn.global_avg_pool{rank}d", data)
    else:
        found = node.call(f"nn.adaptive_avg_pool{rank}d", data, output_size=sizes)
    return unbatched(node, found, x)


@operator("max_pool2d_with_indices", "max_pool3d_with_indices", "max_pool2d", "max_pool1d", "max_pool3d")
def max_pool(
    node: FxNode, x: SSAValue, kernel: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil: bool = False
) -> Any:
    """Returns the largest element of each window and, where it is used, its place in the flattened image."""
    rank = int(node.name[len("max_pool")])
    kernel, padding, dilation = pair(kernel, rank), pair(padding, rank), pair(dilation, rank)
    stride = pair(stride, rank) if stride else kernel
    data = batched(node, x, rank)
    found = node.call(
        f"nn.max_pool{rank}d", data, pool_size=kernel, strides=stride, padding=[*padding, *padding], dilation=dilation,
        ceil_mode=bool(ceil),
    )  # fmt: skip
    found = _within(node, unbatched(node, found, x))
    if "indices" not in node.name:
        return found
    if not node.uses(1):
        return [found, None]
    place = positions(node, data, node.extents()[-rank:], kernel, stride, padding, dilation)
    return [found, unbatched(node, place, x)]


def positions(
    node: FxNode,
    x: SSAValue,
    counts: Sequence[Any],
    kernel: list[int],
    stride: list[int],
    padding: list[int],
    dilation: list[int],
) -> SSAValue:
    """Returns the place of each window's largest element, by gathering the windows."""
    rank = len(kernel)
    shape = node.static(x)
    dtype = node.builder.dtype(x)
    sizes = [node.number(each, "a size") for each in counts]
    least = node.builder.constant(numeric.lowest(numpy_dtype(dtype)), dtype)
    widths = [[0, 0], [0, 0]]
    flat = np.zeros([1] * (2 * rank), np.int64)
    indices: list[Any] = []
    for k in range(rank):
        index = np.arange(sizes[k])[:, None] * stride[k] + np.arange(kernel[k])[None, :] * dilation[k]
        widths.append([padding[k], max(0, int(index.max()) + 1 - padding[k] - shape[2 + k])])
        indices.append(index)
        form = [1] * (2 * rank)
        form[k], form[rank + k] = index.shape
        flat = flat * shape[2 + k] + (index - padding[k]).reshape(form)
    windows = node.call("nn.pad", x, least, pad_width=widths)
    for k, index in enumerate(indices):
        windows = node.call("take", windows, node.builder.array_constant(index), axis=2 + 2 * k)
    order = [0, 1, *(2 + 2 * k for k in range(rank)), *(3 + 2 * k for k in range(rank))]
    windows = node.call("transpose", windows, axes=order)
    count, length = int(np.prod(sizes)), int(np.prod(kernel))
    windows = node.call("reshape", windows, newshape=[*shape[:2], count, length])
    best = node.cast(node.call("argmax", windows, axis=[3], keepdims=True), "int64")
    table = np.broadcast_to(flat.reshape(1, 1, count, length), (*shape[:2], count, length))
    place = node.call("gather", node.builder.array_constant(np.ascontiguousarray(table)), best, axis=3)
    return node.call("reshape", place, newshape=[*shape[:2], *sizes])
