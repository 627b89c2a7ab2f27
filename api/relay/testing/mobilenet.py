"""A network of convolutions of each channel alone, and of one place across channels.

Source: Howard et al., MobileNets (2017).
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

BLOCKS = [
    (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1),
]  # fmt: skip
"""Channels and strides of the blocks."""


def _active(data: RelayExpr, name: str, axis: int) -> RelayExpr:
    return nn().relu(layers.batch_norm_infer(data, epsilon=1e-5, axis=axis, name=f"{name}_bn"))


def mobile_net(
    num_classes: int = 1000,
    data_shape: tuple[int, ...] = (1, 3, 224, 224),
    dtype: str = "float32",
    alpha: float = 1.0,
    is_shallow: bool = False,
    layout: str = "NCHW",
) -> Function:
    """Returns the network, with `alpha` times the channels; a shallow one lacks five of its blocks."""
    first = layout == "NCHW"
    axis, kernel, depthwise = (1, "OIHW", "OIHW") if first else (3, "HWIO", "HWOI")

    def conv(value: RelayExpr, channels: int, size: int, stride: int, name: str, groups: int = 1) -> RelayExpr:
        found = layers.conv2d(
            value, channels=channels, kernel_size=(size, size), strides=(stride, stride), padding=(size // 2, size // 2), groups=groups,
            data_layout=layout, kernel_layout=kernel if groups == 1 else depthwise, name=name,
        )  # fmt: skip
        return _active(found, name, axis)

    channels = int(32 * alpha)
    value = conv(layers.data(data_shape, dtype), channels, 3, 2, "conv_block_1")
    blocks = [*BLOCKS[:6], *BLOCKS[11:]] if is_shallow else BLOCKS
    for number, (width, stride) in enumerate(blocks, 1):
        value = conv(value, channels, 3, stride, f"separable_conv_block_{number}_conv1", groups=channels)
        channels = int(width * alpha)
        value = conv(value, channels, 1, 1, f"separable_conv_block_{number}_conv2")
    value = nn().batch_flatten(nn().global_avg_pool2d(value, layout=layout))
    value = nn().softmax(nn().bias_add(nn().dense(value, var("fc_weight"), units=num_classes), var("fc_bias")))
    return Function(free_vars(value), value)


def get_workload(
    batch_size: int = 1,
    num_classes: int = 1000,
    image_shape: tuple[int, ...] = (3, 224, 224),
    dtype: str = "float32",
    layout: str = "NCHW",
) -> tuple[IRModule, dict[str, NDArray]]:
    """Returns the network as a module, and weights for it. (N,C,H,W) → (N,num_classes)"""
    shape = (batch_size, *image_shape) if layout == "NCHW" else (batch_size, *image_shape[1:], image_shape[0])
    return create_workload(mobile_net(num_classes, shape, dtype, layout=layout))


__all__ = ["get_workload", "mobile_net"]


__dir__ = public_names(__name__)
