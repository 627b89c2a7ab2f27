"""`relay.testing`: types and passes of expressions, networks, naturals, checks of gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from ....support.public_names import public_names
from ...device import Device
from ...ir.module import IRModule
from ...ir.named_passes import make_pass
from ...ir.transform import Pass
from ...nd import NDArray, array
from ...no_attribute import no_attribute
from ...testing import assert_allclose, enabled_targets
from ..executor import ExecutorKind, create_executor
from ..expr import Function, RelayExpr
from ..prelude import Prelude
from ..transform import gradient
from ..ty import TensorType
from . import layers
from .init import Xavier, create_workload

if TYPE_CHECKING:
    from . import dcgan as dcgan
    from . import densenet as densenet
    from . import dqn as dqn
    from . import inception_v3 as inception_v3
    from . import init as init
    from . import lstm as lstm
    from . import mlp as mlp
    from . import mobilenet as mobilenet
    from . import nat as nat
    from . import resnet as resnet
    from . import resnet_3d as resnet_3d
    from . import squeezenet as squeezenet
    from . import temp_op_attr as temp_op_attr
    from . import vgg as vgg
    from .nat import add_nat_definitions as add_nat_definitions
    from .nat import count as count
    from .nat import make_nat_expr as make_nat_expr
    from .nat import make_nat_value as make_nat_value
    from .temp_op_attr import TempOpAttr as TempOpAttr

Array = np.ndarray[Any, np.dtype[Any]]


def run_opt_pass(expr: RelayExpr, opt_pass: Pass | Sequence[Pass], import_prelude: bool = False) -> RelayExpr:
    """Returns an expression with its types after a pass, or several, on a module of it.

    With `import_prelude` the module has the standard prelude, too.
    """
    module = IRModule.from_expr(expr)
    if import_prelude:
        Prelude(module)
    for each in (make_pass("InferType"), *(opt_pass if isinstance(opt_pass, Sequence) else [opt_pass])):
        module = each(module)
    entry = module.relay_function("main")
    return entry if isinstance(expr, Function) else entry.body


def run_infer_type(expr: RelayExpr) -> RelayExpr:
    """Returns an expression with its types. Raises MirError where they do not fit."""
    return run_opt_pass(expr, [])


def rand(dtype: str = "float32", *shape: int) -> NDArray:
    """Returns an array of random numbers from 0 to 1."""
    return array(np.random.rand(*shape).astype(dtype))


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


gradient_check = check_grad


def ctx_list() -> list[tuple[str, Device]]:
    """Returns the targets that programs are compiled for here, each with its device, as `enabled_targets`."""
    return enabled_targets()


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


_MODULES = (
    "dcgan", "densenet", "dqn", "inception_v3", "init", "lstm", "mlp", "mobilenet", "nat", "resnet", "resnet_3d", "squeezenet", "temp_op_attr", "vgg",
)  # fmt: skip
_NAT = ("add_nat_definitions", "count", "make_nat_expr", "make_nat_value")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    if name == "TempOpAttr":
        return import_module(f"{__name__}.temp_op_attr").TempOpAttr
    if name not in _NAT:
        raise no_attribute("relay.testing", name, __all__)
    return getattr(import_module(f"{__name__}.nat"), name)


__all__ = [
    "TempOpAttr",
    "Xavier",
    "add_nat_definitions",
    "check_grad",
    "count",
    "create_workload",
    "ctx_list",
    "dcgan",
    "densenet",
    "dqn",
    "enabled_targets",
    "gradient_check",
    "inception_v3",
    "init",
    "layers",
    "lstm",
    "make_nat_expr",
    "make_nat_value",
    "mlp",
    "mobilenet",
    "nat",
    "rand",
    "resnet",
    "resnet_3d",
    "run_infer_type",
    "run_opt_pass",
    "squeezenet",
    "temp_op_attr",
    "vgg",
]  # fmt: skip


__dir__ = public_names(__name__)
