"""Contractions whose sums are made in blocks of k: the same numbers as numpy's, whatever the sizes and however small the caches."""

from __future__ import annotations

from typing import Any

import mirstack
import numpy as np
import pytest
from mirstack import relay
from mirstack.parser import print_mir
from numpy.typing import NDArray
from test_padded_contractions import convolved

RNG = np.random.default_rng(7)
CACHES = "16K,256K,8M"
SMALL = "16K,64K,8M"


def compare(
    out: relay.Expr, params: list[relay.Var], inputs: list[NDArray[Any]], wanted: NDArray[Any], cpu: str | None, threads: int,
    caches: str = CACHES,
) -> None:  # fmt: skip
    """Compiles for small caches, and holds the result to what numpy gave."""
    module = mirstack.IRModule.from_expr(relay.Function(params, out))
    got = mirstack.compile(module, cpu=cpu, threads=threads, caches=caches, cache=False)(*inputs)
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4 * np.abs(wanted).max())


@pytest.mark.parametrize(
    ("batch", "channels", "filters", "groups", "stride", "pad", "dilation", "cpu", "threads"),
    [
        (1, 48, 37, 1, 1, 4, 4, None, 1),
        (2, 64, 50, 1, 2, 1, 1, None, 2),
        (2, 64, 50, 1, 2, 1, 1, "haswell", 1),
        (1, 128, 180, 2, 1, 0, 1, "haswell", 2),
        (1, 96, 33, 1, 2, 12, 12, "x86-64", 2),
        (1, 96, 33, 1, 2, 12, 12, None, 2),
    ],
)
def test_channels_of_large_planes(
    batch: int, channels: int, filters: int, groups: int, stride: int, pad: int, dilation: int, cpu: str | None, threads: int
) -> None:  # fmt: skip
    """Bias, residual and activation are applied once, to whole sums."""
    x = RNG.standard_normal((batch, channels, 33, 33)).astype("float32")
    w = RNG.standard_normal((filters, channels // groups, 3, 3)).astype("float32")
    bias = RNG.standard_normal(filters).astype("float32")
    parts = [
        convolved(x[:, g * channels // groups : (g + 1) * channels // groups], each, stride, pad, dilation)
        for g, each in enumerate(np.split(w, groups))
    ]
    sums = np.concatenate(parts, axis=1) + bias[None, :, None, None]
    residual = RNG.standard_normal(sums.shape).astype("float32")
    data, rest = relay.var("x", shape=x.shape), relay.var("r", shape=residual.shape)
    out = relay.nn.conv2d(
        data, relay.const(w), strides=(stride, stride), padding=(pad, pad), dilation=(dilation, dilation),
        channels=filters, kernel_size=(3, 3), groups=groups,
    )  # fmt: skip
    out = relay.nn.relu(relay.add(relay.nn.bias_add(out, relay.const(bias)), rest))
    compare(out, [data, rest], [x, residual], np.maximum(sums + residual, 0), cpu, threads)


@pytest.mark.parametrize(("size", "stride", "batch", "threads"), [(7, 1, 1, 1), (13, 2, 1, 2), (5, 1, 3, 2)])
def test_weights_of_which_the_nearest_cache_holds_a_part(size: int, stride: int, batch: int, threads: int) -> None:
    """Where pixels lie apart along k and a panel of weights is long, AVX2's tiles take a block of it at a time."""
    x = RNG.standard_normal((batch, 512, size, size)).astype("float32")
    w, bias = RNG.standard_normal((40, 512, 1, 1)).astype("float32"), RNG.standard_normal(40).astype("float32")
    sums = np.einsum("nchw,oc->nohw", x[:, :, ::stride, ::stride], w[:, :, 0, 0]) + bias[None, :, None, None]
    residual = RNG.standard_normal(sums.shape).astype("float32")
    data, rest = relay.var("x", shape=x.shape), relay.var("r", shape=residual.shape)
    out = relay.nn.conv2d(data, relay.const(w), strides=(stride, stride), channels=40, kernel_size=(1, 1))
    out = relay.nn.relu(relay.add(relay.nn.bias_add(out, relay.const(bias)), rest))
    scheduled: list[str] = []

    def keep(step: Any, module: Any) -> None:
        if step.name == "default-schedule":
            scheduled.append(print_mir(module))

    module = mirstack.IRModule.from_expr(relay.Function([data, rest], out))
    run: Any = mirstack.compile(module, cpu="haswell", threads=threads, caches=CACHES, observers=(keep,))
    wanted = np.maximum(sums + residual, 0)
    np.testing.assert_allclose(run(x, residual), wanted, rtol=1e-4, atol=1e-4 * np.abs(wanted).max())
    assert any("_rf" in text for text in scheduled)


@pytest.mark.parametrize(
    ("m", "n", "k", "transposed", "cpu", "threads"),
    [
        (37, 131, 1998, True, None, 1),
        (37, 131, 1998, False, None, 2),
        (33, 65, 1999, True, None, 1),
        (33, 40, 4500, True, "haswell", 2),
        (64, 30, 3000, False, None, 1),
    ],
)
def test_long_sums(m: int, n: int, k: int, transposed: bool, cpu: str | None, threads: int) -> None:
    """A prime number of products is one block."""
    a, b = (
        RNG.standard_normal((m, k)).astype("float32"),
        RNG.standard_normal((n, k) if transposed else (k, n)).astype("float32"),
    )
    bias = RNG.standard_normal(n).astype("float32")
    x, y = relay.var("x", shape=a.shape), relay.var("y", shape=b.shape)
    out = relay.nn.relu(relay.add(relay.nn.matmul(x, y, transpose_b=transposed), relay.const(bias)))
    wanted = np.maximum(a.astype("float64") @ (b.T if transposed else b) + bias, 0)
    compare(out, [x, y], [a, b], wanted, cpu, threads, SMALL)


def test_float64_and_int32() -> None:
    a, b = RNG.integers(-9, 9, (40, 4000)), RNG.integers(-9, 9, (70, 4000))
    for dtype in ("float64", "int32"):
        x, y = (relay.var(name, shape=each.shape, dtype=dtype) for name, each in (("x", a), ("y", b)))
        out = relay.nn.matmul(x, y, transpose_b=True)
        compare(out, [x, y], [a.astype(dtype), b.astype(dtype)], (a @ b.T).astype(dtype), None, 2, SMALL)
