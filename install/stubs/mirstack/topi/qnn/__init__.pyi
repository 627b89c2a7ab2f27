"""The operators `qnn.…` on TE tensors.

Written by `python install/generate_stubs.py`, not by hand.
"""

from collections.abc import Sequence as _Sequence
from mirstack.api.relay.op.make import Ints as _Ints
from mirstack.dialects.te.tensor import Tensor as _Tensor
from typing import Any as _Any

def abs(
    x: _Tensor, scale: _Tensor, zero_point: _Tensor, output_scale: _Tensor, output_zero_point: _Tensor
) -> _Tensor: ...
def add(
    lhs: _Tensor,
    rhs: _Tensor,
    lhs_scale: _Tensor,
    lhs_zero_point: _Tensor,
    rhs_scale: _Tensor,
    rhs_zero_point: _Tensor,
    output_scale: _Tensor,
    output_zero_point: _Tensor,
    lhs_axis: int = -1,
    rhs_axis: int = -1,
) -> _Tensor: ...
def avg_pool2d(
    data: _Tensor,
    input_scale: _Tensor,
    input_zero_point: _Tensor,
    output_scale: _Tensor,
    output_zero_point: _Tensor,
    pool_size: _Ints,
    strides: _Ints = (1, 1),
    dilation: _Ints = (1, 1),
    padding: _Ints = (0, 0),
    layout: str = "NCHW",
    out_layout: str = "",
    ceil_mode: bool = False,
    count_include_pad: bool = False,
) -> _Tensor: ...
def batch_matmul(
    x: _Tensor,
    y: _Tensor,
    x_zero_point: _Tensor,
    y_zero_point: _Tensor,
    x_scale: _Tensor,
    y_scale: _Tensor,
    out_dtype: str = "int32",
    transpose_a: bool = False,
    transpose_b: bool = True,
) -> _Tensor: ...
def concatenate(
    data: _Tensor | _Sequence[_Tensor],
    input_scales: _Tensor | _Sequence[_Tensor],
    input_zero_points: _Tensor | _Sequence[_Tensor],
    output_scale: _Tensor,
    output_zero_point: _Tensor,
    axis: int,
) -> _Tensor: ...
def contrib_dense_pack(
    data: _Tensor,
    weight: _Tensor,
    input_zero_point: _Tensor,
    kernel_zero_point: _Tensor,
    input_scale: _Tensor,
    kernel_scale: _Tensor,
    units: int | None = None,
    out_dtype: str = "int32",
    weight_layout: str = "NC",
) -> _Tensor: ...
def conv2d(
    data: _Tensor,
    kernel: _Tensor,
    input_zero_point: _Tensor,
    kernel_zero_point: _Tensor,
    input_scale: _Tensor,
    kernel_scale: _Tensor,
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
) -> _Tensor: ...
def conv2d_transpose(
    data: _Tensor,
    weight: _Tensor,
    input_zero_point: _Tensor,
    kernel_zero_point: _Tensor,
    input_scale: _Tensor,
    kernel_scale: _Tensor,
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
) -> _Tensor: ...
def dense(
    data: _Tensor,
    weight: _Tensor,
    input_zero_point: _Tensor,
    kernel_zero_point: _Tensor,
    input_scale: _Tensor,
    kernel_scale: _Tensor,
    units: int | None,
    out_dtype: str = "int32",
) -> _Tensor: ...
def dequantize(
    data: _Tensor, input_scale: _Tensor, input_zero_point: _Tensor, axis: int = -1, out_dtype: str | None = "float32"
) -> _Tensor: ...
def erf(
    x: _Tensor, scale: _Tensor, zero_point: _Tensor, output_scale: _Tensor, output_zero_point: _Tensor
) -> _Tensor: ...
def exp(
    x: _Tensor, scale: _Tensor, zero_point: _Tensor, output_scale: _Tensor, output_zero_point: _Tensor
) -> _Tensor: ...
def hardswish(
    x: _Tensor, scale: _Tensor, zero_point: _Tensor, output_scale: _Tensor, output_zero_point: _Tensor
) -> _Tensor: ...
def leaky_relu(
    data: _Tensor,
    input_scale: _Tensor,
    input_zero_point: _Tensor,
    output_scale: _Tensor,
    output_zero_point: _Tensor,
    alpha: float = 0.25,
) -> _Tensor: ...
def log(
    x: _Tensor, scale: _Tensor, zero_point: _Tensor, output_scale: _Tensor, output_zero_point: _Tensor
) -> _Tensor: ...
def mul(
    lhs: _Tensor,
    rhs: _Tensor,
    lhs_scale: _Tensor,
    lhs_zero_point: _Tensor,
    rhs_scale: _Tensor,
    rhs_zero_point: _Tensor,
    output_scale: _Tensor,
    output_zero_point: _Tensor,
    lhs_axis: int = -1,
    rhs_axis: int = -1,
) -> _Tensor: ...
def quantize(
    data: _Tensor, output_scale: _Tensor, output_zero_point: _Tensor, axis: int = -1, out_dtype: str | None = "int8"
) -> _Tensor: ...
def requantize(
    data: _Tensor,
    input_scale: _Tensor,
    input_zero_point: _Tensor,
    output_scale: _Tensor,
    output_zero_point: _Tensor,
    axis: int = -1,
    rounding: str = "None",
    compute_dtype: str = "None",
    out_dtype: str | None = "int8",
) -> _Tensor: ...
def rsqrt(
    x: _Tensor, scale: _Tensor, zero_point: _Tensor, output_scale: _Tensor, output_zero_point: _Tensor
) -> _Tensor: ...
def sigmoid(
    x: _Tensor, scale: _Tensor, zero_point: _Tensor, output_scale: _Tensor, output_zero_point: _Tensor
) -> _Tensor: ...
def simulated_dequantize(
    data: _Tensor, input_scale: _Tensor, input_zero_point: _Tensor, axis: int = -1, in_dtype: _Any = "int8"
) -> _Tensor: ...
def simulated_quantize(
    data: _Tensor, output_scale: _Tensor, output_zero_point: _Tensor, axis: int = -1, out_dtype: _Any = "int8"
) -> _Tensor: ...
def softmax(
    data: _Tensor,
    scale: _Tensor,
    zero_point: _Tensor,
    output_scale: _Tensor,
    output_zero_point: _Tensor,
    axis: int = -1,
) -> _Tensor: ...
def sqrt(
    x: _Tensor, scale: _Tensor, zero_point: _Tensor, output_scale: _Tensor, output_zero_point: _Tensor
) -> _Tensor: ...
def subtract(
    lhs: _Tensor,
    rhs: _Tensor,
    lhs_scale: _Tensor,
    lhs_zero_point: _Tensor,
    rhs_scale: _Tensor,
    rhs_zero_point: _Tensor,
    output_scale: _Tensor,
    output_zero_point: _Tensor,
    lhs_axis: int = -1,
    rhs_axis: int = -1,
) -> _Tensor: ...
def tanh(
    x: _Tensor, scale: _Tensor, zero_point: _Tensor, output_scale: _Tensor, output_zero_point: _Tensor
) -> _Tensor: ...
