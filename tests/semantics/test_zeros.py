"""Zeros that an operator's algorithm puts between numbers meet infinities on every target, or on none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mirstack
import numpy as np
import pytest

TARGETS: tuple[dict[str, Any], ...] = ({"opt_level": 0}, {"threads": 2})


def random(shape: tuple[int, ...], places: dict[int, float]) -> np.ndarray[Any, Any]:
    """Numbers of which those at some places are infinite or NaN."""
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    for place, value in places.items():
        x.flat[place] = value
    return x


def check(text: str, *cases: Sequence[np.ndarray[Any, Any]]) -> None:
    """Fails unless native code has NaN, infinities and numbers where the interpreter has them, for each case's arguments."""
    module = mirstack.parse(text)
    interpreted: Any = mirstack.compile(module, "interp")
    for target in TARGETS:
        run: Any = mirstack.compile(module, **target)
        for args in cases:
            np.testing.assert_allclose(run(*args), interpreted(*args), rtol=1e-3, atol=1e-4)


# stride, dilation, groups, kernel, the height and width
TRANSPOSED = [
    (1, 1, 1, 3, (5, 6)), (1, 1, 1, 3, ("?", "?")), (2, 1, 1, 3, (5, 6)), (2, 1, 1, 3, ("?", "?")), (2, 2, 1, 3, (5, 6)),
    (1, 2, 1, 3, (5, 6)), (2, 1, 4, 3, (5, 6)), (1, 1, 4, 3, (5, 6)), (3, 1, 2, 2, (5, 6)), (2, 3, 2, 2, ("?", 6)),
]  # fmt: skip


@pytest.mark.parametrize("case", TRANSPOSED, ids=str)
def test_transposed_convolutions(case: tuple[int, int, int, int, tuple[Any, Any]]) -> None:
    stride, dilation, groups, kernel, (height, width) = case
    w = random((4, 8 // groups, kernel, kernel), {0: np.inf, 13: np.nan})
    text = f"""def @main(%x: Tensor[(2, 4, {height}, {width}), float32], %w: Tensor[{w.shape}, float32]) {{
      nn.relu(nn.conv2d_transpose(%x, %w, channels=8, kernel_size=[{kernel}, {kernel}], groups={groups},
        strides=[{stride}, {stride}], dilation=[{dilation}, {dilation}], padding=[1, 1])) }}"""
    check(text, (random((2, 4, 5, 6), {3: np.inf, 77: np.nan}), w))


def test_channels_last() -> None:
    text = """def @main(%x: Tensor[(2, 5, 6, 4), float32], %w: Tensor[(3, 3, 4, 4), float32]) {
      nn.conv2d_transpose(%x, %w, groups=2, padding=[1, 1], data_layout="NHWC", kernel_layout="HWIO") }"""
    check(text, (random((2, 5, 6, 4), {3: np.inf}), random((3, 3, 4, 4), {0: np.inf, 50: np.nan})))


@pytest.mark.parametrize("tile", [2, 4])
def test_winograd(tile: int) -> None:
    two = f"nn.contrib_conv2d_winograd_without_weight_transform(%x, nn.contrib_conv2d_winograd_weight_transform(%w, tile_size={tile}), tile_size={tile}, channels=4, kernel_size=[3, 3], padding=[1, 1])"
    halves = f"nn.contrib_conv2d_winograd_output_transform(nn.contrib_conv2d_winograd_products(%x, %w, tile_size={tile}, padding=[1, 1]), tile_size={tile}, output_size=[9, 8])"
    head = "def @main(%x: Tensor[(1, 3, 9, 8), float32], %w: Tensor[(4, 3, 3, 3), float32])"
    places = [(x, w) for value in (np.inf, np.nan) for x, w in (({30: value}, {}), ({}, {5: value}))]
    cases = [(random((1, 3, 9, 8), x), random((4, 3, 3, 3), w)) for x, w in places]
    for body in (two, halves):
        check(f"{head} {{ {body} }}", *cases)


def test_winograd_in_three_dimensions() -> None:
    text = """def @main(%x: Tensor[(1, 3, 5, 6, 6), float32], %w: Tensor[(4, 3, 3, 3, 3), float32]) {
      nn.contrib_conv3d_winograd_without_weight_transform(%x, nn.contrib_conv3d_winograd_weight_transform(%w, tile_size=2),
        tile_size=2, channels=4, kernel_size=[3, 3, 3], padding=[1, 1, 1]) }"""
    x, w = (1, 3, 5, 6, 6), (4, 3, 3, 3, 3)
    check(text, (random(x, {100: np.inf}), random(w, {})), (random(x, {}), random(w, {5: np.nan})))
