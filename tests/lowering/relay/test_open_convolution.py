"""Convolutions of an unknown number of columns: the results are those of fixed sizes, also for none, one and parts of a block."""

from __future__ import annotations

from typing import Any

import mirstack
import numpy as np
import pytest

CASES = {
    "plain": ("?, 3, ?, ?", "5, 3, 3, 3", "padding=[1, 1, 1, 1], channels=5, kernel_size=[3, 3]"),
    "strides": ("1, 3, ?, ?", "5, 3, 3, 3", "strides=[2, 3], padding=[0, 1, 1, 2], channels=5, kernel_size=[3, 3]"),
    "dilation": ("2, 3, 9, ?", "4, 3, 3, 2", "dilation=[2, 3], padding=[0, 2, 0, 2], channels=4, kernel_size=[3, 2]"),
    "pointwise": ("?, 16, ?, ?", "32, 16, 1, 1", "channels=32, kernel_size=[1, 1]"),
    "depthwise": ("1, 6, ?, ?", "6, 1, 3, 3", "groups=6, padding=[1, 1, 1, 1], channels=6, kernel_size=[3, 3]"),
    "one column": ("?, 3, 4, 1", "2, 3, 2, 1", "channels=2, kernel_size=[2, 1]"),
    "groups": ("1, 4, ?, ?", "6, 2, 3, 3", "groups=2, padding=[1, 1, 1, 1], channels=6, kernel_size=[3, 3]"),
    "channels last": (
        "1, ?, ?, 3",
        "3, 3, 3, 5",
        'padding=[1, 1, 1, 1], channels=5, kernel_size=[3, 3], data_layout="NHWC", kernel_layout="HWIO"',
    ),
    "to channels last": ("1, 3, ?, ?", "5, 3, 3, 3", 'padding=[1, 1, 1, 1], channels=5, kernel_size=[3, 3], out_layout="NHWC"'),
}  # fmt: skip
SIZES = (0, 1, 2, 7, 8, 9, 16, 23)


@pytest.mark.parametrize("case", CASES)
def test_results_are_those_of_fixed_sizes(case: str) -> None:
    data, weight, attributes = CASES[case]
    text = f"""def @main(%x: Tensor[({data}), float32], %w: Tensor[({weight}), float32]) {{
      nn.relu(nn.conv2d(%x, %w, {attributes}))
    }}"""
    module = mirstack.parse(text)
    net = mirstack.compile(module)
    random = np.random.default_rng(1)
    w = random.standard_normal([int(size) for size in weight.split(",")], dtype=np.float32)
    dims = [size.strip() for size in data.split(",")]
    places = [axis for axis, size in enumerate(dims) if size == "?"]
    for size in SIZES:
        shape = [3 if dim == "?" else int(dim) for dim in dims]
        shape[places[-1]] = size
        x = random.standard_normal(shape, dtype=np.float32)
        expected = _interpreted(module, x, w)
        if expected is None:
            with pytest.raises(mirstack.MirError):
                net(x, w)
        else:
            np.testing.assert_allclose(net(x, w), expected, rtol=1e-4, atol=1e-5)


def _interpreted(module: Any, x: np.ndarray[Any, Any], w: np.ndarray[Any, Any]) -> np.ndarray[Any, Any] | None:
    """Returns the interpreter's result; None for sizes that it refuses."""
    try:
        return np.asarray(mirstack.compile(module, "interp")(x, w))
    except mirstack.MirError:
        return None
