"""The operators `nn.…`, as functions.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.relay.expr import Call as _Call
from mirstack.api.relay.expr import RelayExpr as _RelayExpr
from mirstack.api.relay.expr import TupleWrapper as _TupleWrapper
from mirstack.api.relay.op.composite import dropout as dropout
from mirstack.api.relay.op.composite import dropout_raw as dropout_raw
from mirstack.api.relay.op.composite import sparse_add as sparse_add
from mirstack.api.relay.op.composite import sparse_dense as sparse_dense
from mirstack.api.relay.op.composite import sparse_transpose as sparse_transpose
from mirstack.api.relay.op.make import Ints as _Ints
from mirstack.api.relay.op.make import Numbers as _Numbers

def adaptive_avg_pool1d(
    data: _RelayExpr, output_size: _Ints | None = None, layout: str = "NCW", out_layout: str = ""
) -> _Call: ...
def adaptive_avg_pool2d(
    data: _RelayExpr, output_size: _Ints | None = None, layout: str = "NCHW", out_layout: str = ""
) -> _Call: ...
def adaptive_avg_pool3d(
    data: _RelayExpr, output_size: _Ints | None = None, layout: str = "NCDHW", out_layout: str = ""
) -> _Call: ...
def adaptive_max_pool1d(
    data: _RelayExpr, output_size: _Ints | None = None, layout: str = "NCW", out_layout: str = ""
) -> _Call: ...
def adaptive_max_pool2d(
    data: _RelayExpr, output_size: _Ints | None = None, layout: str = "NCHW", out_layout: str = ""
) -> _Call: ...
def adaptive_max_pool3d(
    data: _RelayExpr, output_size: _Ints | None = None, layout: str = "NCDHW", out_layout: str = ""
) -> _Call: ...
def avg_pool1d(
    data: _RelayExpr,
    pool_size: _Ints = (1,),
    strides: _Ints = (1,),
    dilation: _Ints = (1,),
    padding: _Ints = (0,),
    layout: str = "NCW",
    out_layout: str = "",
    ceil_mode: bool = False,
    count_include_pad: bool = False,
) -> _Call: ...
def avg_pool2d(
    data: _RelayExpr,
    pool_size: _Ints = (1, 1),
    strides: _Ints = (1, 1),
    dilation: _Ints = (1, 1),
    padding: _Ints = (0, 0),
    layout: str = "NCHW",
    out_layout: str = "",
    ceil_mode: bool = False,
    count_include_pad: bool = False,
) -> _Call: ...
def avg_pool2d_grad(
    out_grad: _RelayExpr,
    data: _RelayExpr,
    pool_size: _Ints = (1, 1),
    strides: _Ints = (1, 1),
    padding: _Ints = (0, 0),
    layout: str = "NCHW",
    out_layout: str = "",
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> _Call: ...
def avg_pool3d(
    data: _RelayExpr,
    pool_size: _Ints = (1, 1, 1),
    strides: _Ints = (1, 1, 1),
    dilation: _Ints = (1, 1, 1),
    padding: _Ints = (0, 0, 0),
    layout: str = "NCDHW",
    out_layout: str = "",
    ceil_mode: bool = False,
    count_include_pad: bool = False,
) -> _Call: ...
def batch_flatten(data: _RelayExpr) -> _Call: ...
def batch_matmul(
    tensor_a: _RelayExpr,
    tensor_b: _RelayExpr,
    out_dtype: str | None = None,
    transpose_a: bool = False,
    transpose_b: bool = True,
) -> _Call: ...
def batch_norm(
    data: _RelayExpr,
    gamma: _RelayExpr,
    beta: _RelayExpr,
    moving_mean: _RelayExpr,
    moving_var: _RelayExpr,
    axis: int = 1,
    epsilon: float = 1e-05,
    center: bool = True,
    scale: bool = True,
) -> _TupleWrapper: ...
def batch_to_space_nd(data: _RelayExpr, block_shape: _Ints, crops: _Ints) -> _Call: ...
def bias_add(data: _RelayExpr, bias: _RelayExpr, axis: int = 1) -> _Call: ...
def bitpack(
    data: _RelayExpr,
    bits: int = 1,
    pack_axis: int = 1,
    bit_axis: int = -1,
    pack_type: str | None = None,
    name: str = "BitPack",
) -> _Call: ...
def bitserial_conv2d(
    data: _RelayExpr,
    weight: _RelayExpr,
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
) -> _Call: ...
def bitserial_dense(
    data: _RelayExpr,
    weight: _RelayExpr,
    units: int | None = None,
    data_bits: int = 1,
    weight_bits: int = 1,
    pack_dtype: str = "uint32",
    out_dtype: str = "int16",
    unipolar: bool = True,
) -> _Call: ...
def contrib_conv2d_NCHWc(
    data: _RelayExpr,
    weight: _RelayExpr,
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
) -> _Call: ...
def contrib_conv2d_gemm_weight_transform(weights: _RelayExpr, tile_N: int, tile_K: int) -> _Call: ...
def contrib_conv2d_gemm_without_weight_transform(
    data: _RelayExpr,
    weight: _RelayExpr,
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
) -> _Call: ...
def contrib_conv2d_nchwc(
    data: _RelayExpr,
    weight: _RelayExpr,
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
) -> _Call: ...
def contrib_conv2d_winograd_output_transform(products: _RelayExpr, tile_size: int, output_size: _Ints) -> _Call: ...
def contrib_conv2d_winograd_products(
    data: _RelayExpr, weight: _RelayExpr, tile_size: int, padding: _Ints = (0, 0)
) -> _Call: ...
def contrib_conv2d_winograd_weight_transform(weight: _RelayExpr, tile_size: int) -> _Call: ...
def contrib_conv2d_winograd_without_weight_transform(
    data: _RelayExpr,
    weight: _RelayExpr,
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
) -> _Call: ...
def contrib_conv3d_winograd_weight_transform(weight: _RelayExpr, tile_size: int) -> _Call: ...
def contrib_conv3d_winograd_without_weight_transform(
    data: _RelayExpr,
    weight: _RelayExpr,
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
) -> _Call: ...
def contrib_dense_pack(
    data: _RelayExpr,
    weight: _RelayExpr,
    weight_layout: str = "NC",
    units: int | None = None,
    out_dtype: str | None = None,
) -> _Call: ...
def contrib_depthwise_conv2d_NCHWc(
    data: _RelayExpr,
    weight: _RelayExpr,
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
) -> _Call: ...
def contrib_depthwise_conv2d_nchwc(
    data: _RelayExpr,
    weight: _RelayExpr,
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
) -> _Call: ...
def conv1d(
    data: _RelayExpr,
    weight: _RelayExpr,
    strides: _Ints = (1,),
    padding: _Ints = (0, 0),
    dilation: _Ints = (1,),
    groups: int = 1,
    channels: int | None = None,
    kernel_size: _Ints | None = None,
    data_layout: str = "NCW",
    kernel_layout: str = "OIW",
    out_layout: str = "",
    out_dtype: str | None = None,
) -> _Call: ...
def conv1d_transpose(
    data: _RelayExpr,
    weight: _RelayExpr,
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
) -> _Call: ...
def conv2d(
    data: _RelayExpr,
    weight: _RelayExpr,
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
) -> _Call: ...
def conv2d_backward_weight(
    grad: _RelayExpr,
    data: _RelayExpr,
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
) -> _Call: ...
def conv2d_transpose(
    data: _RelayExpr,
    weight: _RelayExpr,
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
) -> _Call: ...
def conv3d(
    data: _RelayExpr,
    weight: _RelayExpr,
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
) -> _Call: ...
def conv3d_transpose(
    data: _RelayExpr,
    weight: _RelayExpr,
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
) -> _Call: ...
def correlation(
    data1: _RelayExpr,
    data2: _RelayExpr,
    kernel_size: int,
    max_displacement: int,
    stride1: int,
    stride2: int,
    padding: _Ints,
    is_multiply: bool,
    layout: str,
) -> _Call: ...
def cross_entropy(predictions: _RelayExpr, targets: _RelayExpr) -> _Call: ...
def cross_entropy_with_logits(predictions: _RelayExpr, targets: _RelayExpr) -> _Call: ...
def deformable_conv2d(
    data: _RelayExpr,
    offset: _RelayExpr,
    weight: _RelayExpr,
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
) -> _Call: ...
def dense(data: _RelayExpr, weight: _RelayExpr, units: int | None = None, out_dtype: str | None = None) -> _Call: ...
def depth_to_space(data: _RelayExpr, block_size: int, layout: str = "NCHW", mode: str = "DCR") -> _Call: ...
def dilate(data: _RelayExpr, strides: _Ints, dilation_value: float = 0.0) -> _Call: ...
def fast_softmax(data: _RelayExpr, axis: int = -1) -> _Call: ...
def fifo_buffer(data: _RelayExpr, buffer: _RelayExpr, axis: int) -> _Call: ...
def global_avg_pool1d(data: _RelayExpr, layout: str = "NCW", out_layout: str = "") -> _Call: ...
def global_avg_pool2d(data: _RelayExpr, layout: str = "NCHW", out_layout: str = "") -> _Call: ...
def global_avg_pool3d(data: _RelayExpr, layout: str = "NCDHW", out_layout: str = "") -> _Call: ...
def global_max_pool1d(data: _RelayExpr, layout: str = "NCW", out_layout: str = "") -> _Call: ...
def global_max_pool2d(data: _RelayExpr, layout: str = "NCHW", out_layout: str = "") -> _Call: ...
def global_max_pool3d(data: _RelayExpr, layout: str = "NCDHW", out_layout: str = "") -> _Call: ...
def group_norm(
    data: _RelayExpr,
    gamma: _RelayExpr,
    beta: _RelayExpr,
    num_groups: int,
    axis: int = 1,
    epsilon: float = 1e-05,
    center: bool = True,
    scale: bool = True,
) -> _Call: ...
def instance_norm(
    data: _RelayExpr,
    gamma: _RelayExpr,
    beta: _RelayExpr,
    axis: int = 1,
    epsilon: float = 1e-05,
    center: bool = True,
    scale: bool = True,
) -> _Call: ...
def l2_normalize(data: _RelayExpr, eps: float, axis: _Ints | None = None) -> _Call: ...
def layer_norm(
    data: _RelayExpr,
    gamma: _RelayExpr,
    beta: _RelayExpr,
    axis: int = -1,
    epsilon: float = 1e-05,
    center: bool = True,
    scale: bool = True,
) -> _Call: ...
def leaky_relu(data: _RelayExpr, alpha: float = 0.01) -> _Call: ...
def log_softmax(data: _RelayExpr, axis: int = -1) -> _Call: ...
def lrn(
    data: _RelayExpr, size: int = 5, axis: int = 1, bias: float = 2.0, alpha: float = 1e-05, beta: float = 0.75
) -> _Call: ...
def matmul(
    tensor_a: _RelayExpr,
    tensor_b: _RelayExpr,
    units: int | None = None,
    out_dtype: str | None = None,
    transpose_a: bool = False,
    transpose_b: bool = False,
) -> _Call: ...
def matmul_nbits(
    data: _RelayExpr,
    weight: _RelayExpr,
    scales: _RelayExpr,
    zero_points: _RelayExpr,
    bits: int = 4,
    block_size: int = 32,
) -> _Call: ...
def max_pool1d(
    data: _RelayExpr,
    pool_size: _Ints = (1,),
    strides: _Ints = (1,),
    dilation: _Ints = (1,),
    padding: _Ints = (0,),
    layout: str = "NCW",
    out_layout: str = "",
    ceil_mode: bool = False,
) -> _Call: ...
def max_pool2d(
    data: _RelayExpr,
    pool_size: _Ints = (1, 1),
    strides: _Ints = (1, 1),
    dilation: _Ints = (1, 1),
    padding: _Ints = (0, 0),
    layout: str = "NCHW",
    out_layout: str = "",
    ceil_mode: bool = False,
) -> _Call: ...
def max_pool2d_grad(
    out_grad: _RelayExpr,
    data: _RelayExpr,
    pool_size: _Ints = (1, 1),
    strides: _Ints = (1, 1),
    padding: _Ints = (0, 0),
    layout: str = "NCHW",
    out_layout: str = "",
    ceil_mode: bool = False,
) -> _Call: ...
def max_pool3d(
    data: _RelayExpr,
    pool_size: _Ints = (1, 1, 1),
    strides: _Ints = (1, 1, 1),
    dilation: _Ints = (1, 1, 1),
    padding: _Ints = (0, 0, 0),
    layout: str = "NCDHW",
    out_layout: str = "",
    ceil_mode: bool = False,
) -> _Call: ...
def mirror_pad(data: _RelayExpr, pad_width: _Ints, mode: str = "SYMMETRIC") -> _Call: ...
def nll_loss(
    predictions: _RelayExpr, targets: _RelayExpr, weights: _RelayExpr, reduction: str = "mean", ignore_index: int = -100
) -> _Call: ...
def pad(
    data: _RelayExpr, pad_width: _Ints | _RelayExpr, pad_value: _RelayExpr | _Numbers = 0, pad_mode: str = "constant"
) -> _Call: ...
def prelu(data: _RelayExpr, alpha: _RelayExpr, axis: int = 1) -> _Call: ...
def relu(data: _RelayExpr) -> _Call: ...
def softmax(data: _RelayExpr, axis: int = -1) -> _Call: ...
def space_to_batch_nd(data: _RelayExpr, block_shape: _Ints, paddings: _Ints, pad_value: float = 0.0) -> _Call: ...
def space_to_depth(data: _RelayExpr, block_size: int, layout: str = "NCHW") -> _Call: ...
def sparse_conv2d(
    dense_data: _RelayExpr,
    sparse_data: _RelayExpr,
    sparse_indices: _RelayExpr,
    sparse_indptr: _RelayExpr,
    layout: str = "NHWC",
    kernel_size: _Ints = (1, 1),
) -> _Call: ...
def upsampling(
    data: _RelayExpr,
    scale_h: float | _RelayExpr = 1.0,
    scale_w: float | _RelayExpr = 1.0,
    layout: str = "NCHW",
    method: str = "nearest_neighbor",
    align_corners: bool = False,
) -> _Call: ...
def upsampling3d(
    data: _RelayExpr,
    scale_d: float | _RelayExpr = 1.0,
    scale_h: float | _RelayExpr = 1.0,
    scale_w: float | _RelayExpr = 1.0,
    layout: str = "NCDHW",
    method: str = "nearest_neighbor",
    coordinate_transformation_mode: str = "half_pixel",
) -> _Call: ...
