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
    x = np.arange(np.prod(shape)).astype(dtype).reshape(shape)
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


@pytest.mark.parametrize("dtype", ["int32", "int8", "float64"])
def test_dtypes(dtype: str) -> None:
    check((18, 35), (1, 0), dtype=dtype)


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
