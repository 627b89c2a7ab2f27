"""A network of few weights: modules that squeeze channels, then expand them.

Source: Iandola et al., SqueezeNet (2016).
"""

from __future__ import annotations

from ....support.public_names import public_names
from ...ir.module import IRModule
from ...nd import NDArray
from ..expr import Function, RelayExpr, var
from ..graph import free_vars
from ..op import find
from . import layers
from .init import create_workload
from .layers import nn

FIRE = [16, 16, 32, 32, 48, 48, 64, 64]
"""Squeezed channels of the modules; each expands to four times as many of two sizes."""

_POOLED = {"1.0": (2, 6), "1.1": (1, 3)}
"""The modules after which a pooling follows, by version."""


def _conv(data: RelayExpr, channels: int, size: int, name: str, stride: int = 1, padding: int = 0) -> RelayExpr:
    value = layers.conv2d(
        data,
        channels=channels,
        kernel_size=(size, size),
        strides=(stride, stride),
        padding=(padding, padding),
        name=name,
    )
    return nn().relu(nn().bias_add(value, var(f"{name}_bias")))


def _fire(data: RelayExpr, squeeze: int, name: str) -> RelayExpr:
    value = _conv(data, squeeze, 1, f"{name}_squeeze")
    sides = [
        _conv(value, squeeze * 4, 1, f"{name}_expand1x1"),
        _conv(value, squeeze * 4, 3, f"{name}_expand3x3", padding=1),
    ]
    return find("concatenate")(tuple(sides), axis=1)


def get_net(
    batch_size: int,
    image_shape: tuple[int, ...],
    num_classes: int,
    version: str,
    dtype: str,
) -> Function:
    """Returns the network of version "1.0" or "1.1". Raises ValueError for another version."""
    if version not in _POOLED:
        raise ValueError(f"there are the versions {', '.join(_POOLED)} of squeezenet, not {version!r}")
    data = layers.data((batch_size, *image_shape), dtype)
    pool = {"pool_size": (3, 3), "strides": (2, 2)}
    value = _conv(data, 96, 7, "conv1", 2) if version == "1.0" else _conv(data, 64, 3, "conv1", 2)
    value = nn().max_pool2d(value, **pool)
    for number, squeeze in enumerate(FIRE):
        value = _fire(value, squeeze, f"fire{number + 1}")
        if number in _POOLED[version]:
            value = nn().max_pool2d(value, **pool)
    value = nn().global_avg_pool2d(_conv(nn().dropout(value, rate=0.5), num_classes, 1, "conv10"))
    value = nn().softmax(nn().batch_flatten(value))
    return Function(free_vars(value), value)


def get_workload(
    batch_size: int = 1,
    num_classes: int = 1000,
    version: str = "1.0",
    image_shape: tuple[int, ...] = (3, 224, 224),
    dtype: str = "float32",
) -> tuple[IRModule, dict[str, NDArray]]:
    """Returns the network as a module, and weights for it. (N,C,H,W) → (N,num_classes)"""
    return create_workload(get_net(batch_size, image_shape, num_classes, version, dtype))


__all__ = ["get_net", "get_workload"]


__dir__ = public_names(__name__)
