"""Where a value of one type meets another that differs in `?`: made explicit as `relay.match_cast` (Relax's name for it).

Types are joined dimension by dimension, `?` fitting everything. In native code a tensor with a `?` has a form of its own, and
a dimension that one side knows has to be compared with what comes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import StringAttr, TensorType, TupleType
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import Pure

from ...dialects.relay import ir as relay
from ...dialects.relay.text import global_text, type_text
from ...dialects.relay.types import AdtType, FuncType, RefType
from ...support.diagnostics import error_at
from ...support.walk import walk_ops
from .adt import DataTypes


@irdl_op_definition
class MatchCastOp(IRDLOperation):
    """`value` at another type of the same ranks and dtypes: a dimension that the result's type knows is compared at run time.

    `what` names the value in the message. Only the lowering of functions sees this op.
    """

    name = "relay.match_cast"
    value = operand_def()
    what = prop_def(StringAttr)
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, value: SSAValue, type: Attribute, what: str):
        super().__init__(operands=[value], properties={"what": StringAttr(what)}, result_types=[type])


def insert_match_casts(function: relay.FuncOp, functions: Mapping[str, relay.FuncOp], data_types: DataTypes) -> None:
    """Casts wherever a value of the function is used as another type. Raises MirError where closures, data types or
    references differ in `?`: what they hold cannot be changed in passing."""
    for op in list(walk_ops(function)):
        match op:
            case relay.CallGlobalOp():
                callee = functions.get(op.callee.root_reference.data)
                if callee is not None:
                    _arguments(op, op.arguments, [p.type for p in callee.params], global_text(callee.sym_name.data))
                    _result(op, callee.ret_type, f"the result of {global_text(callee.sym_name.data)}")
            case relay.CallOp():
                type = op.callee.type
                if isinstance(type, FuncType):
                    _arguments(op, op.arguments, type.inputs.data, "the function")
                    _result(op, type.output, "the result of the function")
            case relay.GlobalRefOp():
                callee = functions.get(op.symbol.root_reference.data)
                if callee is not None:
                    own = FuncType.get([p.type for p in callee.params], callee.ret_type)
                    _must_be_same(op, own, op.result.type, f"the function {global_text(callee.sym_name.data)}")
            case relay.IfOp() | relay.MatchOp():
                for region in op.regions:
                    _end(region.block, op.result.type, "the result of this branch")
            case relay.FnOp():
                type = op.result.type
                if isinstance(type, FuncType):
                    _end(op.body.block, type.output, "the result of this function")
            case relay.FuncOp():
                _end(op.body.block, op.ret_type, f"the result of {global_text(op.sym_name.data)}")
            case relay.LetOp():
                _operand(op, 0, op.result.type, "the value")
            case relay.TupleOp() if isinstance(op.result.type, TupleType):
                for number, type in enumerate(op.result.type.types.data):
                    _operand(op, number, type, f"field {number}")
            case relay.ConstructOp() if isinstance(op.result.type, AdtType):
                for number, type in enumerate(data_types.fields(op.result.type, op.constructor.data)):
                    _operand(op, number, type, f"argument {number} of {op.constructor.data}")
            case relay.RefOp() if isinstance(op.result.type, RefType):
                _operand(op, 0, op.result.type.value_type, "the value")
            case relay.RefWriteOp() if isinstance(op.ref.type, RefType):
                _operand(op, 1, op.ref.type.value_type, "the value")
            case relay.RefReadOp() if isinstance(op.ref.type, RefType):
                _result(op, op.ref.type.value_type, "the value")
            case _:
                pass


def _arguments(op: Operation, arguments: Sequence[SSAValue], types: Sequence[Attribute], callee: str) -> None:
    first = len(op.operands) - len(arguments)
    for number, type in enumerate(types):
        _operand(op, first + number, type, f"argument {number} of {callee}")


def _operand(op: Operation, number: int, type: Attribute, what: str) -> None:
    value = op.operands[number]
    if value.type != type:
        op.operands[number] = _cast(value, type, what, op, InsertPoint.before(op))


def _end(block: Block, type: Attribute, what: str) -> None:
    end = block.last_op
    if isinstance(end, relay.ReturnOp):
        _operand(end, 0, type, what)


def _result(op: Operation, type: Attribute, what: str) -> None:
    """The op gives `type`; those who use its result see the type that it had."""
    result = op.results[0]
    wanted = result.type
    if wanted == type:
        return
    Rewriter.replace_value_with_new_type(result, type)
    result = op.results[0]
    uses = list(result.uses)
    cast = _cast(result, wanted, what, op, InsertPoint.after(op))
    for use in uses:
        use.operation.operands[use.index] = cast


def _cast(value: SSAValue, type: Attribute, what: str, where: Operation, point: InsertPoint) -> SSAValue:
    for own, wanted in zip(_leaf_types(value.type), _leaf_types(type), strict=True):
        if not isinstance(wanted, TensorType):
            _must_be_same(where, own, wanted, what)
    cast = MatchCastOp(value, type, what)
    cast.location = where.location
    Rewriter.insert_op(cast, point)
    return cast.result


def _must_be_same(where: Operation, own: Attribute, wanted: Attribute, what: str) -> None:
    if own != wanted:
        raise error_at(
            where,
            f"{what} has type {type_text(own)}, but is used as {type_text(wanted)}",
            "in native code the tensors inside must have the same dimensions `?`: annotate both alike",
        )


def _leaf_types(type: Attribute) -> list[Attribute]:
    return [leaf for field in type.types.data for leaf in _leaf_types(field)] if isinstance(type, TupleType) else [type]
