"""`lower-relay-to-te`: every Primitive function becomes a TE function, its calls `call_tir`.

An operator that stands outside of any Primitive function becomes a kernel of its own. Functions that compute the same
become one kernel: they are compared by structure, constants by value.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr, TensorType, TupleType
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects.relay import ir as relay
from ...dialects.relay.operator import OperatorOp
from ...dialects.tir.types import type_to_dtype
from ...passes.relay.fuse_ops import is_primitive, outline
from ...support.diagnostics import error_at

if TYPE_CHECKING:
    from ...dialects.te.builder import Tensor
    from ...dialects.te.expr import Expr, ExprLike

MOST_NAMED = 6
"""A kernel's name lists at most this many operators."""


@dataclass(frozen=True)
class LowerRelayToTE(ModulePass):
    """Lower Primitive functions and lone operators to TE functions that call_tir calls."""

    name = "lower-relay-to-te"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        kernels = _Kernels(op)
        for function in list(op.ops):
            if isinstance(function, relay.FuncOp) and not is_primitive(function):
                _lower_body(function.body.block, kernels)


class _Kernels:
    """The kernels of one module, by structure."""

    def __init__(self, module: ModuleOp):
        self.module = module
        self.by_structure: dict[Hashable, str] = {}
        self.names = {name.data for op in module.ops if isinstance(name := op.properties.get("sym_name"), StringAttr)}

    def kernel(self, function: relay.FnOp) -> str:
        """The name of the TE function that computes what the Primitive function does."""
        key = structure(function)
        name = self.by_structure.get(key)
        if name is None:
            name = self.by_structure[key] = self._fresh_name(function)
            self.module.body.block.add_op(te_function(function, name))
        return name

    def _fresh_name(self, function: relay.FnOp) -> str:
        operators = [op.OPERATOR.name.replace(".", "_") for op in function.body.block.ops if isinstance(op, OperatorOp)]
        shown = operators[:MOST_NAMED]
        base = "_".join(["fused", *shown, *(["etc"] if len(operators) > MOST_NAMED else [])])
        name, count = base, 0
        while name in self.names:
            count += 1
            name = f"{base}_{count}"
        self.names.add(name)
        return name


def _lower_body(body: Block, kernels: _Kernels) -> None:
    pending = [body]
    while pending:
        for op in list(pending.pop().ops):
            match op:
                case OperatorOp():
                    _lower_call(outline([op]), kernels)
                case relay.CallOp() if isinstance(fn := op.callee.owner, relay.FnOp) and is_primitive(fn):
                    _lower_call(op, kernels)
                case relay.FnOp() if is_primitive(op):
                    pass
                case _:
                    pending += [block for region in op.regions for block in region.blocks]


def _lower_call(call: relay.CallOp, kernels: _Kernels) -> None:
    """Replaces a call of a Primitive function by the call of its kernel."""
    function = call.callee.owner
    assert isinstance(function, relay.FnOp)
    lowered = relay.CallTirOp(kernels.kernel(function), call.arguments, call.result.type)
    lowered.location = call.location
    Rewriter.insert_op(lowered, InsertPoint.before(call))
    call.result.replace_all_uses_with(lowered.result)
    call.detach()
    call.erase()
    if not function.result.uses:
        function.detach()
        function.erase()


def structure(function: relay.FnOp) -> Hashable:
    """What two functions that compute the same have in common: types, and ops with their attributes and operands by number."""
    block = function.body.block
    numbers: dict[SSAValue, int] = {value: number for number, value in enumerate(block.args)}
    ops: list[Hashable] = []
    for op in block.ops:
        attributes = tuple(sorted((*op.attributes.items(), *op.properties.items()), key=lambda item: item[0]))
        ops.append((op.name, tuple(numbers[v] for v in op.operands), attributes, tuple(r.type for r in op.results)))
        for result in op.results:
            numbers[result] = len(numbers)
    return (tuple(value.type for value in block.args), tuple(ops))


def te_function(function: relay.FnOp, name: str) -> Operation:
    """The `te.func` of a Primitive function: its inputs' leaves, then its outputs' leaves as parameters.

    Raises MirError for an operator that is no tensor expression.
    """
    from ...dialects.te import builder as te

    values: dict[SSAValue, Sequence[Tensor]] = {}
    inputs: list[Tensor] = []
    for param, param_name in zip(function.params, function.param_names.data, strict=True):
        leaves = list(tensor_leaves(param.type))
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
                case relay.TupleOp():
                    values[op.result] = [tensor for field in op.fields for tensor in values[field]]
                case relay.TupleGetItemOp():
                    values[op.result] = _projection(op, values)
                case relay.ReturnOp():
                    outputs = values[op.value]
                case _:
                    raise error_at(op, f"{op.name} cannot be part of a Primitive function")
    with te.location_scope(function.location):
        distinct: list[Tensor] = []
        for tensor in outputs:
            known = any(tensor is other for other in (*inputs, *distinct)) or tensor.op.name == "constant"
            distinct.append(te.compute(tensor.shape, lambda *i, t=tensor: t(*i), name="identity") if known else tensor)
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
    """A tensor of rank 0 whose reads are the number itself, so that no kernel keeps a loop for it."""
    from ...dialects.te import builder as te
    from ...dialects.te.tensor import Tensor

    value = op.value.array.item()
    type = op.result.type
    assert isinstance(type, TensorType)
    number = te.const(value, type_to_dtype(type.element_type))

    class Number(Tensor):
        def __call__(self, *indices: ExprLike) -> Expr:
            return number

    described = te.compute((), lambda *_: number, name="constant")
    return Number(described.op, 0, described.dims, described.dtype)


def _projection(op: relay.TupleGetItemOp, values: dict[SSAValue, Sequence[Tensor]]) -> Sequence[Tensor]:
    type = op.tuple_value.type
    assert isinstance(type, TupleType)
    index = op.index.value.data
    at = sum(len(tensor_leaves(field)) for field in type.types.data[:index])
    return values[op.tuple_value][at : at + len(tensor_leaves(type.types.data[index]))]
