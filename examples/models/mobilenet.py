"""MobileNet v1 (Howard et al., "MobileNets", 2017), with the names of TVM's `relay.testing.mobilenet`."""

from __future__ import annotations

from dataclasses import dataclass

from .builder import Function
from .layers import Classifier, batch_norm, conv2d, dense

BLOCKS = (
    (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1),
)  # fmt: skip
"""Outputs and stride of each separable block, as published."""


@dataclass(frozen=True)
class MobileNet(Classifier):
    """A network of depthwise separable convolutions for images; `blocks` are outputs and stride of each."""

    blocks: tuple[tuple[int, int], ...] = BLOCKS

    def scores(self, f: Function) -> str:
        inputs = self.scaled(32)
        x = _conv_block(f, "%data", "conv_block_1_conv", 3, inputs, 3, stride=2, padding=1)
        for number, (channels, stride) in enumerate(self.blocks, start=1):
            name = f"separable_conv_block_{number}"
            channels = self.scaled(channels)
            x = _conv_block(f, x, f"{name}_depthwise_conv1", inputs, inputs, 3, stride=stride, padding=1, groups=inputs)
            x = _conv_block(f, x, f"{name}_conv2", inputs, channels, 1)
            inputs = channels
        x = f.op("nn.batch_flatten", f.op("nn.global_avg_pool2d", x))
        return dense(f, x, "fc", inputs, self.classes)


def _conv_block(
    f: Function,
    x: str,
    name: str,
    inputs: int,
    channels: int,
    kernel: int,
    *,
    stride: int = 1,
    padding: int = 0,
    groups: int = 1,
) -> str:
    """Adds a convolution, batch norm and relu."""
    x = conv2d(f, x, name, inputs, channels, kernel, stride=stride, padding=padding, groups=groups)
    return f.op("nn.relu", batch_norm(f, x, f"{name}_bn", channels))
