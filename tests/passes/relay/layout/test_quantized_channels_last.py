"""Convolutions of bytes with their channels last: the same integers, on every processor, for odd sizes, groups and zero points."""

from __future__ import annotations

from typing import Any

import mirstack
import numpy as np
import pytest
from mirstack import relay
from mirstack.support.target import named

CPUS = (None, "haswell", "x86-64") if named("").arch == "x86_64" else (None,)


def layer(
    types: tuple[str, str],
    zeros: tuple[int, int],
    channels: int,
    window: int,
    groups: int,
    given: dict[str, Any],
    shape: tuple[Any, ...] = (1, 12, 7, 9),
) -> Any:
    """A quantized convolution of 12 channels, 7 x 9, with bias, a scale for each channel, and a residual."""
    data, weight = types
    rng = np.random.default_rng(channels + window)
    limits = np.iinfo(weight)
    w = rng.integers(limits.min, limits.max, (channels, 12 // groups, window, window), endpoint=True).astype(weight)
    scales = (rng.random(channels) * 1e-4 + 1e-5).astype("float32")
    x = relay.var("x", shape=shape, dtype=data)
    number = relay.const
    y = relay.qnn.op.conv2d(
        x, number(w), number(zeros[0], "int32"), number(zeros[1], "int32"), number(0.5, "float32"),
        number(1.0, "float32"), kernel_size=(window, window), channels=channels, groups=groups, **given,
    )  # fmt: skip
    y = relay.nn.bias_add(y, number(rng.integers(-99, 99, channels).astype("int32")))
    y = relay.qnn.op.requantize(
        y, number(scales), number(0, "int32"), number(0.01, "float32"), number(7, "int32"), axis=1, out_dtype=data
    )
    half, one, zero = number(0.5, "float32"), number(1.0, "float32"), number(3, "int32")
    return relay.Function([x], relay.qnn.op.add(y, relay.nn.relu(y), half, zero, one, zero, half, zero))


CASES = [
    (("uint8", "int8"), (0, 0), 20, 3, 1, {"padding": (1, 1)}),
    (("int8", "int8"), (-128, 0), 17, 1, 1, {}),
    (("uint8", "uint8"), (9, 128), 16, 3, 1, {"strides": (2, 2)}),
    (("int8", "int8"), (5, 0), 12, 3, 12, {"padding": (1, 1)}),
    (("uint8", "int8"), (3, 0), 24, 3, 3, {"padding": (1, 1)}),
]


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize(("types", "zeros", "channels", "window", "groups", "given"), CASES)
def test_the_same_integers(
    types: Any, zeros: Any, channels: int, window: int, groups: int, given: Any, cpu: Any
) -> None:
    module = mirstack.IRModule.from_expr(layer(types, zeros, channels, window, groups, given))
    fast, plain = (mirstack.compile(module, opt_level=level, cpu=cpu) for level in (3, 0))
    limits = np.iinfo(types[0])
    x = np.random.default_rng(1).integers(limits.min, limits.max, (1, 12, 7, 9), endpoint=True).astype(types[0])
    np.testing.assert_array_equal(fast(x), plain(x))


@pytest.mark.parametrize(("types", "zeros", "channels", "window", "groups", "given"), CASES)
def test_the_same_integers_at_open_sizes(
    types: Any, zeros: Any, channels: int, window: int, groups: int, given: Any
) -> None:
    shape = (relay.Any(), 12, relay.Any(), relay.Any())
    module = mirstack.IRModule.from_expr(layer(types, zeros, channels, window, groups, given, shape))
    fast, plain = (mirstack.compile(module, opt_level=level) for level in (3, 0))
    limits = np.iinfo(types[0])
    for sizes in ((1, 12, 7, 9), (2, 12, 3, 21)):
        x = np.random.default_rng(1).integers(limits.min, limits.max, sizes, endpoint=True).astype(types[0])
        np.testing.assert_array_equal(fast(x), plain(x))
