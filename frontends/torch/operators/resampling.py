"""Images in other sizes, and at the points of a grid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from ..node import FxNode
from ..registry import operator


def _is_plain(sizes: Sequence[int], result: Sequence[int], factors: Sequence[float]) -> bool:
    return all(size * factor == given for size, factor, given in zip(sizes, factors, result, strict=True))


@operator("upsample_nearest2d", "upsample_bilinear2d")
def upsample(node: FxNode, x: SSAValue, _size: Any, *rest: Any) -> SSAValue:
    """Resizes images: each pixel repeated, or interpolated."""
    is_linear = "bilinear" in node.name
    align = bool(rest[0]) if is_linear else False
    factors = rest[-1] if node.overload == "vec" else None
    shape = node.builder.extents(x)
    result = node.extents()[2:]
    if not all(isinstance(each, int) for each in (*shape[2:], *result)):
        return _open(node, x, is_linear, align, factors)
    sizes, wanted = [int(str(each)) for each in shape[2:]], [int(str(each)) for each in result]
    if not factors or align or _is_plain(sizes, wanted, factors):
        mode = "align_corners" if align else "half_pixel" if is_linear else "asymmetric"
        return node.call(
            "image.resize2d", x, size=wanted, method="linear" if is_linear else "nearest_neighbor",
            coordinate_transformation_mode=mode, rounding_method="" if is_linear else "floor",
        )  # fmt: skip
    for axis in range(2):
        if sizes[axis] != wanted[axis]:
            x = _resized(node, x, 2 + axis, sizes[axis], wanted[axis], 1 / factors[axis], is_linear)
    return x


def _resized(node: FxNode, x: SSAValue, axis: int, size: int, wanted: int, step: float, is_linear: bool) -> SSAValue:
    """Resizes along one axis by steps that are not the quotient of sizes."""
    step = float(np.float32(step))
    if not is_linear:
        places = np.minimum(np.floor(np.arange(wanted) * step).astype(np.int64), size - 1)
        return node.call("take", x, node.builder.array_constant(places), axis=axis)
    source = np.maximum((np.arange(wanted) + 0.5) * step - 0.5, 0)
    low = np.minimum(source.astype(np.int64), size - 1)
    high = np.minimum(low + 1, size - 1)
    form = [-1, *[1] * (node.rank(x) - axis - 1)]
    dtype = node.builder.dtype(x)
    weight = node.builder.constant((source - low).reshape(form), dtype)
    rest = node.builder.constant((1 - (source - low)).reshape(form), dtype)
    first, second = (node.call("take", x, node.builder.array_constant(each), axis=axis) for each in (low, high))
    return node.call("add", node.call("multiply", first, rest), node.call("multiply", second, weight))


def _open(node: FxNode, x: SSAValue, is_linear: bool, align: bool, factors: Any) -> SSAValue:
    """Resizes images of open sizes."""
    if factors is None:
        raise node.refuse("a computed size of the result; give a factor of scale")
    if not is_linear and all(factor == int(factor) for factor in factors):
        return node.call("nn.upsampling", x, scale_h=float(factors[0]), scale_w=float(factors[1]))
    tall, wide = (
        node.cast(node.call("floor", node.call("multiply", node.cast(node.tensor(node.size_of(x, 2 + k), "int64"), "float64"),
                                               node.builder.constant(factors[k], "float64"))), "int64")
        for k in range(2)
    )  # fmt: skip
    size = node.size_tensor([tall, wide])
    mode = "align_corners" if align else "half_pixel" if is_linear else "asymmetric"
    return node.call(
        "dyn.image.resize2d", x, size, node.builder.constant([], "float32"), method="linear" if is_linear else "nearest_neighbor",
        coordinate_transformation_mode=mode, rounding_method="" if is_linear else "floor",
    )  # fmt: skip


@operator("grid_sampler_2d")
def grid_sampler(node: FxNode, x: SSAValue, grid: SSAValue, method: int, padding: int, align: bool) -> SSAValue:
    """Samples images at the points of a grid (N, H, W, 2)."""
    places = node.call("transpose", grid, axes=[0, 3, 1, 2])
    return node.call(
        "image.grid_sample", x, places, method=("bilinear", "nearest", "bicubic")[method],
        padding_mode=("zeros", "border", "reflection")[padding], align_corners=bool(align),
    )  # fmt: skip
