"""Measures a call of a tiny compiled function from Python against a bare ctypes call of a C function."""

from __future__ import annotations

import ctypes

import mirstack
import numpy as np

from .timing import report, side_by_side

TEXT = """
#[version = "0.0.5"]
def @main(%x: Tensor[(4), float32]) { add(%x, 1f) }

"""


def main() -> None:
    ours = mirstack.compile(mirstack.parse(TEXT))
    x = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(ours(x), x + 1)
    bare = ctypes.CDLL(None).abs
    bare.argtypes, bare.restype = [ctypes.c_int], ctypes.c_int
    medians = side_by_side({"mirstack": lambda: ours(x), "bare ctypes call": lambda: bare(3)}, calls=2000)
    report(medians, scale=1e6, unit="µs")
    print(f"  above the bare call: {(medians['mirstack'] - medians['bare ctypes call']) * 1e6:.2f} µs")


if __name__ == "__main__":
    main()
