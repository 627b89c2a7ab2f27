"""Moves and selections of elements, in numpy; the arguments are those of TVM's references."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

__all__ = [
    "batch_to_space_nd_python", "depth_to_space_python", "gather_nd_python", "gather_python", "matrix_set_diag", "one_hot",
    "reorg_python", "searchsorted_ref", "sequence_mask", "slice_axis_python", "space_to_batch_nd_python",
    "space_to_depth_python", "strided_set_python", "strided_slice_python",
]  # fmt: skip

Array = np.ndarray[Any, Any]


def _places(count: int) -> Any:
    return np.arange(count)


def gather_python(data: Array, axis: int, indices: Array) -> Array:
    """Returns the elements at indices along an axis."""
    return np.take_along_axis(data, indices.astype("int64"), axis)


def gather_nd_python(a_np: Array, indices_np: Array) -> Array:
    """Returns the elements or parts at places, whose coordinates are along the first axis of the indices."""
    return a_np[tuple(indices_np.astype("int64"))]


def _slices(
    shape: Sequence[int], begin: Any, end: Any, strides: Any, slice_mode: str, axes: Sequence[int] | None
) -> tuple[slice, ...]:
    begins, ends = list(begin), [] if end is None else list(end)
    steps = [1] * len(begins) if strides is None else [int(each) for each in np.atleast_1d(strides)]
    steps = steps * len(begins) if len(steps) == 1 else steps
    result = [slice(None)] * len(shape)
    for number, axis in enumerate(axes if axes is not None else range(len(begins))):
        first = begins[number]
        last = ends[number] if number < len(ends) else None
        step = steps[number] if number < len(steps) and slice_mode == "end" else 1
        if slice_mode == "size" and last is not None:
            last = None if last < 0 else first + last
        result[axis] = slice(first, last, step)
    return tuple(result)


def strided_slice_python(
    data: Array, begin: Any, end: Any, strides: Any, slice_mode: str = "end", axes: Sequence[int] | None = None
) -> Array:
    """Returns a part of an array: up to `end`, or as much as it says in the mode "size"."""
    return data[_slices(data.shape, begin, end, strides, slice_mode, axes)]


def strided_set_python(data: Array, v: Array, begin: Any, end: Any, strides: Any) -> Array:
    """Returns an array with a part replaced."""
    result = data.copy()
    result[_slices(data.shape, begin, end, strides, "end", None)] = v
    return result


def slice_axis_python(data: Array, axis: int, begin: int, end: int | None = None) -> Array:
    """Returns a part of an array along one axis."""
    return data[(slice(None),) * (axis % data.ndim) + (slice(begin, end),)]


def sequence_mask(data: Array, valid_length: Array, mask_value: float, axis: int) -> Array:
    """Returns (T, N, …) or (N, T, …) with a value in place of steps after each sequence's end.

    `axis` is that of T.
    """
    steps = _places(data.shape[axis])
    kept = steps[:, None] < valid_length[None] if axis == 0 else steps[None] < valid_length[:, None]
    return np.where(kept.reshape(*kept.shape, *[1] * (data.ndim - 2)), data, np.asarray(mask_value, data.dtype))


def one_hot(indices: Array, on_value: float, off_value: float, depth: int, axis: int, dtype: str) -> Array:
    """Returns an array with a further axis, along which each index's place has one value, others another."""
    chosen = np.expand_dims(indices, axis)
    axis = axis if axis >= 0 else indices.ndim
    shape = [1] * (indices.ndim + 1)
    shape[axis] = depth
    return np.where(chosen == np.arange(depth).reshape(shape), on_value, off_value).astype(dtype)


def depth_to_space_python(data: Array, block_size: int, mode: str = "DCR") -> Array:
    """Returns (N, C, H, W) with channels moved into blocks of pixels."""
    n, c, h, w = data.shape
    inner = c // block_size**2
    if mode == "DCR":
        parts = data.reshape(n, block_size, block_size, inner, h, w).transpose(0, 3, 4, 1, 5, 2)
    else:
        parts = data.reshape(n, inner, block_size, block_size, h, w).transpose(0, 1, 4, 2, 5, 3)
    return parts.reshape(n, inner, h * block_size, w * block_size)


def space_to_depth_python(data: Array, block_size: int) -> Array:
    """Returns (N, C, H, W) with blocks of pixels moved into channels."""
    n, c, h, w = data.shape
    parts = data.reshape(n, c, h // block_size, block_size, w // block_size, block_size)
    return parts.transpose(0, 3, 5, 1, 2, 4).reshape(n, c * block_size**2, h // block_size, w // block_size)


def space_to_batch_nd_python(
    data: Array, block_shape: Sequence[int], pad_before: Sequence[int], pad_after: Sequence[int], pad_value: float = 0
) -> Array:
    """Returns blocks of the axes after the first moved into the batch, after padding."""
    rest = data.ndim - 1 - len(block_shape)
    pads = [(0, 0), *zip(pad_before, pad_after, strict=True), *[(0, 0)] * rest]
    data = np.pad(data, pads, constant_values=pad_value)
    made: list[Array] = []
    for place in product(*map(range, block_shape)):
        parts = (slice(at, None, step) for at, step in zip(place, block_shape, strict=True))
        made.append(data[(slice(None), *parts)])
    return np.concatenate(made)


def batch_to_space_nd_python(
    data: Array, block_shape: Sequence[int], crop_begin_list: Sequence[int], crop_end_list: Sequence[int]
) -> Array:
    """Returns parts of the batch interleaved along the axes after the first, then cropped."""
    batch = data.shape[0] // int(np.prod(block_shape))
    count = len(block_shape)
    sizes = [size * step for size, step in zip(data.shape[1 : 1 + count], block_shape, strict=True)]
    result = np.empty((batch, *sizes, *data.shape[1 + count :]), data.dtype)
    for number, place in enumerate(product(*map(range, block_shape))):
        at = tuple(slice(begin, None, step) for begin, step in zip(place, block_shape, strict=True))
        result[(slice(None), *at)] = data[number * batch : (number + 1) * batch]
    crop = zip(crop_begin_list, crop_end_list, sizes, strict=True)
    return result[(slice(None), *(slice(begin, size - end) for begin, end, size in crop))]


def reorg_python(a_np: Array, stride: int) -> Array:
    """Returns what YOLO's reorganization makes of (N, C, H, W): pixels of blocks as channels."""
    batch, channels, height, width = a_np.shape
    inner = channels // stride**2
    result = np.zeros((batch, channels * stride**2, height // stride, width // stride), a_np.dtype)
    flat = result.reshape(batch, -1)
    for b, k, j, i in product(range(batch), range(channels), range(height), range(width)):
        place = k // inner
        row, column = j * stride + place // stride, i * stride + place % stride
        source = column + width * stride * (row + height * stride * (k % inner))
        flat[b, i + width * (j + height * k)] = a_np[b].reshape(-1)[source % (channels * height * width)]
    return result


def searchsorted_ref(sorted_sequence: Array, values: Array, right: bool, out_dtype: str) -> Array:
    """Returns where values would be inserted to keep each sequence along the last axis sorted."""
    side: Any = "right" if right else "left"
    if sorted_sequence.ndim == 1:
        return np.searchsorted(sorted_sequence, values, side).astype(out_dtype)
    rows = sorted_sequence.reshape(-1, sorted_sequence.shape[-1])
    sought = values.reshape(len(rows), -1)
    found = [np.searchsorted(row, each, side) for row, each in zip(rows, sought, strict=True)]
    return np.stack(found).reshape(values.shape).astype(out_dtype)


def matrix_set_diag(input_np: Array, diagonal: Array, k: Any = 0, align: str = "RIGHT_LEFT") -> Array:
    """Returns matrices with diagonals `k` replaced: one number, or the lowest and the highest of a band."""
    band: list[int] = [int(k)] if hasattr(k, "__index__") else list(k)
    low, high = band[0], band[-1]
    rows, columns = input_np.shape[-2:]
    result = input_np.copy()
    above, below = align.split("_")
    for number, of in enumerate(range(high, low - 1, -1)):
        values = diagonal if low == high else diagonal[..., number, :]
        places = [(i, i + of) for i in range(rows) if 0 <= i + of < columns]
        side = above if of >= 0 else below
        first = values.shape[-1] - len(places) if side == "RIGHT" and low != high else 0
        for step, (i, j) in enumerate(places):
            result[..., i, j] = values[..., first + step]
    return result
