"""`dynamic-to-static`: fixes the shape of operators whose shape is a known argument.

    %1 = dyn.reshape(%x, shape_of(%y))   ->   %1 = reshape(%x, newshape=[8, 3])      // %y: Tensor[(8, 3), float32]

As TVM's DynamicToStatic. The operators are replaced by the rules of `dynamic_to_static.mir`; this file finds the elements that the
rules read: constants, `shape_of` and `ndarray_size` of tensors of known type, and the results of operators on these, as long as
they are small. That part is an evaluation in program order, through lets and tuples, not a rewrite. So is the replacement of
tensors in explicit memory (`memory.alloc_tensor`) by zeros: it checks through lets that the tensor is within its storage, and
removes the storage with its last use.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Any, cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType, TupleType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ....dialects.array import numpy_dtype
from ....dialects.relay.infer import infer_types
from ....dialects.relay.infer.open_checks import is_open
from ....dialects.relay.infer.result import infer_result
from ....dialects.relay.ir import ConstantOp, FuncOp, LetOp, TupleGetItemOp, TupleOp
from ....dialects.relay.operator import OperatorOp, all_operators, operator_class
from ....dialects.relay.operators.common.relations import tuple_type
from ....dialects.tir.types import type_to_dtype
from ....support.diagnostics import MirError
from ....support.edit import erase_op, insert_op_before
from ....support.operands import operands_of
from ....support.walk import walk_ops
from ..common.evaluation import evaluate_operator
from ..common.rewriting import erase_unused
from ..functional.infer_type import ensure_types

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ...rules.engine.rewriter import RuleDriver

    Array = NDArray[Any]
    Known = Array | tuple[Array, ...]

MOST_ELEMENTS = 4096
"""Larger tensors are not evaluated: shapes are small."""

RULES = "relay/algebra/dynamic_to_static.mir"

MEMORY = ("relay.memory.alloc_tensor", "relay.memory.kill")
"""Operators of explicit memory, which are replaced where the memory is known."""


@dataclass(frozen=True)
class DynamicToStatic(ModulePass):
    """Replaces operators of computed shape by those of a fixed shape where the shape is known."""

    name = "dynamic-to-static"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = [function for function in op.ops if isinstance(function, FuncOp)]
        if not any(_is_dynamic(inner.name) for function in functions for inner in walk_ops(function)):
            return
        from ...rules.engine.rewriter import RuleDriver
        from ...rules.engine.shipped import shipped_rules
        from ...rules.engine.stats import current_stats

        ensure_types(op)
        work = _Work(RuleDriver(None, shipped_rules(RULES), True, current_stats()))
        for function in functions:
            for inner in list(walk_ops(function)):
                work.visit(inner)
        if work.changed:
            # Calls, branches and functions' results have other types now, too.
            infer_types(op, fresh=True)


def _is_dynamic(name: str) -> bool:
    return name.startswith("relay.dyn.") or name in ("relay.arange", *MEMORY)


@dataclass
class _Work:
    """Evaluates small values and applies the rules to each op after its operands."""

    rules: RuleDriver
    known: dict[SSAValue, Known] = field(default_factory=dict[SSAValue, "Known"])
    changed: bool = False

    def visit(self, op: Operation) -> None:
        """Makes the op static if it can be, and notes its value if it is known."""
        match op:
            case ConstantOp():
                if op.value.array.size <= MOST_ELEMENTS:
                    self.known[op.result] = op.value.array
            case LetOp():
                if is_open(op.result.type):
                    Rewriter.replace_value_with_new_type(op.result, op.value.type)
                if op.value in self.known:
                    self.known[op.result] = self.known[op.value]
            case TupleOp():
                if is_open(op.result.type):
                    Rewriter.replace_value_with_new_type(op.result, tuple_type(f.type for f in op.fields))
                fields = tuple(value for f in op.fields if (value := self._array(f)) is not None)
                if len(fields) == len(op.fields):
                    self.known[op.result] = fields
            case TupleGetItemOp():
                self._tuple_get_item(op)
            case OperatorOp():
                self._operator(op)
            case _:
                pass

    def _array(self, value: SSAValue) -> Array | None:
        """The value of a tensor, where it is known."""
        known = self.known.get(value)
        return None if isinstance(known, tuple) else known

    def _tuple_get_item(self, op: TupleGetItemOp) -> None:
        type, index = op.tuple_value.type, op.index.value.data
        if is_open(op.result.type) and isinstance(type, TupleType):
            Rewriter.replace_value_with_new_type(op.result, type.types.data[index])
        known = self.known.get(op.tuple_value)
        if isinstance(known, tuple):
            self.known[op.result] = known[index]

    def _operator(self, op: OperatorOp) -> None:
        if op.name == "relay.memory.alloc_tensor" and self._is_within(op):
            type = cast("TensorType[Attribute]", op.result.type)
            given = {"shape": list(type.get_shape()), "dtype": type_to_dtype(type.element_type)}
            self._replace_memory(op, operator_class(all_operators()["zeros"])([], given, type))
            return
        if op.name == "relay.memory.kill":
            self._replace_memory(op, TupleOp([]))
            return
        if op.name in self.rules.rules.by_root:
            static = self._made_static(op)
            if isinstance(static, ConstantOp):
                self.visit(static)
                return
            op = static
        if is_open(op.results[0].type):
            infer_result(op)
        self._evaluate(op)

    def _made_static(self, op: OperatorOp) -> OperatorOp | ConstantOp:
        """Applies the first rule that matches `op`; returns the op that computes its value from now on."""
        from ....dialects.rule.knowledge import knowing

        use = op.results[0].first_use
        if use is None:
            return op
        sources = [value.owner for value in operands_of(op) if isinstance(value.owner, Operation)]
        try:
            with knowing(elements=self.known):
                changed = self.rules.visit(op)
        except MirError as error:
            # The program's fault, not the rule's: the error inside is at the operator.
            raise error.__cause__ or error from None
        if not changed:
            return op
        self.changed = True
        for source in sources:
            erase_unused(source)
        return cast("OperatorOp | ConstantOp", operands_of(use.operation)[use.index].owner)

    def _is_within(self, op: OperatorOp) -> bool:
        """Returns whether a tensor is known to be within its storage."""
        storage, offset, shape = op.args[0], self._array(op.args[1]), self._array(op.args[2])
        while isinstance(storage.owner, LetOp):
            storage = storage.owner.value
        taken = storage.owner
        if not isinstance(taken, OperatorOp) or taken.OPERATOR.name != "memory.alloc_storage":
            return False
        size, type = self._array(taken.args[0]), op.result.type
        if size is None or offset is None or shape is None or not isinstance(type, TensorType) or is_open(type):
            return False
        length = numpy_dtype(type_to_dtype(type.element_type)).itemsize * prod(type.get_shape())
        return shape.tolist() == list(type.get_shape()) and 0 <= int(offset) <= int(size) - length

    def _replace_memory(self, op: OperatorOp, by: OperatorOp | TupleOp) -> None:
        by.location = op.location
        by.result.name_hint = op.result.name_hint
        insert_op_before(by, op)
        op.result.replace_all_uses_with(by.result)
        erase_unused(op)
        _erase_memory(op)
        self.changed = True

    def _evaluate(self, op: OperatorOp) -> None:
        """Notes the op's value where it follows from what is known."""
        type = op.results[0].type
        if is_open(type) or _size(type) > MOST_ELEMENTS:
            return
        operator = op.OPERATOR
        if operator.name in ("shape_of", "ndarray_size"):
            source = op.args[0].type
            if not isinstance(source, TensorType) or is_open(source):
                return
            import numpy as np

            # Only the shape counts: no memory is taken for the elements.
            self.known[op.result] = operator.numpy(op.attrs(), np.broadcast_to(np.zeros(()), source.get_shape()))  # pyright: ignore[reportCallIssue]
        elif not operator.stateful and all(arg in self.known for arg in op.operands):
            value = evaluate_operator(op, [self.known[arg] for arg in op.operands])
            if value is not None:
                self.known[op.result] = value


def _erase_memory(op: Operation) -> None:
    """Erases an op of explicit memory whose result nothing uses, and the memory that only it used."""
    while not op.results[0].first_use and (isinstance(op, LetOp) or _is_memory(op)):
        operands = [value.owner for value in op.operands if isinstance(value.owner, Operation)]
        erase_op(op)
        for owner in operands:
            erase_unused(owner)
        if not operands or operands[0].parent is None:
            return
        op = operands[0]


def _is_memory(op: Operation) -> bool:
    return isinstance(op, OperatorOp) and op.OPERATOR.name.startswith("memory.")


def _size(type: Attribute) -> int:
    """Counts the elements of the tensors of a type; more than are evaluated if a part is not a tensor."""
    parts = type.types.data if isinstance(type, TupleType) else [type]
    return sum(prod(part.get_shape()) if isinstance(part, TensorType) else MOST_ELEMENTS + 1 for part in parts)
