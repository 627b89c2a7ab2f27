"""ONNX operators of shapes, parts and padding against onnxruntime: open sizes, computed and constant arguments, dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from frontends.onnx.against_onnxruntime import check

pytestmark = pytest.mark.extra


def ints(*values: int, dtype: Any = np.int64) -> Any:
    return np.array(values, dtype)


def image(*shape: int, dtype: Any = np.float32) -> Any:
    return np.random.default_rng(0).normal(size=shape).astype(dtype)


OPEN = [{}, {0: [0]}, {0: [0, 1]}]
RESHAPES = [(0, -1), (-1, 4), (2, 3, 2, 2), (-1,), (0, 3, -1), (1, 0, -1), (6, 4), (0, 0, 2, 2)]


@pytest.mark.parametrize("open_axes", OPEN)
@pytest.mark.parametrize("shape", RESHAPES)
@pytest.mark.parametrize("constants", [(1,), ()])
def test_reshape(shape: tuple[int, ...], open_axes: Any, constants: Any) -> None:
    check("Reshape", [image(2, 3, 4), ints(*shape)], constants=constants, open_axes=open_axes, interpreted=True)


def test_reshape_of_no_elements() -> None:
    check("Reshape", [image(0, 3, 4), ints(3, 4, 0)], constants=[1], allowzero=1)
    check("Reshape", [image(0, 3), ints(3, 0)], constants=[1], allowzero=1, interpreted=True)
    check("Reshape", [image(0, 3), ints(0, 3, 1)], open_axes={0: [0]}, interpreted=True)


@pytest.mark.parametrize("open_axes", OPEN)
@pytest.mark.parametrize("axis", [0, 1, 2, 3, -1, -3])
def test_flatten(axis: int, open_axes: Any) -> None:
    check("Flatten", [image(2, 3, 4)], axis=axis, open_axes=open_axes, interpreted=True)


@pytest.mark.parametrize("constants", [(1,), ()])
@pytest.mark.parametrize("axes", [(0,), (-1, 0), (2, 0, 4), (1, 2)])
def test_unsqueeze_and_squeeze(axes: tuple[int, ...], constants: Any) -> None:
    check("Unsqueeze", [image(2, 3, 4), ints(*axes)], constants=constants, open_axes={0: [1]}, interpreted=True)
    shape = np.expand_dims(image(2, 3, 4), axes).shape
    check("Squeeze", [image(*shape), ints(*axes)], constants=constants, interpreted=True)


SLICES: list[tuple[Any, ...]] = [
    ((1,), (3,), (0,), (1,)), ((-2,), (2**63 - 1,), (1,), (1,)), ((-1,), (-(2**63),), (1,), (-1,)), ((4, 5), (0, -6), (0, 1), (-2, -1)),
    ((0, 0), (100, -1), (-1, 0), (2, 3)), ((3,), (1,), (0,), (1,)), ((0,), (5,), (1,), (1,)),
]  # fmt: skip


@pytest.mark.parametrize("dtype", [np.int64, np.int32])
@pytest.mark.parametrize("constants", [(1, 2, 3, 4), (3, 4), (1, 2), ()])
@pytest.mark.parametrize("bounds", SLICES)
def test_slice(bounds: Any, constants: Any, dtype: Any) -> None:
    ends = [
        np.clip(np.array(each, np.int64), np.iinfo(dtype).min, np.iinfo(dtype).max).astype(dtype) for each in bounds
    ]
    for open_axes in ({}, {0: [0, 1]}):
        check("Slice", [image(5, 6), *ends], constants=constants, open_axes=open_axes, interpreted=True)


def test_slice_natively() -> None:
    bounds = [np.array(each, np.int64) for each in ((-1, 1), (-(2**63), 2**63 - 1), (1, 0), (-1, 2))]
    for constants in ((1, 2, 3, 4), ()):
        check("Slice", [image(5, 6), *bounds], constants=constants, open_axes={0: [0, 1]})


@pytest.mark.parametrize("open_axes", OPEN)
@pytest.mark.parametrize("shape", [(2, 3, 4), (1, 1, 1), (5, 1, 3, 1), (4,), ()])
def test_expand(shape: tuple[int, ...], open_axes: Any) -> None:
    data = image(2, 3, 4) if shape != (5, 1, 3, 1) else image(2, 1, 4)
    check("Expand", [data, ints(*shape)], constants=[1], open_axes=open_axes, interpreted=True)
    check("Expand", [data, ints(*shape)], open_axes=open_axes, interpreted=True)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.bool_, np.float16, np.uint8])
def test_expand_and_tile_of_dtypes(dtype: Any) -> None:
    check("Expand", [image(2, 1, dtype=dtype), ints(3, 2, 4)], constants=[1])
    check("Tile", [image(2, 1, dtype=dtype), ints(3, 2)], open_axes={0: [0]})


@pytest.mark.parametrize("constants", [(1,), ()])
@pytest.mark.parametrize("open_axes", OPEN)
def test_tile(open_axes: Any, constants: Any) -> None:
    for repeats in ((1, 2), (3, 1), (0, 2)):
        check("Tile", [image(2, 3), ints(*repeats)], constants=constants, open_axes=open_axes, interpreted=True)


@pytest.mark.parametrize("open_axes", [{}, {0: [0, 1]}])
@pytest.mark.parametrize("split", [(1, 2, 3), (6,), (0, 6), None])
@pytest.mark.parametrize("constants", [(1,), ()])
def test_split(split: Any, open_axes: Any, constants: Any) -> None:
    inputs = [image(6, 4), None if split is None else ints(*split)]
    count = 3 if split is None else len(split)
    more: dict[str, Any] = {"num_outputs": count} if split is None else {}
    check("Split", inputs, outputs=count, constants=constants, open_axes=open_axes, interpreted=True, **more)


@pytest.mark.parametrize("open_axes", [{}, {0: [0, 1]}])
def test_uneven_split(open_axes: Any) -> None:
    check("Split", [image(4, 7)], outputs=3, axis=-1, num_outputs=3, open_axes=open_axes)


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
@pytest.mark.parametrize("pads", [(1, 2, 0, 1), (0, -1, 2, 0), (-1, 0, 0, -1), (2, 2, 2, 2)])
def test_pad(pads: tuple[int, ...], mode: str) -> None:
    for open_axes in ({}, {0: [0, 1]}):
        check("Pad", [image(4, 5), ints(*pads)], mode=mode, constants=[1], open_axes=open_axes, interpreted=True)


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
def test_pad_at_run_time(mode: str) -> None:
    check("Pad", [image(4, 5), ints(1, 2, 0, 1)], mode=mode, open_axes={0: [0]})
    check("Pad", [image(4, 5), ints(2, 1), None, ints(-1)], mode=mode, constants=[3])


@pytest.mark.parametrize("dtype", [np.int32, np.bool_, np.float64, np.uint8])
def test_pad_of_dtypes(dtype: Any) -> None:
    value = np.array(1, dtype)
    check("Pad", [image(2, 3, dtype=dtype), ints(1, 1), value, ints(1)], constants=[1, 3])


@pytest.mark.parametrize("open_axes", [{}, {0: [0, 1]}, {0: [0, 1, 2, 3]}])
def test_depth_and_space(open_axes: Any) -> None:
    if not open_axes.get(0, [0, 1])[1:2] or open_axes == {}:
        check("SpaceToDepth", [image(2, 3, 4, 6)], blocksize=2, open_axes=open_axes)
    for mode in ("DCR", "CRD"):
        check("DepthToSpace", [image(2, 8, 3, 2)], blocksize=2, mode=mode, open_axes=open_axes)


@pytest.mark.parametrize("k", [None, 0, 2, -1, 7])
@pytest.mark.parametrize("upper", [0, 1])
def test_trilu(k: Any, upper: int) -> None:
    inputs = [image(2, 3, 4), None if k is None else np.array(k, np.int64)]
    check("Trilu", inputs, upper=upper, open_axes={0: [1, 2]}, interpreted=True)
    check("Trilu", inputs, upper=upper, constants=[1])


@pytest.mark.parametrize("size", [(2, 9), (7, 3), (4, 5)])
def test_center_crop_pad(size: tuple[int, int]) -> None:
    from frontends.onnx.against_onnxruntime import model_of
    from onnx.reference import ReferenceEvaluator

    inputs = [image(3, 4, 5), ints(*size)]
    model = model_of("CenterCropPad", inputs, axes=[1, -1])
    expected = ReferenceEvaluator(model).run(None, {"x0": inputs[0], "x1": inputs[1]})
    assert isinstance(expected, list)
    for constants in ((1,), ()):
        check("CenterCropPad", inputs, axes=[1, -1], constants=constants, expected=expected, open_axes={0: [0, 1]})


@pytest.mark.parametrize("axis", [0, -1])
def test_concat(axis: int) -> None:
    check("Concat", [image(2, 3), image(2, 3), image(2, 3)], axis=axis, open_axes={0: [0], 1: [0], 2: [0]})


@pytest.mark.parametrize("opset", [7, 10, 11, 13])
def test_depth_to_space_of_opsets(opset: int) -> None:
    more: dict[str, Any] = {"mode": "CRD"} if opset >= 11 else {}
    for attributes in ({}, more):
        check("DepthToSpace", [image(2, 8, 3, 2)], opset=opset, blocksize=2, open_axes={0: [0, 2]}, **attributes)
