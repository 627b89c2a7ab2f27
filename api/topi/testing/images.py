"""Resampling of images, in numpy; the arguments are those of TVM's references."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np

__all__ = [
    "affine_grid_python", "crop_and_resize_python", "grid_sample_python", "resize1d_python", "resize2d_python",
    "resize3d_python", "roi_align_nchw_python", "roi_align_nhwc_python", "roi_pool_nchw_python", "upsampling3d_python",
    "upsampling_python",
]  # fmt: skip

Array = np.ndarray[Any, Any]

_SOURCES: dict[str, Callable[[float, int, int], float]] = {
    "half_pixel": lambda x, of, to: (x + 0.5) * of / to - 0.5,
    "align_corners": lambda x, of, to: x * (of - 1) / (to - 1) if to > 1 else 0.0,
    "asymmetric": lambda x, of, to: x * of / to,
    "pytorch_half_pixel": lambda x, of, to: (x + 0.5) * of / to - 0.5 if to > 1 else 0.0,
    "tf_half_pixel_for_nn": lambda x, of, to: (x + 0.5) * of / to,
}


def _weights(of: int, to: int, method: str, mode: str) -> Array:
    """Returns how much of each of `of` places is in each of `to` places."""
    result = np.zeros((to, of))
    for x in range(to):
        at = _SOURCES[mode](x, of, to)
        if method.startswith("nearest"):
            near = (
                np.floor(at + 1e-5)
                if mode == "asymmetric"
                else np.floor(at + 0.5 - 1e-5)
                if mode == "half_pixel"
                else np.floor(at + 0.5)
            )
            result[x, int(np.clip(near, 0, of - 1))] = 1
            continue
        first = int(np.floor(at))
        taps = _cubic(at - first) if "cubic" in method else [(0, 1 - (at - first)), (1, at - first)]
        for step, weight in taps:
            result[x, int(np.clip(first + step, 0, of - 1))] += weight
    return result


def _cubic(t: float, alpha: float = -0.5) -> list[tuple[int, float]]:
    def weight(d: float) -> float:
        d = abs(d)
        if d <= 1:
            return (alpha + 2) * d**3 - (alpha + 3) * d**2 + 1
        return alpha * (d**3 - 5 * d**2 + 8 * d - 4) if d < 2 else 0.0

    return [(step, weight(t - step)) for step in (-1, 0, 1, 2)]


def _resized(data: Array, sizes: Sequence[int], axes: Sequence[int], method: str, mode: str) -> Array:
    result = data.astype("float64")
    for axis, size in zip(axes, sizes, strict=True):
        weights = _weights(data.shape[axis], size, method, mode)
        result = np.moveaxis(np.tensordot(weights, result, ((1,), (axis,))), 0, axis)
    return result.astype(data.dtype)


def _resize(data: Array, scale: Sequence[float], layout: str, method: str, mode: str, names: str) -> Array:
    axes = [layout.index(name) for name in names]
    sizes = [round(data.shape[axis] * each) for axis, each in zip(axes, scale, strict=True)]
    return _resized(data, sizes, axes, method, mode)


def resize1d_python(
    data: Array,
    scale: Sequence[float],
    layout: str = "NCW",
    method: str = "linear",
    coordinate_transformation_mode: str = "align_corners",
) -> Array:
    """Returns signals longer or shorter by a factor."""
    return _resize(data, scale, layout, method, coordinate_transformation_mode, "W")


def resize2d_python(
    data: Array,
    scale: Sequence[float],
    layout: str = "NCHW",
    method: str = "bilinear",
    coordinate_transformation_mode: str = "align_corners",
) -> Array:
    """Returns images larger or smaller by factors; a layout may have blocks of channels."""
    return _resize(data, scale, layout, method, coordinate_transformation_mode, "HW")


def resize3d_python(
    data: Array,
    scale: Sequence[float],
    layout: str = "NCDHW",
    method: str = "trilinear",
    coordinate_transformation_mode: str = "align_corners",
) -> Array:
    """Returns volumes larger or smaller by factors."""
    return _resize(data, scale, layout, method, coordinate_transformation_mode, "DHW")


def upsampling_python(data: Array, scale: Sequence[float], layout: str = "NCHW") -> Array:
    """Returns images larger by factors, each pixel the nearest one."""
    return _resize(data, scale, layout, "nearest_neighbor", "asymmetric", "HW")


def upsampling3d_python(data: Array, scale: Sequence[float], layout: str = "NCDHW") -> Array:
    """Returns volumes larger by factors, each point the nearest one."""
    return _resize(data, scale, layout, "nearest_neighbor", "asymmetric", "DHW")


def _bilinear(image: Array, y: float, x: float) -> Any:
    """Returns (C, H, W) between its pixels; the border goes on."""
    height, width = image.shape[1:]
    low_y, low_x = int(np.floor(y)), int(np.floor(x))
    total: Any = 0
    for up, right in product((0, 1), repeat=2):
        v, u = low_y + up, low_x + right
        weight = (1 - abs(y - v)) * (1 - abs(x - u))
        total = total + weight * image[:, min(max(v, 0), height - 1), min(max(u, 0), width - 1)]
    return total


def crop_and_resize_python(
    image: Array,
    boxes: Array,
    box_indices: Array,
    crop_size: Sequence[int],
    layout: str,
    method: str = "bilinear",
    extrapolation_value: float = 0,
) -> Array:
    """Returns boxes of images, each resized to one size; a box is of coordinates from 0 to 1."""
    data = image if layout == "NCHW" else np.moveaxis(image, -1, 1)
    height, width = data.shape[2:]
    rows, columns = crop_size
    result = np.empty((len(boxes), data.shape[1], rows, columns), data.dtype)
    for n, (y1, x1, y2, x2) in enumerate(boxes):
        for i, j in product(range(rows), range(columns)):
            y = (
                y1 * (height - 1) + i * (y2 - y1) * (height - 1) / (rows - 1)
                if rows > 1
                else (y1 + y2) / 2 * (height - 1)
            )
            x = (
                x1 * (width - 1) + j * (x2 - x1) * (width - 1) / (columns - 1)
                if columns > 1
                else (x1 + x2) / 2 * (width - 1)
            )
            if not (0 <= y <= height - 1 and 0 <= x <= width - 1):
                result[n, :, i, j] = extrapolation_value
            elif method == "bilinear":
                result[n, :, i, j] = _bilinear(data[box_indices[n]], y, x)
            else:
                result[n, :, i, j] = data[box_indices[n], :, round(y), round(x)]
    return result if layout == "NCHW" else np.moveaxis(result, 1, -1)


def affine_grid_python(data: Array, target_shape: Sequence[int]) -> Array:
    """Returns the places (N, 2, H, W) that affine maps (N, 2, 3) take each pixel to; corners are -1 and 1."""
    y, x = np.meshgrid(*(np.linspace(-1, 1, size) for size in target_shape), indexing="ij")
    points = np.stack([x.reshape(-1), y.reshape(-1), np.ones(x.size)]).astype(data.dtype)
    return np.matmul(data, points).reshape(len(data), 2, *target_shape)


def grid_sample_python(
    data: Array,
    grid: Array,
    method: str = "bilinear",
    layout: str = "NCHW",
    padding_mode: str = "zeros",
    align_corners: bool = True,
) -> Array:
    """Returns images (N, C, H, W) at places (N, 2, H', W'), x before y, from -1 to 1.

    What is outside is `zeros`, or the nearest pixel of the `border`.
    """
    if layout != "NCHW" or method not in ("bilinear", "nearest") or padding_mode not in ("zeros", "border"):
        raise ValueError("grid_sample_python is of NCHW, bilinear or nearest, with zeros or the border around")
    batch, channels, height, width = data.shape
    result = np.zeros((batch, channels, *grid.shape[2:]), data.dtype)

    def place(at: float, size: int) -> float:
        return (at + 1) * (size - 1) / 2 if align_corners else ((at + 1) * size - 1) / 2

    for n, i, j in product(range(batch), *map(range, grid.shape[2:])):
        y, x = place(grid[n, 1, i, j], height), place(grid[n, 0, i, j], width)
        if padding_mode == "border":
            y, x = min(max(y, 0), height - 1), min(max(x, 0), width - 1)
        if method == "nearest":
            taps = [(round(y), round(x), 1.0)]
        else:
            v, u = int(np.floor(y)), int(np.floor(x))
            taps = [(v + a, u + b, (1 - abs(y - v - a)) * (1 - abs(x - u - b))) for a, b in product((0, 1), repeat=2)]
        for v, u, weight in taps:
            if 0 <= v < height and 0 <= u < width:
                result[n, :, i, j] += weight * data[n, :, v, u]
    return result


def roi_align_nchw_python(
    a_np: Array,
    rois_np: Array,
    pooled_size: Any,
    spatial_scale: float,
    sample_ratio: int,
    mode: Any = "avg",
    aligned: bool = False,
) -> Array:
    """Returns the mean or the greatest of points in parts of boxes (batch, x1, y1, x2, y2)."""
    kind = mode.decode() if isinstance(mode, bytes) else mode
    rows, columns = (pooled_size, pooled_size) if hasattr(pooled_size, "__index__") else pooled_size
    height, width = a_np.shape[2:]
    result = np.zeros((len(rois_np), a_np.shape[1], rows, columns), a_np.dtype)
    for n, roi in enumerate(rois_np):
        image = a_np[int(roi[0])]
        x1, y1, x2, y2 = roi[1:] * spatial_scale - (0.5 if aligned else 0)
        high, wide = (y2 - y1, x2 - x1) if aligned else (max(y2 - y1, 1.0), max(x2 - x1, 1.0))
        bin_h, bin_w = high / rows, wide / columns
        down = sample_ratio if sample_ratio > 0 else int(np.ceil(bin_h))
        along = sample_ratio if sample_ratio > 0 else int(np.ceil(bin_w))
        for i, j in product(range(rows), range(columns)):
            points: list[Any] = []
            for p, q in product(range(down), range(along)):
                y, x = y1 + i * bin_h + (p + 0.5) * bin_h / down, x1 + j * bin_w + (q + 0.5) * bin_w / along
                outside = y < -1 or x < -1 or y > height or x > width
                at = min(max(y, 0), height - 1), min(max(x, 0), width - 1)
                points.append(np.zeros(a_np.shape[1]) if outside else _bilinear(image, *at))
            result[n, :, i, j] = np.mean(points, 0) if kind == "avg" else np.max(points, 0)
    return result


def roi_align_nhwc_python(
    a_np: Array,
    rois_np: Array,
    pooled_size: Any,
    spatial_scale: float,
    sample_ratio: int,
    mode: Any = "avg",
    aligned: bool = False,
) -> Array:
    """Returns `roi_align_nchw_python` of (N, H, W, C)."""
    data = np.moveaxis(a_np, -1, 1)
    return np.moveaxis(
        roi_align_nchw_python(data, rois_np, pooled_size, spatial_scale, sample_ratio, mode, aligned), 1, -1
    )


def roi_pool_nchw_python(a_np: Array, rois_np: Array, pooled_size: Any, spatial_scale: float) -> Array:
    """Returns the greatest of parts of boxes (batch, x1, y1, x2, y2); 0 of an empty part."""
    rows, columns = (pooled_size, pooled_size) if hasattr(pooled_size, "__index__") else pooled_size
    height, width = a_np.shape[2:]
    result = np.zeros((len(rois_np), a_np.shape[1], rows, columns), a_np.dtype)
    for n, roi in enumerate(rois_np):
        x1, y1, x2, y2 = (int(np.floor(each * spatial_scale + 0.5)) for each in roi[1:])
        bin_h, bin_w = max(y2 - y1 + 1, 1) / rows, max(x2 - x1 + 1, 1) / columns
        for i, j in product(range(rows), range(columns)):
            top, bottom = (
                int(np.clip(each, 0, height)) for each in (np.floor(i * bin_h) + y1, np.ceil((i + 1) * bin_h) + y1)
            )
            left, right = (
                int(np.clip(each, 0, width)) for each in (np.floor(j * bin_w) + x1, np.ceil((j + 1) * bin_w) + x1)
            )
            if bottom > top and right > left:
                result[n, :, i, j] = a_np[int(roi[0]), :, top:bottom, left:right].max((1, 2))
    return result
