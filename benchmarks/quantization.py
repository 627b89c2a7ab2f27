"""Times quantized programs: classifiers on bytes, and products with weights of 4 bits.

The classifiers are ResNet-18 and MobileNet of random weights, whose last layer is fitted to images of digits by least squares: nothing is
trained, but they classify. They are calibrated on images of one part; what the largest class of the others is, is compared with floats.

Products read their packed weights from memory: their speed is compared with that of adding up as many bytes on as many threads.
"""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mirstack
import numpy as np
from mirstack.examples.models.builder import Array, Model, write_safetensors
from mirstack.examples.models.registry import build

from .timing import cpu_seconds

IMAGES = Path(__file__).parents[1] / "examples" / "digits" / "test_images.npz"
FITTED, CALIBRATED = 240, 32
"""Images that the last layer is fitted to, the first of which calibrate; the rest are classified."""
ROUNDS = 25
RIDGE = 0.1
CLASSES = 10
SIDE = 224
FEATURES = {"resnet18": ("fc1", 512), "mobilenet": ("fc", 1024)}
"""The last layer of each model, and how many numbers it takes."""


def least(*works: Callable[[], object], threads: int = 1) -> list[float]:
    """Returns the least seconds of each, measured interleaved; processor time where there is one thread."""
    best = [float("inf")] * len(works)
    for _ in range(ROUNDS):
        for number, work in enumerate(works):
            start = time.perf_counter()
            seconds = cpu_seconds(work)
            best[number] = min(best[number], seconds if threads == 1 else time.perf_counter() - start)
    return best


def images(side: int) -> tuple[Array, Array]:
    """Returns images of digits (n, 1, 3, side, side), nearest pixels, and their labels."""
    data = np.load(IMAGES, allow_pickle=False)
    place = np.arange(side) * 8 // side
    pixels = (data["images"].reshape(-1, 8, 8) / 16).astype(np.float32)[:, place][:, :, place]
    return np.ascontiguousarray(np.broadcast_to(pixels[:, None, None], (len(pixels), 1, 3, side, side))), data["labels"]


def _module(model: Model, folder: Path, name: str) -> Any:
    """Returns the module of a model without the softmax at its end."""
    write_safetensors(folder / f"{name}.safetensors", model.weights)
    text = re.sub(r"nn\.softmax\((%\w+)\)", r"\1", model.text(f"{name}.safetensors"))
    return mirstack.parse(text, directory=folder)


def classifier(name: str, side: int, folder: Path, **sizes: Any) -> tuple[Any, Array, Array]:
    """Returns the fitted model's module, and the images and labels that it was not fitted to."""
    layer, count = FEATURES[name]
    given = build(name, image=side, classes=count, **sizes)
    size = given.weights[f"{layer}_weight"].shape[1]
    model = build(name, image=side, classes=size, **sizes)
    model.weights[f"{layer}_weight"] = np.eye(size, dtype=np.float32)
    model.weights[f"{layer}_bias"] = np.zeros(size, np.float32)
    program = mirstack.compile(_module(model, folder, "features"))
    pixels, labels = images(side)
    features = np.concatenate([np.asarray(program(image)) for image in pixels[:FITTED]]).astype(np.float64)
    # One scale for all: weights of very different sizes would not be fit for bytes.
    mean, spread = features.mean(0), (features - features.mean(0)).std()
    scaled = (features - mean) / spread
    wanted = np.eye(CLASSES)[labels[:FITTED]] - 1 / CLASSES
    found = np.linalg.solve(scaled.T @ scaled + RIDGE * FITTED * np.eye(size), scaled.T @ wanted) / spread
    fitted = build(name, image=side, classes=CLASSES, **sizes)
    fitted.weights[f"{layer}_weight"] = found.T.astype(np.float32)
    fitted.weights[f"{layer}_bias"] = (-(mean @ found)).astype(np.float32)
    return _module(fitted, folder, "fitted"), pixels, labels


def measure_classifier(name: str, side: int = SIDE) -> None:
    """Fits, quantizes and times one classifier on one thread."""
    with tempfile.TemporaryDirectory() as folder:
        module, pixels, labels = classifier(name, side, Path(folder))
        result = mirstack.quantize(module, {"data": pixels[:CALIBRATED]}, metric="agreement")
        programs = [mirstack.compile(each, threads=1) for each in (module, result.module)]
        rest, wanted = pixels[FITTED:], labels[FITTED:]
        exact, found = (np.array([np.asarray(p(image)).argmax() for image in rest]) for p in programs)
        floats, in_bytes = least(*(lambda p=p: p(rest[0]) for p in programs))
    print(
        f"  {name} {side}×{side}: floats {floats * 1e3:.2f} ms, bytes {in_bytes * 1e3:.2f} ms,"
        f" {floats / in_bytes:.2f} times as fast; of {len(rest)} images {(exact == found).mean():.1%} agree,"
        f" {(exact == wanted).mean():.1%} and {(found == wanted).mean():.1%} are right"
    )


PRODUCT = """
#[version = "0.0.5"]
#[constants = "packed.safetensors"]
def @main(%x: Tensor[({rows}, {depth}), float32]) {{
  nn.matmul_nbits(%x, meta[relay.Constant][weight], meta[relay.Constant][scales], 8u8, block_size={group})
}}
"""
SUM = "def @main(%x: Tensor[({count}), int32]) {{ sum(%x) }}"


def measure_product(rows: int | str, group: int, threads: int, units: int = 8192, depth: int = 16384) -> None:
    """Times a product with a weight of 4 bits that no cache of a core holds, and adding up as many bytes."""
    rng = np.random.default_rng(0)
    weight = rng.integers(0, 256, (units, depth // group, group // 2), dtype=np.uint8)
    scales = rng.uniform(0.5, 1.5, (units, depth // group)).astype(np.float32)
    with tempfile.TemporaryDirectory() as folder:
        write_safetensors(Path(folder) / "packed.safetensors", {"weight": weight, "scales": scales})
        module = mirstack.parse(PRODUCT.format(rows=rows, depth=depth, group=group), directory=folder)
        program = mirstack.compile(module, threads=threads)
    size = weight.nbytes + scales.nbytes
    data = rng.standard_normal((rows if isinstance(rows, int) else 1, depth), dtype=np.float32)
    # Not zeros, which are one page of memory however many there are.
    words = rng.integers(0, 1 << 16, size // 4, dtype=np.int32)
    total = mirstack.compile(mirstack.parse(SUM.format(count=len(words))), threads=threads)
    product, added = least(lambda: program(data), lambda: total(words), threads=threads)
    print(
        f"  {data.shape[0]}{' (open)' if rows == '?' else ''}×{units}×{depth}, 4 bits, groups of {group}, {threads} threads:"
        f" {size / product / 1e9:.1f} GB/s; adding up as many bytes {size / added / 1e9:.1f} GB/s;"
        f" {added / product:.0%} of it"
    )


def main() -> None:
    for threads in (1, 2):
        for group in (32, 128):
            measure_product(1, group, threads)
    for rows in ("?", 2, 4, 8, 16):
        measure_product(rows, 32, 1)
    for name in FEATURES:
        measure_classifier(name)


if __name__ == "__main__":
    main()
