"""Operators of the domain com.microsoft against onnxruntime."""

from __future__ import annotations

from typing import Any

import mirstack
import numpy as np
import pytest
from extras import library
from mirstack.dialects.relay.operators.nn.matmul_nbits import pack_bits

pytestmark = pytest.mark.extra
onnx = library("onnx", "onnx")
runtime = library("onnxruntime", "bench")
RNG = np.random.default_rng(5)


def real(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype("float32")


def some_bytes(*shape: int, dtype: str = "uint8") -> Any:
    info = np.iinfo(dtype)
    return RNG.integers(info.min, info.max, shape, dtype, endpoint=True)


def check(
    op: str,
    inputs: dict[str, Any],
    weights: dict[str, Any],
    order: str,
    outputs: int = 1,
    tolerance: float = 1e-4,
    **attributes: Any,
) -> None:
    """Compares one node, natively compiled, with onnxruntime; sizes of inputs are open."""
    helper = onnx.helper
    given = [
        helper.make_tensor_value_info(
            name,
            helper.np_dtype_to_tensor_dtype(array.dtype),
            [f"{name}{axis}" if axis < 1 else size for axis, size in enumerate(array.shape)],
        )
        for name, array in inputs.items()
    ]
    names = [f"y{place}" for place in range(outputs)]
    node = helper.make_node(
        op, ["" if each == "_" else each for each in order.split()], names, domain="com.microsoft", **attributes
    )
    arrays = [onnx.numpy_helper.from_array(np.asarray(array), name) for name, array in weights.items()]
    graph = helper.make_graph([node], "g", given, [helper.make_empty_tensor_value_info(each) for each in names], arrays)
    sets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=sets, ir_version=8)
    wanted = runtime.InferenceSession(model.SerializeToString()).run(None, inputs)
    found = mirstack.compile(mirstack.from_onnx(model))(*inputs.values())
    for each, expected in zip(found if outputs > 1 else [found], wanted, strict=True):
        assert each.dtype == expected.dtype and each.shape == expected.shape
        np.testing.assert_allclose(
            each.astype("float64"), expected.astype("float64"), rtol=min(tolerance, 1e-3), atol=tolerance
        )


def test_activations() -> None:
    check("Gelu", {"x": real(2, 8)}, {}, "x")
    check("BiasGelu", {"x": real(2, 8)}, {"b": real(8)}, "x b")
    check("FastGelu", {"x": real(2, 8)}, {"b": real(8)}, "x b")
    check("QuickGelu", {"x": real(2, 8)}, {}, "x", alpha=1.5)


def test_products() -> None:
    check("FusedMatMul", {"x": real(2, 8, 5)}, {"w": real(4, 8)}, "x w", alpha=0.5, transA=1, transB=1)
    for left, right, turned in (((2, 3, 8), (8, 3, 4), 0), ((8, 3, 2), (4, 3, 8), 1)):
        places = {"transA": turned, "transB": turned, "transBatchA": 1, "transBatchB": 1}
        check("FusedMatMul", {"x": real(*left)}, {"w": real(*right)}, "x w", **places)
    check("FusedGemm", {"x": real(2, 8)}, {"w": real(8, 4), "b": real(4)}, "x w b", activation="Relu")
    check(
        "FusedConv",
        {"x": real(2, 3, 6, 6)},
        {"w": real(4, 3, 3, 3), "b": real(4)},
        "x w b",
        activation="Relu",
        pads=[1, 1, 1, 1],
    )
    check("CDist", {"x": real(3, 4)}, {"y": real(5, 4)}, "x y", metric="euclidean")


@pytest.mark.parametrize("zeros", ["", "packed"])
def test_matmul_nbits(zeros: str) -> None:
    numbers = RNG.integers(0, 16, (6, 2, 32), "uint8")
    weights = {"w": pack_bits(numbers, 4), "s": RNG.random((6, 2), "float32"), "z": some_bytes(6, 1)}
    check(
        "MatMulNBits",
        {"x": real(3, 64)},
        weights,
        "x w s z" if zeros else "x w s",
        K=64,
        N=6,
        bits=4,
        block_size=32,
        tolerance=1e-3,
    )


def test_normalizations() -> None:
    weights = {"k": real(2, 3, 8), "g": real(8), "b": real(8), "c": real(8)}
    check("SkipLayerNormalization", {"x": real(2, 3, 8)}, weights, "x k g b c", epsilon=1e-5)
    check("SkipSimplifiedLayerNormalization", {"x": real(2, 3, 8)}, weights, "x k g c", epsilon=1e-5)
    ids = RNG.integers(0, 9, (2, 3), "int32")
    tables = {"words": real(10, 8), "places": real(7, 8), "segments": real(2, 8), **weights}
    check("EmbedLayerNormalization", {"i": ids, "j": ids % 2}, tables, "i j words places segments g b", outputs=2)


def test_attentions() -> None:
    q, k, v = real(2, 3, 8), real(2, 5, 8), real(2, 5, 8)
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], "int32")
    check("MultiHeadAttention", {"q": q, "k": k, "v": v}, {"b": real(24)}, "q k v b", num_heads=2)
    check("MultiHeadAttention", {"q": q, "k": k, "v": v}, {"m": mask}, "q k v _ m", num_heads=2)
    seen = np.array([[[1, 1, 0, 0, 0], [1, 1, 1, 0, 1], [1, 0, 0, 1, 1]]] * 2, "int32")
    check("MultiHeadAttention", {"q": q, "k": k, "v": v}, {"m": seen}, "q k v _ m", num_heads=2)
    check(
        "Attention", {"x": real(2, 3, 6)}, {"w": real(6, 24), "b": real(24), "m": mask[:, :3]}, "x w b m", num_heads=2
    )
    check("Attention", {"x": real(2, 3, 6)}, {"w": real(6, 24), "b": real(24)}, "x w b", num_heads=2, unidirectional=1)


def test_rotary_embedding() -> None:
    caches = {"c": real(10, 4), "s": real(10, 4)}
    places = np.array([[0, 1, 2], [4, 5, 6]], "int64")
    check("RotaryEmbedding", {"x": real(2, 3, 16)}, {"p": places, **caches}, "x p c s")
    check("RotaryEmbedding", {"x": real(2, 3, 16)}, {"p": np.array([3], "int64"), **caches}, "x p c s", interleaved=1)


@pytest.mark.parametrize("past", [0, 4])
def test_group_query_attention(past: int) -> None:
    length = 1 if past else 3
    inputs = {"q": real(2, length, 64), "k": real(2, length, 32), "v": real(2, length, 32)}
    inputs |= {"pk": real(2, 2, past, 16), "pv": real(2, 2, past, 16)}
    weights = {
        "n": np.full(2, past + length - 1, "int32"), "t": np.array(past + length, "int32"), "c": real(10, 8), "s": real(10, 8),
    }  # fmt: skip
    attributes: dict[str, Any] = {"num_heads": 4, "kv_num_heads": 2, "do_rotary": 1}
    check("GroupQueryAttention", inputs, weights, "q k v pk pv n t c s", outputs=3, tolerance=1e-3, **attributes)


SCALES = {
    "as": np.float32(0.02), "az": np.uint8(120), "bs": np.float32(0.03), "bz": np.uint8(7), "ys": np.float32(0.05), "yz": np.uint8(100),
}  # fmt: skip


def test_quantized() -> None:
    x = {"x": some_bytes(2, 4, 6, 6)}
    weights = {**SCALES, "w": some_bytes(2, 4, 6, 6)}
    check("QLinearAdd", x, weights, "x as az w bs bz ys yz")
    # Scales of which floats compute no other products: onnxruntime rounds up what is 5e-6 of a step below a half.
    exact = {"as": np.float32(2**-6), "bs": np.float32(2**-5), "ys": np.float32(2**-4)}
    check("QLinearMul", x, {**weights, **exact}, "x as az w bs bz ys yz")
    check("QLinearSigmoid", x, {**SCALES, "ys": np.float32(1 / 256), "yz": np.uint8(0)}, "x as az ys yz", tolerance=1)
    check("QLinearLeakyRelu", x, SCALES, "x as az ys yz", alpha=0.1, tolerance=1)
    # Means that are halfway between two bytes may be rounded to either.
    check("QLinearGlobalAveragePool", x, SCALES, "x as az ys yz", tolerance=1)
    check("QLinearAveragePool", x, SCALES, "x as az ys yz", kernel_shape=[2, 2], tolerance=1)
    check("QLinearConcat", x, weights, "ys yz x as az w bs bz", axis=1)


def test_quantized_products() -> None:
    weights = {
        **SCALES,
        "w": some_bytes(8, 4, dtype="int8"),
        "wz": np.int8(3),
        "c": RNG.integers(-99, 99, 4, "int32"),
        "b": real(4),
    }
    check("QGemm", {"x": some_bytes(3, 8)}, weights, "x as az w bs wz c ys yz")
    check("QGemm", {"x": some_bytes(3, 8)}, weights, "x as az w bs wz c")
    check("MatMulIntegerToFloat", {"x": some_bytes(3, 8)}, weights, "x w as bs az wz b")
    check("DynamicQuantizeMatMul", {"x": real(3, 8)}, weights, "x w bs wz b", tolerance=1e-3)
