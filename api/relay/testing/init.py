"""Weights for networks of tests, drawn by their parameters' names and shapes."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from ....support.public_names import public_names
from ...ir.module import IRModule
from ...ir.named_passes import make_pass
from ...nd import NDArray, array
from ..expr import Function
from ..ty import TensorType

Array = np.ndarray[Any, np.dtype[Any]]
Initializer = Callable[[str, Array], None]


class Xavier:
    """Fills weights with uniform numbers; biases and means with 0, scales and variances with 1.

    Source: Glorot and Bengio, Understanding the difficulty of training deep feedforward neural networks (2010).
    """

    def __init__(self, magnitude: float = 3.0):
        self.magnitude = magnitude

    def __call__(self, desc: str, arr: Array) -> None:
        """Fills the array of the parameter `desc` in place."""
        if desc.endswith(("gamma", "running_var", "moving_var")):
            arr[...] = 1
        elif arr.ndim < 2 or desc.endswith(("bias", "beta", "running_mean", "moving_mean")):
            arr[...] = 0
        else:
            receptive = prod(arr.shape[2:])
            scale = np.sqrt(self.magnitude / ((arr.shape[0] + arr.shape[1]) * receptive / 2))
            arr[...] = np.random.uniform(-scale, scale, arr.shape)


def create_workload(
    net: Function, initializer: Initializer | None = None, seed: int = 0
) -> tuple[IRModule, dict[str, NDArray]]:
    """Returns a network's module with types, and weights for its parameters except `data`."""
    module = make_pass("InferType")(IRModule.from_expr(net))
    np.random.seed(seed)
    fill = Xavier() if initializer is None else initializer
    params: dict[str, NDArray] = {}
    for param in module.relay_function("main").params:
        type = param.checked_type
        if param.name_hint != "data" and isinstance(type, TensorType):
            value = np.zeros(type.concrete_shape, type.dtype)
            fill(param.name_hint, value)
            params[param.name_hint] = array(value)
    return module, params


__all__ = ["Initializer", "Xavier", "create_workload"]


__dir__ = public_names(__name__)
