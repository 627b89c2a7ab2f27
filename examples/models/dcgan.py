"""DCGAN's generator, as TVM's `relay.testing.dcgan`.

Radford et al., "Unsupervised representation learning with DCGANs", 2015.
"""

from __future__ import annotations

from dataclasses import dataclass

from .builder import Function, Model, tensor
from .layers import batch_norm, scaled


@dataclass(frozen=True)
class Generator:
    """Random codes to images of 64×64 pixels, by transposed convolutions."""

    batch: int = 1
    width: float = 1.0
    code: int = 100

    def build(self, model: Model) -> None:
        """Adds `@main`: (batch, code) to (batch, 3, 64, 64), from -1 to 1."""
        f = model.function("main", {"data": tensor(self.batch, self.code)}, tensor(self.batch, 3, 64, 64))
        inputs = scaled(1024, self.width)
        units = inputs * 4 * 4
        x = f.op("nn.dense", "%data", model.he("g1_weight", (units, self.code), self.code), units=units)
        x = f.op("reshape", f.op("nn.relu", x), newshape=[-1, inputs, 4, 4])
        for layer, channels in enumerate((512, 256, 128), start=2):
            channels = scaled(channels, self.width)
            x = _upconv2d(f, x, f"g{layer}", inputs, channels)
            x = f.op("nn.relu", batch_norm(f, x, f"g{layer}_bn", channels))
            inputs = channels
        f.result(f.op("tanh", _upconv2d(f, x, "g5", inputs, 3)))


def _upconv2d(f: Function, x: str, name: str, inputs: int, channels: int) -> str:
    """Adds a transposed convolution 4×4 of stride 2, which doubles height and width."""
    # Each output pixel sees a quarter of the kernel's taps.
    weight = f.model.he(f"{name}_weight", (inputs, channels, 4, 4), inputs * 4)
    return f.op(
        "nn.conv2d_transpose", x, weight, channels=channels, kernel_size=[4, 4], strides=[2, 2], padding=[1, 1, 1, 1]
    )
