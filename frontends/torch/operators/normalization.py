"""Normalization of layers, groups and batches, and softmax."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from ..node import FxNode
from ..registry import operator
from .reduction import moments


def _vector(node: FxNode, value: SSAValue | None, length: int, default: float, dtype: str) -> SSAValue:
    return node.builder.constant(np.full(length, default), dtype) if value is None else node.cast(value, dtype)


@operator("_softmax", "_log_softmax", "softmax", "log_softmax", "_safe_softmax")
def softmax(node: FxNode, x: SSAValue, dim: int, *_: Any) -> SSAValue:
    """Returns the softmax in the result's dtype; that of a number is 1."""
    x = node.cast(x, node.dtype())
    log = "log" in node.name
    if node.rank(x) == 0:
        return node.builder.constant(0 if log else 1, node.dtype())
    return node.call("nn.log_softmax" if log else "nn.softmax", x, axis=dim)


def _inverse_deviation(node: FxNode, variance: SSAValue, epsilon: float) -> SSAValue:
    return node.call("rsqrt", node.call("add", variance, node.builder.constant(epsilon, node.builder.dtype(variance))))


@operator("native_layer_norm", "layer_norm")
def layer_norm(
    node: FxNode, x: SSAValue, shape: Sequence[Any], weight: SSAValue | None, bias: SSAValue | None, epsilon: float = 1e-5,
    *_: Any,
) -> Any:  # fmt: skip
    """Normalizes over the last axes; returns mean and inverse deviation, too, where they are used."""
    count, rank = len(shape), node.rank(x)
    sizes = [node.number(each, "a normalized size") for each in shape]
    dtype = node.builder.dtype(x)
    length = int(np.prod(sizes, dtype=np.int64))
    source = x
    if count > 1:
        lead = [0] * (rank - count)
        source = node.call("reshape", x, newshape=[*lead, length])
        weight, bias = (
            None if each is None else node.call("reshape", each, newshape=[length]) for each in (weight, bias)
        )
    gamma, beta = _vector(node, weight, length, 1, dtype), _vector(node, bias, length, 0, dtype)
    found = node.call(
        "nn.layer_norm",
        source,
        gamma,
        beta,
        axis=-1,
        epsilon=float(epsilon),
        scale=weight is not None,
        center=bias is not None,
    )
    if count > 1:
        found = node.call("reshape", found, newshape=[*[0] * (rank - count), *sizes])
    if node.name == "layer_norm":
        return found
    results: list[SSAValue | None] = [found, None, None]
    if node.uses(1) or node.uses(2):
        mean, variance = moments(node, node.wide(x), list(range(rank - count, rank)))
        results[1:] = [
            node.cast(mean, node.dtype(1)),
            node.cast(_inverse_deviation(node, variance, epsilon), node.dtype(2)),
        ]
    return results


@operator("native_group_norm")
def group_norm(
    node: FxNode, x: SSAValue, weight: SSAValue | None, bias: SSAValue | None, images: Any, channels: int, area: Any,
    groups: int, epsilon: float,
) -> list[SSAValue | None]:  # fmt: skip
    """Normalizes over groups of channels; returns mean and inverse deviation, too, where they are used."""
    dtype = node.builder.dtype(x)
    gamma, beta = _vector(node, weight, channels, 1, dtype), _vector(node, bias, channels, 0, dtype)
    found = node.call("nn.group_norm", x, gamma, beta, num_groups=groups, axis=1, epsilon=float(epsilon))
    results: list[SSAValue | None] = [found, None, None]
    if node.uses(1) or node.uses(2):
        rows = node.call("reshape", node.wide(x), newshape=[node.number(images, "the batch"), groups, -1])
        mean, variance = moments(node, rows, 2)
        results[1] = node.cast(node.call("squeeze", mean, axis=[2]), node.dtype(1))
        deviation = _inverse_deviation(node, variance, epsilon)
        results[2] = node.cast(node.call("squeeze", deviation, axis=[2]), node.dtype(2))
    return results


@operator("_native_batch_norm_legit_no_training")
def batch_norm(
    node: FxNode, x: SSAValue, weight: SSAValue | None, bias: SSAValue | None, mean: SSAValue, variance: SSAValue,
    _momentum: float, epsilon: float,
) -> list[SSAValue | None]:  # fmt: skip
    """Normalizes each channel by known mean and variance."""
    channels, dtype = node.static(mean, "the mean")[0], node.builder.dtype(x)
    gamma, beta = _vector(node, weight, channels, 1, dtype), _vector(node, bias, channels, 0, dtype)
    given = [node.cast(each, dtype) for each in (mean, variance)]
    found = node.call("nn.batch_norm", x, gamma, beta, *given, axis=1, epsilon=float(epsilon))
    nothing = node.builder.constant(np.zeros(0), node.dtype(1)) if node.uses(1) or node.uses(2) else None
    return [node.builder.field(found, 0), nothing, nothing]


@operator("_native_batch_norm_legit")
def batch_norm_of_batch(
    node: FxNode, x: SSAValue, weight: SSAValue | None, bias: SSAValue | None, *rest: Any
) -> list[SSAValue | None]:
    """Normalizes channels by the batch; returns its mean and inverse deviation, too."""
    if node.overload == "no_stats":
        training, momentum, epsilon = rest
        stats: tuple[SSAValue, ...] = ()
    else:
        *given, training, momentum, epsilon = rest
        stats = tuple(given)
    if not training and stats:
        return batch_norm(node, x, weight, bias, *stats, momentum, epsilon)
    rank = node.rank(x)
    dims = [axis for axis in range(rank) if axis != 1]
    mean, variance = moments(node, node.wide(x), dims)
    deviation = _inverse_deviation(node, variance, epsilon)
    found = node.call("multiply", node.call("subtract", node.wide(x), mean), deviation)
    own, form = node.builder.dtype(found), [-1, *[1] * (rank - 2)]
    if weight is not None:
        found = node.call("multiply", found, node.call("reshape", node.cast(weight, own), newshape=form))
    if bias is not None:
        found = node.call("add", found, node.call("reshape", node.cast(bias, own), newshape=form))
    flat = [node.cast(node.call("squeeze", each, axis=dims), node.dtype(1)) for each in (mean, deviation)]
    return [node.cast(found, node.dtype(0)), *flat]
