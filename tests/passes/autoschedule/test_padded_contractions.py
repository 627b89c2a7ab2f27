"""Convolutions whose windows lie in the padding for many places: the same numbers as numpy's, and no more work than they need."""

from __future__ import annotations

from typing import Any

import mirstack
import numpy as np
import pytest
from mirstack import relay
from mirstack.passes.autoschedule.contraction.padded import Slide
from numpy.typing import NDArray

RNG = np.random.default_rng(5)


def convolved(x: NDArray[Any], w: NDArray[Any], stride: int, pad: int, dilation: int) -> NDArray[Any]:
    """The convolution of (n, c, h, w) by (o, c, h, w), in float64."""
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    height, width = (
        (size - dilation * (taps - 1) - 1) // stride + 1
        for size, taps in zip(padded.shape[2:], w.shape[2:], strict=True)
    )
    out = np.zeros((x.shape[0], w.shape[0], height, width))
    for i, j in np.ndindex(*w.shape[2:]):
        rows = slice(i * dilation, i * dilation + (height - 1) * stride + 1, stride)
        columns = slice(j * dilation, j * dilation + (width - 1) * stride + 1, stride)
        out += np.einsum("nchw,oc->nohw", padded[:, :, rows, columns], w[:, :, i, j])
    return out


@pytest.mark.parametrize(
    ("batch", "channels", "size", "filters", "taps", "stride", "pad", "dilation", "cpu", "threads"),
    [
        (1, 16, 14, 48, 3, 1, 4, 4, None, 2),
        (2, 24, 17, 40, 3, 2, 6, 5, "haswell", 1),
        (1, 32, 33, 33, 3, 1, 12, 12, "x86-64", 1),
        (1, 32, 33, 33, 3, 1, 12, 12, None, 1),
    ],
)
def test_windows_in_the_padding(
    batch: int, channels: int, size: int, filters: int, taps: int, stride: int, pad: int, dilation: int, cpu: str | None, threads: int
) -> None:  # fmt: skip
    x = RNG.standard_normal((batch, channels, size, size)).astype("float32")
    w = RNG.standard_normal((filters, channels, taps, taps)).astype("float32")
    bias = RNG.standard_normal(filters).astype("float32")
    data = relay.var("x", shape=x.shape)
    out = relay.nn.conv2d(
        data, relay.const(w), strides=(stride, stride), padding=(pad, pad), dilation=(dilation, dilation),
        channels=filters, kernel_size=(taps, taps),
    )  # fmt: skip
    out = relay.nn.relu(relay.nn.bias_add(out, relay.const(bias)))
    wanted = np.maximum(convolved(x, w, stride, pad, dilation) + bias[None, :, None, None], 0)
    module = mirstack.IRModule.from_expr(relay.Function([data], out))
    got = mirstack.compile(module, cpu=cpu, threads=threads, cache=False)(x)
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4 * np.abs(wanted).max())


@pytest.mark.parametrize("threads", [1, 2])
def test_long_windows_along_a_line(threads: int) -> None:
    """More than half of the products are with padding."""
    x, w = RNG.standard_normal((1, 64, 49)).astype("float32"), RNG.standard_normal((64, 32, 128)).astype("float32")
    data = relay.var("x", shape=x.shape)
    out = relay.nn.conv1d(data, relay.const(w), padding=(64, 64), groups=2, channels=64, kernel_size=128)
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (64, 64)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, 128, axis=2)[0].reshape(2, 32, 50, 128)
    wanted = np.einsum("gcpk,gock->gop", windows, w.reshape(2, 32, 32, 128)).reshape(1, 64, 50)
    module = mirstack.IRModule.from_expr(relay.Function([data], out))
    got = mirstack.compile(module, threads=threads, cache=False)(x)
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4 * np.abs(wanted).max())


@pytest.mark.parametrize(("rows", "part"), [(1, 2 / 3), (14, 1.0)])
def test_what_is_left_of_a_window(rows: int, part: float) -> None:
    """Of three rows of a window of distance 7 over 14 rows the outer two are padding for half of the places."""
    assert Slide(stride=1, dilation=7, low=7, high=20).kept(14, 3, rows) == pytest.approx(part)


def test_groups_of_one_image_have_rows_that_lie_together() -> None:
    """Vectors run along the pixels of a plane: twenty filters of a group would fill two vectors badly."""
    x, w = RNG.standard_normal((1, 48, 12, 12)).astype("float32"), RNG.standard_normal((60, 16, 1, 1)).astype("float32")
    data = relay.var("x", shape=x.shape)
    out = relay.nn.conv2d(data, relay.const(w), groups=3, channels=60, kernel_size=(1, 1))
    wanted = np.einsum("gchw,goc->gohw", x.reshape(3, 16, 12, 12), w.reshape(3, 20, 16)).reshape(1, 60, 12, 12)
    module = mirstack.IRModule.from_expr(relay.Function([data], out))
    got = mirstack.compile(module, threads=1, cache=False)(x)
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4)
