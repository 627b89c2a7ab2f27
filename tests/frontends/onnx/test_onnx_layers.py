"""ONNX' convolutions, pooling, normalizations: against onnxruntime, over attributes, dtypes, ranks and open sizes."""

from __future__ import annotations

from typing import Any

import mirstack
import numpy as np
import pytest
from against_onnxruntime import check, model_of

pytestmark = pytest.mark.extra
rng = np.random.default_rng(0)
SPATIAL = {3: (11,), 4: (9, 12), 5: (5, 6, 7)}


def some(*shape: int, dtype: str = "float32") -> Any:
    return rng.standard_normal(shape).astype(dtype)


def image(rank: int, channels: int = 4, dtype: str = "float32") -> Any:
    return some(2, channels, *SPATIAL[rank], dtype=dtype)


CONVOLUTIONS: list[tuple[int, int, dict[str, Any]]] = [
    (3, 1, {"pads": [2, 1], "strides": [2]}),
    (3, 2, {"dilations": [3]}),
    (4, 1, {"pads": [1, 2, 0, 3], "strides": [2, 1]}),
    (4, 4, {"auto_pad": "SAME_UPPER", "strides": [2, 3]}),
    (4, 2, {"auto_pad": "SAME_LOWER", "strides": [2, 1]}),
    (4, 1, {"auto_pad": "VALID"}),
    (5, 1, {"pads": [1, 0, 1, 0, 1, 1]}),
    (5, 2, {"auto_pad": "SAME_UPPER", "strides": [2, 2, 2]}),
]


@pytest.mark.parametrize(("rank", "group", "attributes"), CONVOLUTIONS)
def test_convolutions(rank: int, group: int, attributes: dict[str, Any]) -> None:
    weight = some(8, 4 // group, *[3, 2, 3][: rank - 2])
    check("Conv", [image(rank), weight, some(8)], constants=(1, 2), group=group, tolerance=1e-4, **attributes)


@pytest.mark.parametrize(
    "attributes",
    [
        {"pads": [1, 1, 1, 1]},
        {"auto_pad": "SAME_UPPER", "strides": [2, 2]},
        {"auto_pad": "SAME_LOWER", "strides": [2, 3]},
        {"auto_pad": "SAME_LOWER"},
    ],
)
def test_convolutions_of_open_sizes(attributes: dict[str, Any]) -> None:
    inputs = [image(4), some(8, 4, 3, 3)]
    check("Conv", inputs, constants=(1,), open_axes={0: [0, 2, 3]}, tolerance=1e-4, **attributes)


def test_weights_that_are_computed() -> None:
    check("Conv", [image(4), some(8, 4, 3, 3)], tolerance=1e-4, pads=[1, 1, 1, 1])


TRANSPOSED: list[tuple[int, int, dict[str, Any]]] = [
    (3, 1, {"strides": [2], "pads": [1, 0]}),
    (4, 2, {"strides": [2, 2], "output_padding": [1, 1], "pads": [1, 1, 1, 1]}),
    (4, 1, {"strides": [3, 2], "output_shape": [28, 25]}),
    (4, 1, {"strides": [3, 2], "output_shape": [28, 25], "auto_pad": "SAME_UPPER"}),
    (4, 1, {"strides": [2, 2], "auto_pad": "SAME_LOWER"}),
    (4, 1, {"strides": [2, 2], "auto_pad": "SAME_UPPER"}),
    (4, 1, {"dilations": [2, 3]}),
    (5, 1, {"strides": [2, 1, 2]}),
]


@pytest.mark.parametrize(("rank", "group", "attributes"), TRANSPOSED)
def test_transposed_convolutions(rank: int, group: int, attributes: dict[str, Any]) -> None:
    weight = some(4, 6 // group, *[3, 3, 2][: rank - 2])
    check("ConvTranspose", [image(rank), weight, some(6)], constants=(1, 2), group=group, tolerance=1e-4, **attributes)


def test_transposed_convolution_of_open_sizes() -> None:
    inputs = [image(4), some(4, 6, 3, 3)]
    options: dict[str, Any] = {"strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 1]}
    check("ConvTranspose", inputs, constants=(1,), open_axes={0: [0, 2, 3]}, tolerance=1e-4, **options)
    with pytest.raises(mirstack.MirError, match="ConvTranspose: output_shape needs data of known sizes"):
        mirstack.from_onnx(model_of("ConvTranspose", inputs, constants=(1,), open_axes={0: [2]}, output_shape=[20, 25]))


POOLS: list[tuple[int, dict[str, Any]]] = [
    (3, {"kernel_shape": [3], "strides": [2]}),
    (4, {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 0, 1, 1]}),
    (4, {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}),
    (4, {"kernel_shape": [3, 3], "strides": [3, 3], "pads": [1, 1, 1, 1], "ceil_mode": 1}),
    (4, {"kernel_shape": [1, 1], "strides": [2, 2], "ceil_mode": 1}),
    (4, {"kernel_shape": [2, 3], "dilations": [2, 2], "strides": [2, 1]}),
    (4, {"kernel_shape": [3, 3], "auto_pad": "SAME_UPPER", "strides": [2, 2]}),
    (4, {"kernel_shape": [2, 2], "auto_pad": "SAME_LOWER"}),
    (5, {"kernel_shape": [2, 2, 2], "strides": [2, 2, 2]}),
]


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize(("rank", "attributes"), POOLS)
@pytest.mark.parametrize("operator", ["MaxPool", "AveragePool", "LpPool"])
def test_pools(operator: str, rank: int, attributes: dict[str, Any], is_open: bool) -> None:
    axes = [0, *range(2, rank)] if is_open else []
    check(operator, [image(rank)], open_axes={0: axes}, interpreted=not is_open, opset=19, **attributes)


@pytest.mark.parametrize(("rank", "attributes"), [case for case in POOLS if "auto_pad" not in case[1]])
def test_averages_with_their_padding(rank: int, attributes: dict[str, Any]) -> None:
    check("AveragePool", [image(rank)], interpreted=True, opset=19, count_include_pad=1, **attributes)


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize(
    ("rank", "attributes"),
    [
        (3, {"kernel_shape": [3], "strides": [2], "pads": [1, 1]}),
        (4, {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 0, 1, 1]}),
        (4, {"kernel_shape": [2, 2], "storage_order": 1}),
        (4, {"kernel_shape": [2, 2], "dilations": [2, 3], "ceil_mode": 1, "strides": [2, 2]}),
        (5, {"kernel_shape": [2, 2, 2], "strides": [2, 1, 2]}),
    ],
)
def test_positions_of_maxima(rank: int, attributes: dict[str, Any], is_open: bool) -> None:
    axes = [0, *range(2, rank)] if is_open else []
    check("MaxPool", [image(rank)], outputs=2, open_axes={0: axes}, opset=12, **attributes)


def test_maxima_of_integers() -> None:
    for dtype in ("int8", "uint8"):
        data = rng.integers(0, 100, (1, 2, 6, 6)).astype(dtype)
        check("MaxPool", [data], kernel_shape=[3, 3], pads=[1, 1, 1, 1], opset=12)


@pytest.mark.parametrize("rank", [3, 4, 5])
@pytest.mark.parametrize("operator", ["GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"])
def test_global_pools(operator: str, rank: int) -> None:
    check(operator, [image(rank)], interpreted=True)
    check(operator, [image(rank)], open_axes={0: [0, *range(2, rank)]})


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_normalizations(dtype: str) -> None:
    x, vector = image(4, dtype=dtype), [some(4, dtype=dtype) for _ in range(3)]
    var = np.abs(some(4, dtype=dtype)) + np.asarray(0.5, dtype)
    tolerance = 1e-2 if dtype == "float16" else 1e-5
    axes = {0: [0, 2, 3]}
    check("BatchNormalization", [x, *vector, var], open_axes=axes, opset=15, epsilon=1e-3, tolerance=tolerance)
    if dtype != "float64":
        check("InstanceNormalization", [x, *vector[:2]], open_axes=axes, tolerance=tolerance)
    row = some(12, dtype=dtype)
    check("LayerNormalization", [x, row, some(12, dtype=dtype)], open_axes={0: [0, 1, 2]}, tolerance=tolerance)
    check("LayerNormalization", [x, row], open_axes={0: [0, 1, 2]}, tolerance=tolerance)


@pytest.mark.parametrize(("axis", "scale"), [(-1, 12), (-1, 1), (2, 12), (1, 12)])
def test_layer_norms_over_open_axes(axis: int, scale: int) -> None:
    parts = [some(scale), some(scale)]
    check("LayerNormalization", [image(4), *parts], open_axes={0: [2, 3]}, axis=axis, tolerance=1e-4)


@pytest.mark.parametrize("axis", [-1, 1, 2])
def test_layer_norms_of_several_axes(axis: int) -> None:
    x = image(4)
    shape = x.shape[axis:]
    check("LayerNormalization", [x, some(*shape), some(*shape)], outputs=3, axis=axis, tolerance=1e-4)


@pytest.mark.parametrize("opset", [18, 21])
def test_group_norms(opset: int) -> None:
    size = 2 if opset < 21 else 4
    check("GroupNormalization", [image(4), some(size), some(size)], num_groups=2, opset=opset)


def test_batch_norm_of_a_batch() -> None:
    inputs = [image(4), some(4), some(4), some(4), np.abs(some(4))]
    model = model_of("BatchNormalization", inputs, outputs=3, training_mode=1, opset=15)
    from onnx.reference import ReferenceEvaluator

    wanted = ReferenceEvaluator(model).run(None, {f"x{k}": array for k, array in enumerate(inputs)})
    assert isinstance(wanted, list)
    check("BatchNormalization", inputs, outputs=3, training_mode=1, opset=15, expected=wanted, tolerance=1e-4)


@pytest.mark.parametrize("size", [3, 4, 5])
def test_responses(size: int) -> None:
    attributes: dict[str, Any] = {"size": size, "alpha": 0.3, "beta": 0.6, "bias": 1.5}
    if size % 2:
        check("LRN", [image(4)], open_axes={0: [0, 2, 3]}, **attributes)
        return
    x = image(4)
    squares = np.pad(x * x, [(0, 0), ((size - 1) // 2, size // 2), (0, 0), (0, 0)])
    total = sum(squares[:, k : k + 4] for k in range(size))
    wanted = x / (1.5 + 0.3 / size * total) ** 0.6
    check("LRN", [x], open_axes={0: [0, 2, 3]}, expected=[wanted.astype("float32")], **attributes)


def test_dropout() -> None:
    check("Dropout", [image(4)], outputs=2, opset=13, interpreted=True)
    inputs = [image(4), np.array(0.5, "float32"), np.array(True)]
    with pytest.raises(mirstack.MirError, match="Dropout: training_mode drops elements at random"):
        mirstack.from_onnx(model_of("Dropout", inputs, constants=(1, 2), opset=13))


MATRICES = [
    ((3, 4), (4, 5)), ((4,), (4, 5)), ((3, 4), (4,)), ((4,), (4,)), ((2, 3, 4), (4, 5)), ((2, 3, 4), (2, 4, 5)), ((2, 3, 4), (4,)),
    ((4,), (2, 4, 5)), ((2, 1, 3, 4), (5, 4, 6)), ((2, 3, 3, 4), (1, 1, 4, 5)), ((1, 3, 4), (2, 3, 4, 5)), ((3, 4), (2, 4, 5)),
    ((2, 3, 3, 4), (2, 3, 4, 5)), ((3, 1, 2, 4), (1, 2, 4, 5)),
]  # fmt: skip


@pytest.mark.parametrize("how", ["static", "constant", "open"])
@pytest.mark.parametrize(("left", "right"), MATRICES)
def test_products(left: tuple[int, ...], right: tuple[int, ...], how: str) -> None:
    axes = {0: range(len(left) - 1), 1: range(len(right) - 2)} if how == "open" else None
    constants = (1,) if how == "constant" else ()
    check("MatMul", [some(*left), some(*right)], constants=constants, open_axes=axes, interpreted=how == "static")


@pytest.mark.parametrize("dtype", ["float64", "int32", "float16"])
def test_products_of_dtypes(dtype: str) -> None:
    left, right = ((some(2, 3, 4) * 3).astype(dtype), (some(4, 5) * 3).astype(dtype))
    check("MatMul", [left, right], constants=(1,), tolerance=1e-2 if dtype == "float16" else 1e-5)


@pytest.mark.parametrize("constants", [(), (1, 2)])
@pytest.mark.parametrize("shape", [(5,), (1, 5), (3, 1), (3, 5), (), None])
@pytest.mark.parametrize(("first", "second"), [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_general_products(first: int, second: int, shape: tuple[int, ...] | None, constants: tuple[int, ...]) -> None:
    x, y = some(*((4, 3) if first else (3, 4))), some(*((5, 4) if second else (4, 5)))
    added = None if shape is None else some(*shape)
    used = constants if added is not None else constants[:1]
    options: dict[str, Any] = {"alpha": 0.5, "beta": 2.0, "transA": first, "transB": second}
    check("Gemm", [x, y, added], constants=used, interpreted=True, **options)
