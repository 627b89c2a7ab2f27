"""Attentions under masks that leave each query the keys up to a diagonal: what is not seen is left out, and results are as before."""

from __future__ import annotations

from typing import Any

import mirstack
import numpy as np
import pytest
from mirstack.parser import parse_mir, print_mir
from mirstack.passes.registry import pass_factories
from numpy.typing import NDArray
from xdsl.context import Context

Array = NDArray[Any]

STEPS = (
    "infer-type",
    "fold-constant",
    "fuse-attention",
    "fuse-ops",
    "lower-relay-to-te",
    "lower-te-to-tir",
    "default-schedule",
)
ATTENTION = """
def @main(%q: Tensor[({heads}, {rows}, {size}), {dtype}], %k: Tensor[({heads}, {keys}, {size}), {dtype}], %v: Tensor[({heads}, {keys}, {size}), {dtype}]) {{
  %0 = multiply(nn.batch_matmul(%q, %k, transpose_b=True), cast(0.25f, dtype="{dtype}"));
{mask}
  nn.batch_matmul(nn.softmax(%9), %v, transpose_b=False)
}}
"""
ADDED = """  %1 = trilu(full({never}, shape=[1, {rows}, {keys}], dtype="{dtype}"), {above}, upper=True);
  %9 = add(%0, %1);"""
CHOSEN = """  %1 = less(arange(0, {keys}, 1, dtype="int32"), reshape(arange({above}, {last}, 1, dtype="int32"), newshape=[{rows}, 1]));
  %9 = where(%1, %0, -1e30f);"""
SLOPED = """  %1 = trilu(full({never}, shape=[1, {rows}, {keys}], dtype="{dtype}"), {above}, upper=True);
  %2 = multiply(cast(reshape(arange(0, {keys}, 1, dtype="int32"), newshape=[1, 1, {keys}]), dtype="{dtype}"), 0.0625f);
  %9 = add(%0, add(%1, %2));"""


def program(
    mask: str, rows: int, keys: int, *, dtype: str = "float32", never: str = "-3e38f", above: int | None = None
) -> str:
    """An attention of 3 heads of 16 numbers; query r sees the keys before r + above."""
    above = keys - rows + 1 if above is None else above
    values = {
        "heads": 3,
        "rows": rows,
        "keys": keys,
        "size": 16,
        "dtype": dtype,
        "never": never,
        "above": above,
        "last": above + rows,
    }
    return ATTENTION.format(mask=mask.format(**values), **values)


def attention(q: Array, k: Array, v: Array, above: int, slope: float = 0.0) -> Array:
    rows, keys = q.shape[1], k.shape[1]
    scores = q.astype(np.float64) @ k.astype(np.float64).swapaxes(1, 2) / 4 + slope * np.arange(keys)
    scores = np.where(np.arange(keys) < np.arange(rows)[:, None] + above, scores, -1e30)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


def scheduled(text: str) -> str:
    module = parse_mir(text)
    for name in STEPS:
        pass_factories()[name]()().apply(Context(), module)
    return print_mir(module)


def inputs(rows: int, keys: int, dtype: str = "float32") -> list[Array]:
    rng = np.random.default_rng(rows)
    return [rng.standard_normal((3, size, 16)).astype(dtype) for size in (rows, keys, keys)]


@pytest.mark.parametrize("cpu", [None, "haswell", "x86-64"])
@pytest.mark.parametrize(("mask", "rows", "keys"), [(ADDED, 257, 257), (CHOSEN, 150, 300), (SLOPED, 192, 192)])
def test_results(mask: str, rows: int, keys: int, cpu: str | None) -> None:
    q, k, v = inputs(rows, keys)
    run = mirstack.compile(mirstack.parse(program(mask, rows, keys)), threads=2, cpu=cpu)
    expected = attention(q, k, v, keys - rows + 1, 0.0625 if mask is SLOPED else 0.0)
    np.testing.assert_allclose(run(q, k, v), expected, atol=2e-6)


@pytest.mark.parametrize("mask", [ADDED, CHOSEN, SLOPED])
def test_what_is_not_seen_is_left_out(mask: str) -> None:
    text = scheduled(program(mask, 256, 256))
    assert text.count("loop_limit") == 5
    # A mask that says no more than that is not read.
    assert ("p3" in text) is (mask is SLOPED)


def test_minus_infinity() -> None:
    q, k, v = inputs(256, 256)
    text = program(ADDED, 256, 256, never="divide(-1f, 0f)")
    assert "loop_limit" in scheduled(text)
    run = mirstack.compile(mirstack.parse(text), threads=1)
    np.testing.assert_allclose(run(q, k, v), attention(q, k, v, 1), atol=2e-6)


@pytest.mark.parametrize(
    ("rows", "keys", "above", "never"),
    [
        (256, 256, 250, "-3e38f"),  # Nearly all keys are seen.
        (256, 256, 0, "-3e38f"),  # The first query sees none: it takes the mean.
        (256, 256, 1, "-100f"),  # What is little less likely is seen.
        (8, 512, 1, "-3e38f"),  # One block of rows.
    ],
)
def test_masks_that_stay(rows: int, keys: int, above: int, never: str) -> None:
    text = program(ADDED, rows, keys, above=above, never=never)
    assert "loop_limit" not in scheduled(text)
    q, k, v = inputs(rows, keys)
    expected = mirstack.compile(mirstack.parse(text), "interp")(q, k, v)
    np.testing.assert_allclose(mirstack.compile(mirstack.parse(text), threads=1)(q, k, v), expected, atol=2e-6)


def test_heads_of_a_batch_are_computed_once() -> None:
    text = """
    def @main(%q: Tensor[(6, 32, 16), float32], %k: Tensor[(6, 32, 16), float32], %m: Tensor[(2, 1, 1, 32), float32]) {
      %0 = add(reshape(nn.batch_matmul(%q, %k, transpose_b=True), newshape=[2, 3, 32, 32]), %m);
      nn.batch_matmul(reshape(nn.softmax(%0), newshape=[6, 32, 32]), %k, transpose_b=False)
    }
    """
    module = parse_mir(text)
    for name in ("infer-type", "fuse-attention"):
        pass_factories()[name]()().apply(Context(), module)
    fused = print_mir(module)
    # What became one kernel is not left beside it.
    assert "nn.softmax" not in fused
    assert fused.count("nn.batch_matmul(") == 2
