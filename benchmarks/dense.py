"""Times a 1024×1024×1024 Relay dense without a schedule against numpy's BLAS; one thread each."""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import mirstack
import numpy as np

from .timing import report, side_by_side

TEXT = """
#[version = "0.0.5"]
def @main(%x: Tensor[({m}, {k}), float32], %w: Tensor[({n}, {k}), float32]) {{
  nn.dense(%x, %w, units={n})
}}
"""

SHAPES = ((1024, 1024, 1024), (512, 512, 512), (1, 1024, 1024), (64, 784, 128), (1000, 1000, 1000))


def measure(m: int, n: int, k: int) -> None:
    """Compiles, checks and times one shape."""
    generator = np.random.default_rng(0)
    x = generator.standard_normal((m, k), dtype=np.float32)
    w = generator.standard_normal((n, k), dtype=np.float32)
    ours = mirstack.compile(mirstack.parse(TEXT.format(m=m, n=n, k=k)), threads=1)
    np.testing.assert_allclose(ours(x, w), x @ w.T, rtol=1e-3, atol=1e-3)
    medians = side_by_side({"mirstack": lambda: ours(x, w), "numpy": lambda: x @ w.T})
    flops = 2 * m * n * k
    speeds = ", ".join(f"{name} {flops / seconds / 1e9:.1f} GFLOP/s" for name, seconds in medians.items())
    print(f"  dense {m}×{n}×{k}, one thread: {speeds}")
    report(medians)


def main() -> None:
    for m, n, k in SHAPES:
        measure(m, n, k)


if __name__ == "__main__":
    main()
