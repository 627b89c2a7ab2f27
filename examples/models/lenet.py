"""LeNet for digits of 8×8 pixels.

LeCun et al., "Gradient-based learning applied to document recognition", 1998. Channels and units are LeNet-5's; kernels
are 3×3, as the images are a quarter as wide; relu and max pooling. The weights are trained, by `train_lenet.py`, and
stored in `lenet_weights.safetensors`.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .builder import Array, Function, Model, tensor

WEIGHTS = Path(__file__).parent / "lenet_weights.safetensors"

CONV1, CONV2 = 6, 16
"""Channels of the two 3×3 convolutions."""
FC1, FC2, CLASSES = 120, 84, 10
"""Units of the three fully connected layers."""
PIXELS = 8

SHAPES: dict[str, tuple[int, ...]] = {
    "conv1": (CONV1, 1, 3, 3),
    "conv2": (CONV2, CONV1, 3, 3),
    "fc1": (FC1, CONV2 * (PIXELS // 4) ** 2),
    "fc2": (FC2, FC1),
    "fc3": (CLASSES, FC2),
}
"""The weights, each with a bias of its first size."""


def read_weights(path: Path = WEIGHTS) -> dict[str, Array]:
    """Reads the trained weights, by name."""
    data = path.read_bytes()
    (size,) = struct.unpack_from("<Q", data)
    arrays: dict[str, Array] = {}
    for name, entry in json.loads(data[8 : 8 + size]).items():
        begin, end = entry["data_offsets"]
        arrays[name] = np.frombuffer(data[8 + size + begin : 8 + size + end], np.float32).reshape(entry["shape"])
    return arrays


@dataclass(frozen=True)
class LeNet:
    """Two convolutions and three fully connected layers."""

    batch: int = 1

    def build(self, model: Model) -> None:
        """Adds `@main`: (batch, 1, 8, 8), pixels from 0 to 1, to the probability of each digit."""
        trained = read_weights()
        f = model.function("main", {"data": tensor(self.batch, 1, PIXELS, PIXELS)}, tensor(self.batch, CLASSES))
        x = "%data"
        for name in ("conv1", "conv2"):
            weight = model.constant(f"{name}_weight", trained[f"{name}_weight"])
            x = f.op("nn.conv2d", x, weight, padding=[1, 1, 1, 1], channels=SHAPES[name][0], kernel_size=[3, 3])
            x = f.op("nn.relu", _bias(f, x, name, trained))
            x = f.op("nn.max_pool2d", x, pool_size=[2, 2], strides=[2, 2], padding=[0, 0, 0, 0])
        x = f.op("nn.batch_flatten", x)
        for name in ("fc1", "fc2", "fc3"):
            weight = model.constant(f"{name}_weight", trained[f"{name}_weight"])
            x = _bias(f, f.op("nn.dense", x, weight, units=SHAPES[name][0]), name, trained)
            x = f.op("nn.softmax" if name == "fc3" else "nn.relu", x)
        f.result(x)


def _bias(f: Function, x: str, name: str, trained: dict[str, Array]) -> str:
    return f.op("nn.bias_add", x, f.model.constant(f"{name}_bias", trained[f"{name}_bias"]))
