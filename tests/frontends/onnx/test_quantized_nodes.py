"""ONNX' quantized operators against onnxruntime, and QDQ graphs, which are computed in integers."""

from __future__ import annotations

from typing import Any

import mirstack
import numpy as np
import pytest
from extras import library
from mirstack.dialects.relay.operator import OperatorOp
from mirstack.support.walk import walk_ops

pytestmark = pytest.mark.extra
onnx = library("onnx", "onnx")
runtime = library("onnxruntime", "bench")
RNG = np.random.default_rng(3)


def model(nodes: list[Any], inputs: dict[str, Any], weights: dict[str, Any], opset: int = 21) -> Any:
    """Returns a model of the arrays `inputs`, with open first dimensions, whose result is `y`."""
    helper = onnx.helper
    given = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(array.dtype), ["n", *array.shape[1:]] if array.ndim else []
        )
        for name, array in inputs.items()
    ]
    arrays = [onnx.numpy_helper.from_array(np.asarray(array), name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "g", given, [helper.make_empty_tensor_value_info("y")], arrays)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def both(made: Any, inputs: dict[str, Any], target: Any = "interp") -> tuple[Any, Any]:
    """Returns mirstack's result and onnxruntime's."""
    wanted = runtime.InferenceSession(made.SerializeToString()).run(None, inputs)[0]
    return mirstack.compile(mirstack.from_onnx(made), target)(*inputs.values()), wanted


def node(op: str, inputs: str, output: str = "y", **attributes: Any) -> Any:
    return onnx.helper.make_node(op, inputs.split(), [output], **attributes)


def bytes_of(*shape: int, dtype: str = "uint8") -> Any:
    info = np.iinfo(dtype)
    return RNG.integers(info.min, info.max, shape, dtype, endpoint=True)


TARGETS = pytest.mark.parametrize("target", ["interp", "cpu"])


@TARGETS
@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16"])
def test_halves_are_rounded_to_even(target: Any, dtype: str) -> None:
    x = {"x": np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 1e9, -1e9], "float32").reshape(2, 4)}
    weights = {"s": np.float32(1), "z": np.array(7, dtype)}
    found, wanted = both(model([node("QuantizeLinear", "x s z")], x, weights), x, target)
    np.testing.assert_array_equal(found, wanted)


@TARGETS
@pytest.mark.parametrize(("axis", "block"), [(1, 0), (-1, 0), (2, 2)])
def test_axes_and_blocks(target: Any, axis: int, block: int) -> None:
    x = {"x": (RNG.standard_normal((2, 3, 4)) * 40).astype("float32")}
    shape = (2, 3, 2) if block else (x["x"].shape[axis],)
    weights = {"s": RNG.random(shape, "float32") + np.float32(0.5), "z": bytes_of(*shape, dtype="int8")}
    attributes: dict[str, Any] = {"axis": axis, **({"block_size": block} if block else {})}
    nodes = [node("QuantizeLinear", "x s z", "q", **attributes), node("DequantizeLinear", "q s z", **attributes)]
    made = model(nodes, x, weights)
    if block:
        # Its blocks cover as many elements as the model says.
        made.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 2
    found, wanted = both(made, x, target)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


@TARGETS
def test_dynamic_quantization(target: Any) -> None:
    for data in (RNG.standard_normal((3, 5)), np.zeros((2, 2)), RNG.random((2, 3)) + 1):
        x = {"x": data.astype("float32")}
        nodes = [
            onnx.helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
            node("DequantizeLinear", "q s z"),
        ]
        found, wanted = both(model(nodes, x, {}), x, target)
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


@TARGETS
@pytest.mark.parametrize("group", [1, 2])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_convolutions(target: Any, rank: int, group: int) -> None:
    x = {"x": bytes_of(2, 4, *[5, 6, 4][:rank])}
    weights = {
        "xs": np.float32(0.02), "xz": np.uint8(120), "w": bytes_of(6, 4 // group, *[3, 2, 2][:rank], dtype="int8"),
        "ws": RNG.random(6, "float32") / 50, "wz": np.zeros(6, "int8"), "ys": np.float32(0.3), "yz": np.uint8(128),
        "b": RNG.integers(-500, 500, 6, "int32"),
    }  # fmt: skip
    attributes: dict[str, Any] = {
        "group": group,
        "pads": [1, 0, 1][:rank] + [0, 1, 1][:rank],
        "strides": [2, 1, 1][:rank],
    }
    made = model([node("QLinearConv", "x xs xz w ws wz ys yz b", **attributes)], x, weights)
    found, wanted = both(made, x, target)
    np.testing.assert_array_equal(found, wanted)
    if rank == 2:
        found, wanted = both(model([node("ConvInteger", "x w xz", **attributes)], x, weights), x, target)
        np.testing.assert_array_equal(found, wanted)


@TARGETS
@pytest.mark.parametrize("shapes", [((3, 8), (8, 5)), ((2, 3, 8), (8, 5)), ((2, 3, 8), (2, 8, 5))])
def test_products(target: Any, shapes: Any) -> None:
    x = {"x": bytes_of(*shapes[0])}
    weights = {
        "xs": np.float32(0.02), "xz": np.uint8(120), "w": bytes_of(*shapes[1], dtype="int8"), "ws": np.float32(0.03),
        "wz": np.int8(3), "ys": np.float32(0.2), "yz": np.uint8(128),
    }  # fmt: skip
    for each in (node("QLinearMatMul", "x xs xz w ws wz ys yz"), node("MatMulInteger", "x w xz wz")):
        found, wanted = both(model([each], x, weights), x, target)
        np.testing.assert_array_equal(found, wanted)


def quantized(name: str, output: str, scale: str) -> list[Any]:
    """Returns the pair of nodes around a value `name`."""
    return [
        node("QuantizeLinear", f"{name} {scale} z", f"{name}_q"),
        node("DequantizeLinear", f"{name}_q {scale} z", output),
    ]


def qdq(x: Any) -> Any:
    w, v = bytes_of(8, 3, 3, 3, dtype="int8"), bytes_of(8, 5, dtype="int8")
    weights = {
        "w": w, "ws": np.full(8, 0.01, "float32"), "wz": np.zeros(8, "int8"), "b": RNG.integers(-99, 99, 8, "int32"),
        "bs": np.full(8, 0.0002, "float32"), "v": v, "vs": np.float32(0.01), "vz": np.int8(0), "z": np.uint8(100),
        "s": np.float32(0.02), "cs": np.float32(0.05), "gs": np.float32(0.01), "ys": np.float32(0.1), "bz": np.zeros(8, "int32"),
    }  # fmt: skip
    nodes = [
        *quantized("x", "xd", "s"), node("DequantizeLinear", "w ws wz", "wd", axis=0),
        node("DequantizeLinear", "b bs bz", "bd", axis=0), node("Conv", "xd wd bd", "conv", pads=[1, 1, 1, 1]),
        node("Relu", "conv", "c"), *quantized("c", "cd", "cs"), node("GlobalAveragePool", "cd", "pool"), node("Flatten", "pool", "g"),
        *quantized("g", "gd", "gs"), node("DequantizeLinear", "v vs vz", "vd"), node("MatMul", "gd vd", "m"),
        *quantized("m", "y", "ys"),
    ]  # fmt: skip
    return model(nodes, {"x": x}, weights)


@TARGETS
def test_quantized_regions_are_computed_in_integers(target: Any) -> None:
    x = {"x": RNG.standard_normal((2, 3, 8, 8)).astype("float32")}
    made = qdq(x["x"])
    names = {op.OPERATOR.name for op in walk_ops(mirstack.from_onnx(made).op) if isinstance(op, OperatorOp)}
    assert {"qnn.conv2d", "qnn.dense"} <= names
    assert not {"nn.conv2d", "nn.dense", "nn.matmul", "nn.relu"} & names
    found, wanted = both(made, x, target)
    # Rounding of one requantization may differ by a step, of 0.1 in the result.
    assert np.abs(found - wanted).max() < 0.11
    assert (np.abs(found - wanted) < 0.01).mean() > 0.7


def test_refusals() -> None:
    x = {"x": np.ones((2, 4), "float32")}
    made = model(
        [node("QuantizeLinear", "x s z", axis=1)], x, {"s": np.ones((2, 2), "float32"), "z": np.zeros((2, 2), "int8")}
    )
    with pytest.raises(mirstack.MirError) as error:
        mirstack.from_onnx(made)
    assert "QuantizeLinear: a scale of several dimensions needs the attribute block_size" in str(error.value)
