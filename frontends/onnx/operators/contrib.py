"""Converts operators of onnxruntime's domain com.microsoft, most of them to ONNX' own operators.

Source: https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from ..node import Node, only_tensors
from ..registry import MICROSOFT, operator
from ..values import Value
from .conversion import STRINGS

OPSET = 23
"""The operator set of ONNX whose operators these are converted to."""


def standard(
    node: Node, op: str, inputs: Sequence[Value | None], outputs: int = 1, *, opset: int = OPSET, **attributes: Any
) -> list[SSAValue | None]:
    """Converts ONNX' operator `op` of an opset in place of a node; returns its outputs."""
    made = Node(node.importer, node.name, op, "", opset, inputs, attributes, ["y"] * outputs, node.proto)
    found = node.importer.convert_values(made)
    return [each if isinstance(each, SSAValue) else None for each in found]


def one(node: Node, op: str, *inputs: Value | None, opset: int = OPSET, **attributes: Any) -> SSAValue:
    """Converts ONNX' operator `op` of an opset in place of a node; returns its only output."""
    return only_tensors(standard(node, op, inputs, opset=opset, **attributes))[0]


def given(node: Node, names: Sequence[str]) -> dict[str, Any]:
    """Returns those of these attributes that the node has."""
    return {name: node.attributes[name] for name in names if name in node.attributes}


# Operators that ONNX has, too --------------------------------------------------------------------------------------

_SAME = {"GatherND": 13, "GridSample": 16, "Pad": 13, "Range": 11, "Trilu": 14}
"""Operators of ONNX by the opset whose meaning they have."""


@operator(*_SAME, domain=MICROSOFT)
def same(node: Node) -> SSAValue:
    """Converts an operator to the one that ONNX calls alike."""
    inputs = list(node.inputs)
    if node.op_type == "Range" and not node.has(2):
        inputs = [*inputs[:2], node.scalar(1, node[0])]
    return one(node, node.op_type, *inputs, opset=_SAME[node.op_type], **node.attributes)


@operator("ExpandDims", domain=MICROSOFT)
def expand_dims(node: Node) -> SSAValue:
    """Converts `ExpandDims` to Unsqueeze."""
    axis = node.builder.call("cast", node.builder.reshape(node[1], [1]), dtype="int64")
    return one(node, "Unsqueeze", node[0], axis)


@operator("Unique", domain=MICROSOFT)
def unique(node: Node) -> list[SSAValue | None]:
    """Converts `Unique`: elements in the order in which they come first, the place of each, and counts."""
    values, _, inverse, counts = standard(node, "Unique", [node[0]], 4, sorted=0)
    return [values, inverse, counts]


@operator("UnfoldTensor", domain=MICROSOFT)
def unfold_tensor(node: Node) -> SSAValue:
    """Converts `UnfoldTensor`: windows along an axis; their elements become the last axis."""
    b, x = node.builder, node[0]
    axis, size, step = node.axis(b.rank(x), -1, "dim"), int(node.attr("size")), int(node.attr("step", 1))
    limit = b.call("subtract", b.size(x, axis), b.integers(size - 1))
    starts = b.call("arange", b.integers(0), limit, b.integers(step), dtype="int64")
    places = b.call("add", b.call("expand_dims", starts, axis=1), b.array_constant(np.arange(size)))
    found = b.call("take", x, places, axis=axis)
    order = [place for place in range(b.rank(found)) if place != axis + 1]
    return b.call("transpose", found, axes=[*order, axis + 1])


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


@operator("BiasSplitGelu", domain=MICROSOFT)
def bias_split_gelu(node: Node) -> SSAValue:
    """Converts `BiasSplitGelu`: of x + bias, the first half times Gelu of the second half."""
    left, right = node.builder.tuple_parts(
        node.call("split", node.call("add", node[0], node[1]), indices_or_sections=2, axis=-1)
    )
    return node.call("multiply", left, one(node, "Gelu", right, approximate="none"))


@operator("BiasAdd", domain=MICROSOFT)
def bias_add(node: Node) -> SSAValue:
    """Converts `BiasAdd`: x + bias + skip."""
    return node.call("add", node.call("add", node[0], node[1]), node[2])


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
    found: dict[str, Any] = dict(zip(names, numbers, strict=False))
    return one(node, kind, value, **found)


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


WINDOW = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")


@operator("FusedConv", domain=MICROSOFT)
def fused_conv(node: Node) -> SSAValue:
    """Converts `FusedConv`: Conv, plus its fourth input, and an activation."""
    result = one(node, "Conv", *node.inputs[:3], **given(node, WINDOW))
    if node.has(3):
        result = node.call("add", result, node[3])
    return _activated(node, result)


@operator("NhwcConv", "NhwcFusedConv", domain=MICROSOFT)
def nhwc_conv(node: Node) -> SSAValue:
    """Converts `NhwcConv`: Conv with the channels last."""
    inputs = [channels_first(node, each) for each in (node[0], node[1])]
    result = one(node, "Conv", *inputs, node.tensor(2), **given(node, WINDOW))
    if node.has(3):
        result = node.call("add", result, channels_first(node, node[3]))
    return channels_last(node, _activated(node, result))


def channels_first(node: Node, x: SSAValue) -> SSAValue:
    """Returns (n,…,c) as (n,c,…)."""
    rank = node.builder.rank(x)
    return node.call("transpose", x, axes=[0, rank - 1, *range(1, rank - 1)])


def channels_last(node: Node, x: SSAValue) -> SSAValue:
    """Returns (n,c,…) as (n,…,c)."""
    return node.call("transpose", x, axes=[0, *range(2, node.builder.rank(x)), 1])


@operator("NhwcMaxPool", domain=MICROSOFT)
def nhwc_max_pool(node: Node) -> SSAValue:
    """Converts `NhwcMaxPool`: MaxPool with the channels last."""
    attributes = given(node, ("auto_pad", "ceil_mode", "dilations", "kernel_shape", "pads", "strides"))
    return channels_last(node, one(node, "MaxPool", channels_first(node, node[0]), **attributes))


@operator("ConvTransposeWithDynamicPads", domain=MICROSOFT)
def conv_transpose_with_pads(node: Node) -> SSAValue:
    """Converts `ConvTransposeWithDynamicPads`: ConvTranspose, whose padding must be constant."""
    attributes = given(node, (*WINDOW, "output_padding"))
    pads = node.integers(2, "the pads")
    if pads is not None:
        attributes["pads"] = pads
    return one(node, "ConvTranspose", node[0], node[1], node.tensor(3), **attributes)


@operator("MatMulInteger16", domain=MICROSOFT)
def matmul_integer16(node: Node) -> SSAValue:
    """Converts `MatMulInteger16`: the product of integers of 16 bits in 32."""
    signed = ["uint32" if node.dtype(place).startswith("u") else "int32" for place in range(2)]
    dtype = "uint32" if signed == ["uint32", "uint32"] else "int32"
    return one(node, "MatMul", *(node.call("cast", each, dtype=dtype) for each in (node[0], node[1])))


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


@operator("GroupNorm", "SkipGroupNorm", domain=MICROSOFT)
def group_norm(node: Node) -> list[SSAValue | None]:
    """Converts `GroupNorm`, and `SkipGroupNorm`, which is of x + skip + bias.

    The channels may be last, and SiLU may follow.
    """
    x, is_last = node[0], bool(node.attr("channels_last", 1))
    for place in (3, 4):
        if node.has(place):
            # A skip (n,c) or (n,1,1,c) is the same at each place.
            other = node[place]
            if node.builder.rank(other) == 2 and place == 3:
                other = node.call("expand_dims", other, axis=1, num_newaxis=2)
            x = node.call("add", x, other)
    rows = channels_first(node, x) if is_last else x
    attributes: dict[str, Any] = {"num_groups": int(node.attr("groups")), "epsilon": float(node.attr("epsilon", 1e-5))}
    result = one(node, "GroupNormalization", rows, node[1], node[2], **attributes)
    if node.attr("activation", 0):
        result = node.call("multiply", result, node.call("sigmoid", result))
    return [channels_last(node, result) if is_last else result, x]


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
    return embedded(node)


def embedded(node: Node) -> list[SSAValue | None]:
    """Returns the outputs of `EmbedLayerNormalization`."""
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


# Operators that are refused ----------------------------------------------------------------------------------------

NCHWC = "com.microsoft.nchwc"

_BLOCKS = (
    "it is written for one processor's layout in memory",
    "let onnxruntime save the model at the optimization level extended",
)
_PACKED = ("tokens of several sequences that are packed into one are not supported",)
_SEARCH = ("a search runs a whole decoder many times", "import the decoder itself, and run the search outside of it")
_EXPERTS = ("layers of experts, which are chosen for each token, are not supported",)
_BEAMS = ("a buffer of keys that several beams share is not supported",)

_REFUSED: dict[tuple[str, str], tuple[str, ...]] = {
    **{
        (NCHWC, name): _BLOCKS
        for name in (
            "AveragePool", "Conv", "GlobalAveragePool", "GlobalMaxPool", "MaxPool", "ReorderInput", "ReorderOutput", "Upsample",
        )
    },
    **{(MICROSOFT, name): _PACKED for name in ("PackedAttention", "PackedMultiHeadAttention", "RemovePadding", "RestorePadding")},
    **{(MICROSOFT, name): _SEARCH for name in ("BeamSearch", "GreedySearch", "Sampling", "WhisperBeamSearch")},
    **{(MICROSOFT, name): _EXPERTS for name in ("MoE", "QMoE")},
    **{(MICROSOFT, name): _BEAMS for name in ("DecoderMaskedMultiHeadAttention", "DecoderMaskedSelfAttention")},
    (MICROSOFT, "Tokenizer"): (STRINGS,),
}  # fmt: skip
"""The reason and notes with which operators are refused, by domain and name."""


def refused(node: Node) -> SSAValue:
    """Refuses an operator of `_REFUSED`."""
    raise node.refuse(*_REFUSED[node.domain, node.op_type])


for _domain, _name in _REFUSED:
    operator(_name, domain=_domain)(refused)
