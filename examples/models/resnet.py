"""ResNet, with the names of TVM's `relay.testing.resnet`.

He et al., "Deep residual learning for image recognition", 2015. A unit's stride is that of its 3×3 convolution and its
relu comes last, as in torchvision's models ("v1.5").
"""

from __future__ import annotations

from dataclasses import dataclass

from .builder import Function
from .layers import Classifier, batch_norm, conv2d, dense

BRANCH_GAMMA = 0.25
"""Scales at the end of a unit's branch are small, so that random weights keep activations in bounds at any depth."""


@dataclass(frozen=True)
class ResNet(Classifier):
    """A residual network for images; `units` is the number of units of each stage."""

    units: tuple[int, ...] = (2, 2, 2, 2)
    bottleneck: bool = False

    def scores(self, f: Function) -> str:
        inputs = self.scaled(64)
        x = conv2d(f, "%data", "conv0", 3, inputs, 7, stride=2, padding=3)
        x = f.op("nn.relu", batch_norm(f, x, "bn0", inputs))
        x = f.op("nn.max_pool2d", x, pool_size=[3, 3], strides=[2, 2], padding=[1, 1, 1, 1])
        for stage, units in enumerate(self.units):
            channels = self.scaled(64 * 2 ** min(stage, 3))
            for unit in range(units):
                stride = 2 if stage and unit == 0 else 1
                name = f"stage{stage + 1}_unit{unit + 1}"
                x, inputs = self._unit(f, x, name, inputs, channels, stride)
        x = f.op("nn.batch_flatten", f.op("nn.global_avg_pool2d", x))
        return dense(f, x, "fc1", inputs, self.classes)

    def _unit(self, f: Function, x: str, name: str, inputs: int, channels: int, stride: int) -> tuple[str, int]:
        outputs = 4 * channels if self.bottleneck else channels
        # Kernel, outputs and stride of each convolution of the branch.
        if self.bottleneck:
            branch = [(1, channels, 1), (3, channels, stride), (1, outputs, 1)]
        else:
            branch = [(3, channels, stride), (3, channels, 1)]
        y, fan = x, inputs
        for number, (kernel, size, step) in enumerate(branch, start=1):
            last = number == len(branch)
            y = conv2d(f, y, f"{name}_conv{number}", fan, size, kernel, stride=step, padding=kernel // 2)
            y = batch_norm(f, y, f"{name}_bn{number}", size, gamma=BRANCH_GAMMA if last else 1.0)
            y = y if last else f.op("nn.relu", y)
            fan = size
        if stride != 1 or inputs != outputs:
            x = conv2d(f, x, f"{name}_sc", inputs, outputs, 1, stride=stride)
            x = batch_norm(f, x, f"{name}_sc_bn", outputs)
        return f.op("nn.relu", f.op("add", y, x)), outputs
