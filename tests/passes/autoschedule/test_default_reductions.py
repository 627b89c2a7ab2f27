"""Reductions and elementwise kernels under default schedules: every axis, odd sizes, one and two threads, results as numpy's."""

from __future__ import annotations

from typing import Any

import mirstack
import numpy as np
import pytest
from mirstack.dialects.array import numpy_dtype
from mirstack.parser import print_mir
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass


def program(shape: tuple[int, ...], body: str) -> str:
    return f'#[version = "0.0.5"]\ndef @main(%x: Tensor[({", ".join(map(str, shape))}), float32]) {{\n  {body}\n}}'


def lowered(text: str, after: str, **options: Any) -> str:
    """The kernels after a pass."""
    seen: list[str] = []

    def look(step: ModulePass, module: ModuleOp) -> None:
        if step.name == after:
            seen.append(print_mir(module))

    mirstack.compile(mirstack.parse(text), observers=(look,), **options)
    return "\n".join(seen)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((1 << 17,), (0,)),
        ((300, 401), (0, 1)),
        ((1, 70001), (1,)),
        ((1001, 130), (0,)),
        ((9, 77, 33), (1,)),
        ((9, 77, 33), (0, 2)),
        ((2, 5, 60, 61), (2, 3)),
        ((3, 40, 7, 9), (1, 2, 3)),
        ((50, 6), (0,)),
        ((40, 64, 14, 15), (0, 2, 3)),
        ((6, 63, 100), (0, 2)),
        ((3, 200, 200), (0,)),
        ((3, 25, 1001), (0,)),
        ((1600, 5), (0,)),
        ((3, 37, 77), (1,)),
        ((3, 17, 5, 23), (1, 2)),
    ],
)
def test_every_axis(shape: tuple[int, ...], axes: tuple[int, ...], threads: int) -> None:
    x = np.random.default_rng(0).standard_normal(shape).astype("float32")
    for operator in ("sum", "max", "min", "mean"):
        run = mirstack.compile(mirstack.parse(program(shape, f"{operator}(%x, axis={list(axes)})")), threads=threads)
        expected = getattr(np, operator)(x.astype(np.float64), axis=axes)
        np.testing.assert_allclose(run(x), expected, rtol=1e-4, atol=2e-3 if operator == "sum" else 1e-6)


@pytest.mark.parametrize("shape", [(3, 8, 56, 40), (1, 64, 7, 7), (2, 5, 3, 3), (4, 16, 1, 1), (2, 3, 4, 5, 16)])
def test_elementwise_loops_are_vectors(shape: tuple[int, ...]) -> None:
    text = program(shape, "nn.relu(%x)")
    body = lowered(text, "vectorize-loop", threads=1, cpu="x86-64-v4")
    assert "T.Broadcast(T.float32(0), 16)" in body, body
    x = np.random.default_rng(0).standard_normal(shape).astype("float32")
    np.testing.assert_array_equal(mirstack.compile(mirstack.parse(text), threads=1)(x), np.maximum(x, 0))


def test_memory_is_read_in_order() -> None:
    """The axis that is farther apart than the results is around them; with threads, around the share of each."""
    text = program((128, 64, 128), "sum(%x, axis=[0, 2])")
    one, two = (lowered(text, "default-schedule", threads=threads) for threads in (1, 2))
    assert "for k0, i0 in T.grid(128, 64):" in one, one
    assert "for i0_0 in T.parallel(2):" in two and "for k0, i0_1 in T.grid(128, 32):" in two, two


def test_few_results_are_reduced_in_parts() -> None:
    text = program((1 << 18,), "sum(%x)")
    assert "_rf" in lowered(text, "default-schedule", threads=2)
    assert "_rf" not in lowered(text, "default-schedule", threads=1)
    # The rows of a part lie one after the other: they are added up as one.
    two = lowered(program((1000, 99), "max(%x)"), "default-schedule", threads=2)
    assert "k0_1_k1_fused in T.serial(12375" in two, two


def test_few_rows_are_added_in_registers() -> None:
    """Rows of the output that are whole vectors are one, cut into equal strips; a vector begins where its sum is made."""
    few = lowered(program((3, 224, 224), "sum(%x, axis=[0])"), "default-schedule", threads=2, cpu="znver4")
    assert "in T.parallel(2):" in few and "T.unroll(3)" in few and "T.where" not in few, few
    assert few.index("in range(1568):") < few.index('T.block("sum_red_init")'), few
    # What would begin within a row and end in the next stays apart.
    odd = lowered(program((3, 225, 225), "sum(%x, axis=[0])"), "default-schedule", threads=1, cpu="znver4")
    assert "i0_i1_fused" not in odd and "T.vectorized(16)" in odd, odd


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_narrow_rows_are_vectors_together(dtype: str) -> None:
    text = program((4096, 6), "sum(%x, axis=[0])").replace("float32", dtype)
    body = lowered(text, "default-schedule", threads=1, cpu="znver4")
    assert ("sum_red_rf" in body) == (dtype != "float64"), body  # of eight, six are more than half
    x = np.random.default_rng(0).integers(-9, 9, (4096, 6)).astype(dtype)
    for cpu in (None, "haswell"):
        np.testing.assert_array_equal(mirstack.compile(mirstack.parse(text), threads=1, cpu=cpu)(x), x.sum(0))


@pytest.mark.parametrize("axis", [-1, 1])
@pytest.mark.parametrize("operator", ["nn.softmax", "nn.log_softmax"])
def test_softmax(operator: str, axis: int) -> None:
    shape = (3, 37, 45)
    x = np.random.default_rng(0).standard_normal(shape).astype("float32") * 10
    x[0, 0, 0] = -np.inf
    result = mirstack.compile(mirstack.parse(program(shape, f"{operator}(%x, axis={axis})")))(x)
    shifted = x.astype(np.float64) - x.max(axis, keepdims=True)
    expected = shifted - np.log(np.exp(shifted).sum(axis, keepdims=True))
    expected = expected if operator == "nn.log_softmax" else np.exp(expected)
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_a_nan_is_the_extremum(dtype: str) -> None:
    text = f"def @main(%x: Tensor[(9, 37), {dtype}]) {{ (max(%x, axis=[-1]), min(%x, axis=[0]), max(%x)) }}"
    module = mirstack.parse(text)
    x = np.random.default_rng(0).standard_normal((9, 37)).astype(numpy_dtype(dtype))
    x[3, 5] = np.nan
    x[4, 6] = -np.inf
    for cpu in (None, "x86-64"):
        results: Any = mirstack.compile(module, cpu=cpu, threads=1)(x)
        for got, axis, of in zip(results, (1, 0, None), (np.max, np.min, np.max), strict=True):
            np.testing.assert_array_equal(got.astype(np.float64), of(x.astype(np.float64), axis=axis))
