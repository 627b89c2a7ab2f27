"""`make demo`: compiles the digits classifier from its Relay text and classifies 360 unseen images."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass, field
from pathlib import Path

import mirstack
import numpy as np
from mirstack.driver.targets import print_mlir
from mirstack.support.walk import walk_ops
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

FOLDER = Path(__file__).parent
SHOWN = 6
SHADES = " .:-=+*#%@"


@dataclass
class Stages:
    """Seconds, ops and bytes of MLIR text of the module after each pass; measuring does not count as time."""

    rows: list[tuple[str, float, int, int]] = field(default_factory=list[tuple[str, float, int, int]])
    started: float = field(default_factory=time.perf_counter)

    def __call__(self, step: ModulePass, module: ModuleOp) -> None:
        seconds = time.perf_counter() - self.started
        ops = sum(1 for _ in walk_ops(module))
        self.rows.append((step.name, seconds, ops, len(print_mlir(module))))
        self.started = time.perf_counter()


def picture(pixels: NDArray[np.uint8]) -> list[str]:
    """Returns an 8×8 image as lines of text, two characters a pixel."""
    shades = [[SHADES[int(p) * (len(SHADES) - 1) // 16] * 2 for p in row] for row in pixels.reshape(8, 8)]
    return ["".join(row) for row in shades]


def show(images: NDArray[np.uint8], labels: NDArray[np.uint8], predictions: NDArray[np.int64]) -> None:
    """Prints a few digits side by side, with their predicted classes."""
    for line in zip(*(picture(image) for image in images[:SHOWN]), strict=True):
        print("  ".join(line))
    captions = (f"{p} (is {y})" for p, y in zip(predictions[:SHOWN], labels, strict=False))
    print("  ".join(f"{caption:^16}" for caption in captions))


def main() -> None:
    data = np.load(FOLDER / "test_images.npz", allow_pickle=False)
    images, labels = data["images"], data["labels"]

    start = time.perf_counter()
    module = mirstack.load(FOLDER / "digits.mir")
    parsed = time.perf_counter() - start
    stages = Stages()
    model = mirstack.compile(module, observers=(stages,))
    native = time.perf_counter() - stages.started

    print(f"{'stage':<24}{'ms':>8}{'ops':>8}{'bytes':>10}")
    print(
        f"{'parse and type':<24}{parsed * 1e3:>8.1f}{sum(1 for _ in walk_ops(module)):>8}{len(print_mlir(module)):>10}"
    )
    for name, seconds, ops, size in stages.rows:
        print(f"{name:<24}{seconds * 1e3:>8.1f}{ops:>8}{size:>10}")
    print(f"{'LLVM and machine code':<24}{native * 1e3:>8.1f}")
    print()

    pixels = (images / 16).astype("float32").reshape(-1, 1, 64)
    answers = [model(x) for x in pixels]
    times: list[float] = []
    for x in pixels:
        start = time.perf_counter()
        model(x)
        times.append(time.perf_counter() - start)
    predictions = np.array([int(a.argmax()) for a in answers])
    show(images, labels, predictions)
    accuracy = float((predictions == labels).mean())
    print()
    print(f"{len(images)} images, {accuracy:.4f} classified right (the trainer measured {float(data['accuracy']):.4f})")
    print(f"{statistics.median(times) * 1e6:.1f} µs an image, the call from Python included")
    if abs(accuracy - float(data["accuracy"])) > 1e-9:
        raise SystemExit("the accuracy is not what the trainer measured")


if __name__ == "__main__":
    main()
