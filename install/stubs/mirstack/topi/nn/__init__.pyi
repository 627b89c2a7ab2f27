"""`topi.nn`: the operators of networks on TE tensors.

Written by `python install/generate_stubs.py`, not by hand.
"""

from collections.abc import Sequence as _Sequence
from mirstack.api.relay.op.make import Ints as _Ints
from mirstack.dialects.te.tensor import Tensor as _Tensor
from mirstack.topi.nn import utils as utils
from typing import Any as _Any

def adaptive_avg_pool1d(
    data: _Tensor, output_size: _Ints | None = None, layout: str = "NCW", out_layout: str = ""
) -> _Tensor: ...
def adaptive_avg_pool2d(
    data: _Tensor, output_size: _Ints | None = None, layout: str = "NCHW", out_layout: str = ""
) -> _Tensor: ...
def adaptive_avg_pool3d(
    data: _Tensor, output_size: _Ints | None = None, layout: str = "NCDHW", out_layout: str = ""
) -> _Tensor: ...
def adaptive_max_pool1d(
    data: _Tensor, output_size: _Ints | None = None, layout: str = "NCW", out_layout: str = ""
) -> _Tensor: ...
def adaptive_max_pool2d(
    data: _Tensor, output_size: _Ints | None = None, layout: str = "NCHW", out_layout: str = ""
) -> _Tensor: ...
def adaptive_max_pool3d(
    data: _Tensor, output_size: _Ints | None = None, layout: str = "NCDHW", out_layout: str = ""
) -> _Tensor: ...
def adaptive_pool(data: _Tensor, output_size: _Any, pool_type: str, layout: str = "NCHW") -> _Tensor: ...
def adaptive_pool1d(data: _Tensor, output_size: _Any, pool_type: str, layout: str = "NCW") -> _Tensor: ...
def adaptive_pool3d(data: _Tensor, output_size: _Any, pool_type: str, layout: str = "NCDHW") -> _Tensor: ...
def avg_pool1d(
    data: _Tensor,
    pool_size: _Ints = (1,),
    strides: _Ints = (1,),
    dilation: _Ints = (1,),
    padding: _Ints = (0,),
    layout: str = "NCW",
    out_layout: str = "",
    ceil_mode: bool = False,
    count_include_pad: bool = False,
) -> _Tensor: ...
def avg_pool2d(
    data: _Tensor,
    pool_size: _Ints = (1, 1),
    strides: _Ints = (1, 1),
    dilation: _Ints = (1, 1),
    padding: _Ints = (0, 0),
    layout: str = "NCHW",
    out_layout: str = "",
    ceil_mode: bool = False,
    count_include_pad: bool = False,
) -> _Tensor: ...
def avg_pool2d_grad(
    out_grad: _Tensor,
    data: _Tensor,
    pool_size: _Ints = (1, 1),
    strides: _Ints = (1, 1),
    padding: _Ints = (0, 0),
    layout: str = "NCHW",
    out_layout: str = "",
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> _Tensor: ...
def avg_pool3d(
    data: _Tensor,
    pool_size: _Ints = (1, 1, 1),
    strides: _Ints = (1, 1, 1),
    dilation: _Ints = (1, 1, 1),
    padding: _Ints = (0, 0, 0),
    layout: str = "NCDHW",
    out_layout: str = "",
    ceil_mode: bool = False,
    count_include_pad: bool = False,
) -> _Tensor: ...
def batch_flatten(data: _Tensor) -> _Tensor: ...
def batch_matmul(
    tensor_a: _Tensor,
    tensor_b: _Tensor,
    oshape: _Any = None,
    out_dtype: str | None = None,
    transpose_a: bool = False,
    transpose_b: bool = True,
) -> _Tensor: ...
def batch_norm(
    data: _Tensor,
    gamma: _Tensor,
    beta: _Tensor,
    moving_mean: _Tensor,
    moving_var: _Tensor,
    axis: int | None = None,
    epsilon: float | None = None,
    center: bool | None = None,
    scale: bool | None = None,
    training: bool | None = None,
    momentum: float | None = None,
) -> _Any: ...
def batch_to_space_nd(
    data: _Tensor, block_shape: _Any, crop_begin_list: _Sequence[int], crop_end_list: _Sequence[int]
) -> _Tensor: ...
def bias_add(data: _Tensor, bias: _Tensor, axis: int = 1) -> _Tensor: ...
def binarize_pack(data: _Tensor, axis: int | None = None, name: str = "PackedInput") -> _Tensor: ...
def binary_dense(data: _Tensor, weight: _Tensor) -> _Tensor: ...
def bitpack(
    data: _Tensor,
    bits: int = 1,
    pack_axis: int = 1,
    bit_axis: int = -1,
    pack_type: str | None = None,
    name: str = "BitPack",
) -> _Tensor: ...
def bitserial_conv2d(
    data: _Tensor,
    weight: _Tensor,
    strides: _Ints = (1, 1),
    padding: _Ints = (0, 0),
    kernel_size: _Ints = (3, 3),
    channels: int | None = None,
    activation_bits: int = 1,
    weight_bits: int = 1,
    data_layout: str = "NCHW",
    kernel_layout: str = "OIHW",
    pack_dtype: str = "uint32",
    out_dtype: str = "int16",
    unipolar: bool = True,
) -> _Tensor: ...
def bitserial_dense(
    data: _Tensor,
    weight: _Tensor,
    units: int | None = None,
    data_bits: int = 1,
    weight_bits: int = 1,
    pack_dtype: str = "uint32",
    out_dtype: str = "int16",
    unipolar: bool = True,
) -> _Tensor: ...
def contrib_conv2d_NCHWc(
    data: _Tensor,
    weight: _Tensor,
    strides: _Ints = (1, 1),
    padding: _Ints = (0, 0),
    dilation: _Ints = (1, 1),
    groups: int = 1,
    channels: int | None = None,
    kernel_size: _Ints | None = None,
    data_layout: str = "NCHW",
    kernel_layout: str = "OIHW",
    out_layout: str = "",
    out_dtype: str | None = None,
) -> _Tensor: ...
def contrib_conv2d_gemm_weight_transform(weights: _Tensor, tile_N: int, tile_K: int) -> _Tensor: ...
def contrib_conv2d_gemm_without_weight_transform(
    data: _Tensor,
    weight: _Tensor,
    strides: _Ints = (1, 1),
    padding: _Ints = (0, 0),
    dilation: _Ints = (1, 1),
    groups: int = 1,
    channels: int | None = None,
    kernel_size: _Ints | None = None,
    data_layout: str = "NCHW",
    kernel_layout: str = "OIHW",
    out_layout: str = "",
    out_dtype: str | None = None,
) -> _Tensor: ...
def contrib_conv2d_nchwc(
    data: _Tensor,
    weight: _Tensor,
    strides: _Ints = (1, 1),
    padding: _Ints = (0, 0),
    dilation: _Ints = (1, 1),
    groups: int = 1,
    channels: int | None = None,
    kernel_size: _Ints | None = None,
    data_layout: str = "NCHW",
    kernel_layout: str = "OIHW",
    out_layout: str = "",
    out_dtype: str | None = None,
) -> _Tensor: ...
def contrib_conv2d_winograd_output_transform(products: _Tensor, tile_size: int, output_size: _Ints) -> _Tensor: ...
def contrib_conv2d_winograd_products(
    data: _Tensor, weight: _Tensor, tile_size: int, padding: _Ints = (0, 0)
) -> _Tensor: ...
def contrib_conv2d_winograd_weight_transform(weight: _Tensor, tile_size: int) -> _Tensor: ...
def contrib_conv2d_winograd_without_weight_transform(
    data: _Tensor,
    weight: _Tensor,
    tile_size: int,
    strides: _Ints = (1, 1),
    padding: _Ints = (0, 0),
    dilation: _Ints = (1, 1),
    groups: int = 1,
    channels: int | None = None,
    kernel_size: _Ints | None = None,
    data_layout: str = "NCHW",
    kernel_layout: str = "OIHW",
    out_layout: str = "",
    out_dtype: str | None = None,
) -> _Tensor: ...
def contrib_conv3d_winograd_weight_transform(weight: _Tensor, tile_size: int) -> _Tensor: ...
def contrib_conv3d_winograd_without_weight_transform(
    data: _Tensor,
    weight: _Tensor,
    tile_size: int,
    strides: _Ints = (1, 1, 1),
    padding: _Ints = (0, 0, 0),
    dilation: _Ints = (1, 1, 1),
    groups: int = 1,
    channels: int | None = None,
    kernel_size: _Ints | None = None,
    data_layout: str = "NCDHW",
    kernel_layout: str = "OIDHW",
    out_layout: str = "",
    out_dtype: str | None = None,
) -> _Tensor: ...
def contrib_dense_pack(
    data: _Tensor, weight: _Tensor, weight_layout: str = "NC", units: int | None = None, out_dtype: str | None = None
) -> _Tensor: ...
def contrib_depthwise_conv2d_NCHWc(
    data: _Tensor,
    weight: _Tensor,
    strides: _Ints = (1, 1),
    padding: _Ints = (0, 0),
    dilation: _Ints = (1, 1),
    groups: int = 1,
    channels: int | None = None,
    kernel_size: _Ints | None = None,
    data_layout: str = "NCHW",
    kernel_layout: str = "OIHW",
    out_layout: str = "",
    out_dtype: str | None = None,
) -> _Tensor: ...
def contrib_depthwise_conv2d_nchwc(
    data: _Tensor,
    weight: _Tensor,
    strides: _Ints = (1, 1),
    padding: _Ints = (0, 0),
    dilation: _Ints = (1, 1),
    groups: int = 1,
    channels: int | None = None,
    kernel_size: _Ints | None = None,
    data_layout: str = "NCHW",
    kernel_layout: str = "OIHW",
    out_layout: str = "",
    out_dtype: str | None = None,
) -> _Tensor: ...
def conv1d(
    data: _Tensor,
    kernel: _Tensor,
    strides: _Any = 1,
    padding: _Any = "VALID",
    dilation: _Any = 1,
    groups: int = 1,
    data_layout: str = "NCW",
    kernel_layout: str = "",
    out_dtype: str | None = None,
) -> _Tensor: ...
def conv1d_ncw(
    data: _Tensor,
    kernel: _Tensor,
    strides: _Any = 1,
    padding: _Any = "VALID",
    dilation: _Any = 1,
    out_dtype: str | None = None,
) -> _Tensor: ...
def conv1d_nwc(
    data: _Tensor,
    kernel: _Tensor,
    strides: _Any = 1,
    padding: _Any = "VALID",
    dilation: _Any = 1,
    out_dtype: str | None = None,
) -> _Tensor: ...
def conv1d_transpose(
    data: _Tensor,
    weight: _Tensor,
    strides: _Ints = (1,),
    padding: _Ints = (0, 0),
    dilation: _Ints = (1,),
    groups: int = 1,
    channels: int | None = None,
    kernel_size: _Ints | None = None,
    data_layout: str = "NCW",
    kernel_layout: str = "IOW",
    out_layout: str = "",
    output_padding: _Ints = (0,),
    out_dtype: str | None = None,
) -> _Tensor: ...
def conv1d_transpose_ncw(
    data: _Tensor, kernel: _Tensor, stride: _Any, padding: _Any, out_dtype: str, output_padding: _Any, groups: int = 1
) -> _Tensor: ...
def conv2d(
    input: _Tensor,
    filter: _Tensor,
    strides: _Any,
    padding: _Any,
    dilation: _Any,
    data_layout: str = "NCHW",
    kernel_layout: str = "",
    out_dtype: str | None = None,
) -> _Tensor: ...
def conv2d_NCHWc(
    data: _Tensor,
    kernel: _Tensor,
    stride: _Any,
    padding: _Any,
    dilation: _Any,
    layout: str,
    out_layout: str,
    out_dtype: str | None = None,
) -> _Tensor: ...
def conv2d_backward_weight(
    grad: _Tensor,
    data: _Tensor,
    strides: _Ints = (1, 1),
    padding: _Ints = (0, 0),
    dilation: _Ints = (1, 1),
    groups: int = 1,
    channels: int | None = None,
    kernel_size: _Ints | None = None,
    data_layout: str = "NCHW",
    kernel_layout: str = "OIHW",
    out_layout: str = "",
    out_dtype: str | None = None,
) -> _Tensor: ...
def conv2d_hwcn(
    Input: _Tensor, Filter: _Tensor, stride: _Any, padding: _Any, dilation: _Any, out_dtype: str | None = None
) -> _Tensor: ...
def conv2d_nchw(
    Input: _Tensor, Filter: _Tensor, stride: _Any, padding: _Any, dilation: _Any, out_dtype: str | None = None
) -> _Tensor: ...
def conv2d_nhwc(
    Input: _Tensor,
    Filter: _Tensor,
    stride: _Any,
    padding: _Any,
    dilation: _Any,
    out_dtype: str | None = "float32",
    auto_scheduler_rewritten_layout: str = "",
    meta_schedule_original_shape: _Any = None,
) -> _Tensor: ...
def conv2d_transpose(
    data: _Tensor,
    weight: _Tensor,
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
    out_dtype: str | None = None,
) -> _Tensor: ...
def conv2d_transpose_nchw(
    data: _Tensor, kernel: _Tensor, stride: _Any, padding: _Any, out_dtype: str, output_padding: _Any, groups: int = 1
) -> _Tensor: ...
def conv2d_winograd_nchw(
    data: _Tensor,
    weight: _Tensor,
    strides: _Any,
    padding: _Any,
    dilation: _Any,
    out_dtype: str | None = None,
    pre_computed: bool = False,
) -> _Tensor: ...
def conv2d_winograd_nhwc(
    data: _Tensor,
    weight: _Tensor,
    strides: _Any,
    padding: _Any,
    dilation: _Any,
    out_dtype: str | None = None,
    pre_computed: bool = False,
) -> _Tensor: ...
def conv3d(
    data: _Tensor,
    weight: _Tensor,
    strides: _Ints = (1, 1, 1),
    padding: _Ints = (0, 0, 0),
    dilation: _Ints = (1, 1, 1),
    groups: int = 1,
    channels: int | None = None,
    kernel_size: _Ints | None = None,
    data_layout: str = "NCDHW",
    kernel_layout: str = "OIDHW",
    out_layout: str = "",
    out_dtype: str | None = None,
) -> _Tensor: ...
def conv3d_ncdhw(
    Input: _Tensor,
    Filter: _Tensor,
    stride: _Any,
    padding: _Any,
    dilation: _Any,
    groups: int,
    out_dtype: str | None = None,
) -> _Tensor: ...
def conv3d_ndhwc(
    Input: _Tensor,
    Filter: _Tensor,
    stride: _Any,
    padding: _Any,
    dilation: _Any,
    groups: int,
    out_dtype: str | None = None,
) -> _Tensor: ...
def conv3d_transpose(
    data: _Tensor,
    weight: _Tensor,
    strides: _Ints = (1, 1, 1),
    padding: _Ints = (0, 0, 0),
    dilation: _Ints = (1, 1, 1),
    groups: int = 1,
    channels: int | None = None,
    kernel_size: _Ints | None = None,
    data_layout: str = "NCDHW",
    kernel_layout: str = "IODHW",
    out_layout: str = "",
    output_padding: _Ints = (0, 0, 0),
    out_dtype: str | None = None,
) -> _Tensor: ...
def conv3d_transpose_ncdhw(
    data: _Tensor, kernel: _Tensor, stride: _Any, padding: _Any, out_dtype: str, output_padding: _Any, groups: int = 1
) -> _Tensor: ...
def correlation(
    data1: _Tensor,
    data2: _Tensor,
    kernel_size: int,
    max_displacement: int,
    stride1: int,
    stride2: int,
    padding: _Ints,
    is_multiply: bool,
    layout: str,
) -> _Tensor: ...
def correlation_nchw(
    data1: _Tensor,
    data2: _Tensor,
    kernel_size: int,
    max_displacement: int,
    stride1: int,
    stride2: int,
    padding: _Any,
    is_multiply: bool,
) -> _Tensor: ...
def cross_entropy(predictions: _Tensor, targets: _Tensor) -> _Tensor: ...
def cross_entropy_with_logits(predictions: _Tensor, targets: _Tensor) -> _Tensor: ...
def deformable_conv2d(
    data: _Tensor,
    offset: _Tensor,
    weight: _Tensor,
    strides: _Ints = (1, 1),
    padding: _Ints = (0, 0),
    dilation: _Ints = (1, 1),
    deformable_groups: int = 1,
    groups: int = 1,
    channels: int | None = None,
    kernel_size: _Ints | None = None,
    data_layout: str = "NCHW",
    kernel_layout: str = "OIHW",
    out_layout: str = "",
    out_dtype: str | None = None,
) -> _Tensor: ...
def deformable_conv2d_nchw(
    data: _Tensor,
    offset: _Tensor,
    kernel: _Tensor,
    strides: _Any,
    padding: _Any,
    dilation: _Any,
    deformable_groups: int,
    groups: int,
    out_dtype: str | None = None,
) -> _Tensor: ...
def deformable_conv2d_nhwc(
    data: _Tensor,
    offset: _Tensor,
    kernel: _Tensor,
    strides: _Any,
    padding: _Any,
    dilation: _Any,
    deformable_groups: int,
    groups: int,
    out_dtype: str | None = None,
) -> _Tensor: ...
def dense(data: _Tensor, weight: _Tensor, bias: _Tensor | None = None, out_dtype: str | None = None) -> _Tensor: ...
def depth_to_space(data: _Tensor, block_size: int, layout: str = "NCHW", mode: str = "DCR") -> _Tensor: ...
def depthwise_conv2d_backward_input_nhwc(
    Filter: _Tensor, Out_grad: _Tensor, oshape: _Sequence[int], ishape: _Sequence[int], stride: _Any, padding: _Any
) -> _Tensor: ...
def depthwise_conv2d_backward_weight_nhwc(
    Input: _Tensor, Out_grad: _Tensor, oshape: _Sequence[int], fshape: _Sequence[int], stride: _Any, padding: _Any
) -> _Tensor: ...
def depthwise_conv2d_nchw(
    Input: _Tensor, Filter: _Tensor, stride: _Any, padding: _Any, dilation: _Any, out_dtype: str | None = None
) -> _Tensor: ...
def depthwise_conv2d_nhwc(
    Input: _Tensor,
    Filter: _Tensor,
    stride: _Any,
    padding: _Any,
    dilation: _Any,
    kernel_layout: str = "HWOI",
    out_dtype: str | None = None,
) -> _Tensor: ...
def dilate(data: _Tensor, strides: _Any, dilation_value: float = 0.0, name: str = "DilatedInput") -> _Tensor: ...
def dropout(data: _Tensor, rate: float = 0.5) -> _Tensor: ...
def dropout_raw(data: _Tensor, rate: float = 0.5) -> list[_Tensor]: ...
def elemwise_sum(xs: _Sequence[_Tensor]) -> _Tensor: ...
def fast_softmax(x: _Tensor, axis: int = -1) -> _Tensor: ...
def fifo_buffer(data: _Tensor, buffer: _Tensor, axis: int) -> _Tensor: ...
def flatten(data: _Tensor) -> _Tensor: ...
def global_avg_pool1d(data: _Tensor, layout: str = "NCW", out_layout: str = "") -> _Tensor: ...
def global_avg_pool2d(data: _Tensor, layout: str = "NCHW", out_layout: str = "") -> _Tensor: ...
def global_avg_pool3d(data: _Tensor, layout: str = "NCDHW", out_layout: str = "") -> _Tensor: ...
def global_max_pool1d(data: _Tensor, layout: str = "NCW", out_layout: str = "") -> _Tensor: ...
def global_max_pool2d(data: _Tensor, layout: str = "NCHW", out_layout: str = "") -> _Tensor: ...
def global_max_pool3d(data: _Tensor, layout: str = "NCDHW", out_layout: str = "") -> _Tensor: ...
def global_pool(data: _Tensor, pool_type: str, layout: str = "NCHW") -> _Tensor: ...
def group_conv1d_ncw(
    data: _Tensor,
    kernel: _Tensor,
    strides: _Any = 1,
    padding: _Any = "VALID",
    dilation: _Any = 1,
    groups: int = 1,
    out_dtype: str | None = None,
) -> _Tensor: ...
def group_conv1d_nwc(
    data: _Tensor,
    kernel: _Tensor,
    strides: _Any = 1,
    padding: _Any = "VALID",
    dilation: _Any = 1,
    groups: int = 1,
    out_dtype: str | None = None,
) -> _Tensor: ...
def group_conv1d_transpose_ncw(
    data: _Tensor, kernel: _Tensor, stride: _Any, padding: _Any, out_dtype: str, output_padding: _Any, groups: int = 1
) -> _Tensor: ...
def group_conv2d_nchw(
    Input: _Tensor,
    Filter: _Tensor,
    stride: _Any,
    padding: _Any,
    dilation: _Any,
    groups: int,
    out_dtype: str | None = None,
) -> _Tensor: ...
def group_conv2d_nhwc(
    Input: _Tensor,
    Filter: _Tensor,
    stride: _Any,
    padding: _Any,
    dilation: _Any,
    groups: int,
    out_dtype: str | None = None,
) -> _Tensor: ...
def group_conv2d_transpose_nchw(
    data: _Tensor, kernel: _Tensor, stride: _Any, padding: _Any, out_dtype: str, output_padding: _Any, groups: int = 1
) -> _Tensor: ...
def group_conv3d_transpose_ncdhw(
    data: _Tensor, kernel: _Tensor, stride: _Any, padding: _Any, out_dtype: str, output_padding: _Any, groups: int = 1
) -> _Tensor: ...
def group_norm(
    data: _Tensor,
    gamma: _Tensor,
    beta: _Tensor,
    num_groups: int,
    channel_axis: int,
    axes: _Sequence[int],
    epsilon: float = 1e-05,
) -> _Tensor: ...
def instance_norm(
    data: _Tensor, gamma: _Tensor, beta: _Tensor, channel_axis: int, axis: _Sequence[int], epsilon: float = 1e-05
) -> _Tensor: ...
def l2_normalize(data: _Tensor, eps: float, axis: _Ints | None = None) -> _Tensor: ...
def layer_norm(data: _Tensor, gamma: _Tensor, beta: _Tensor, axis: _Any, epsilon: float = 1e-05) -> _Tensor: ...
def leaky_relu(x: _Tensor, alpha: float) -> _Tensor: ...
def log_softmax(x: _Tensor, axis: int = -1) -> _Tensor: ...
def lrn(
    data: _Tensor, size: int, axis: int = 1, alpha: float = 0.0001, beta: float = 0.75, bias: float = 2.0
) -> _Tensor: ...
def matmul(
    tensor_a: _Tensor,
    tensor_b: _Tensor,
    bias: _Tensor | None = None,
    out_dtype: str | None = None,
    transpose_a: bool = False,
    transpose_b: bool = False,
) -> _Tensor: ...
def matmul_nbits(
    data: _Tensor, weight: _Tensor, scales: _Tensor, zero_points: _Tensor, bits: int = 4, block_size: int = 32
) -> _Tensor: ...
def max_pool1d(
    data: _Tensor,
    pool_size: _Ints = (1,),
    strides: _Ints = (1,),
    dilation: _Ints = (1,),
    padding: _Ints = (0,),
    layout: str = "NCW",
    out_layout: str = "",
    ceil_mode: bool = False,
) -> _Tensor: ...
def max_pool2d(
    data: _Tensor,
    pool_size: _Ints = (1, 1),
    strides: _Ints = (1, 1),
    dilation: _Ints = (1, 1),
    padding: _Ints = (0, 0),
    layout: str = "NCHW",
    out_layout: str = "",
    ceil_mode: bool = False,
) -> _Tensor: ...
def max_pool2d_grad(
    out_grad: _Tensor,
    data: _Tensor,
    pool_size: _Ints = (1, 1),
    strides: _Ints = (1, 1),
    padding: _Ints = (0, 0),
    layout: str = "NCHW",
    out_layout: str = "",
    ceil_mode: bool = False,
) -> _Tensor: ...
def max_pool3d(
    data: _Tensor,
    pool_size: _Ints = (1, 1, 1),
    strides: _Ints = (1, 1, 1),
    dilation: _Ints = (1, 1, 1),
    padding: _Ints = (0, 0, 0),
    layout: str = "NCDHW",
    out_layout: str = "",
    ceil_mode: bool = False,
) -> _Tensor: ...
def mirror_pad(
    data: _Tensor, pad_before: _Sequence[int], pad_after: _Sequence[int] | None = None, mode: str = "SYMMETRIC"
) -> _Tensor: ...
def nll_loss(
    predictions: _Tensor, targets: _Tensor, weights: _Tensor, reduction: str = "mean", ignore_index: int = -100
) -> _Tensor: ...
def pad(
    data: _Tensor, pad_before: _Sequence[int], pad_after: _Sequence[int] | None = None, pad_value: _Any = 0.0
) -> _Tensor: ...
def pool1d(
    data: _Tensor,
    kernel: _Any,
    stride: _Any,
    dilation: _Any,
    padding: _Any,
    pool_type: str,
    ceil_mode: bool = False,
    layout: str = "NCW",
    count_include_pad: bool = True,
) -> _Tensor: ...
def pool2d(
    data: _Tensor,
    kernel: _Any,
    stride: _Any,
    dilation: _Any,
    padding: _Any,
    pool_type: str,
    ceil_mode: bool = False,
    layout: str = "NCHW",
    count_include_pad: bool = True,
) -> _Tensor: ...
def pool3d(
    data: _Tensor,
    kernel: _Any,
    stride: _Any,
    dilation: _Any,
    padding: _Any,
    pool_type: str,
    ceil_mode: bool = False,
    layout: str = "NCDHW",
    count_include_pad: bool = True,
) -> _Tensor: ...
def pool_grad(
    grads: _Tensor,
    data: _Tensor,
    kernel: _Any,
    stride: _Any,
    padding: _Any,
    pool_type: str,
    ceil_mode: bool = False,
    layout: str = "NCHW",
    count_include_pad: bool = True,
) -> _Tensor: ...
def prelu(x: _Tensor, slope: _Tensor, axis: int = 1) -> _Tensor: ...
def relu(x: _Tensor) -> _Tensor: ...
def rms_norm(data: _Tensor, weight: _Tensor, axis: _Any, epsilon: float = 1e-05) -> _Tensor: ...
def scale_shift_nchw(Input: _Tensor, Scale: _Tensor, Shift: _Tensor) -> _Tensor: ...
def scale_shift_nchwc(Input: _Tensor, Scale: _Tensor, Shift: _Tensor) -> _Tensor: ...
def scale_shift_nhwc(Input: _Tensor, Scale: _Tensor, Shift: _Tensor) -> _Tensor: ...
def softmax(x: _Tensor, axis: int = -1) -> _Tensor: ...
def space_to_batch_nd(
    data: _Tensor, block_shape: _Any, pad_before: _Sequence[int], pad_after: _Sequence[int], pad_value: float = 0.0
) -> _Tensor: ...
def space_to_depth(data: _Tensor, block_size: int, layout: str = "NCHW") -> _Tensor: ...
def sparse_add(
    dense_data: _Tensor, sparse_data: _Tensor, sparse_indices: _Tensor, sparse_indptr: _Tensor
) -> _Tensor: ...
def sparse_conv2d(
    dense_data: _Tensor,
    sparse_data: _Tensor,
    sparse_indices: _Tensor,
    sparse_indptr: _Tensor,
    layout: str = "NHWC",
    kernel_size: _Ints = (1, 1),
) -> _Tensor: ...
def sparse_dense(
    dense_data: _Tensor, sparse_data: _Tensor, sparse_indices: _Tensor, sparse_indptr: _Tensor, sparse_lhs: bool = False
) -> _Tensor: ...
def sparse_dense_sp_lhs(
    data_data: _Tensor, data_indices: _Tensor, data_indptr: _Tensor, weight: _Tensor, sparse_lhs: bool = True
) -> _Tensor: ...
def sparse_dense_sp_rhs(
    data: _Tensor, weight_data: _Tensor, weight_indices: _Tensor, weight_indptr: _Tensor
) -> _Tensor: ...
def sparse_transpose(sparse_data: _Tensor, sparse_indices: _Tensor, sparse_indptr: _Tensor) -> _Tensor: ...
def strided_slice(
    a: _Tensor,
    begin: _Ints | _Tensor,
    end: _Ints | _Tensor,
    strides: _Ints | _Tensor | None = None,
    axes: _Ints | None = None,
    slice_mode: str = "end",
) -> _Tensor: ...
def upsampling(
    data: _Tensor,
    scale_h: float,
    scale_w: float,
    layout: str = "NCHW",
    method: str = "nearest_neighbor",
    align_corners: bool = False,
    output_shape: _Any = None,
) -> _Tensor: ...
def upsampling3d(
    data: _Tensor,
    scale_d: float,
    scale_h: float,
    scale_w: float,
    layout: str = "NCDHW",
    method: str = "nearest_neighbor",
    coordinate_transformation_mode: str = "half_pixel",
    output_shape: _Any = None,
) -> _Tensor: ...
