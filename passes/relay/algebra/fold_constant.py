"""`fold-constant`: computes what depends on constants alone.

    add(multiply(2f, 3f), %x)   ->   add(6f, %x)

As TVM's FoldConstant: calls of operators whose arguments are constants, or tuples of them, by the operators' meaning in numpy;
the shape and the size of tensors whose dimensions are known; a branch whose condition is known; a field of a tuple that is
written out; a `let` of a constant. Operators without arguments, those with an effect, annotations and the inside of kernels are
left alone, and quantized operators, too, unless `fold-qnn`. Where the types of folded values become more definite than they
were, the types of dependent values are inferred again.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar, TypeGuard, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp, TensorType
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.traits import Pure

from ....dialects.array import ArrayValueAttr, numpy_dtype
from ....dialects.relay import ir
from ....dialects.relay.infer import infer_types
from ....dialects.relay.interpreter import fits
from ....dialects.relay.operator import OperatorOp
from ....dialects.relay.text import local_text, type_text
from ....dialects.tir.types import dtype_to_type
from ....support.edit import erase_op, insert_op_before
from ....support.trace import Tracer, tracer
from ....support.walk import walk_ops
from ..common.evaluation import Value, evaluate_operator
from ..common.function_attributes import is_primitive

LARGEST = 1 << 28
"""A result of more bytes than this is left to be computed, unless its arguments take as many: it would only lengthen the
program."""

_ANNOTATIONS = ("annotation.", "memory.", "device_copy")
_SHOWN = 8  # Elements of a constant in a remark.


@dataclass(frozen=True)
class FoldConstant(ModulePass):
    """Compute what depends on constants alone."""

    name = "fold-constant"
    tells: ClassVar[bool] = True

    fold_qnn: bool = False
    """Also fold quantized operators."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        folder = _Folder(self.fold_qnn, tracer(self.name))
        for function in op.ops:
            if isinstance(function, ir.FuncOp) and not is_primitive(function):
                folder.run(function)
        if folder.types_changed:
            infer_types(op, fresh=True)


class _Folder:
    def __init__(self, fold_qnn: bool, trace: Tracer | None):
        self.fold_qnn = fold_qnn
        self.trace = trace
        self.types_changed = False
        self.known: dict[SSAValue, Value] = {}
        self.shared: dict[Operation, None] = {}  # Constants that may have several users.

    def run(self, function: ir.FuncOp) -> None:
        """Folds in a function and in the local functions and branches inside it."""
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            # Where each block on the way goes on; an op may put others before the one that follows it.
            pending: list[Operation | None] = [function.body.block.first_op]
            while pending:
                op = pending.pop()
                if op is None:
                    continue
                inlined = self._if(op) if isinstance(op, ir.IfOp) else None
                if inlined is not None:
                    pending.append(inlined)
                    continue
                pending.append(op.next_op)
                if op.regions:
                    if not (isinstance(op, ir.FnOp) and is_primitive(op)):
                        pending += [region.block.first_op for region in op.regions]
                else:
                    self._visit(op)
        self._give_each_user_its_own(function)

    def _visit(self, op: Operation) -> None:
        match op:
            case ir.ConstantOp():
                self.known[op.result] = op.value.array
            case ir.TupleOp():
                fields = [self.known.get(field) for field in op.fields]
                if all(field is not None for field in fields):
                    self.known[op.result] = tuple(cast("list[Value]", fields))
            case ir.TupleGetItemOp():
                owner = op.tuple_value.owner
                if isinstance(owner, ir.TupleOp) and op.index.value.data < len(owner.operands):
                    self._replace(op, owner.operands[op.index.value.data])
            case ir.LetOp():
                if isinstance(op.value.owner, ir.ConstantOp) or (
                    _is_on_device(op.value.owner) and op.value in self.known
                ):
                    if self.trace is not None:
                        self.trace(
                            op, f"{local_text(op.var_name.data)} is {_show(self.known[op.value])} wherever it is used"
                        )
                    self._replace(op, op.value)
            case OperatorOp():
                self._operator(op)
            case _:
                pass

    # Operators -----------------------------------------------------------------------------------------------------

    def _operator(self, op: OperatorOp) -> None:
        name = op.OPERATOR.name
        if _is_on_device(op):
            # A constant on a device is a constant all the same.
            value = self.known.get(op.args[0])
            if isinstance(value, np.ndarray):
                self.known[op.result] = value
            return
        if not op.operands or op.OPERATOR.stateful or name.startswith(_ANNOTATIONS):
            return
        if name.startswith("qnn.") and not self.fold_qnn:
            return
        if name in ("shape_of", "ndarray_size"):
            value = self._shape(op)
            if value is not None:
                if self.trace is not None:
                    self.trace(op, f"{name}({type_text(op.operands[0].type)}) is {_show(value)}")
                self._fold(op, value)
                return
        arguments: list[Value] = []
        for arg in op.operands:
            value = self.known.get(arg)
            if value is None:
                return
            arguments.append(value)
        if not self._is_too_large(op, arguments):
            result = evaluate(op, arguments)
            if result is not None:
                if self.trace is not None:
                    self.trace(op, f"{name}({', '.join(map(_show, arguments))}) is {_show(result)}")
                self._fold(op, result)

    def _shape(self, op: OperatorOp) -> NDArray[Any] | None:
        """The shape or the number of elements of a tensor whose type says it."""
        type = op.args[0].type
        if not isinstance(type, TensorType) or DYNAMIC_INDEX in type.get_shape():
            return None
        dtype = numpy_dtype(op.attrs().dtype or "int32")
        shape = type.get_shape()
        return np.array(shape if op.OPERATOR.name == "shape_of" else prod(shape), dtype)

    def _is_too_large(self, op: OperatorOp, arguments: list[Value]) -> bool:
        taken = sum(array.nbytes for value in arguments for array in _arrays(value))
        type = op.result.type
        made = 8 * prod(type.get_shape()) if isinstance(type, TensorType) else 0
        return made > max(LARGEST, taken)

    def _fold(self, op: OperatorOp, value: Value) -> None:
        made = self._constant(op, value)
        if made.type != op.result.type:
            self.types_changed = True
        self._replace(op, made)

    def _constant(self, op: Operation, value: Value) -> SSAValue:
        """Ops of a value before `op`, where it was computed."""
        if isinstance(value, tuple):
            made: ir.TupleOp | ir.ConstantOp = ir.TupleOp([self._constant(op, field) for field in value])
        else:
            # An array's type is most often the one that inference found; `create` spares the checks of a constructor.
            type = op.results[0].type
            if not fits(value, type) or not is_static(type):
                type = TensorType(dtype_to_type(value.dtype.name), value.shape)
            made = ir.ConstantOp.create(properties={"value": ArrayValueAttr.of(value)}, result_types=(type,))
            self.shared[made] = None
        made.location = op.location
        insert_op_before(made, op)
        self.known[made.result] = value
        return made.result

    # Branches ------------------------------------------------------------------------------------------------------

    def _if(self, op: ir.IfOp) -> Operation | None:
        """Replaces an `if` of known condition by the branch taken; returns the op to continue with."""
        condition = self.known.get(op.condition)
        if not isinstance(condition, np.ndarray) or condition.size != 1:
            return None
        taken = bool(condition.item())
        if self.trace is not None:
            self.trace(op, f"the condition is {taken}: only that branch is left")
        block = (op.then_region if taken else op.else_region).block
        first, result = _move_out(block, op)
        following = op.next_op
        self._replace(op, result)
        return first or following

    # Bookkeeping ---------------------------------------------------------------------------------------------------

    def _replace(self, op: Operation, value: SSAValue) -> None:
        """Puts a value in the place of an op's, and drops the op and what only it needed."""
        if isinstance(value.owner, ir.ConstantOp):
            self.shared[value.owner] = None
        if value.type != op.results[0].type and isinstance(value.type, TensorType):
            self.types_changed = True
        op.results[0].replace_all_uses_with(value)
        unused = [op]
        while unused:
            dead = unused.pop()
            owners = [operand.owner for operand in dead.operands]
            self.shared.pop(dead, None)
            self.known.pop(dead.results[0], None)
            erase_op(dead)
            unused += [owner for owner in dict.fromkeys(owners) if owner is not value.owner and _is_unused(owner)]

    def _give_each_user_its_own(self, function: ir.FuncOp) -> None:
        """Text writes a constant where it is used: each use gets an op of its own, right before the user."""
        shared = {op for op in self.shared if isinstance(op, ir.ConstantOp)}
        if not shared:
            return
        for op in list(walk_ops(function)):
            if not any(operand.owner in shared for operand in op.operands):
                continue
            operands: list[SSAValue] = []
            for operand in op.operands:
                owner = operand.owner
                if isinstance(owner, ir.ConstantOp) and owner in shared:
                    own = ir.ConstantOp(owner.value, owner.result.type)
                    own.location = owner.location
                    insert_op_before(own, op)
                    operands.append(own.result)
                else:
                    operands.append(operand)
            op.operands = operands
        for op in shared:
            erase_op(op)
        self.shared.clear()


def _is_on_device(op: Operation | Block) -> bool:
    return isinstance(op, OperatorOp) and op.OPERATOR.name == "on_device"


def _is_unused(op: Operation | Block) -> TypeGuard[Operation]:
    """Returns whether an op has no effect and an unused result. A `let` is kept: the program asks for it."""
    if isinstance(op, (Block, ir.LetOp)) or op.regions or not op.has_trait(Pure):
        return False
    return op.results[0].first_use is None


def _move_out(block: Block, before: Operation) -> tuple[Operation | None, SSAValue]:
    """Moves the ops of a branch to before its `if`; returns the first one and the branch's value."""
    end = block.last_op
    assert isinstance(end, ir.ReturnOp)
    first: Operation | None = None
    for op in list(block.ops):
        if op is end:
            break
        op.detach()
        insert_op_before(op, before)
        first = first or op
    return first, end.value


def is_static(type: Attribute) -> bool:
    """Returns whether a type is a tensor of known dimensions."""
    return isinstance(type, TensorType) and DYNAMIC_INDEX not in type.get_shape()


def evaluate(op: OperatorOp, arguments: list[Value]) -> Value | None:
    """Evaluates the operator on `arguments`; None if it fails, an error that the running program reports."""
    if op.OPERATOR.problem(op.given(), len(arguments)) is not None:
        return None
    value = evaluate_operator(op, arguments)
    if value is None or not fits(value, op.result.type):
        return None
    return value if all(_has_type(array) for array in _arrays(value)) else None


def _has_type(array: NDArray[Any]) -> bool:
    return array.dtype.kind not in "OUSMm"


def _arrays(value: Value) -> Iterator[NDArray[Any]]:
    if isinstance(value, tuple):
        for part in value:
            yield from _arrays(part)
    else:
        yield value


def _show(value: Value) -> str:
    """A constant in a remark: small ones whole, of others the type and how they begin."""
    if isinstance(value, tuple):
        return f"({', '.join(map(_show, value))})"
    if value.size <= _SHOWN:
        text = np.array2string(value, separator=", ", formatter={"all": str})
        return " ".join(text.split())
    begin = ", ".join(map(str, value.reshape(-1)[:3]))
    return f"{_type_of(value)}[{begin}, …]"


def _type_of(value: NDArray[Any]) -> str:
    type: Attribute = TensorType(dtype_to_type(value.dtype.name), value.shape)
    return type_text(type)
