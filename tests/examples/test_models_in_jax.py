"""The example models as functions of JAX, imported and compiled, against JAX."""

from __future__ import annotations

from pathlib import Path

import mirstack
import numpy as np
import pytest
from extras import library
from mirstack.examples.models.registry import MODELS
from test_models import REDUCED, arguments, written

pytestmark = pytest.mark.extra
jax = library("jax", "jax")

from mirstack.benchmarks.compare.graph import graph_of  # noqa: E402
from mirstack.benchmarks.compare.to_jax import function_of  # noqa: E402


@pytest.mark.parametrize("name", MODELS)
def test_an_imported_model_agrees_with_jax(name: str, tmp_path: Path) -> None:
    path = written(tmp_path, name, **REDUCED[name])
    inputs = arguments(path)
    function = function_of(graph_of(mirstack.load(path)))
    got = mirstack.compile(mirstack.from_jax(function, *inputs))(*inputs)
    expected = jax.tree_util.tree_leaves(jax.jit(function)(*inputs))
    for each, other in zip([got] if len(expected) == 1 else got, expected, strict=True):
        assert np.abs(np.asarray(each) - np.asarray(other)).max() < 2e-3 * np.abs(np.asarray(other)).max()
