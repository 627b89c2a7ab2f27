"""Trains the digits classifier with numpy; writes weights.npz, test_images.npz and its accuracy.

The data are the 1,797 images of 8×8 pixels of UCI's "Optical Recognition of Handwritten Digits", as they ship with
scikit-learn. 1,437 of them train a multi-layer perceptron 64-128-64-10; the other 360 are only ever classified.
Rerun it with `python examples/digits/train.py`; the seed is fixed, so the weights come out the same up to rounding.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating[Any]]

FOLDER = Path(__file__).parent
LAYERS = (64, 128, 64, 10)
EPOCHS = 120
BATCH = 32
LEARNING_RATE = 1e-3
WEIGHT_DECAY = 1e-4


def forward(parameters: list[tuple[Array, Array]], x: Array) -> list[Array]:
    """Returns the activations of every layer; the last one is the logits. `x` is (batch, 64)."""
    activations = [x]
    for number, (weight, bias) in enumerate(parameters):
        x = x @ weight.T + bias
        if number < len(parameters) - 1:
            x = np.maximum(x, 0)
        activations.append(x)
    return activations


def gradients(parameters: list[tuple[Array, Array]], x: Array, labels: NDArray[np.int64]) -> list[Array]:
    """Gradients of the mean cross entropy, by parameter, weights before biases of each layer."""
    activations = forward(parameters, x)
    logits = activations[-1] - activations[-1].max(axis=1, keepdims=True)
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    delta = probabilities
    delta[np.arange(len(labels)), labels] -= 1
    delta /= len(labels)
    found: list[Array] = []
    for number in reversed(range(len(parameters))):
        weight, _ = parameters[number]
        found[:0] = [delta.T @ activations[number] + WEIGHT_DECAY * weight, delta.sum(axis=0)]
        delta = (delta @ weight) * (activations[number] > 0)
    return found


def train(x: Array, labels: NDArray[np.int64], rng: np.random.Generator) -> list[tuple[Array, Array]]:
    """Trains by Adam (Kingma and Ba, 2015) over shuffled batches."""
    flat: list[Array] = []
    for inputs, outputs in itertools.pairwise(LAYERS):
        scale = np.sqrt(2 / inputs)
        flat += [(rng.standard_normal((outputs, inputs)) * scale).astype("float32"), np.zeros(outputs, "float32")]
    mean, square = [np.zeros_like(p) for p in flat], [np.zeros_like(p) for p in flat]
    step = 0
    for _ in range(EPOCHS):
        order = rng.permutation(len(x))
        for start in range(0, len(x), BATCH):
            step += 1
            chosen = order[start : start + BATCH]
            pairs = list(zip(flat[::2], flat[1::2], strict=True))
            for k, gradient in enumerate(gradients(pairs, x[chosen], labels[chosen])):
                mean[k] = 0.9 * mean[k] + 0.1 * gradient
                square[k] = 0.999 * square[k] + 0.001 * gradient**2
                corrected = mean[k] / (1 - 0.9**step)
                flat[k] = (
                    flat[k] - LEARNING_RATE * corrected / (np.sqrt(square[k] / (1 - 0.999**step)) + 1e-8)
                ).astype("float32")
    return list(zip(flat[::2], flat[1::2], strict=True))


def main() -> None:
    from sklearn.datasets import load_digits

    digits: Any = load_digits()
    rng = np.random.default_rng(0)
    order = rng.permutation(len(digits.data))
    test, rest = order[:360], order[360:]
    x = (digits.data / 16).astype("float32")
    parameters = train(x[rest], digits.target[rest], rng)
    predictions = forward(parameters, x[test])[-1].argmax(axis=1)
    accuracy = float((predictions == digits.target[test]).mean())
    arrays: dict[str, Any] = {
        f"fc{number}.{kind}": value
        for number, pair in enumerate(parameters, start=1)
        for kind, value in zip(("weight", "bias"), pair, strict=True)
    }
    np.savez(FOLDER / "weights.npz", **arrays)
    np.savez_compressed(
        FOLDER / "test_images.npz",
        images=digits.data[test].astype("uint8"),
        labels=digits.target[test].astype("uint8"),
        accuracy=np.float64(accuracy),
    )
    print(f"trained on {len(rest)} images, {accuracy:.4f} of {len(test)} others classified right")


if __name__ == "__main__":
    main()
