"""The operators `qnn.…`, as functions.

Written by `python install/generate_stubs.py`, not by hand.
"""

from collections.abc import Sequence as _Sequence
from mirstack.api.relay.expr import Call as _Call
from mirstack.api.relay.expr import RelayExpr as _RelayExpr
from mirstack.api.relay.expr import TupleWrapper as _TupleWrapper
from mirstack.api.relay.op.composite import simulated_dequantize as simulated_dequantize
from mirstack.api.relay.op.composite import simulated_quantize as simulated_quantize
from mirstack.api.relay.op.make import Ints as _Ints

def abs(
    x: _RelayExpr, scale: _RelayExpr, zero_point: _RelayExpr, output_scale: _RelayExpr, output_zero_point: _RelayExpr
) -> _Call: ...
def add(
    lhs: _RelayExpr,
    rhs: _RelayExpr,
    lhs_scale: _RelayExpr,
    lhs_zero_point: _RelayExpr,
    rhs_scale: _RelayExpr,
    rhs_zero_point: _RelayExpr,
    output_scale: _RelayExpr,
    output_zero_point: _RelayExpr,
    lhs_axis: int = -1,
    rhs_axis: int = -1,
) -> _Call: ...
def avg_pool2d(
    data: _RelayExpr,
    input_scale: _RelayExpr,
    input_zero_point: _RelayExpr,
    output_scale: _RelayExpr,
    output_zero_point: _RelayExpr,
    pool_size: _Ints,
    strides: _Ints = (1, 1),
    dilation: _Ints = (1, 1),
    padding: _Ints = (0, 0),
    layout: str = "NCHW",
    out_layout: str = "",
    ceil_mode: bool = False,
    count_include_pad: bool = False,
) -> _Call: ...
def batch_matmul(
    x: _RelayExpr,
    y: _RelayExpr,
    x_zero_point: _RelayExpr,
    y_zero_point: _RelayExpr,
    x_scale: _RelayExpr,
    y_scale: _RelayExpr,
    out_dtype: str = "int32",
    transpose_a: bool = False,
    transpose_b: bool = True,
) -> _Call: ...
def concatenate(
    data: _RelayExpr | _TupleWrapper | _Sequence[_RelayExpr],
    input_scales: _RelayExpr | _TupleWrapper | _Sequence[_RelayExpr],
    input_zero_points: _RelayExpr | _TupleWrapper | _Sequence[_RelayExpr],
    output_scale: _RelayExpr,
    output_zero_point: _RelayExpr,
    axis: int,
) -> _Call: ...
def contrib_dense_pack(
    data: _RelayExpr,
    weight: _RelayExpr,
    input_zero_point: _RelayExpr,
    kernel_zero_point: _RelayExpr,
    input_scale: _RelayExpr,
    kernel_scale: _RelayExpr,
    units: int | None = None,
    out_dtype: str = "int32",
    weight_layout: str = "NC",
) -> _Call: ...
def conv2d(
    data: _RelayExpr,
    kernel: _RelayExpr,
    input_zero_point: _RelayExpr,
    kernel_zero_point: _RelayExpr,
    input_scale: _RelayExpr,
    kernel_scale: _RelayExpr,
    kernel_size: _Ints | None,
    channels: int | None,
    strides: _Ints = (1, 1),
    padding: _Ints = (0, 0),
    dilation: _Ints = (1, 1),
    groups: int = 1,
    data_layout: str = "NCHW",
    kernel_layout: str = "OIHW",
    out_layout: str = "",
    out_dtype: str = "int32",
) -> _Call: ...
def conv2d_transpose(
    data: _RelayExpr,
    weight: _RelayExpr,
    input_zero_point: _RelayExpr,
    kernel_zero_point: _RelayExpr,
    input_scale: _RelayExpr,
    kernel_scale: _RelayExpr,
    strides: _Ints = (1, 1),
    padding: _Ints = (0, 0),
    dilation: _Ints = (1, 1),
    groups: int = 1,
    channels: int | None = None,
    kernel_size: _Ints | None = None,
    data_layout: str = "NCHW",
    kernel_layout: str = "IOHW",
    out_layout: str = "",
    output_padding: _Ints = (0, 0),
    out_dtype: str = "int32",
) -> _Call: ...
def dense(
    data: _RelayExpr,
    weight: _RelayExpr,
    input_zero_point: _RelayExpr,
    kernel_zero_point: _RelayExpr,
    input_scale: _RelayExpr,
    kernel_scale: _RelayExpr,
    units: int | None,
    out_dtype: str = "int32",
) -> _Call: ...
def dequantize(
    data: _RelayExpr,
    input_scale: _RelayExpr,
    input_zero_point: _RelayExpr,
    axis: int = -1,
    out_dtype: str | None = "float32",
) -> _Call: ...
def erf(
    x: _RelayExpr, scale: _RelayExpr, zero_point: _RelayExpr, output_scale: _RelayExpr, output_zero_point: _RelayExpr
) -> _Call: ...
def exp(
    x: _RelayExpr, scale: _RelayExpr, zero_point: _RelayExpr, output_scale: _RelayExpr, output_zero_point: _RelayExpr
) -> _Call: ...
def hardswish(
    x: _RelayExpr, scale: _RelayExpr, zero_point: _RelayExpr, output_scale: _RelayExpr, output_zero_point: _RelayExpr
) -> _Call: ...
def leaky_relu(
    data: _RelayExpr,
    input_scale: _RelayExpr,
    input_zero_point: _RelayExpr,
    output_scale: _RelayExpr,
    output_zero_point: _RelayExpr,
    alpha: float = 0.25,
) -> _Call: ...
def log(
    x: _RelayExpr, scale: _RelayExpr, zero_point: _RelayExpr, output_scale: _RelayExpr, output_zero_point: _RelayExpr
) -> _Call: ...
def mul(
    lhs: _RelayExpr,
    rhs: _RelayExpr,
    lhs_scale: _RelayExpr,
    lhs_zero_point: _RelayExpr,
    rhs_scale: _RelayExpr,
    rhs_zero_point: _RelayExpr,
    output_scale: _RelayExpr,
    output_zero_point: _RelayExpr,
    lhs_axis: int = -1,
    rhs_axis: int = -1,
) -> _Call: ...
def quantize(
    data: _RelayExpr,
    output_scale: _RelayExpr,
    output_zero_point: _RelayExpr,
    axis: int = -1,
    out_dtype: str | None = "int8",
) -> _Call: ...
def requantize(
    data: _RelayExpr,
    input_scale: _RelayExpr,
    input_zero_point: _RelayExpr,
    output_scale: _RelayExpr,
    output_zero_point: _RelayExpr,
    axis: int = -1,
    rounding: str = "None",
    compute_dtype: str = "None",
    out_dtype: str | None = "int8",
) -> _Call: ...
def rsqrt(
    x: _RelayExpr, scale: _RelayExpr, zero_point: _RelayExpr, output_scale: _RelayExpr, output_zero_point: _RelayExpr
) -> _Call: ...
def sigmoid(
    x: _RelayExpr, scale: _RelayExpr, zero_point: _RelayExpr, output_scale: _RelayExpr, output_zero_point: _RelayExpr
) -> _Call: ...
def softmax(
    data: _RelayExpr,
    scale: _RelayExpr,
    zero_point: _RelayExpr,
    output_scale: _RelayExpr,
    output_zero_point: _RelayExpr,
    axis: int = -1,
) -> _Call: ...
def sqrt(
    x: _RelayExpr, scale: _RelayExpr, zero_point: _RelayExpr, output_scale: _RelayExpr, output_zero_point: _RelayExpr
) -> _Call: ...
def subtract(
    lhs: _RelayExpr,
    rhs: _RelayExpr,
    lhs_scale: _RelayExpr,
    lhs_zero_point: _RelayExpr,
    rhs_scale: _RelayExpr,
    rhs_zero_point: _RelayExpr,
    output_scale: _RelayExpr,
    output_zero_point: _RelayExpr,
    lhs_axis: int = -1,
    rhs_axis: int = -1,
) -> _Call: ...
def tanh(
    x: _RelayExpr, scale: _RelayExpr, zero_point: _RelayExpr, output_scale: _RelayExpr, output_zero_point: _RelayExpr
) -> _Call: ...
