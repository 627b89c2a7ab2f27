"""Trains ResNet-18 and MobileNet for the digits by gradients that mirstack compiles.

    python -m mirstack.examples.models.train_classifiers resnet18 --out build/models

The pass `first-order-gradient` differentiates the model's loss, one native program computes loss and gradients of a batch, another one
Adam's step (Kingma and Ba, 2015). While training, batch norms normalize by the mean and variance of the batch; afterwards the averages of
these over the training images are stored, as `nn.batch_norm` takes them. The images are those of `examples/digits`, enlarged:
1,437 train, the other 360 are only ever classified. Needs scikit-learn, which has the images.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import cos, pi
from pathlib import Path
from typing import Any

import mirstack
import numpy as np
from mirstack.lowering.driver.loading.executable import flatten
from numpy.typing import NDArray

from .builder import Array, Attribute, Function, Model, number, tensor
from .layers import Classifier
from .lenet import PIXELS
from .registry import MODELS, build

CLASSES, CHANNELS = 10, 3
BATCH = 32
SIDES = {"resnet18": 32, "mobilenet": 64}
"""By model: height and width of its images. MobileNet's stages each halve them, five in all."""
EPOCHS = {"resnet18": 4, "mobilenet": 8}
"""By model: how often it sees each image."""
RATE = 2e-3
"""The step of Adam at the beginning."""
EPSILON = 1e-5
"""What `nn.batch_norm` adds to the variance."""

ADAM = """
def @main(%w: Tensor[(?), float32], %g: Tensor[(?), float32], %m: Tensor[(?), float32], %v: Tensor[(?), float32],
          %rate: Tensor[(), float32], %second: Tensor[(), float32]) {
  let %mean = add(multiply(%m, 0.9f), multiply(%g, 0.1f));
  let %square = add(multiply(%v, 0.999f), multiply(multiply(%g, %g), 0.001f));
  (subtract(%w, divide(multiply(%mean, %rate), add(sqrt(multiply(%square, %second)), 1e-8f))), %mean, %square)
}
"""
"""One step; `rate` and `second` hold the factors that make up for the zeros that both averages begin with."""


class _Training(Model):
    """A model whose weights are parameters of its function."""

    def constant(self, name: str, array: Array) -> str:
        """Adds an array under `name`; returns the parameter's text."""
        super().constant(name, array)
        return f"%{name}"


class _Function(Function):
    """A function whose batch norms normalize by the statistics of the batch."""

    def __init__(self, model: Model, name: str, params: Mapping[str, str], result: str):
        super().__init__(model, name, params, result)
        self.statistics: list[str] = []
        """The values of the mean and variance of each batch norm."""

    def op(self, name: str, *args: str, **attrs: Attribute) -> str:
        """Adds an operator, a batch norm as its parts."""
        if name != "nn.batch_norm":
            return super().op(name, *args, **attrs)
        x, gamma, beta = args[:3]
        mean = self.op("mean", x, axis=[0, 2, 3], keepdims=True)
        centred = self.op("subtract", x, mean)
        variance = self.op("mean", self.op("multiply", centred, centred), axis=[0, 2, 3], keepdims=True)
        gamma, beta = (self.op("expand_dims", each, axis=1, num_newaxis=2) for each in (gamma, beta))
        scale = self.op("multiply", self.op("rsqrt", self.op("add", variance, number(EPSILON))), gamma)
        self.statistics += [mean, variance]
        return f"({self.op('add', self.op('multiply', centred, scale), beta)}, {mean}, {variance})"


@dataclass
class Digits:
    """Images (n, 3, side, side) from 0 to 1 and their labels, those of training and the others."""

    images: Array
    labels: Array
    test_images: Array
    test_labels: Array


def enlarged(pixels: Array, side: int) -> Array:
    """Returns images (n, 64) from 0 to 16 as (n, 3, side, side) from 0 to 1, by linear interpolation."""
    # Row i of the matrix interpolates between the two pixels that are nearest to pixel i.
    place = np.clip((np.arange(side) + 0.5) * PIXELS / side - 0.5, 0, PIXELS - 1)
    mixed = np.maximum(1 - np.abs(place[:, None] - np.arange(PIXELS)), 0)
    images = (mixed @ (pixels.reshape(-1, 1, PIXELS, PIXELS) / 16) @ mixed.T).astype(np.float32)
    return np.repeat(images, CHANNELS, axis=1)


def shifted(images: Array, rng: np.random.Generator) -> Array:
    """Returns images, each moved by up to half a pixel of the digit; outermost pixels are repeated."""
    count, channels, side, _ = images.shape
    moved = np.arange(side) + rng.integers(-side // 16, side // 16, (2, count, 1), endpoint=True)
    rows, columns = np.clip(moved, 0, side - 1)
    places = np.arange(count)[:, None, None, None], np.arange(channels)[:, None, None]
    return images[(*places, rows[:, None, :, None], columns[:, None, None, :])]


def load_digits(side: int) -> Digits:
    """Loads scikit-learn's digits, in the parts of `examples/digits/train.py`."""
    from sklearn import datasets

    digits: Any = datasets.load_digits()
    order = np.random.default_rng(0).permutation(len(digits.data))
    images, labels = enlarged(digits.data[order], side), digits.target[order].astype(np.int64)
    return Digits(images[360:], labels[360:], images[:360], labels[:360])


def _loss(f: Function, scores: str, batch: int) -> str:
    """Adds the mean cross entropy of the labels, (batch, classes)."""
    likely = f.op("sum", f.op("multiply", "%labels", f.op("nn.log_softmax", scores)))
    return f.op("multiply", likely, number(-1 / batch))


def _text(architecture: Classifier, shapes: Mapping[str, Sequence[int]], *, statistics: bool) -> str:
    """Returns the function of images, labels and weights to the loss, or to what batch norms normalize by."""
    data = tensor(architecture.batch, architecture.channels, architecture.image, architecture.image)
    params = {"data": data, "labels": tensor(architecture.batch, architecture.classes)}
    f = _Function(_Training(), "main", params | {name: tensor(*shape) for name, shape in shapes.items()}, "()")
    scores = architecture.scores(f)
    f.result(f"({', '.join(f.statistics)})" if statistics else _loss(f, scores, architecture.batch))
    # Without the result's type, which is inferred.
    return f'#[version = "0.0.5"]\n{f.text().replace(" -> () {", " {", 1)}'


def train(
    name: str,
    digits: Digits,
    epochs: int,
    *,
    rate: float = RATE,
    seed: int = 0,
    report: Callable[[str], object] = print,
    **sizes: Any,
) -> Model:
    """Trains the model called `name` for the digits; returns it with its weights, for one image at a time."""
    sizes = {**sizes, "image": digits.images.shape[-1], "classes": CLASSES}
    model = build(name, seed, **sizes)
    weights = {key: value for key, value in model.weights.items() if not key.endswith(("_moving_mean", "_moving_var"))}
    architecture: Any = MODELS[name][0](batch=BATCH, **sizes)
    shapes = {key: value.shape for key, value in weights.items()}
    module = mirstack.IRModule.of_op(mirstack.parse(_text(architecture, shapes, statistics=False)))
    gradients = mirstack.compile(mirstack.relay.transform.FirstOrderGradient()(module))
    rng = np.random.default_rng(seed + 1)
    batches = len(digits.images) // BATCH
    adam = _Adam(weights)
    for epoch in range(epochs):
        start, total = time.perf_counter(), 0.0
        for chosen in np.array_split(rng.permutation(len(digits.images))[: batches * BATCH], batches):
            images = shifted(digits.images[chosen], rng)
            # The gradients of images and labels are not used.
            loss, _, _, *found = flatten(gradients(images, _one_hot(digits.labels[chosen]), *weights.values()))
            total += float(np.asarray(loss))
            # The rate falls along half a period of the cosine.
            adam.step(found, rate * (1 + cos(pi * (adam.steps + 1) / (epochs * batches))) / 2)
        report(f"epoch {epoch + 1}: loss {total / batches:.4f}, {time.perf_counter() - start:.1f} s")
    model.weights.update(weights)
    _store_statistics(model, architecture, weights, digits)
    return model


def _one_hot(labels: Array) -> Array:
    return np.eye(CLASSES, dtype=np.float32)[labels]


def _store_statistics(model: Model, architecture: Classifier, weights: Mapping[str, Array], digits: Digits) -> None:
    """Stores the means and variances of batches, averaged over the training images."""
    shapes = {key: value.shape for key, value in weights.items()}
    program = mirstack.compile(mirstack.parse(_text(architecture, shapes, statistics=True)))
    names = [key for key in model.weights if key not in weights]
    totals = [np.zeros(model.weights[key].shape, np.float64) for key in names]
    batches = len(digits.images) // BATCH
    for first in range(0, batches * BATCH, BATCH):
        images, labels = (each[first : first + BATCH] for each in (digits.images, _one_hot(digits.labels)))
        for total, value in zip(totals, flatten(program(images, labels, *weights.values())), strict=True):
            total += np.asarray(value).reshape(-1) / batches
    model.weights.update({key: value.astype(np.float32) for key, value in zip(names, totals, strict=True)})


class _Adam:
    """Replaces the weights of a dictionary step by step, by their gradients."""

    def __init__(self, weights: dict[str, Array]):
        self.weights, self.steps = weights, 0
        self.means, self.squares = ({key: np.zeros_like(value) for key, value in weights.items()} for _ in range(2))
        self.program = mirstack.compile(mirstack.parse(ADAM))

    def step(self, gradients: Sequence[Any], rate: float) -> None:
        """Changes the weights by their gradients, in the order of the weights."""
        self.steps += 1
        factors = np.array(rate / (1 - 0.9**self.steps), np.float32), np.array(1 / (1 - 0.999**self.steps), np.float32)
        stores = self.weights, self.means, self.squares
        for (key, weight), gradient in zip(list(self.weights.items()), gradients, strict=True):
            parts = (np.asarray(each).reshape(-1) for each in (weight, gradient, self.means[key], self.squares[key]))
            for store, value in zip(stores, flatten(self.program(*parts, *factors)), strict=True):
                store[key] = np.asarray(value).reshape(weight.shape)


def classes(program: Any, images: Array) -> NDArray[np.int64]:
    """Returns the class of the highest score of each image."""
    return np.array([np.asarray(program(image[None])).argmax() for image in images])


def accuracy(path: Path, digits: Digits) -> float:
    """Returns the part of the images that training has not seen which the written model classifies right."""
    return float((classes(mirstack.compile(path), digits.test_images) == digits.test_labels).mean())


def argument_parser() -> argparse.ArgumentParser:
    """Returns the options of the command."""
    parser = argparse.ArgumentParser(prog="python -m mirstack.examples.models.train_classifiers", description=__doc__)
    parser.add_argument("model", choices=tuple(EPOCHS), help="the model to train")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="where the model and its weights go")
    parser.add_argument("--seed", type=int, default=0, help="of the first weights and the order of images (0)")
    parser.add_argument("--epochs", type=int, help="how often each image is seen (4 for resnet18, 8 for mobilenet)")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit code."""
    args = argument_parser().parse_args(argv)
    digits = load_digits(SIDES[args.model])
    path = train(args.model, digits, args.epochs or EPOCHS[args.model], seed=args.seed).write(args.out, args.model)
    print(f"wrote {path}: of {len(digits.test_images)} other images {accuracy(path, digits):.2%} are classified right")
    return 0


if __name__ == "__main__":
    sys.exit(main())
