"""VGG-16, with the names of TVM's `relay.testing.vgg`.

Simonyan and Zisserman, "Very deep convolutional networks", 2014.
"""

from __future__ import annotations

from dataclasses import dataclass

from .builder import Function
from .layers import Classifier, conv2d, dense

STAGES = ((2, 64), (2, 128), (3, 256), (3, 512), (3, 512))
"""Layers and channels of each stage."""


@dataclass(frozen=True)
class VGG(Classifier):
    """3×3 convolutions in five stages, then three fully connected layers; `image` is at least 32."""

    def scores(self, f: Function) -> str:
        x, inputs = "%data", 3
        for stage, (layers, channels) in enumerate(STAGES, start=1):
            channels = self.scaled(channels)
            for layer in range(1, layers + 1):
                x = f.op("nn.relu", conv2d(f, x, f"conv{stage}_{layer}", inputs, channels, 3, padding=1, bias=True))
                inputs = channels
            x = f.op("nn.max_pool2d", x, pool_size=[2, 2], strides=[2, 2], padding=[0, 0, 0, 0])
        x, inputs = f.op("nn.batch_flatten", x), inputs * (self.image // 32) ** 2
        units = self.scaled(4096)
        for name in ("fc6", "fc7"):
            x = f.op("nn.dropout", f.op("nn.relu", dense(f, x, name, inputs, units, gain=2.0)))
            x = f.let(f"{x}.0")
            inputs = units
        return dense(f, x, "fc8", inputs, self.classes)
