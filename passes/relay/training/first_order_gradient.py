"""`first-order-gradient`: makes each function also return the gradients of its parameters.

    def @f(%x: X, %y: Y) -> R   ->   def @f(%x: X, %y: Y) -> (R, (X, Y))

As TVM's FirstOrderGradient, by reverse-mode differentiation. Every value is bound, with an accumulator of zeros beside it; after the
result, whose gradient is ones, the operators are visited from last to first, and each adds its share (`gradient_of_operator`) to the
accumulators of its arguments. See Griewank and Walther, "Evaluating Derivatives", 2008, section 3.2. Also as in TVM, an addition to one
field of a tuple rewrites the whole tuple, except for wide tuples, see `_Sum`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp, TensorType, TupleType
from xdsl.ir import Attribute, Operation, OpResult, SSAValue
from xdsl.passes import ModulePass

from ....dialects.relay import ir
from ....dialects.relay.emit import Emitter
from ....dialects.relay.gradient import Backward, UnknownSize
from ....dialects.relay.operator import OperatorOp
from ....dialects.relay.text import type_text
from ....dialects.tir.types import type_to_dtype
from ....support.diagnostics import error_at
from ...common.dce import erase_dead_ops
from ..common.function_attributes import is_primitive
from ..common.purity import CallEffects
from ..common.rewriting import erase_lets, functions_of, place_leaves, replace_values
from ..functional.infer_type import ensure_types
from .written_gradient import gradient_of_operator

_DIFFERENTIATED = (OperatorOp, ir.ConstantOp, ir.LetOp, ir.TupleOp, ir.TupleGetItemOp)


@dataclass(frozen=True)
class FirstOrderGradient(ModulePass):
    """Make each function return its result and the gradients of its parameters."""

    name = "first-order-gradient"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        ensure_types(op)
        erase_dead_ops(op, CallEffects)
        functions = [function for function in functions_of(op).values() if not is_primitive(function)]
        for function in functions:
            _check(function)
        for function in functions:
            _Differentiation(function).run()


def _check(function: ir.FuncOp) -> None:
    """Refuses a function of anything but operators and tuples."""
    needed = _needed(function)
    for op in function.body.block.ops:
        if op.parent is None or isinstance(op, ir.ReturnOp):
            continue
        if not isinstance(op, _DIFFERENTIATED):
            raise error_at(
                op,
                f"first-order-gradient takes functions of operators and tuples only, not of '{op.name}'",
                "inline, partial-evaluate or to-graph-normal-form may take it away",
            )
        if op in needed and isinstance(op, OperatorOp) and gradient_of_operator(op.OPERATOR) is None:
            from ....dialects.relay.operators.common.gradients import why_not

            note = "the result depends on it; docs/operators.md lists the operators that have one"
            why = why_not(op.OPERATOR.name)
            raise error_at(op, f"{op.OPERATOR.name} has no gradient" + (f": {why}" if why else ""), note)
    for value in (*function.params, *(result for op in needed for result in op.results)):
        if not _is_data(value.type):
            raise error_at(value, f"only tensors and tuples of them have gradients, not {type_text(value.type)}")


def _is_data(type: Attribute) -> bool:
    pending = [type]
    while pending:
        part = pending.pop()
        if isinstance(part, TupleType):
            pending += part.types.data
        elif not isinstance(part, TensorType):
            return False
    return True


def _needed(function: ir.FuncOp) -> set[Operation]:
    """The ops that the result depends on."""
    end = function.body.block.last_op
    assert end is not None
    needed: set[Operation] = set()
    pending = list(end.operands)
    while pending:
        value = pending.pop()
        if isinstance(value, OpResult) and value.op not in needed:
            needed.add(value.op)
            pending += value.op.operands
    return needed


_WIDE = 16
"""Tuples of more parts, parts of parts included, have their fields summed apart: n fields used one by one would else make n² ops."""


def _is_wide(type: Attribute) -> bool:
    pending, parts = [type], 0
    while pending and parts <= _WIDE:
        part = pending.pop()
        if isinstance(part, TupleType):
            if len(part.types) > _WIDE:
                return True
            pending += part.types.data
            parts += len(part.types)
    return parts > _WIDE


class _Sum:
    """The gradient of one value as far as it is known.

    A wide tuple's fields are summed on their own once one of them is asked for; the tuple is rebuilt where all of it is read.
    """

    def __init__(self, whole: SSAValue):
        self.whole = whole
        self._fields: dict[int, _Sum] = {}
        self._in_whole: dict[int, SSAValue] = {}

    def field(self, index: int, emitter: Emitter) -> _Sum:
        """The gradient of a tuple's field, which counts for the tuple."""
        if index not in self._fields:
            value = emitter.field(self.whole, index)
            self._fields[index], self._in_whole[index] = _Sum(value), value
        return self._fields[index]

    def add_to_field(self, index: int, share: SSAValue, names: _Names, emitter: Emitter) -> None:
        """Adds a gradient of one field of a tuple."""
        self.field(index, emitter).add(share, names, emitter)
        if not _is_wide(self.whole.type):
            self.read(names, emitter)
            del self._fields[index], self._in_whole[index]

    def read(self, names: _Names, emitter: Emitter) -> SSAValue:
        """The sum."""
        fields = {index: field.read(names, emitter) for index, field in self._fields.items()}
        if fields != self._in_whole:
            values = [fields.get(i) or emitter.field(self.whole, i) for i in range(_width(self.whole))]
            self.whole = names.let(emitter.tuple(values), emitter)
            self._in_whole = fields
        return self.whole

    def add(self, share: SSAValue, names: _Names, emitter: Emitter) -> None:
        """Adds a gradient of the whole value."""
        if not self._fields:
            self.whole = names.let(_sum(self.whole, share, emitter), emitter)
            return
        for index in range(_width(share)):
            self.field(index, emitter).add(emitter.field(share, index), names, emitter)


def _width(value: SSAValue) -> int:
    assert isinstance(value.type, TupleType)
    return len(value.type.types.data)


def _sum(a: SSAValue, b: SSAValue, emitter: Emitter) -> SSAValue:
    if isinstance(a.type, TensorType) and isinstance(b.type, TensorType):
        if a.type.element_type != b.type.element_type:
            # An operator may return another type than it takes: dense layers with out_dtype, and full_like.
            b = emitter.call("cast", b, dtype=type_to_dtype(a.type.element_type))
        return emitter.call("add", a, b)
    return emitter.tuple([_sum(emitter.field(a, i), emitter.field(b, i), emitter) for i in range(_width(a))])


class _Names:
    """Names for values, each another."""

    def __init__(self) -> None:
        self._numbers = count()

    def let(self, value: SSAValue, emitter: Emitter) -> SSAValue:
        """The value under the next name."""
        return emitter.let(f"x_{next(self._numbers)}", value)


class _Differentiation:
    """One function's forward part, whose values are bound, and the backward part after it."""

    def __init__(self, function: ir.FuncOp):
        self.function = function
        self.body = function.body.block
        self.gradients: dict[SSAValue, _Sum] = {}
        self.bound: dict[SSAValue, SSAValue] = {}
        self._lets: set[Operation] = set()
        self._names = _Names()

    def run(self) -> None:
        """Rewrites the function."""
        erase_lets(self.function, [op for op in self.body.ops if isinstance(op, ir.LetOp)])
        needed = _needed(self.function)
        ops = [op for op in self.body.ops if op in needed]
        end = self.body.last_op
        first = self.body.first_op
        assert isinstance(end, ir.ReturnOp) and first is not None
        for param in self.function.params:
            self._bind(param, Emitter(first, [self.function]))
        for op in ops:
            behind = op.next_op
            assert behind is not None
            self._bind(op.results[0], Emitter(behind, [op]))
        replace_values(self.function, self.bound, keep=self._lets)
        emitter = Emitter(end)
        result = end.value
        self._gradient(result, emitter).whole = self._filled("ones", result, emitter)
        for op in reversed(ops):
            emitter.location = op.location
            self._backward(op, emitter)
        emitter.location = end.location
        gradients = [self.gradients[self.bound[param]].read(self._names, emitter) for param in self.function.params]
        both = emitter.tuple([result, emitter.tuple(gradients)])
        end.operands[0] = both
        self.function.properties["ret_type"] = both.type
        for op in list(self.body.ops):
            place_leaves(op)

    def _bind(self, value: SSAValue, emitter: Emitter) -> None:
        """A name for a value, and an accumulator for its gradient, unless that of a tuple around it serves."""
        name = self._names.let(value, emitter)
        self._lets.add(name.owner)  # type: ignore[arg-type]
        self.bound[value] = name
        if not _is_summed_around(value):
            self.gradients[name] = _Sum(self._names.let(self._filled("zeros", name, emitter), emitter))

    def _gradient(self, name: SSAValue, emitter: Emitter) -> _Sum:
        """The gradient of what is bound to a name."""
        found = self.gradients.get(name)
        if found is None:
            field = cast("ir.LetOp", name.owner).value.owner
            assert isinstance(field, ir.TupleGetItemOp)
            found = self._gradient(field.tuple_value, emitter).field(field.index.value.data, emitter)
            self.gradients[name] = found
        return found

    def _filled(self, fill: str, value: SSAValue, emitter: Emitter) -> SSAValue:
        """Zeros or ones in the form of a value."""
        return (
            self._fields(fill, value, emitter)
            if isinstance(value.type, TupleType)
            else emitter.call(f"{fill}_like", value)
        )

    def _fields(self, fill: str, value: SSAValue, emitter: Emitter) -> SSAValue:
        assert isinstance(value.type, TupleType)
        fields: list[SSAValue] = []
        for index, type in enumerate(value.type.types.data):
            if isinstance(type, TensorType) and DYNAMIC_INDEX not in type.get_shape():
                dtype = type_to_dtype(type.element_type)
                fields.append(emitter.call(fill, shape=list(type.get_shape()), dtype=dtype))
            else:
                fields.append(self._filled(fill, emitter.field(value, index), emitter))
        return emitter.tuple(fields)

    def _backward(self, op: Operation, emitter: Emitter) -> None:
        """Adds to the gradients of an op's arguments what its own gradient makes of them."""
        if _is_summed_around(op.results[0]):
            return
        gradient = self.gradients[self.bound[op.results[0]]].read(self._names, emitter)
        match op:
            case OperatorOp():
                rule = gradient_of_operator(op.OPERATOR)
                assert rule is not None  # As checked.
                if op.args:
                    use = Backward(op, emitter, op.args, gradient)
                    try:
                        terms = rule(use)
                    except UnknownSize:
                        raise use.refuse(
                            "a size that it depends on is `?`", "give the parameters their shapes"
                        ) from None
                    for arg, term in zip(op.args, terms, strict=True):
                        self._add(arg, term.value, emitter)
            case ir.TupleOp():
                for index, field in enumerate(op.fields):
                    self._add(field, emitter.field(gradient, index), emitter)
            case ir.TupleGetItemOp():
                around = self._gradient(op.tuple_value, emitter)
                around.add_to_field(op.index.value.data, gradient, self._names, emitter)
            case _:
                pass

    def _add(self, value: SSAValue, share: SSAValue, emitter: Emitter) -> None:
        self._gradient(value, emitter).add(share, self._names, emitter)


def _is_summed_around(value: SSAValue) -> bool:
    """Returns whether the value is a tuple that is a field of a wide one, which then holds its gradient."""
    field = value.owner
    return (
        isinstance(value.type, TupleType) and isinstance(field, ir.TupleGetItemOp) and _is_wide(field.tuple_value.type)
    )
