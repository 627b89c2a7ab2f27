"""Layers that several models share, with the weight names of TVM's testing models."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from .builder import Function, Model, number, tensor


@dataclass(frozen=True)
class Classifier(ABC):
    """A network for images; `width` scales the numbers of channels."""

    batch: int = 1
    image: int = 224
    width: float = 1.0
    classes: int = 1000
    channels: ClassVar[int] = 3

    def build(self, model: Model) -> None:
        """Adds `@main`: (batch, channels, image, image) to the probability of each class."""
        data = tensor(self.batch, self.channels, self.image, self.image)
        f = model.function("main", {"data": data}, tensor(self.batch, self.classes))
        f.result(f.op("nn.softmax", self.scores(f)))

    @abstractmethod
    def scores(self, f: Function) -> str:
        """Adds the layers from `%data` to the scores, (batch, classes)."""

    def scaled(self, channels: int) -> int:
        """Returns a number of channels times the width, at least 1."""
        return scaled(channels, self.width)


def scaled(channels: int, width: float) -> int:
    """Adds a number of channels times a model's width, at least 1."""
    return max(1, round(channels * width))


def conv2d(
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
    bias: bool = False,
) -> str:
    """Adds a square NCHW convolution of `inputs` to `channels` channels, with `bias` a bias."""
    shape = (channels, inputs // groups, kernel, kernel)
    weight = f.model.he(f"{name}_weight", shape, inputs // groups * kernel * kernel)
    strides = {} if stride == 1 else {"strides": [stride, stride]}
    grouping = {} if groups == 1 else {"groups": groups}
    x = f.op(
        "nn.conv2d",
        x,
        weight,
        **strides,
        padding=[padding] * 4,
        **grouping,
        channels=channels,
        kernel_size=[kernel] * 2,
    )
    return f.op("nn.bias_add", x, f.model.normal(f"{name}_bias", channels)) if bias else x


def batch_norm(f: Function, x: str, name: str, channels: int, *, epsilon: float = 1e-5, gamma: float = 1.0) -> str:
    """Adds a batch norm with training statistics; scales are near `gamma`. Its first result is the value."""
    model = f.model
    vectors = (
        model.uniform(f"{name}_gamma", channels, 0.5 * gamma, 1.5 * gamma),
        model.normal(f"{name}_beta", channels),
        model.normal(f"{name}_moving_mean", channels),
        model.uniform(f"{name}_moving_var", channels, 0.5, 1.5),
    )
    attrs = {} if epsilon == 1e-5 else {"epsilon": epsilon}
    return f.let(f"{f.op('nn.batch_norm', x, *vectors, **attrs)}.0")


def dense(f: Function, x: str, name: str, inputs: int, units: int, *, gain: float = 1.0, axis: int = 1) -> str:
    """Adds a fully connected layer with bias. `gain` is 2 before a relu, 1 before what keeps the variance."""
    x = f.op("nn.dense", x, f.model.he(f"{name}_weight", (units, inputs), inputs, gain), units=units)
    return f.op("nn.bias_add", x, f.model.normal(f"{name}_bias", units), axis=axis)


def layer_norm(f: Function, x: str, name: str, size: int, *, epsilon: float = 1e-5) -> str:
    """Adds a layer norm over the last axis."""
    scale, shift = f.model.uniform(f"{name}_gamma", size, 0.5, 1.5), f.model.normal(f"{name}_beta", size)
    attrs = {} if epsilon == 1e-5 else {"epsilon": epsilon}
    return f.op("nn.layer_norm", x, scale, shift, axis=-1, **attrs)


def gelu(f: Function, x: str) -> str:
    """Adds x · Φ(x) by the error function (Hendrycks and Gimpel, "Gaussian error linear units", 2016)."""
    half = f.op("multiply", x, number(0.5))
    phi = f.op("add", number(1.0), f.op("erf", f.op("multiply", x, number(0.70710678))))
    return f.op("multiply", half, phi)


def gelu_tanh(f: Function, x: str) -> str:
    """Adds the same paper's approximation by tanh, which GPT-2 uses."""
    cube = f.op("power", x, number(3.0))
    inner = f.op("add", x, f.op("multiply", cube, number(0.044715)))
    curve = f.op("tanh", f.op("multiply", inner, number(0.79788456)))
    return f.op("multiply", f.op("multiply", x, number(0.5)), f.op("add", number(1.0), curve))
