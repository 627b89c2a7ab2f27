"""A Primitive function as a TE function: each operator's TE compute, one after the other."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import TensorType, TupleType
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects.relay import ir as relay
from ...dialects.relay.operator import OperatorOp
from ...dialects.te import builder as te
from ...dialects.te.builder import Tensor
from ...dialects.te.expr import Expr, ExprLike
from ...dialects.tir.types import type_to_dtype
from ...support.diagnostics import error_at
from .leaves import leaves_of


class Number(Tensor):
    """A tensor of rank 0 whose reads are the number itself, so that no kernel keeps a loop for it."""

    def __init__(self, number: Expr):
        described = te.compute((), lambda *_: number, name="constant")
        super().__init__(described.op, 0, described.dims, described.dtype)
        self.number = number

    def __call__(self, *indices: ExprLike) -> Expr:
        return self.number


def te_function(function: relay.FnOp, name: str) -> Operation:
    """The `te.func` of a Primitive function: its inputs' leaves, then its outputs' leaves as parameters.

    Raises MirError for an operator that is no tensor expression.
    """
    values: dict[SSAValue, Sequence[Tensor]] = {}
    inputs: list[Tensor] = []
    for param, param_name in zip(function.params, function.param_names.data, strict=True):
        leaves_of(param.type, param)  # what native code cannot hold is refused here, at the parameter
        leaves = tensor_leaves(param.type)
        tensors = [
            te.placeholder(
                _shape(leaf), type_to_dtype(leaf.element_type), param_name.data + (f"_{k}" if len(leaves) > 1 else "")
            )
            for k, leaf in enumerate(leaves)
        ]
        inputs += tensors
        values[param] = tensors
    outputs: Sequence[Tensor] = ()
    for op in function.body.block.ops:
        with te.location_scope(op.location):
            match op:
                case OperatorOp():
                    values[op.result] = _operator(op, values)
                case relay.ConstantOp():
                    values[op.result] = [_scalar(op)]
                case relay.LetOp():
                    values[op.result] = values[op.value]
                case relay.TupleOp():
                    values[op.result] = [tensor for field in op.fields for tensor in values[field]]
                case relay.TupleGetItemOp():
                    values[op.result] = _projection(op, values)
                case _:
                    assert isinstance(op, relay.ReturnOp)
                    outputs = values[op.value]
    with te.location_scope(function.location):
        distinct: list[Tensor] = []
        for tensor in outputs:
            known = any(tensor is other for other in (*inputs, *distinct)) or isinstance(tensor, Number)
            distinct.append(te.compute(tensor.shape, tensor, name="identity") if known else tensor)
        lowered = te.func(name, [*inputs, *distinct])
    lowered.location = function.location
    return lowered


def tensor_leaves(type: Attribute) -> list[TensorType[Attribute]]:
    """The tensors of a type, depth first."""
    match type:
        case TensorType():
            return [type]
        case TupleType():
            return [leaf for field in type.types.data for leaf in tensor_leaves(field)]
        case _:
            raise error_at(None, f"a kernel takes tensors, not {type}")


def _shape(type: TensorType[Attribute]) -> tuple[int, ...]:
    return tuple(type.get_shape())


def _operator(op: OperatorOp, values: dict[SSAValue, Sequence[Tensor]]) -> Sequence[Tensor]:
    compute = op.OPERATOR.compute
    if compute is None:
        raise error_at(
            op,
            f"{op.OPERATOR.name} has no tensor expression, so it cannot be compiled",
            "run it with `--target interp`",
        )
    return compute(op.attrs(), [tensor for argument in op.args for tensor in values[argument]], op.result.type)


def _scalar(op: relay.ConstantOp) -> Tensor:
    value = op.value.array.item()
    type = op.result.type
    assert isinstance(type, TensorType)
    number = te.const(value, type_to_dtype(type.element_type))

    return Number(number)


def _projection(op: relay.TupleGetItemOp, values: dict[SSAValue, Sequence[Tensor]]) -> Sequence[Tensor]:
    type = op.tuple_value.type
    assert isinstance(type, TupleType)
    index = op.index.value.data
    at = sum(len(tensor_leaves(field)) for field in type.types.data[:index])
    return values[op.tuple_value][at : at + len(tensor_leaves(type.types.data[index]))]
