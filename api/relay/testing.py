"""`relay.testing`: types and passes of expressions, weights for networks, gradients by differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from ..device import Device
from ..ir.module import IRModule
from ..ir.transform import Pass
from ..nd import NDArray, array
from ..testing import assert_allclose, enabled_targets
from .executor import ExecutorKind, create_executor
from .expr import Function, RelayExpr
from .transform import gradient
from .ty import TensorType

Array = np.ndarray[Any, np.dtype[Any]]
Initializer = Callable[[str, Array], None]


def run_opt_pass(expr: RelayExpr, opt_pass: Pass | Sequence[Pass], import_prelude: bool = False) -> RelayExpr:
    """Returns an expression after a pass, or after several, on a module of it."""
    module = IRModule.from_expr(expr)
    for each in opt_pass if isinstance(opt_pass, Sequence) else [opt_pass]:
        module = each(module)
    entry = module.relay_function("main")
    return entry if isinstance(expr, Function) else entry.body


def run_infer_type(expr: RelayExpr) -> RelayExpr:
    """Returns an expression with its types. Raises MirError where they do not fit."""
    from .transform import make_pass

    return run_opt_pass(expr, make_pass("InferType"))


def rand(dtype: str = "float32", *shape: int) -> NDArray:
    """Returns an array of random numbers from 0 to 1."""
    return array(np.random.rand(*shape).astype(dtype))


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
    from .transform import make_pass

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


def check_grad(
    func: Function,
    inputs: Sequence[Array] | None = None,
    test_inputs: Sequence[Array] | None = None,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    scale: float | None = None,
    mean: float = 0.0,
    mode: str = "higher_order",
    target_devices: Sequence[tuple[str, Device]] | None = None,
    executor_kind: ExecutorKind = "debug",
) -> None:
    """Raises AssertionError unless a function's gradients are near quotients of differences.

    `inputs` are drawn around `mean` where they are not given, with the deviation `scale`; those of `test_inputs` are checked.
    """
    function = run_infer_type(func)
    assert isinstance(function, Function)
    module = run_infer_type(gradient(function, mode=mode))
    if inputs is None:
        generator = np.random.default_rng(0)
        drawn: list[Array] = []
        for param in function.params:
            type = param.checked_type
            assert isinstance(type, TensorType)
            drawn.append(
                (generator.standard_normal(type.concrete_shape) * (scale or 10 * eps) + mean).astype(type.dtype)
            )
        inputs = drawn
    checked = inputs if test_inputs is None else test_inputs
    for target, device in target_devices or enabled_targets():
        executor = create_executor(executor_kind, device=device, target=target)
        forward = executor.evaluate(function)
        _, gradients = executor.evaluate(module)(*inputs)
        for values, found in zip(inputs, gradients, strict=True):
            if any(values is each for each in checked):
                assert_allclose(found, _differences(forward, inputs, values, eps), rtol, atol)


def _differences(forward: Callable[..., Any], inputs: Sequence[Array], values: Array, eps: float) -> Array:
    """Returns the gradient of the sum of a function's result by two calls for each element of `values`."""
    result = np.zeros_like(values)
    for index in np.ndindex(values.shape):
        sums: list[float] = []
        for step in (eps, -eps):
            moved = values.copy()
            moved[index] += step
            called = forward(*(moved if each is values else each for each in inputs))
            sums.append(float(np.sum(called.numpy().astype("float64"))))
        result[index] = (sums[0] - sums[1]) / (2 * eps)
    return result


__all__ = ["Xavier", "check_grad", "create_workload", "rand", "run_infer_type", "run_opt_pass"]
