"""SqueezeNet 1.1 (Iandola et al., "SqueezeNet", 2016; version 1.1 of the authors' repository)."""

from __future__ import annotations

from dataclasses import dataclass

from .builder import Function
from .layers import Classifier, conv2d

# Of each fire module: squeezed channels, expanded channels of each half, and whether a max pool comes before it.
FIRES = (
    (16, 64, True), (16, 64, False), (32, 128, True), (32, 128, False),
    (48, 192, True), (48, 192, False), (64, 256, False), (64, 256, False),
)  # fmt: skip


@dataclass(frozen=True)
class SqueezeNet(Classifier):
    """A network of few weights for images, its classifier a convolution."""

    def scores(self, f: Function) -> str:
        inputs = self.scaled(64)
        x = f.op("nn.relu", conv2d(f, "%data", "conv1", 3, inputs, 3, stride=2, bias=True))
        for number, (squeezed, expanded, pooled) in enumerate(FIRES, start=2):
            if pooled:
                x = f.op("nn.max_pool2d", x, pool_size=[3, 3], strides=[2, 2], padding=[0, 0, 0, 0], ceil_mode=True)
            expanded = self.scaled(expanded)
            x = _fire(f, x, f"fire{number}", inputs, self.scaled(squeezed), expanded)
            inputs = 2 * expanded
        x = f.let(f"{f.op('nn.dropout', x)}.0")
        x = f.op("nn.relu", conv2d(f, x, "conv10", inputs, self.classes, 1, bias=True))
        x = f.op("nn.batch_flatten", f.op("nn.global_avg_pool2d", x))
        return x


def _fire(f: Function, x: str, name: str, inputs: int, squeezed: int, expanded: int) -> str:
    """Adds a 1×1 convolution to few channels, then 1×1 and 3×3 in parallel."""
    x = f.op("nn.relu", conv2d(f, x, f"{name}_squeeze1x1", inputs, squeezed, 1, bias=True))
    halves = [
        f.op("nn.relu", conv2d(f, x, f"{name}_expand{k}x{k}", squeezed, expanded, k, padding=k // 2, bias=True))
        for k in (1, 3)
    ]
    return f.op("concatenate", f.let(f"({', '.join(halves)})"), axis=1)
