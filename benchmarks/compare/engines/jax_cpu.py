"""jax on the CPU: `jax.jit` of the graph, with XLA's threads limited as in `setting`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from ..engine import Call
from ..graph import Array
from ..material import Material
from ..setting import Setting
from ..to_jax import function_of

jax.config.update("jax_platforms", "cpu")
jax.numpy.zeros(1).block_until_ready()


def prepare(material: Material) -> Callable[..., Any]:
    return function_of(material.graph)


def load(prepared: Callable[..., Any], setting: Setting) -> Any:
    return jax.jit(prepared)


def bind(program: Any, inputs: Sequence[Array]) -> Call:
    arrays = [jax.device_put(array) for array in inputs]
    jax.block_until_ready(program(*arrays))  # Compiles.

    def run() -> Any:
        return jax.block_until_ready(program(*arrays))

    return Call(run, lambda results: [np.asarray(result) for result in results])
