"""ONNX operators on images, boxes and signals against onnxruntime: modes, open sizes, computed arguments, dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from frontends.onnx.against_onnxruntime import check

pytestmark = pytest.mark.extra


def image(*shape: int, dtype: Any = np.float32) -> Any:
    return (np.random.default_rng(0).normal(size=shape) * 10).astype(dtype)


def reals(*values: float) -> Any:
    return np.array(values, np.float32)


def ints(*values: int) -> Any:
    return np.array(values, np.int64)


COORDINATES = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "half_pixel_symmetric"]
OPEN = {0: [0, 2, 3]}


@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("nearest", ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
def test_resize_nearest(nearest: str, coordinates: str) -> None:
    modes: dict[str, Any] = {"mode": "nearest", "nearest_mode": nearest, "coordinate_transformation_mode": coordinates}
    for sizes in ((2, 3, 8, 10), (2, 3, 3, 7)):
        for open_axes in ({}, OPEN):
            inputs = [image(2, 3, 4, 5), None, None, ints(*sizes)]
            check("Resize", inputs, constants=[3], open_axes=open_axes, interpreted=True, **modes)
    for open_axes in ({}, OPEN):
        inputs = [image(2, 3, 4, 5), None, reals(1, 1, 2, 3)]
        check("Resize", inputs, constants=[2], open_axes=open_axes, interpreted=True, **modes)


@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_resize_interpolated(mode: str, coordinates: str) -> None:
    modes: dict[str, Any] = {"mode": mode, "coordinate_transformation_mode": coordinates, "tolerance": 1e-4}
    for scales in (reals(1, 1, 2, 3), reals(1, 1, 0.5, 0.5)):
        for open_axes in ({}, OPEN):
            inputs = [image(2, 3, 4, 6), None, scales]
            check("Resize", inputs, constants=[2], open_axes=open_axes, interpreted=True, **modes)
    inputs = [image(2, 3, 4, 6), None, None, ints(2, 3, 7, 3)]
    check("Resize", inputs, open_axes=OPEN, **modes)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_resize_natively(mode: str) -> None:
    inputs = [image(1, 2, 4, 6), None, reals(1, 1, 1.5, 2.5)]
    for constants in ([2], []):
        check("Resize", inputs, constants=constants, mode=mode, open_axes=OPEN, tolerance=1e-4)
    check("Resize", inputs, constants=[2], mode=mode, tolerance=1e-4)


def test_resize_to_a_region() -> None:
    region = reals(0, 0, 0.4, -0.2, 1, 1, 1.1, 0.8)
    more: dict[str, Any] = {
        "mode": "linear",
        "coordinate_transformation_mode": "tf_crop_and_resize",
        "extrapolation_value": 7.0,
    }
    for constants in ([1, 3], []):
        inputs = [image(1, 2, 4, 5), region, None, ints(1, 2, 3, 6)]
        check("Resize", inputs, constants=constants, tolerance=1e-4, **more)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_resize_of_other_ranks(mode: str) -> None:
    check("Resize", [image(2, 3, 5), None, reals(1, 1, 2.5)], constants=[2], mode=mode, tolerance=1e-4)
    check("Resize", [image(1, 2, 3, 4, 5), None, reals(1, 1, 2, 2, 3)], constants=[2], mode=mode, tolerance=1e-4)


def test_resize_of_integers() -> None:
    data = np.random.default_rng(0).integers(0, 255, (1, 2, 4, 5)).astype(np.uint8)
    check("Resize", [data, None, reals(1, 1, 2, 2)], constants=[2], mode="nearest", open_axes=OPEN)
    check("Resize", [data.astype(np.int32), None, reals(1, 1, 2, 2)], constants=[2], mode="nearest")


@pytest.mark.parametrize("opset", [7, 9])
@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_upsample(mode: str, opset: int) -> None:
    scales = [1.0, 1.0, 2.0, 3.0]
    more: dict[str, Any] = {"scales": scales} if opset == 7 else {"constants": [1]}
    inputs = [image(1, 2, 3, 4)] if opset == 7 else [image(1, 2, 3, 4), reals(*scales)]
    check("Upsample", inputs, mode=mode, opset=opset, open_axes=OPEN, tolerance=1e-4, **more)


@pytest.mark.parametrize("scale", [2.0, 0.5, 0.6])
def test_resize_of_opset_10(scale: float) -> None:
    for mode in ("nearest", "linear"):
        inputs = [image(1, 2, 6, 7), reals(1, 1, scale, scale)]
        check("Resize", inputs, constants=[1], mode=mode, opset=10, open_axes=OPEN, tolerance=1e-4, interpreted=True)


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
@pytest.mark.parametrize("align", [0, 1])
def test_grid_sample(align: int, mode: str, padding: str) -> None:
    grid = np.random.default_rng(1).uniform(-1.3, 1.3, (2, 3, 4, 2)).astype(np.float32)
    more: dict[str, Any] = {"mode": mode, "padding_mode": padding, "align_corners": align, "tolerance": 1e-4}
    check("GridSample", [image(2, 3, 5, 6), grid], open_axes={0: [0, 2, 3], 1: [0, 1]}, interpreted=True, **more)


@pytest.mark.parametrize("transformation", ["half_pixel", "output_half_pixel"])
@pytest.mark.parametrize("ratio", [0, 2])
@pytest.mark.parametrize("mode", ["avg", "max"])
def test_roi_align(mode: str, ratio: int, transformation: str) -> None:
    rois = reals(0, 0, 7, 5, 1, 2, 3.5, 6, -2, 1, 9, 4, 3, 3, 3.2, 3.1).reshape(4, 4)
    more: dict[str, Any] = {"output_height": 2, "output_width": 3, "sampling_ratio": ratio, "spatial_scale": 0.5}
    more |= {"mode": mode, "coordinate_transformation_mode": transformation, "tolerance": 1e-4}
    check("RoiAlign", [image(2, 3, 5, 6), rois, ints(0, 1, 1, 0)], open_axes={0: [2, 3], 1: [0], 2: [0]}, **more)


@pytest.mark.parametrize("center", [0, 1])
@pytest.mark.parametrize("constants", [(2, 3, 4), ()])
def test_non_max_suppression(center: int, constants: Any) -> None:
    rng = np.random.default_rng(3)
    low = rng.uniform(0, 1, (2, 6, 2))
    boxes = np.concatenate([low, low + rng.uniform(0.1, 1, (2, 6, 2))], 2).astype(np.float32)
    scores = rng.normal(size=(2, 3, 6)).astype(np.float32)
    for most, shared, least in ((3, 0.3, 0.0), (9, 0.0, -0.5), (0, 0.5, 0.0)):
        numbers = [np.array([most]), reals(shared), reals(least)]
        inputs = [boxes, scores, *numbers]
        check("NonMaxSuppression", inputs, center_point_box=center, constants=constants, open_axes={0: [1], 1: [2]})


@pytest.mark.parametrize("constants", [(1, 2), ()])
def test_col2im(constants: Any) -> None:
    inputs = [image(2, 3 * 4, 12), ints(4, 5), ints(2, 2)]
    check("Col2Im", inputs, constants=constants, open_axes={0: [0]}, tolerance=1e-4)
    inputs = [image(1, 2 * 6, 15), ints(5, 6), ints(2, 3)]
    more: dict[str, Any] = {"pads": [1, 0, 1, 1], "strides": [1, 2], "dilations": [2, 1], "tolerance": 1e-4}
    check("Col2Im", inputs, constants=constants, **more)


@pytest.mark.parametrize("inverse", [0, 1])
@pytest.mark.parametrize("length", [None, 5, 9])
@pytest.mark.parametrize("parts", [1, 2])
def test_dft(parts: int, length: Any, inverse: int) -> None:
    inputs = [image(2, 6, parts), None if length is None else np.array(length, np.int64)]
    for constants in ([1], []):
        more: dict[str, Any] = {"inverse": inverse, "open_axes": {0: [0, 1]}, "tolerance": 1e-3}
        check("DFT", inputs, opset=17, axis=1, constants=constants, **more)


@pytest.mark.parametrize("onesided", [0, 1])
def test_stft(onesided: int) -> None:
    window = np.hanning(16).astype(np.float32)
    inputs = [image(2, 100, 1), np.array(6, np.int64), window, np.array(16, np.int64)]
    for constants in ([1, 2, 3], []):
        check("STFT", inputs, onesided=onesided, constants=constants, open_axes={0: [0, 1]}, tolerance=1e-3)


EQUATIONS = [
    ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]), ("bhqd,bkhd->bhqk", [(2, 3, 4, 5), (2, 6, 3, 5)]), ("ij,j->i", [(3, 4), (4,)]),
    ("bhqk,bkhd->bqhd", [(2, 3, 4, 6), (2, 6, 3, 5)]), ("ij->ji", [(3, 4)]), ("ii->i", [(3, 3)]), ("...i,...i->...", [(2, 3), (2, 3)]),
    ("i,j->ij", [(3,), (4,)]), ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 2)]), ("bij,bij->b", [(2, 3, 4), (2, 3, 4)]), ("ij,jk", [(2, 3), (3, 4)]),
]  # fmt: skip


@pytest.mark.parametrize(("equation", "shapes"), EQUATIONS)
def test_einsum(equation: str, shapes: Any) -> None:
    inputs = [image(*shape) for shape in shapes]
    open_axes = {k: [0] for k in range(len(shapes))}
    expected = [np.asarray(np.einsum(equation, *inputs))]
    for axes in ({}, open_axes):
        check("Einsum", inputs, equation=equation, open_axes=axes, expected=expected, tolerance=1e-3)
