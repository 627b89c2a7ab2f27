"""Relay's operators in jax.numpy and jax.lax, which jax and, through StableHLO, IREE compile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .evaluate import Function, evaluate, shared_functions
from .graph import Graph, Node, pairs

PRECISION = lax.Precision.HIGHEST


def function_of(graph: Graph) -> Callable[..., tuple[Any, ...]]:
    """Returns the graph as a function of its inputs that jax can trace; weights are constants of it."""

    def function(*inputs: Any) -> tuple[Any, ...]:
        return evaluate(graph, FUNCTIONS, inputs, [np.asarray(value.array) for value in graph.constants])

    return function


def _conv2d(node: Node, x: Any, w: Any) -> Any:
    a = node.attrs
    layout = (a.data_layout, a.kernel_layout or "OIHW", a.out_layout or a.data_layout)
    return lax.conv_general_dilated(
        x,
        w,
        a.strides,
        pairs(a.padding),
        rhs_dilation=a.dilation,
        dimension_numbers=layout,
        feature_group_count=a.groups,
        precision=PRECISION,
    )


def _conv2d_transpose(node: Node, x: Any, w: Any) -> Any:
    a = node.attrs
    (top, bottom), (left, right) = pairs(a.padding)
    height, width = w.shape[2:]
    more = a.output_padding
    return lax.conv_general_dilated(
        x,
        jnp.flip(w, (2, 3)),
        (1, 1),
        ((height - 1 - top, height - 1 - bottom + more[0]), (width - 1 - left, width - 1 - right + more[1])),
        lhs_dilation=a.strides,
        dimension_numbers=("NCHW", "IOHW", "NCHW"),
        precision=PRECISION,
    )


def _up_to_last_window(size: int, padding: tuple[int, int], window: int, stride: int, dilation: int) -> tuple[int, int]:
    """Returns padding that reaches to the end of the last window that begins inside."""
    before, after = padding
    reach = (window - 1) * dilation + 1
    last = -(-(size + before + after - reach) // stride) * stride
    if last >= size + before:
        last -= stride
    return before, max(after, last + reach - size - before)


def _pool(node: Node, x: Any, start: Any, combine: Any) -> Any:
    a = node.attrs
    if a.ceil_mode and combine is not lax.max:
        raise ValueError("jax has no means of windows that end outside of the image")
    padding = pairs(a.padding)
    if a.ceil_mode:
        sizes = [x.shape[a.layout.index(axis)] for axis in "HW"]
        padding = tuple(map(_up_to_last_window, sizes, padding, a.pool_size, a.strides, a.dilation))

    def placed(spatial: Any, other: Any) -> tuple[Any, ...]:
        of_axis = dict(zip("HW", spatial, strict=True))
        return tuple(of_axis.get(axis, other) for axis in a.layout)

    window, strides, steps = placed(a.pool_size, 1), placed(a.strides, 1), placed(a.dilation, 1)
    return lax.reduce_window(x, start, combine, window, strides, placed(padding, (0, 0)), None, steps)


def _avg_pool2d(node: Node, x: Any) -> Any:
    total = _pool(node, x, 0.0, lax.add)
    if node.attrs.count_include_pad:
        return total / np.float32(np.prod(node.attrs.pool_size))
    return total / _pool(node, jnp.ones_like(x), 0.0, lax.add)


def _matmul(x: Any, w: Any, transpose_a: bool, transpose_b: bool) -> Any:
    x = jnp.swapaxes(x, -1, -2) if transpose_a else x
    w = jnp.swapaxes(w, -1, -2) if transpose_b else w
    return jnp.matmul(x, w, precision=PRECISION)


def _bias_add(node: Node, x: Any, bias: Any) -> Any:
    axis = node.attrs.axis % x.ndim
    return x + bias.reshape((-1,) + (1,) * (x.ndim - 1 - axis))


def _batch_norm(node: Node, x: Any, gamma: Any, beta: Any, mean: Any, var: Any) -> Any:
    a = node.attrs
    shape = tuple(-1 if k == a.axis % x.ndim else 1 for k in range(x.ndim))
    scale = gamma / jnp.sqrt(var + np.float32(a.epsilon))
    return x * scale.reshape(shape) + (beta - mean * scale).reshape(shape), mean, var


def _layer_norm(node: Node, x: Any, gamma: Any, beta: Any) -> Any:
    axis = node.attrs.axis
    mean = x.mean(axis, keepdims=True)
    var = ((x - mean) ** 2).mean(axis, keepdims=True)
    return (x - mean) / jnp.sqrt(var + np.float32(node.attrs.epsilon)) * gamma + beta


def _split(node: Node, x: Any) -> Any:
    sections = node.attrs.indices_or_sections
    return tuple(jnp.split(x, sections if isinstance(sections, int) else list(sections), node.attrs.axis))


def _reduce(reduce: Any) -> Callable[[Node, Any], Any]:
    def reduced(node: Node, x: Any) -> Any:
        axis = node.attrs.axis
        return reduce(x, None if axis is None or axis == () else tuple(axis), keepdims=node.attrs.keepdims)

    return reduced


FUNCTIONS: dict[str, Function] = {
    **shared_functions(jnp),
    "nn.conv2d": _conv2d,
    "nn.conv2d_transpose": _conv2d_transpose,
    "nn.max_pool2d": lambda n, x: _pool(n, x, -jnp.inf, lax.max),
    "nn.avg_pool2d": _avg_pool2d,
    "nn.global_avg_pool2d": lambda n, x: x.mean(tuple(map(n.attrs.layout.index, "HW")), keepdims=True),
    "nn.dense": lambda n, x, w: _matmul(x, w, False, True),
    "nn.matmul": lambda n, x, w: _matmul(x, w, n.attrs.transpose_a, n.attrs.transpose_b),
    "nn.batch_matmul": lambda n, x, w: _matmul(x, w, n.attrs.transpose_a, n.attrs.transpose_b),
    "nn.bias_add": _bias_add,
    "nn.batch_norm": _batch_norm,
    "nn.layer_norm": _layer_norm,
    "nn.dropout": lambda n, x: (x, jnp.ones_like(x)),
    "nn.relu": lambda n, x: jnp.maximum(x, 0),
    "nn.softmax": lambda n, x: jax.nn.softmax(x, n.attrs.axis),
    "clip": lambda n, x: jnp.clip(x, n.attrs.a_min, n.attrs.a_max),
    "sigmoid": lambda n, x: jax.nn.sigmoid(x),
    "erf": lambda n, x: lax.erf(x),
    "sum": _reduce(jnp.sum),
    "mean": _reduce(jnp.mean),
    "max": _reduce(jnp.max),
    "transpose": lambda n, x: jnp.transpose(x, n.attrs.axes),
    "take": lambda n, x, i: jnp.take(x, i, n.attrs.axis, mode="clip"),
    "concatenate": lambda n, *xs: jnp.concatenate(xs, n.attrs.axis),
    "split": _split,
}
"""By Relay's name."""
