"""`topi.testing`: what operators compute, in numpy, and schedules by kind of operator, by TVM's names.

Written by `python install/generate_stubs.py`, not by hand.
"""

from collections.abc import Callable as _Callable
from mirstack.api.testing import assert_allclose as assert_allclose
from mirstack.api.topi.testing.convolutions import conv1d_ncw_python as conv1d_ncw_python
from mirstack.api.topi.testing.convolutions import conv1d_transpose_ncw_python as conv1d_transpose_ncw_python
from mirstack.api.topi.testing.convolutions import conv2d_hwcn_python as conv2d_hwcn_python
from mirstack.api.topi.testing.convolutions import conv2d_nchw_python as conv2d_nchw_python
from mirstack.api.topi.testing.convolutions import conv2d_nhwc_python as conv2d_nhwc_python
from mirstack.api.topi.testing.convolutions import conv2d_transpose_nchw_python as conv2d_transpose_nchw_python
from mirstack.api.topi.testing.convolutions import conv2d_transpose_nhwc_python as conv2d_transpose_nhwc_python
from mirstack.api.topi.testing.convolutions import conv3d_ncdhw_python as conv3d_ncdhw_python
from mirstack.api.topi.testing.convolutions import conv3d_ndhwc_python as conv3d_ndhwc_python
from mirstack.api.topi.testing.convolutions import conv3d_transpose_ncdhw_python as conv3d_transpose_ncdhw_python
from mirstack.api.topi.testing.convolutions import correlation_nchw_python as correlation_nchw_python
from mirstack.api.topi.testing.convolutions import deformable_conv2d_nchw_python as deformable_conv2d_nchw_python
from mirstack.api.topi.testing.convolutions import deformable_conv2d_nhwc_python as deformable_conv2d_nhwc_python
from mirstack.api.topi.testing.convolutions import depthwise_conv2d_python_nchw as _depthwise_conv2d_python_nchw
from mirstack.api.topi.testing.convolutions import depthwise_conv2d_python_nchw as depthwise_conv2d_python_nchw
from mirstack.api.topi.testing.convolutions import depthwise_conv2d_python_nhwc as depthwise_conv2d_python_nhwc
from mirstack.api.topi.testing.convolutions import dilate_python as dilate_python
from mirstack.api.topi.testing.convolutions import group_conv1d_ncw_python as group_conv1d_ncw_python
from mirstack.api.topi.testing.convolutions import (
    group_conv1d_transpose_ncw_python as group_conv1d_transpose_ncw_python,
)
from mirstack.api.topi.testing.images import affine_grid_python as affine_grid_python
from mirstack.api.topi.testing.images import crop_and_resize_python as crop_and_resize_python
from mirstack.api.topi.testing.images import grid_sample_python as grid_sample_python
from mirstack.api.topi.testing.images import resize1d_python as resize1d_python
from mirstack.api.topi.testing.images import resize2d_python as resize2d_python
from mirstack.api.topi.testing.images import resize3d_python as resize3d_python
from mirstack.api.topi.testing.images import roi_align_nchw_python as roi_align_nchw_python
from mirstack.api.topi.testing.images import roi_align_nhwc_python as roi_align_nhwc_python
from mirstack.api.topi.testing.images import roi_pool_nchw_python as roi_pool_nchw_python
from mirstack.api.topi.testing.images import upsampling3d_python as upsampling3d_python
from mirstack.api.topi.testing.images import upsampling_python as upsampling_python
from mirstack.api.topi.testing.networks import adaptive_pool as adaptive_pool
from mirstack.api.topi.testing.networks import batch_matmul as batch_matmul
from mirstack.api.topi.testing.networks import batch_norm as batch_norm
from mirstack.api.topi.testing.networks import dense as dense
from mirstack.api.topi.testing.networks import group_norm_python as group_norm_python
from mirstack.api.topi.testing.networks import instance_norm_python as instance_norm_python
from mirstack.api.topi.testing.networks import l2_normalize_python as l2_normalize_python
from mirstack.api.topi.testing.networks import layer_norm_python as layer_norm_python
from mirstack.api.topi.testing.networks import log_softmax_python as log_softmax_python
from mirstack.api.topi.testing.networks import lrn_python as lrn_python
from mirstack.api.topi.testing.networks import nll_loss as nll_loss
from mirstack.api.topi.testing.networks import pool_grad_nchw as pool_grad_nchw
from mirstack.api.topi.testing.networks import poolnd_python as poolnd_python
from mirstack.api.topi.testing.networks import relu_python as relu_python
from mirstack.api.topi.testing.networks import rms_norm_python as rms_norm_python
from mirstack.api.topi.testing.networks import softmax_python as softmax_python
from mirstack.api.topi.testing.schedules import compare_numpy_tvm as compare_numpy_tvm
from mirstack.api.topi.testing.schedules import dispatch as dispatch
from mirstack.api.topi.testing.schedules import get_conv2d_nchw_implement as get_conv2d_nchw_implement
from mirstack.api.topi.testing.tensors import batch_to_space_nd_python as batch_to_space_nd_python
from mirstack.api.topi.testing.tensors import depth_to_space_python as depth_to_space_python
from mirstack.api.topi.testing.tensors import gather_nd_python as gather_nd_python
from mirstack.api.topi.testing.tensors import gather_python as gather_python
from mirstack.api.topi.testing.tensors import matrix_set_diag as matrix_set_diag
from mirstack.api.topi.testing.tensors import one_hot as one_hot
from mirstack.api.topi.testing.tensors import reorg_python as reorg_python
from mirstack.api.topi.testing.tensors import searchsorted_ref as searchsorted_ref
from mirstack.api.topi.testing.tensors import sequence_mask as sequence_mask
from mirstack.api.topi.testing.tensors import slice_axis_python as slice_axis_python
from mirstack.api.topi.testing.tensors import space_to_batch_nd_python as space_to_batch_nd_python
from mirstack.api.topi.testing.tensors import space_to_depth_python as space_to_depth_python
from mirstack.api.topi.testing.tensors import strided_set_python as strided_set_python
from mirstack.api.topi.testing.tensors import strided_slice_python as strided_slice_python
from mirstack.lowering.te.schedule.frontend import Schedule as _Schedule
from typing import Any as _Any

depthwise_conv2d_python = _depthwise_conv2d_python_nchw

def get_broadcast_schedule(target: _Any) -> _Callable[..., _Schedule]: ...
def get_elemwise_schedule(target: _Any) -> _Callable[..., _Schedule]: ...
def get_injective_schedule(target: _Any) -> _Callable[..., _Schedule]: ...
def get_reduce_schedule(target: _Any) -> _Callable[..., _Schedule]: ...
