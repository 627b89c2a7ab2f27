"""Cases of object detection: boxes chosen by plain loops over scalars."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import strategies as st

from ..sampling import case, seeds, values


def _box(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Draws boxes on a coarse grid, so that some overlap and some are equal."""
    low = rng.integers(0, 4, (*shape, 2))
    return (np.concatenate([low, low + rng.integers(1, 4, (*shape, 2))], -1) / 8).astype(np.float32)


def iou(a: Any, b: Any) -> float:
    """Returns the intersection of two boxes over their union."""
    ax, bx = sorted((a[0], a[2])), sorted((b[0], b[2]))
    ay, by = sorted((a[1], a[3])), sorted((b[1], b[3]))
    shared = max(0.0, min(ax[1], bx[1]) - max(ax[0], bx[0])) * max(0.0, min(ay[1], by[1]) - max(ay[0], by[0]))
    covered = (ax[1] - ax[0]) * (ay[1] - ay[0]) + (bx[1] - bx[0]) * (by[1] - by[0]) - shared
    return 0.0 if covered <= 0 else shared / covered


@st.composite
def _detections(draw: Any) -> np.ndarray:
    rng = np.random.default_rng(draw(seeds))
    batch, count = draw(st.integers(1, 2)), draw(st.integers(1, 6))
    kind = rng.integers(-1, 3, (batch, count, 1))
    score = rng.permutation(batch * count).reshape(batch, count, 1) / 8 - 0.25
    return np.concatenate([kind, score, _box(rng, (batch, count))], -1).astype(np.float32)


@st.composite
def _counts(draw: Any) -> Any:
    attrs = {"id_index": draw(st.sampled_from((0, -1))), "score_index": 1}
    return attrs, [draw(_detections()), np.array(draw(st.sampled_from((0.0, 0.3))), np.float32)]


def _counts_reference(a: Any, x: np.ndarray, threshold: np.ndarray) -> Any:
    count, rows, places = [], -np.ones_like(x), -np.ones(x.shape[:2], np.int32)
    for b, boxes in enumerate(x):
        found = [n for n, row in enumerate(boxes) if row[1] > threshold and (a.id_index < 0 or row[0] >= 0)]
        for target, n in enumerate(found):
            rows[b, target], places[b, target] = boxes[n], n
        count.append(len(found))
    return np.array(count, np.int32), rows, places


case("vision.get_valid_counts", _counts(), _counts_reference)


@st.composite
def _suppressions(draw: Any) -> Any:
    data = draw(_detections())
    batch, count, _ = data.shape
    rng = np.random.default_rng(draw(seeds))
    attrs = {
        "force_suppress": draw(st.booleans()), "top_k": draw(st.sampled_from((-1, 2))),
        "id_index": draw(st.sampled_from((0, -1))), "return_indices": draw(st.booleans()),
        "invalid_to_bottom": draw(st.booleans()),
    }  # fmt: skip
    valid = rng.integers(0, count + 1, batch).astype(np.int32)
    indices = np.stack([rng.permutation(count) for _ in range(batch)]).astype(np.int32)
    most = np.array(draw(st.sampled_from((-1, 1, 3))), np.int32)
    return attrs, [data, valid, indices, most, np.array(draw(st.sampled_from((0.0, 0.2, 0.5))), np.float32)]


def _suppression_reference(
    a: Any, x: np.ndarray, valid: np.ndarray, indices: np.ndarray, most: np.ndarray, threshold: np.ndarray
) -> Any:
    rows, places = -np.ones_like(x), -np.ones(x.shape[:2], np.int32)
    for b, boxes in enumerate(x):
        ranked = list(range(valid[b]))
        if threshold > 0:
            ranked.sort(key=lambda n, boxes=boxes: -boxes[n][1])
            ranked = ranked[: a.top_k] if a.top_k > 0 else ranked
        kept: list[int] = []
        for target, n in enumerate(ranked):
            row = boxes[n]
            if threshold > 0:
                if len(kept) == most:
                    continue
                if row[1] > 0:
                    same = [
                        k
                        for k in kept
                        if a.id_index < 0 or (boxes[k][0] >= 0 and (a.force_suppress or boxes[k][0] == row[0]))
                    ]
                    if any(np.float32(iou(boxes[k][2:], row[2:])) >= threshold for k in same):
                        continue
                    kept.append(n)
            rows[b, target], places[b, target] = row, n
    if not a.return_indices:
        if a.invalid_to_bottom:
            for b, boxes in enumerate(rows.copy()):
                best = [row for row in boxes if row[0] >= 0]
                rows[b] = best + [-np.ones(6)] * (len(boxes) - len(best)) if best else -1
        return rows
    found = [[int(indices[b, n]) for n in row if n >= 0] for b, row in enumerate(places)]
    padded = np.array([f + [-1] * (x.shape[1] - len(f)) for f in found], np.int32)
    return padded, np.array([[len(f)] for f in found], np.int32)


case("vision.non_max_suppression", _suppressions(), _suppression_reference)


@st.composite
def _all_classes(draw: Any) -> Any:
    rng = np.random.default_rng(draw(seeds))
    batch, classes, count = draw(st.integers(1, 2)), draw(st.integers(1, 2)), draw(st.integers(1, 5))
    scores = (rng.permutation(batch * classes * count).reshape(batch, classes, count) / 16 - 0.1).astype(np.float32)
    numbers = [draw(st.sampled_from((-1, 2))), draw(st.sampled_from((0.0, 0.3))), draw(st.sampled_from((-1.0, 0.2)))]
    arguments = [np.array(n, t) for n, t in zip(numbers, ("int64", "float32", "float32"), strict=True)]
    attrs = {"output_format": draw(st.sampled_from(("onnx", "tensorflow"))), "strict": draw(st.booleans())}
    return attrs, [_box(rng, (batch, count)), scores, *arguments]


def _all_class_reference(a: Any, boxes: np.ndarray, scores: np.ndarray, most: Any, threshold: Any, least: Any) -> Any:
    batch, classes, count = scores.shape
    found: list[tuple[int, int, int]] = []
    for b in range(batch):
        for c in range(classes):
            row, kept = scores[b, c], []
            for n in sorted(range(count), key=lambda n, row=row: -row[n]):
                full = most > 0 and len(kept) >= most
                if row[n] <= least or full or (threshold <= 0 and not a.strict):
                    continue
                shared = [np.float32(iou(boxes[b, k], boxes[b, n])) for k in kept]
                if a.strict and any(each > threshold for each in shared):
                    continue
                if not a.strict and row[n] > 0 and any(each >= threshold for each in shared):
                    continue
                kept.append(n)
            found += [(b, c, n) for n in kept]
    if a.output_format == "onnx":
        rows = found + [(0, 0, 0)] * (batch * classes * count - len(found))
        return np.array(rows, np.int64), np.array([len(found)], np.int64)
    rows = [[f[1:] for f in found if f[0] == b] for b in range(batch)]
    values_of = [[scores[f] for f in found if f[0] == b] for b in range(batch)]
    size = classes * count
    indices = np.array([r + [(0, 0)] * (size - len(r)) for r in rows], np.int64)
    kept_scores = np.array([[*v, *[0.0] * (size - len(v))] for v in values_of], np.float32)
    return indices, kept_scores, np.array([len(r) for r in rows], np.int64)


case("vision.all_class_non_max_suppression", _all_classes(), _all_class_reference)


@st.composite
def _regular(draw: Any) -> Any:
    rng = np.random.default_rng(draw(seeds))
    batch, labels, count = draw(st.integers(1, 2)), draw(st.integers(2, 3)), draw(st.integers(1, 5))
    scores = (rng.permutation(batch * labels * count).reshape(batch, count, labels) / 16).astype(np.float32)
    attrs = {
        "max_detections_per_class": draw(st.integers(1, 3)), "max_detections": draw(st.integers(1, 6)),
        "num_classes": labels - draw(st.integers(0, 1)), "iou_threshold": 0.3,
        "score_threshold": draw(st.sampled_from((0.0, 0.5))),
    }  # fmt: skip
    return attrs, [_box(rng, (batch, count)), scores]


def _regular_reference(a: Any, boxes: np.ndarray, scores: np.ndarray) -> Any:
    batch, count, labels = scores.shape
    result = [np.zeros((batch, a.max_detections, *s), np.float32) for s in ((4,), (), ())]
    numbers = np.zeros(batch, np.int32)
    for b in range(batch):
        found: list[tuple[float, int, int]] = []
        for c in range(a.num_classes):
            row = scores[b, :, labels - a.num_classes + c]
            kept: list[int] = []
            for n in sorted(range(count), key=lambda n, row=row: -row[n]):
                shared = [np.float32(iou(boxes[b, k], boxes[b, n])) for k in kept]
                full = len(kept) >= a.max_detections_per_class
                if not full and row[n] >= np.float32(a.score_threshold) and max(shared, default=0) <= np.float32(0.3):
                    kept.append(n)
            found += [(float(row[n]), c, n) for n in kept]
        found.sort(key=lambda f: -f[0])
        for d, (score, c, n) in enumerate(found[: a.max_detections]):
            result[0][b, d], result[1][b, d], result[2][b, d] = boxes[b, n], c, score
        numbers[b] = min(len(found), a.max_detections)
    return *result, numbers


case("vision.regular_non_max_suppression", _regular(), _regular_reference)


@st.composite
def _priors(draw: Any) -> Any:
    ratios = draw(st.sampled_from(((1.0,), (1.0, 2.0, 0.5))))
    attrs = {
        "sizes": draw(st.sampled_from(((0.5,), (0.2, 0.7)))), "ratios": ratios,
        "steps": draw(st.sampled_from(((-1.0, -1.0), (0.3, 0.25)))), "offsets": (0.5, 0.25), "clip": draw(st.booleans()),
    }  # fmt: skip
    return attrs, [values((1, 2, draw(st.integers(1, 3)), draw(st.integers(1, 3))), "float32", 0)]


def _prior_reference(a: Any, x: np.ndarray) -> np.ndarray:
    height, width = x.shape[2:]
    rows = []
    for i in range(height):
        for j in range(width):
            y = (i + a.offsets[0]) * (a.steps[0] if a.steps[0] > 0 else 1 / height)
            z = (j + a.offsets[1]) * (a.steps[1] if a.steps[1] > 0 else 1 / width)
            forms = [(s * height / width, s) for s in a.sizes]
            forms += [(a.sizes[0] * height / width * math.sqrt(r), a.sizes[0] / math.sqrt(r)) for r in a.ratios[1:]]
            rows += [(z - w / 2, y - h / 2, z + w / 2, y + h / 2) for w, h in forms]
    result = np.array([rows], np.float32)
    return np.minimum(np.maximum(result, 0), 1) if a.clip else result


case("vision.multibox_prior", _priors(), _prior_reference)


@st.composite
def _transforms(draw: Any) -> Any:
    rng = np.random.default_rng(draw(seeds))
    batch, labels, count = draw(st.integers(1, 2)), draw(st.integers(2, 4)), draw(st.integers(1, 4))
    attrs = {
        "clip": draw(st.booleans()), "threshold": draw(st.sampled_from((0.01, 0.6))),
        "variances": (0.1, 0.2, 0.3, 0.1), "keep_background": draw(st.booleans()),
    }  # fmt: skip
    classes = (rng.permutation(batch * labels * count).reshape(batch, labels, count) / (batch * labels * count)).astype(np.float32)  # fmt: skip
    moves = rng.uniform(-1, 1, (batch, count * 4)).astype(np.float32)
    return attrs, [classes, moves, _box(rng, (1, count))]


def _transform_reference(a: Any, classes: np.ndarray, moves: np.ndarray, anchors: np.ndarray) -> Any:
    batch, labels, count = classes.shape
    result, valid = -np.ones((batch, count, 6), np.float32), np.zeros(batch, np.int32)
    first = 0 if a.keep_background else 1
    for b in range(batch):
        for j in range(count):
            label = max(range(first, labels), key=lambda k, b=b, j=j: classes[b, k, j])
            score = classes[b, label, j]
            if label > 0 and score < np.float32(a.threshold):
                label = 0
            if label < first:
                continue
            left, top, right, bottom = anchors[0, j]
            px, py, pw, ph = moves[b, 4 * j : 4 * j + 4] * np.array(a.variances)
            x, y = px * (right - left) + (left + right) / 2, py * (bottom - top) + (top + bottom) / 2
            w, h = math.exp(pw) * (right - left) / 2, math.exp(ph) * (bottom - top) / 2
            sides = [x - w, y - h, x + w, y + h]
            result[b, valid[b]] = [label - first, score, *(min(max(s, 0), 1) if a.clip else s for s in sides)]
            valid[b] += 1
    return result, valid


case("vision.multibox_transform_loc", _transforms(), _transform_reference)


@st.composite
def _reorgs(draw: Any) -> Any:
    stride = draw(st.integers(1, 2))
    shape = (
        draw(st.integers(1, 2)),
        stride * stride * draw(st.integers(1, 2)),
        stride * draw(st.integers(1, 2)),
        stride * 2,
    )
    return {"stride": stride}, [values(shape, draw(st.sampled_from(("float32", "int32"))), draw(seeds))]


def _reorg_reference(a: Any, x: np.ndarray) -> np.ndarray:
    batch, channels, height, width = x.shape
    s = a.stride
    inner = channels // (s * s)
    result = np.empty((batch, channels * s * s, height // s, width // s), x.dtype)
    for b in range(batch):
        source, target = x[b].reshape(-1), result[b].reshape(-1)
        for k in range(channels):
            for j in range(height):
                for i in range(width):
                    row, column = j * s + k // inner // s, i * s + k // inner % s
                    target[i + width * (j + height * k)] = source[column + width * s * (row + height * s * (k % inner))]
    return result


case("vision.yolo_reorg", _reorgs(), _reorg_reference)
