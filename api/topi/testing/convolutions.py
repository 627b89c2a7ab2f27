"""Convolutions and what is related to them, in numpy; the arguments are those of TVM's references."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from ..padding import get_pad_tuple_generic

__all__ = [
    "conv1d_ncw_python", "conv1d_transpose_ncw_python", "conv2d_hwcn_python", "conv2d_nchw_python", "conv2d_nhwc_python",
    "conv2d_transpose_nchw_python", "conv2d_transpose_nhwc_python", "conv3d_ncdhw_python", "conv3d_ndhwc_python",
    "conv3d_transpose_ncdhw_python", "correlation_nchw_python", "deformable_conv2d_nchw_python",
    "deformable_conv2d_nhwc_python", "depthwise_conv2d_python", "depthwise_conv2d_python_nchw",
    "depthwise_conv2d_python_nhwc", "dilate_python", "group_conv1d_ncw_python", "group_conv1d_transpose_ncw_python",
]  # fmt: skip

Array = np.ndarray[Any, Any]


def _places(count: int) -> Any:
    return np.arange(count)


def _each(value: Any, rank: int) -> list[int]:
    if hasattr(value, "__index__"):
        return [int(value)] * rank
    items = [int(each) for each in value]
    return items * rank if len(items) == 1 else items


def _padded(data: Array, before: Sequence[int], after: Sequence[int]) -> Array:
    return np.pad(data, [(0, 0), (0, 0), *zip(before, after, strict=True)])


def _conv(data: Array, weight: Array, stride: Any, padding: Any, groups: int = 1, dilation: Any = 1) -> Array:
    """Returns the convolution of data (N, C, …) by weights (O, I, …), of any number of further axes."""
    rank = data.ndim - 2
    strides, steps = _each(stride, rank), _each(dilation, rank)
    size = [(extent - 1) * step + 1 for extent, step in zip(weight.shape[2:], steps, strict=True)]
    data = _padded(data, *get_pad_tuple_generic(padding, size))
    outs = [(extent - of) // step + 1 for extent, of, step in zip(data.shape[2:], size, strides, strict=True)]
    inner = data.shape[1] // groups
    many = weight.shape[0] // groups
    result = np.zeros((data.shape[0], weight.shape[0], *outs), np.result_type(data, weight))
    for tap in product(*map(range, weight.shape[2:])):
        place = tuple(
            slice(at * step, at * step + (out - 1) * stride_ + 1, stride_)
            for at, step, out, stride_ in zip(tap, steps, outs, strides, strict=True)
        )
        seen, of = data[(slice(None), slice(None), *place)], weight[(slice(None), slice(None), *tap)]
        for group in range(groups):
            part = np.tensordot(
                of[group * many : (group + 1) * many], seen[:, group * inner : (group + 1) * inner], ((1,), (1,))
            )
            result[:, group * many : (group + 1) * many] += np.moveaxis(part, 0, 1)
    return result


def dilate_python(
    input_np: Array, strides: Sequence[int], dilation_value: float = 0.0, out_dtype: str | None = None
) -> Array:
    """Returns an array with `strides[i] - 1` elements of a value between those along each axis."""
    shape = [(extent - 1) * step + 1 for extent, step in zip(input_np.shape, strides, strict=True)]
    result = np.full(shape, dilation_value, out_dtype or input_np.dtype)
    result[tuple(slice(None, None, step) for step in strides)] = input_np
    return result


def _conv_transpose(
    data: Array, weight: Array, stride: Any, padding: Any, output_padding: Any, groups: int = 1
) -> Array:
    """Returns the transposed convolution of data (N, C, …) by weights (I, O, …)."""
    rank = data.ndim - 2
    size = weight.shape[2:]
    before, after = get_pad_tuple_generic(padding, size)
    more = _each(output_padding, rank)
    data = dilate_python(data, [1, 1, *_each(stride, rank)])
    low = [extent - 1 - pad for extent, pad in zip(size, before, strict=True)]
    high = [extent - 1 - pad + extra for extent, pad, extra in zip(size, after, more, strict=True)]
    data = _padded(data, [max(each, 0) for each in low], [max(each, 0) for each in high])
    cut = tuple(slice(-min(a, 0), extent + min(b, 0)) for a, b, extent in zip(low, high, data.shape[2:], strict=True))
    data = data[(slice(None), slice(None), *cut)]
    flipped = np.flip(weight, tuple(range(2, weight.ndim)))
    inner = weight.shape[0] // groups
    parts = [flipped[group * inner : (group + 1) * inner].swapaxes(0, 1) for group in range(groups)]
    return _conv(data, np.concatenate(parts), 1, [0] * rank, groups)


def conv1d_ncw_python(a_np: Array, w_np: Array, stride: Any, padding: Any, dilation: Any) -> Array:
    """Returns the convolution of (N, C, W) by (O, I, W)."""
    return _conv(a_np, w_np, stride, padding, 1, dilation)


def group_conv1d_ncw_python(a_np: Array, w_np: Array, stride: Any, padding: Any, dilation: Any, groups: int) -> Array:
    """Returns the convolution of (N, C, W) by (O, I, W) in groups."""
    return _conv(a_np, w_np, stride, padding, groups, dilation)


def conv2d_nchw_python(a_np: Array, w_np: Array, stride: Any, padding: Any, groups: int = 1) -> Array:
    """Returns the convolution of (N, C, H, W) by (O, I, H, W)."""
    return _conv(a_np, w_np, stride, padding, groups)


def conv2d_nhwc_python(a_np: Array, w_np: Array, stride: Any, padding: Any, groups: int = 1) -> Array:
    """Returns the convolution of (N, H, W, C) by (H, W, I, O)."""
    result = _conv(a_np.transpose(0, 3, 1, 2), w_np.transpose(3, 2, 0, 1), stride, padding, groups)
    return result.transpose(0, 2, 3, 1)


def conv2d_hwcn_python(a_np: Array, w_np: Array, stride: Any, padding: Any) -> Array:
    """Returns the convolution of (H, W, C, N) by (H, W, I, O)."""
    result = _conv(a_np.transpose(3, 2, 0, 1), w_np.transpose(3, 2, 0, 1), stride, padding)
    return result.transpose(2, 3, 1, 0)


def conv3d_ncdhw_python(a_np: Array, w_np: Array, stride: Any, padding: Any, groups: int = 1) -> Array:
    """Returns the convolution of (N, C, D, H, W) by (O, I, D, H, W)."""
    return _conv(a_np, w_np, stride, padding, groups)


def conv3d_ndhwc_python(a_np: Array, w_np: Array, stride: Any, padding: Any, groups: int = 1) -> Array:
    """Returns the convolution of (N, D, H, W, C) by (D, H, W, I, O)."""
    result = _conv(a_np.transpose(0, 4, 1, 2, 3), w_np.transpose(4, 3, 0, 1, 2), stride, padding, groups)
    return result.transpose(0, 2, 3, 4, 1)


def conv1d_transpose_ncw_python(
    a_np: Array, w_np: Array, stride: Any, padding: Any, output_padding: Any = (0,)
) -> Array:
    """Returns the transposed convolution of (N, C, W) by (I, O, W)."""
    return _conv_transpose(a_np, w_np, stride, padding, output_padding)


def group_conv1d_transpose_ncw_python(
    a_np: Array, w_np: Array, stride: Any, padding: Any, output_padding: Any = (0,), groups: int = 1
) -> Array:
    """Returns the transposed convolution of (N, C, W) by (I, O, W) in groups."""
    return _conv_transpose(a_np, w_np, stride, padding, output_padding, groups)


def conv2d_transpose_nchw_python(
    a_np: Array, w_np: Array, stride: Any, padding: Any, output_padding: Any, groups: int = 1
) -> Array:
    """Returns the transposed convolution of (N, C, H, W) by (I, O, H, W)."""
    return _conv_transpose(a_np, w_np, stride, padding, output_padding, groups)


def conv2d_transpose_nhwc_python(
    a_nhwc: Array, weight: Array, weight_format: str, stride: Any, padding: Any, output_padding: Any = (0, 0)
) -> Array:
    """Returns the transposed convolution of (N, H, W, C) by weights of a layout such as HWIO."""
    order = [weight_format.index(axis) for axis in "IOHW"]
    result = _conv_transpose(a_nhwc.transpose(0, 3, 1, 2), weight.transpose(order), stride, padding, output_padding)
    return result.transpose(0, 2, 3, 1)


def conv3d_transpose_ncdhw_python(a_np: Array, w_np: Array, stride: Any, padding: Any, output_padding: Any) -> Array:
    """Returns the transposed convolution of (N, C, D, H, W) by (I, O, D, H, W)."""
    return _conv_transpose(a_np, w_np, stride, padding, output_padding)


def depthwise_conv2d_python_nchw(input_np: Array, filter_np: Array, stride: Any, padding: Any) -> Array:
    """Returns the convolution of each channel of (N, C, H, W) by those of (C, M, H, W)."""
    channels, many, *size = filter_np.shape
    return _conv(input_np, filter_np.reshape(channels * many, 1, *size), stride, padding, channels)


def depthwise_conv2d_python_nhwc(input_np: Array, filter_np: Array, stride: Any, padding: Any) -> Array:
    """Returns the convolution of each channel of (N, H, W, C) by those of (H, W, C, M)."""
    data, weight = input_np.transpose(0, 3, 1, 2), filter_np.transpose(2, 3, 0, 1)
    return depthwise_conv2d_python_nchw(data, weight, stride, padding).transpose(0, 2, 3, 1)


depthwise_conv2d_python = depthwise_conv2d_python_nchw


def correlation_nchw_python(
    data1: Array,
    data2: Array,
    kernel_size: int,
    max_displacement: int,
    stride1: int,
    stride2: int,
    padding: Any,
    is_multiply: bool,
) -> Array:
    """Returns how well patches of one image match those of another that are displaced."""
    top, left, bottom, right = _sides(padding)
    one, two = (np.pad(each, ((0, 0), (0, 0), (top, bottom), (left, right))) for each in (data1, data2))
    radius = (kernel_size - 1) // 2
    border, steps = max_displacement + radius, max_displacement // stride2
    height = -(-(one.shape[2] - 2 * border) // stride1)
    width = -(-(one.shape[3] - 2 * border) // stride1)
    shifts = list(product(range(-steps, steps + 1), repeat=2))
    result = np.zeros((data1.shape[0], len(shifts), height, width), data1.dtype)
    for channel, (down, along) in enumerate(shifts):
        for i, j in product(range(height), range(width)):
            y, x = i * stride1 + max_displacement, j * stride1 + max_displacement
            v, u = y + down * stride2, x + along * stride2
            a = one[:, :, y : y + kernel_size, x : x + kernel_size]
            b = two[:, :, v : v + kernel_size, u : u + kernel_size]
            result[:, channel, i, j] = (a * b if is_multiply else np.abs(a - b)).sum((1, 2, 3))
    return result / float(kernel_size**2 * data1.shape[1])


def _sides(padding: Any) -> list[int]:
    before, after = get_pad_tuple_generic(padding, (1, 1))
    return [*before, *after]


def deformable_conv2d_nchw_python(
    a_np: Array,
    offset_np: Array,
    w_np: Array,
    stride: Any,
    padding: Any,
    dilation: Any,
    deformable_groups: int,
    groups: int,
) -> Array:
    """Returns the convolution of (N, C, H, W) whose taps are displaced by offsets.

    Between pixels it is bilinear.
    """
    (down, along), (v_step, h_step) = _each(stride, 2), _each(dilation, 2)
    batch, channels = a_np.shape[:2]
    many, inner, rows, columns = w_np.shape
    (top, left), _ = get_pad_tuple_generic(padding, ((rows - 1) * v_step + 1, (columns - 1) * h_step + 1))
    out_height, out_width = offset_np.shape[2:]
    shifts = offset_np.reshape(batch, deformable_groups, rows * columns, 2, out_height, out_width)
    result = np.zeros((batch, many, out_height, out_width), a_np.dtype)
    y0, x0 = _places(out_height)[:, None] * down - top, _places(out_width)[None] * along - left
    for n, c, p, q in product(range(batch), range(channels), range(rows), range(columns)):
        shift = shifts[n, c // (channels // deformable_groups), p * columns + q]
        value = _bilinear(a_np[n, c], y0 + p * v_step + shift[0], x0 + q * h_step + shift[1])
        group = c // inner
        part = slice(group * (many // groups), (group + 1) * (many // groups))
        result[n, part] += w_np[part, c % inner, p, q][:, None, None] * value
    return result


def _bilinear(image: Array, y: Array, x: Array) -> Array:
    """Returns an image between its pixels; outside it is 0."""
    height, width = image.shape
    inside = (y >= 0) & (x >= 0) & (y < height) & (x < width)
    low_y, low_x = np.floor(y).astype(int), np.floor(x).astype(int)
    total = np.zeros(y.shape)
    for up, right in product((0, 1), repeat=2):
        v, u = low_y + up, low_x + right
        weight = (1 - abs(y - v)) * (1 - abs(x - u))
        known = (v >= 0) & (u >= 0) & (v < height) & (u < width)
        v, u = np.clip(v, 0, height - 1), np.clip(u, 0, width - 1)
        total += np.where(known, weight * image[v, u], 0)
    return np.where(inside, total, 0)


def deformable_conv2d_nhwc_python(
    a_np: Array,
    offset_np: Array,
    w_np: Array,
    stride: Any,
    padding: Any,
    dilation: Any,
    deformable_groups: int,
    groups: int,
) -> Array:
    """Returns `deformable_conv2d_nchw_python` of (N, H, W, C) by (H, W, I, O)."""
    result = deformable_conv2d_nchw_python(
        a_np.transpose(0, 3, 1, 2), offset_np.transpose(0, 3, 1, 2), w_np.transpose(3, 2, 0, 1), stride, padding, dilation,
        deformable_groups, groups,
    )  # fmt: skip
    return result.transpose(0, 2, 3, 1)
