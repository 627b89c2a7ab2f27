"""Cases of regions of interest: pooled sample by sample, proposed box by box."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
from hypothesis import strategies as st

from ..sampling import case, seeds, values
from .conv import pack, unpack


@st.composite
def _rois(draw: Any, is_align: bool) -> Any:
    rng = np.random.default_rng(draw(seeds))
    layout = draw(st.sampled_from(("NCHW", "NHWC"))) if is_align else "NCHW"
    attrs: dict[str, Any] = {
        "pooled_size": (draw(st.integers(1, 3)), 2), "spatial_scale": draw(st.sampled_from((1.0, 0.5))), "layout": layout,
    }  # fmt: skip
    if is_align:
        attrs |= {
            "sample_ratio": draw(st.sampled_from((-1, 2))),
            "mode": draw(st.sampled_from(("avg", "max", "max_pixel"))),
            "aligned": draw(st.booleans()),
        }
    data = values((2, draw(st.sampled_from((2, 17))), 5, 6), "float32", draw(seeds))
    count = draw(st.integers(1, 3))
    corner = rng.uniform(-2, 5, (count, 2))
    boxes = np.concatenate([rng.integers(0, 2, (count, 1)), corner, corner + rng.uniform(0.3, 6, (count, 2))], 1)
    return attrs, [pack(data, "NCHW", layout), boxes.astype(np.float32)]


def _align_reference(a: Any, x: np.ndarray, rois: np.ndarray) -> np.ndarray:
    data = unpack(x, "NCHW", a.layout)
    _, channels, height, width = data.shape
    rows, columns = a.pooled_size
    result = np.zeros((len(rois), channels, rows, columns))

    def sample(image: np.ndarray, y: Any, z: Any) -> float:
        if y < -1 or z < -1 or y > height or z > width:
            return 0.0
        y, z = min(max(y, 0.0), height - 1), min(max(z, 0.0), width - 1)
        low, left = int(y), int(z)
        high, right = min(low + 1, height - 1), min(left + 1, width - 1)
        if a.mode == "max_pixel":
            corners = product(((low, 1 - (y - low)), (high, y - low)), ((left, 1 - (z - left)), (right, z - left)))
            return max(image[row, column] * p * q for (row, p), (column, q) in corners)
        top = image[low, left] * (1 - (z - left)) + image[low, right] * (z - left)
        bottom = image[high, left] * (1 - (z - left)) + image[high, right] * (z - left)
        return top * (1 - (y - low)) + bottom * (y - low)

    for n, (batch, *corner) in enumerate(rois):
        left, top, right, bottom = (np.float32(v) * np.float32(a.spatial_scale) for v in corner)
        least = np.float32(-np.inf if a.aligned else 1)
        h, w = max(bottom - top, least) / np.float32(rows), max(right - left, least) / np.float32(columns)
        if a.aligned:
            left, top = left - np.float32(0.5), top - np.float32(0.5)
        gh, gw = (a.sample_ratio,) * 2 if a.sample_ratio > 0 else (math.ceil(h), math.ceil(w))
        for c, i, j in product(range(channels), range(rows), range(columns)):
            samples = [
                sample(data[int(batch), c], top + i * h + (p + 0.5) * h / gh, left + j * w + (q + 0.5) * w / gw)
                for p in range(gh)
                for q in range(gw)
            ]
            result[n, c, i, j] = sum(samples) / len(samples) if a.mode == "avg" else max(samples)
    return pack(result.astype(np.float32), "NCHW", a.layout)


case("vision.roi_align", _rois(True), _align_reference)


def _pool_reference(a: Any, x: np.ndarray, rois: np.ndarray) -> np.ndarray:
    _, channels, height, width = x.shape
    rows, columns = a.pooled_size
    result = np.zeros((len(rois), channels, rows, columns), np.float32)
    for n, (batch, *corner) in enumerate(rois):
        scaled = [float(np.float32(v) * np.float32(a.spatial_scale)) for v in corner]
        left, top, right, bottom = (math.copysign(math.floor(abs(v) + 0.5), v) for v in scaled)
        h, w = max(bottom - top + 1, 1) / rows, max(right - left + 1, 1) / columns
        for i, j in product(range(rows), range(columns)):
            pixels = [
                x[int(batch), :, y, z]
                for y in range(height)
                for z in range(width)
                if math.floor(i * h + 1e-5) + top <= y < math.ceil((i + 1) * h - 1e-5) + top
                and math.floor(j * w + 1e-5) + left <= z < math.ceil((j + 1) * w - 1e-5) + left
            ]
            if pixels:
                result[n, :, i, j] = np.max(pixels, 0)
    return result


case("vision.roi_pool", _rois(False), _pool_reference)


@st.composite
def _proposals(draw: Any) -> Any:
    rng = np.random.default_rng(draw(seeds))
    scales, ratios = draw(st.sampled_from((((8.0,), (0.5, 1.0)), ((2.0, 4.0), (1.0,)))))
    batch, height, width = draw(st.integers(1, 2)), 2, 3
    many = len(scales) * len(ratios)
    attrs = {
        "scales": scales, "ratios": ratios, "feature_stride": 16, "threshold": 0.5,
        "rpn_pre_nms_top_n": draw(st.sampled_from((-1, 6, 100))), "rpn_post_nms_top_n": draw(st.sampled_from((3, 14))),
        "rpn_min_size": draw(st.sampled_from((4, 16))), "iou_loss": draw(st.booleans()),
    }  # fmt: skip
    total = batch * 2 * many * height * width
    scores = (rng.permutation(total).reshape(batch, 2 * many, height, width) / total).astype(np.float32)
    moves = rng.uniform(-0.5, 0.5, (batch, 4 * many, height, width)).astype(np.float32)
    info = np.array([[rng.integers(20, 40), 40, 1] for _ in range(batch)], np.float32)
    return attrs, [scores, moves, info]


def _anchor(base: float, ratio: float, scale: float) -> list[float]:
    w = math.floor(math.sqrt(math.floor(base * base / ratio)) + 0.5)
    h = math.floor(w * ratio + 0.5) * scale
    w *= scale
    c = (base - 1) / 2
    return [c - (w - 1) / 2, c - (h - 1) / 2, c + (w - 1) / 2, c + (h - 1) / 2]


def _iou(a: list[float], b: list[float]) -> float:
    w, h = (max(0.0, min(a[n + 2], b[n + 2]) - max(a[n], b[n]) + 1) for n in range(2))
    areas = [(q[2] - q[0] + 1) * (q[3] - q[1] + 1) for q in (a, b)]
    return w * h / (sum(areas) - w * h)


def _proposal_reference(a: Any, scores: np.ndarray, moves: np.ndarray, info: np.ndarray) -> np.ndarray:
    batch, _, height, width = scores.shape
    anchors = [_anchor(a.feature_stride, r, s) for r in a.ratios for s in a.scales]
    rows: list[list[float]] = []
    for b in range(batch):
        high, wide, scale = map(float, info[b])
        found: list[tuple[float, list[float]]] = []
        for i, j, (k, anchor) in product(range(height), range(width), enumerate(anchors)):
            d = [float(moves[b, 4 * k + n, i, j]) for n in range(4)]
            q = [v + a.feature_stride * (i if n % 2 else j) for n, v in enumerate(anchor)]
            if a.iou_loss:
                q = [v + m for v, m in zip(q, d, strict=True)]
            else:
                for n in range(2):
                    size = q[n + 2] - q[n] + 1
                    center, new = q[n] + (size - 1) / 2 + d[n] * size, math.exp(d[n + 2]) * size
                    q[n], q[n + 2] = center - (new - 1) / 2, center + (new - 1) / 2
            q = [min(max(v, 0.0), (high if n % 2 else wide) - 1) for n, v in enumerate(q)]
            score = float(scores[b, len(anchors) + k, i, j])
            if i >= int(high / a.feature_stride) or j >= int(wide / a.feature_stride):
                score = -1.0
            least = scale * a.rpn_min_size
            if q[2] - q[0] + 1 < least or q[3] - q[1] + 1 < least:
                q, score = [q[0] - least / 2, q[1] - least / 2, q[2] + least / 2, q[3] + least / 2], -1.0
            found.append((score, q))
        found.sort(key=lambda f: -f[0])
        found = found[: a.rpn_pre_nms_top_n] if a.rpn_pre_nms_top_n > 0 else found
        kept: list[list[float]] = []
        for _, q in found:
            if all(_iou(q, other) <= a.threshold for other in kept):
                kept.append(q)
        rows += [[b, *kept[n % len(kept)]] for n in range(a.rpn_post_nms_top_n)]
    return np.array(rows, np.float32)


case("vision.proposal", _proposals(), _proposal_reference, loose=10)
