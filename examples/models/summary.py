"""Counts the weights, operators and FLOPs of a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from mirstack.dialects import relay
from mirstack.dialects.relay.operator import OperatorOp
from mirstack.support.walk import walk_ops
from xdsl.dialects.builtin import ModuleOp, TensorType

from .builder import Model


@dataclass(frozen=True)
class Summary:
    """The size of a model.

    `parameters` counts numbers, `ops` operators in the text, `flops` a multiplication and an addition each.
    """

    parameters: int
    ops: int
    flops: int
    calls: int
    """How often the function with the most arithmetic runs: once, or once a step."""


def summarize(model: Model, module: ModuleOp) -> Summary:
    """Summarizes a model and its module, typed."""
    parameters = sum(array.size for array in model.weights.values() if array.dtype.kind == "f")
    ops = [op for op in walk_ops(module) if isinstance(op, OperatorOp)]
    flops = sum(map(contraction_flops, ops))
    return Summary(parameters, len(ops), flops, _steps(module))


def contraction_flops(op: OperatorOp) -> int:
    """Returns the FLOPs of a convolution or a matrix product, 2 per multiply-add; 0 of other operators."""
    name, shapes = op.OPERATOR.name, [_shape(value.type) for value in op.args]
    result = prod(_shape(op.result.type))
    match name:
        case "nn.dense":
            return 2 * result * shapes[0][-1]
        case "nn.batch_matmul":
            return 2 * result * shapes[0][-1]
        case "nn.conv2d":
            return 2 * result * prod(shapes[1][1:])
        case "nn.conv2d_transpose":
            return 2 * prod(shapes[0]) * prod(shapes[1][1:])
        case _:
            return 0


def _shape(type: object) -> Sequence[int]:
    return type.get_shape() if isinstance(type, TensorType) else ()


def _steps(module: ModuleOp) -> int:
    """Returns the length of the data that a function which calls itself walks over; 1 where there is none."""
    for function in module.ops:
        if isinstance(function, relay.FuncOp):
            own = function.sym_name.data
            for op in walk_ops(function):
                if isinstance(op, relay.CallGlobalOp) and op.callee.root_reference.data == own:
                    return max(_shape(param.type)[0] for param in function.params if len(_shape(param.type)) == 3)
    return 1
