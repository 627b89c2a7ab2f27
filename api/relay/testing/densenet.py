"""Networks in which each layer takes the results of all before it.

Source: Huang et al., Densely Connected Convolutional Networks (2017).
"""

from __future__ import annotations

from ....support.public_names import public_names
from ...ir.module import IRModule
from ...nd import NDArray
from ..expr import Function, RelayExpr
from ..graph import free_vars
from ..op import find
from . import layers
from .init import create_workload
from .layers import nn

SPEC = {
    121: (64, 32, [6, 12, 24, 16]),
    161: (96, 48, [6, 12, 36, 24]),
    169: (64, 32, [6, 12, 32, 32]),
    201: (64, 32, [6, 12, 48, 32]),
}
"""The first channels, those that a layer adds, and the layers of each block."""


def _layer(data: RelayExpr, growth: int, bottle_neck: int, name: str) -> RelayExpr:
    value = nn().relu(layers.batch_norm_infer(data, name=f"{name}_bn1"))
    value = layers.conv2d(value, channels=bottle_neck * growth, kernel_size=(1, 1), name=f"{name}_conv1")
    value = nn().relu(layers.batch_norm_infer(value, name=f"{name}_bn2"))
    return layers.conv2d(value, channels=growth, kernel_size=(3, 3), padding=(1, 1), name=f"{name}_conv2")


def get_net(
    densenet_size: int,
    classes: int,
    batch_size: int,
    image_shape: tuple[int, ...],
    dtype: str,
    bottle_neck: int = 4,
) -> Function:
    """Returns the network of so many layers. Raises ValueError for another number than the paper's."""
    if densenet_size not in SPEC:
        raise ValueError(f"there are networks of {', '.join(map(str, SPEC))} layers, not of {densenet_size!r}")
    channels, growth, blocks = SPEC[densenet_size]
    value: RelayExpr = layers.data((batch_size, *image_shape), dtype)
    value = layers.conv2d(value, channels=channels, kernel_size=(7, 7), strides=(2, 2), padding=(3, 3), name="conv1")
    value = nn().relu(layers.batch_norm_infer(value, name="bn1"))
    value = nn().max_pool2d(value, pool_size=(3, 3), strides=(2, 2), padding=(1, 1))
    for block, count in enumerate(blocks):
        for number in range(count):
            new = _layer(value, growth, bottle_neck, f"block{block + 1}_layer{number + 1}")
            value = find("concatenate")((value, new), axis=1)
        channels += count * growth
        if block + 1 < len(blocks):
            channels //= 2
            name = f"transition{block + 1}"
            value = nn().relu(layers.batch_norm_infer(value, name=f"{name}_bn"))
            value = layers.conv2d(value, channels=channels, kernel_size=(1, 1), name=f"{name}_conv")
            value = nn().avg_pool2d(value, pool_size=(2, 2), strides=(2, 2))
    value = nn().global_avg_pool2d(nn().relu(layers.batch_norm_infer(value, name="bn2")))
    value = layers.dense_add_bias(nn().batch_flatten(value), units=classes, name="fc")
    return Function(free_vars(value), value)


def get_workload(
    densenet_size: int = 121,
    classes: int = 1000,
    batch_size: int = 4,
    image_shape: tuple[int, ...] = (3, 224, 224),
    dtype: str = "float32",
) -> tuple[IRModule, dict[str, NDArray]]:
    """Returns the network as a module, and weights for it. (N,C,H,W) → (N,classes)"""
    return create_workload(get_net(densenet_size, classes, batch_size, image_shape, dtype))


__all__ = ["get_net", "get_workload"]


__dir__ = public_names(__name__)
