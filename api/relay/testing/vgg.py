"""Networks of small convolutions, one after the other.

Source: Simonyan and Zisserman, Very Deep Convolutional Networks (2014).
"""

from __future__ import annotations

from ....support.public_names import public_names
from ...ir.module import IRModule
from ...nd import NDArray
from ..expr import Function, RelayExpr, var
from ..graph import free_vars
from . import layers
from .init import create_workload
from .layers import nn

SPEC = {11: [1, 1, 2, 2, 2], 13: [2, 2, 2, 2, 2], 16: [2, 2, 3, 3, 3], 19: [2, 2, 4, 4, 4]}
"""Convolutions of each stage, by the number of layers."""
FILTERS = [64, 128, 256, 512, 512]


def get_net(
    batch_size: int,
    image_shape: tuple[int, ...],
    num_classes: int,
    dtype: str,
    num_layers: int = 11,
    batch_norm: bool = False,
) -> Function:
    """Returns the network of so many layers. Raises ValueError for another number than the paper's."""
    if num_layers not in SPEC:
        raise ValueError(f"there are networks of {', '.join(map(str, SPEC))} layers, not of {num_layers!r}")
    value: RelayExpr = layers.data((batch_size, *image_shape), dtype)
    for stage, count in enumerate(SPEC[num_layers]):
        for number in range(count):
            name = f"conv{stage + 1}_{number + 1}"
            value = layers.conv2d(value, kernel_size=(3, 3), padding=(1, 1), channels=FILTERS[stage], name=name)
            value = nn().bias_add(value, var(f"{name}_bias"))
            if batch_norm:
                value = layers.batch_norm_infer(value, name=f"bn{stage + 1}_{number + 1}")
            value = nn().relu(value)
        value = nn().max_pool2d(value, pool_size=(2, 2), strides=(2, 2))
    value = nn().batch_flatten(value)
    for name in ("fc6", "fc7"):
        value = nn().dropout(nn().relu(layers.dense_add_bias(value, units=4096, name=name)), rate=0.5)
    value = nn().softmax(layers.dense_add_bias(value, units=num_classes, name="fc8"))
    return Function(free_vars(value), value)


def get_workload(
    batch_size: int,
    num_classes: int = 1000,
    image_shape: tuple[int, ...] = (3, 224, 224),
    dtype: str = "float32",
    num_layers: int = 11,
    batch_norm: bool = False,
) -> tuple[IRModule, dict[str, NDArray]]:
    """Returns the network as a module, and weights for it. (N,C,H,W) → (N,num_classes)"""
    return create_workload(get_net(batch_size, image_shape, num_classes, dtype, num_layers, batch_norm))


__all__ = ["get_net", "get_workload"]


__dir__ = public_names(__name__)
