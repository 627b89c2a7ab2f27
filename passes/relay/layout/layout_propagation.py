"""Change of operators' layouts and propagation of the new ones.

Shared by convert-layout and alter-op-layout.

As TVM's LayoutRewriter: from front to back, each value has a layout in the source program and one in the rewritten program.
An operator with a layout rule takes its arguments as they come and adapts its attributes; arguments that it cannot
take are transformed in front of it, once for each block; so a transform is put only where a chain of operators begins and
ends. Every other op, and whatever leaves its block, gets values in the source's layouts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ....dialects.relay import ir
from ....dialects.relay.emit import Emitter
from ....dialects.relay.infer.result import infer_result
from ....dialects.relay.layouts import SCALAR, Layouts, LayoutUse, expanded, is_transform, layout_rule_of
from ....dialects.relay.operator import AttrValue, Operator, OperatorOp, get_operator, operator_class
from ....dialects.relay.operators.common.layout_strings import Layout
from ....dialects.relay.types import TupleType, tuple_of
from ....support.edit import erase_op, insert_op_before, set_type
from ....support.walk import walk_ops
from ..common.rewriting import place_leaves, replace
from ..functional.infer_type import ensure_types


@dataclass(frozen=True)
class Known:
    """A tensor's layout and type as they were written, and the layout in which it comes now."""

    old: Layout
    new: Layout
    type: Attribute


State: TypeAlias = "Known | list[State | None]"
"""What is known of a value; of a tuple, what is known of its fields."""


@dataclass(frozen=True)
class Change:
    """The new form of an operator: another operator on the same arguments, or other attributes."""

    attrs: dict[str, AttrValue]
    operator: str | None = None


@dataclass
class _Argument:
    """A tensor among an operator's arguments, by itself or in a tuple."""

    value: SSAValue
    known: Known | None


class LayoutRewriter(ABC):
    """Rewrites a module. One object serves one module."""

    def __init__(self) -> None:
        self.state: dict[SSAValue, State] = {}
        self.made: dict[tuple[SSAValue, object, Block | None], SSAValue] = {}

    @abstractmethod
    def change(self, op: OperatorOp) -> Change | None:
        """Returns the new form of an operator; None to leave it.

        Its arguments' types may be those of new layouts; `type_of` has those of the source program.
        """

    def run(self, module: ModuleOp) -> None:
        """Rewrites every function of a module, which it types."""
        ensure_types(module)
        ops = list(walk_ops(module))
        for op in ops:
            match op:
                case OperatorOp():
                    self._operator(op)
                case ir.TupleOp():
                    self._tuple(op)
                case ir.TupleGetItemOp():
                    self._field(op)
                case _:
                    self._as_written(op)
        for op in reversed(ops):
            if isinstance(op, ir.TupleOp | ir.TupleGetItemOp) and op.result in self.state and not op.result.first_use:
                erase_op(op)

    def type_of(self, value: SSAValue) -> Attribute:
        """A tensor's type as it was written."""
        known = self.state.get(value)
        return known.type if isinstance(known, Known) else value.type

    # One op ------------------------------------------------------------------------------------------------------------

    def _operator(self, op: OperatorOp) -> None:
        change = self.change(op)
        flat = self._arguments(op)
        if layout_rule_of(op.OPERATOR) is None or flat is None or not self._rewrite(op, flat, change):
            self._as_written(op)

    def _rewrite(self, op: OperatorOp, flat: Sequence[Sequence[_Argument]], change: Change | None) -> bool:
        """Rewrites an operator in the layouts of its arguments.

        Returns False, with nothing done, if that cannot be.
        """
        rule = layout_rule_of(op.OPERATOR)
        args = [arg for group in flat for arg in group]
        counts = [len(group) for group in flat]
        types = [self.type_of(arg.value) if arg.known is None else arg.known.type for arg in args]
        assert rule is not None
        before = rule(LayoutUse(op.attrs(), counts, types, [arg.known and arg.known.old for arg in args]))
        if before is None or not _fits(before, op.result.type):
            return False
        for index, (arg, layout) in enumerate(zip(args, before.inputs, strict=True)):
            if arg.known is not None and arg.known.old != layout:
                # Its maker called its axes otherwise: nothing follows from how it comes.
                written = arg.value if arg.known.old == arg.known.new else self._realized(arg.value, arg.known, op)
                args[index] = _Argument(written, None)
        comes = [
            layout if arg.known is None else arg.known.new for arg, layout in zip(args, before.inputs, strict=True)
        ]
        operator, given = _changed(op, change)
        rule = layout_rule_of(operator)
        assert rule is not None
        after = rule(LayoutUse(operator.attrs(given), counts, types, before.inputs, comes))
        fits = after is not None and all(
            _can_come(arg.value, now, wanted) for arg, now, wanted in zip(args, comes, after.inputs, strict=True)
        )
        if after is None or not fits:
            return self._rewrite(op, flat, None) if change is not None else False
        moved = [
            self._transformed(arg.value, now, wanted, op)
            for arg, now, wanted in zip(args, comes, after.inputs, strict=True)
        ]
        operands = _operands(op, flat, moved)
        old_type = op.result.type
        altered = change is not None or any(arg.known is not None and _is_altered(arg.known) for arg in args)
        if altered or any(a is not b for a, b in zip(operands, op.args, strict=True)):
            if change is None and not after.attrs:
                for index, operand in enumerate(operands):
                    if op.operands[index] is not operand:
                        op.operands[index] = operand
                infer_result(op)
            else:
                made = operator_class(operator)(operands, {**given, **after.attrs})
                made.location = op.location
                infer_result(made)
                insert_op_before(made, op)
                replace(op, made.result)
                op = made
            place_leaves(op)
        types = old_type.types.data if isinstance(old_type, TupleType) else [old_type]
        known = [Known(*it) for it in zip(before.outputs, after.outputs, types, strict=True)]
        self.state[op.result] = known[0] if old_type is types[0] else [*known]
        return True

    def _arguments(self, op: OperatorOp) -> list[list[_Argument]] | None:
        """The operator's arguments, tuples as their fields; None where a tuple's fields are not known."""
        result: list[list[_Argument]] = []
        for value in op.args:
            known = self.state.get(value)
            if not isinstance(value.type, TupleType):
                result.append([_Argument(value, known if isinstance(known, Known) else None)])
                continue
            if not isinstance(known, list):
                return None
            group: list[_Argument] = []
            for index, state in enumerate(known):
                if isinstance(state, list):
                    return None
                group.append(_Argument(self._get_field(value, index, op), state))
            result.append(group)
        return result

    def _tuple(self, op: ir.TupleOp) -> None:
        self.state[op.result] = [self.state.get(field) for field in op.fields]
        set_type(op.result, tuple_of([field.type for field in op.fields]))

    def _field(self, op: ir.TupleGetItemOp) -> None:
        known = self.state.get(op.tuple_value)
        if not isinstance(known, list) or not isinstance(op.tuple_value.type, TupleType):
            return
        index = op.index.value.data
        set_type(op.result, op.tuple_value.type.types.data[index])
        state = known[index]
        if state is not None:
            self.state[op.result] = state

    def _as_written(self, op: Operation) -> None:
        """Gives an op its operands as they were written."""
        for index, value in enumerate(op.operands):
            known = self.state.get(value)
            if known is not None and _is_altered(known):
                op.operands[index] = self._realized(value, known, op)
                place_leaves(op)

    # Values ------------------------------------------------------------------------------------------------------------

    def _realized(self, value: SSAValue, known: State, user: Operation) -> SSAValue:
        """A value as it was written, in front of an op."""
        if isinstance(known, Known):
            return self._transformed(value, known.new, known.old, user)
        key = (value, None, user.parent)
        if key not in self.made:
            fields = [self._get_field(value, index, user) for index in range(len(known))]
            written = [
                self._realized(field, state, user) if state is not None and _is_altered(state) else field
                for field, state in zip(fields, known, strict=True)
            ]
            self.made[key] = Emitter(user, _sources(value, user)).tuple(written)
        return self.made[key]

    def _get_field(self, value: SSAValue, index: int, user: Operation) -> SSAValue:
        """A field of a tuple, in front of an op."""
        if isinstance(value.owner, ir.TupleOp):
            return value.owner.operands[index]
        key = (value, index, user.parent)
        if key not in self.made:
            self.made[key] = Emitter(user, _sources(value, user)).field(value, index)
        return self.made[key]

    def _transformed(self, value: SSAValue, source: Layout, target: Layout, user: Operation) -> SSAValue:
        """A tensor in another layout, in front of an op; axes that it has not are put in front."""
        if source == target:
            return value
        key = (value, (source.text, target.text), user.parent)
        if key not in self.made:
            make = Emitter(user, _sources(value, user))
            result = value
            if len(source.axes) < len(target.axes):
                wider = expanded(source, target)
                assert wider is not None
                result = make.call("expand_dims", value, axis=0, num_newaxis=len(target.axes) - len(source.axes))
                source = wider
            if source != target:
                result = make.call("layout_transform", result, src_layout=source.text, dst_layout=target.text)
            self.made[key] = result
        return self.made[key]


def _changed(op: OperatorOp, change: Change | None) -> tuple[Operator, dict[str, AttrValue]]:
    """The operator and the attributes that are to be written."""
    if change is None:
        return op.OPERATOR, op.given()
    operator = op.OPERATOR if change.operator is None else get_operator(change.operator)
    assert operator is not None
    return operator, {**op.given(), **change.attrs}


def _operands(op: OperatorOp, flat: Sequence[Sequence[_Argument]], values: Sequence[SSAValue]) -> list[SSAValue]:
    """An operator's operands of these tensors, in tuples where it takes tuples."""
    operands: list[SSAValue] = []
    rest = iter(values)
    for operand, group in zip(op.args, flat, strict=True):
        fields = [next(rest) for _ in group]
        if not isinstance(operand.type, TupleType):
            operands.append(fields[0])
        elif all(value is arg.value for value, arg in zip(fields, group, strict=True)):
            operands.append(operand)
        else:
            operands.append(Emitter(op, [op]).tuple(fields))
    return operands


def _is_altered(state: State) -> bool:
    if isinstance(state, Known):
        return state.old != state.new
    return any(field is not None and _is_altered(field) for field in state)


def _fits(layouts: Layouts, result: Attribute) -> bool:
    """Returns whether the layouts of the results have the results' dimensions."""
    types = result.types.data if isinstance(result, TupleType) else [result]
    return len(types) == len(layouts.outputs) and all(
        isinstance(type, TensorType) and len(type.get_shape()) == len(layout.dims)
        for type, layout in zip(types, layouts.outputs, strict=True)
    )


def _can_come(value: SSAValue, now: Layout, wanted: Layout) -> bool:
    """Returns whether a tensor in the layout `now` can be brought into the layout `wanted`."""
    if now == wanted:
        return True
    if SCALAR in (now, wanted) or not isinstance(value.type, TensorType):
        return False
    return is_transform(now, wanted, value.type.get_shape())


def _sources(value: SSAValue, user: Operation) -> list[Operation]:
    """Returns the source of an inserted op's location: the value's producer, or the op that needs it."""
    return [value.owner] if isinstance(value.owner, Operation) else [user]
