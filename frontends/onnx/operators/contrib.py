"""Converts operators of onnxruntime's domain com.microsoft, most of them to ONNX' own operators.

Source: https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.ir import SSAValue

from ..node import Node, only_tensors
from ..registry import MICROSOFT, operator
from ..values import Value
from .quantized import dynamically_quantized, integer_matmul, requantized, saturated

OPSET = 23
"""The operator set of ONNX whose operators these are converted to."""


def standard(
    node: Node, op: str, inputs: Sequence[Value | None], outputs: int = 1, **attributes: Any
) -> list[SSAValue | None]:
    """Converts ONNX' operator `op` in place of a node; returns its outputs."""
    made = Node(node.importer, node.name, op, "", OPSET, inputs, attributes, ["y"] * outputs, node.proto)
    found = node.importer.convert_values(made)
    return [each if isinstance(each, SSAValue) else None for each in found]


def one(node: Node, op: str, *inputs: Value | None, **attributes: Any) -> SSAValue:
    """Converts ONNX' operator `op` in place of a node; returns its only output."""
    return only_tensors(standard(node, op, inputs, **attributes))[0]


# Activations -------------------------------------------------------------------------------------------------------


@operator("Gelu", domain=MICROSOFT)
def gelu(node: Node) -> SSAValue:
    """Converts `Gelu` to ONNX' own."""
    return one(node, "Gelu", node[0], approximate="none")


@operator("BiasGelu", domain=MICROSOFT)
def bias_gelu(node: Node) -> SSAValue:
    """Converts `BiasGelu`: Gelu(x + bias)."""
    return one(node, "Gelu", node.call("add", node[0], node[1]), approximate="none")


@operator("FastGelu", domain=MICROSOFT)
def fast_gelu(node: Node) -> SSAValue:
    """Converts `FastGelu`: Gelu(x + bias) by tanh."""
    x = node.call("add", node[0], node[1]) if node.has(1) else node[0]
    return one(node, "Gelu", x, approximate="tanh")


@operator("QuickGelu", domain=MICROSOFT)
def quick_gelu(node: Node) -> SSAValue:
    """Converts `QuickGelu`: x * sigmoid(alpha * x)."""
    x = node[0]
    scaled = node.call("multiply", x, node.scalar(float(node.attr("alpha", 1.702)), x))
    return node.call("multiply", x, node.call("sigmoid", scaled))


def _activated(node: Node, value: SSAValue) -> SSAValue:
    """Returns what the attribute `activation` makes of a value."""
    kind = str(node.attr("activation", "") or "")
    numbers = [float(each) for each in node.attr("activation_params", []) or []]
    names = {"LeakyRelu": ("alpha",), "HardSigmoid": ("alpha", "beta")}.get(kind, ())
    for name in names:
        if node.attr(f"activation_{name}") is not None:
            numbers.append(float(node.attr(f"activation_{name}")))
    if not kind:
        return value
    if kind == "Clip":
        low, high = (node.scalar(each, value) for each in numbers)
        return one(node, "Clip", value, low, high)
    return one(node, kind, value, **dict(zip(names, numbers, strict=False)))


# Products ----------------------------------------------------------------------------------------------------------


@operator("FusedMatMul", "TransposeMatMul", domain=MICROSOFT)
def fused_matmul(node: Node) -> SSAValue:
    """Converts `FusedMatMul`: alpha * op(A) · op(B)."""
    b = node.builder
    operands: list[SSAValue] = []
    for place, name in enumerate(("transA", "transB")):
        value, rank = node[place], node.rank(place)
        if node.attr(name.replace("trans", "transBatch"), 0) and rank > 2:
            value = b.call("transpose", value, axes=[*range(1, rank - 1), 0, rank - 1])
        if node.attr(name, 0) and rank > 1:
            value = b.call("transpose", value, axes=[*range(rank - 2), rank - 1, rank - 2])
        operands.append(value)
    product = one(node, "MatMul", *operands)
    alpha = float(node.attr("alpha", 1.0))
    return product if alpha == 1 else b.call("multiply", product, node.scalar(alpha, product))


@operator("FusedGemm", domain=MICROSOFT)
def fused_gemm(node: Node) -> SSAValue:
    """Converts `FusedGemm`: Gemm and an activation."""
    names = ("alpha", "beta", "transA", "transB")
    given = {name: node.attributes[name] for name in names if name in node.attributes}
    return _activated(node, one(node, "Gemm", *node.inputs, **given))


_WINDOW = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")


@operator("FusedConv", domain=MICROSOFT)
def fused_conv(node: Node) -> SSAValue:
    """Converts `FusedConv`: Conv, plus its fourth input, and an activation."""
    result = one(node, "Conv", *node.inputs[:3], **_given(node, _WINDOW))
    if node.has(3):
        result = node.call("add", result, node[3])
    return _activated(node, result)


@operator("NhwcConv", "NhwcFusedConv", domain=MICROSOFT)
def nhwc_conv(node: Node) -> SSAValue:
    """Converts `NhwcConv`: Conv with the channels last."""
    b, rank = node.builder, node.rank(0)
    first, last = [0, rank - 1, *range(1, rank - 1)], [0, *range(2, rank), 1]
    inputs = [b.call("transpose", each, axes=first) for each in (node[0], node[1])]
    result = one(node, "Conv", *inputs, node.tensor(2), **_given(node, _WINDOW))
    if node.has(3):
        result = b.call("add", result, b.call("transpose", node[3], axes=first))
    return b.call("transpose", _activated(node, result), axes=last)


def _given(node: Node, names: Sequence[str]) -> dict[str, Any]:
    return {name: node.attributes[name] for name in names if name in node.attributes}


@operator("MatMulNBits", domain=MICROSOFT)
def matmul_nbits(node: Node) -> SSAValue:
    """Converts `MatMulNBits` to `nn.matmul_nbits`; zero points are packed, numbers or left out."""
    b = node.builder
    inner, units = int(node.attr("K")), int(node.attr("N"))
    bits, block = int(node.attr("bits", 4)), int(node.attr("block_size", 32))
    groups = -(-inner // block)
    if node.has(4):
        raise node.refuse("g_idx, an order of the columns, is not supported")
    scales = b.reshape(node[2], [units, groups])
    if node.has(3):
        is_packed = b.dtype(node[3]) == "uint8"
        zeros = b.reshape(node[3], [units, -(-groups * bits // 8) if is_packed else groups])
    else:
        zeros = b.constant(1 << (bits - 1), "uint8")
    weight = b.reshape(node[1], [units, groups, block * bits // 8])
    result = b.call("nn.matmul_nbits", node[0], weight, scales, zeros, bits=bits, block_size=block)
    return b.call("add", result, node[5]) if node.has(5) else result


@operator("CDist", domain=MICROSOFT)
def cdist(node: Node) -> SSAValue:
    """Converts `CDist`: distances of all pairs of rows, euclidean or squared."""
    b = node.builder
    difference = b.call("subtract", b.call("expand_dims", node[0], axis=1), b.call("expand_dims", node[1], axis=0))
    squared = b.call("sum", b.call("multiply", difference, difference), axis=[2])
    return squared if str(node.attr("metric", "sqeuclidean")) == "sqeuclidean" else b.call("sqrt", squared)


# Normalizations ----------------------------------------------------------------------------------------------------


@operator("SimplifiedLayerNormalization")
@operator("SimplifiedLayerNormalization", domain=MICROSOFT)
def simplified_layer_normalization(node: Node) -> list[SSAValue | None]:
    """Converts `SimplifiedLayerNormalization`, ONNX' RMSNormalization."""
    axis = int(node.attr("axis", -1))
    epsilon = float(node.attr("epsilon", 1e-5))
    result = one(node, "RMSNormalization", node[0], node[1], axis=axis, epsilon=epsilon)
    return [result, _inverse_root(node, node[0], epsilon) if any(node.outputs[1:]) else None]


def _inverse_root(node: Node, x: SSAValue, epsilon: float) -> SSAValue:
    """Returns 1 / sqrt(mean(x²) + epsilon) of the last axis."""
    mean = node.call("mean", node.call("multiply", x, x), axis=[-1], keepdims=True)
    return node.call("rsqrt", node.call("add", mean, node.scalar(epsilon, x)))


@operator("SkipLayerNormalization", domain=MICROSOFT)
def skip_layer_normalization(node: Node) -> list[SSAValue | None]:
    """Converts `SkipLayerNormalization`: LayerNormalization of input + skip + bias, and this sum."""
    total = _skipped(node, 4)
    found = standard(
        node, "LayerNormalization", [total, node[2], node.tensor(3)], 3 if any(node.outputs[1:3]) else 1, axis=-1,
        epsilon=float(node.attr("epsilon", 1e-12)),
    )  # fmt: skip
    return [*[*found, None, None][:3], total]


@operator("SkipSimplifiedLayerNormalization", domain=MICROSOFT)
def skip_simplified_layer_normalization(node: Node) -> list[SSAValue | None]:
    """Converts `SkipSimplifiedLayerNormalization`: RMSNormalization of input + skip + bias."""
    total, epsilon = _skipped(node, 3), float(node.attr("epsilon", 1e-12))
    result = one(node, "RMSNormalization", total, node[2], axis=-1, epsilon=epsilon)
    inverse = _inverse_root(node, total, epsilon) if any(node.outputs[2:3]) else None
    return [result, None, inverse, total]


def _skipped(node: Node, bias: int) -> SSAValue:
    total = node.call("add", node[0], node[1])
    return node.call("add", total, node[bias]) if node.has(bias) else total


@operator("EmbedLayerNormalization", domain=MICROSOFT)
def embed_layer_normalization(node: Node) -> list[SSAValue | None]:
    """Converts `EmbedLayerNormalization`: embeddings of words, positions and segments, normalized."""
    b = node.builder
    ids = node[0]
    if node.has(8):
        places = b.call("take", node[3], node[8], axis=0)
    else:
        length = b.size(ids, 1)
        numbers = b.call("arange", b.integers(0), length, b.integers(1), dtype="int64")
        places = b.call("take", node[3], numbers, axis=0)
    total = b.call("add", b.call("take", node[2], ids, axis=0), places)
    if node.has(1):
        total = b.call("add", total, b.call("take", node[4], node[1], axis=0))
    epsilon = float(node.attr("epsilon", 1e-12))
    result = one(node, "LayerNormalization", total, node[5], node[6], axis=-1, epsilon=epsilon)
    counts: SSAValue | None = None
    if any(node.outputs[1:2]):
        ones = node[7] if node.has(7) else b.call("zeros_like", b.call("cast", ids, dtype="int32"))
        counts = b.call("sum", b.call("cast", ones, dtype="int32"), axis=[1])
    return [result, counts, total]


# Attention ---------------------------------------------------------------------------------------------------------


@operator("RotaryEmbedding", domain=MICROSOFT)
def rotary_embedding(node: Node) -> SSAValue:
    """Converts `RotaryEmbedding`, whose positions may be the number of the first one."""
    heads = int(node.attr("num_heads", 0))
    return _rotated(
        node, node[0], node[1], node[2], node[3], heads, _given(node, ("interleaved", "rotary_embedding_dim"))
    )


def _rotated(
    node: Node,
    x: SSAValue,
    places: SSAValue,
    cosines: SSAValue,
    sines: SSAValue,
    heads: int,
    attributes: dict[str, Any],
) -> SSAValue:
    b = node.builder
    caches: list[SSAValue] = [cosines, sines]
    if b.rank(places) < 2:
        length = b.size(x, 1 if b.rank(x) == 3 else 2)
        numbers = b.call("arange", b.integers(0), length, b.integers(1), dtype="int64")
        places = b.call("add", numbers, b.call("cast", b.reshape(places, []), dtype="int64"))
        places = b.call("expand_dims", places, axis=0)
    caches = [b.call("take", each, places, axis=0) for each in caches]
    if b.rank(x) == 3 and not heads:
        hidden, half = b.extents(x)[2], b.extents(cosines)[1]
        if not isinstance(hidden, int) or not isinstance(half, int):
            raise node.refuse("an input of an open hidden size needs the attribute num_heads")
        heads = hidden // (2 * half)
    return one(node, "RotaryEmbedding", x, *caches, num_heads=heads, **attributes)


@operator("MultiHeadAttention", domain=MICROSOFT)
def multi_head_attention(node: Node) -> list[SSAValue | None]:
    """Converts `MultiHeadAttention` to ONNX' Attention."""
    b, heads = node.builder, int(node.attr("num_heads"))
    if not (node.has(1) and node.has(2)) or b.rank(node[0]) != 3 or b.rank(node[1]) != 3 or b.rank(node[2]) != 3:
        raise node.refuse("packed queries, keys and values are not supported: they must be three tensors of rank 3")
    projected = [node[0], node[1], node[2]]
    if node.has(3):
        sizes = [b.extents(each)[2] for each in projected]
        projected = [
            b.call("add", each, bias) for each, bias in zip(projected, _split(node, node[3], sizes), strict=True)
        ]
    return _attention(node, projected, heads, heads, node.tensor(4), node.tensor(5), [node.tensor(6), node.tensor(7)])


@operator("Attention", domain=MICROSOFT)
def attention(node: Node) -> list[SSAValue | None]:
    """Converts `Attention`: the projection to queries, keys and values, and ONNX' Attention."""
    b, heads = node.builder, int(node.attr("num_heads"))
    if node.has(4):
        raise node.refuse("past, which holds keys and values in one tensor, is not supported")
    product = one(node, "MatMul", node[0], node[1])
    if node.has(2):
        product = b.call("add", product, node[2])
    width = b.extents(product)[2]
    if not isinstance(width, int):
        raise node.refuse("the size of the weights must be known, not open")
    sizes = node.ints("qkv_hidden_sizes") or [width // 3] * 3
    parts = _split(node, product, sizes)
    return _attention(node, parts, heads, heads, node.tensor(3), node.tensor(5), [None, None])[:1]


def _split(node: Node, value: SSAValue, sizes: Sequence[Any]) -> list[SSAValue]:
    """Returns parts of these sizes along the last axis."""
    ends = [int(sum(sizes[: place + 1])) for place in range(len(sizes) - 1)]
    axis = node.builder.rank(value) - 1
    return node.builder.tuple_parts(node.call("split", value, indices_or_sections=ends, axis=axis))


def _attention(
    node: Node,
    parts: Sequence[SSAValue],
    heads: int,
    groups: int,
    padding: SSAValue | None,
    added: SSAValue | None,
    past: Sequence[SSAValue | None],
) -> list[SSAValue | None]:
    """Returns ONNX' Attention.

    `padding` is 1 for keys that are seen, or says how many are; `added` is added to the scores.
    """
    b = node.builder
    mask = added
    if padding is not None:
        filler = float(node.attr("mask_filter_value", -10000.0))
        dtype = b.dtype(parts[0])
        if b.rank(padding) == 1:
            length = b.size(parts[1], 1)
            numbers = b.call("arange", b.integers(0), length, b.integers(1), dtype="int64")
            counts = b.call("cast", b.call("expand_dims", padding, axis=1), dtype="int64")
            seen = b.call("less", numbers, counts)
        else:
            seen = b.call("not_equal", padding, b.constant(0, b.dtype(padding)))
        # (batch, keys), or (batch, queries, keys), of the scores (batch, heads, queries, keys)
        seen = b.call("expand_dims", seen, axis=1, num_newaxis=4 - b.rank(seen))
        hidden = b.call("where", seen, b.constant(0.0, dtype), b.constant(filler, dtype))
        mask = hidden if mask is None else b.call("add", mask, hidden)
    scale = float(node.attr("scale", 0.0))
    attributes: dict[str, Any] = {"scale": scale} if scale else {}
    softcap = float(node.attr("softcap", 0.0))
    found = standard(
        node, "Attention", [*parts, mask, *past], 3, q_num_heads=heads, kv_num_heads=groups, softcap=softcap,
        is_causal=int(node.attr("unidirectional", 0)), **attributes,
    )  # fmt: skip
    return found[:3]


@operator("GroupQueryAttention", domain=MICROSOFT)
def group_query_attention(node: Node) -> list[SSAValue | None]:
    """Converts `GroupQueryAttention`: causal Attention whose heads share keys.

    Keys are appended to those of the past, all of which must be in use; `seqlens_k` is one less than the keys of each batch.
    """
    b = node.builder
    heads, groups = int(node.attr("num_heads")), int(node.attr("kv_num_heads"))
    parts = [node[0]]
    if node.has(1):
        parts += [node[1], node[2]]
    else:
        width = b.extents(node[0])[2]
        if not isinstance(width, int):
            raise node.refuse("the size of packed queries, keys and values must be known, not open")
        size = width // (heads + 2 * groups)
        parts = _split(node, node[0], [heads * size, groups * size, groups * size])
    if int(node.attr("local_window_size", -1)) >= 0:
        raise node.refuse("local_window_size is not supported")
    past = [node.tensor(3), node.tensor(4)]
    counts = b.call("add", b.call("cast", b.reshape(node[5], [-1]), dtype="int64"), b.integers(1))
    length = b.size(parts[0], 1)
    if node.attr("do_rotary", 0):
        start = b.size(past[0], 2) if past[0] is not None else b.integers(0)
        given = {"interleaved": int(node.attr("rotary_interleaved", 0))}
        places = [
            _rotated(node, each, start, node[7], node[8], count, given)
            for each, count in zip(parts, (heads, groups), strict=False)
        ]
        parts = [*places, parts[2]]
    kept = length if past[0] is None else b.call("add", length, b.size(past[0], 2))
    numbers = b.call("arange", b.integers(0), kept, b.integers(1), dtype="int64")
    seen = b.call("less", numbers, b.call("expand_dims", counts, axis=1))
    mask = b.call("expand_dims", seen, axis=1, num_newaxis=2)
    scale = float(node.attr("scale", 0.0))
    attributes: dict[str, Any] = {"scale": scale} if scale else {}
    return standard(
        node, "Attention", [*parts, mask, *past], 3, q_num_heads=heads, kv_num_heads=groups, is_causal=1,
        softcap=float(node.attr("softcap", 0.0)), **attributes,
    )[:3]  # fmt: skip


# Quantized ---------------------------------------------------------------------------------------------------------


def _real(node: Node, place: int, scale: int, zero: int) -> SSAValue:
    """Returns the numbers that the quantized input `place` represents, in float32."""
    return one(node, "DequantizeLinear", node[place], node[scale], node.tensor(zero))


def _quantized(node: Node, value: SSAValue, scale: int, zero: int) -> SSAValue:
    b = node.builder
    point = node.tensor(zero)
    real = b.call("divide", value, b.reshape(node[scale], []))
    dtype = "uint8" if point is None else b.dtype(point)
    return saturated(b, real, None if point is None else b.reshape(point, []), dtype)


_BINARY = {"QLinearAdd": "add", "QLinearMul": "multiply"}


@operator(*_BINARY, domain=MICROSOFT)
def qlinear_binary(node: Node) -> SSAValue:
    """Converts `QLinearAdd` and `QLinearMul`: on real numbers, in one kernel with the quantization."""
    value = node.call(_BINARY[node.op_type], _real(node, 0, 1, 2), _real(node, 3, 4, 5))
    return _quantized(node, value, 6, 7)


@operator("QLinearSigmoid", "QLinearLeakyRelu", "QLinearSoftmax", domain=MICROSOFT)
def qlinear_unary(node: Node) -> SSAValue:
    """Converts quantized functions of one tensor: on real numbers."""
    given = _given(node, ("alpha", "axis"))
    if node.op_type == "QLinearSoftmax" and int(node.attr("opset", 13)) < 13:
        raise node.refuse("a softmax over several axes at once, which opset 12 defines, is not supported")
    return _quantized(node, one(node, node.op_type.removeprefix("QLinear"), _real(node, 0, 1, 2), **given), 3, 4)


@operator("QLinearAveragePool", "QLinearGlobalAveragePool", domain=MICROSOFT)
def qlinear_pool(node: Node) -> SSAValue:
    """Converts quantized means of windows: on real numbers."""
    b, rank = node.builder, node.rank(0)
    x = _real(node, 0, 1, 2)
    is_last = bool(node.attr("channels_last", 0))
    if is_last:
        x = b.call("transpose", x, axes=[0, rank - 1, *range(1, rank - 1)])
    given = _given(node, ("auto_pad", "ceil_mode", "count_include_pad", "kernel_shape", "pads", "strides"))
    value = one(node, node.op_type.removeprefix("QLinear"), x, **given)
    if is_last:
        value = b.call("transpose", value, axes=[0, *range(2, rank), 1])
    return _quantized(node, value, 3, 4)


@operator("QLinearConcat", domain=MICROSOFT)
def qlinear_concat(node: Node) -> SSAValue:
    """Converts `QLinearConcat`: each tensor is brought to the scale of the result."""
    parts = [_quantized(node, _real(node, k, k + 1, k + 2), 0, 1) for k in range(2, len(node.inputs), 3)]
    return node.call("concatenate", node.builder.tuple(parts), axis=int(node.attr("axis")))


@operator("QGemm", domain=MICROSOFT)
def qgemm(node: Node) -> SSAValue:
    """Converts `QGemm`: the product in int32, plus C, as bytes or in float32."""
    b = node.builder
    x, y = (
        b.call("transpose", node[place], axes=[1, 0]) if node.attr(name, 0) else node[place]
        for place, name in ((0, "transA"), (3, "transB"))
    )
    sums = integer_matmul(node, x, y, node.tensor(2), node.tensor(5))
    if node.has(6):
        sums = b.call("add", sums, node[6])
    alpha = b.constant(float(node.attr("alpha", 1.0)), "float32")
    scales = [alpha, b.reshape(node[1], []), node[4]]
    if node.has(7):
        return requantized(node, sums, scales, (node[7], node.tensor(8)))
    return _scaled(node, sums, scales)


def _scaled(node: Node, sums: SSAValue, scales: Sequence[SSAValue]) -> SSAValue:
    result = node.call("cast", sums, dtype="float32")
    for each in scales:
        result = node.call("multiply", result, each)
    return result


@operator("MatMulIntegerToFloat", domain=MICROSOFT)
def matmul_integer_to_float(node: Node) -> SSAValue:
    """Converts `MatMulIntegerToFloat`: the product of bytes in float32, plus a bias."""
    sums = integer_matmul(node, node[0], node[1], node.tensor(4), node.tensor(5))
    result = _scaled(node, sums, [node[2], node[3]])
    return node.call("add", result, node[6]) if node.has(6) else result


@operator("DynamicQuantizeMatMul", domain=MICROSOFT)
def dynamic_quantize_matmul(node: Node) -> SSAValue:
    """Converts `DynamicQuantizeMatMul`: A is quantized by its own range."""
    x, scale, zero = dynamically_quantized(node.builder, node[0])
    result = _scaled(node, integer_matmul(node, x, node[1], zero, node.tensor(3)), [scale, node[2]])
    return node.call("add", result, node[4]) if node.has(4) else result


@operator("DynamicQuantizeLSTM", domain=MICROSOFT)
def dynamic_quantize_lstm(node: Node) -> list[SSAValue | None]:
    """Converts `DynamicQuantizeLSTM` to LSTM of dequantized weights; the data is not quantized."""
    b = node.builder

    def weight(place: int, scale: int, zero: int) -> SSAValue:
        real = b.call("cast", node[place], dtype="int32")
        point, factor = node.tensor(zero), node[scale]
        if point is not None:
            wide = b.call("cast", point, dtype="int32")
            real = b.call("subtract", real, b.call("expand_dims", wide, axis=1, num_newaxis=3 - b.rank(wide)))
        if b.rank(factor) < 3:
            factor = b.call("expand_dims", factor, axis=1, num_newaxis=3 - b.rank(factor))
        return b.call("transpose", b.call("multiply", b.call("cast", real, dtype="float32"), factor), axes=[0, 2, 1])

    inputs = [node[0], weight(1, 8, 9), weight(2, 10, 11), *(node.tensor(place) for place in range(3, 8))]
    names = ("activation_alpha", "activation_beta", "activations", "clip", "direction", "hidden_size", "input_forget")
    return standard(node, "LSTM", inputs, 3, **_given(node, names))
