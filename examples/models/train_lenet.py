"""Trains LeNet for the digits with numpy and writes its weights.

    python -m mirstack.examples.models.train_lenet

The images are those of `examples/digits`: 1,437 train, the other 360 (`examples/digits/test_images.npz`) are only ever
classified. The seed is fixed, so the weights come out the same up to rounding. Needs scikit-learn, which has the images.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from mirstack.dialects.side_file import write_safetensors
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from .builder import Array
from .lenet import SHAPES, WEIGHTS

EPOCHS = 60
BATCH = 32
LEARNING_RATE = 1e-3
WEIGHT_DECAY = 1e-4


def patches(x: Array) -> Array:
    """Gathers (n, c, h, w) to (n, h, w, c·9): the window of a padded 3×3 kernel at each pixel."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = sliding_window_view(padded, (3, 3), axis=(2, 3))
    return windows.transpose(0, 2, 3, 1, 4, 5).reshape(x.shape[0], *x.shape[2:], -1)


def convolve(x: Array, weight: Array) -> Array:
    """Returns a 3×3 convolution of padding 1 and stride 1, NCHW."""
    return (patches(x) @ weight.reshape(len(weight), -1).T).transpose(0, 3, 1, 2)


def quarters(x: Array) -> Array:
    """Gathers (n, c, h, w) to (n, c, h/2, w/2, 4): the windows of a 2×2 max pool."""
    n, c, h, w = x.shape
    return x.reshape(n, c, h // 2, 2, w // 2, 2).transpose(0, 1, 2, 4, 3, 5).reshape(n, c, h // 2, w // 2, 4)


def from_quarters(x: Array) -> Array:
    """Inverts `quarters`."""
    n, c, h, w, _ = x.shape
    return x.reshape(n, c, h, w, 2, 2).transpose(0, 1, 2, 4, 3, 5).reshape(n, c, 2 * h, 2 * w)


def forward(parameters: dict[str, Array], x: Array) -> tuple[Array, list[tuple[str, Array, Array]]]:
    """Returns the logits of images (n, 1, 8, 8); with each layer's name, input and value before its relu."""
    kept: list[tuple[str, Array, Array]] = []
    for name in SHAPES:
        if name == "fc1":
            x = x.reshape(len(x), -1)
        weight, bias = parameters[f"{name}_weight"], parameters[f"{name}_bias"]
        if weight.ndim == 4:
            value = convolve(x, weight) + bias[:, None, None]
            kept.append((name, x, value))
            x = quarters(np.maximum(value, 0)).max(axis=-1)
        else:
            value = x @ weight.T + bias
            kept.append((name, x, value))
            x = value if name == "fc3" else np.maximum(value, 0)
    return x, kept


def gradients(parameters: dict[str, Array], x: Array, labels: NDArray[np.int64]) -> dict[str, Array]:
    """Gradients of the mean cross entropy and the weights' decay, by parameter."""
    logits, kept = forward(parameters, x)
    exponents = np.exp(logits - logits.max(axis=1, keepdims=True))
    delta = exponents / exponents.sum(axis=1, keepdims=True)
    delta[np.arange(len(labels)), labels] -= 1
    delta /= len(labels)
    found: dict[str, Array] = {}
    for name, inputs, value in reversed(kept):
        weight = parameters[f"{name}_weight"]
        if weight.ndim == 4:
            # The largest of four gets the gradient, where relu let it through.
            four = quarters(np.maximum(value, 0))
            delta = delta.reshape(four.shape[:-1])
            largest = four.argmax(axis=-1)[..., None] == np.arange(4)
            delta = from_quarters(delta[..., None] * largest) * (value > 0)
            flat = delta.transpose(0, 2, 3, 1).reshape(-1, len(weight))
            own = (flat.T @ patches(inputs).reshape(len(flat), -1)).reshape(weight.shape)
            found[f"{name}_bias"] = flat.sum(axis=0)
            # The gradient of a convolution's input: the kernel turned around, its channels swapped.
            delta = convolve(delta, weight[:, :, ::-1, ::-1].transpose(1, 0, 2, 3))
        else:
            delta = delta if name == "fc3" else delta * (value > 0)
            own, found[f"{name}_bias"] = delta.T @ inputs, delta.sum(axis=0)
            delta = delta @ weight
        found[f"{name}_weight"] = own + WEIGHT_DECAY * weight
    return found


def train(x: Array, labels: NDArray[np.int64], rng: np.random.Generator) -> dict[str, Array]:
    """Trains by Adam (Kingma and Ba, 2015) over shuffled batches."""
    parameters: dict[str, Array] = {}
    for name, shape in SHAPES.items():
        spread = np.sqrt(2 / np.prod(shape[1:]))
        parameters[f"{name}_weight"] = (rng.standard_normal(shape) * spread).astype("float32")
        parameters[f"{name}_bias"] = np.zeros(shape[0], "float32")
    mean = {name: np.zeros_like(p) for name, p in parameters.items()}
    square = {name: np.zeros_like(p) for name, p in parameters.items()}
    step = 0
    for _ in range(EPOCHS):
        order = rng.permutation(len(x))
        for start in range(0, len(x), BATCH):
            step += 1
            chosen = order[start : start + BATCH]
            for name, gradient in gradients(parameters, x[chosen], labels[chosen]).items():
                mean[name] = 0.9 * mean[name] + 0.1 * gradient
                square[name] = 0.999 * square[name] + 0.001 * gradient**2
                size = np.sqrt(square[name] / (1 - 0.999**step)) + 1e-8
                change = LEARNING_RATE * (mean[name] / (1 - 0.9**step)) / size
                parameters[name] = (parameters[name] - change).astype("float32")
    return parameters


def main() -> None:
    from sklearn.datasets import load_digits

    digits: Any = load_digits()
    # The split of examples/digits/train.py.
    order = np.random.default_rng(0).permutation(len(digits.data))
    test, rest = order[:360], order[360:]
    x = (digits.data / 16).astype("float32").reshape(-1, 1, 8, 8)
    parameters = train(x[rest], digits.target[rest], np.random.default_rng(1))
    accuracy = float((forward(parameters, x[test])[0].argmax(axis=1) == digits.target[test]).mean())
    write_safetensors(WEIGHTS, parameters)
    print(f"trained on {len(rest)} images, {accuracy:.4f} of {len(test)} others classified right")


if __name__ == "__main__":
    main()
