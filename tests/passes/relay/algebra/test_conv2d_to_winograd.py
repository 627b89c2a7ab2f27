"""Convolutions by Winograd's algorithm: what the cost model picks, and natively compiled results against numpy in float64."""

from __future__ import annotations

from typing import Any

import mirstack
import numpy as np
import pytest
from mirstack import relay
from mirstack.dialects.relay.operators.winograd.te_winograd import block_rows
from mirstack.passes.relay.algebra.conv2d_to_winograd import best_tile

# Processors, and whether the convolution is one kernel or, as the pass makes it, two.
CASES = ((None, False), (None, True), ("haswell", True), ("x86-64", True))

# batch, channels, height, width, filters, padding (top, left, bottom, right), side of tiles, threads
SHAPES = [
    (1, 16, 8, 8, 16, (1, 1, 1, 1), 4, 1),
    (2, 17, 13, 9, 19, (1, 1, 1, 1), 4, 2),
    (1, 3, 7, 11, 5, (0, 0, 0, 0), 2, 1),
    (1, 20, 5, 30, 36, (0, 1, 2, 1), 6, 1),
    (2, 8, 33, 12, 24, (1, 0, 0, 1), 2, 2),
    (1, 5, 4, 14, 16, (1, 1, 1, 1), 4, 1),
    (1, 1, 6, 6, 1, (1, 1, 1, 1), 4, 1),
    (2, 96, 56, 56, 48, (1, 1, 1, 1), 4, 2),
]


def winograd(x: Any, weight: Any, bias: Any, padding: tuple[int, ...], tile: int, halves: bool) -> Any:
    """relu(conv2d(x, weight) + bias) as a module, by tiles of that side, in one kernel or two."""
    data = relay.var("x", shape=x.shape, dtype="float32")
    if halves:
        conv = relay.nn.conv2d(data, relay.const(weight), padding=padding, channels=len(weight), kernel_size=(3, 3))
        body = relay.nn.relu(relay.nn.bias_add(conv, relay.const(bias)))
        module = mirstack.IRModule.from_expr(relay.Function([data], body))
        return mirstack.transform.Conv2dToWinograd(tile_size=tile)(module)
    turned = relay.nn.contrib_conv2d_winograd_weight_transform(relay.const(weight), tile)
    conv = relay.nn.contrib_conv2d_winograd_without_weight_transform(
        data, turned, tile_size=tile, padding=padding, channels=weight.shape[0], kernel_size=(3, 3)
    )
    return mirstack.IRModule.from_expr(
        relay.Function([data], relay.nn.relu(relay.nn.bias_add(conv, relay.const(bias))))
    )


def direct(x: Any, weight: Any, bias: Any, padding: tuple[int, ...]) -> Any:
    """The same in float64."""
    top, left, bottom, right = padding
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (top, bottom), (left, right)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    result = np.einsum("nchwij,kcij->nkhw", windows, weight.astype(np.float64), optimize=True)
    return np.maximum(result + bias[None, :, None, None], 0)


@pytest.mark.parametrize(("cpu", "halves"), CASES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_results(shape: tuple[Any, ...], cpu: str | None, halves: bool) -> None:
    batch, channels, height, width, filters, padding, tile, threads = shape
    generator = np.random.default_rng(channels)
    x = generator.standard_normal((batch, channels, height, width), dtype=np.float32)
    weight = generator.standard_normal((filters, channels, 3, 3), dtype=np.float32)
    bias = generator.standard_normal(filters, dtype=np.float32)
    run: Any = mirstack.compile(winograd(x, weight, bias, padding, tile, halves), threads=threads, cpu=cpu)
    wanted = direct(x, weight, bias, padding)
    bound = {2: 3e-6, 4: 1e-5, 6: 1e-4}[tile]
    assert np.abs(run(x) - wanted).max() < bound * np.abs(wanted).max()


def test_the_pass_is_part_of_level_3() -> None:
    generator = np.random.default_rng(0)
    x = generator.standard_normal((1, 64, 16, 16), dtype=np.float32)
    weight = generator.standard_normal((64, 64, 3, 3), dtype=np.float32)
    data = relay.var("x", shape=x.shape, dtype="float32")
    conv = relay.nn.conv2d(data, relay.const(weight), padding=(1, 1, 1, 1), channels=64, kernel_size=(3, 3))
    module = mirstack.IRModule.from_expr(relay.Function([data], conv))
    results: dict[int, Any] = {}
    for level in (2, 3):
        run: Any = mirstack.compile(module, opt_level=level)
        results[level] = run(x)
    wanted = direct(x, weight, np.zeros(64, np.float32), (1, 1, 1, 1))
    error = {level: np.abs(np.maximum(got, 0) - wanted).max() / np.abs(wanted).max() for level, got in results.items()}
    assert error[2] < 1e-6 < error[3] < 1e-5


@pytest.mark.parametrize(
    ("places", "channels", "filters", "tile"),
    [
        ((1, 56, 56), 64, 64, 4),
        ((1, 7, 7), 512, 512, 2),  # a weight of 4 times the size would come from memory for 4 tiles
        ((8, 7, 7), 512, 512, 4),
        ((1, 224, 224), 3, 64, 0),  # transforms cost more than so few channels save
        ((1, 4, 4), 512, 512, 0),
        ((1, 8, 8), 16, 16, 0),
    ],
)
def test_cost_model(places: tuple[int, int, int], channels: int, filters: int, tile: int) -> None:
    assert best_tile(places, channels, filters) == tile


def test_blocks_of_tiles() -> None:
    assert block_rows(4, 4, 256, 256, 6) == 4  # the weight is larger than the data: read once
    assert 1 <= block_rows(14, 14, 64, 64, 6) <= 2
    assert block_rows("unknown", 4, 256, 256, 6) == "unknown"
