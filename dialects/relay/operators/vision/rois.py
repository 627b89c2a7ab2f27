"""Defines operators of object detection on regions: prior boxes, offsets, pooling, proposals.

roi_align:      data (N,C,H,W), rois (R,5), pooled_size=[h,w] -> (R,C,h,w)
multibox_prior: data (N,C,H,W), sizes, ratios -> (1, H*W*(sizes+ratios-1), 4)
"""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, sqrt
from typing import TYPE_CHECKING, Any

from ...operator import Attrs, OpPattern, Relation, attr, define
from ..common._lazy import np, numeric, te
from ..common.layout_strings import checked_layout, laid_out, layout, logical_sizes
from ..common.numpy_meanings import Array, round_half_away
from ..common.relations import (
    at_most,
    divide_dims,
    is_multiple,
    known_dim,
    multiply_dims,
    rank_must_be,
    same_dim,
    shape_of,
    show_argument,
    tensor_type,
    tuple_type,
)
from ..indexing.gather import must_have_elements
from ..sorting.sort import order
from . import te_rois as computes
from .nms import DOCUMENTATION, overlap

if TYPE_CHECKING:
    from ....te.builder import Buffer, Expr, Tensor


def _pairs(rel: Relation, *names: str) -> None:
    for name in names:
        if len(rel.attrs[name]) != 2:
            raise rel.fail(f"{rel.operator.name}: {name}={list(rel.attrs[name])} must be two numbers, of y and of x")


def _prior_relation(rel: Relation) -> None:
    data, attrs = rank_must_be(rel, 0, 4), rel.attrs
    if not attrs.sizes or not attrs.ratios:
        raise rel.fail(f"{rel.operator.name}: sizes and ratios must have a number each")
    _pairs(rel, "steps", "offsets")
    _, _, height, width = shape_of(data)
    count = multiply_dims(height, width, len(attrs.sizes) + len(attrs.ratios) - 1)
    rel.set_result(tensor_type([1, count, 4], data.element_type))


def _forms(attrs: Attrs) -> list[tuple[float, float]]:
    """Returns half the width (as a part of the height) and half the height of a cell's prior boxes."""
    sizes, ratios = attrs.sizes, attrs.ratios
    forms = [(size / 2, size / 2) for size in sizes]
    return forms + [(sizes[0] * sqrt(ratio) / 2, sizes[0] / sqrt(ratio) / 2) for ratio in ratios[1:]]


def _prior(attrs: Attrs, x: Array) -> Array:
    height, width = x.shape[2:]
    steps = [step if step > 0 else 1 / size for step, size in zip(attrs.steps, (height, width), strict=True)]
    centers_of: list[Array] = [
        (np.arange(size) + offset) * step
        for size, offset, step in zip((height, width), attrs.offsets, steps, strict=True)
    ]
    ys, xs = centers_of
    half = np.array([(w * height / width, h) for w, h in _forms(attrs)])
    centers = np.stack(np.broadcast_arrays(xs[None, :, None], ys[:, None, None]), -1)
    boxes = np.concatenate([centers - half, centers + half], -1).reshape(1, -1, 4)
    return (np.clip(boxes, 0, 1) if attrs.clip else boxes).astype(x.dtype)


def _te_prior(attrs: Attrs, x: Tensor) -> Tensor:
    height, width = x.shape[2:]
    forms = _forms(attrs)
    count = len(forms)

    def real(value: Any) -> Expr:
        return te.const(float(value), "float32") if isinstance(value, (int, float)) else value.astype("float32")

    def body(_: Expr, box: Expr, side: Expr) -> Expr:
        form, cell = te.floormod(box, count), te.floordiv(box, count)
        along = [te.floordiv(cell, width), te.floormod(cell, width)]
        center: list[Expr] = []
        for place, size, step, offset in zip(along, (height, width), attrs.steps, attrs.offsets, strict=True):
            step = real(step) if step > 0 else real(1.0) / real(size)
            center.append((real(place) + real(offset)) * step)
        half: list[Expr] = [real(forms[-1][0]), real(forms[-1][1])]
        for number, known in enumerate(forms[:-1]):
            half = [te.Select(form.equal(number), real(k), h) for k, h in zip(known, half, strict=True)]
        horizontal = te.floormod(side, 2).equal(0)
        middle = te.Select(horizontal, center[1], center[0])
        reach = te.Select(horizontal, half[0] * real(height) / real(width), half[1])
        value = te.Select(side < 2, middle - reach, middle + reach)
        return (te.max(te.min(value, 1.0), 0.0) if attrs.clip else value).astype(x.dtype)

    return te.compute((1, height * width * count, 4), body, name="T_multibox_prior")


define(
    "vision.multibox_prior", ("data",), _prior_relation, OpPattern.OPAQUE,
    numpy=_prior,
    compute=lambda attrs, xs, out: [_te_prior(attrs, xs[0])],
    attributes=(
        attr("sizes", (1.0,)), attr("ratios", (1.0,)), attr("steps", (-1.0, -1.0)), attr("offsets", (0.5, 0.5)),
        attr("clip", False),
    ),
    doc="For each cell of the data's grid, boxes (left, top, right, bottom in parts of the image) of sizes and aspect ratios.",
    source="https://arxiv.org/abs/1512.02325",
)  # fmt: skip


def _transform_relation(rel: Relation) -> None:
    classes, moves, anchors = rank_must_be(rel, 0, 3), rank_must_be(rel, 1, 2), rank_must_be(rel, 2, 3)
    batch, labels, count = shape_of(classes)
    if not at_most(1 if rel.attrs.keep_background else 2, labels):
        raise rel.fail(f"{rel.operator.name}: {show_argument(rel, 0)} has no class to choose", argument=0)
    if not same_dim(shape_of(anchors)[0], 1):
        raise rel.fail(
            f"{rel.operator.name}: {show_argument(rel, 2)} must be of one image, as all have its anchors", argument=2
        )
    if not same_dim(shape_of(moves)[0], batch):
        raise rel.fail(
            f"{rel.operator.name}: {show_argument(rel, 1)} must have a row for each image of {show_argument(rel, 0)}",
            argument=1,
        )
    fits = same_dim(shape_of(anchors)[1], count) and same_dim(shape_of(anchors)[2], 4)
    count = known_dim(count, shape_of(anchors)[1])
    if not fits or not same_dim(shape_of(moves)[1], multiply_dims(count, 4)):
        raise rel.fail(
            f"{rel.operator.name}: {show_argument(rel, 0)}, {show_argument(rel, 1)} and {show_argument(rel, 2)} must be of"
            " the same anchors, with 4 numbers each"
        )
    if len(rel.attrs.variances) != 4:
        raise rel.fail(f"{rel.operator.name}: variances={list(rel.attrs.variances)} must be four numbers")
    rel.set_result(tuple_type([tensor_type([batch, count, 6], classes.element_type), tensor_type([batch], "int32")]))


def _transform(attrs: Attrs, classes: Array, moves: Array, anchors: Array) -> tuple[Array, Array]:
    dtype = moves.dtype
    low, high = anchors[0, :, :2], anchors[0, :, 2:]
    size, center = high - low, (low + high) / 2
    delta = moves.reshape(len(moves), -1, 4) * np.array(attrs.variances, dtype)
    middle, reach = delta[..., :2] * size + center, np.exp(delta[..., 2:]) * size / 2
    boxes = np.concatenate([middle - reach, middle + reach], -1)
    boxes = np.clip(boxes, 0, 1) if attrs.clip else boxes
    first = 0 if attrs.keep_background else 1
    # A probability that is NaN is not above any other.
    classes = np.where(classes == classes, classes, numeric.lowest(classes.dtype))
    wanted = classes[:, first:]
    best = wanted.argmax(1) + first
    score = np.take_along_axis(classes, best[:, None], 1)[:, 0]
    best = np.where((score > -1) & ((best == 0) | (score >= np.asarray(attrs.threshold, dtype))), best, 0)
    score = np.maximum(score, np.asarray(-1, dtype))
    valid = np.ones_like(best, bool) if attrs.keep_background else best > 0
    found = np.concatenate([(best - first)[..., None].astype(dtype), score[..., None], boxes], -1).astype(dtype)
    result = np.full(found.shape, -1, dtype)
    for row, kept in enumerate(valid):
        result[row, : kept.sum()] = found[row, kept]
    return result, valid.sum(1, dtype=np.int32)


def _te_transform(attrs: Attrs, classes: Tensor, moves: Tensor, anchors: Tensor) -> list[Tensor]:
    batch, labels, count = classes.shape
    dtype = moves.dtype
    two, first = te.const(2.0, dtype), 0 if attrs.keep_background else 1

    def side(i: Expr, j: Expr, n: int) -> Expr:
        low, high = anchors(0, j, n % 2), anchors(0, j, n % 2 + 2)
        shift, growth = (moves(i, j * 4 + k) * te.const(attrs.variances[k], dtype) for k in (n % 2, n % 2 + 2))
        middle = shift * (high - low) + (low + high) / two
        reach = te.exp(growth) * (high - low) / two
        value = middle - reach if n < 2 else middle + reach
        return te.max(te.min(value, te.const(1.0, dtype)), te.const(0.0, dtype)) if attrs.clip else value

    boxes = te.compute((batch, count), lambda i, j: [side(i, j, n) for n in range(4)], name="T_boxes")

    def statements(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Any:
        (probability, *sides), (result, valid, score, label) = ins, outs
        ib = te.ir_builder.create()
        with ib.for_range(0, batch, "i") as i:
            ib.emit(valid.vstore(i, 0))
            with ib.for_range(0, count, "j") as j:
                ib.emit([score.vstore(0, te.const(-1.0, dtype)), label.vstore(0, 0)])
                with ib.for_range(first, labels, "k") as k, ib.if_scope(probability[i, k, j] > score[0]):
                    ib.emit([score.vstore(0, probability[i, k, j]), label.vstore(0, k)])
                with ib.if_scope(score[0] < te.const(attrs.threshold, dtype)):
                    ib.emit(label.vstore(0, 0))
                with ib.for_range(0, 6, "n") as n:
                    ib.emit(result.vstore((i, j, n), te.const(-1.0, dtype)))
                with ib.if_scope(label[0] >= first):
                    ib.emit(result.vstore((i, valid[i], 0), (label[0] - first).astype(dtype)))
                    ib.emit(result.vstore((i, valid[i], 1), score[0]))
                    for n, value in enumerate(sides):
                        ib.emit(result.vstore((i, valid[i], n + 2), value[i, j]))
                    ib.emit(valid.vstore(i, valid[i] + 1))
        return ib.get()

    shapes = [(batch, count, 6), (batch,), (1,), (1,)]
    dtypes = [dtype, "int32", dtype, "int32"]
    result, valid, *_ = te.extern(shapes, [classes, *boxes], statements, name="multibox", dtype=dtypes)
    return [result, valid]


define(
    "vision.multibox_transform_loc", ("cls_prob", "loc_pred", "anchor"), _transform_relation, OpPattern.OPAQUE,
    numpy=_transform,
    compute=lambda attrs, xs, out: _te_transform(attrs, *xs),
    attributes=(
        attr("clip", True), attr("threshold", 0.01), attr("variances", (0.1, 0.1, 0.2, 0.2)),
        attr("keep_background", False),
    ),
    doc="Anchors moved by predicted offsets: rows (class, score, box) of those with a class, then rows of -1; their number.",
    source="https://arxiv.org/abs/1512.02325",
)  # fmt: skip


def _image_of(roi: Array, count: int) -> int:
    """Returns the number of the image that a region is of, kept inside; NaN is 0, as `cast` has it."""
    return numeric.convert_scalar(roi[0], 0, count - 1)


def _rois_relation(rel: Relation) -> None:
    axes = "NCHW"
    of = checked_layout(rel, "layout", axes)
    if rel.operator.name == "vision.roi_pool" and of.text != axes:
        raise rel.fail(f"{rel.operator.name}: layout={of.text!r} must be {axes}")
    sizes, rois = logical_sizes(rel, 0, of), rank_must_be(rel, 1, 2)
    if not same_dim(shape_of(rois)[1], 5):
        raise rel.fail(
            f"{rel.operator.name}: {show_argument(rel, 1)} must have rows (batch, left, top, right, bottom)", argument=1
        )
    pooled = rel.attrs.pooled_size
    if len(pooled) != 2 or any(p < 1 for p in pooled):
        raise rel.fail(f"{rel.operator.name}: pooled_size={list(pooled)} must be two positive numbers")
    if "mode" in rel.attrs and rel.attrs.mode not in ("avg", "max", "max_pixel"):
        raise rel.fail(f"{rel.operator.name}: mode={rel.attrs.mode!r} must be avg, max or max_pixel")
    must_have_elements(rel, 0, sizes["N"], [shape_of(rois)[0], sizes["C"]])
    if rel.operator.name == "vision.roi_align" and not all(at_most(1, sizes[axis]) for axis in "HW"):
        raise rel.fail(f"{rel.operator.name}: the images of {show_argument(rel, 0)} have no pixels", argument=0)
    sizes |= {"N": shape_of(rois)[0], "H": pooled[0], "W": pooled[1]}
    rel.set_result(laid_out(rel, sizes, of, rel.tensor(0).element_type))


def _bilinear(x: Array, ys: Array, xs: Array, largest: bool = False) -> Array:
    """Returns the samples of x (C, H, W) at each pair of places: (C, len(ys), len(xs)).

    A place more than a pixel outside is 0. With `largest`, a sample is the largest weighted pixel in place of their sum.
    """
    result: Any = x.astype(ys.dtype)
    for axis, at in ((1, ys), (2, xs)):
        size = x.shape[axis]
        inside = np.clip(at, 0, size - 1)
        first = np.floor(inside)
        part = (inside - first).reshape([-1 if a == axis else 1 for a in range(3)])
        low = first.astype(np.int64)
        first, second = result.take(low, axis) * (1 - part), result.take(np.minimum(low + 1, size - 1), axis) * part
        result = np.maximum(first, second) if largest else first + second
        beyond = ((at < -1) | (at > size)).reshape(part.shape)
        result = np.where(beyond, np.zeros((), ys.dtype), result)
    return result


_MOST_SAMPLES = 2**31 - 1


def _near_samples(starts: Array, between: Array, count: int, size: int) -> Array:
    """Returns the numbers (bins, samples) of each bin's samples that are not far outside of the image.

    Each bin has as many of them as the one that needs most.
    """
    first = np.clip((-1 - starts.astype(np.float64)) / between - 0.5, 0, count)
    slack = 3 + first * computes.ROUNDING
    length = min(count, int(np.ceil((size + 1) / between + 2 * slack.max())) + 1)
    return np.clip(np.floor(first - slack), 0, count - length).astype(np.int64) + np.arange(length)


def _inside_first(places: Array, size: int) -> Array:
    """Returns each bin's positions inside of the image or next to it, as many as the bin with most has."""
    outside = (places < -1) | (places > size)
    most = max(int((~outside).sum(1).max(initial=0)), 1)
    return np.take_along_axis(places, np.argsort(outside, 1, kind="stable"), 1)[:, :most]


def _roi_align(attrs: Attrs, x: Array, rois: Array) -> Array:
    of, dtype = layout(attrs.layout), np.promote_types(rois.dtype, np.float32)
    data = of.to_logical(x, "NCHW")
    result = np.full((len(rois), data.shape[1], *attrs.pooled_size), np.nan, dtype)
    for n, roi in enumerate(rois.astype(dtype)):
        places: list[Array] = []
        total, is_whole = 1.0, True
        for axis, pooled in enumerate(attrs.pooled_size):
            low, high = roi[2 - axis] * dtype.type(attrs.spatial_scale), roi[4 - axis] * dtype.type(attrs.spatial_scale)
            length = high - low if attrs.aligned else np.maximum(high - low, dtype.type(1))
            low = low - dtype.type(0.5) if attrs.aligned else low
            step = length / dtype.type(pooled)
            if not (np.isfinite(low) and np.isfinite(step)):
                break
            count = attrs.sample_ratio if attrs.sample_ratio > 0 else int(min(np.ceil(step), _MOST_SAMPLES))
            if count < 1:
                places.append(np.zeros((pooled, 0), dtype))
                continue
            starts = low + np.arange(pooled, dtype=dtype)[:, None] * step
            near = _near_samples(starts, step / dtype.type(count), count, data.shape[2 + axis])
            place = starts + (near.astype(dtype) + dtype.type(0.5)) * step / dtype.type(count)
            places.append(_inside_first(place, data.shape[2 + axis]))
            total, is_whole = total * count, is_whole and places[-1].shape[1] == count
        if len(places) < 2:
            continue
        if not all(place.shape[1] for place in places):
            result[n] = 0
            continue
        image = data[_image_of(roi, len(data))]
        samples = _bilinear(image, places[0].reshape(-1), places[1].reshape(-1), attrs.mode == "max_pixel")
        samples = samples.reshape(len(image), *places[0].shape, *places[1].shape)
        if attrs.mode == "avg":
            result[n] = samples.sum((2, 4)) / dtype.type(total)
        else:
            largest = samples.max((2, 4))
            result[n] = largest if is_whole else np.maximum(largest, 0)
    return of.from_logical(result.astype(x.dtype), "NCHW")


define(
    "vision.roi_align", ("data", "rois"), _rois_relation, OpPattern.OUT_ELEMWISE_FUSABLE,
    numpy=_roi_align,
    compute=lambda attrs, xs, out: [computes.te_roi_align(attrs, *xs)],
    attributes=(
        attr("pooled_size", kind="ints"), attr("spatial_scale", kind="float"), attr("sample_ratio", -1),
        attr("layout", "NCHW"), attr("mode", "avg"), attr("aligned", False),
    ),
    doc="Regions (batch, left, top, right, bottom) of the data, each as a grid of means or maxima of interpolated samples; `aligned`"
    " ones begin half a pixel before and may be smaller than one.",
    source="https://arxiv.org/abs/1703.06870",
)  # fmt: skip


def _roi_pool(attrs: Attrs, x: Array, rois: Array) -> Array:
    result = np.zeros((len(rois), x.shape[1], *attrs.pooled_size), x.dtype)
    dtype = rois.dtype
    for n, roi in enumerate(rois):
        # Positions are int32 in native code: they wrap around.
        integer = np.dtype(np.int32)
        corner = numeric.convert(round_half_away(roi[1:] * dtype.type(attrs.spatial_scale)), integer)
        counts = np.maximum(corner[2:] - corner[:2] + 1, 1).astype(dtype)
        ranges: list[list[slice]] = []
        for axis, (pooled, size) in enumerate(zip(attrs.pooled_size, x.shape[2:], strict=True)):
            start, step = corner[1 - axis], counts[1 - axis] / dtype.type(pooled)
            place = np.arange(pooled + 1, dtype=dtype) * step
            first, last = (
                np.floor(place[:-1] + dtype.type(computes.EPSILON)),
                np.ceil(place[1:] - dtype.type(computes.EPSILON)),
            )
            low, high = (np.clip(numeric.convert(p, integer) + start, 0, size) for p in (first, last))
            ranges.append([slice(a, b) for a, b in zip(low.tolist(), high.tolist(), strict=True)])
        image = x[_image_of(roi, len(x))]
        for i, rows in enumerate(ranges[0]):
            for j, columns in enumerate(ranges[1]):
                part = image[:, rows, columns]
                if part.size:
                    result[n, :, i, j] = part.max((1, 2))
    return result


define(
    "vision.roi_pool", ("data", "rois"), _rois_relation, OpPattern.OUT_ELEMWISE_FUSABLE,
    numpy=_roi_pool,
    compute=lambda attrs, xs, out: [computes.te_roi_pool(attrs, *xs)],
    attributes=(attr("pooled_size", kind="ints"), attr("spatial_scale", kind="float"), attr("layout", "NCHW")),
    doc="Regions (batch, left, top, right, bottom) of the data, each as a grid of maxima of pixels; 0 where there are none.",
    source="https://arxiv.org/abs/1504.08083",
)  # fmt: skip


def _proposal_relation(rel: Relation) -> None:
    classes, moves, info = rank_must_be(rel, 0, 4), rank_must_be(rel, 1, 4), rank_must_be(rel, 2, 2)
    many = len(rel.attrs.scales) * len(rel.attrs.ratios)
    if not same_dim(shape_of(classes)[1], 2 * many) or not same_dim(shape_of(moves)[1], 4 * many) or not many:
        raise rel.fail(
            f"{rel.operator.name}: for {many} anchors {show_argument(rel, 0)} must have {2 * many} channels and"
            f" {show_argument(rel, 1)} {4 * many}",
            "there is an anchor for each scale and ratio",
        )
    if not same_dim(shape_of(info)[1], 3):
        raise rel.fail(
            f"{rel.operator.name}: {show_argument(rel, 2)} must have rows (height, width, scale)", argument=2
        )
    for axis, what in ((0, "images"), (2, "rows of cells"), (3, "cells in a row")):
        if not same_dim(shape_of(moves)[axis], shape_of(classes)[axis]):
            raise rel.fail(
                f"{rel.operator.name}: {show_argument(rel, 0)} and {show_argument(rel, 1)} must have as many {what}",
                argument=1,
            )
    if not same_dim(shape_of(info)[0], shape_of(classes)[0]):
        raise rel.fail(
            f"{rel.operator.name}: {show_argument(rel, 2)} must have a row for each image of {show_argument(rel, 0)}",
            argument=2,
        )
    if rel.attrs.rpn_post_nms_top_n < 1:
        raise rel.fail(f"{rel.operator.name}: rpn_post_nms_top_n={rel.attrs.rpn_post_nms_top_n} must be positive")
    if not all(at_most(1, size) for size in shape_of(classes)[2:]):
        raise rel.fail(f"{rel.operator.name}: {show_argument(rel, 0)} has no cells", argument=0)
    rows = multiply_dims(shape_of(classes)[0], rel.attrs.rpn_post_nms_top_n)
    rel.set_result(tensor_type([rows, 5], classes.element_type))


def anchors_of(attrs: Attrs) -> list[tuple[float, float, float, float]]:
    """Returns the anchors (left, top, right, bottom) of the first cell, ratio by ratio."""
    result: list[tuple[float, float, float, float]] = []
    base = float(attrs.feature_stride)
    center = 0.5 * (base - 1)
    for ratio in attrs.ratios:
        side = floor(sqrt(floor(base * base / ratio)) + 0.5)
        for scale in attrs.scales:
            width, height = side * scale, floor(side * ratio + 0.5) * scale
            x, y = 0.5 * (width - 1), 0.5 * (height - 1)
            result.append((center - x, center - y, center + x, center + y))
    return result


def _candidates(attrs: Attrs, probabilities: Array, deltas: Array, info: Array) -> tuple[Array, Array]:
    """Returns the boxes (cells * anchors, 4) of one image and their scores."""
    dtype = deltas.dtype
    anchors = np.array(anchors_of(attrs), dtype)
    many, (rows, columns, scale) = len(anchors), info
    height, width = deltas.shape[1:]
    places: Array = np.indices((height, width))
    ys, xs = places[0], places[1]
    cells = np.stack((xs, ys, xs, ys), -1)[:, :, None].astype(dtype) * dtype.type(attrs.feature_stride)
    box = anchors + cells
    delta = deltas.reshape(many, 4, height, width).transpose(2, 3, 0, 1)
    if attrs.iou_loss:
        box = box + delta
    else:
        size = box[..., 2:] - box[..., :2] + 1
        center = box[..., :2] + (size - 1) / 2 + delta[..., :2] * size
        size = np.exp(delta[..., 2:]) * size
        box = np.concatenate([center - (size - 1) / 2, center + (size - 1) / 2], -1)
    # Of an image without pixels the sides are 0: the lower bound holds.
    box = np.maximum(np.minimum(box, np.array([columns, rows, columns, rows], dtype) - 1), dtype.type(0)).astype(dtype)
    least = scale * dtype.type(attrs.rpn_min_size)
    small = (box[..., 2:] - box[..., :2] + 1 < least).any(-1)
    score = probabilities[many:].transpose(1, 2, 0).astype(dtype)
    within = numeric.convert(info[:2] / info.dtype.type(attrs.feature_stride), np.dtype(np.int32))
    beyond: Array = (ys >= within[0]) | (xs >= within[1])
    score = np.where(small | beyond[..., None], dtype.type(-1), score)
    more = np.array([-1, -1, 1, 1], dtype) * (least / 2)
    return np.where(small[..., None], box + more, box).reshape(-1, 4), score.reshape(-1)


def _proposal(attrs: Attrs, probabilities: Array, deltas: Array, info: Array) -> Array:
    result = np.empty((len(info), attrs.rpn_post_nms_top_n, 5), deltas.dtype)
    pixel = np.array([0, 0, 1, 1], deltas.dtype)
    for b in range(len(info)):
        boxes, scores = _candidates(attrs, probabilities[b], deltas[b], info[b])
        limit = attrs.rpn_pre_nms_top_n
        boxes = boxes[order(scores, 0, False)[: limit if limit > 0 else None]]
        kept: list[int] = []
        free = np.ones(len(boxes), bool)
        for j in range(len(boxes)):
            if free[j]:
                kept.append(j)
                free &= ~(overlap(boxes[j] + pixel, boxes + pixel) > deltas.dtype.type(attrs.threshold))
        # Too few boxes are repeated in their order until there are enough.
        result[b, :, 0], result[b, :, 1:] = b, boxes[np.resize(kept, attrs.rpn_post_nms_top_n)]
    return result.reshape(-1, 5)


define(
    "vision.proposal", ("cls_prob", "bbox_pred", "im_info"), _proposal_relation, OpPattern.OPAQUE,
    numpy=_proposal,
    compute=lambda attrs, xs, out: [computes.te_proposal(attrs, anchors_of(attrs), xs, out)],
    attributes=(
        attr("scales", (4.0, 8.0, 16.0, 32.0)), attr("ratios", (0.5, 1.0, 2.0)), attr("feature_stride", 16),
        attr("threshold", 0.7), attr("rpn_pre_nms_top_n", 6000), attr("rpn_post_nms_top_n", 300),
        attr("rpn_min_size", 16), attr("iou_loss", False),
    ),
    doc="Regions that a region proposal network finds: anchors moved by its offsets, the best that do not overlap.",
    source="https://arxiv.org/abs/1506.01497",
)  # fmt: skip


def _reorg_relation(rel: Relation) -> None:
    data, stride = rank_must_be(rel, 0, 4), rel.attrs.stride
    batch, channels, height, width = shape_of(data)
    factors = ((channels, stride * stride), (height, stride), (width, stride)) if stride > 0 else ()
    if not factors or not all(at_most(1, dim) and is_multiple(dim, factor) for dim, factor in factors):
        raise rel.fail(
            f"{rel.operator.name}: stride={stride} must divide the height and width of {show_argument(rel, 0)}, its square"
            " the channels"
        )
    sizes = [batch, multiply_dims(channels, stride * stride)]
    sizes += [divide_dims(dim, stride) for dim in (height, width)]
    rel.set_result(tensor_type(sizes, data.element_type))


def _reorg(attrs: Attrs, x: Array) -> Array:
    stride: int = attrs.stride
    batch, channels, height, width = x.shape
    # The memory is read as images `stride` times as high and wide, of fewer channels.
    wide = x.reshape(batch, channels // stride**2, height, stride, width, stride)
    moved = wide.transpose(0, 3, 5, 1, 2, 4)
    return moved.reshape(batch, channels * stride**2, height // stride, width // stride)


def _te_reorg(attrs: Attrs, x: Tensor) -> Tensor:
    batch, channels, height, width = x.shape
    stride: int = attrs.stride
    sides = [side // stride if isinstance(side, int) else te.floordiv(side, stride) for side in (height, width)]
    return computes.te_reorg(attrs, x, [batch, channels * (stride * stride), *sides])


define(
    "vision.yolo_reorg", ("data",), _reorg_relation, OpPattern.INJECTIVE,
    numpy=_reorg,
    compute=lambda attrs, xs, out: [_te_reorg(attrs, xs[0])],
    attributes=(attr("stride", 1),),
    doc="The elements in another order, `stride` times fewer rows and columns, as darknet's reorg layer has them.",
    source=DOCUMENTATION,
)  # fmt: skip
