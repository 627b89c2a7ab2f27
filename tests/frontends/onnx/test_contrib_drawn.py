"""Operators of the domain com.microsoft with parameters drawn at random, against onnxruntime or its definition in numpy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import mirstack
import numpy as np
import pytest
from extras import library
from mirstack.dialects.relay.operators.nn.matmul_nbits import dequantize_nbits, pack_bits

pytestmark = pytest.mark.extra
onnx = library("onnx", "onnx")
runtime = library("onnxruntime", "bench")


class Draw:
    """Draws arrays and parameters."""

    def __init__(self, seed: str):
        self.rng = np.random.default_rng(list(seed.encode()))

    def real(self, *shape: int, scale: float = 1.0) -> Any:
        return (self.rng.standard_normal(shape) * scale).astype("float32")

    def bytes(self, *shape: int, dtype: str = "uint8", low: int | None = None, high: int | None = None) -> Any:
        info = np.iinfo(dtype)
        low, high = info.min if low is None else low, info.max if high is None else high
        return self.rng.integers(low, high, shape, dtype, endpoint=True)

    def scale(self, *shape: int) -> Any:
        return (self.rng.integers(4, 64, shape) / 1024).astype("float32")

    def size(self, low: int = 1, high: int = 5) -> int:
        return int(self.rng.integers(low, high + 1))

    def pick(self, *choices: Any) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def shape(self, rank: int) -> list[int]:
        return [self.size(2, 5) for _ in range(rank)]


@dataclass
class Drawn:
    """A node: its inputs by name in order (None: left out), of which `constants` are initializers.

    `expected` is what onnxruntime, which has no kernel for the node on processors, does not compute. `unused` are leading elements of
    results that no program may use.
    """

    op: str
    inputs: dict[str, Any]
    attributes: dict[str, Any] = field(default_factory=dict[str, Any])
    constants: str = ""
    outputs: int = 1
    tolerance: float = 1e-4
    expected: list[Any] | None = None
    opset: int = 17
    fixed: str = ""
    """Inputs whose sizes the model states; otherwise the first dimension is open."""


CASES: dict[str, Callable[[Draw], Drawn]] = {}


def case(*names: str) -> Callable[[Callable[[Draw, str], Drawn]], None]:
    def register(draw: Callable[[Draw, str], Drawn]) -> None:
        for name in names:
            CASES[name] = lambda d, name=name: draw(d, name)

    return register


def model_of(drawn: Drawn) -> Any:
    helper = onnx.helper
    constants = drawn.constants.split()
    names = [name if value is not None else "" for name, value in drawn.inputs.items()]
    while not names[-1]:
        names.pop()
    given: list[Any] = []
    arrays: list[Any] = []
    for name, value in drawn.inputs.items():
        if value is None:
            continue
        if name in constants:
            arrays.append(onnx.numpy_helper.from_array(np.asarray(value), name))
            continue
        is_fixed = name in drawn.fixed.split()
        sizes = [f"{name}{axis}" if axis < 1 and not is_fixed else size for axis, size in enumerate(value.shape)]
        given.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), sizes))
    results = [f"y{place}" for place in range(drawn.outputs)]
    node = helper.make_node(drawn.op, names, results, domain="com.microsoft", **drawn.attributes)
    ends = [helper.make_empty_tensor_value_info(each) for each in results]
    graph = helper.make_graph([node], "g", given, ends, arrays)
    sets = [helper.make_opsetid("", drawn.opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=sets, ir_version=8)


def compare(drawn: Drawn, target: Any) -> None:
    model = model_of(drawn)
    feeds = {k: v for k, v in drawn.inputs.items() if v is not None and k not in drawn.constants.split()}
    wanted = drawn.expected
    if wanted is None:
        options = runtime.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = 1
        wanted = runtime.InferenceSession(model.SerializeToString(), options).run(None, feeds)
    found = mirstack.compile(mirstack.from_onnx(model), target)(*feeds.values())
    for each, expected in zip(found if isinstance(found, tuple) else [found], wanted, strict=True):
        assert each.dtype == expected.dtype and each.shape == expected.shape, (each.shape, expected.shape)
        np.testing.assert_allclose(
            each.astype("float64"), expected.astype("float64"), rtol=min(drawn.tolerance, 1e-3), atol=drawn.tolerance
        )


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("name", CASES)
def test_as_onnxruntime(name: str, number: int) -> None:
    compare(CASES[name](Draw(f"{name}/{number}")), "cpu" if number == 0 else "interp")


# Activations and layers ----------------------------------------------------------------------------------------------


@case("Gelu", "FastGelu", "BiasGelu", "QuickGelu")
def activation(d: Draw, op: str) -> Drawn:
    shape = d.shape(d.size(2, 4))
    has_bias = op == "BiasGelu" or (op == "FastGelu" and d.pick(True, False))
    attributes = {"alpha": d.pick(1.0, 1.5, 1.702)} if op == "QuickGelu" else {}
    return Drawn(op, {"x": d.real(*shape), "b": d.real(shape[-1]) if has_bias else None}, attributes, "b")


def erf(x: Any) -> Any:
    from math import erf

    return np.vectorize(erf)(x)


@case("BiasSplitGelu", "BiasAdd")
def bias(d: Draw, op: str) -> Drawn:
    x = d.real(*d.shape(2), 8)
    added = d.real(8)
    if op == "BiasAdd":
        skip = d.real(*x.shape)
        return Drawn(op, {"x": x, "b": added, "s": skip}, {}, "b", expected=[x + added + skip])
    left, right = np.split(x.astype("f8") + added, 2, -1)
    result = left * right * 0.5 * (1 + erf(right / np.sqrt(2)))
    return Drawn(op, {"x": x, "b": added}, {}, "b", expected=[result.astype("float32")])


@case("GroupNorm", "SkipGroupNorm")
def group_norm(d: Draw, op: str) -> Drawn:
    n, h, w, groups = d.size(), d.size(2, 4), d.size(2, 4), d.pick(2, 4)
    x, gamma, beta = d.real(n, h, w, 8), d.real(8), d.real(8)
    inputs: dict[str, Any] = {"x": x, "g": gamma, "b": beta}
    total = x
    if op == "SkipGroupNorm":
        inputs |= {"s": d.pick(d.real(n, h, w, 8), d.real(n, 8), d.real(n, 1, 1, 8)), "c": d.pick(d.real(8), None)}
        skip = inputs["s"]
        total = x + (skip[:, None, None] if skip.ndim == 2 else skip) + (0 if inputs["c"] is None else inputs["c"])
    parts = total.astype("f8").reshape(n, h * w, groups, -1)
    mean = parts.mean((1, 3), keepdims=True)
    normal = (parts - mean) / np.sqrt(parts.var((1, 3), keepdims=True) + 1e-5)
    result = normal.reshape(x.shape) * gamma + beta
    silu = d.pick(0, 1)
    if silu:
        result = result / (1 + np.exp(-result))
    expected = [result.astype("float32"), total][: 1 + (op == "SkipGroupNorm")]
    attributes = {"groups": groups, "activation": silu, "channels_last": 1}
    return Drawn(op, inputs, attributes, "g b c", len(expected), expected=expected)


@case("SkipLayerNormalization", "SkipSimplifiedLayerNormalization")
def skip_normalization(d: Draw, op: str) -> Drawn:
    n, s = d.shape(2)
    is_simple = op == "SkipSimplifiedLayerNormalization"
    inputs: dict[str, Any] = {"x": d.real(n, s, 8), "k": d.real(*d.pick((n, s, 8), (1, s, 8), (s, 8))), "g": d.real(8)}
    if not is_simple:
        inputs["b"] = d.pick(d.real(8), None)
    inputs["c"] = d.pick(d.real(8), None)
    return Drawn(op, inputs, {"epsilon": 1e-5}, "g b c", 1)


@case("SimplifiedLayerNormalization")
def simplified(d: Draw, op: str) -> Drawn:
    x = d.real(*d.shape(d.size(2, 3)), 8)
    scale = d.real(8)
    result = x / np.sqrt((x.astype("f8") ** 2).mean(-1, keepdims=True) + 1e-5) * scale
    return Drawn(op, {"x": x, "g": scale}, {"axis": -1, "epsilon": 1e-5}, "g", expected=[result.astype("float32")])


@case("EmbedLayerNormalization")
def embed(d: Draw, op: str) -> Drawn:
    n, s = d.shape(2)
    ids = d.bytes(n, s, dtype="int32", low=0, high=9)
    segments, mask = d.pick((ids % 2, None), (None, ids % 2), (ids % 2, ids % 2))
    inputs: dict[str, Any] = {"i": ids, "j": segments, "w": d.real(10, 8), "p": d.real(7, 8)}
    inputs |= {"t": None if segments is None else d.real(2, 8), "g": d.real(8), "b": d.real(8), "m": mask}
    return Drawn(op, inputs, {"epsilon": 1e-5}, "w p t g b", 2)


@case("QEmbedLayerNormalization")
def quantized_embed(d: Draw, op: str) -> Drawn:
    n, s = d.shape(2)
    ids = d.bytes(n, s, dtype="int32", low=0, high=9)
    inputs: dict[str, Any] = {"i": ids, "j": ids % 2}
    inputs |= {
        "w": d.bytes(10, 8),
        "p": d.bytes(7, 8),
        "t": d.bytes(2, 8),
        "g": d.bytes(8),
        "b": d.bytes(8),
        "m": ids % 2,
    }
    inputs |= {f"{name}s": d.scale() for name in "wptgb"} | {f"{name}z": d.bytes() for name in "wptgb"}
    return Drawn(op, inputs, {"epsilon": 1e-5}, " ".join(list(inputs)[2:7] + list(inputs)[8:]), 2)


# Products and windows ------------------------------------------------------------------------------------------------


@case("FusedMatMul")
def fused_matmul(d: Draw, op: str) -> Drawn:
    batch, rows, inner, columns = d.shape(4)
    turned = {name: d.pick(0, 1) for name in ("transA", "transB", "transBatchA", "transBatchB")}

    def operand(first: int, second: int, name: str) -> Any:
        # What is (batch, first, second) after the transposes.
        shape = [batch, first, second]
        if turned[f"trans{name}"]:
            shape = [shape[0], shape[2], shape[1]]
        if turned[f"transBatch{name}"]:
            shape = [shape[1], shape[0], shape[2]]
        return d.real(*shape)

    inputs = {"x": operand(rows, inner, "A"), "w": operand(inner, columns, "B")}
    return Drawn(op, inputs, {**turned, "alpha": d.pick(1.0, 0.25)}, d.pick("", "w"))


ACTIVATIONS: tuple[tuple[str, list[float]], ...] = (
    ("Relu", []), ("Tanh", []), ("Sigmoid", []), ("LeakyRelu", [0.1]), ("Clip", [-0.5, 1.0]), ("HardSigmoid", [0.2, 0.4]),
)  # fmt: skip


@case("FusedGemm")
def fused_gemm(d: Draw, op: str) -> Drawn:
    rows, inner, columns = d.shape(3)
    turned = {name: d.pick(0, 1) for name in ("transA", "transB")}
    x = d.real(*((inner, rows) if turned["transA"] else (rows, inner)))
    w = d.real(*((columns, inner) if turned["transB"] else (inner, columns)))
    kind, numbers = d.pick(("Relu", {}), ("Tanh", {}), ("LeakyRelu", {"activation_alpha": 0.1}))
    attributes = {**turned, **numbers, "activation": kind, "alpha": d.pick(1.0, 0.5), "beta": d.pick(1.0, 2.0)}
    return Drawn(op, {"x": x, "w": w, "c": d.pick(d.real(columns), None)}, attributes, "w c", fixed="x")


@case("FusedConv")
def fused_conv(d: Draw, op: str) -> Drawn:
    groups = d.pick(1, 2)
    kind, numbers = d.pick(*ACTIVATIONS)
    inputs: dict[str, Any] = {"x": d.real(2, 4, 6, 5), "w": d.real(6, 4 // groups, 3, 3), "b": d.real(6), "z": None}
    attributes: dict[str, Any] = {"group": groups, "activation": kind, "pads": [1, 1, 1, 1], "kernel_shape": [3, 3]}
    if numbers:
        attributes["activation_params"] = numbers
    if d.pick(True, False):
        inputs["z"] = d.real(2, 6, 6, 5)
    return Drawn(op, inputs, attributes, "w b")


@case("NhwcConv", "NhwcFusedConv")
def nhwc_conv(d: Draw, op: str) -> Drawn:
    x, w, b = d.real(2, 5, 6, 4), d.real(6, 3, 3, 4), d.real(6)
    strides = d.pick([1, 1], [2, 1])
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, [(0, 0), (1, 1), (1, 1), (0, 0)]), (3, 3), (1, 2))
    windows = windows[:, :: strides[0], :: strides[1]]
    result = np.einsum("nhwcij,oijc->nhwo", windows.astype("f8"), w) + b
    attributes: dict[str, Any] = {"pads": [1, 1, 1, 1], "strides": strides}
    if op == "NhwcFusedConv":
        attributes["activation"] = "Relu"
        result = np.maximum(result, 0)
    return Drawn(op, {"x": x, "w": w, "b": b}, attributes, "w b", expected=[result.astype("float32")])


@case("NhwcMaxPool")
def nhwc_max_pool(d: Draw, op: str) -> Drawn:
    x = d.bytes(2, 7, 6, 3, dtype=d.pick("uint8", "int8"))
    attributes = {"kernel_shape": [3, 2], "strides": [d.size(1, 2), 2], "pads": d.pick([0, 0, 0, 0], [1, 0, 1, 1])}
    return Drawn(op, {"x": x}, attributes)


@case("ConvTransposeWithDynamicPads")
def conv_transpose(d: Draw, op: str) -> Drawn:
    inputs = {"x": d.real(2, 3, 4, 5), "w": d.real(3, 2, 3, 3), "p": np.array(d.pick([0, 0, 0, 0], [1, 0, 1, 1]))}
    return Drawn(op, {**inputs, "b": d.pick(d.real(2), None)}, {"strides": [2, 1]}, "w p b")


@case("MatMulInteger16")
def matmul_integer16(d: Draw, op: str) -> Drawn:
    return Drawn(op, {"x": d.bytes(2, 3, 4, dtype="int16"), "y": d.bytes(4, 5, dtype="int16")}, {}, d.pick("", "y"))


@case("CDist")
def cdist(d: Draw, op: str) -> Drawn:
    size = d.size(1, 6)
    return Drawn(op, {"x": d.real(4, size), "y": d.real(3, size)}, {"metric": d.pick("euclidean", "sqeuclidean")})


# Operators that ONNX has, too ----------------------------------------------------------------------------------------


@case("GatherND")
def gather_nd(d: Draw, op: str) -> Drawn:
    places = np.stack([d.bytes(3, dtype="int64", low=-2, high=1) for _ in range(d.size(1, 2))], axis=1)
    return Drawn(op, {"x": d.real(2, 3, 4), "i": places})


@case("GridSample")
def grid_sample(d: Draw, op: str) -> Drawn:
    grid = d.bytes(2, 3, 5, 2, dtype="int32", low=-5, high=5).astype("float32") / 4
    attributes = {"mode": d.pick("bilinear", "bicubic"), "padding_mode": d.pick("zeros", "border", "reflection")}
    return Drawn(op, {"x": d.real(2, 3, 4, 5), "g": grid}, {**attributes, "align_corners": d.pick(0, 1)})


@case("Pad")
def pad(d: Draw, op: str) -> Drawn:
    widths = d.bytes(4, dtype="int64", low=0, high=2)
    value = d.pick(None, d.real(1))
    return Drawn(
        op, {"x": d.real(4, 5), "p": widths, "v": value}, {"mode": d.pick("constant", "edge", "reflect")}, "p v"
    )


@case("Range")
def range_(d: Draw, op: str) -> Drawn:
    inputs: dict[str, Any] = {"a": np.array(d.size(), "int64"), "b": np.array(d.size(6, 12), "int64")}
    return Drawn(op, {**inputs, "c": d.pick(None, np.array(2, "int64"))}, {}, d.pick("", "a b c"))


@case("Trilu")
def trilu(d: Draw, op: str) -> Drawn:
    k = np.array(d.size(0, 3) - 2, "int64")
    return Drawn(op, {"x": d.real(2, 4, 5), "k": d.pick(k, None)}, {"upper": d.pick(0, 1)}, "k")


@case("ExpandDims")
def expand_dims(d: Draw, op: str) -> Drawn:
    return Drawn(op, {"x": d.real(3, 4), "a": np.array(d.size(0, 4) - 2, "int32")}, {}, "a")


@case("Unique")
def unique(d: Draw, op: str) -> Drawn:
    return Drawn(op, {"x": d.bytes(12, dtype="int32", low=0, high=4).astype("float32")}, outputs=3)


@case("UnfoldTensor")
def unfold(d: Draw, op: str) -> Drawn:
    return Drawn(op, {"x": d.real(4, 6, 7)}, {"dim": d.pick(-1, 1, 2), "size": d.size(1, 4), "step": d.size(1, 3)})


# Attention -----------------------------------------------------------------------------------------------------------


@case("RotaryEmbedding")
def rotary(d: Draw, op: str) -> Drawn:
    n, s = d.shape(2)
    x, heads = d.pick((d.real(n, s, 32), 0), (d.real(n, 4, s, 8), 0))
    places = d.pick(np.array([d.size()]), d.bytes(n, s, dtype="int64", low=0, high=9))
    inputs = {"x": x, "p": places, "c": d.real(10, 4), "s": d.real(10, 4)}
    return Drawn(op, inputs, {"interleaved": d.pick(0, 1), "num_heads": heads}, "c s")


@case("MultiHeadAttention/plain", "MultiHeadAttention/packed", "MultiHeadAttention/heads")
def multi_head(d: Draw, op: str) -> Drawn:
    n, s, t, heads = 2, d.size(2, 4), d.size(2, 5), 2
    form = op.partition("/")[2]
    is_causal = form == "plain" and d.pick(True, False)
    if is_causal:
        t = s
    inputs: dict[str, Any] = {
        "q": d.real(n, s, 8),
        "k": d.real(n, t, 8),
        "v": d.real(n, t, 8),
        "b": d.pick(d.real(24), None),
    }
    if form == "packed":
        inputs = {"q": d.real(n, s, heads, 3, 4), "k": None, "v": None, "b": None}
        t = s
    if form == "heads":
        inputs |= {"k": d.real(n, heads, t, 4), "v": d.real(n, heads, t, 4), "b": None}
    past = d.size() if form == "plain" and d.pick(True, False) else 0
    inputs["m"] = d.pick(
        None, d.bytes(n, t + past, dtype="int32", low=0, high=1), d.bytes(n, dtype="int32", low=1, high=t)
    )
    if past and inputs["m"] is not None and inputs["m"].ndim == 1:
        inputs["m"] = None
    inputs["a"] = d.pick(None, d.real(n, heads, s, t + past), d.real(1, 1, s, t + past)) if form != "packed" else None
    if past:
        inputs |= {"pk": d.real(n, heads, past, 4), "pv": d.real(n, heads, past, 4)}
    attributes: dict[str, Any] = {"num_heads": heads, "scale": d.pick(0.0, 0.3)}
    if is_causal:
        attributes["unidirectional"] = 1
    if form == "packed":
        q, k, v = np.moveaxis(inputs["q"].astype("f8"), 3, 0)
        scores = np.einsum("bsnh,btnh->bnst", q, k) * (attributes["scale"] or 0.5)
        if inputs["m"] is not None:
            seen = inputs["m"] if inputs["m"].ndim == 2 else np.arange(t) < inputs["m"][:, None]
            scores = scores + np.where(seen, 0, -10000.0)[:, None, None]
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        result = np.einsum("bnst,btnh->bsnh", weights / weights.sum(-1, keepdims=True), v)
        return Drawn("MultiHeadAttention", inputs, attributes, expected=[result.reshape(n, s, -1).astype("float32")])
    return Drawn("MultiHeadAttention", inputs, attributes, "b", 3 if past else 1)


@case("Attention", "QAttention")
def attention(d: Draw, op: str) -> Drawn:
    n, s, heads = 2, d.size(2, 4), 2
    past = d.pick(0, d.size(1, 3))
    total = s + past
    masks = [
        None, d.bytes(n, total, dtype="int32", low=0, high=1), d.bytes(n, dtype="int32", low=1, high=total),
        d.bytes(n, s, total, dtype="int32", low=0, high=1), np.array([total] * n + [0, 1], "int32"),
    ]  # fmt: skip
    mask = d.pick(*masks[: 4 if op == "QAttention" else 5])
    before = d.real(2, n, heads, past, 4) if past else None
    attributes: dict[str, Any] = {"num_heads": heads, "unidirectional": d.pick(0, 1)}
    fixed = "x m p" if mask is not None and mask.shape == (2 * n,) else ""
    outputs = 2 if past else 1
    if op == "Attention":
        inputs = {"x": d.real(n, s, 6), "w": d.real(6, 24), "b": d.real(24), "m": mask, "p": before}
        inputs["a"] = d.pick(None, d.real(n, heads, s, total)) if not past else None
        return Drawn(op, inputs, {**attributes, "scale": d.pick(0.0, 0.4)}, "w b", outputs, fixed=fixed)
    weight = d.bytes(6, 24, dtype=d.pick("int8", "uint8"))
    inputs = {"x": d.bytes(n, s, 6), "w": weight, "b": d.real(24), "xs": d.scale(), "ws": d.scale(), "m": mask}
    inputs |= {"xz": d.bytes(), "wz": d.bytes(dtype=weight.dtype.name), "p": before}
    return Drawn(op, inputs, attributes, "w b xs ws xz wz", outputs, fixed=fixed, tolerance=1e-3)


@case("Attention/square")
def attention_of_square_mask(d: Draw, op: str) -> Drawn:
    n, s, heads, size = 2, d.size(2, 4), 2, 4
    x, weight, bias = d.real(n, s, 6), d.real(6, 24), d.real(24)
    mask = d.bytes(n, 1, 7, 7, dtype="int32", low=0, high=1)
    mask[..., 0] = 1
    q, k, v = np.moveaxis((x.astype("f8") @ weight + bias).reshape(n, s, 3, heads, size), 2, 0)
    scores = np.einsum("bsnh,btnh->bnst", q, k) / np.sqrt(size) + np.where(mask[:, :, :s, :s], 0, -10000.0)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    result = np.einsum("bnst,btnh->bsnh", weights / weights.sum(-1, keepdims=True), v)
    expected = [result.reshape(n, s, -1).astype("float32")]
    return Drawn(
        "Attention", {"x": x, "w": weight, "b": bias, "m": mask}, {"num_heads": heads}, "w b", expected=expected
    )


@case(
    "GroupQueryAttention/prompt", "GroupQueryAttention/step", "GroupQueryAttention/chunk", "GroupQueryAttention/buffer"
)
def group_query(d: Draw, op: str) -> Drawn:
    form = op.partition("/")[2]
    n = 1 if form == "chunk" else d.size(1, 3)
    s = 1 if form in ("step", "buffer") else d.size(2, 4)
    heads, groups, size = 4, d.pick(1, 2, 4), 16
    past = 0 if form == "prompt" else d.size(2, 5)
    # How many keys of each batch are in use before; a buffer has room for more.
    used = np.full(n, past, "int32") if form in ("step", "chunk") else d.bytes(n, dtype="int32", low=0, high=past)
    used[0] = past
    room = past + 4 if form == "buffer" else past
    keys = {"k": d.real(n, s, groups * size), "v": d.real(n, s, groups * size)}
    inputs: dict[str, Any] = {"q": d.real(n, s, heads * size), **keys}
    if d.pick(True, False):
        inputs = {"q": d.real(n, s, (heads + 2 * groups) * size), "k": None, "v": None}
    inputs |= {"pk": d.real(n, groups, room, size), "pv": d.real(n, groups, room, size)}
    inputs |= {"n": used + np.int32(s - 1), "t": np.array(past + s, "int32")}
    attributes: dict[str, Any] = {"num_heads": heads, "kv_num_heads": groups, "do_rotary": d.pick(0, 1)}
    attributes |= {"scale": d.pick(0.0, 0.3), "softcap": d.pick(0.0, 2.0), "local_window_size": d.pick(-1, 2)}
    if attributes["do_rotary"]:
        inputs |= {"c": d.real(20, size // 2), "i": d.real(20, size // 2)}
        attributes["rotary_interleaved"] = d.pick(0, 1)
    constants = d.pick("c i", "n t c i")
    return Drawn("GroupQueryAttention", inputs, attributes, constants, 3, tolerance=1e-3)


# Quantized -----------------------------------------------------------------------------------------------------------


def parameters(d: Draw, dtype: str, *names: str) -> dict[str, Any]:
    return {name: d.scale() if name.endswith("s") else d.bytes(dtype=dtype) for name in names}


@case("QLinearAdd", "QLinearMul")
def qlinear_binary(d: Draw, op: str) -> Drawn:
    dtype = d.pick("uint8", "int8")
    p = parameters(d, dtype, "as", "az", "bs", "bz", "ys", "yz")
    shape = d.shape(3)
    other = d.bytes(*d.pick(shape, shape[-1:], [1, shape[1], 1]), dtype=dtype)
    x = d.bytes(*shape, dtype=dtype)
    inputs = {
        "x": x,
        "as": p["as"],
        "az": p["az"],
        "y": other,
        "bs": p["bs"],
        "bz": p["bz"],
        "ys": p["ys"],
        "yz": p["yz"],
    }
    return Drawn(op, inputs, {}, "as az bs bz ys yz", tolerance=1)


@case("QLinearSigmoid", "QLinearLeakyRelu", "QLinearSoftmax", "QLinearGlobalAveragePool", "QLinearAveragePool")
def qlinear_unary(d: Draw, op: str) -> Drawn:
    dtype = d.pick("uint8", "int8")
    p = parameters(d, dtype, "xs", "xz", "ys", "yz")
    attributes: dict[str, Any] = {}
    if op == "QLinearLeakyRelu":
        attributes["alpha"] = d.pick(0.1, 0.3)
    if op in ("QLinearSigmoid", "QLinearSoftmax"):
        p |= {"ys": np.float32(1 / 256), "yz": np.array(0 if dtype == "uint8" else -128, dtype)}
    if op == "QLinearSoftmax":
        attributes = {"opset": d.pick(11, 13), "axis": d.size(1, 3)}
    if op.endswith("Pool"):
        attributes["channels_last"] = d.pick(0, 1)
    if op == "QLinearAveragePool":
        attributes |= {
            "kernel_shape": [2, 3],
            "pads": d.pick([0, 0, 0, 0], [1, 1, 0, 1]),
            "count_include_pad": d.pick(0, 1),
        }
    return Drawn(op, {"x": d.bytes(2, 4, 5, 6, dtype=dtype), **p}, attributes, "xs xz ys yz", tolerance=1)


@case("QLinearReduceMean")
def qlinear_mean(d: Draw, op: str) -> Drawn:
    p = {"xs": np.float32(0.5), "xz": np.uint8(3), "ys": np.float32(0.25), "yz": np.uint8(9)}
    x, axes, keep = d.bytes(2, 4, 6), d.pick([1], [0, 2], [-1]), d.pick(0, 1)
    mean = ((x.astype("f8") - 3) * 0.5).mean(tuple(axes), keepdims=bool(keep))
    expected = np.clip(np.rint(mean / 0.25) + 9, 0, 255).astype("uint8")
    return Drawn(op, {"x": x, **p}, {"axes": axes, "keepdims": keep}, "xs xz ys yz", tolerance=1, expected=[expected])


@case("QLinearConcat")
def qlinear_concat(d: Draw, op: str) -> Drawn:
    axis = d.size(0, 2)
    inputs: dict[str, Any] = parameters(d, "uint8", "ys", "yz")
    for place in range(d.size(1, 3)):
        shape = [2, 3, 4]
        shape[axis] = d.size()
        inputs |= {f"x{place}": d.bytes(*shape), **parameters(d, "uint8", f"{place}s", f"{place}z")}
    return Drawn(
        op, inputs, {"axis": axis}, " ".join(name for name in inputs if name[0] != "x"), tolerance=1, fixed="x0 x1 x2"
    )


@case("QLinearWhere")
def qlinear_where(d: Draw, op: str) -> Drawn:
    p = parameters(d, "uint8", "xs", "xz", "ys", "yz", "zs", "zz")
    inputs = {"c": d.bytes(3, 4, high=1) > 0, "x": d.bytes(3, 4), "xs": p["xs"], "xz": p["xz"]}
    inputs |= {"y": d.bytes(*d.pick([3, 4], [4])), "ys": p["ys"], "yz": p["yz"], "zs": p["zs"], "zz": p["zz"]}
    return Drawn(op, inputs, {}, "xs xz ys yz zs zz", tolerance=1)


@case("QLinearConv")
def qlinear_conv(d: Draw, op: str) -> Drawn:
    is_last, groups = d.pick(0, 1, 1), d.pick(1, 2)
    x = d.bytes(*((2, 5, 6, 4) if is_last else (2, 4, 5, 6)))
    weight = d.bytes(6, 4 // groups, 3, 3, dtype="int8")
    inputs = {"x": x, "xs": d.scale(), "xz": d.bytes(), "w": weight, "ws": d.scale(*d.pick((), (6,)))}
    inputs["wz"] = np.zeros(inputs["ws"].shape, "int8")
    inputs |= {"ys": np.float32(2.0), "yz": d.bytes(), "b": d.pick(None, d.bytes(6, dtype="int32", low=-999, high=999))}
    attributes = {
        "group": groups,
        "channels_last": is_last,
        "pads": d.pick([0, 0, 0, 0], [1, 1, 1, 1]),
        "strides": [d.size(1, 2), 1],
    }
    return Drawn(op, inputs, attributes, "xs xz w ws wz ys yz b", tolerance=1)


@case("QGemm")
def qgemm(d: Draw, op: str) -> Drawn:
    rows, inner, columns = d.shape(3)
    turned = {name: d.pick(0, 1) for name in ("transA", "transB")}
    x = d.bytes(*((inner, rows) if turned["transA"] else (rows, inner)))
    dtype = d.pick("int8", "uint8")
    w = d.bytes(*((columns, inner) if turned["transB"] else (inner, columns)), dtype=dtype)
    inputs = {"x": x, "as": d.scale(), "az": d.bytes(), "w": w, "bs": d.scale(*d.pick((), (columns,)))}
    inputs["bz"] = d.bytes(*inputs["bs"].shape, dtype=dtype)
    inputs["c"] = d.pick(None, d.bytes(columns, dtype="int32", low=-99, high=99))
    if d.pick(True, False):
        inputs |= {"ys": np.float32(0.5), "yz": d.bytes()}
    return Drawn(op, inputs, {**turned, "alpha": d.pick(1.0, 0.5)}, " ".join(list(inputs)[1:]), tolerance=1, fixed="x")


@case("MatMulIntegerToFloat", "DynamicQuantizeMatMul")
def float_products(d: Draw, op: str) -> Drawn:
    inner, columns = d.shape(2)
    dtype = d.pick("int8", "uint8")
    weight, scale = d.bytes(inner, columns, dtype=dtype), d.scale(*d.pick((), (columns,)))
    zero, bias = d.pick(None, d.bytes(*scale.shape, dtype=dtype)), d.pick(None, d.real(columns))
    if op == "DynamicQuantizeMatMul":
        inputs = {"x": d.real(2, 3, inner), "w": weight, "ws": scale, "wz": zero, "b": bias}
        return Drawn(op, inputs, {}, "w ws wz b", tolerance=1e-2)
    inputs = {"x": d.bytes(2, 3, inner), "w": weight, "xs": d.scale(), "ws": scale, "xz": d.pick(None, d.bytes())}
    return Drawn(op, {**inputs, "wz": zero, "b": bias}, {}, "w xs ws xz wz b", tolerance=1e-3)


@case("DynamicQuantizeLSTM")
def quantized_lstm(d: Draw, op: str) -> Drawn:
    directions, size, hidden, s, n = d.pick(1, 2), 4, 3, d.size(2, 4), 2
    has_channels = d.pick(True, False)
    scales = (directions, 4 * hidden) if has_channels else (directions,)
    inputs: dict[str, Any] = {
        "x": d.real(s, n, size), "w": d.bytes(directions, size, 4 * hidden, dtype="int8"),
        "r": d.bytes(directions, hidden, 4 * hidden, dtype="int8"), "b": d.real(directions, 8 * hidden), "l": None,
        "h": d.real(directions, n, hidden, scale=0.3), "c": d.real(directions, n, hidden), "p": None,
        "ws": d.scale(*scales) / 8, "wz": np.zeros(scales, "int8"), "rs": d.scale(*scales) / 8, "rz": np.zeros(scales, "int8"),
    }  # fmt: skip
    attributes = {
        "hidden_size": hidden,
        "direction": "bidirectional" if directions == 2 else d.pick("forward", "reverse"),
    }
    return Drawn(op, inputs, attributes, "w r b ws wz rs rz", 3, tolerance=2e-3, fixed="x h c")


@case("MatMulNBits")
def matmul_nbits(d: Draw, op: str) -> Drawn:
    bits, block, units = d.pick(2, 4, 4, 8), d.pick(16, 32), d.size(3, 9)
    inner = block * d.size(1, 3) - d.pick(0, 8 // bits * 2)
    groups = -(-inner // block)
    numbers = d.bytes(units, groups, block, high=(1 << bits) - 1)
    weight, scales = pack_bits(numbers, bits), np.abs(d.real(units, groups)) + 0.1
    packed = pack_bits(d.bytes(units, groups, high=(1 << bits) - 1), bits)
    zeros = d.pick(None, packed, d.real(units, groups) if bits != 2 else packed)
    bias = d.pick(None, d.real(units))
    x = d.real(*d.shape(d.size(1, 2)), inner)
    inputs = {"x": x, "w": weight, "s": d.pick(scales, scales.reshape(-1)), "z": zeros, "g": None, "b": bias}
    attributes = {"K": inner, "N": units, "bits": bits, "block_size": block}
    expected = None
    if bits == 2:
        point = np.uint8(1 << (bits - 1)) if zeros is None else zeros
        real = dequantize_nbits(weight, scales, np.asarray(point), bits, inner)
        expected = [(x @ real.T + (0 if bias is None else bias)).astype("float32")]
    return Drawn(op, inputs, attributes, "w s z b", tolerance=1e-2, expected=expected)


@case("MatMulNBits/order")
def matmul_nbits_in_order(d: Draw, op: str) -> Drawn:
    block, units, groups = 16, d.size(3, 9), d.size(2, 4)
    numbers = d.bytes(units, groups, block, high=15)
    order = d.rng.permutation(np.arange(groups * block, dtype="int32") // block).astype("int32")
    weight, scales = pack_bits(numbers, 4), np.abs(d.real(units, groups)) + 0.1
    inputs = {"x": d.real(3, groups * block), "w": weight, "s": scales, "z": None, "g": order}
    attributes = {"K": groups * block, "N": units, "bits": 4, "block_size": block}
    return Drawn("MatMulNBits", inputs, attributes, "w s z g", tolerance=1e-2)


@case("MatMulBnb4")
def matmul_bnb4(d: Draw, op: str) -> Drawn:
    units, inner, block = d.size(3, 9), 32, 16
    inputs = {"x": d.real(3, inner), "w": d.bytes(units * inner // 2), "s": np.abs(d.real(units * inner // block))}
    attributes = {"K": inner, "N": units, "block_size": block, "quant_type": d.pick(0, 1)}
    return Drawn(op, inputs, attributes, "w s", tolerance=1e-3)


@case("GatherBlockQuantized")
def gather_block_quantized(d: Draw, op: str) -> Drawn:
    bits, block, rows = d.pick(4, 8), d.pick(16, 32), d.size(4, 9)
    groups = d.size(1, 3)
    table = pack_bits(d.bytes(rows, groups * block, high=(1 << bits) - 1), bits)
    places = d.bytes(*d.shape(d.size(1, 2)), dtype=d.pick("int32", "int64"), low=0, high=rows - 1)
    zeros = d.pick(None, pack_bits(d.bytes(rows, groups, high=(1 << bits) - 1), bits))
    inputs = {"x": table, "i": places, "s": d.real(rows, groups), "z": zeros}
    attributes = {"bits": bits, "block_size": block, "gather_axis": 0, "quantize_axis": 1}
    return Drawn(op, inputs, attributes, "x s z")
