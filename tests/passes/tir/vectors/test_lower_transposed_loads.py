"""lower-transposed-loads: transposes of every permutation, of sizes that tiles do and do not divide, on every vector width."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import mirstack
import numpy as np
import pytest


def check(shape: Sequence[int], axes: Sequence[int], cpu: str | None = None, dtype: str = "float32") -> None:
    """Compares a transpose to numpy's."""
    text = f"""#[version = "0.0.5"]
def @main(%x: Tensor[({", ".join(map(str, shape))}), {dtype}]) {{
  transpose(%x, axes={list(axes)})
}}"""
    x = np.arange(np.prod(shape)).reshape(shape)
    x = x % 7 % 2 == 0 if dtype == "bool" else x.astype(dtype)
    run = mirstack.compile(mirstack.parse(text), threads=1, cpu=cpu)
    np.testing.assert_array_equal(run(x), x.transpose(axes))


@pytest.mark.parametrize("cpu", [None, "haswell", "x86-64"])
@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((32, 48), (1, 0)),
        ((37, 21), (1, 0)),
        ((1, 64, 14, 14), (0, 2, 3, 1)),
        ((1, 7, 9, 64), (0, 3, 1, 2)),
        ((1, 3, 20, 24), (0, 1, 3, 2)),
    ],
)
def test_vector_widths(shape: Sequence[int], axes: Sequence[int], cpu: str | None) -> None:
    check(shape, axes, cpu)


@pytest.mark.parametrize("axes", list(itertools.permutations(range(3))))
def test_permutations(axes: Sequence[int]) -> None:
    check((20, 33, 17), axes)


@pytest.mark.parametrize("cpu", [None, "haswell", "x86-64"])
@pytest.mark.parametrize("dtype", ["int32", "int8", "float64", "int16", "float16", "int64", "bool"])
def test_dtypes(dtype: str, cpu: str | None) -> None:
    check((34, 51), (1, 0), cpu, dtype)


@pytest.mark.parametrize("cpu", [None, "haswell", "x86-64"])
@pytest.mark.parametrize(
    ("narrow", "wide"), [("uint8", "int16"), ("int8", "int32"), ("float16", "float32"), ("uint8", "float64")]
)
@pytest.mark.parametrize("shape", [(1, 34, 7, 9), (2, 3, 5, 21), (1, 16, 4, 8), (1, 64, 3, 1)])
def test_elements_are_made_wider_once_they_are_in_order(
    shape: Sequence[int], narrow: str, wide: str, cpu: str | None
) -> None:
    text = f"""#[version = "0.0.5"]
def @main(%x: Tensor[({", ".join(map(str, shape))}), {narrow}]) {{
  cast(transpose(%x, axes=[0, 2, 3, 1]), dtype="{wide}")
}}"""
    x = np.random.default_rng(0).integers(0, 256, shape).astype(narrow)
    run = mirstack.compile(mirstack.parse(text), threads=1, cpu=cpu)
    np.testing.assert_array_equal(run(x), x.transpose(0, 2, 3, 1).astype(wide))


@pytest.mark.parametrize(
    ("shape", "axes"), [((100, 4), (1, 0)), ((5, 40), (1, 0)), ((3, 8, 33), (0, 2, 1)), ((6, 64), (1, 0))]
)
def test_short_axes(shape: Sequence[int], axes: Sequence[int]) -> None:
    check(shape, axes)
    check(shape, axes, dtype="float16")


def test_more_than_the_cache_holds() -> None:
    text = """#[version = "0.0.5"]
def @main(%x: Tensor[(200, 331), float32]) { transpose(%x, axes=[1, 0]) }"""
    x = np.arange(200 * 331, dtype="float32").reshape(200, 331)
    run = mirstack.compile(mirstack.parse(text), threads=1, caches="4K,16K,64K")
    np.testing.assert_array_equal(run(x), x.T)


def test_fused_with_what_follows() -> None:
    text = """#[version = "0.0.5"]
def @main(%x: Tensor[(1, 24, 9, 9), float32], %b: Tensor[(24), float32]) {
  %0 = transpose(%x, axes=[0, 2, 3, 1]);
  %1 = add(%0, %b);
  nn.relu(%1)
}"""
    rng = np.random.default_rng(0)
    x, b = rng.standard_normal((1, 24, 9, 9)).astype("f4"), rng.standard_normal(24).astype("f4")
    result = mirstack.compile(mirstack.parse(text), threads=1)(x, b)
    np.testing.assert_allclose(result, np.maximum(x.transpose(0, 2, 3, 1) + b, 0))


def test_threads() -> None:
    x = np.random.default_rng(0).standard_normal((300, 500)).astype("f4")
    text = '#[version = "0.0.5"]\ndef @main(%x: Tensor[(300, 500), float32]) { transpose(%x) }'
    np.testing.assert_array_equal(mirstack.compile(mirstack.parse(text), threads=2)(x), x.T)
    x = np.random.default_rng(0).standard_normal((64, 100, 50)).astype("f4")
    text = '#[version = "0.0.5"]\ndef @main(%x: Tensor[(64, 100, 50), float32]) { transpose(%x, axes=[2, 0, 1]) }'
    np.testing.assert_array_equal(mirstack.compile(mirstack.parse(text), threads=2)(x), x.transpose(2, 0, 1))


@pytest.mark.parametrize("cpu", [None, "haswell", "x86-64"])
@pytest.mark.parametrize("width", [2, 3, 5, 8, 14, 22])
def test_sums_are_transposed_before_they_are_stored(width: int, cpu: str | None) -> None:
    """Vectors of filters, stored along rows: tiles of any number of rows, filters that fill no vector, what follows."""
    rng = np.random.default_rng(width)
    x, w = rng.standard_normal((1, 70, 2, width)).astype("f4"), rng.standard_normal((37, 70, 1, 1)).astype("f4")
    b, r = rng.standard_normal((37, 1, 1)).astype("f4"), rng.standard_normal((1, 37, 2, width)).astype("f4")
    body = mirstack.relay.var("x", shape=x.shape)
    conv = mirstack.relay.nn.conv2d(body, mirstack.relay.const(w), channels=37, kernel_size=(1, 1))
    out = mirstack.relay.nn.relu(
        mirstack.relay.add(mirstack.relay.add(conv, mirstack.relay.const(b)), mirstack.relay.const(r))
    )
    module = mirstack.IRModule.from_expr(mirstack.relay.Function([body], out))
    wanted = np.maximum(np.einsum("nchw,kc->nkhw", x, w[:, :, 0, 0]) + b + r, 0)
    np.testing.assert_allclose(mirstack.compile(module, threads=1, cpu=cpu)(x), wanted, rtol=1e-4, atol=1e-4)
