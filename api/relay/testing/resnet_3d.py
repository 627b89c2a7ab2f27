"""Residual networks on volumes or films, `resnet` with one axis more."""

from __future__ import annotations

from typing import Any

from ....support.public_names import public_names
from ...ir.module import IRModule
from ...nd import NDArray
from ..expr import Function
from .init import create_workload
from .resnet import Shape, batched, build, plan


def get_net(
    batch_size: int,
    num_classes: int,
    num_layers: int = 50,
    image_shape: tuple[int, ...] = (3, 16, 112, 112),
    layout: str = "NCDHW",
    dtype: str = "float32",
    **kwargs: Any,
) -> Function:
    """Returns the network of so many layers. (N,C,D,H,W) → (N,num_classes)

    Raises ValueError for a number of layers that is not one of the paper's.
    """
    units, filters, bottle_neck = plan(num_layers, image_shape[2])
    shape = batched(batch_size, image_shape, layout)
    return build(units, filters, num_classes, shape, bottle_neck, Shape(layout), dtype)


def get_workload(
    batch_size: int = 1,
    num_classes: int = 1000,
    num_layers: int = 18,
    image_shape: tuple[int, ...] = (3, 16, 112, 112),
    layout: str = "NCDHW",
    dtype: str = "float32",
    **kwargs: Any,
) -> tuple[IRModule, dict[str, NDArray]]:
    """Returns the network as a module, and weights for it."""
    return create_workload(get_net(batch_size, num_classes, num_layers, image_shape, layout, dtype))


__all__ = ["get_net", "get_workload"]


__dir__ = public_names(__name__)
