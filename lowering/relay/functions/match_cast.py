"""Inserts `relay.match_cast` (Relax's name) where a value is used at a type that differs in `?`.

Types are joined dimension by dimension, and `?` fits everything. In native code a tensor with a `?` has a form of its own, and
a dimension that one side knows must be compared at run time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import StringAttr, TensorType, TupleType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import Pure

from ....dialects.relay import ir as relay
from ....dialects.relay.text import global_text, type_text
from ....dialects.relay.types import AdtType, FuncType, RefType
from ....support.diagnostics import error_at
from ....support.walk import walk_ops
from .adt import DataTypes


@irdl_op_definition
class MatchCastOp(IRDLOperation):
    """`value` at another type of the same ranks and dtypes.

    A dimension that the result's type knows is compared at run time. `what` names the value in the message. The op exists only while
    functions are lowered.
    """

    name = "relay.match_cast"
    value = operand_def()
    what = prop_def(StringAttr)
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, value: SSAValue, type: Attribute, what: str):
        super().__init__(operands=[value], properties={"what": StringAttr(what)}, result_types=[type])


def insert_match_casts(function: relay.FuncOp, functions: Mapping[str, relay.FuncOp], data_types: DataTypes) -> None:
    """Inserts casts wherever a value of the function is used as another type.

    Raises MirError where values of data types or references differ in `?`: what they hold cannot be changed by a cast.
    """
    _Casts(functions, data_types).run(function)


class _Casts:
    """One function on its way."""

    def __init__(self, functions: Mapping[str, relay.FuncOp], data_types: DataTypes):
        self.functions = functions
        self.data_types = data_types
        self.pending: list[Operation] = []

    def run(self, function: relay.FuncOp) -> None:
        """Visits every op, and those that are made or change their type on the way."""
        for op in list(walk_ops(function)):
            self.pending.append(op)
            while self.pending:
                self._visit(self.pending.pop())

    def _visit(self, op: Operation) -> None:
        match op:
            case relay.CallGlobalOp():
                callee = self.functions.get(op.callee.root_reference.data)
                if callee is not None:
                    name = global_text(callee.sym_name.data)
                    self._arguments(op, op.arguments, [p.type for p in callee.params], name)
                    self._result(op, callee.ret_type, f"the result of {name}")
            case relay.CallOp():
                type = op.callee.type
                if isinstance(type, FuncType):
                    self._arguments(op, op.arguments, type.inputs.data, "the function")
                    self._result(op, type.output, "the result of the function")
            case relay.GlobalRefOp():
                callee = self.functions.get(op.symbol.root_reference.data)
                if callee is not None:
                    own = FuncType.get([p.type for p in callee.params], callee.ret_type)
                    self._result(op, own, f"the function {global_text(callee.sym_name.data)}")
            case relay.IfOp() | relay.MatchOp():
                for region in op.regions:
                    self._end(region.block, op.result.type, "the result of this branch")
            case relay.FnOp():
                type = op.result.type
                if isinstance(type, FuncType):
                    self._end(op.body.block, type.output, "the result of this function")
            case relay.FuncOp():
                self._end(op.body.block, op.ret_type, f"the result of {global_text(op.sym_name.data)}")
            case relay.LetOp():
                self._operand(op, 0, op.result.type, "the value")
            case relay.TupleOp() if isinstance(op.result.type, TupleType):
                for number, type in enumerate(op.result.type.types.data):
                    self._operand(op, number, type, f"field {number}")
            case relay.ConstructOp() if isinstance(op.result.type, AdtType):
                for number, type in enumerate(self.data_types.fields(op.result.type, op.constructor.data)):
                    self._operand(op, number, type, f"argument {number} of {op.constructor.data}")
            case relay.RefOp() if isinstance(op.result.type, RefType):
                self._operand(op, 0, op.result.type.value_type, "the value")
            case relay.RefWriteOp() if isinstance(op.ref.type, RefType):
                self._operand(op, 1, op.ref.type.value_type, "the value")
            case relay.RefReadOp() if isinstance(op.ref.type, RefType):
                self._result(op, op.ref.type.value_type, "the value")
            case _:
                pass

    def _arguments(self, op: Operation, arguments: Sequence[SSAValue], types: Sequence[Attribute], callee: str) -> None:
        first = len(op.operands) - len(arguments)
        for number, type in enumerate(types):
            self._operand(op, first + number, type, f"argument {number} of {callee}")

    def _operand(self, op: Operation, number: int, type: Attribute, what: str) -> None:
        value = op.operands[number]
        if value.type == type:
            return
        maker = value.owner
        if isinstance(maker, relay.ConstructOp) and isinstance(type, AdtType) and len(list(value.uses)) == 1:
            # A value that is made for this use alone is made with the type that is wanted.
            Rewriter.replace_value_with_new_type(value, type)
            self.pending.append(maker)
        else:
            op.operands[number] = self._cast(value, type, what, op, InsertPoint.before(op))

    def _end(self, block: Block, type: Attribute, what: str) -> None:
        end = block.last_op
        if isinstance(end, relay.ReturnOp):
            self._operand(end, 0, type, what)

    def _result(self, op: Operation, type: Attribute, what: str) -> None:
        """Sets the type of the op's result to `type`; its users get a cast to the former type."""
        wanted = op.results[0].type
        if wanted == type:
            return
        Rewriter.replace_value_with_new_type(op.results[0], type)
        result = op.results[0]
        uses = list(result.uses)
        cast = self._cast(result, wanted, what, op, InsertPoint.after(op))
        for use in uses:
            use.operation.operands[use.index] = cast

    def _cast(self, value: SSAValue, type: Attribute, what: str, where: Operation, point: InsertPoint) -> SSAValue:
        if isinstance(value.type, FuncType) and isinstance(type, FuncType):
            return self._wrapped(value, type, where, point)
        for own, wanted in zip(_leaf_types(value.type), _leaf_types(type), strict=True):
            if own != wanted and not isinstance(wanted, TensorType):
                raise error_at(
                    where,
                    f"{what} has type {type_text(own)}, but is used as {type_text(wanted)}",
                    "in native code the tensors inside must have the same dimensions `?`: annotate both alike",
                )
        cast = MatchCastOp(value, type, what)
        cast.location = where.location
        Rewriter.insert_op(cast, point)
        return cast.result

    def _wrapped(self, function: SSAValue, type: FuncType, where: Operation, point: InsertPoint) -> SSAValue:
        """Wraps the function in a closure of the wanted type, which casts its arguments and its result."""
        body = Block(arg_types=type.inputs.data)
        call = relay.CallOp(function, list(body.args), type.output)
        body.add_ops([call, relay.ReturnOp(call.result)])
        names = [f"p{k}" for k in range(len(type.inputs.data))]
        wrapper = relay.FnOp(names, Region(body), type, ret_type=type.output)
        for op in (wrapper, *body.ops):
            op.location = where.location
        Rewriter.insert_op(wrapper, point)
        self.pending.append(call)
        return wrapper.result


def _leaf_types(type: Attribute) -> list[Attribute]:
    return [leaf for field in type.types.data for leaf in _leaf_types(field)] if isinstance(type, TupleType) else [type]
