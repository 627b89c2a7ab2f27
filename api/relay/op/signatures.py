"""Signatures of TVM's functions that differ from the operator table in order, names or defaults.

An entry lists the parameters as a Python signature would. A parameter is an argument or an attribute of the operator of the
same name, or of the name after `@`. A parameter without a default keeps the table's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_POOL = "data, pool_size={one}, strides={one}, dilation={one}, padding={zero}, layout, out_layout, ceil_mode"
_TRANSPOSE = (
    "strides, padding, dilation, groups, channels, kernel_size, data_layout, kernel_layout, out_layout, output_padding, "
    "out_dtype"
)
_ONES = {1: "(1,)", 2: "(1, 1)", 3: "(1, 1, 1)"}
_ZEROS = {1: "(0,)", 2: "(0, 0)", 3: "(0, 0, 0)"}


def _pool(rank: int, extra: str = "") -> str:
    return _POOL.format(one=_ONES[rank], zero=_ZEROS[rank]) + extra


SIGNATURES: dict[str, str] = {
    "arange": "start, stop=None, step=None, dtype='float32'",
    "argsort": "data, axis, is_ascend, dtype='int32'",
    "broadcast_to": "data, shape",
    "clip": "a@data, a_min, a_max",
    "collapse_sum_to": "data, shape",
    "concatenate": "data, axis!",
    "gather": "data, axis, indices",
    "on_device": "body@data, device@virtual_device, constrain_result, constrain_body",
    "device_copy": "data, src_device@src_virtual_device, dst_device@dst_virtual_device",
    "mean": "data, axis, keepdims, exclude",
    "ndarray_size": "data, dtype='int32'",
    "one_hot": "indices, on_value, off_value, depth!, axis!, dtype!",
    "repeat": "data, repeats, axis!",
    "scatter_elements": "data, indices, updates, axis=0, reduction",
    "searchsorted": "sorted_sequence, values, right, dtype='int32'",
    "shape_of": "data, dtype='int32'",
    "slice_like": "data, shape_like@slice_like, axes",
    "sparse_to_dense": "sparse_indices, output_shape, sparse_values, default_value=0",
    "stack": "data, axis!",
    "strided_slice": "data, begin, end, strides, axes, slice_mode",
    "topk": "data, k=1, axis, ret_type, is_ascend, dtype='int32'",
    "unique": "data, is_sorted@sorted, return_counts",
    "unravel_index": "indices@data, shape",
    "variance": "data, axis, keepdims, exclude, unbiased, with_mean=None",
    "zeros": "shape!, dtype!",
    "ones": "shape!, dtype!",
    "image.affine_grid": "data, target_shape",
    "nn.avg_pool1d": _pool(1, ", count_include_pad"),
    "nn.avg_pool2d": _pool(2, ", count_include_pad"),
    "nn.avg_pool3d": _pool(3, ", count_include_pad"),
    "nn.max_pool1d": _pool(1),
    "nn.max_pool2d": _pool(2),
    "nn.max_pool3d": _pool(3),
    "nn.avg_pool2d_grad": (
        "out_grad, data, pool_size=(1, 1), strides, padding, layout, out_layout, ceil_mode, count_include_pad=True"
    ),
    "nn.max_pool2d_grad": "out_grad, data, pool_size=(1, 1), strides, padding, layout, out_layout, ceil_mode",
    "nn.batch_matmul": "tensor_a, tensor_b, out_dtype, transpose_a, transpose_b=True",
    "nn.contrib_dense_pack": "data, weight, weight_layout, units, out_dtype",
    "nn.conv1d_transpose": f"data, weight, {_TRANSPOSE}",
    "nn.conv2d_transpose": f"data, weight, {_TRANSPOSE}",
    "nn.conv3d_transpose": f"data, weight, {_TRANSPOSE}",
    "nn.correlation": "data1, data2, kernel_size!, max_displacement!, stride1!, stride2!, padding!, is_multiply!, layout!",
    "nn.cross_entropy": "predictions@x, targets@y",
    "nn.cross_entropy_with_logits": "predictions@x, targets@y",
    "nn.deformable_conv2d": (
        "data, offset, weight, strides, padding, dilation, deformable_groups, groups, channels, kernel_size, data_layout, "
        "kernel_layout, out_layout, out_dtype"
    ),
    "nn.dilate": "data@x, strides!, dilation_value",
    "nn.fifo_buffer": "data, buffer, axis!",
    "nn.leaky_relu": "data, alpha=0.01",
    "nn.lrn": "data, size, axis, bias, alpha=1e-05, beta",
    "nn.mirror_pad": "data, pad_width, mode",
    "nn.nll_loss": "predictions, targets, weights, reduction, ignore_index=-100",
    "nn.pad": "data, pad_width, pad_value=0, pad_mode",
    "nn.space_to_depth": "data, block_size, layout",
    "qnn.batch_matmul": (
        "x, y, x_zero_point, y_zero_point, x_scale, y_scale, out_dtype='int32', transpose_a, transpose_b=True"
    ),
    "qnn.concatenate": "data, input_scales, input_zero_points, output_scale, output_zero_point, axis!",
    "qnn.conv2d": (
        "data, kernel@weight, input_zero_point, kernel_zero_point, input_scale, kernel_scale, kernel_size!, channels!, "
        "strides, padding, dilation, groups, data_layout, kernel_layout, out_layout, out_dtype"
    ),
    "qnn.conv2d_transpose": (
        f"data, weight, input_zero_point, kernel_zero_point, input_scale, kernel_scale, {_TRANSPOSE}"
    ),
    "qnn.dense": "data, weight, input_zero_point, kernel_zero_point, input_scale, kernel_scale, units!, out_dtype",
    "qnn.dequantize": "data, input_scale, input_zero_point, axis, out_dtype='float32'",
    "qnn.quantize": "data, output_scale, output_zero_point, axis, out_dtype='int8'",
    "qnn.requantize": (
        "data, input_scale, input_zero_point, output_scale, output_zero_point, axis, rounding, compute_dtype, "
        "out_dtype='int8'"
    ),
    "random.normal": "key, shape@out_shape, dtype@out_dtype='float32', mean=0.0, scale=1.0",
    "random.uniform": "key, shape@out_shape, dtype@out_dtype='float32', low=0.0, high=1.0",
    "random.threefry_generate": "key, shape@out_shape",
    "vision.get_valid_counts": "data, score_threshold, id_index, score_index",
    "vision.non_max_suppression": (
        "data, valid_count, indices, max_output_size=-1, iou_threshold=0.5, force_suppress, top_k, coord_start, score_index, "
        "id_index, return_indices, invalid_to_bottom"
    ),
    "vision.proposal": (
        "cls_prob, bbox_pred, im_info, scales!, ratios!, feature_stride!, threshold!, rpn_pre_nms_top_n!, "
        "rpn_post_nms_top_n!, rpn_min_size!, iou_loss!"
    ),
    "vision.yolo_reorg": "data, stride!",
}

NUMBERS: dict[tuple[str, str], str | None] = {
    ("full", "fill_value"): None,
    ("full_like", "fill_value"): None,
    ("one_hot", "off_value"): None,
    ("one_hot", "on_value"): None,
    ("image.resize2d", "roi"): "float32",
    ("nn.pad", "pad_value"): None,
    ("nn.upsampling", "scale_h"): "float64",
    ("nn.upsampling", "scale_w"): "float64",
    ("nn.upsampling3d", "scale_d"): "float64",
    ("nn.upsampling3d", "scale_h"): "float64",
    ("nn.upsampling3d", "scale_w"): "float64",
    ("random.normal", "mean"): "float32",
    ("random.normal", "scale"): "float32",
    ("random.uniform", "high"): "float32",
    ("random.uniform", "low"): "float32",
    ("sparse_to_dense", "default_value"): None,
    ("trilu", "k"): "int64",
    ("vision.get_valid_counts", "score_threshold"): "float32",
    ("vision.non_max_suppression", "iou_threshold"): "float32",
    ("vision.non_max_suppression", "max_output_size"): "int32",
}
"""Arguments that may be given as a number, or list of numbers, with the dtype that it gets; None: Python's in Relay."""

LISTS = frozenset(
    [("collapse_sum_to", "shape"), ("strided_set", "begin"), ("strided_set", "end"), ("strided_set", "strides"),
     ("unravel_index", "shape")]
)  # fmt: skip
"""Arguments that may be given as lists of integers."""

RESULTS: dict[str, int | Callable[[dict[str, Any]], int]] = {
    "dft": 2,
    "meshgrid": lambda given: len(given["data"]),
    "nn.batch_norm": 3,
    "random.multinomial": 2,
    "random.normal": 2,
    "random.threefry_generate": 2,
    "random.threefry_split": 2,
    "random.uniform": 2,
    "sparse_fill_empty_rows": 3,
    "sparse_reshape": 2,
    "split": lambda given: _sections(given["indices_or_sections"]),
    "topk": lambda given: 2 if given["ret_type"] == "both" else 1,
    "unique": lambda given: 5 if given["return_counts"] else 4,
    "vision.get_valid_counts": 3,
    "vision.multibox_transform_loc": 2,
    "vision.non_max_suppression": lambda given: 2 if given["return_indices"] else 1,
}
"""The number of results of the operators with more than one."""

DYNAMIC = frozenset(
    [
        "broadcast_to",
        "expand_dims",
        "full",
        "image.resize2d",
        "nn.pad",
        "nn.upsampling",
        "nn.upsampling3d",
        "one_hot",
        "ones",
        "reshape",
        "sparse_to_dense",
        "squeeze",
        "strided_slice",
        "tile",
        "topk",
        "zeros",
    ]
)
"""Operators that have a form `dyn.` whose attributes are arguments: asking the table for one that is not there would import all of it."""

EITHER: dict[str, tuple[str, str, str]] = {
    "topk": ("ret_type", "'both'", "'values', 'indices'"),
    "vision.non_max_suppression": ("return_indices", "True", "False"),
}
"""Those with one result or several: the attribute that says so, its values for several, its values for one."""


def _sections(value: Any) -> int:
    return int(value) if hasattr(value, "__index__") else len(value) + 1


PADDED = frozenset(
    [f"nn.{kind}{rank}d" for kind in ("conv", "max_pool", "avg_pool") for rank in (1, 2, 3)]
    + [f"nn.conv{rank}d_transpose" for rank in (1, 2, 3)]
    + ["nn.deformable_conv2d", "nn.contrib_conv2d_NCHWc", "nn.contrib_depthwise_conv2d_NCHWc", "qnn.conv2d"]
    + ["qnn.conv2d_transpose", "qnn.avg_pool2d", "image.dilation2d"]
)
"""Operators whose padding TVM's functions write out for each side."""

FIXED: dict[str, dict[str, Any]] = {
    "image.resize1d": {"roi": (0.0,) * 2},
    "image.resize2d": {"roi": (0.0,) * 4},
    "image.resize3d": {"roi": (0.0,) * 6},
    "strided_slice": {"strides": (1,)},
}
"""The values that TVM's functions use for attributes that are not given."""
