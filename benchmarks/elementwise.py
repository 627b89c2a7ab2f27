"""Times five chained elementwise operators over 64 MB against numpy's copy, read and write counted."""

from __future__ import annotations

import mirstack
import numpy as np

from .timing import report, side_by_side

COUNT = 16 * 1024 * 1024

TEXT = """
#[version = "0.0.5"]
def @main(%x: Tensor[({n}), float32]) {{
  %0 = add(%x, 1f);
  %1 = multiply(%0, 0.5f);
  %2 = nn.relu(%1);
  %3 = subtract(%2, 0.25f);
  multiply(%3, %3)
}}
"""


def measure(threads: int) -> None:
    """Compiles, checks and times the chain."""
    x = np.random.default_rng(0).standard_normal(COUNT, dtype=np.float32)
    target = np.empty_like(x)
    ours = mirstack.compile(mirstack.parse(TEXT.format(n=COUNT)), threads=threads)
    expected = np.square(np.maximum((x + 1) * np.float32(0.5), 0) - np.float32(0.25))
    np.testing.assert_allclose(ours(x), expected, rtol=1e-5, atol=1e-6)
    candidates = {
        f"mirstack, threads: {threads}": lambda: ours(x),
        "numpy copy to fresh memory": lambda: x.copy(),
        "numpy copy": lambda: np.copyto(target, x),
    }
    medians = side_by_side(candidates)
    report(medians)
    for name, seconds in medians.items():
        print(f"  {name}: {2 * x.nbytes / seconds / 1e9:.1f} GB/s")


def main() -> None:
    for threads in (1, 2):
        measure(threads)


if __name__ == "__main__":
    main()
