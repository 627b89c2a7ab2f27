"""Converts ONNX operators that make tensors or change dtypes: Constant, Cast, Shape, Range."""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from ....dialects.tir.types import FLOAT_LIMITS
from ...common.graph_builder import GraphBuilder
from ..node import Node
from ..protos import element_dtype
from ..registry import operator
from ..values import Value

SATURATED = ("e4m3_float8", "e5m2_float8", "float8_e4m3fnuz", "float8_e5m2fnuz")
"""The dtypes that `saturate` is about: a float outside of their range becomes the nearest limit."""

EXPONENT = "float8_e8m0fnu"
"""The dtype of powers of two, whose casts have a direction of rounding."""

MAGNITUDE, INFINITY = 0x7FFFFFFF, 0x7F800000
"""The bits of a float32 without its sign, and those of infinity."""

WRAPPED = ("int4", "uint4", "int2", "uint2")
"""The dtypes of which a float outside of their range keeps its lowest bits."""

STRINGS = "tensors of strings are not supported"


# Constants -------------------------------------------------------------------------------------------------------------


@operator("Constant")
def constant(node: Node) -> SSAValue:
    """Converts `Constant`, whose value is a tensor, dense or sparse, a number or a list of numbers."""
    for name, dtype in _VALUES.items():
        if name in node.attributes:
            value = node.attributes[name]
            return node.builder.array_constant(np.asarray(value, dtype))
    if "value_string" in node.attributes or "value_strings" in node.attributes:
        raise node.refuse(STRINGS)
    raise node.refuse("it has no attribute that is its value")


_VALUES = {
    "value": None, "sparse_value": None, "value_float": "float32", "value_floats": "float32", "value_int": "int64",
    "value_ints": "int64",
}  # fmt: skip
"""Attributes of `Constant`, and the dtypes of their tensors."""


@operator("ConstantOfShape")
def constant_of_shape(node: Node) -> SSAValue:
    """Converts `ConstantOfShape`: a tensor of one value, 0 of float32 unless given."""
    value = np.asarray(node.attr("value", np.zeros(1, "float32"))).reshape(())
    return filled(node.builder, node.builder.array_constant(value), node[0])


def filled(builder: GraphBuilder, value: SSAValue, shape: SSAValue) -> SSAValue:
    """Returns a tensor filled with a value of rank 0, of a shape that may be computed."""
    known = builder.elements(shape)
    sizes = [size for size in known or () if isinstance(size, int)]
    if known is not None and len(sizes) == len(known):
        return builder.call("full", value, shape=sizes, dtype=builder.dtype(value))
    return builder.call("dyn.full", value, shape, dtype=builder.dtype(value))


@operator("Identity")
def identity(node: Node) -> Value:
    """Converts `Identity`: the input itself, which may be a sequence."""
    found = node.inputs[0]
    return node[0] if found is None else found


# Dtypes ----------------------------------------------------------------------------------------------------------------


@operator("Cast")
def cast(node: Node) -> SSAValue:
    """Converts `Cast`; before opset 6 `to` is the dtype's name."""
    to: Any = node.attr("to")
    return converted(node, node[0], _dtype(node, to))


@operator("CastLike")
def cast_like(node: Node) -> SSAValue:
    """Converts `CastLike`, whose dtype is that of the second input."""
    return converted(node, node[0], node.dtype(1))


def converted(node: Node, data: SSAValue, dtype: str) -> SSAValue:
    """Returns `data` as `dtype`, by the node's attributes `saturate` and `round_mode`."""
    source = node.builder.dtype(data)
    if source == dtype:
        return data
    if dtype in SATURATED and int(node.attr("saturate", 1)):
        most = FLOAT_LIMITS[dtype]
        if "float" in source and source not in ("float32", "float64"):
            data = node.call("cast", data, dtype="float32")
        data = node.call("clip", data, a_min=-most, a_max=most)
    if dtype == EXPONENT:
        return _exponent(node, data)
    if dtype in WRAPPED and "float" in source:
        data = node.call("cast", data, dtype="int32")
    return node.call("cast", data, dtype=dtype)


@operator("BitCast")
def bit_cast(node: Node) -> SSAValue:
    """Converts `BitCast`, which keeps the bits of each element; a bool is the byte 0 or 1."""
    dtype = _dtype(node, node.attr("to"))
    return node.call("cast" if "bool" in (dtype, node.dtype(0)) else "reinterpret", node[0], dtype=dtype)


def _exponent(node: Node, data: SSAValue) -> SSAValue:
    """Returns the powers of two near the magnitudes of `data`, above or below as `round_mode` says."""
    mode, saturates = node.choice("round_mode", "up", ("up", "down", "nearest")), int(node.attr("saturate", 1))
    call = node.call

    def number(value: int) -> SSAValue:
        return node.builder.integers(value, "int32")

    bits = call(
        "bitwise_and", call("reinterpret", call("cast", data, dtype="float32"), dtype="int32"), number(MAGNITUDE)
    )
    is_special = call("greater_equal", bits, number(INFINITY))
    rounded = call("add", bits, number({"up": (1 << 23) - 1, "down": 0, "nearest": (1 << 22) - 1}[mode]))
    if mode == "nearest":
        rounded = call("add", rounded, call("cast", call("greater_equal", bits, number(1 << 23)), dtype="int32"))
    code = call("minimum", call("right_shift", rounded, number(23)), number(254 if saturates else 255))
    code = call("where", is_special, number(255), code)
    return call("reinterpret", call("cast", code, dtype="uint8"), dtype=EXPONENT)


def _dtype(node: Node, to: Any) -> str:
    """Returns the dtype of an attribute that holds ONNX' number of an element type, or its name."""
    from ..model import require_onnx

    number = require_onnx().TensorProto.DataType.Value(to) if isinstance(to, str) else int(to)
    dtype = element_dtype(number)
    if dtype is None:
        name = require_onnx().TensorProto.DataType.Name(number)
        raise node.refuse(f"tensors of {name} are not supported")
    return dtype


# Shapes ----------------------------------------------------------------------------------------------------------------


@operator("Shape")
def shape(node: Node) -> SSAValue:
    """Converts `Shape`, of the dimensions from `start` to `end`; negative ones count from the last."""
    rank = node.rank(0)
    found = node.builder.shape_tensor(node[0])
    start, end = (_clamped(int(node.attr(name, default)), rank) for name, default in (("start", 0), ("end", rank)))
    if (start, end) == (0, rank):
        return found
    return node.call("strided_slice", found, begin=[start], end=[max(start, end)], strides=[1])


def _clamped(place: int, rank: int) -> int:
    return min(max(place + rank if place < 0 else place, 0), rank)


@operator("Size")
def size(node: Node) -> SSAValue:
    """Converts `Size`, the number of elements."""
    return node.call("ndarray_size", node[0], dtype="int64")


@operator("Range")
def arange(node: Node) -> SSAValue:
    """Converts `Range`: the numbers from a first one to below a limit."""
    arrays = [node.builder.array(node[index]) for index in range(3)]
    dtype = node.dtype(0)
    start, limit, step = (None if array is None else array.reshape(())[()] for array in arrays)
    if start is not None and limit is not None and step is not None:
        if step == 0:
            raise node.refuse("the step of a range must not be 0")
        return node.builder.array_constant(_numbers(start, limit, step))
    scalars = [node.builder.reshape(node[index], []) for index in range(3)]
    return node.call("arange", *scalars, dtype=dtype)


def _numbers(start: Any, limit: Any, step: Any) -> Any:
    count = max(int(np.ceil((float(limit) - float(start)) / float(step))), 0)
    return (start + np.arange(count).astype(start.dtype) * step).astype(start.dtype)


@operator("EyeLike")
def eye_like(node: Node) -> SSAValue:
    """Converts `EyeLike`: ones on the diagonal `k` of a matrix of the input's shape, zeros elsewhere."""
    builder, k = node.builder, int(node.attr("k", 0))
    to = node.attr("dtype")
    dtype = node.dtype(0) if to is None else _dtype(node, to)
    if node.rank(0) != 2:
        raise node.refuse(f"the input is of rank {node.rank(0)}, not a matrix")
    static = builder.static_shape(node[0])
    if static is not None:
        return builder.constant(np.eye(static[0], static[1], k), dtype)
    sizes = builder.shape_tensor(node[0])
    rows, columns = (_count_to(builder, sizes, axis) for axis in (0, 1))
    rows = builder.call("add", builder.reshape(rows, [-1, 1]), builder.integers(k))
    return builder.call("cast", builder.call("equal", rows, columns), dtype=dtype)


def _count_to(builder: GraphBuilder, sizes: SSAValue, axis: int) -> SSAValue:
    """Returns the integers from 0 to below an element of a tensor."""
    limit = builder.reshape(builder.call("strided_slice", sizes, begin=[axis], end=[axis + 1], strides=[1]), [])
    return builder.call("arange", builder.integers(0), limit, builder.integers(1), dtype="int64")


# Texts -----------------------------------------------------------------------------------------------------------------


@operator("StringConcat", "StringNormalizer", "StringSplit", "RegexFullMatch")
def text(node: Node) -> SSAValue:
    """Refuses operators of texts."""
    raise node.refuse(STRINGS)
