"""Converts ONNX operators on images: resizing, sampling, regions of interest, boxes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from ....dialects.relay.operator import Attrs
from ....dialects.relay.operators.image.resize import axis_taps
from ...common.graph_builder import GraphBuilder
from ...common.open_sizes import Extent, computed
from ...common.slices import sliced
from ..node import Node
from ..registry import operator
from .shape import checked_axes, length

# Resizing ------------------------------------------------------------------------------------------------------------


COORDINATES = (
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_half_pixel_for_nn",
    "tf_crop_and_resize",
)  # fmt: skip
"""The ways to compute the place in an image that a pixel of the resized one comes from."""

NEAREST = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
"""The ways to round such a place to a pixel."""


@dataclass(frozen=True)
class Resizing:
    """The attributes of a `Resize`."""

    mode: str = "nearest"
    coordinates: str = "asymmetric"
    nearest: str = "floor"
    alpha: float = -0.75
    exclude_outside: bool = False
    antialias: bool = False
    extrapolation: float = 0.0


@dataclass(frozen=True)
class ResizedAxis:
    """An axis to resize: sizes before and after (int64), their ratio, the size before rounding (float32)."""

    axis: int
    old: SSAValue
    new: SSAValue
    scale: SSAValue
    length: SSAValue
    start: SSAValue | None = None
    end: SSAValue | None = None


@operator("Upsample")
def upsample_by_attributes(node: Node) -> SSAValue:
    """Converts `Upsample` with its scales as attributes: opsets 1 to 8."""
    scales = node.attr("scales")
    if scales is None:
        scales = [1.0, 1.0, float(node.attr("height_scale", 1.0)), float(node.attr("width_scale", 1.0))]
    return _by_scales(node, node.builder.constant(scales, "float32"), Resizing(_mode(node)))


@operator("Upsample", since=9)
def upsample(node: Node) -> SSAValue:
    """Converts `Upsample`: to each pixel belongs the one at its place divided by the scale."""
    return _by_scales(node, node[1], Resizing(_mode(node)))


@operator("Resize", since=10)
def resize_10(node: Node) -> SSAValue:
    """Converts `Resize` of opset 10, whose nearest pixel is the next one where the image becomes smaller."""
    return _by_scales(node, node[1], Resizing(_mode(node), nearest="simple"))


def _mode(node: Node) -> str:
    mode = node.choice("mode", "nearest", ("nearest", "linear", "bilinear", "trilinear", "cubic"))
    return {"bilinear": "linear", "trilinear": "linear"}.get(mode, mode)


def _by_scales(node: Node, scales: SSAValue, resizing: Resizing) -> SSAValue:
    axes = list(range(node.rank(0)))
    return _resize(node, resizing, [_scaled_axis(node, axis, scales, at) for at, axis in enumerate(axes)])


@operator("Resize", since=11)
def resize(node: Node) -> SSAValue:
    """Converts `Resize` to sizes or by scales, which may be computed."""
    builder, rank = node.builder, node.rank(0)
    resizing = Resizing(
        _mode(node),
        node.choice("coordinate_transformation_mode", "half_pixel", COORDINATES),
        node.choice("nearest_mode", "round_prefer_floor", NEAREST),
        float(node.attr("cubic_coeff_a", -0.75)),
        bool(node.attr("exclude_outside", 0)),
        bool(node.attr("antialias", 0)),
        float(node.attr("extrapolation_value", 0.0)),
    )
    axes = node.ints("axes")
    axes = list(range(rank)) if axes is None else checked_axes(node, axes, rank)
    by_sizes = node.has(3) and builder.extents(node[3])[0] != 0
    if by_sizes:
        policy = node.choice("keep_aspect_ratio_policy", "stretch", ("stretch", "not_larger", "not_smaller"))
        resized = [_sized_axis(node, axis, node[3], at) for at, axis in enumerate(axes)]
        if policy != "stretch":
            resized = _same_ratio(node, resized, policy)
    elif node.has(2):
        resized = [_scaled_axis(node, axis, node[2], at) for at, axis in enumerate(axes)]
    else:
        raise node.refuse("it needs one of the inputs scales and sizes")
    if resizing.coordinates == "tf_crop_and_resize":
        resized = [_with_region(node, each, at, len(axes)) for at, each in enumerate(resized)]
    return _resize(node, resizing, resized)


def _real(builder: GraphBuilder, value: SSAValue) -> SSAValue:
    return builder.call("cast", value, dtype="float32")


def _scaled_axis(node: Node, axis: int, scales: SSAValue, at: int) -> ResizedAxis:
    builder = node.builder
    scale = _real(builder, builder.call("take", scales, builder.integers(at), axis=0))
    old = builder.size(node[0], axis)
    length = builder.call("multiply", _real(builder, old), scale)
    return ResizedAxis(axis, old, builder.call("cast", builder.call("floor", length), dtype="int64"), scale, length)


def _sized_axis(node: Node, axis: int, sizes: SSAValue, at: int) -> ResizedAxis:
    builder = node.builder
    new = builder.call("cast", builder.call("take", sizes, builder.integers(at), axis=0), dtype="int64")
    old = builder.size(node[0], axis)
    length = _real(builder, new)
    return ResizedAxis(axis, old, new, builder.call("divide", length, _real(builder, old)), length)


def _same_ratio(node: Node, resized: Sequence[ResizedAxis], policy: str) -> list[ResizedAxis]:
    """Resizes all axes by one ratio: the smallest, by which none is larger than asked for, or the largest."""
    builder, found = node.builder, resized[0].scale
    for each in resized[1:]:
        found = builder.call("minimum" if policy == "not_larger" else "maximum", found, each.scale)
    result: list[ResizedAxis] = []
    for each in resized:
        length = builder.call("multiply", _real(builder, each.old), found)
        # Halves are rounded up.
        new = builder.call("floor", builder.call("add", length, builder.constant(0.5, "float32")))
        result.append(ResizedAxis(each.axis, each.old, builder.call("cast", new, dtype="int64"), found, new))
    return result


def _with_region(node: Node, each: ResizedAxis, at: int, count: int) -> ResizedAxis:
    ends = [
        _real(node.builder, node.call("take", node[1], node.builder.integers(place), axis=0))
        for place in (at, count + at)
    ]
    return ResizedAxis(each.axis, each.old, each.new, each.scale, each.length, *ends)


def _resize(node: Node, resizing: Resizing, resized: Sequence[ResizedAxis]) -> SSAValue:
    """Resizes axes one after the other, at once where Relay has an operator for all of them."""
    builder, x = node.builder, node[0]
    resized = [each for each in resized if each.start is not None or not _is_kept(builder, each)]
    if not resized:
        return x
    at_once = _at_once(node, resizing, resized)
    if at_once is not None:
        return at_once
    dtype = builder.dtype(x)
    if resizing.mode != "nearest" and dtype not in ("float32", "float64"):
        x = builder.call("cast", x, dtype="float32")
    for each in resized:
        x = _resize_axis(node, x, resizing, each)
    return builder.call("cast", x, dtype=dtype) if builder.dtype(x) != dtype else x


def _number(builder: GraphBuilder, value: SSAValue) -> float | None:
    array = builder.array(value)
    return None if array is None else float(array)


def _extent(builder: GraphBuilder, value: SSAValue) -> Extent:
    known = builder.elements(value)
    return builder.sizes.fresh() if known is None else known[0]


def _is_kept(builder: GraphBuilder, each: ResizedAxis) -> bool:
    if _number(builder, each.scale) is not None:
        return _number(builder, each.scale) == 1
    known = builder.elements(each.new)
    return known is not None and known == builder.elements(each.old)


def _positions(node: Node, resizing: Resizing, each: ResizedAxis) -> SSAValue:
    """Returns the place, before resizing, of each place of an axis (float32)."""
    builder = node.builder

    def constant(value: float) -> SSAValue:
        return builder.constant(value, "float32")

    def minus_one(value: SSAValue) -> SSAValue:
        return builder.call("subtract", value, constant(1.0))

    place = _real(builder, builder.call("arange", builder.integers(0), each.new, builder.integers(1), dtype="int64"))
    old = _real(builder, each.old)
    is_one = builder.call("equal", each.length, constant(1.0))
    half = builder.call("divide", builder.call("add", place, constant(0.5)), each.scale)
    match resizing.coordinates:
        case "asymmetric":
            return builder.call("divide", place, each.scale)
        case "half_pixel":
            return builder.call("subtract", half, constant(0.5))
        case "pytorch_half_pixel":
            return builder.call("where", is_one, constant(0.0), builder.call("subtract", half, constant(0.5)))
        case "tf_half_pixel_for_nn":
            return half
        case "half_pixel_symmetric":
            # The centre of the image stays where its size is rounded.
            ratio = builder.call("divide", _real(builder, each.new), each.length)
            offset = builder.call(
                "multiply", builder.call("multiply", old, constant(0.5)), builder.call("subtract", constant(1.0), ratio)
            )
            return builder.call("subtract", builder.call("add", offset, half), constant(0.5))
        case "align_corners":
            steps = builder.call("where", is_one, constant(1.0), minus_one(each.length))
            found = builder.call("divide", builder.call("multiply", place, minus_one(old)), steps)
            return builder.call("where", is_one, constant(0.0), found)
        case _:  # tf_crop_and_resize
            assert each.start is not None and each.end is not None
            steps = builder.call("where", is_one, constant(1.0), minus_one(each.length))
            width = builder.call("multiply", builder.call("subtract", each.end, each.start), minus_one(old))
            first = builder.call("multiply", each.start, minus_one(old))
            found = builder.call("add", first, builder.call("divide", builder.call("multiply", place, width), steps))
            middle = builder.call(
                "multiply",
                builder.call("add", each.start, each.end),
                builder.call("multiply", minus_one(old), constant(0.5)),
            )
            return builder.call("where", is_one, middle, found)


def _nearest_pixel(node: Node, resizing: Resizing, each: ResizedAxis, position: SSAValue) -> SSAValue:
    builder = node.builder
    half = builder.constant(0.5, "float32")
    match resizing.nearest:
        case "round_prefer_floor":
            return builder.call("ceil", builder.call("subtract", position, half))
        case "round_prefer_ceil":
            return builder.call("floor", builder.call("add", position, half))
        case "floor":
            return builder.call("floor", position)
        case "ceil":
            return builder.call("ceil", position)
        case _:  # simple
            smaller = builder.call("less", each.scale, builder.constant(1.0, "float32"))
            return builder.call("where", smaller, builder.call("ceil", position), builder.call("floor", position))


def _inside(builder: GraphBuilder, pixel: SSAValue, each: ResizedAxis) -> SSAValue:
    """Returns the numbers of pixels (int32), those beyond the image replaced by its edge."""
    last = builder.call("subtract", each.old, builder.integers(1))
    kept = builder.call(
        "minimum", builder.call("maximum", builder.call("cast", pixel, dtype="int64"), builder.integers(0)), last
    )
    return builder.call("cast", kept, dtype="int32")


def _resize_axis(node: Node, x: SSAValue, resizing: Resizing, each: ResizedAxis) -> SSAValue:
    """Resizes one axis: picks its nearest pixels, or sums neighbours, each times a weight.

    x (…,n,…), pixels (m,k), weights (m,k): take(x, pixels) (…,m,k,…) times the weights, summed over k.
    """
    builder, axis = node.builder, each.axis
    sizes = list(builder.extents(x))
    sizes[axis] = _extent(builder, each.new)
    position = _positions(node, resizing, each)
    if resizing.mode == "nearest":
        pixels = _inside(builder, _nearest_pixel(node, resizing, each, position), each)
        result = builder.call("take", x, pixels, axis=axis)
    else:
        pixels, weights = _taps(node, resizing, each, position)
        taken = builder.call("take", x, _inside(builder, pixels, each), axis=axis)
        weights = _along(builder, builder.call("cast", weights, dtype=builder.dtype(x)), len(sizes) - axis - 1)
        result = builder.call("sum", builder.call("multiply", taken, weights), axis=[axis + 1])
    if resizing.coordinates == "tf_crop_and_resize":
        last = _real(builder, builder.call("subtract", each.old, builder.integers(1)))
        outside = builder.call(
            "logical_or",
            builder.call("less", position, builder.constant(0.0, "float32")),
            builder.call("greater", position, last),
        )
        outside = _along(builder, outside, len(sizes) - axis - 1)
        result = builder.call("where", outside, builder.constant(resizing.extrapolation, builder.dtype(x)), result)
    return builder.sized(result, sizes)


def _along(builder: GraphBuilder, value: SSAValue, axes_after: int) -> SSAValue:
    return builder.call("expand_dims", value, axis=builder.rank(value), num_newaxis=axes_after) if axes_after else value


def _taps(node: Node, resizing: Resizing, each: ResizedAxis, position: SSAValue) -> tuple[SSAValue, SSAValue]:
    """Returns the pixels (m,k) that each place is a sum of, and their weights (float32)."""
    builder = node.builder

    def constant(value: float) -> SSAValue:
        return builder.constant(value, "float32")

    reach = 1 if resizing.mode == "linear" else 2
    first = builder.call("floor", position)
    beyond = builder.call("expand_dims", builder.call("subtract", position, first), axis=1)
    if resizing.antialias:
        # The filter is as wide as a pixel of the smaller image.
        scale = builder.call("minimum", each.scale, constant(1.0))
        start = builder.call(
            "add", builder.call("floor", builder.call("divide", constant(-reach), scale)), constant(1.0)
        )
        low = builder.call("cast", start, dtype="int64")
        high = builder.call("subtract", builder.integers(2), low)
        steps = _real(builder, builder.call("arange", low, high, builder.integers(1), dtype="int64"))
    else:
        scale = constant(1.0)
        steps = builder.constant(list(range(1 - reach, 1 + reach)), "float32")
    steps = builder.call("expand_dims", steps, axis=0)
    distance = builder.call("abs", builder.call("multiply", builder.call("subtract", steps, beyond), scale))
    weights = _filter(builder, distance, resizing)
    pixels = builder.call("add", builder.call("expand_dims", first, axis=1), steps)
    if resizing.exclude_outside:
        last = _real(builder, builder.call("subtract", each.old, builder.integers(1)))
        outside = builder.call(
            "logical_or", builder.call("less", pixels, constant(0.0)), builder.call("greater", pixels, last)
        )
        weights = builder.call("where", outside, constant(0.0), weights)
    if resizing.antialias or resizing.exclude_outside:
        weights = builder.call("divide", weights, builder.call("sum", weights, axis=[1], keepdims=True))
    return pixels, weights


def _filter(builder: GraphBuilder, distance: SSAValue, resizing: Resizing) -> SSAValue:
    """Returns the weight of a pixel at a distance: a triangle, or Keys' cubic."""

    def constant(value: float) -> SSAValue:
        return builder.constant(value, "float32")

    if resizing.mode == "linear":
        return builder.call("maximum", builder.call("subtract", constant(1.0), distance), constant(0.0))
    alpha = resizing.alpha

    def polynomial(*coefficients: float) -> SSAValue:
        found = constant(coefficients[0])
        for coefficient in coefficients[1:]:
            found = builder.call("add", builder.call("multiply", found, distance), constant(coefficient))
        return found

    near = polynomial(alpha + 2, -(alpha + 3), 0.0, 1.0)
    far = polynomial(alpha, -5 * alpha, 8 * alpha, -4 * alpha)
    outer = builder.call("where", builder.call("less", distance, constant(2.0)), far, constant(0.0))
    return builder.call("where", builder.call("less_equal", distance, constant(1.0)), near, outer)


ROUNDING = {
    "floor": "floor",
    "ceil": "ceil",
    "round_prefer_floor": "round_prefer_floor",
    "round_prefer_ceil": "round_prefer_ceil",
}
LAYOUTS = {3: "NCW", 4: "NCHW", 5: "NCDHW"}


def _at_once(node: Node, resizing: Resizing, resized: Sequence[ResizedAxis]) -> SSAValue | None:
    """Resizes by one operator of Relay; None where it would compute something else.

    Pixels that are repeated by whole numbers become `repeat`, images of known sizes `image.resize2d`.
    """
    builder, x = node.builder, node[0]
    if _repeats(builder, resizing, resized):
        for each in resized:
            x = builder.call("repeat", x, repeats=int(_number(builder, each.scale) or 1), axis=each.axis)
        return x
    shape, rank = builder.static_shape(x), node.rank(0)
    if shape is None or rank not in LAYOUTS or any(each.axis < 2 for each in resized) or 0 in shape:
        return None
    if resizing.antialias or resizing.coordinates in ("tf_crop_and_resize", "half_pixel_symmetric"):
        return None
    if resizing.mode != "nearest" and builder.dtype(x) not in ("float32", "float64"):
        return None
    size = list(shape[2:])
    attrs: dict[str, Any] = {
        "layout": LAYOUTS[rank],
        "method": {"nearest": "nearest_neighbor"}.get(resizing.mode, resizing.mode),
        "coordinate_transformation_mode": resizing.coordinates,
        "rounding_method": ROUNDING.get(resizing.nearest, "") if resizing.mode == "nearest" else "",
        "cubic_alpha": resizing.alpha,
        "cubic_exclude": int(resizing.exclude_outside and resizing.mode == "cubic"),
    }
    for each in resized:
        new, scale = builder.elements(each.new), _number(builder, each.scale)
        position = builder.array(_positions(node, resizing, each))
        if new is None or not isinstance(new[0], int) or new[0] < 1 or scale is None or position is None:
            return None
        old = shape[each.axis]
        size[each.axis - 2] = new[0]
        taps, _ = axis_taps(old, new[0], Attrs({**attrs, "roi": None, "extrapolation_value": 0.0}), "float32", 0.0, 1.0)
        own = _own_taps(node, resizing, each, position)
        if not _same_taps(own, [(np.asarray(at), np.asarray(weight)) for at, weight in taps], old):
            return None
    return builder.call(f"image.resize{rank - 2}d", x, size=size, **attrs)


def _repeats(builder: GraphBuilder, resizing: Resizing, resized: Sequence[ResizedAxis]) -> bool:
    """Returns whether each pixel is repeated by a constant whole number along each axis."""
    if resizing.mode != "nearest":
        return False
    rounding = {
        "asymmetric": ("floor", "simple"), "half_pixel": ("round_prefer_floor", "round_prefer_ceil"), "tf_half_pixel_for_nn": ("floor",),
    }  # fmt: skip
    if resizing.nearest not in rounding.get(resizing.coordinates, ()):
        return False
    scales = [_number(builder, each.scale) for each in resized]
    return all(scale is not None and scale >= 1 and scale.is_integer() for scale in scales)


Taps = list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]


def _own_taps(node: Node, resizing: Resizing, each: ResizedAxis, position: Any) -> Taps | None:
    builder = node.builder
    value = builder.array_constant(position)
    if resizing.mode == "nearest":
        pixels = builder.array(_inside(builder, _nearest_pixel(node, resizing, each, value), each))
        return None if pixels is None else [(pixels, np.ones(pixels.shape, np.float32))]
    found, weights = (builder.array(part) for part in _taps(node, resizing, each, value))
    if found is None or weights is None:
        return None
    return [(found[:, k], weights[:, k]) for k in range(found.shape[1])]


def _same_taps(own: Taps | None, other: Taps, size: int) -> bool:
    """Returns whether each place sums the same pixels with the same weights, up to rounding."""
    if own is None:
        return False

    def matrix(taps: Taps) -> Any:
        found = np.zeros((len(taps[0][0]), size))
        for pixels, weights in taps:
            np.add.at(found, (np.arange(len(pixels)), np.clip(pixels, 0, size - 1).astype(int)), weights)
        return found

    return prod((len(own[0][0]), size)) <= 1 << 22 and bool(np.allclose(matrix(own), matrix(other), atol=1e-3))


# Sampling ------------------------------------------------------------------------------------------------------------

SAMPLING = {"linear": "bilinear", "cubic": "bicubic"}


@operator("GridSample", since=16)
def grid_sample(node: Node) -> SSAValue:
    """Converts `GridSample`: the coordinates, last in ONNX' grid, come second in Relay's."""
    rank = node.rank(0)
    mode = str(node.attr("mode", "linear"))
    grid = node.call("transpose", node[1], axes=[0, rank - 1, *range(1, rank - 1)])
    x, dtype = node[0], node.dtype(0)
    if "float" not in dtype:
        x = node.call("cast", x, dtype="float64" if dtype in ("int32", "int64", "uint32", "uint64") else "float32")
    result = node.call(
        "image.grid_sample", x, grid, method=SAMPLING.get(mode, mode), layout=LAYOUTS[rank],
        padding_mode=str(node.attr("padding_mode", "zeros")), align_corners=bool(node.attr("align_corners", 0)),
    )  # fmt: skip
    return result if node.builder.dtype(result) == dtype else node.call("cast", result, dtype=dtype)


@operator("AffineGrid", since=20)
def affine_grid(node: Node) -> SSAValue:
    """Converts `AffineGrid`: the product of each matrix with the places of an image, from -1 to 1.

    theta (N,2,3), size (N,C,H,W) -> (N,H,W,2); theta (N,3,4), size (N,C,D,H,W) -> (N,D,H,W,3)
    """
    builder, theta = node.builder, node[0]
    count = builder.extents(node[1])[0]
    rank = count - 2 if isinstance(count, int) else 0
    if rank not in (2, 3):
        raise node.refuse(f"size has {count} numbers; it must have 4 or 5")
    dtype = builder.dtype(theta)
    places: list[SSAValue] = []
    for axis in range(rank):
        size = builder.call("cast", builder.call("take", node[1], builder.integers(2 + axis), axis=0), dtype="int64")
        place = builder.call(
            "cast", builder.call("arange", builder.integers(0), size, builder.integers(1), dtype="int64"), dtype=dtype
        )
        steps = builder.call("cast", size, dtype=dtype)
        two, one = builder.constant(2, dtype), builder.constant(1, dtype)
        if node.attr("align_corners", 0):
            steps = builder.call("maximum", builder.call("subtract", steps, one), one)
        else:
            place = builder.call("add", place, builder.constant(0.5, dtype))
        place = builder.call("subtract", builder.call("divide", builder.call("multiply", place, two), steps), one)
        places.append(builder.reshape(place, [1, *(-1 if at == axis else 1 for at in range(rank)), 1]))
    # The coordinates are in the opposite order of the axes: x first.
    terms: list[SSAValue] = []
    for column, place in enumerate([*reversed(places), None]):
        factor = builder.call("strided_slice", theta, begin=[column], end=[column + 1], axes=[2])
        factor = builder.reshape(factor, [0, *[1] * rank, rank], allowzero=False)
        terms.append(factor if place is None else builder.call("multiply", factor, place))
    result = terms[0]
    for term in terms[1:]:
        result = builder.call("add", result, term)
    return result


# Regions -------------------------------------------------------------------------------------------------------------


def _pooled(node: Node, *names: str) -> list[int]:
    return [int(node.attr(name, 1)) for name in names]


@operator("RoiAlign")
def roi_align(node: Node) -> SSAValue:
    """Converts `RoiAlign`: each region is preceded by the number of its image."""
    builder, rois = node.builder, node[1]
    numbers = builder.call("expand_dims", builder.call("cast", node[2], dtype=builder.dtype(rois)), axis=1)
    default = "half_pixel" if node.opset >= 16 else "output_half_pixel"
    return node.call(
        "vision.roi_align", node[0], builder.call("concatenate", builder.tuple([numbers, rois]), axis=1),
        pooled_size=_pooled(node, "output_height", "output_width"), spatial_scale=float(node.attr("spatial_scale", 1.0)),
        sample_ratio=int(node.attr("sampling_ratio", 0)), mode={"max": "max_pixel"}.get(node.attr("mode", "avg"), "avg"),
        aligned=node.attr("coordinate_transformation_mode", default) == "half_pixel",
    )  # fmt: skip


@operator("MaxRoiPool")
def max_roi_pool(node: Node) -> SSAValue:
    """Converts `MaxRoiPool`."""
    return node.call(
        "vision.roi_pool", node[0], node[1], pooled_size=node.ints("pooled_shape") or [],
        spatial_scale=float(node.attr("spatial_scale", 1.0)),
    )  # fmt: skip


@operator("NonMaxSuppression", since=10)
def non_max_suppression(node: Node) -> SSAValue:
    """Converts `NonMaxSuppression`: the rows (batch, class, box) that are selected, as many as there are."""
    builder, boxes, scores = node.builder, node[0], node[1]
    if node.attr("center_point_box", 0):
        center = builder.call("strided_slice", boxes, begin=[0], end=[2], axes=[2])
        half = builder.call(
            "multiply", builder.call("strided_slice", boxes, begin=[2], end=[4], axes=[2]), node.scalar(0.5, boxes)
        )
        corners = [builder.call(name, center, half) for name in ("subtract", "add")]
        boxes = builder.call("concatenate", builder.tuple(corners), axis=2)
    most = builder.call("cast", builder.reshape(node[2], []), dtype="int64") if node.has(2) else builder.integers(0)
    shared = builder.reshape(node[3], []) if node.has(3) else node.scalar(0.0, boxes)
    least = builder.reshape(node[4], []) if node.has(4) else node.scalar(-np.inf, scores)
    # Relay selects without a limit where the limit is 0, and ONNX selects no box; int32 holds every number of boxes that fits in memory.
    limit = builder.call("clip", most, a_min=0.0, a_max=float(2**31 - 1))
    rows, count = builder.tuple_parts(
        builder.call(
            "vision.all_class_non_max_suppression",
            boxes,
            scores,
            builder.call("cast", limit, dtype="int32"),
            shared,
            least,
            strict=True,
        )
    )
    count = builder.call("where", builder.call("greater", most, builder.integers(0)), count, builder.integers([0]))
    return builder.call("dyn.strided_slice", rows, builder.integers([0]), count, builder.integers([1]), axes=[0])


@operator("Col2Im", since=18)
def col2im(node: Node) -> SSAValue:
    """Converts `Col2Im`: adds every column of a block at the places of the image that the block covers.

    data (N, C*k0*k1, blocks), image_shape [H,W], block_shape [k0,k1] -> (N,C,H,W)
    """
    builder, x = node.builder, node[0]
    image, block = (builder.call("cast", node[at], dtype="int64") for at in (1, 2))
    rank = length(node, image, "axes of the image")
    strides, dilations = node.ints("strides", [1] * rank) or [], node.ints("dilations", [1] * rank) or []
    pads = node.ints("pads", [0] * (2 * rank)) or []
    whole = builder.call("add", image, builder.integers([pads[axis] + pads[rank + axis] for axis in range(rank)]))

    def number(sizes: SSAValue, axis: int) -> SSAValue:
        return builder.call("take", sizes, builder.integers(axis), axis=0)

    def steps(count: SSAValue, by: int, axis: int) -> SSAValue:
        found = builder.call("arange", builder.integers(0), count, builder.integers(1), dtype="int64")
        return builder.reshape(
            builder.call("multiply", found, builder.integers(by)), [-1 if at == axis else 1 for at in range(2 * rank)]
        )

    # The place in the padded image of each element of a block (the first axes), for each block (the others).
    places = builder.integers(0)
    for axis, (stride, dilation) in enumerate(zip(strides, dilations, strict=True)):
        size, width = number(whole, axis), number(block, axis)
        covered = builder.call(
            "multiply", builder.call("subtract", width, builder.integers(1)), builder.integers(dilation)
        )
        last = builder.call("subtract", builder.call("subtract", size, covered), builder.integers(1))
        count = builder.call("add", builder.call("floor_divide", last, builder.integers(stride)), builder.integers(1))
        own = builder.call("add", steps(width, dilation, axis), steps(count, stride, rank + axis))
        places = builder.call("add", builder.call("multiply", places, size), own)
    at = builder.reshape(places, [1, -1])
    elements = builder.call("prod", block)
    sizes = builder.extents(x)
    width = builder.call("multiply", elements, builder.size(x, 2))
    columns = builder.call("transpose", builder.reshape(x, builder.sizes_tensor([-1, width])), axes=[1, 0])
    base = builder.call(
        "dyn.zeros",
        builder.sizes_tensor([builder.call("prod", whole), builder.size(columns, 1)]),
        dtype=builder.dtype(x),
    )
    summed = builder.call("scatter_nd", base, at, columns, mode="add")
    target = [builder.size(x, 0), -1, *(number(whole, axis) for axis in range(rank))]
    result = builder.reshape(builder.call("transpose", summed, axes=[1, 0]), builder.sizes_tensor(target))
    if any(pads):
        begin = builder.integers(pads[:rank])
        end = builder.call("add", begin, image)
        result = sliced(node.builder, result, list(range(2, 2 + rank)), begin, end, builder.integers([1] * rank))
    known, width_of = builder.elements(image), builder.elements(elements)
    if known is None or width_of is None:
        return result
    return builder.sized(result, [sizes[0], computed(lambda a, b: a // b, sizes[1], width_of[0]), *known])


@operator("ImageDecoder", since=20)
def image_decoder(node: Node) -> SSAValue:
    """Refuses `ImageDecoder`: files of images are decoded before the model."""
    raise node.refuse(
        "decoding files of images is not supported",
        "decode them before the model, and pass their pixels",
    )
