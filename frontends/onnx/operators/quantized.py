"""Converts ONNX operators: quantized tensors.

An integer q represents (q - zero_point) * scale. `DequantizeLinear` becomes `qnn.dequantize`, and a `QuantizeLinear` of what is computed
from such values `qnn.quantize`: `fake-quantization-to-integer` then computes the operators between them in integers.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block, SSAValue

from ....dialects.relay import ir
from ....dialects.relay.operator import OperatorOp, is_operator
from ....passes.relay.quantize.fake_quantization import RULES
from ...common.graph_builder import GraphBuilder
from ...common.open_sizes import Extent
from ..node import Node
from ..protos import element_dtype
from ..registry import MICROSOFT, operator
from .matrices import dense_weight, inner_size, matmul, with_batch_of
from .neural_network import Window, padded_window

RANGES = {
    "int8": (-128, 127), "uint8": (0, 255), "int16": (-32768, 32767), "uint16": (0, 65535), "int4": (-8, 7), "uint4": (0, 15),
    "int2": (-2, 1), "uint2": (0, 3),
}  # fmt: skip
"""The least and the largest element of integers that tensors are quantized to."""

FLOATS = {
    "e4m3_float8": 448.0, "e5m2_float8": 57344.0, "float8_e4m3fnuz": 240.0, "float8_e5m2fnuz": 57344.0, "float4_e2m1fn": 6.0,
}  # fmt: skip
"""The largest element of floats that tensors are quantized to."""


# Parameters --------------------------------------------------------------------------------------------------------


def _parameter(node: Node, value: SSAValue, x: SSAValue, axis: int, block: int) -> SSAValue:
    """Returns a scale or a zero point of a tensor, an axis or blocks, ready to be broadcast."""
    b = node.builder
    rank = b.rank(x)
    if b.rank(value) == 0 or b.static_shape(value) == (1,):
        return b.reshape(value, [])
    if b.rank(value) == 1:
        return b.call("expand_dims", value, axis=1, num_newaxis=rank - axis - 1) if axis < rank - 1 else value
    if not block:
        raise node.refuse("a scale of several dimensions needs the attribute block_size")
    repeated = value if block == 1 else b.call("repeat", value, repeats=block, axis=axis)
    size, own = b.extents(x)[axis], b.extents(repeated)[axis]
    if size == own or not isinstance(size, int):
        return repeated
    return b.call("strided_slice", repeated, begin=[0], end=[size], strides=[1], axes=[axis])


def _scalar_or_vector(node: Node, value: SSAValue) -> SSAValue | None:
    """Returns a parameter as `qnn` takes it: of rank 0 or 1; None for blocks."""
    b = node.builder
    if b.rank(value) == 0 or b.static_shape(value) == (1,):
        return b.reshape(value, [])
    return value if b.rank(value) == 1 else None


def _cast(b: GraphBuilder, value: SSAValue, dtype: str) -> SSAValue:
    return value if b.dtype(value) == dtype else b.call("cast", value, dtype=dtype)


def _zero(b: GraphBuilder, value: SSAValue | None) -> SSAValue:
    """Returns a zero point as int32: a scalar or a vector, 0 where it is left out."""
    return b.constant(0, "int32") if value is None else _cast(b, value, "int32")


def saturated(b: GraphBuilder, real: SSAValue, zero_point: SSAValue | None, dtype: str) -> SSAValue:
    """Returns float32 numbers as integers plus a zero point: halves to the even one, saturated."""
    rounded = b.call("nearbyint", real)
    if zero_point is not None:
        rounded = b.call("add", rounded, _cast(b, zero_point, "float32"))
    low, high = RANGES[dtype]
    clipped = b.call("clip", rounded, a_min=float(low), a_max=float(high))
    if dtype in ("int8", "uint8", "int16", "uint16"):
        return b.call("cast", clipped, dtype=dtype)
    return b.call("cast", b.call("cast", clipped, dtype="int32"), dtype=dtype)


# QuantizeLinear and DequantizeLinear -------------------------------------------------------------------------------


@operator("QuantizeLinear")
@operator("QuantizeLinear", domain=MICROSOFT)
def quantize_linear(node: Node) -> SSAValue:
    """Converts `QuantizeLinear`: x / scale, halves to the even integer, plus the zero point."""
    b, x, zero = node.builder, node[0], node.tensor(2)
    dtype = _target(node, zero)
    rank = b.rank(x)
    axis = int(node.attr("axis", 1))
    axis += rank if axis < 0 else 0
    scale = _scalar_or_vector(node, node[1])
    if dtype in ("int8", "uint8") and scale is not None and b.dtype(x) == b.dtype(scale) == "float32" and _is_fake(x):
        zero_point = _zero(b, None if zero is None else _scalar_or_vector(node, zero))
        return b.call("qnn.quantize", x, scale, zero_point, out_dtype=dtype, axis=axis if b.rank(scale) else -1)
    block = int(node.attr("block_size", 0))
    wide = _cast(b, _parameter(node, node[1], x, axis, block), "float32")
    real = b.call("divide", _cast(b, x, "float32"), wide)
    point = None if zero is None else _parameter(node, zero, x, axis, block)
    if dtype in FLOATS:
        if point is not None:
            real = b.call("add", real, _cast(b, point, "float32"))
        if int(node.attr("saturate", 1)):
            real = b.call("clip", real, a_min=-FLOATS[dtype], a_max=FLOATS[dtype])
        return b.call("cast", real, dtype=dtype)
    if dtype not in RANGES:
        raise node.refuse(f"tensors cannot be quantized to {dtype}")
    return saturated(b, real, point, dtype)


def _target(node: Node, zero_point: SSAValue | None) -> str:
    if zero_point is not None:
        return node.builder.dtype(zero_point)
    number = int(node.attr("output_dtype", 0))
    found = element_dtype(number) if number else "uint8"
    if found is None:
        raise node.refuse(f"output_dtype is {number}, which tensors cannot have")
    return found


def _is_fake(value: SSAValue) -> bool:
    """Returns whether operators that have integer forms compute a value from dequantized ones."""
    seen = {value}
    pending = [value]
    dequantized = computed = False
    while pending:
        owner = pending.pop().owner
        if isinstance(owner, Block):
            return False
        if is_operator(owner, "qnn.dequantize"):
            dequantized = True
            continue
        match owner:
            case ir.ConstantOp():
                continue
            case OperatorOp() if owner.OPERATOR.name in RULES:
                computed = True
                following: Sequence[SSAValue] = owner.args
            case ir.TupleOp() | ir.TupleGetItemOp():
                following = owner.operands
            case _:
                return False
        new = [each for each in following if each not in seen]
        seen.update(new)
        pending += new
    return dequantized and computed


@operator("DequantizeLinear")
@operator("DequantizeLinear", domain=MICROSOFT)
def dequantize_linear(node: Node) -> SSAValue:
    """Converts `DequantizeLinear`: (x - zero point) * scale, in the scale's dtype."""
    b, x, zero = node.builder, node[0], node.tensor(2)
    axis = int(node.attr("axis", 1))
    axis += b.rank(x) if axis < 0 else 0
    number = int(node.attr("output_dtype", 0))
    out = (element_dtype(number) if number else None) or b.dtype(node[1])
    source, scale = b.dtype(x), _scalar_or_vector(node, node[1])
    if source in ("int8", "uint8", "int32") and scale is not None and b.dtype(scale) == out == "float32":
        zero_point = _zero(b, None if zero is None else _scalar_or_vector(node, zero))
        return b.call("qnn.dequantize", x, scale, zero_point, axis=axis if b.rank(scale) else -1)
    block = int(node.attr("block_size", 0))
    real = _cast(b, x, "float32" if "float" in source else "int32")
    if zero is not None:
        real = b.call("subtract", real, _cast(b, _parameter(node, zero, x, axis, block), b.dtype(real)))
    wide = _cast(b, _parameter(node, node[1], x, axis, block), "float32")
    return _cast(b, b.call("multiply", _cast(b, real, "float32"), wide), out)


@operator("DynamicQuantizeLinear")
def dynamic_quantize_linear(node: Node) -> list[SSAValue]:
    """Converts `DynamicQuantizeLinear`: to uint8, by the least and the largest element and 0."""
    return list(dynamically_quantized(node.builder, node[0]))


def dynamically_quantized(b: GraphBuilder, x: SSAValue) -> tuple[SSAValue, SSAValue, SSAValue]:
    """Returns a tensor of float32 as uint8, with its scale and its zero point."""
    zero, most = b.constant(0, "float32"), b.constant(255, "float32")
    low = b.call("minimum", b.call("min", x), zero)
    high = b.call("maximum", b.call("max", x), zero)
    width = b.call("subtract", high, low)
    scale = b.call("divide", width, most)
    # Of zeros only, any scale is right.
    divisor = b.call("where", b.call("equal", scale, zero), b.constant(1, "float32"), scale)
    exact = b.call("divide", b.call("subtract", zero, low), divisor)
    zero_point = saturated(b, b.call("clip", exact, a_min=0.0, a_max=255.0), None, "uint8")
    return saturated(b, b.call("divide", x, divisor), zero_point, "uint8"), scale, zero_point


# Products ----------------------------------------------------------------------------------------------------------


def requantized(
    node: Node,
    sums: SSAValue,
    scales: Sequence[SSAValue],
    to: tuple[SSAValue, SSAValue | None],
    axis: int | None = None,
) -> SSAValue:
    """Returns sums of int32, whose unit is the product of `scales`, as bytes of a scale and a zero point.

    Vectors of scales go along `axis`.
    """
    b = node.builder
    factor = b.call("divide", _product(b, scales), _cast(b, b.reshape(to[0], []), "float32"))
    if b.rank(factor) == 1:
        if b.static_shape(factor) == (1,):
            factor = b.reshape(factor, [])
        elif axis is not None and axis < b.rank(sums) - 1:
            factor = b.call("expand_dims", factor, axis=1, num_newaxis=b.rank(sums) - axis - 1)
    zero = to[1]
    dtype = "uint8" if zero is None else b.dtype(zero)
    real = b.call("multiply", b.call("cast", sums, dtype="float32"), factor)
    return saturated(b, real, None if zero is None else b.reshape(zero, []), dtype)


def _product(b: GraphBuilder, scales: Sequence[SSAValue]) -> SSAValue:
    found = _cast(b, scales[0], "float32")
    for each in scales[1:]:
        found = b.call("multiply", found, _cast(b, each, "float32"))
    return found


def integer_conv(node: Node, x: SSAValue, w: SSAValue, x_zero: SSAValue | None, w_zero: SSAValue | None) -> SSAValue:
    """Returns the sums of a convolution of bytes less their zero points, in int32."""
    b = node.builder
    rank = b.rank(x) - 2
    own = node.ints("kernel_shape")
    sizes: Sequence[Extent] = own if own is not None else b.extents(w)[2:]
    kernel = [size for size in sizes if isinstance(size, int)]
    if len(kernel) < rank:
        raise node.refuse("the window must be of a known size: the weight has open sizes, and kernel_shape is left out")
    one = b.constant(1, "float32")
    zeros = [b.constant(0, "int32") if z is None else _cast(b, _flat(b, z), "int32") for z in (x_zero, w_zero)]
    if rank == 1:
        x, w = b.call("expand_dims", x, axis=2), b.call("expand_dims", w, axis=2)
    x, window = padded_window(node, x, kernel) if rank != 1 else (x, _row_window(node, x, kernel))
    channels = b.extents(w)[0]
    attributes = {
        "strides": list(window.strides), "padding": window.padding, "dilation": list(window.dilations),
        "groups": int(node.attr("group", 1)), "kernel_size": list(window.kernel),
        **({"channels": channels} if isinstance(channels, int) else {}),
    }  # fmt: skip
    if rank <= 2:
        result = b.call("qnn.conv2d", x, w, *zeros, one, one, out_dtype="int32", **attributes)
        return b.call("squeeze", result, axis=[2]) if rank == 1 else result
    data = b.call("subtract", _cast(b, x, "int32"), zeros[0])
    point = zeros[1] if not b.rank(zeros[1]) else b.call("expand_dims", zeros[1], axis=1, num_newaxis=rank + 1)
    weight = b.call("subtract", _cast(b, w, "int32"), point)
    return b.call(f"nn.conv{rank}d", data, weight, out_dtype="int32", **attributes)


def _flat(b: GraphBuilder, value: SSAValue) -> SSAValue:
    return b.reshape(value, []) if b.static_shape(value) == (1,) else value


def _row_window(node: Node, x: SSAValue, kernel: Sequence[int]) -> Window:
    """Returns the window of a convolution of one axis as one of two: (1, k)."""
    _, found = padded_window(node, node.call("squeeze", x, axis=[2]), kernel)
    return Window([1, *found.kernel], [1, *found.strides], [1, *found.dilations], [0, *found.before], [0, *found.after])


@operator("ConvInteger")
def conv_integer(node: Node) -> SSAValue:
    """Converts `ConvInteger` to `qnn.conv2d`: sums in int32."""
    return integer_conv(node, node[0], node[1], node.tensor(2), node.tensor(3))


def _bytes_and_points(node: Node) -> tuple[SSAValue, SSAValue, SSAValue | None, SSAValue | None]:
    """Returns both tensors of bytes of a `QLinear…` node, and their zero points.

    Its inputs are (x, x_scale, x_zero, w, w_scale, w_zero, …).
    """
    return node[0], node[3], node.tensor(2), node.tensor(5)


@operator("QLinearConv")
def qlinear_conv(node: Node) -> SSAValue:
    """Converts `QLinearConv`: `qnn.conv2d`, the bias, and the result in its own scale."""
    b = node.builder
    sums = integer_conv(node, *_bytes_and_points(node))
    bias = node.tensor(8)
    if bias is not None:
        sums = b.call("nn.bias_add", sums, bias)
    return requantized(node, sums, [b.reshape(node[1], []), node[4]], (node[6], node.tensor(7)), 1)


def integer_matmul(
    b: GraphBuilder, x: SSAValue, y: SSAValue, x_zero: SSAValue | None, y_zero: SSAValue | None
) -> SSAValue:
    """Returns the product of matrices of bytes less their zero points, in int32.

    A matrix is the weight of `qnn.dense`, a constant one transposed here; other products are computed on int32.
    """
    one = b.constant(1, "float32")
    points = [None if z is None else _flat(b, z) for z in (x_zero, y_zero)]
    x_scalar = points[0] is None or b.rank(points[0]) == 0
    y_vector = points[1] is None or b.rank(points[1]) <= 1
    if x_scalar and y_vector and b.rank(y) == 2 and b.rank(x) >= 2:
        zeros = [_zero(b, each) for each in points]
        is_flat = b.rank(x) == 2
        rows = x if is_flat else b.call("reshape", x, newshape=[-1, inner_size(b, x, y)])
        weight = dense_weight(b, y) or b.call("transpose", y, axes=[1, 0])
        found = b.call("qnn.dense", rows, weight, *zeros, one, one, out_dtype="int32")
        return found if is_flat else with_batch_of(b, found, x)
    wide: list[SSAValue] = []
    for value, point, column in ((x, points[0], True), (y, points[1], False)):
        centered = _cast(b, value, "int32")
        if point is not None:
            zero = _cast(b, point, "int32")
            if b.rank(zero) == 1 and column and b.rank(value) > 1:
                zero = b.call("expand_dims", zero, axis=1)
            centered = b.call("subtract", centered, zero)
        wide.append(centered)
    return matmul(b, wide[0], wide[1])


@operator("MatMulInteger")
def matmul_integer(node: Node) -> SSAValue:
    """Converts `MatMulInteger`: the product in int32."""
    return integer_matmul(node.builder, node[0], node[1], node.tensor(2), node.tensor(3))


@operator("QLinearMatMul")
def qlinear_matmul(node: Node) -> SSAValue:
    """Converts `QLinearMatMul`: the product in int32, brought to the result's scale."""
    b = node.builder
    sums = integer_matmul(b, *_bytes_and_points(node))
    x_scale = node[1] if b.rank(node[1]) < 1 else _flat(b, node[1])
    if b.rank(x_scale) == 1:
        x_scale = b.call("expand_dims", x_scale, axis=1)
    return requantized(node, sums, [x_scale, node[4]], (node[6], node.tensor(7)))
