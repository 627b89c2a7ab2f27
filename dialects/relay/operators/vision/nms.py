"""Defines operators of object detection that select boxes: valid boxes first, non-maximum suppression.

get_valid_counts:    data (N,boxes,6), threshold () -> (N), (N,boxes,6), (N,boxes)
non_max_suppression: data (N,boxes,6), valid_count (N), indices (N,boxes), … -> (N,boxes,6)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...operator import Attrs, OpPattern, Relation, attr, define
from ..common._lazy import np
from ..common.numpy_meanings import Array
from ..common.relations import (
    ANY,
    at_most,
    known_dim,
    multiply_dims,
    number_must_be,
    rank_must_be,
    same_dim,
    shape_of,
    show_argument,
    tensor_type,
    tuple_type,
)
from ..sorting.sort import order
from . import te_nms as computes

DOCUMENTATION = "https://tvm.apache.org/docs/v0.16.0/reference/api/python/relay/vision.html"


def _field_of_box(rel: Relation, name: str, length: int, width: int = 1) -> None:
    """Fails unless the attribute `name` is the place of `width` numbers in a box of `length` numbers."""
    place: int = rel.attrs[name]
    if not at_most(place + width, length):
        raise rel.fail(f"{rel.operator.name}: {name}={place} lies beyond the {length} numbers of a box")


def corners(boxes: Array) -> Array:
    """Returns two opposite corners in the last axis as the lower and the upper one."""
    return np.concatenate([np.minimum(boxes[..., :2], boxes[..., 2:]), np.maximum(boxes[..., :2], boxes[..., 2:])], -1)


def area(boxes: Array) -> Array:
    """Returns the areas of boxes (lower, then upper corner)."""
    return (boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1])


def overlap(box: Array, others: Array) -> Array:
    """Returns the intersection over union of a box with each of the others; 0 for an empty union."""
    low, high = np.maximum(box[:2], others[:, :2]), np.minimum(box[2:], others[:, 2:])
    sides = np.maximum(high - low, np.zeros((), box.dtype))
    shared = sides[:, 0] * sides[:, 1]
    covered = area(box) + area(others) - shared
    return np.where(
        covered <= 0, np.zeros((), box.dtype), shared / np.where(covered <= 0, 1, covered).astype(box.dtype)
    )


def _valid_counts_relation(rel: Relation) -> None:
    data = rank_must_be(rel, 0, 3)
    number_must_be(rel, 1)
    batch, boxes, length = shape_of(data)
    _field_of_box(rel, "score_index", length)
    _field_of_box(rel, "id_index", length)
    rel.set_result(tuple_type([tensor_type([batch], "int32"), data, tensor_type([batch, boxes], "int32")]))


def _valid_counts(attrs: Attrs, x: Array, threshold: Array) -> tuple[Array, ...]:
    valid = x[..., attrs.score_index] > threshold.reshape(()).astype(x.dtype)
    if attrs.id_index >= 0:
        valid = valid & (x[..., attrs.id_index] >= 0)
    data, places = np.full_like(x, -1), np.full(x.shape[:2], -1, np.int32)
    for row, kept in enumerate(valid):
        found = np.flatnonzero(kept)
        data[row, : len(found)], places[row, : len(found)] = x[row, found], found
    return valid.sum(1, dtype=np.int32), data, places


define(
    "vision.get_valid_counts", ("data", "score_threshold"), _valid_counts_relation, OpPattern.OPAQUE,
    numpy=_valid_counts,
    compute=lambda attrs, xs, out: computes.te_valid_counts(attrs, *xs),
    attributes=(
        attr("score_threshold", None, "float", printed=True), attr("id_index", 0), attr("score_index", 1),
    ),
    doc="How many boxes have a score above the threshold; these boxes first, then boxes of -1; where each was.",
    source=DOCUMENTATION,
)  # fmt: skip


def _nms_relation(rel: Relation) -> None:
    data = rank_must_be(rel, 0, 3)
    batch, boxes, length = shape_of(data)
    if not same_dim(shape_of(rank_must_be(rel, 1, 1))[0], batch):
        raise rel.fail(
            f"{rel.operator.name}: {show_argument(rel, 1)} must have a number for each image of {show_argument(rel, 0)}",
            argument=1,
        )
    if rel.type_of(2) is not None and not all(map(same_dim, shape_of(rank_must_be(rel, 2, 2)), (batch, boxes))):
        raise rel.fail(
            f"{rel.operator.name}: {show_argument(rel, 2)} must have a number for each box of {show_argument(rel, 0)}",
            argument=2,
        )
    number_must_be(rel, 3, 4)
    for name, width in (("score_index", 1), ("id_index", 1), ("coord_start", 4)):
        _field_of_box(rel, name, length, width)
    if rel.attrs.return_indices:
        rel.set_result(tuple_type([tensor_type([batch, boxes], "int32"), tensor_type([batch, 1], "int32")]))
    else:
        rel.set_result(data)


def _suppressed(attrs: Attrs, x: Array, most: int, threshold: Array) -> list[int]:
    """Returns the indices of the kept boxes of `x`, sorted by score.

    A box is suppressed by an overlapping kept box before it, or when `most` are kept.
    """
    score, identity = x[:, attrs.score_index], x[:, attrs.id_index] if attrs.id_index >= 0 else np.zeros(len(x))
    boxes = corners(x[:, attrs.coord_start : attrs.coord_start + 4])
    counted: list[int] = []
    stay: list[int] = []
    for j in range(len(x)):
        if len(counted) == most:
            break
        if not score[j] > 0:
            stay.append(j)
            continue
        rivals = [k for k in counted if identity[k] >= 0 and (attrs.force_suppress or identity[k] == identity[j])]
        if not (overlap(boxes[j], boxes[rivals]) >= threshold).any():
            counted.append(j)
            stay.append(j)
    return stay


def _nms(attrs: Attrs, x: Array, valid: Array, indices: Array, most: Array, threshold: Array) -> Any:
    result, places = np.full_like(x, -1), np.full(x.shape[:2], -1, np.int32)
    iou = threshold.reshape(()).astype(x.dtype)
    for row in range(len(x)):
        count = min(int(valid[row]), x.shape[1])
        found, stay = np.arange(count), list(range(count))
        if iou > 0:
            found = order(x[row, :count, attrs.score_index], 0, False)
            found = found[: attrs.top_k] if attrs.top_k > 0 else found
            stay = _suppressed(attrs, x[row, found], int(most.reshape(())), iou)
        result[row, stay], places[row, stay] = x[row, found[stay]], found[stay]
    if attrs.return_indices:
        found = np.where(places >= 0, np.take_along_axis(indices, np.maximum(places, 0), 1), -1)
        firsts, counts = _first(found, found >= 0)
        return firsts.astype(np.int32), counts
    return _first(result, result[..., 0] >= 0)[0] if attrs.invalid_to_bottom else result


def _first(x: Array, wanted: Array) -> tuple[Array, Array]:
    """Moves the wanted elements of each row to the front, then -1; returns their counts (rows, 1), too."""
    result = np.full_like(x, -1)
    for row, kept in enumerate(wanted):
        result[row, : kept.sum()] = x[row, kept]
    return result, wanted.sum(1, dtype=np.int32).reshape(-1, 1)


define(
    "vision.non_max_suppression", ("data", "valid_count", "indices", "max_output_size", "iou_threshold"),
    _nms_relation, OpPattern.OPAQUE,
    numpy=_nms,
    compute=lambda attrs, xs, out: computes.te_nms(attrs, *xs),
    attributes=(
        attr("force_suppress", False), attr("top_k", -1), attr("coord_start", 2), attr("score_index", 1),
        attr("id_index", 0), attr("return_indices", True), attr("invalid_to_bottom", False),
    ),
    doc="The boxes that share less than `iou_threshold` with every better one of their class; others become -1.",
    source=DOCUMENTATION,
)  # fmt: skip


def _boxes_and_scores(rel: Relation, scores_axis: int) -> tuple[int, int, int]:
    """Returns the sizes (batch, labels, n) of boxes (batch, n, 4) and scores (batch, …, n)."""
    boxes, scores = shape_of(rank_must_be(rel, 0, 3)), shape_of(rank_must_be(rel, 1, 3))
    if not same_dim(boxes[2], 4):
        raise rel.fail(f"{rel.operator.name}: {show_argument(rel, 0)} must have boxes of 4 numbers", argument=0)
    if not same_dim(boxes[0], scores[0]) or not same_dim(boxes[1], scores[scores_axis]):
        raise rel.fail(
            f"{rel.operator.name}: {show_argument(rel, 0)} and {show_argument(rel, 1)} differ in the number of boxes",
            argument=1,
        )
    batch, number = known_dim(boxes[0], scores[0]), known_dim(boxes[1], scores[scores_axis])
    return batch, scores[3 - scores_axis], number


def _all_class_relation(rel: Relation) -> None:
    batch, classes, number = _boxes_and_scores(rel, 2)
    number_must_be(rel, 2, 3, 4)
    if rel.attrs.output_format not in ("onnx", "tensorflow"):
        raise rel.fail(f"{rel.operator.name}: output_format={rel.attrs.output_format!r} must be onnx or tensorflow")
    if rel.attrs.output_format == "onnx":
        rows = multiply_dims(batch, classes, number)
        rel.set_result(tuple_type([tensor_type([rows, 3], "int64"), tensor_type([1], "int64")]))
    else:
        rows = multiply_dims(classes, number)
        fields = [([batch, rows, 2], "int64"), ([batch, rows], "float32"), ([batch], "int64")]
        rel.set_result(tuple_type([tensor_type(shape, dtype) for shape, dtype in fields]))


def greedy(count: int, most: int, eligible: Sequence[bool], excluded: Callable[[int], Array]) -> list[int]:
    """Selects candidates greedily, the best first: each eligible one that no selected one excludes."""
    free = np.array(eligible, bool)
    result: list[int] = []
    for j in range(count):
        if free[j] and len(result) < most:
            result.append(j)
            free &= ~(excluded(j) & (np.arange(count) > j))
    return result


def _all_class_nms(
    attrs: Attrs, boxes: Array, scores: Array, most: Array, iou: Array, least: Array
) -> tuple[Array, ...]:
    batch, classes, number = scores.shape
    limit = int(most.reshape(())) if most.reshape(()) > 0 else number
    threshold = iou.reshape(()).astype(boxes.dtype)
    rows: list[tuple[int, int, int]] = []
    for b in range(batch):
        for c in range(classes):
            ranked = order(scores[b, c], 0, False)
            score, box = scores[b, c, ranked], corners(boxes[b, ranked])
            eligible = score > least.reshape(())
            if not attrs.strict:
                eligible &= (score > -1) & (threshold > 0)
            found = greedy(
                number,
                limit,
                eligible.tolist(),
                lambda j, box=box, score=score: (
                    overlap(box[j], box) > threshold
                    if attrs.strict
                    else (overlap(box[j], box) >= threshold) & (score > 0)
                ),
            )
            rows += [(b, c, int(ranked[j])) for j in found]
    if attrs.output_format == "onnx":
        result = np.zeros((batch * classes * number, 3), np.int64)
        result[: len(rows)] = np.array(rows, np.int64).reshape(-1, 3)
        return result, np.array([len(rows)], np.int64)
    indices, values = np.zeros((batch, classes * number, 2), np.int64), np.zeros((batch, classes * number), np.float32)
    counts = np.zeros(batch, np.int64)
    for b, c, place in rows:
        indices[b, counts[b]], values[b, counts[b]] = (c, place), scores[b, c, place]
        counts[b] += 1
    return indices, values, counts


define(
    "vision.all_class_non_max_suppression",
    ("boxes", "scores", "max_output_boxes_per_class", "iou_threshold", "score_threshold"),
    _all_class_relation, OpPattern.OPAQUE,
    numpy=_all_class_nms,
    compute=lambda attrs, xs, out: computes.te_all_class_nms(attrs, *xs),
    attributes=(attr("output_format", "onnx"), attr("strict", False)),
    doc="Non-maximum suppression for each class apart: rows (batch, class, box), zeros after them, their number; for tensorflow (class,"
    " box), scores, numbers; `strict`: as ONNX has it, scores may be negative.",
    source="https://onnx.ai/onnx/operators/onnx__NonMaxSuppression.html",
)  # fmt: skip


def _regular_relation(rel: Relation) -> None:
    batch, labels, number = _boxes_and_scores(rel, 1)
    if not at_most(1, number):
        raise rel.fail(f"{rel.operator.name}: {show_argument(rel, 0)} has no boxes", argument=0)
    size: int = rel.attrs.max_detections
    if not rel.attrs.num_classes > 0 or (labels != ANY and rel.attrs.num_classes > labels):
        raise rel.fail(
            f"{rel.operator.name}: num_classes={rel.attrs.num_classes} must be between 1 and the {labels} labels of"
            f" {show_argument(rel, 1)}"
        )
    fields = [([batch, size, 4], "float32"), ([batch, size], "float32"), ([batch, size], "float32"), ([batch], "int32")]
    rel.set_result(tuple_type([tensor_type(shape, dtype) for shape, dtype in fields]))


def _regular_nms(attrs: Attrs, boxes: Array, scores: Array) -> tuple[Array, ...]:
    batch, number, labels = scores.shape
    size: int = attrs.max_detections
    result = np.zeros((batch, size, 4), np.float32)
    kinds, values = np.zeros((batch, size), np.float32), np.zeros((batch, size), np.float32)
    counts = np.zeros(batch, np.int32)
    iou = np.asarray(attrs.iou_threshold, boxes.dtype)
    for b in range(batch):
        found: list[tuple[int, int]] = []
        for c in range(attrs.num_classes):
            score = scores[b, :, c + labels - attrs.num_classes]
            ranked = order(score, 0, False)
            box = boxes[b, ranked]

            def excluded(j: int, box: Array = box) -> Array:
                return (area(box[j]) > 0) & (area(box) > 0) & (overlap(box[j], box) > iou)

            eligible = score[ranked] >= np.asarray(attrs.score_threshold, score.dtype)
            chosen = greedy(number, attrs.max_detections_per_class, eligible.tolist(), excluded)
            found += [(c, int(ranked[j])) for j in chosen]
        score = np.array([scores[b, j, c + labels - attrs.num_classes] for c, j in found], scores.dtype)
        places: list[int] = order(score, 0, False)[:size].tolist()
        best = [found[k] for k in places]
        counts[b] = len(best)
        for d, (c, j) in enumerate(best):
            result[b, d], kinds[b, d], values[b, d] = boxes[b, j], c, scores[b, j, c + labels - attrs.num_classes]
    return result, kinds, values, counts


define(
    "vision.regular_non_max_suppression", ("boxes", "scores"), _regular_relation, OpPattern.OPAQUE,
    numpy=_regular_nms,
    compute=lambda attrs, xs, out: computes.te_regular_nms(attrs, *xs),
    attributes=(
        attr("max_detections_per_class", kind="int"), attr("max_detections", kind="int"),
        attr("num_classes", kind="int"), attr("iou_threshold", kind="float"), attr("score_threshold", kind="float"),
    ),
    doc="Non-maximum suppression for each class apart, then the best of all: boxes, classes, scores and their number.",
    source=DOCUMENTATION,
)  # fmt: skip
