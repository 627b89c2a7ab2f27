"""TOPI's functions with other arguments than Relay's: their signatures, and composites of operators.

`SIGNATURES` is read as `relay.op.signatures` is; an entry may begin with the name of the operator that it calls. The functions
of `COMPOSITES` are called with Relay expressions in place of TE tensors, those of `COMPUTES` with the tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..relay.expr import RelayExpr, Tuple, const
from ..relay.op import find
from .convolution import CONVOLUTIONS
from .padding import shape_of, type_of
from .pooling import POOLS

_RESIZED = (
    "data, roi!, size, layout, method, coordinate_transformation_mode, rounding_method, bicubic_alpha@cubic_alpha, "
    "bicubic_exclude@cubic_exclude, extrapolation_value, out_dtype"
)
_REDUCED = "data, axis, keepdims"
_SPARSE = "sparse_data, sparse_indices, sparse_indptr"

_UNARY = (
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "erf", "exp", "fast_erf", "fast_exp",
    "fast_tanh", "floor", "isfinite", "isinf", "isnan", "log", "log10", "log2", "negative", "nn.relu", "round", "rsqrt",
    "sigmoid", "sign", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
)  # fmt: skip
"""Operators of one argument, which TOPI names `x`."""

SIGNATURES: dict[str, str] = {
    **{name: "x@data" for name in _UNARY},
    **dict.fromkeys(("all", "any", "max", "min", "prod", "sum"), _REDUCED),
    **dict.fromkeys(("argmax", "argmin"), f"{_REDUCED}, select_last_index"),
    **{f"image.resize{rank}d": _RESIZED for rank in (1, 2, 3)},
    "cast": "x@data, dtype",
    "clip": "x@data, a_min, a_max",
    "concatenate": "a_tuple@data, axis=0",
    "expand_dims": "a@data, axis, num_newaxis=1",
    "fixed_point_multiply": "x@data, multiplier, shift",
    "flip": "reverse: a@data, axis=0",
    "gather_nd": "a@data, indices, batch_dims",
    "identity": "copy: x@data",
    "layout_transform": "array@data, src_layout, dst_layout",
    "matmul": "nn.matmul: a@tensor_a, b@tensor_b, trans_a@transpose_a=False, trans_b@transpose_b=False",
    "meshgrid": "a_tuple@data, indexing",
    "ndarray_size": "array@data, dtype='int32'",
    "repeat": "a@data, repeats, axis",
    "reshape": "a@data, newshape",
    "reverse_sequence": "a@data, seq_lengths, seq_axis=1, batch_axis=0",
    "searchsorted": "sorted_sequence, values, right, out_dtype@dtype='int64'",
    "shape": "shape_of: array@data, dtype='int32'",
    "sort": "data, axis, is_ascend",
    "split": "ary@data, indices_or_sections, axis=0",
    "squeeze": "a@data, axis",
    "stack": "a@data, axis",
    "strided_set": "a@data, v, begin, end, strides",
    "strided_slice": "a@data, begin, end, strides, axes, slice_mode",
    "take": "a@data, indices, axis, batch_dims, mode",
    "tile": "a@data, reps",
    "topk": "data, k=1, axis, ret_type, is_ascend, dtype='int64'",
    "transpose": "a@data, axes",
    "nn.fast_softmax": "x@data, axis",
    "nn.flatten": "nn.batch_flatten: data",
    "nn.leaky_relu": "x@data, alpha!",
    "nn.log_softmax": "x@data, axis",
    "nn.lrn": "data, size!, axis=1, alpha=0.0001, beta=0.75, bias=2.0",
    "nn.prelu": "x@data, slope@alpha, axis=1",
    "nn.softmax": "x@data, axis",
    "nn.sparse_add": f"dense_data, {_SPARSE}",
    "nn.sparse_dense": f"dense_data, {_SPARSE}, sparse_lhs",
    "nn.sparse_dense_sp_lhs": (
        "nn.sparse_dense: data_data@sparse_data, data_indices@sparse_indices, data_indptr@sparse_indptr, weight@dense_data, "
        "sparse_lhs=True"
    ),
    "nn.sparse_dense_sp_rhs": (
        "nn.sparse_dense: data@dense_data, weight_data@sparse_data, weight_indices@sparse_indices, "
        "weight_indptr@sparse_indptr"
    ),
    "nn.sparse_transpose": _SPARSE,
    "nn.strided_slice": "strided_slice: a@data, begin, end, strides, axes, slice_mode",
    "random.normal": "gen@key, mean, scale, out_shape, out_dtype",
    "random.uniform": "gen@key, low, high, out_shape, out_dtype",
    "vision.reorg": "vision.yolo_reorg: data, stride!",
    "vision.multibox_prior": "data, sizes, ratios, steps, offsets, clip",
}
"""By TOPI's names."""


def _only(name: str, **given: Any) -> None:
    """Raises TypeError for arguments of TOPI's that have no meaning here."""
    for argument, value in given.items():
        if value is not None:
            raise TypeError(f"topi.{name} takes no {argument} but None")


def _argsort(
    data: RelayExpr, valid_count: Any = None, axis: int = -1, is_ascend: Any = 1, dtype: str = "float32"
) -> RelayExpr:
    _only("argsort", valid_count=valid_count)
    return find("argsort")(data, axis, bool(is_ascend), dtype)


def _einsum(subscripts: str, *operand: RelayExpr) -> RelayExpr:
    return find("einsum")(Tuple(operand), subscripts)


def _adv_index(data: RelayExpr, indices: Sequence[RelayExpr]) -> RelayExpr:
    return find("adv_index")(Tuple([data, *indices]))


def _full(shape: Any, dtype: str, fill_value: Any) -> RelayExpr:
    return find("full")(fill_value if isinstance(fill_value, RelayExpr) else const(fill_value, dtype), shape, dtype)


def _full_like(x: RelayExpr, fill_value: Any) -> RelayExpr:
    value = fill_value if isinstance(fill_value, RelayExpr) else const(fill_value, type_of(x).dtype)
    return find("full_like")(x, value)


def _pairs(before: Sequence[int], after: Sequence[int] | None) -> list[tuple[int, int]]:
    return list(zip(before, before if after is None else after, strict=True))


def _pad(
    data: RelayExpr, pad_before: Sequence[int], pad_after: Sequence[int] | None = None, pad_value: Any = 0.0
) -> RelayExpr:
    return find("nn.pad")(data, _pairs(pad_before, pad_after), pad_value)


def _mirror_pad(
    data: RelayExpr, pad_before: Sequence[int], pad_after: Sequence[int] | None = None, mode: str = "SYMMETRIC"
) -> RelayExpr:
    return find("nn.mirror_pad")(data, _pairs(pad_before, pad_after), mode)


def _space_to_batch_nd(
    data: RelayExpr, block_shape: Any, pad_before: Sequence[int], pad_after: Sequence[int], pad_value: float = 0.0
) -> RelayExpr:
    return find("nn.space_to_batch_nd")(data, block_shape, _pairs(pad_before, pad_after), pad_value)


def _batch_to_space_nd(
    data: RelayExpr, block_shape: Any, crop_begin_list: Sequence[int], crop_end_list: Sequence[int]
) -> RelayExpr:
    return find("nn.batch_to_space_nd")(data, block_shape, _pairs(crop_begin_list, crop_end_list))


def _dense(
    data: RelayExpr, weight: RelayExpr, bias: RelayExpr | None = None, out_dtype: str | None = None
) -> RelayExpr:
    result = find("nn.dense")(data, weight, None, out_dtype)
    return result if bias is None else find("add")(result, bias)


def _matmul(
    tensor_a: RelayExpr,
    tensor_b: RelayExpr,
    bias: RelayExpr | None = None,
    out_dtype: str | None = None,
    transpose_a: bool = False,
    transpose_b: bool = False,
) -> RelayExpr:
    result = find("nn.matmul")(tensor_a, tensor_b, None, out_dtype, transpose_a, transpose_b)
    return result if bias is None else find("add")(result, bias)


def _batch_matmul(
    tensor_a: RelayExpr,
    tensor_b: RelayExpr,
    oshape: Any = None,
    out_dtype: str | None = None,
    transpose_a: bool = False,
    transpose_b: bool = True,
) -> RelayExpr:
    _only("nn.batch_matmul", oshape=oshape)
    return find("nn.batch_matmul")(tensor_a, tensor_b, out_dtype, transpose_a, transpose_b)


def _layer_norm(data: RelayExpr, gamma: RelayExpr, beta: RelayExpr, axis: Any, epsilon: float = 1e-5) -> RelayExpr:
    axes = [axis] if isinstance(axis, int) else list(axis)
    if len(axes) == 1:
        return find("nn.layer_norm")(data, gamma, beta, axes[0], epsilon)
    shape = shape_of(data)
    axes = [each % len(shape) for each in axes]
    kept = [size if place in axes else 1 for place, size in enumerate(shape)]
    both = find("mean_variance")(data, axes, True)
    scale = find("rsqrt")(both[1] + const(epsilon, type_of(data).dtype))
    gamma, beta = (find("reshape")(each, kept) for each in (gamma, beta))
    return (data - both[0]) * scale * gamma + beta


def _instance_norm(
    data: RelayExpr, gamma: RelayExpr, beta: RelayExpr, channel_axis: int, axis: Sequence[int], epsilon: float = 1e-5
) -> RelayExpr:
    _all_but(data, "instance_norm", axis, {0, channel_axis})
    return find("nn.instance_norm")(data, gamma, beta, channel_axis, epsilon)


def _group_norm(
    data: RelayExpr,
    gamma: RelayExpr,
    beta: RelayExpr,
    num_groups: int,
    channel_axis: int,
    axes: Sequence[int],
    epsilon: float = 1e-5,
) -> RelayExpr:
    _all_but(data, "group_norm", axes, {0, channel_axis})
    return find("nn.group_norm")(data, gamma, beta, num_groups, channel_axis, epsilon)


def _all_but(data: RelayExpr, name: str, axes: Sequence[int], kept: set[int]) -> None:
    """Raises TypeError for other axes than all but some, which is all that the operator does."""
    rank = len(shape_of(data))
    if {axis % rank for axis in axes} != set(range(rank)) - {axis % rank for axis in kept}:
        raise TypeError(f"topi.nn.{name} normalizes along all axes but the batch and the channels, not {tuple(axes)}")


def _dilate(data: RelayExpr, strides: Any, dilation_value: float = 0.0, name: str = "DilatedInput") -> RelayExpr:
    return find("nn.dilate")(data, strides, dilation_value)


def _batch_norm(
    data: RelayExpr,
    gamma: RelayExpr,
    beta: RelayExpr,
    moving_mean: RelayExpr,
    moving_var: RelayExpr,
    axis: int | None = None,
    epsilon: float | None = None,
    center: bool | None = None,
    scale: bool | None = None,
    training: bool | None = None,
    momentum: float | None = None,
) -> Any:
    axis, epsilon = 1 if axis is None else axis, 1e-5 if epsilon is None else epsilon
    center, scale = center is not False, scale is not False
    if not training:
        return find("nn.batch_norm")(
            data, gamma, beta, moving_mean, moving_var, axis, epsilon, center, scale
        ).tuple_value
    shape = shape_of(data)
    axis %= len(shape)
    others = [each for each in range(len(shape)) if each != axis]
    kept = [size if place == axis else 1 for place, size in enumerate(shape)]
    step = 0.1 if momentum is None else momentum
    dtype = type_of(data).dtype
    mean, variance = find("mean")(data, others), find("variance")(data, others)
    result = (data - find("reshape")(mean, kept)) * find("rsqrt")(
        find("reshape")(variance, kept) + const(epsilon, dtype)
    )
    result = result * find("reshape")(gamma, kept) if scale else result
    result = result + find("reshape")(beta, kept) if center else result
    rest, new = const(1 - step, dtype), const(step, dtype)
    return Tuple([result, rest * moving_mean + new * mean, rest * moving_var + new * variance])


def _upsampling(
    data: RelayExpr,
    scale_h: float,
    scale_w: float,
    layout: str = "NCHW",
    method: str = "nearest_neighbor",
    align_corners: bool = False,
    output_shape: Any = None,
) -> RelayExpr:
    _only("nn.upsampling", output_shape=output_shape)
    return find("nn.upsampling")(data, scale_h, scale_w, layout, method, align_corners)


def _upsampling3d(
    data: RelayExpr,
    scale_d: float,
    scale_h: float,
    scale_w: float,
    layout: str = "NCDHW",
    method: str = "nearest_neighbor",
    coordinate_transformation_mode: str = "half_pixel",
    output_shape: Any = None,
) -> RelayExpr:
    _only("nn.upsampling3d", output_shape=output_shape)
    return find("nn.upsampling3d")(data, scale_d, scale_h, scale_w, layout, method, coordinate_transformation_mode)


def _stft(
    data: RelayExpr,
    n_fft: int,
    hop_length: int,
    win_length: int,
    window: RelayExpr,
    normalized: bool,
    onesided: bool,
    output_shape: Any = None,
) -> RelayExpr:
    return find("stft")(data, n_fft, hop_length, win_length, window, normalized, onesided)


def _roi_align(layout: str) -> Callable[..., RelayExpr]:
    def function(
        data: RelayExpr,
        rois: RelayExpr,
        pooled_size: Any,
        spatial_scale: float,
        mode: str | bytes,
        sample_ratio: int = -1,
        aligned: bool = False,
    ) -> RelayExpr:
        kind = mode.decode() if isinstance(mode, bytes) else mode
        size = (pooled_size, pooled_size) if hasattr(pooled_size, "__index__") else pooled_size
        return find("vision.roi_align")(data, rois, size, spatial_scale, sample_ratio, layout, kind, aligned)

    return function


def _roi_pool_nchw(data: RelayExpr, rois: RelayExpr, pooled_size: Any, spatial_scale: float) -> RelayExpr:
    size = (pooled_size, pooled_size) if hasattr(pooled_size, "__index__") else pooled_size
    return find("vision.roi_pool")(data, rois, size, spatial_scale)


COMPOSITES: dict[str, Callable[..., Any]] = {
    **CONVOLUTIONS,
    **POOLS,
    "adv_index": _adv_index,
    "argsort": _argsort,
    "einsum": _einsum,
    "full": _full,
    "full_like": _full_like,
    "nn.batch_matmul": _batch_matmul,
    "nn.batch_norm": _batch_norm,
    "nn.batch_to_space_nd": _batch_to_space_nd,
    "nn.dense": _dense,
    "nn.dilate": _dilate,
    "nn.group_norm": _group_norm,
    "nn.instance_norm": _instance_norm,
    "nn.layer_norm": _layer_norm,
    "nn.matmul": _matmul,
    "nn.mirror_pad": _mirror_pad,
    "nn.pad": _pad,
    "nn.space_to_batch_nd": _space_to_batch_nd,
    "nn.upsampling": _upsampling,
    "nn.upsampling3d": _upsampling3d,
    "stft": _stft,
    "vision.roi_align_nchw": _roi_align("NCHW"),
    "vision.roi_align_nhwc": _roi_align("NHWC"),
    "vision.roi_pool_nchw": _roi_pool_nchw,
}
"""Functions of Relay expressions, by TOPI's names."""
