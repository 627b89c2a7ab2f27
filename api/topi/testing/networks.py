"""Layers of networks other than convolutions, in numpy; the arguments are those of TVM's references."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import ceil, floor
from typing import Any

import numpy as np

__all__ = [
    "adaptive_pool", "batch_matmul", "batch_norm", "dense", "group_norm_python", "instance_norm_python",
    "l2_normalize_python", "layer_norm_python", "log_softmax_python", "lrn_python", "nll_loss", "pool_grad_nchw",
    "poolnd_python", "relu_python", "rms_norm_python", "softmax_python",
]  # fmt: skip

Array = np.ndarray[Any, Any]


def softmax_python(a_np: Array, axis: int = 1) -> Array:
    """Returns exponentials divided by their sum along an axis."""
    powers = np.exp(a_np - a_np.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


def log_softmax_python(a_np: Array, axis: int = 1) -> Array:
    """Returns the logarithms of `softmax_python`."""
    shifted = a_np - a_np.max(axis, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis, keepdims=True))


def relu_python(a_np: Array) -> Array:
    """Returns what is not negative, 0 otherwise."""
    return np.maximum(a_np, 0)


def lrn_python(a_np: Array, size: int, axis: int, bias: float, alpha: float, beta: float) -> Array:
    """Returns elements divided by a power of the mean square of those around them along an axis."""
    radius, length = size // 2, a_np.shape[axis]
    squares = np.moveaxis(a_np.astype("float64") ** 2, axis, 0)
    sums = np.stack([squares[max(0, i - radius) : i + radius + 1].sum(0) for i in range(length)])
    return (a_np / (bias + alpha / size * np.moveaxis(sums, 0, axis)) ** beta).astype(a_np.dtype)


def l2_normalize_python(a_np: Array, eps: float, axis: Any = None) -> Array:
    """Returns an array divided by the root of its sum of squares, along axes."""
    along = None if axis is None else _axes(axis, a_np.ndim)
    return a_np / np.sqrt(np.maximum((a_np**2).sum(along, keepdims=True), eps))


def _axes(axis: Any, rank: int) -> tuple[int, ...]:
    """Returns one axis or several, counted from the first."""
    given: list[Any] = [axis] if hasattr(axis, "__index__") else list(axis)
    return tuple(int(each) % rank for each in given)


def _normal(data: Array, axes: tuple[int, ...], epsilon: float) -> Array:
    wide = data.astype("float32")
    return (wide - wide.mean(axes, keepdims=True)) / np.sqrt(wide.var(axes, keepdims=True) + epsilon)


def _around(values: Array, axes: Sequence[int], rank: int) -> Array:
    """Returns values of some axes with an extent of 1 along all others."""
    shape = [1] * rank
    for axis, size in zip(axes, values.shape, strict=True):
        shape[axis] = size
    return values.reshape(shape)


def layer_norm_python(data: Array, gamma: Array, beta: Array | None, axis: Any, epsilon: float = 1e-5) -> Array:
    """Returns data normalized along axes, then scaled by `gamma` and shifted by `beta` of these axes."""
    axes = _axes(axis, data.ndim)
    result = _normal(data, axes, epsilon) * _around(gamma, axes, data.ndim)
    return (result if beta is None else result + _around(beta, axes, data.ndim)).astype(data.dtype)


def instance_norm_python(
    data: Array, gamma: Array, beta: Array, channel_axis: int, axis: Any, epsilon: float = 1e-5
) -> Array:
    """Returns data normalized along axes, then scaled and shifted by channels."""
    axes = _axes(axis, data.ndim)
    scale, shift = (_around(each, (channel_axis,), data.ndim) for each in (gamma, beta))
    return (_normal(data, axes, epsilon) * scale + shift).astype(data.dtype)


def group_norm_python(
    data: Array,
    gamma: Array,
    beta: Array,
    num_groups: int,
    channel_axis: int,
    axes: Sequence[int],
    epsilon: float = 1e-5,
) -> Array:
    """Returns data normalized along axes and the channels of a group, then scaled and shifted by channels."""
    shape = list(data.shape)
    split = [*shape[:channel_axis], num_groups, shape[channel_axis] // num_groups, *shape[channel_axis + 1 :]]
    along = (channel_axis + 1, *(axis + (axis > channel_axis) for axis in axes))
    scale, shift = (_around(each, (channel_axis,), data.ndim) for each in (gamma, beta))
    return (_normal(data.reshape(split), along, epsilon).reshape(shape) * scale + shift).astype(data.dtype)


def rms_norm_python(data: Array, weight: Array, axis: Any, epsilon: float = 1e-5) -> Array:
    """Returns data divided by the root of its mean square along axes, times `weight` of these axes."""
    axes = _axes(axis, data.ndim)
    wide = data.astype("float32")
    mean = (wide**2).mean(axes, keepdims=True)
    return (wide * _around(weight, axes, data.ndim) / np.sqrt(mean + epsilon)).astype(data.dtype)


def batch_norm(
    x: Array,
    gamma: Array,
    beta: Array,
    moving_mean: Array,
    moving_var: Array,
    axis: int,
    epsilon: float,
    center: bool,
    scale: bool,
    training: bool,
    momentum: float,
) -> list[Array]:
    """Returns data normalized by channels, and the moving mean and variance."""
    others = tuple(each for each in range(x.ndim) if each != axis)
    mean, variance = (x.mean(others), x.var(others)) if training else (moving_mean, moving_var)
    result = (x - _around(mean, (axis,), x.ndim)) / np.sqrt(_around(variance, (axis,), x.ndim) + epsilon)
    result = result * _around(gamma, (axis,), x.ndim) if scale else result
    result = result + _around(beta, (axis,), x.ndim) if center else result
    if not training:
        return [result, moving_mean, moving_var]
    old = 1 - momentum
    return [result, old * moving_mean + momentum * mean, old * moving_var + momentum * variance]


def dense(
    x: Array, y: Array, bias: Array | None, use_bias: bool = False, use_relu: bool = False, out_dtype: str | None = None
) -> Array:
    """Returns rows times rows, plus a bias, not negative."""
    result = x.astype(out_dtype or x.dtype) @ y.T.astype(out_dtype or y.dtype)
    result = result + bias if use_bias and bias is not None else result
    return np.maximum(result, 0) if use_relu else result


def batch_matmul(
    x: Array, y: Array, out_dtype: str | None = None, trans_x: bool = False, trans_y: bool = True
) -> Array:
    """Returns products of matrices, of which one of either side may be repeated."""
    left, right = (x.swapaxes(1, 2) if trans_x else x), (y.swapaxes(1, 2) if trans_y else y)
    dtype = out_dtype or x.dtype
    return left.astype(dtype) @ right.astype(dtype)


def nll_loss(
    predictions: Array, targets: Array, weights: Array, reduction: str = "mean", ignore_index: int = -100
) -> Array:
    """Returns the weighted negative of each target's prediction.

    The reduction is `none`, `sum`, or the weighted `mean`.
    """
    classes = np.moveaxis(predictions, 1, -1).reshape(-1, predictions.shape[1])
    of = targets.reshape(-1)
    kept = of != ignore_index
    chosen = np.where(kept, of, 0)
    factors = np.where(kept, weights[chosen], 0)
    losses = -classes[np.arange(len(of)), chosen] * factors
    if reduction == "none":
        return losses.reshape(targets.shape).astype(predictions.dtype)
    total = losses.sum() / factors.sum() if reduction == "mean" else losses.sum()
    return np.asarray(total, predictions.dtype)


def poolnd_python(
    np_data: Array,
    kernel: Sequence[int],
    strides: Sequence[int],
    dilation: Sequence[int],
    padding_before: Sequence[int],
    padding_after: Sequence[int],
    pool_type: str,
    count_include_pad: bool = True,
    ceil_mode: bool = False,
    dtype: str = "float32",
    layout: str = "NCHW",
) -> Array:
    """Returns the greatest, or the mean, of each window of the spatial axes."""
    if layout.endswith("C"):
        data = np.moveaxis(np_data, -1, 1)
        result = poolnd_python(
            data,
            kernel,
            strides,
            dilation,
            padding_before,
            padding_after,
            pool_type,
            count_include_pad,
            ceil_mode,
            dtype,
        )
        return np.moveaxis(result, 1, -1)
    rounded = ceil if ceil_mode else floor
    spatial = range(len(kernel))
    size = [(kernel[i] - 1) * dilation[i] + 1 for i in spatial]
    outs = [
        rounded((np_data.shape[i + 2] + padding_before[i] + padding_after[i] - size[i]) / strides[i]) + 1
        for i in spatial
    ]
    result = np.zeros((*np_data.shape[:2], *outs), dtype)
    for out in product(*map(range, outs)):
        firsts = [out[i] * strides[i] - padding_before[i] for i in spatial]
        taps = [[firsts[i] + k * dilation[i] for k in range(kernel[i])] for i in spatial]
        inside = [[t for t in taps[i] if 0 <= t < np_data.shape[i + 2]] for i in spatial]
        window = np_data[np.ix_(range(np_data.shape[0]), range(np_data.shape[1]), *inside)]
        window = window.reshape(*np_data.shape[:2], -1)
        place = (slice(None), slice(None), *out)
        if pool_type == "max":
            result[place] = window.max(-1) if window.size else np.finfo(dtype).min
            continue
        ends = [np_data.shape[i + 2] + padding_after[i] for i in spatial]
        counted = [len([t for t in taps[i] if t < ends[i]]) if count_include_pad else len(inside[i]) for i in spatial]
        result[place] = window.sum(-1) / max(int(np.prod(counted)), 1)
    return result


def pool_grad_nchw(
    a_np: Array,
    out_grad_np: Array,
    pool_size: Sequence[int],
    strides: Sequence[int],
    padding: Sequence[int],
    pool_type: str,
    ceil_mode: bool,
    count_include_pad: bool = True,
) -> Array:
    """Returns the gradient of pooling of (N, C, H, W): to the greatest of each window, or to all alike."""
    top, left = padding[:2]
    height, width = a_np.shape[2:]
    result = np.zeros(a_np.shape, out_grad_np.dtype)
    for i, j in product(*map(range, out_grad_np.shape[2:])):
        y, x = i * strides[0] - top, j * strides[1] - left
        rows = [t for t in range(y, y + pool_size[0]) if 0 <= t < height]
        columns = [t for t in range(x, x + pool_size[1]) if 0 <= t < width]
        for n, c in product(*map(range, a_np.shape[:2])):
            window = a_np[n, c][np.ix_(rows, columns)]
            grad = out_grad_np[n, c, i, j]
            if pool_type == "max":
                v, u = np.unravel_index(int(window.argmax()), window.shape)
                result[n, c, rows[int(v)], columns[int(u)]] += grad
            else:
                count = pool_size[0] * pool_size[1] if count_include_pad else max(window.size, 1)
                result[n, c][np.ix_(rows, columns)] += grad / count
    return result


def adaptive_pool(np_data: Array, out_size: Any, pool_type: str, layout: str) -> Array:
    """Returns the greatest, or the mean, of windows of which there are as many as asked along each axis."""
    last = layout.endswith("C")
    data = np.moveaxis(np_data, -1, 1) if last else np_data
    outs = [int(each) for each in np.atleast_1d(out_size)]
    outs = outs * (data.ndim - 2) if len(outs) == 1 else outs
    result = np.zeros((*data.shape[:2], *outs), data.dtype)
    for out in product(*map(range, outs)):
        place = tuple(
            slice(i * size // of, -(-(i + 1) * size // of))
            for i, of, size in zip(out, outs, data.shape[2:], strict=True)
        )
        window = data[(slice(None), slice(None), *place)].reshape(*data.shape[:2], -1)
        result[(slice(None), slice(None), *out)] = window.max(-1) if pool_type == "max" else window.mean(-1)
    return np.moveaxis(result, 1, -1) if last else result
