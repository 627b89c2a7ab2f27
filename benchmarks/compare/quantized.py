"""Quantized programs as importers produce them, on uint8 activations.

    qnn.dequantize → nn.conv2d, add, nn.relu → qnn.quantize

Weights are int8 with a scale per channel. ONNX has the same operators, and its engines compute in integers between them;
torch has quantized operators of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from mirstack.examples.models.builder import Array, Attribute, attribute_text, tensor

SCALE = 0.02
"""Of activations."""
LARGEST = 127


@dataclass(frozen=True)
class Tensor:
    """A quantized activation: its name and its shape, NCHW or of two dimensions."""

    name: str
    shape: tuple[int, ...]


class Quantized:
    """Builds a quantized program; all activations share one scale and zero point 0, so that relu is free."""

    def __init__(self, *shape: int):
        self.weights: dict[str, Array] = {}
        self.input = Tensor("%x", shape)
        self.gain = 1.0
        """By how much the weights of a layer spread what they are multiplied with: squares, 2 where a relu takes half of it."""
        self._lines: list[str] = []
        self._rng = np.random.default_rng(0)

    def text(self, result: Tensor, file: str) -> str:
        """Returns the program, whose weights are in a side file."""
        head = f'#[version = "0.0.5"]\n#[constants = "{file}"]\n'
        parameter = f"%x: {tensor(*self.input.shape, dtype='uint8')}"
        return head + f"def @main({parameter}) {{\n" + "".join(self._lines) + f"  {result.name}\n}}\n"

    def convolution(self, x: Tensor, channels: int, kernel: int, stride: int = 1, groups: int = 1) -> Tensor:
        """Adds a square convolution with bias and relu that keeps the size, except for its stride."""
        inputs, size = x.shape[1:3]
        weight, bias = self._layer((channels, inputs // groups, kernel, kernel))
        padding = kernel // 2
        attrs: Mapping[str, Attribute] = {
            "strides": [stride] * 2, "padding": [padding] * 4, "groups": groups, "channels": channels, "kernel_size": [kernel] * 2,
        }  # fmt: skip
        real = self._op("nn.bias_add", self._op("nn.conv2d", self._real(x), weight, **attrs), bias)
        after = (size + 2 * padding - kernel) // stride + 1
        return self._quantized(self._op("nn.relu", real), (1, channels, after, after))

    def dense(self, x: Tensor, units: int) -> Tensor:
        """Adds a dense layer with bias."""
        weight, bias = self._layer((units, x.shape[1]))
        real = self._op("nn.bias_add", self._op("nn.dense", self._real(x), weight, units=units), bias)
        return self._quantized(real, (x.shape[0], units))

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """Adds the sum, with relu."""
        return self._quantized(self._op("nn.relu", self._op("add", self._real(x), self._real(y))), x.shape)

    def max_pool(self, x: Tensor) -> Tensor:
        """Adds a maximum of 3 x 3 windows, every second one."""
        pooled = self._op("nn.max_pool2d", self._real(x), pool_size=[3, 3], strides=[2, 2], padding=[1] * 4)
        size = (x.shape[2] - 1) // 2 + 1
        return self._quantized(pooled, (*x.shape[:2], size, size))

    def mean(self, x: Tensor) -> Tensor:
        """Adds the mean of each channel."""
        mean = self._quantized(self._op("nn.global_avg_pool2d", self._real(x)), (*x.shape[:2], 1, 1))
        return self._quantized(self._op("nn.batch_flatten", self._real(mean)), x.shape[:2])

    def _layer(self, shape: tuple[int, ...]) -> tuple[str, str]:
        """Weights and a bias, both as real numbers."""
        spread = LARGEST * np.sqrt(np.prod(shape[1:]) / (3 * self.gain))
        scales = (self._rng.uniform(0.6, 1.4, shape[0]) / spread).astype(np.float32)
        weight = self._constant(self._rng.integers(-LARGEST, LARGEST, shape, dtype=np.int8, endpoint=True))
        bias = self._constant(self._rng.integers(-2000, 2000, shape[0], dtype=np.int32))
        of_weight, of_bias = self._constant(scales), self._constant(scales * np.float32(SCALE))
        return (
            self._op("qnn.dequantize", weight, of_weight, "0", axis=0),
            self._op("qnn.dequantize", bias, of_bias, "0", axis=0),
        )

    def _real(self, x: Tensor) -> str:
        return self._op("qnn.dequantize", x.name, attribute_text(SCALE), "0")

    def _quantized(self, real: str, shape: tuple[int, ...]) -> Tensor:
        name = self._op("qnn.quantize", real, attribute_text(SCALE), "0", out_dtype="uint8")
        return Tensor(name, shape)

    def _constant(self, array: Array) -> str:
        name = f"w{len(self.weights)}"
        self.weights[name] = array
        return f"meta[relay.Constant][{name}]"

    def _op(self, name: str, *args: str, **attrs: Attribute) -> str:
        shown = [*args, *(f"{key}={attribute_text(value)}" for key, value in attrs.items())]
        self._lines.append(f"  %{len(self._lines)} = {name}({', '.join(shown)});\n")
        return f"%{len(self._lines) - 1}"


def resnet18(q: Quantized) -> Tensor:
    """ResNet-18, its batch norms folded into the convolutions."""
    x = q.max_pool(q.convolution(q.input, 64, 7, 2))
    for stage in range(4):
        channels = 64 << stage
        for unit in range(2):
            stride = 2 if stage and not unit else 1
            y = q.convolution(q.convolution(x, channels, 3, stride), channels, 3)
            if stride > 1:
                x = q.convolution(x, channels, 1, stride)
            x = q.add(x, y)
    return q.dense(q.mean(x), 1000)


def mobilenet(q: Quantized) -> Tensor:
    """MobileNet, likewise."""
    q.gain = 2.0
    x = q.convolution(q.input, 32, 3, 2)
    after = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1))
    for channels, stride in after:
        inputs = x.shape[1]
        x = q.convolution(q.convolution(x, inputs, 3, stride, inputs), channels, 1)
    return q.dense(q.mean(x), 1000)


__all__ = ["Quantized", "Tensor", "mobilenet", "resnet18"]
