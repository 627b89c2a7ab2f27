"""A Primitive function as a TE function: each operator's TE compute, one after the other.

A dimension `?` of an input is a size variable of the TE function; the results' sizes follow from the computes. What has to
be computed and checked before the kernel runs is a second TE function, its shape function.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import DYNAMIC_INDEX, DictionaryAttr, TensorType, TupleType
from xdsl.ir import Attribute, SSAValue

from ...dialects.relay import ir as relay
from ...dialects.relay.infer.open_checks import Place, open_checks
from ...dialects.relay.operator import OperatorOp
from ...dialects.te import builder as te
from ...dialects.te import ops as te_ops
from ...dialects.te.builder import Tensor
from ...dialects.te.expr import Const, Expr, ExprLike
from ...dialects.tir.types import type_to_dtype
from ...support.diagnostics import error_at
from ..tir.signature import SHAPE
from .leaves import leaves_of
from .reads import check_reads
from .shape_function import ShapeFunction, Sizes


class Number(Tensor):
    """A tensor of rank 0 whose reads are the number itself, so that no kernel keeps a loop for it."""

    def __init__(self, number: Expr):
        described = te.compute((), lambda *_: number, name="constant")
        super().__init__(described.op, 0, described.dims, described.dtype)
        self.number = number

    def __call__(self, *indices: ExprLike) -> Expr:
        return self.number


@dataclass(frozen=True)
class Kernel:
    """The `te.func` of a Primitive function: its inputs' leaves, then its outputs' leaves as parameters. `shape` is its
    shape function, where it needs one."""

    function: te_ops.FuncOp
    shape: te_ops.FuncOp | None


def te_kernel(function: relay.FnOp, name: str) -> Kernel:
    """The kernel called `name` of a Primitive function. Raises MirError for an operator that is no tensor expression."""
    values: dict[SSAValue, Sequence[Tensor]] = {}
    inputs: list[Tensor] = []
    sizes = Sizes()
    for param, param_name in zip(function.params, function.param_names.data, strict=True):
        leaves_of(param.type, param)  # what native code cannot hold is refused here, at the parameter
        leaves = tensor_leaves(param.type)
        tensors = [
            te.placeholder(
                _shape(leaf, sizes),
                type_to_dtype(leaf.element_type),
                param_name.data + (f"_{k}" if len(leaves) > 1 else ""),
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
                    values[op.result] = _operator(op, values, sizes)
                case relay.ConstantOp():
                    values[op.result] = [_scalar(op)]
                case relay.TupleOp():
                    values[op.result] = [tensor for field in op.fields for tensor in values[field]]
                case relay.TupleGetItemOp():
                    values[op.result] = _projection(op, values)
                case relay.LetOp():
                    values[op.result] = values[op.value]
                case _:
                    assert isinstance(op, relay.ReturnOp)
                    outputs = values[op.value]
    with te.location_scope(function.location):
        distinct: list[Tensor] = []
        for tensor in outputs:
            known = any(tensor is other for other in (*inputs, *distinct)) or isinstance(tensor, Number)
            distinct.append(te.compute(tensor.shape, tensor, name="identity") if known else tensor)
        sizes.name_results(distinct)
        lowered = te.func(name, [*inputs, *distinct])
        shape = sizes.shape_function(f"{name}_shape", inputs, distinct)
    lowered.location = function.location
    if shape is not None:
        shape.location = function.location
        operators = [op.OPERATOR.name for op in function.body.block.ops if isinstance(op, OperatorOp)]
        described = ShapeFunction(
            shape.sym_name.data, operators[0] if len(operators) == 1 else name, tuple(c for c, *_ in sizes.checks)
        )
        lowered.attrs = DictionaryAttr({**lowered.attrs.data, SHAPE: described.to_attr()})
    return Kernel(lowered, shape)


def tensor_leaves(type: Attribute) -> list[TensorType[Attribute]]:
    """The tensors of a type, depth first."""
    match type:
        case TensorType():
            return [type]
        case TupleType():
            return [leaf for field in type.types.data for leaf in tensor_leaves(field)]
        case _:
            raise error_at(None, f"a kernel takes tensors, not {type}")


def _shape(type: TensorType[Attribute], sizes: Sizes) -> tuple[int | Expr, ...]:
    return tuple(sizes.input_size() if extent == DYNAMIC_INDEX else extent for extent in type.get_shape())


def _operator(op: OperatorOp, values: dict[SSAValue, Sequence[Tensor]], sizes: Sizes) -> Sequence[Tensor]:
    operator = op.OPERATOR
    if operator.compute is None:
        raise error_at(
            op,
            f"{operator.name} has no tensor expression, so it cannot be compiled",
            "run it with `--target interp`",
        )
    arguments = [tensor for argument in op.args for tensor in values[argument]]

    def size_of(side: Place | int) -> int | Expr:
        return arguments[side.leaf].dims[side.axis] if isinstance(side, Place) else side

    for check in open_checks(op):
        sizes.check("stretch" if check.stretches else "equal", size_of(check.left), size_of(check.right), check.message)
    attrs = op.attrs()
    results = operator.compute(attrs, arguments, op.result.type)
    if operator.extents is not None and not all(map(_is_static, (*arguments, *results))):
        sizes.define(operator.name, results, operator.extents(attrs, arguments, op.result.type))
    check_reads(operator.name, _names(op, values), results, sizes)
    return results


def _names(op: OperatorOp, values: dict[SSAValue, Sequence[Tensor]]) -> dict[Tensor, str]:
    """What the operator calls its input tensors."""
    names: dict[Tensor, str] = {}
    for argument, name in zip(op.args, op.OPERATOR.arguments, strict=True):
        tensors = values[argument]
        for field, tensor in enumerate(tensors):
            shown = f"{name.lstrip('*')}[{field}]" if isinstance(argument.type, TupleType) else name
            names.setdefault(tensor, shown)
    return names


def _is_static(tensor: Tensor) -> bool:
    return all(isinstance(dim, Const) for dim in tensor.dims)


def _scalar(op: relay.ConstantOp) -> Tensor:
    value = op.value.array.item()
    type = op.result.type
    assert isinstance(type, TensorType)
    return Number(te.const(value, type_to_dtype(type.element_type)))


def _projection(op: relay.TupleGetItemOp, values: dict[SSAValue, Sequence[Tensor]]) -> Sequence[Tensor]:
    type = op.tuple_value.type
    assert isinstance(type, TupleType)
    index = op.index.value.data
    at = sum(len(tensor_leaves(field)) for field in type.types.data[:index])
    return values[op.tuple_value][at : at + len(tensor_leaves(type.types.data[index]))]
