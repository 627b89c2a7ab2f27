"""What the operator table says of uses that do not fit: operator, argument, dimension and types are named."""

from __future__ import annotations

import re

import pytest
from mirstack.dialects.relay.operator import all_operators
from mirstack.dialects.relay.operators.common.relations import ANY, tensor_type, tuple_type
from mirstack.fuzz.operators.relation import Postponed, Typing, infer
from mirstack.support.diagnostics import MirError
from xdsl.ir import Attribute


def of(text: str) -> Attribute:
    """`2,3:int32` as a tensor type, float32 unless said; several in parentheses, separated by blanks, as a tuple; `S` as a
    scalar of float32."""
    if text.startswith("("):
        return tuple_type(of(t) for t in text[1:-1].split())
    shape, _, dtype = text.removeprefix("S").partition(":")
    return tensor_type([ANY if d == "?" else int(d) for d in shape.split(",") if d], dtype or "float32")


ERRORS = [
    ("add", {}, "2,3 2,4", "add: arguments 'lhs' (Tensor[(2, 3), float32]) and 'rhs' (Tensor[(2, 4), float32]) do not broadcast: dimension 1 is 3 against 4"),
    ("add", {}, "2 2:int32", "add: arguments 'lhs' (Tensor[(2), float32]) and 'rhs' (Tensor[(2), int32]) have different dtypes"),
    ("equal", {}, "2 2:int32", "equal: arguments 'lhs' (Tensor[(2), float32]) and 'rhs' (Tensor[(2), int32]) have different dtypes"),
    ("cast", {"dtype": "flaot"}, "2", "cast: dtype='flaot' is not a dtype"),
    ("sum", {"axis": (2,)}, "2,3", "sum: axis=2 is out of range: the tensor has rank 2"),
    ("sum", {"axis": (0, -2)}, "2,3", "sum: axis=[0, -2] names an axis twice"),
    ("variance", {}, "2,3 2,3:int32", "variance: arguments 'data' (Tensor[(2, 3), float32]) and 'with_mean' (Tensor[(2, 3), int32]) have different dtypes"),
    ("full", {"shape": (2,)}, "3", "full: argument 'fill_value' (Tensor[(3), float32]) must have rank 0, not 1"),
    ("zeros", {"shape": (-2,)}, "", "zeros: the shape [-2] has a negative dimension"),
    ("zeros", {}, "", "zeros: shape must be given, as a list of integers"),
    ("nn.dense", {}, "2,3 4,5", "argument weight is Tensor[(4, 5), float32], not Tensor[(4, 3), float32]"),
    ("nn.dense", {"units": 7}, "2,3 4,3", "argument weight is Tensor[(4, 3), float32], not Tensor[(7, 3), float32]"),
    ("nn.dense", {}, "2,3 4,3,1", "nn.dense: argument 'weight' (Tensor[(4, 3, 1), float32]) must have rank 2, not 3"),
    ("nn.matmul", {"transpose_a": True}, "1,2,3 3,4", "nn.matmul: transpose_a needs a matrix, not 'tensor_a' (Tensor[(1, 2, 3), float32])"),
    ("nn.batch_matmul", {}, "2,3,4 2,5,6", "nn.batch_matmul: arguments 'tensor_a' (Tensor[(2, 3, 4), float32]) and 'tensor_b' (Tensor[(2, 5, 6), float32]) do not chain: rows of 4 elements against columns of 5"),
    ("nn.bias_add", {"axis": 1}, "2,3 2", "argument bias is Tensor[(2), float32], not Tensor[(3), float32]"),
    ("nn.bias_add", {"axis": 5}, "2,3 2", "nn.bias_add: axis=5 is out of range: the tensor has rank 2"),
    ("nn.softmax", {"axis": 3}, "2,3", "nn.softmax: axis=3 is out of range"),
    ("nn.conv2d", {"data_layout": "NCH"}, "1,2,3,3 4,2,1,1", "nn.conv2d: data_layout='NCH' is not a layout of the axes N, C, H, W"),
    ("nn.conv2d", {"groups": 2}, "1,4,3,3 3,2,1,1", "nn.conv2d: groups=2 does not divide the 3 filters of 'weight' (Tensor[(3, 2, 1, 1), float32])"),
    ("image.dilation2d", {}, "1,2,3,3 3,1,1", "image.dilation2d: 'weight' (Tensor[(3, 1, 1), float32]) has 3 channels, but 'data' (Tensor[(1, 2, 3, 3), float32]) has 2"),
    ("image.dilation2d", {}, "1,2,3,3 2,1,5", "image.dilation2d: the window is larger than 'data' (Tensor[(1, 2, 3, 3), float32]) with its padding along W"),
    ("nn.conv2d", {"padding": (1, 2, 3)}, "1,2,3,3 4,2,1,1", "nn.conv2d: padding=[1, 2, 3] must be 1, 2 or 4 numbers (before, then after)"),
    ("nn.conv2d", {"strides": (0, 1)}, "1,2,3,3 4,2,1,1", "nn.conv2d: strides=[0, 1] must be 2 positive numbers"),
    ("nn.conv2d", {}, "1,3,3,3 4,2,1,1", "nn.conv2d: 'weight' (Tensor[(4, 2, 1, 1), float32]) takes 2 channels in each of 1 groups, but 'data' (Tensor[(1, 3, 3, 3), float32]) has 3 channels"),
    ("nn.conv2d", {"groups": 2}, "1,3,3,3 4,2,1,1", "nn.conv2d: groups=2 does not divide the 3 channels of 'data'"),
    ("nn.conv2d", {}, "1,2,1,1 4,2,3,3", "nn.conv2d: the window is larger than 'data' (Tensor[(1, 2, 1, 1), float32]) with its padding along H"),
    ("nn.conv2d", {"kernel_size": (3, 3)}, "1,2,5,5 4,2,1,1", "nn.conv2d: kernel_size=[3, 3] is not that of 'weight'"),
    ("nn.conv2d", {"channels": 5}, "1,2,5,5 4,2,1,1", "nn.conv2d: channels=5, but 'weight' (Tensor[(4, 2, 1, 1), float32]) makes 4"),
    ("nn.conv2d", {"data_layout": "NCHW4c"}, "1,1,3,3,2 4,2,1,1", "nn.conv2d: argument 'data' has 2 where its layout NCHW4c has a block of 4 of axis C"),
    ("nn.conv2d_transpose", {}, "1,2,3,3 3,4,2,2", "nn.conv2d_transpose: 'weight' (Tensor[(3, 4, 2, 2), float32]) takes 3 channels, 'data' (Tensor[(1, 2, 3, 3), float32]) has 2"),
    ("nn.max_pool2d", {"pool_size": (2,)}, "1,2,3,3", "nn.max_pool2d: pool_size=[2] must be 2 positive numbers"),
    ("nn.max_pool2d", {"pool_size": (5, 5)}, "1,2,3,3", "nn.max_pool2d: the window is larger than 'data'"),
    ("nn.adaptive_avg_pool2d", {"output_size": (0,)}, "1,2,3,3", "nn.adaptive_avg_pool2d: output_size=[0] must be 1 or 2 positive numbers"),
    ("nn.batch_norm", {}, "1,3,2 3 4 3 3", "argument beta is Tensor[(4), float32], not Tensor[(3), float32]"),
    ("nn.lrn", {"size": 4}, "1,3,2", "nn.lrn: size=4 must be odd and positive"),
    ("nn.pad", {"pad_width": ((0, 1),), "pad_mode": "wrap"}, "2 S", "nn.pad: pad_mode='wrap' must be one of constant, edge, reflect"),
    ("nn.space_to_batch_nd", {"block_shape": (2,), "paddings": ((0, 0),)}, "1,3,2", "nn.space_to_batch_nd: axis 1 has 3 elements with padding, not a multiple of 2"),
    ("reshape", {"newshape": (4, 2)}, "2,3", "reshape: 'data' (Tensor[(2, 3), float32]) has 6 elements, the new shape (4, 2) has 8"),
    ("reshape", {"newshape": (-1, -1)}, "2,3", "newshape=[-1, -1] has two -1; one dimension can be inferred"),
    ("reshape", {"newshape": (4, -1)}, "2,3", "6 elements cannot be split into parts of 4"),
    ("reshape", {"newshape": (0, 0, 0)}, "2,3", "newshape=[0, 0, 0] refers to more dimensions than the 2 there are"),
    ("reshape", {"newshape": (-4, 4, 1, 0)}, "2,3", "a dimension of 2 cannot be split into 4 times 1"),
    ("reshape", {"newshape": (-5,)}, "2,3", "-5 has no meaning"),
    ("squeeze", {"axis": (1,)}, "1,3", "squeeze: 'data' (Tensor[(1, 3), float32]) has 3 elements along axis 1, not 1"),
    ("transpose", {"axes": (0,)}, "2,3", "transpose: axes=[0] must name each axis of 'data' (Tensor[(2, 3), float32]) once"),
    ("concatenate", {}, "(2,3 2,3,1)", "concatenate: field 1 (Tensor[(2, 3, 1), float32]) must have the rank and dtype of field 0 (Tensor[(2, 3), float32])"),
    ("concatenate", {"axis": 1}, "(2,3 4,3)", "concatenate: field 1 (Tensor[(4, 3), float32]) differs from field 0 (Tensor[(2, 3), float32]) in dimension 0: 4 against 2"),
    ("split", {"indices_or_sections": 2}, "3", "split: 'data' (Tensor[(3), float32]) has 3 elements along axis 0, not a multiple of 2"),
    ("split", {"indices_or_sections": "x"}, "3", "split: indices_or_sections must be a number of parts or a list of positions, not 'x'"),
    ("tile", {"reps": (0,)}, "3", "tile: reps=[0] must be positive"),
    ("broadcast_to", {"shape": (2, 4)}, "2,3", "broadcast_to: 'data' (Tensor[(2, 3), float32]) does not stretch to the shape (2, 4)"),
    ("collapse_sum_like", {}, "2,3 2,2", "collapse_sum_like: a tensor of shape (2, 2) does not stretch to 'data' (Tensor[(2, 3), float32])"),
    ("strided_slice", {"begin": (0, 0), "end": (1,)}, "3", "strided_slice: begin=[0, 0] has more entries than the 1 axes sliced"),
    ("slice_like", {}, "2,3 2", "slice_like: 'data' (Tensor[(2, 3), float32]) and 'slice_like' (Tensor[(2), float32]) differ in rank"),
    ("take", {"mode": "x"}, "3 2:int32", "take: mode='x' must be clip, wrap or fast"),
    ("gather", {"axis": 0}, "3 2", "gather: 'indices' (Tensor[(2), float32]) must be of an integer dtype"),
    ("gather_nd", {}, "3 2,4:int32", "gather_nd: 'indices' (Tensor[(2, 4), int32]) indexes 2 axes after 0 batch axes, more than 'data' (Tensor[(3), float32]) has"),
    ("one_hot", {"depth": 0}, "3:int32 S S", "one_hot: depth=0 must be positive"),
    ("layout_transform", {"src_layout": "NCHW", "dst_layout": "NCHW4c"}, "1,3,2,2", "layout_transform: axis C has 3 elements, which the blocks of layout NCHW4c (4) do not divide"),
    ("topk", {"k": 1, "ret_type": "x"}, "3", "topk: ret_type='x' must be both, values or indices"),
    ("einsum", {"equation": "ij,jk->ik"}, "(2,3 4,5)", "einsum: 'ij,jk->ik': the index j is 3 and 4"),
    ("einsum", {"equation": "ij->k"}, "(2,3)", "einsum: 'ij->k' is not an equation for 1 tensors of these ranks"),
    ("image.resize2d", {"size": (2,)}, "1,2,3,3", "image.resize2d: size=[2] must be 2 positive numbers"),
    ("image.resize2d", {"size": (2, 2), "method": "x"}, "1,2,3,3", "image.resize2d: method='x' must be one of nearest_neighbor, linear, cubic"),
    ("qnn.quantize", {"axis": 0}, "2,3 2:int32 :int32", "qnn.quantize: 'output_scale' (Tensor[(2), int32]) must be a scalar or a vector of 2 of float32"),
    ("qnn.requantize", {"rounding": "x"}, "3:int32 S :int32 S :int32", "qnn.requantize: rounding='x' must be UPWARD or TONEAREST"),
    ("dyn.reshape", {}, "2,3 2,2:int32", "dyn.reshape: argument 'newshape' (Tensor[(2, 2), int32]) must have rank 1, not 2"),
    ("reinterpret", {"dtype": "int64"}, "2", "reinterpret: int64 is not as wide as float32"),
    ("searchsorted", {}, "2,3 3,4", "searchsorted: 'sorted_sequence' (Tensor[(2, 3), float32]) and 'values' (Tensor[(3, 4), float32]) must have the same dimensions but the last"),
    ("meshgrid", {"indexing": "x"}, "(2 3)", "meshgrid: indexing='x' must be ij or xy"),
    ("meshgrid", {}, "(2 3,4)", "meshgrid: the tensors must be scalars or vectors"),
    ("trilu", {}, "3 :int32", "trilu: argument 'data' (Tensor[(3), float32]) must have rank 2 or more"),
    ("nn.dense", {}, "S 4,5", "nn.dense: argument 'data' (float32) must have rank 1 or more"),
    ("memory.alloc_tensor", {}, "8:uint8 :int64 1:int64", "memory.alloc_tensor: const_shape or assert_shape must give the shape"),
    ("dyn.reshape", {}, "2,3 ?:int64", "dyn.reshape: 'newshape' (Tensor[(?), int64]) must have a known length, which is the result's rank"),
    ("dyn.squeeze", {}, "2,3 3:int64", "dyn.squeeze: 'data' (Tensor[(2, 3), float32]) has fewer axes than 'axis' (Tensor[(3), int64]) names"),
    ("dyn.nn.pad", {"pad_mode": "wrap"}, "2,3 2,2:int64 S", "dyn.nn.pad: pad_mode='wrap' must be one of constant, edge, reflect"),
    ("image.crop_and_resize", {"crop_size": (2, 2)}, "1,2,3,3 1,3 1:int32", "image.crop_and_resize: 'boxes' (Tensor[(1, 3), float32]) must have rows (y1, x1, y2, x2), crop_size two numbers"),
    ("image.crop_and_resize", {"crop_size": (2, 2), "method": "cubic"}, "1,2,3,3 1,4 1:int32", "image.crop_and_resize: method='cubic' must be bilinear or nearest_neighbor"),
    ("image.crop_and_resize", {"crop_size": (2, 2)}, "1,2,3,3 1,4 2:int32", "image.crop_and_resize: 'boxes' (Tensor[(1, 4), float32]) and 'box_indices' (Tensor[(2), int32]) must be of as many boxes"),
    ("image.crop_and_resize", {"crop_size": (2, 2)}, "0,2,3,3 1,4 1:int32", "image.crop_and_resize: 'data' (Tensor[(0, 2, 3, 3), float32]) has no elements to take"),
    ("variance", {"axis": (1,), "keepdims": True}, "3,2 2,1", "variance: 'with_mean' (Tensor[(2, 1), float32]) does not broadcast to 'data' (Tensor[(3, 2), float32])"),
    ("qnn.dense", {}, "2,4:int8 3,4:int8 1:int32 2:int32 1:float32 1:float32", "qnn.dense: 'kernel_zero_point' (Tensor[(2), int32]) must be one number or one for each row of 'weight' (Tensor[(3, 4), int8])"),
    ("nn.deformable_conv2d", {"deformable_groups": 2}, "1,3,2,2 1,4,2,2 2,3,1,1", "nn.deformable_conv2d: deformable_groups=2 does not divide the 3 channels of 'data' (Tensor[(1, 3, 2, 2), float32])"),
    ("nn.deformable_conv2d", {}, "1,3,2,2 1,2,2,2 2,2,1,1", "nn.deformable_conv2d: 'weight' (Tensor[(2, 2, 1, 1), float32]) takes 2 channels in each of 1 groups, but 'data' (Tensor[(1, 3, 2, 2), float32]) has 3 channels"),
    ("nn.deformable_conv2d", {"groups": 2}, "1,4,2,2 1,2,2,2 3,2,1,1", "nn.deformable_conv2d: groups=2 does not divide the 3 filters of 'weight' (Tensor[(3, 2, 1, 1), float32])"),
    ("image.resize2d", {"size": (2, 2), "roi": (0.0, 1.0)}, "1,2,3,3", "image.resize2d: roi=[0.0, 1.0] must be 4 numbers, starts then ends"),
    ("take", {"axis": 1, "batch_dims": 2}, "2,3,4 2,3:int32", "take: batch_dims=2 must not be above axis=1 nor the rank of the indices"),
    ("take", {"axis": 1, "batch_dims": 1}, "2,3 4,3:int32", "take: 'data' (Tensor[(2, 3), float32]) and 'indices' (Tensor[(4, 3), int32]) differ in batch dimension 0"),
    ("take", {"axis": 0}, "0,3 2:int32", "take: 'data' (Tensor[(0, 3), float32]) has no elements to take"),
    ("gather", {"axis": 0}, "3,2 2,3:int32", "gather: 'data' (Tensor[(3, 2), float32]) and 'indices' (Tensor[(2, 3), int32]) must have the same dimensions except for axis 0"),
    ("gather_nd", {}, "3 ?,4:int32", "gather_nd: the first dimension of 'indices' must be known, or index_rank given"),
    ("sequence_mask", {"axis": 2}, "3,2 2:int32", "sequence_mask: axis=2 must be 0 or 1, and 'data' (Tensor[(3, 2), float32]) have rank 2 or more"),
    ("sequence_mask", {}, "3,2 3:int32", "sequence_mask: 'valid_length' (Tensor[(3), int32]) must have one length for each of 2 sequences"),
    ("reverse_sequence", {}, "3,2 2:int32", "reverse_sequence: 'seq_lengths' (Tensor[(2), int32]) must have one length for each place along batch_axis=0 of 'data' (Tensor[(3, 2), float32]), and seq_axis=1 be another axis"),
    ("layout_transform", {"src_layout": "nchw", "dst_layout": "NCHW"}, "1,3,2,2", "layout_transform: src_layout='nchw' is not a layout, such as NCHW or NCHW16c"),
    ("nn.conv2d_transpose", {"output_padding": (1, 2, 3)}, "1,2,3,3 2,4,2,2", "nn.conv2d_transpose: output_padding=[1, 2, 3] must be 1 or 2 numbers"),
    ("nn.batch_matmul", {}, "2,3,4 3,4,6", "nn.batch_matmul: arguments 'tensor_a' (Tensor[(2, 3, 4), float32]) and 'tensor_b' (Tensor[(3, 4, 6), float32]) have 2 and 3 matrices"),
    ("nn.contrib_dense_pack", {}, "2,3 2,4,8", "nn.contrib_dense_pack: 'data' (Tensor[(2, 3), float32]) has rows of 3, 'weight' (Tensor[(2, 4, 8), float32]) takes 4"),
    ("nn.group_norm", {"num_groups": 2}, "1,3,2 3 3", "nn.group_norm: num_groups=2 does not divide the 3 channels of 'data' (Tensor[(1, 3, 2), float32])"),
    ("nn.pad", {"pad_width": ((0, 1),)}, "2,3 S", "nn.pad: pad_width=[[0, 1]] must have a pair (before, after) for each of the 2 axes of 'data' (Tensor[(2, 3), float32])"),
    ("nn.pad", {"pad_width": ((-2, -2),)}, "3 S", "nn.pad: pad_width cuts away more than there is of 'data' (Tensor[(3), float32])"),
    ("nn.pad", {"pad_width": ((-2, 3),), "pad_mode": "edge"}, "3 S", "nn.pad: pad_width=[-2, 3] of axis 0 cuts elements away, which only nn.pad with pad_mode 'constant' does"),
    ("nn.mirror_pad", {"mode": "REFLECT", "pad_width": ((0, 0), (0, 1))}, "2,0", "nn.mirror_pad: axis 1 of 'data' (Tensor[(2, 0), float32]) has no elements to repeat"),
    ("nn.mirror_pad", {"mode": "EDGE", "pad_width": ((0, 1),)}, "3", "nn.mirror_pad: mode='EDGE' must be SYMMETRIC or REFLECT"),
    ("nn.space_to_batch_nd", {"block_shape": (0,), "paddings": ((0, 0),)}, "1,3,2", "nn.space_to_batch_nd: block_shape=[0] must be positive, one for each spatial axis"),
    ("nn.space_to_batch_nd", {"block_shape": (3,), "paddings": ((0, 0), (0, 0))}, "1,3,2", "nn.space_to_batch_nd: paddings must have a pair (before, after) for each entry of block_shape"),
    ("nn.batch_to_space_nd", {"block_shape": (2,), "crops": ((3, 4),)}, "2,3,2", "nn.batch_to_space_nd: crops=[[3, 4]] cut away more than there is"),
    ("nn.space_to_depth", {"block_size": 0}, "1,2,4,4", "nn.space_to_depth: block_size=0 must be positive"),
    ("nn.space_to_depth", {"block_size": 3}, "1,2,4,4", "nn.space_to_depth: axis H of 'data' (Tensor[(1, 2, 4, 4), float32]) is not a multiple of 3"),
    ("qnn.requantize", {"compute_dtype": "int8"}, "3:int32 S :int32 S :int32", "qnn.requantize: compute_dtype='int8' must be int64, float32 or float64"),
    ("qnn.concatenate", {}, "(2:int8 2:int8) S (:int32 :int32) S :int32", "qnn.concatenate: 'input_scales' (float32) must be a tuple, one for each tensor"),
    ("qnn.concatenate", {}, "(2:int8 2:int8) (:float32) (:int32 :int32) S :int32", "qnn.concatenate: 'input_scales' ((float32,)) must have 2 fields"),
    ("reshape_like", {}, "2,3 4,2", "reshape_like: 'data' (Tensor[(2, 3), float32]) has 6 elements, the new shape (4, 2) has 8"),
    ("expand_dims", {"axis": 0, "num_newaxis": -1}, "2,3", "expand_dims: num_newaxis must not be negative"),
    ("scatter_elements", {"axis": 0}, "3 2:int32 2:int32", "scatter_elements: 'updates' (Tensor[(2), int32]) must have the rank and dtype of 'data' (Tensor[(3), float32])"),
    ("scatter_nd", {}, "3,4 1,2:int32 2,3", "scatter_nd: 'updates' (Tensor[(2, 3), float32]) must have the shape (2, 4)"),
    ("sparse_to_dense", {"output_shape": (3, 4)}, "2,2,2:int32 2 S", "sparse_to_dense: 'sparse_indices' (Tensor[(2, 2, 2), int32]) must have rank 0, 1 or 2"),
    ("strided_set", {}, "4,5 2 2:int64 2:int64 2:int64", "strided_set: 'data' (Tensor[(4, 5), float32]) and 'v' (Tensor[(2), float32]) must have the same rank and dtype"),
    ("matrix_set_diag", {"k1": 0, "k2": 1}, "2,3,3 4,2,3", "matrix_set_diag: 'diagonal' (Tensor[(4, 2, 3), float32]) and 'input' (Tensor[(2, 3, 3), float32]) must be as many matrices, with 2 diagonals of each"),
    ("matrix_set_diag", {"k1": 0, "k2": 1}, "3,3 3", "matrix_set_diag: 'diagonal' (Tensor[(3), float32]) must hold the diagonals k1=0 to k2=1 of 'input' (Tensor[(3, 3), float32])"),
    ("strided_slice", {"begin": (0,), "end": (1,), "slice_mode": "x"}, "3", "strided_slice: slice_mode must be 'end' or 'size', not 'x'"),
    ("strided_slice", {"begin": (0,), "end": (1,), "strides": (0,)}, "3", "strided_slice: strides=[0]: a stride must not be 0"),
    ("slice_like", {}, "2,3 2,4", "slice_like: 'data' (Tensor[(2, 3), float32]) has fewer elements along axis 1 than 'slice_like' (Tensor[(2, 4), float32])"),
    ("concatenate", {}, "()", "concatenate: the tuple of tensors is empty"),
    ("split", {"indices_or_sections": (2, 1)}, "3", "split: the positions [2, 1] must ascend from 0 to 3, the size of axis 0"),
    ("repeat", {"repeats": 0}, "3", "repeat: repeats=0 must be positive"),
    ("broadcast_to_like", {}, "2,3 3", "broadcast_to_like: 'data' (Tensor[(2, 3), float32]) has more dimensions than the shape of 'broadcast_type' (Tensor[(3), float32])"),
    ("broadcast_to_like", {}, "2,3 2,4", "broadcast_to_like: 'data' (Tensor[(2, 3), float32]) does not stretch to the shape of 'broadcast_type' (Tensor[(2, 4), float32])"),
    ("full_like", {}, "2,3 3", "full_like: argument 'fill_value' (Tensor[(3), float32]) must have rank 0, not 1"),
    ("broadcast_to", {"shape": (2,)}, "2,2", "broadcast_to: 'data' (Tensor[(2, 2), float32]) has more dimensions than the shape (2,)"),
    ("vision.all_class_non_max_suppression", {}, "1,5,4 1,3,6 :int64 S S", "vision.all_class_non_max_suppression: 'boxes' (Tensor[(1, 5, 4), float32]) and 'scores' (Tensor[(1, 3, 6), float32]) differ in the number of boxes"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "attrs", "types", "message"), ERRORS)
def test_message(name: str, attrs: dict[str, object], types: str, message: str) -> None:
    operator = all_operators()[name]
    parsed = [of(given) for given in re.findall(r"\([^)]*\)|[^ ]+", types)]
    with pytest.raises(MirError) as error:
        infer(operator, attrs, parsed)
    assert message in str(error.value)


PROBLEMS = [
    ("clip", {"a_min": 0}, 1, "clip needs the attribute 'a_max', a number"),
    ("clip", {"a_min": 0, "a_max": "x"}, 1, "clip: the attribute 'a_max' must be a number, not 'x'"),
    ("sum", {"axes": 0}, 1, "sum has no attribute 'axes'; did you mean 'axis'?"),
    ("sum", {"axis": "x"}, 1, "sum: the attribute 'axis' must be a list of integers or None, not 'x'"),
    ("sum", {"keepdims": 2}, 1, "sum: the attribute 'keepdims' must be True or False, not 2"),
    ("nn.conv2d", {"data_layout": 1}, 2, "nn.conv2d: the attribute 'data_layout' must be a string, not 1"),
    ("nn.bias_add", {"axis": 1.5}, 2, "nn.bias_add: the attribute 'axis' must be an integer, not 1.5"),
    ("add", {}, 1, "add takes 2 arguments (lhs, rhs), not 1"),
    ("zeros", {"shape": (1,)}, 1, "zeros takes 0 arguments, not 1"),
]


@pytest.mark.parametrize(("name", "attrs", "count", "message"), PROBLEMS)
def test_problem(name: str, attrs: dict[str, object], count: int, message: str) -> None:
    assert all_operators()[name].problem(attrs, count) == message  # type: ignore[arg-type]


def test_attributes_are_converted() -> None:
    operator = all_operators()["clip"]
    assert operator.canonical({"a_min": 0, "a_max": 6}) == {"a_min": 0.0, "a_max": 6.0}
    assert all_operators()["sum"].canonical({"axis": 1, "keepdims": False}) == {"axis": (1,)}
    dense = all_operators()["nn.dense"]
    assert dense.canonical({"units": None, "out_dtype": ""}) == {"units": None}
    assert dense.attrs({}).units is None and dense.attrs({"units": 4})["units"] == 4


def test_untyped_arguments_follow() -> None:
    """A relation sets the types of weights that follow from the data and the attributes."""
    dense = Typing(all_operators()["nn.dense"], {"units": 4}, [of("2,3"), None])
    dense.operator.relation(dense)
    assert dense.types[1] == of("4,3") and dense.result == of("2,4")
    conv = Typing(
        all_operators()["nn.conv2d"],
        {"channels": 8, "kernel_size": (3, 2), "kernel_layout": "HWIO"},
        [of("1,4,5,5"), None],
    )
    conv.operator.relation(conv)
    assert conv.types[1] == of("3,2,4,8") and conv.result == of("1,8,3,4")
    norm = Typing(all_operators()["nn.batch_norm"], {}, [of("1,3,2"), None, None, None, None])
    norm.operator.relation(norm)
    assert norm.types[1:] == [of("3")] * 4
    quantized = Typing(all_operators()["qnn.requantize"], {"axis": 0}, [of("3:int32"), None, None, None, None])
    quantized.operator.relation(quantized)
    assert quantized.types[1:] == [of("3"), of("3:int32"), of(""), of(":int32")]


def test_an_unknown_argument_postpones() -> None:
    for name in ("add", "nn.relu", "nn.dense", "annotation.stop_fusion"):
        operator = all_operators()[name]
        with pytest.raises(Postponed):
            infer(operator, {}, [None] * len(operator.arguments))
