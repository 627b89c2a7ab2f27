"""Converts quantized operators of onnxruntime's domain com.microsoft.

Source: https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from xdsl.ir import SSAValue

from ....dialects.relay.operators.nn.matmul_nbits import pack_bits, unpack_bits
from ..node import Node
from ..registry import MICROSOFT, operator
from .contrib import WINDOW, channels_first, channels_last, embedded, given, one
from .quantized import dynamically_quantized, integer_matmul, requantized, saturated
from .recurrent import lstm_layer

if TYPE_CHECKING:
    from ...common.graph_builder import GraphBuilder
    from ...common.open_sizes import Extent
    from ..values import Value


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


@operator("QLinearSigmoid", "QLinearLeakyRelu", domain=MICROSOFT)
def qlinear_unary(node: Node) -> SSAValue:
    """Converts quantized functions of one tensor: on real numbers."""
    value = one(node, node.op_type.removeprefix("QLinear"), _real(node, 0, 1, 2), **given(node, ("alpha",)))
    return _quantized(node, value, 3, 4)


@operator("QLinearSoftmax", domain=MICROSOFT)
def qlinear_softmax(node: Node) -> SSAValue:
    """Converts `QLinearSoftmax` as the Softmax of the opset that the node names."""
    opset = int(node.attr("opset", 13))
    axis = int(node.attr("axis", -1 if opset >= 13 else 1))
    return _quantized(node, one(node, "Softmax", _real(node, 0, 1, 2), opset=opset, axis=axis), 3, 4)


@operator("QLinearReduceMean", domain=MICROSOFT)
def qlinear_reduce_mean(node: Node) -> SSAValue:
    """Converts `QLinearReduceMean`: the mean of the real numbers."""
    value = one(node, "ReduceMean", _real(node, 0, 1, 2), opset=13, **given(node, ("axes", "keepdims")))
    return _quantized(node, value, 3, 4)


@operator("QLinearWhere", domain=MICROSOFT)
def qlinear_where(node: Node) -> SSAValue:
    """Converts `QLinearWhere`: both tensors are brought to the scale of the result."""
    return node.call(
        "where", node[0], _quantized(node, _real(node, 1, 2, 3), 7, 8), _quantized(node, _real(node, 4, 5, 6), 7, 8)
    )


@operator("QLinearAveragePool", "QLinearGlobalAveragePool", domain=MICROSOFT)
def qlinear_pool(node: Node) -> SSAValue:
    """Converts quantized means of windows: on real numbers."""
    x, is_last = _real(node, 0, 1, 2), bool(node.attr("channels_last", 0))
    names = ("auto_pad", "ceil_mode", "count_include_pad", "kernel_shape", "pads", "strides")
    rows = channels_first(node, x) if is_last else x
    value = one(node, node.op_type.removeprefix("QLinear"), rows, **given(node, names))
    return _quantized(node, channels_last(node, value) if is_last else value, 3, 4)


@operator("QLinearConv", domain=MICROSOFT)
def qlinear_conv(node: Node) -> SSAValue:
    """Converts `QLinearConv`, whose data may have its channels last; its weight is (o,i,…)."""
    is_last = bool(node.attr("channels_last", 0))
    x = channels_first(node, node[0]) if is_last else node[0]
    result = one(node, "QLinearConv", x, *node.inputs[1:], **given(node, WINDOW))
    return channels_last(node, result) if is_last else result


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
    sums = integer_matmul(b, x, y, node.tensor(2), node.tensor(5))
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
    sums = integer_matmul(node.builder, node[0], node[1], node.tensor(4), node.tensor(5))
    result = _scaled(node, sums, [node[2], node[3]])
    return node.call("add", result, node[6]) if node.has(6) else result


@operator("DynamicQuantizeMatMul", domain=MICROSOFT)
def dynamic_quantize_matmul(node: Node) -> SSAValue:
    """Converts `DynamicQuantizeMatMul`: A is quantized by its own range."""
    x, scale, zero = dynamically_quantized(node.builder, node[0])
    result = _scaled(node, integer_matmul(node.builder, x, node[1], zero, node.tensor(3)), [scale, node[2]])
    return node.call("add", result, node[4]) if node.has(4) else result


@operator("DynamicQuantizeLSTM", domain=MICROSOFT)
def dynamic_quantize_lstm(node: Node) -> list[Value]:
    """Converts `DynamicQuantizeLSTM` to LSTM on data that is quantized by its own range.

    The state of each step is quantized, too. The weights are (directions, size, 4 * hidden); those of LSTM are transposed.
    """
    b = node.builder
    turned: list[SSAValue] = []
    for place, zero in ((1, 9), (2, 11)):
        array = node.array(place, "the weight")
        assert array is not None
        turned.append(b.array_constant(np.ascontiguousarray(array.transpose(0, 2, 1))))
        if b.rank(node[zero]) > 1 and not _is_uniform(node, zero):
            raise node.refuse("zero points that differ in the channels of a weight are not supported")

    def product(b: GraphBuilder, x: SSAValue, weight: SSAValue, direction: int, *, is_recurrent: bool) -> SSAValue:
        data, scale, zero = dynamically_quantized(b, x)
        factor, point = (node.array(place + 2 * is_recurrent, "a scale or zero point") for place in (8, 9))
        assert factor is not None and point is not None
        factor, point = factor[direction], point[direction].reshape(-1)[:1]
        array = b.array(weight)
        matrix = b.call("transpose", weight, axes=[1, 0]) if array is None else b.array_constant(array.T)
        sums = integer_matmul(b, data, matrix, zero, b.array_constant(point))
        unit = b.call("multiply", scale, b.array_constant(np.asarray(factor)))
        return b.call("multiply", b.call("cast", sums, dtype="float32"), unit)

    return lstm_layer(replace(node, inputs=[node[0], *turned, *node.inputs[3:8]]), product)


def _is_uniform(node: Node, place: int) -> bool:
    array = node.array(place, "the zero point")
    return array is not None and bool((array == array[:, :1]).all())


@operator("QEmbedLayerNormalization", domain=MICROSOFT)
def quantized_embed_layer_normalization(node: Node) -> list[SSAValue | None]:
    """Converts `QEmbedLayerNormalization`: EmbedLayerNormalization of dequantized tables."""
    tables = [
        _real(node, place, scale, scale + 5) if node.has(place) else None
        for place, scale in zip(range(2, 7), range(8, 13), strict=True)
    ]
    return embedded(replace(node, inputs=[node[0], node.tensor(1), *tables, node.tensor(7)]))[:2]


# Weights in blocks -------------------------------------------------------------------------------------------------


@operator("MatMulNBits", domain=MICROSOFT)
def matmul_nbits(node: Node) -> SSAValue:
    """Converts `MatMulNBits` to `nn.matmul_nbits`; zero points are packed, numbers or left out.

    Where `g_idx` names the group of each column, the columns of the data and of the weight are put in the order of their groups.
    """
    b, x = node.builder, node[0]
    inner, units = int(node.attr("K")), int(node.attr("N"))
    bits, block = int(node.attr("bits", 4)), int(node.attr("block_size", 32))
    groups = -(-inner // block)
    weight = b.reshape(node[1], [units, groups, block * bits // 8])
    if node.has(4):
        x, weight = _in_order_of_groups(node, x, weight, bits)
    scales = b.reshape(node[2], [units, groups])
    if node.has(3):
        is_packed = b.dtype(node[3]) == "uint8"
        zeros = b.reshape(node[3], [units, -(-groups * bits // 8) if is_packed else groups])
    else:
        zeros = b.constant(1 << (bits - 1), "uint8")
    result = b.call("nn.matmul_nbits", x, weight, scales, zeros, bits=bits, block_size=block)
    return b.call("add", result, node[5]) if node.has(5) else result


def _in_order_of_groups(node: Node, x: SSAValue, weight: SSAValue, bits: int) -> tuple[SSAValue, SSAValue]:
    """Returns data and packed weight with their columns ordered by the input `g_idx`.

    The weight is (units, groups, bytes).
    """
    b = node.builder
    packed, indices = node.array(1, "the weight of a node with g_idx"), node.array(4, "g_idx")
    assert packed is not None and indices is not None
    units, groups, width = b.static_shape(weight) or (0, 0, 0)
    block = width * 8 // bits
    order = np.argsort(indices.reshape(-1), kind="stable")
    if order.size != groups * block or not np.array_equal(indices.reshape(-1)[order], np.arange(order.size) // block):
        raise node.refuse(f"g_idx must name each of the {groups} groups for {block} columns")
    numbers = unpack_bits(packed.reshape(units, -1), bits)[:, order]
    ordered = b.array_constant(pack_bits(numbers.reshape(units, groups, block), bits))
    return b.call("take", x, b.array_constant(order), axis=b.rank(x) - 1), ordered


@operator("GatherBlockQuantized", domain=MICROSOFT)
def gather_block_quantized(node: Node) -> SSAValue:
    """Converts `GatherBlockQuantized`: rows of a table that is quantized in blocks.

    The result is of the dtype of the scales. A byte of uint8 holds 8 / bits numbers along the last axis, the first of them in its lowest bits; zero points are packed alike.
    """
    b, rank = node.builder, node.rank(0)
    axis = node.axis(rank, 0, "gather_axis")
    along = node.axis(rank, 1, "quantize_axis")
    bits, block = int(node.attr("bits", 4)), int(node.attr("block_size", 128))
    dtype = node.dtype(0)
    is_packed = dtype == "uint8" and bits < 8
    if is_packed and axis == rank - 1:
        raise node.refuse("rows along the axis of packed numbers are not supported")
    ranks = b.rank(node[1])

    def rows(place: int) -> SSAValue:
        found = b.call("take", node[place], node[1], axis=axis, mode="wrap")
        return _spread(node, found, bits) if is_packed and place != 2 else b.call("cast", found, dtype="int32")

    numbers = rows(0)
    scales = b.call("take", node[2], node[1], axis=axis, mode="wrap")
    along += ranks - 1 if along > axis else 0
    size = b.extents(numbers)[along]
    default = 1 << (bits - 1) if dtype == "uint8" else 0
    zeros = _of_blocks(node, rows(3), block, along, size) if node.has(3) else b.constant(default, "int32")
    real = b.call("cast", b.call("subtract", numbers, zeros), dtype=b.dtype(scales))
    return b.call("multiply", real, _of_blocks(node, scales, block, along, size))


def _spread(node: Node, packed: SSAValue, bits: int) -> SSAValue:
    """Returns the numbers of `bits` bits that bytes hold along the last axis, in int32."""
    b = node.builder
    wide = b.call("expand_dims", b.call("cast", packed, dtype="int32"), axis=-1)
    shifts = b.array_constant(np.arange(0, 8, bits, dtype=np.int32))
    parts = b.call("bitwise_and", b.call("right_shift", wide, shifts), b.constant((1 << bits) - 1, "int32"))
    sizes = b.extents(packed)
    last = sizes[-1] * (8 // bits) if isinstance(sizes[-1], int) else -1
    return b.reshape(parts, [*sizes[:-1], last])


def _of_blocks(node: Node, value: SSAValue, block: int, axis: int, size: Extent) -> SSAValue:
    """Returns a number of each block for each of `size` elements along an axis."""
    b = node.builder
    repeated = b.call("repeat", value, repeats=block, axis=axis)
    if b.extents(repeated)[axis] == size:
        return repeated
    if not isinstance(size, int):
        raise node.refuse("the quantized axis must have a known size, not an open one")
    return b.call("strided_slice", repeated, begin=[0], end=[size], strides=[1], axes=[axis])


FP4 = (0.0, 5.208333333e-03, 0.66666667, 1.0, 0.33333333, 0.5, 0.16666667, 0.25)
"""The numbers of bitsandbytes' FP4 without their sign, the highest bit."""

NF4 = (
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
    -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
    0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0,
)  # fmt: skip
"""The numbers of NF4: the quantiles of a normal distribution (Dettmers et al., "QLoRA", 2023, appendix E)."""


@operator("MatMulBnb4", domain=MICROSOFT)
def matmul_bnb4(node: Node) -> SSAValue:
    """Converts `MatMulBnb4`: a product with a weight of 4-bit numbers, which are looked up here."""
    b = node.builder
    inner, units, block = int(node.attr("K")), int(node.attr("N")), int(node.attr("block_size"))
    packed, scales = node.array(1, "the weight"), node.array(2, "absmax")
    assert packed is not None and scales is not None
    flat = packed.reshape(-1)
    # The first of two numbers is in the highest bits.
    numbers = np.stack([flat >> 4, flat & 15], axis=1).reshape(-1)[: inner * units]
    table = np.array(NF4 if int(node.attr("quant_type")) else [*FP4, *(-each for each in FP4)], "float32")
    factors = np.repeat(scales.astype("float32"), block)[: numbers.size]
    weight = (table[numbers] * factors).astype(scales.dtype).reshape(units, inner)
    return one(node, "MatMul", node[0], b.array_constant(np.ascontiguousarray(weight.T)))
