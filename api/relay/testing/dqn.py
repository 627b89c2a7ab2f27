"""A network that values the actions of a game by its last screens.

Source: Mnih et al., Human-level control through deep reinforcement learning (2015).
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


def get_net(
    batch_size: int,
    num_actions: int = 18,
    image_shape: tuple[int, ...] = (4, 84, 84),
    dtype: str = "float32",
    layout: str = "NCHW",
) -> Function:
    """Returns the network: three convolutions and two dense layers. (N,4,84,84) → (N,num_actions)"""
    first = layout == "NCHW"
    axis, kernel = (1, "OIHW") if first else (3, "HWIO")
    shape = (batch_size, *image_shape) if first else (batch_size, *image_shape[1:], image_shape[0])
    value: RelayExpr = layers.data(shape, dtype)
    for number, (channels, size, stride) in enumerate([(32, 8, 4), (64, 4, 2), (64, 3, 1)], 1):
        value = layers.conv2d(
            value, channels=channels, kernel_size=(size, size), strides=(stride, stride), padding=(0, 0), data_layout=layout,
            kernel_layout=kernel, name=f"conv{number}",
        )  # fmt: skip
        value = nn().relu(nn().bias_add(value, var(f"conv{number}_bias"), axis=axis))
    value = nn().relu(layers.dense_add_bias(nn().batch_flatten(value), units=512, name="dense1"))
    value = layers.dense_add_bias(value, units=num_actions, name="dense2")
    return Function(free_vars(value), value)


def get_workload(
    batch_size: int,
    num_actions: int = 18,
    image_shape: tuple[int, ...] = (4, 84, 84),
    dtype: str = "float32",
    layout: str = "NCHW",
) -> tuple[IRModule, dict[str, NDArray]]:
    """Returns the network as a module, and weights for it."""
    return create_workload(get_net(batch_size, num_actions, image_shape, dtype, layout))


__all__ = ["get_net", "get_workload"]


__dir__ = public_names(__name__)
