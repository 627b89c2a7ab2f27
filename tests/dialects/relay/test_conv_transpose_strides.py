"""Transposed convolutions with strides in native code, against the interpreter: odd sizes, few filters, layouts, output padding."""

from __future__ import annotations

from typing import Any

import mirstack
import numpy as np
import pytest

# channels, height, width, filters, kernel, stride, padding, output padding
CASES = [
    (16, 4, 4, 24, 4, 2, 1, 0),
    (12, 7, 5, 17, 3, 2, 1, 1),
    (9, 6, 11, 3, 4, 2, 1, 0),
    (8, 5, 5, 16, 2, 2, 0, 0),
    (20, 1, 1, 33, 4, 2, 0, 0),
    (20, 1, 1, 5, 4, 1, 1, 0),
    (6, 1, 1, 9, 3, 3, 1, 2),
    (7, 6, 9, 10, 5, 3, 2, 2),
    (5, 6, 4, 8, 2, 3, 0, 0),
    (5, 3, 21, 2, 9, 3, 4, 0),
    (4, 2, 19, 1, 3, 2, 1, 1),
    (3, 4, 33, 3, 2, 4, 0, 3),
]


@pytest.mark.parametrize("cpu", [None, "haswell", "x86-64"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_strides(case: tuple[int, ...], cpu: str | None) -> None:
    channels, height, width, filters, kernel, stride, padding, extra = case
    generator = np.random.default_rng(height)
    x = generator.standard_normal((2, channels, height, width), dtype=np.float32)
    w = generator.standard_normal((channels, filters, kernel, kernel), dtype=np.float32)
    text = f"""#[version = "0.0.5"]
def @main(%x: Tensor[{x.shape}, float32], %w: Tensor[{w.shape}, float32]) {{
  tanh(nn.conv2d_transpose(%x, %w, channels={filters}, kernel_size=[{kernel}, {kernel}], strides=[{stride}, {stride}],
    padding=[{padding}, {padding}, {padding}, {padding}], output_padding=[{extra}, {extra}]))
}}"""
    module = mirstack.parse(text)
    run: Any = mirstack.compile(module, cpu=cpu, threads=2)
    interpreted: Any = mirstack.compile(module, target="interp")
    np.testing.assert_allclose(run(x, w), interpreted(x, w), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("rank", "layout", "kernel_layout"), [(1, "NCW", "IOW"), (2, "NHWC", "HWIO"), (3, "NCDHW", "IODHW")]
)
def test_layouts(rank: int, layout: str, kernel_layout: str) -> None:
    generator = np.random.default_rng(rank)
    sizes = {"N": 2, "C": 6, "D": 3, "H": 4, "W": 5}
    taps = {"I": 6, "O": 9, "D": 2, "H": 3, "W": 4}
    x = generator.standard_normal([sizes[a] for a in layout], dtype=np.float32)
    w = generator.standard_normal([taps[a] for a in kernel_layout], dtype=np.float32)
    kernel = [taps[a] for a in "DHW"[3 - rank :]]
    text = f"""#[version = "0.0.5"]
def @main(%x: Tensor[{x.shape}, float32], %w: Tensor[{w.shape}, float32]) {{
  nn.conv{rank}d_transpose(%x, %w, channels=9, kernel_size={kernel}, strides={[2] * rank}, padding={[1] * rank},
    output_padding={[0] * rank}, data_layout="{layout}", kernel_layout="{kernel_layout}")
}}"""
    module = mirstack.parse(text)
    run: Any = mirstack.compile(module)
    interpreted: Any = mirstack.compile(module, target="interp")
    np.testing.assert_allclose(run(x, w), interpreted(x, w), rtol=1e-4, atol=1e-4)
