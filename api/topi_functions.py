"""TOPI's functions with other arguments than Relay's: their signatures, and composites of operators.

`SIGNATURES` is read as `relay.op.signatures` is; an entry may begin with the name of the operator that it calls. The functions
of `COMPOSITES` are called with Relay expressions in place of TE tensors, those of `COMPUTES` with the tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..dialects.relay.operators.indexing.te_select import te_argwhere_of, te_unique_of
from ..dialects.te.tensor import Tensor
from .relay.expr import RelayExpr, Tuple, Var, const
from .relay.op import find
from .relay.ty import TensorType

_RESIZED = (
    "data, roi!, size, layout, method, coordinate_transformation_mode, rounding_method, bicubic_alpha@cubic_alpha, "
    "bicubic_exclude@cubic_exclude, extrapolation_value, out_dtype"
)
_REDUCED = "data, axis, keepdims"

SIGNATURES: dict[str, str] = {
    **dict.fromkeys(("all", "any", "max", "min", "prod", "sum"), _REDUCED),
    **dict.fromkeys(("argmax", "argmin"), f"{_REDUCED}, select_last_index"),
    **{f"image.resize{rank}d": _RESIZED for rank in (1, 2, 3)},
    "concatenate": "a_tuple@data, axis=0",
    "flip": "reverse: a@data, axis=0",
    "searchsorted": "sorted_sequence, values, right, out_dtype@dtype='int64'",
    "shape": "shape_of: array@data, dtype='int32'",
    "sort": "data, axis, is_ascend",
    "stack": "tensors@data, axis=0",
    "topk": "data, k=1, axis, ret_type, is_ascend, dtype='int64'",
    "nn.flatten": "nn.batch_flatten: data",
    "nn.lrn": "data, size!, axis=1, alpha=0.0001, beta=0.75, bias=2.0",
    "random.normal": "gen@key, mean, scale, out_shape, out_dtype",
    "random.uniform": "gen@key, low, high, out_shape, out_dtype",
    "vision.reorg": "vision.yolo_reorg: data, stride!",
}
"""By TOPI's names."""


def _type(data: RelayExpr) -> TensorType:
    """Returns the type of a variable that represents a tensor."""
    type = data.type_annotation if isinstance(data, Var) else None
    if not isinstance(type, TensorType):
        raise TypeError(f"a tensor is wanted, not {data}")
    return type


def _shape(data: RelayExpr) -> tuple[int, ...]:
    """Returns the shape of a tensor. Raises TypeError if it is not known when the program is made."""
    return _type(data).concrete_shape


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
    value = fill_value if isinstance(fill_value, RelayExpr) else const(fill_value, _type(x).dtype)
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


def _conv1d(
    data: RelayExpr,
    kernel: RelayExpr,
    strides: Any = 1,
    padding: Any = "VALID",
    dilation: Any = 1,
    groups: int = 1,
    data_layout: str = "NCW",
    kernel_layout: str = "",
    out_dtype: str | None = None,
) -> RelayExpr:
    of = kernel_layout or {"NCW": "OIW", "NWC": "WIO"}[data_layout]
    padding = _padding(padding, [_shape(kernel)[of.index("W")]], strides, dilation)
    return find("nn.conv1d")(
        data, kernel, strides, padding, dilation, groups, data_layout=data_layout, kernel_layout=of, out_dtype=out_dtype
    )


def _conv2d(
    input: RelayExpr,
    filter: RelayExpr,
    strides: Any,
    padding: Any,
    dilation: Any,
    data_layout: str = "NCHW",
    kernel_layout: str = "",
    out_dtype: str | None = None,
) -> RelayExpr:
    of = kernel_layout or {"NCHW": "OIHW", "NHWC": "HWIO", "HWCN": "HWIO"}[data_layout]
    shape = _shape(filter)
    padding = _padding(padding, [shape[of.index(axis)] for axis in "HW"], strides, dilation)
    return find("nn.conv2d")(
        input, filter, strides, padding, dilation, data_layout=data_layout, kernel_layout=of, out_dtype=out_dtype
    )


def _padding(padding: Any, kernel: Sequence[int], strides: Any, dilation: Any) -> Any:
    """Padding in numbers: none for VALID, for SAME what keeps the size where the stride is 1."""
    if not isinstance(padding, str):
        return padding
    if padding == "VALID":
        return (0,) * len(kernel)
    if padding != "SAME":
        raise TypeError(f"padding is numbers, 'VALID' or 'SAME', not {padding!r}")
    along: list[int] = [dilation] * len(kernel) if isinstance(dilation, int) else list(dilation)
    sums = [(size - 1) * step for size, step in zip(kernel, along, strict=True)]
    return (*((total + 1) // 2 for total in sums), *(total // 2 for total in sums))


def _layer_norm(data: RelayExpr, gamma: RelayExpr, beta: RelayExpr, axis: Any, epsilon: float = 1e-5) -> RelayExpr:
    axes = [axis] if isinstance(axis, int) else list(axis)
    if len(axes) == 1:
        return find("nn.layer_norm")(data, gamma, beta, axes[0], epsilon)
    shape = _shape(data)
    axes = [each % len(shape) for each in axes]
    kept = [size if place in axes else 1 for place, size in enumerate(shape)]
    both = find("mean_variance")(data, axes, True)
    scale = find("rsqrt")(both[1] + const(epsilon, _type(data).dtype))
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
    rank = len(_shape(data))
    if {axis % rank for axis in axes} != set(range(rank)) - {axis % rank for axis in kept}:
        raise TypeError(f"topi.nn.{name} normalizes along all axes but the batch and the channels, not {tuple(axes)}")


COMPOSITES: dict[str, Callable[..., Any]] = {
    "adv_index": _adv_index,
    "argsort": _argsort,
    "einsum": _einsum,
    "full": _full,
    "full_like": _full_like,
    "nn.batch_matmul": _batch_matmul,
    "nn.batch_to_space_nd": _batch_to_space_nd,
    "nn.conv1d": _conv1d,
    "nn.conv2d": _conv2d,
    "nn.dense": _dense,
    "nn.group_norm": _group_norm,
    "nn.instance_norm": _instance_norm,
    "nn.layer_norm": _layer_norm,
    "nn.matmul": _matmul,
    "nn.mirror_pad": _mirror_pad,
    "nn.pad": _pad,
    "nn.space_to_batch_nd": _space_to_batch_nd,
}
"""Functions of Relay expressions, by TOPI's names."""


def _argwhere(output_shape: Tensor, condition: Tensor) -> Tensor:
    """The places of elements that are true, as many as `output_shape`, a tensor, has rows."""
    return te_argwhere_of(condition, output_shape.shape)


def _unique(data: Tensor, is_sorted: bool = True, return_counts: bool = False) -> list[Tensor]:
    """Returns the unique elements and their places, as long as `data`; the fourth result is their number."""
    return te_unique_of(data, data.shape[0], bool(is_sorted), 5 if return_counts else 4)


COMPUTES: dict[str, Callable[..., Any]] = {"argwhere": _argwhere, "unique": _unique}
"""Functions of TE tensors whose sizes TOPI chooses otherwise than Relay, by TOPI's names."""
