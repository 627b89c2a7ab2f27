"""Cases of resizing, upsampling, deformable convolution and dilation, references pixel by pixel."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
from hypothesis import strategies as st

from ..sampling import FLOATS, Use, case, in_float64, retyped, seeds, values
from .conv import AXES, pack, padding_of, unpack


def position(place: int, size: int, target: int, mode: str, low: float, high: float) -> float:
    """Returns the source coordinate of a target pixel, by ONNX's definitions."""
    scale = np.float32(size) / np.float32(target)
    if mode == "half_pixel":
        return float((np.float32(place) + np.float32(0.5)) * scale - np.float32(0.5))
    if mode == "align_corners":
        return 0.0 if target == 1 else place * (size - 1) / (target - 1)
    if mode == "asymmetric":
        return float(np.float32(place) * scale)
    if mode == "pytorch_half_pixel":
        return 0.0 if target == 1 else float((np.float32(place) + np.float32(0.5)) * scale - np.float32(0.5))
    if mode == "tf_half_pixel_for_nn":
        return float((np.float32(place) + np.float32(0.5)) * scale)
    if target == 1:
        return 0.5 * (low + high) * (size - 1)
    return low * (size - 1) + place * (high - low) * (size - 1) / (target - 1)


def taps(at: float, size: int, a: Any) -> dict[int, float]:
    """Returns the weight of each source pixel."""
    result: dict[int, float] = {}

    def add(pixel: float, weight: float) -> None:
        pixel = min(max(int(pixel), 0), size - 1)
        result[pixel] = result.get(pixel, 0.0) + weight

    if a.method == "nearest_neighbor":
        rounding = a.rounding_method or ("round" if a.coordinate_transformation_mode == "align_corners" else "floor")
        half_away = math.copysign(math.floor(abs(at) + 0.5), at)
        add({"round": half_away, "floor": math.floor(at + 1e-5), "ceil": math.ceil(at - 1e-5)}[rounding], 1.0)
    elif a.method == "linear":
        first = math.floor(at)
        add(first, 1 - (at - first))
        add(first + 1, at - first)
    else:
        first = math.floor(at)
        for k in range(-1, 3):
            d, alpha = abs(at - (first + k)), a.cubic_alpha
            near = (alpha + 2) * d**3 - (alpha + 3) * d**2 + 1
            far = alpha * d**3 - 5 * alpha * d**2 + 8 * alpha * d - 4 * alpha
            add(first + k, near if d <= 1 else far)
    return result


def resized(x: np.ndarray, size: Any, a: Any, roi: Any) -> np.ndarray:
    """Resizes x (N, C, …) axis by axis."""
    rank = x.ndim - 2
    crop = a.coordinate_transformation_mode == "tf_crop_and_resize"
    result = np.zeros((*x.shape[:2], *size))
    for place in product(*map(range, size)):
        bounds = [(roi[n], roi[rank + n]) if len(roi) == 2 * rank else (0.0, 1.0) for n in range(rank)]
        at = [
            position(p, x.shape[2 + n], size[n], a.coordinate_transformation_mode, *bounds[n])
            for n, p in enumerate(place)
        ]
        if crop and any(v < 0 or v > x.shape[2 + n] - 1 for n, v in enumerate(at)):
            result[(..., *place)] = a.extrapolation_value
            continue
        weights = [taps(v, x.shape[2 + n], a) for n, v in enumerate(at)]
        for pixel in product(*weights):
            result[(..., *place)] += math.prod(w[p] for w, p in zip(weights, pixel, strict=True)) * x[(..., *pixel)]
    return result


MODES = (
    "half_pixel",
    "align_corners",
    "asymmetric",
    "pytorch_half_pixel",
    "tf_half_pixel_for_nn",
    "tf_crop_and_resize",
)


@st.composite
def _resizes(draw: Any, rank: int) -> Any:
    axes = AXES[rank]
    layout = draw(st.sampled_from((f"NC{axes}", f"N{axes}C")))
    method = draw(st.sampled_from(("nearest_neighbor", "linear", "cubic")))
    mode = draw(st.sampled_from(MODES))
    attrs: dict[str, Any] = {
        "size": tuple(draw(st.integers(1, 5)) for _ in range(rank)),
        "layout": layout,
        "method": method,
        "coordinate_transformation_mode": mode,
        "rounding_method": draw(st.sampled_from(("", "floor", "ceil"))) if method == "nearest_neighbor" else "",
        "roi": (0.25,) * rank + (1.25,) * rank if mode == "tf_crop_and_resize" else (0.0,) * (2 * rank),
        "extrapolation_value": 0.5,
    }
    shape = (1, 2, *(draw(st.sampled_from((2, 4, 5))) for _ in range(rank)))
    return attrs, [pack(values(shape, "float32", draw(seeds)), "NC" + axes, layout)]


def _resize_reference(rank: int) -> Any:
    def reference(a: Any, x: np.ndarray) -> np.ndarray:
        axes = "NC" + AXES[rank]
        return pack(resized(unpack(x, axes, a.layout), a.size, a, a.roi).astype(x.dtype), axes, a.layout)

    return reference


def _resized(name: str, samples: st.SearchStrategy[Use], reference: Any) -> None:
    """Registers cases of resizing; float64 is compared loosely, as positions are always float32."""
    case(name, retyped(samples, ("float32", "float32", "float16", "bfloat16")), in_float64(reference))
    case(name, retyped(samples, ("float64",)), in_float64(reference), loose=1e3)


for _rank in (1, 2, 3):
    _resized(f"image.resize{_rank}d", _resizes(_rank), _resize_reference(_rank))


class _As(dict[str, Any]):
    def __getattr__(self, name: str) -> Any:
        return self[name]


@st.composite
def _upsamplings(draw: Any, rank: int) -> Any:
    axes = AXES[rank]
    attrs: dict[str, Any] = {f"scale_{c.lower()}": float(draw(st.sampled_from((1, 2, 3)))) for c in axes}
    attrs["layout"] = draw(st.sampled_from((f"NC{axes}", f"N{axes}C")))
    attrs["method"] = draw(st.sampled_from(("nearest_neighbor", "bilinear", "bicubic"))) if rank == 2 else "trilinear"
    if rank == 2:
        attrs["align_corners"] = draw(st.booleans())
    return attrs, [pack(values((1, 2, *[3, 2, 2][:rank]), "float32", draw(seeds)), "NC" + axes, attrs["layout"])]


def _upsampling_reference(rank: int) -> Any:
    def reference(a: Any, x: np.ndarray) -> np.ndarray:
        axes = "NC" + AXES[rank]
        data = unpack(x, axes, a.layout)
        size = [int(d * a[f"scale_{c.lower()}"]) for d, c in zip(data.shape[2:], AXES[rank], strict=True)]
        method = {"bilinear": "linear", "trilinear": "linear", "bicubic": "cubic"}.get(a.method, a.method)
        mode = "half_pixel" if rank == 3 else "align_corners" if a.align_corners else "asymmetric"
        as_resize = _As(method=method, coordinate_transformation_mode=mode, rounding_method="", cubic_alpha=-0.5)
        return pack(resized(data, size, as_resize, ()).astype(x.dtype), axes, a.layout)

    return reference


_resized("nn.upsampling", _upsamplings(2), _upsampling_reference(2))
_resized("nn.upsampling3d", _upsamplings(3), _upsampling_reference(3))


@st.composite
def _crops(draw: Any) -> Any:
    count = draw(st.integers(1, 3))
    boxes = np.array([sorted((draw(st.sampled_from((0.0, 0.25, 0.5))), draw(st.sampled_from((0.75, 1.0, 1.5))))) for _ in range(2 * count)], np.float32)  # fmt: skip
    boxes = boxes.reshape(count, 2, 2).transpose(0, 2, 1).reshape(count, 4)
    indices = np.array([draw(st.integers(0, 1)) for _ in range(count)], np.int32)
    attrs = {"crop_size": (draw(st.integers(2, 4)), 3), "extrapolation_value": -1.0}
    return attrs, [values((2, 2, 4, 5), "float32", draw(seeds)), boxes, indices]


def _crop_reference(a: Any, x: np.ndarray, boxes: np.ndarray, indices: np.ndarray) -> np.ndarray:
    as_resize = _As(method="linear", coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=-1.0)
    return np.concatenate([resized(x[i : i + 1], a.crop_size, as_resize, box.tolist()) for box, i in zip(boxes, indices, strict=True)]).astype(x.dtype)  # fmt: skip


case("image.crop_and_resize", retyped(_crops(), FLOATS, (0,)), in_float64(_crop_reference))


@st.composite
def _deformables(draw: Any) -> Any:
    groups, deformable = draw(st.sampled_from((1, 2))), draw(st.sampled_from((1, 2)))
    layouts = draw(st.sampled_from((("NCHW", "OIHW"), ("NHWC", "HWIO"))))
    attrs: dict[str, Any] = {
        "padding": (draw(st.integers(0, 1)),) * 2, "strides": (draw(st.integers(1, 2)), 1), "groups": groups,
        "deformable_groups": deformable, "channels": 4, "kernel_size": (2, 3),
        "data_layout": layouts[0], "kernel_layout": layouts[1],
    }  # fmt: skip
    x = values((2, 4, 4, 5), "float32", draw(seeds))
    p, s = attrs["padding"][0], attrs["strides"]
    places = ((4 + 2 * p - 2) // s[0] + 1, (5 + 2 * p - 3) // s[1] + 1)
    offset = values((2, deformable * 12, *places), "float32", draw(seeds), -1.5, 1.5)
    w = values((4, 4 // groups, 2, 3), "float32", draw(seeds))
    return attrs, [pack(x, "NCHW", layouts[0]), pack(offset, "NCHW", layouts[0]), pack(w, "OIHW", layouts[1])]


def _deformable_reference(a: Any, x: np.ndarray, offset: np.ndarray, w: np.ndarray) -> np.ndarray:
    data, moves = unpack(x, "NCHW", a.data_layout), unpack(offset, "NCHW", a.data_layout)
    weight = unpack(w, "OIHW", a.kernel_layout)
    n, c, height, width = data.shape
    (top, left), _ = padding_of(a.padding, 2)
    inner, outer = c // a.groups, len(weight) // a.groups

    def sample(b: int, channel: int, y: float, z: float) -> float:
        if y < 0 or z < 0 or y >= height or z >= width:
            return 0.0
        total = 0.0
        for row, v in ((math.floor(y), 1 - (y - math.floor(y))), (math.floor(y) + 1, y - math.floor(y))):
            for column, h in ((math.floor(z), 1 - (z - math.floor(z))), (math.floor(z) + 1, z - math.floor(z))):
                if row < height and column < width:
                    total += v * h * float(data[b, channel, row, column])
        return total

    result = np.zeros((n, len(weight), *moves.shape[2:]))
    for b, i, j, channel, kh, kw in product(range(n), *map(range, moves.shape[2:]), range(c), range(2), range(3)):
        tap = (channel // (c // a.deformable_groups) * 2 + kh) * 3 + kw
        y = i * a.strides[0] - top + kh + float(moves[b, 2 * tap, i, j])
        z = j * a.strides[1] - left + kw + float(moves[b, 2 * tap + 1, i, j])
        group = channel // inner
        result[b, group * outer : (group + 1) * outer, i, j] += weight[
            group * outer : (group + 1) * outer, channel % inner, kh, kw
        ] * sample(b, channel, y, z)
    return pack(result, "NCHW", a.data_layout)


case("nn.deformable_conv2d", retyped(_deformables(), FLOATS), in_float64(_deformable_reference), loose=3)


@st.composite
def _dilations(draw: Any) -> Any:
    layouts = draw(st.sampled_from((("NCHW", "IHW"), ("NHWC", "HWI"))))
    attrs: dict[str, Any] = {
        "strides": (draw(st.integers(1, 2)),) * 2, "padding": (draw(st.integers(0, 1)),), "dilations": (1, draw(st.integers(1, 2))),
        "data_layout": layouts[0], "kernel_layout": layouts[1],
    }  # fmt: skip
    x, w = values((1, 2, 4, 5), "float32", draw(seeds)), values((2, 2, 2), "float32", draw(seeds))
    return attrs, [pack(x, "NCHW", layouts[0]), pack(w, "IHW", layouts[1])]


def _dilation_reference(a: Any, x: np.ndarray, w: np.ndarray) -> np.ndarray:
    data, weight = unpack(x, "NCHW", a.data_layout), unpack(w, "IHW", a.kernel_layout)
    p = a.padding[0]
    data = np.pad(data, ((0, 0), (0, 0), (p, p), (p, p)), constant_values=-np.inf)
    rows = (data.shape[2] - 2) // a.strides[0] + 1
    columns = (data.shape[3] - a.dilations[1] - 1) // a.strides[1] + 1
    result = np.full((1, 2, rows, columns), -np.inf)
    for i, j, kh, kw in product(range(rows), range(columns), range(2), range(2)):
        pixel = data[:, :, i * a.strides[0] + kh, j * a.strides[1] + kw * a.dilations[1]]
        result[:, :, i, j] = np.maximum(result[:, :, i, j], pixel + weight[:, kh, kw])
    return pack(result, "NCHW", a.data_layout)


case("image.dilation2d", retyped(_dilations(), FLOATS), in_float64(_dilation_reference))
