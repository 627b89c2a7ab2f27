"""Times quantized programs and compares them with floats: classifiers on bytes, weights of 4 bits.

    python -m mirstack.benchmarks.quantization [--models build/models]

The classifiers are ResNet-18 and MobileNet, trained for scikit-learn's digits by `examples/models/train_classifiers.py`: if the folder
does not hold them, they are trained first, which takes some minutes. They are calibrated on training images; how they classify the images
that training has not seen is compared with floats. Needs scikit-learn.

Products read their packed weights from memory: their speed is compared with that of adding up as many bytes on as many threads.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import mirstack
import numpy as np
from mirstack.examples.models.builder import write_safetensors
from mirstack.examples.models.lenet import read_weights
from mirstack.examples.models.registry import build
from mirstack.examples.models.train_classifiers import CLASSES, EPOCHS, SIDES, classes, load_digits, train
from mirstack.passes.relay.quantize.calibration import METHODS, Method

from .timing import cpu_seconds

ROUNDS = 25
CALIBRATED = 64
"""Training images that ranges follow from."""
SIDE = 224
"""Height and width that the models are published with: their time is measured for such images, too."""


def least(*works: Callable[[], object], threads: int = 1) -> list[float]:
    """Returns the least seconds of each, measured interleaved; processor time where there is one thread."""
    best = [float("inf")] * len(works)
    for _ in range(ROUNDS):
        for number, work in enumerate(works):
            start = time.perf_counter()
            seconds = cpu_seconds(work)
            best[number] = min(best[number], seconds if threads == 1 else time.perf_counter() - start)
    return best


def trained(name: str, folder: Path) -> Path:
    """Returns the trained model's file in a folder; trains it where there is none."""
    path = folder / f"{name}.mir"
    if not path.exists():
        train(name, load_digits(SIDES[name]), EPOCHS[name]).write(folder, name)
    return path


def measure_agreement(name: str, folder: Path, methods: Sequence[Method] = METHODS) -> None:
    """Quantizes a trained classifier by each calibration; compares it with floats on unseen images."""
    digits, path = load_digits(SIDES[name]), trained(name, folder)
    images, labels = digits.test_images, digits.test_labels
    exact = classes(mirstack.compile(path, threads=1), images)
    print(
        f"  {name} {SIDES[name]}×{SIDES[name]}: of {len(images)} images {(exact == labels).mean():.2%} are right in floats"
    )
    for method in methods:
        data = {"data": digits.images[:CALIBRATED]}
        result = mirstack.quantize(path, data, metric="agreement", calibrate=method)
        found = classes(mirstack.compile(result.module, threads=1), images)
        print(
            f"    {method}: {(exact == found).mean():.2%} agree, {(found == labels).mean():.2%} are right;"
            f" probabilities differ by {result.error:.2%}"
        )


def measure_time(name: str, folder: Path, side: int) -> None:
    """Times a trained classifier in floats and on bytes, on one thread, for images of another size, too."""
    model = build(name, image=side, classes=CLASSES)
    model.weights.update(read_weights(trained(name, folder).with_suffix(".safetensors")))
    images = load_digits(side).images[:4]
    with tempfile.TemporaryDirectory() as other:
        path = model.write(Path(other), name)
        result = mirstack.quantize(path, {"data": images}, metric="agreement")
        programs = [mirstack.compile(each, threads=1) for each in (path, result.module)]
        floats, in_bytes = least(*(lambda p=p: p(images[:1]) for p in programs))
    print(
        f"  {name} {side}×{side}: floats {floats * 1e3:.2f} ms, bytes {in_bytes * 1e3:.2f} ms,"
        f" {floats / in_bytes:.2f} times as fast"
    )


PRODUCT = """
#[version = "0.0.5"]
#[constants = "packed.safetensors"]
def @main(%x: Tensor[({rows}, {depth}), float32]) {{
  nn.matmul_nbits(%x, meta[relay.Constant][weight], meta[relay.Constant][scales], 8u8, block_size={group})
}}
"""
SUM = "def @main(%x: Tensor[({count}), int32]) {{ sum(%x) }}"


def measure_product(rows: int | str, group: int, threads: int, units: int = 1 << 16, depth: int = 16384) -> None:
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


def main(argv: Sequence[str] = ()) -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(prog="python -m mirstack.benchmarks.quantization", description=__doc__)
    parser.add_argument("--models", type=Path, default=Path("build/models"), help="where trained models are kept")
    folder: Path = parser.parse_args(argv).models
    for threads in (1, 2):
        for group in (32, 128):
            measure_product(1, group, threads)
    for rows in ("?", 2, 4, 8, 16):
        measure_product(rows, 32, 1)
    for name in EPOCHS:
        measure_agreement(name, folder)
        for side in (SIDES[name], SIDE):
            measure_time(name, folder, side)


if __name__ == "__main__":
    main(sys.argv[1:])
