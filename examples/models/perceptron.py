"""MLP 784-128-64-10, as TVM's `relay.testing.mlp`."""

from __future__ import annotations

from dataclasses import dataclass

from .builder import Model, tensor
from .layers import dense, scaled


@dataclass(frozen=True)
class Perceptron:
    """A multi-layer perceptron for images of 28×28 pixels."""

    batch: int = 1
    image: int = 28
    width: float = 1.0
    classes: int = 10

    def build(self, model: Model) -> None:
        """Adds `@main`: (batch, 1, image, image) to the probability of each class."""
        f = model.function(
            "main", {"data": tensor(self.batch, 1, self.image, self.image)}, tensor(self.batch, self.classes)
        )
        x, inputs = f.op("nn.batch_flatten", "%data"), self.image * self.image
        for layer, units in enumerate((128, 64), start=1):
            units = scaled(units, self.width)
            x = f.op("nn.relu", dense(f, x, f"fc{layer}", inputs, units, gain=2.0))
            inputs = units
        f.result(f.op("nn.softmax", dense(f, x, "fc3", inputs, self.classes)))
