"""SqueezeNet 1.1 (Iandola et al., "SqueezeNet", 2016; version 1.1 of the authors' repository)."""

from __future__ import annotations

from dataclasses import dataclass

from .builder import Function, Model, tensor
from .layers import conv2d, scaled

# Of each fire module: squeezed channels, expanded channels of each half, and whether a max pool comes before it.
FIRES = (
    (16, 64, True), (16, 64, False), (32, 128, True), (32, 128, False),
    (48, 192, True), (48, 192, False), (64, 256, False), (64, 256, False),
)  # fmt: skip


@dataclass(frozen=True)
class SqueezeNet:
    """A network of few weights for images, its classifier a convolution."""

    batch: int = 1
    image: int = 224
    width: float = 1.0
    classes: int = 1000

    def build(self, model: Model) -> None:
        """Adds `@main`: (batch, 3, image, image) to the probability of each class."""
        f = model.function(
            "main", {"data": tensor(self.batch, 3, self.image, self.image)}, tensor(self.batch, self.classes)
        )
        inputs = scaled(64, self.width)
        x = f.op("nn.relu", conv2d(f, "%data", "conv1", 3, inputs, 3, stride=2, bias=True))
        for number, (squeezed, expanded, pooled) in enumerate(FIRES, start=2):
            if pooled:
                x = f.op("nn.max_pool2d", x, pool_size=[3, 3], strides=[2, 2], padding=[0, 0, 0, 0], ceil_mode=True)
            expanded = scaled(expanded, self.width)
            x = _fire(f, x, f"fire{number}", inputs, scaled(squeezed, self.width), expanded)
            inputs = 2 * expanded
        x = f.let(f"{f.op('nn.dropout', x)}.0")
        x = f.op("nn.relu", conv2d(f, x, "conv10", inputs, self.classes, 1, bias=True))
        x = f.op("nn.batch_flatten", f.op("nn.global_avg_pool2d", x))
        f.result(f.op("nn.softmax", x))


def _fire(f: Function, x: str, name: str, inputs: int, squeezed: int, expanded: int) -> str:
    """1×1 to few channels, then 1×1 and 3×3 side by side."""
    x = f.op("nn.relu", conv2d(f, x, f"{name}_squeeze1x1", inputs, squeezed, 1, bias=True))
    halves = [
        f.op("nn.relu", conv2d(f, x, f"{name}_expand{k}x{k}", squeezed, expanded, k, padding=k // 2, bias=True))
        for k in (1, 3)
    ]
    return f.op("concatenate", f.let(f"({', '.join(halves)})"), axis=1)
