"""A perceptron of three dense layers."""

from __future__ import annotations

from typing import Any

from ....support.public_names import public_names
from ...ir.module import IRModule
from ...nd import NDArray
from ..expr import Function, RelayExpr
from ..graph import free_vars
from ..op import find
from . import layers
from .init import create_workload


def get_net(
    batch_size: int, num_classes: int = 10, image_shape: tuple[int, ...] = (1, 28, 28), dtype: str = "float32"
) -> Function:
    """The network: dense layers of 128, 64 and `num_classes` units. (N,C,H,W) → (N,num_classes)"""
    nn: Any = find("nn", relay=True)
    value: RelayExpr = nn.batch_flatten(layers.data((batch_size, *image_shape), dtype))
    for name, units in (("fc1", 128), ("fc2", 64)):
        value = nn.relu(layers.dense_add_bias(value, name=name, units=units))
    value = nn.softmax(layers.dense_add_bias(value, name="fc3", units=num_classes))
    return Function(free_vars(value), value)


def get_workload(
    batch_size: int, num_classes: int = 10, image_shape: tuple[int, ...] = (1, 28, 28), dtype: str = "float32"
) -> tuple[IRModule, dict[str, NDArray]]:
    """The network as a module, and weights for it."""
    return create_workload(get_net(batch_size, num_classes, image_shape, dtype))


__all__ = ["get_net", "get_workload"]


__dir__ = public_names(__name__)
