"""MLP 784-128-64-10, as TVM's `relay.testing.mlp`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .builder import Function
from .layers import Classifier, dense


@dataclass(frozen=True)
class Perceptron(Classifier):
    """A multi-layer perceptron for images of 28×28 pixels."""

    image: int = 28
    classes: int = 10
    channels: ClassVar[int] = 1

    def scores(self, f: Function) -> str:
        x, inputs = f.op("nn.batch_flatten", "%data"), self.image * self.image
        for layer, units in enumerate((128, 64), start=1):
            units = self.scaled(units)
            x = f.op("nn.relu", dense(f, x, f"fc{layer}", inputs, units, gain=2.0))
            inputs = units
        return dense(f, x, "fc3", inputs, self.classes)
