"""Reads ONNX' protocol buffers: attributes, tensors and types as Python's and numpy's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.ir import Attribute, SSAValue

from ...dialects.tir.types import type_to_dtype
from .model import require_onnx

if TYPE_CHECKING:
    from numpy.typing import NDArray

DTYPES = {
    "FLOAT": "float32", "UINT8": "uint8", "INT8": "int8", "UINT16": "uint16", "INT16": "int16", "INT32": "int32", "INT64": "int64",
    "BOOL": "bool", "FLOAT16": "float16", "DOUBLE": "float64", "UINT32": "uint32", "UINT64": "uint64", "BFLOAT16": "bfloat16",
    "FLOAT8E4M3FN": "e4m3_float8", "FLOAT8E5M2": "e5m2_float8", "FLOAT8E4M3FNUZ": "float8_e4m3fnuz",
    "FLOAT8E5M2FNUZ": "float8_e5m2fnuz", "FLOAT8E8M0": "float8_e8m0fnu", "FLOAT4E2M1": "float4_e2m1fn", "UINT4": "uint4",
    "INT4": "int4", "UINT2": "uint2", "INT2": "int2",
}  # fmt: skip
"""Relay's dtypes by ONNX' names of element types."""


def element_dtype(number: int) -> str | None:
    """Returns the dtype of ONNX' number of an element type; None where Relay has none."""
    onnx = require_onnx()
    try:
        return DTYPES.get(onnx.TensorProto.DataType.Name(number))
    except ValueError:
        return None


def element_number(dtype: str) -> int:
    """Returns ONNX' number of an element type from a dtype."""
    onnx = require_onnx()
    name = next(name for name, each in DTYPES.items() if each == dtype)
    return int(onnx.TensorProto.DataType.Value(name))


def type_proto(value: SSAValue) -> Any:
    """Returns the type of a tensor as a `TypeProto`."""
    onnx = require_onnx()
    type = cast("TensorType[Attribute]", value.type)
    shape = [None if size == DYNAMIC_INDEX else size for size in type.get_shape()]
    return onnx.helper.make_tensor_type_proto(element_number(type_to_dtype(type.element_type)), shape)


def constant_array(tensor: Any) -> NDArray[Any]:
    """Returns the elements of a tensor's proto, dense or sparse; of texts as numpy's objects.

    Raises ValueError for a tensor that is not valid.
    """
    onnx = require_onnx()
    if isinstance(tensor, onnx.SparseTensorProto):
        return _dense(tensor)
    if min(tensor.dims, default=0) < 0:
        raise ValueError(f"a dimension is {min(tensor.dims)}")
    if tensor.data_type not in onnx.TensorProto.DataType.values() or not tensor.data_type:
        raise ValueError(f"no type of elements has the number {tensor.data_type}")
    return cast("NDArray[Any]", onnx.numpy_helper.to_array(tensor))


def _dense(sparse: Any) -> NDArray[Any]:
    values, indices = constant_array(sparse.values), constant_array(sparse.indices)
    array = np.zeros(list(sparse.dims), values.dtype)
    places = np.unravel_index(indices, array.shape) if indices.ndim == 1 else tuple(indices.T)
    array[places] = values
    return array


def attribute_value(attribute: Any) -> Any:
    """Returns an attribute's value: a number, a text, an array, a list of them, or a graph's proto."""
    onnx = require_onnx()
    kinds = onnx.AttributeProto
    match attribute.type:
        case kinds.TENSOR:
            return constant_array(attribute.t)
        case kinds.SPARSE_TENSOR:
            return constant_array(attribute.sparse_tensor)
        case kinds.STRING:
            return attribute.s.decode("utf-8", "replace")
        case kinds.STRINGS:
            return [each.decode("utf-8", "replace") for each in attribute.strings]
        case kinds.TENSORS:
            return [constant_array(each) for each in attribute.tensors]
        case _:
            found = onnx.helper.get_attribute_value(attribute)
            return list(found) if attribute.type in (kinds.INTS, kinds.FLOATS) else found
