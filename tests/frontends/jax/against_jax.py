"""Compares imported functions with what JAX computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mirstack
import numpy as np
from extras import library

jax = library("jax", "jax")

TOLERANCE = {"float16": 4e-3, "bfloat16": 4e-2, "float64": 1e-5}


def leaves(tree: Any) -> list[Any]:
    """Returns the arrays of arguments or results, in order."""
    return jax.tree_util.tree_leaves(tree)


def agree(got: Any, want: Any) -> None:
    """Asserts that results have the dtypes, shapes and elements of JAX'."""
    expected = leaves(want)
    given = [got] if len(expected) == 1 else list(got)
    for each, other in zip(given, expected, strict=True):
        each, other = np.asarray(each), np.asarray(other)
        assert (each.dtype, each.shape) == (other.dtype, other.shape)
        tolerance = TOLERANCE.get(each.dtype.name, 2e-5)
        np.testing.assert_allclose(each.astype("float64"), other.astype("float64"), rtol=tolerance, atol=tolerance)


def check(function: Callable[..., Any], *args: Any, target: Any = "interp") -> Any:
    """Compares a function, imported for its arguments, with JAX; returns the module."""
    mod = mirstack.from_jax(function, *args)
    got = mirstack.compile(mod, target=target)(*map(np.asarray, leaves(args)))
    agree(got, jax.jit(function)(*args))
    return mod


def drawn(*shape: int, dtype: str = "float32", seed: int = 0, low: float = -3, high: float = 3) -> Any:
    """Returns numbers in a range."""
    generator = np.random.default_rng(seed + sum(shape))
    if dtype == "bool":
        return generator.random(shape) < 0.5
    if "int" in dtype:
        return generator.integers(max(int(low), 0) if dtype[0] == "u" else int(low), int(high) + 1, shape).astype(dtype)
    return jax.numpy.asarray(generator.uniform(low, high, shape), dtype)
