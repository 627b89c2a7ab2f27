"""Transposed convolutions with strides are convolutions of phases: compiled, they give what their meaning in numpy gives."""

from __future__ import annotations

import mirstack
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

SEED = 7


def check(
    shape: tuple[int, ...], channels: int, kernel: list[int], strides: list[int], padding: list[int], extra: list[int],
    layout: str = "NCHW", groups: int = 1,
) -> None:  # fmt: skip
    """Compiles one such operator behind a relu, and compares it with the interpreter."""
    rank = len(kernel)
    inputs = shape[layout.index("C")]
    weight = (inputs, channels // groups, *kernel)
    spatial = layout.replace("N", "").replace("C", "")
    text = f"""
    def @main(%x: Tensor[{shape}, float32], %w: Tensor[{weight}, float32]) {{
      nn.relu(nn.conv{rank}d_transpose(%x, %w, channels={channels}, kernel_size={kernel}, strides={strides},
        padding={padding}, output_padding={extra}, groups={groups}, data_layout="{layout}", kernel_layout="IO{spatial}"))
    }}"""
    random = np.random.default_rng(SEED)
    x = random.standard_normal(shape).astype("float32")
    w = random.standard_normal(weight).astype("float32")
    module = mirstack.parse(text)
    expected = mirstack.compile(module, target="interp")(x, w)
    np.testing.assert_allclose(mirstack.compile(module)(x, w), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize(
    ("kernel", "strides"), [([4, 4], [2, 2]), ([3, 3], [2, 2]), ([2, 5], [3, 2]), ([1, 2], [1, 4])]
)
def test_strides(kernel: list[int], strides: list[int], layout: str) -> None:
    shape = (1, 16, 5, 7) if layout == "NCHW" else (1, 5, 7, 16)
    check(shape, 24, kernel, strides, [1, 0, 0, 1], [0, 1], layout)


def test_one_and_three_axes() -> None:
    check((2, 6, 9), 4, [5], [3], [1, 2], [2], "NCW")
    check((1, 4, 3, 4, 5), 6, [3, 2, 4], [2, 1, 2], [1, 0, 1, 1, 1, 2], [1, 0, 0], "NCDHW")


def test_groups() -> None:
    check((2, 8, 6, 6), 12, [4, 3], [2, 2], [1, 1, 1, 1], [0, 0], groups=4)


@settings(max_examples=15, deadline=None)
@given(
    kernel=st.lists(st.integers(1, 6), min_size=2, max_size=2),
    strides=st.lists(st.integers(1, 4), min_size=2, max_size=2),
    size=st.lists(st.integers(2, 9), min_size=2, max_size=2),
    low=st.integers(0, 1),
    channels=st.tuples(st.integers(1, 20), st.integers(1, 20)),
)
def test_any_shape(kernel: list[int], strides: list[int], size: list[int], low: int, channels: tuple[int, int]) -> None:
    padding = [min(low, (k - 1) // 2) for k in kernel] * 2
    check((1, channels[0], *size), channels[1], kernel, strides, padding, [0, 0])
