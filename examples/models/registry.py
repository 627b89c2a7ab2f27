"""The models by name, and their options."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from functools import partial
from typing import Any, Protocol

from .builder import Model
from .dcgan import Generator
from .lenet import LeNet
from .lstm import LSTM
from .mobilenet import MobileNet
from .perceptron import Perceptron
from .resnet import ResNet
from .squeezenet import SqueezeNet
from .transformer import BertEncoder, GptBlock
from .vgg import VGG


class Architecture(Protocol):
    """A model's sizes; `build` adds its functions to a module."""

    def build(self, model: Model) -> None: ...


@dataclass(frozen=True)
class Option:
    """One size that a model may be printed at."""

    name: str
    kind: type[int] | type[float]
    default: int | float
    help: str


MODELS: dict[str, tuple[Callable[..., Architecture], str]] = {
    "mlp": (Perceptron, "multi-layer perceptron 784-128-64-10"),
    "lenet": (LeNet, "LeNet for digits of 8×8 pixels, trained"),
    "resnet18": (ResNet, "ResNet-18"),
    "resnet50": (partial(ResNet, units=(3, 4, 6, 3), bottleneck=True), "ResNet-50"),
    "mobilenet": (MobileNet, "MobileNet v1"),
    "squeezenet": (SqueezeNet, "SqueezeNet 1.1"),
    "vgg16": (VGG, "VGG-16"),
    "dcgan": (Generator, "DCGAN's generator"),
    "lstm": (LSTM, "LSTM by recursion over the steps"),
    "bert": (BertEncoder, "BERT-base encoder layer"),
    "gpt": (GptBlock, "GPT-2 block with a causal mask"),
}
"""By name, what makes the model of given sizes, and what it is."""

_HELP = {
    "batch": "inputs at a time",
    "image": "height and width of an image, in pixels",
    "width": "factor on the number of channels",
    "classes": "outputs of a classifier",
    "code": "length of the random code",
    "sequence": "steps, or tokens",
    "inputs": "length of a step's vector",
    "hidden": "length of the state, or of a token's vector",
    "heads": "attention heads",
    "layers": "layers, one after the other",
}


def options_of(name: str) -> list[Option]:
    """Returns the sizes that the model called `name` may be printed at, with their defaults."""
    make = MODELS[name][0]
    found: list[Option] = []
    for field in fields(make.func if isinstance(make, partial) else make):  # pyright: ignore[reportArgumentType]
        default: Any = field.default
        if default is not MISSING and isinstance(default, int | float) and not isinstance(default, bool):
            kind = float if isinstance(default, float) else int
            found.append(Option(field.name, kind, default, _HELP[field.name]))
    return found


def build(name: str, seed: int = 0, **sizes: float) -> Model:
    """Returns the model called `name` at its published size, except for `sizes`; see `options_of`."""
    model = Model(seed)
    MODELS[name][0](**sizes).build(model)
    return model
