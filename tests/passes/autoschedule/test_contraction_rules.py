"""Contractions of any size, on any target, scheduled by the rules: the same numbers as numpy's."""

from __future__ import annotations

from typing import Any

import mirstack
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mirstack import relay
from mirstack.passes.autoschedule.contraction import choose_tile
from mirstack.support.target import named
from numpy.typing import NDArray

CPUS = ("", "haswell", "x86-64")
SIZES = st.one_of(st.integers(1, 40), st.sampled_from([63, 64, 65, 96, 127, 130, 200, 257]))
RNG = np.random.default_rng(11)
QUICK = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def values(shape: tuple[int, ...], dtype: str = "float32") -> NDArray[Any]:
    if dtype.startswith("int"):
        return RNG.integers(-50, 50, shape).astype(dtype)
    return RNG.standard_normal(shape).astype(dtype)


def compare(
    build: relay.Expr,
    params: list[relay.Var],
    inputs: list[NDArray[Any]],
    wanted: NDArray[Any],
    cpu: str,
    threads: int,
) -> None:
    """Compiles a function and holds its result to what numpy gave."""
    module = mirstack.IRModule.from_expr(relay.Function(params, build))
    executable = mirstack.compile(module, cpu=cpu or None, threads=threads, cache=False)
    got = executable(*inputs)
    if wanted.dtype.kind == "i":
        np.testing.assert_array_equal(got, wanted)
    else:
        scale = max(1.0, float(np.abs(wanted).max(initial=0)))
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4 * scale)


@QUICK
@given(m=SIZES, n=SIZES, k=SIZES, cpu=st.sampled_from(CPUS), threads=st.sampled_from([1, 3]), constant=st.booleans())
def test_dense_with_bias_and_activation(m: int, n: int, k: int, cpu: str, threads: int, constant: bool) -> None:
    x, w, b = values((m, k)), values((n, k)), values((n,))
    given_x, given_w = relay.var("x", shape=x.shape), relay.var("w", shape=w.shape)
    weight = relay.const(w) if constant else given_w
    out = relay.nn.relu(relay.nn.bias_add(relay.nn.dense(given_x, weight), relay.const(b)))
    params, inputs = ([given_x], [x]) if constant else ([given_x, given_w], [x, w])
    compare(out, params, inputs, np.maximum(x @ w.T + b, 0), cpu, threads)


@QUICK
@given(
    m=SIZES, n=SIZES, k=SIZES, cpu=st.sampled_from(CPUS), dtype=st.sampled_from(["float32", "float64", "int32"]),
    transpose_a=st.booleans(), transpose_b=st.booleans(), constant=st.booleans(),
)  # fmt: skip
def test_matmul_of_each_transposition(
    m: int, n: int, k: int, cpu: str, dtype: str, transpose_a: bool, transpose_b: bool, constant: bool
) -> None:
    a = values((k, m) if transpose_a else (m, k), dtype)
    b = values((n, k) if transpose_b else (k, n), dtype)
    x, y = relay.var("x", shape=a.shape, dtype=dtype), relay.var("y", shape=b.shape, dtype=dtype)
    out = relay.nn.matmul(x, relay.const(b) if constant else y, transpose_a=transpose_a, transpose_b=transpose_b)
    wanted = (a.T if transpose_a else a) @ (b.T if transpose_b else b)
    compare(out, [x] if constant else [x, y], [a] if constant else [a, b], wanted, cpu, 1)


@QUICK
@given(
    batch=st.integers(1, 4), m=SIZES, n=SIZES, k=SIZES, cpu=st.sampled_from(CPUS), threads=st.sampled_from([1, 2]),
    transpose_a=st.booleans(), transpose_b=st.booleans(),
)  # fmt: skip
def test_batch_matmul_with_a_residual(
    batch: int, m: int, n: int, k: int, cpu: str, threads: int, transpose_a: bool, transpose_b: bool
) -> None:
    a = values((batch, k, m) if transpose_a else (batch, m, k))
    b = values((batch, n, k) if transpose_b else (batch, k, n))
    c = values((batch, m, n))
    x, y, z = (relay.var(name, shape=array.shape) for name, array in zip("xyz", (a, b, c), strict=True))
    out = relay.add(relay.nn.batch_matmul(x, y, transpose_a=transpose_a, transpose_b=transpose_b), z)
    wanted = (a.swapaxes(1, 2) if transpose_a else a) @ (b.swapaxes(1, 2) if transpose_b else b) + c
    compare(out, [x, y, z], [a, b, c], wanted, cpu, threads)


@pytest.mark.parametrize("rows", [0, 1, 5, 33, 300])
@pytest.mark.parametrize("constant", [False, True])
def test_dense_of_any_number_of_rows(rows: int, constant: bool) -> None:
    w, x = values((130, 65)), values((rows, 65))
    given_x, given_w = relay.var("x", shape=(relay.Any(), 65)), relay.var("w", shape=w.shape)
    out = relay.nn.relu(relay.nn.dense(given_x, relay.const(w) if constant else given_w))
    compare(
        out, [given_x] if constant else [given_x, given_w], [x] if constant else [x, w], np.maximum(x @ w.T, 0), "", 1
    )


@pytest.mark.parametrize("dims", [(0, 5, 6), (5, 0, 6), (5, 6, 0), (1, 1, 1), (1, 1, 500), (500, 1, 1), (1, 500, 1)])
def test_empty_and_single_extents(dims: tuple[int, int, int]) -> None:
    m, n, k = dims
    a, b = values((m, k)), values((k, n))
    x, y = relay.var("x", shape=a.shape), relay.var("y", shape=b.shape)
    compare(relay.nn.matmul(x, y), [x, y], [a, b], a @ b, "", 1)


@pytest.mark.parametrize("cpu", ["x86-64", "haswell", "znver4", "neoverse-n1"])
@pytest.mark.parametrize("shape", [(1, 10), (4, 1000), (16, 16), (127, 129), (1024, 1024)])
def test_tiles_fit_the_registers(cpu: str, shape: tuple[int, int]) -> None:
    target = named(cpu)
    tile = choose_tile(*shape, target.lanes(4), target.vector_registers)
    assert tile.rows * tile.vectors + tile.vectors + 1 <= target.vector_registers
    assert tile.rows <= shape[0]


@QUICK
@given(
    channels=st.integers(14, 40),
    filters=st.integers(2, 70),
    sides=st.sampled_from([(5, 7), (7, 9), (13, 11), (28, 28), (1, 30)]),
    batch=st.integers(1, 2),
    cpu=st.sampled_from(CPUS),
    threads=st.sampled_from([1, 3]),
)
def test_pixels_as_columns(
    channels: int, filters: int, sides: tuple[int, int], batch: int, cpu: str, threads: int
) -> None:
    x, w = values((batch, channels, *sides)), values((filters, channels, 1, 1))
    b, r = values((filters,)), values((batch, filters, *sides))
    given_x, given_r = relay.var("x", shape=x.shape), relay.var("r", shape=r.shape)
    conv = relay.nn.conv2d(given_x, relay.const(w), channels=filters, kernel_size=(1, 1))
    out = relay.nn.relu(relay.add(relay.nn.bias_add(conv, relay.const(b)), given_r))
    wanted = np.maximum(np.einsum("nchw,kc->nkhw", x, w[:, :, 0, 0]) + b[None, :, None, None] + r, 0)
    compare(out, [given_x, given_r], [x, r], wanted, cpu, threads)


@pytest.mark.parametrize(
    ("kind", "shape"), [("conv1d", (1, 40, 64)), ("conv1d", (2, 33, 50)), ("conv3d", (1, 40, 4, 7, 28))]
)
def test_places_as_columns(kind: str, shape: tuple[int, ...]) -> None:
    """Also those of one and of three dimensions: what is stored lies in vectors."""
    rank = len(shape) - 2
    x, w, b = values(shape), values((70, shape[1], *[1] * rank)), values((70,))
    given_x = relay.var("x", shape=x.shape)
    conv = getattr(relay.nn, kind)(given_x, relay.const(w), channels=70, kernel_size=(1,) * rank)
    wanted = np.einsum("nc...,kc->nk...", x, w.reshape(70, -1)) + b.reshape(-1, *[1] * rank)
    for cpu in CPUS:
        compare(relay.nn.relu(relay.nn.bias_add(conv, relay.const(b))), [given_x], [x], np.maximum(wanted, 0), cpu, 1)
