"""Emission of ops into a function: where they go, their location, and constants that are made once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, TypeVar, cast

from xdsl.dialects.builtin import (
    UNKNOWN_LOC,
    AnyFloat,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IndexType,
    IntegerType,
    LocationAttr,
    TensorType,
    VectorType,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ..dialects.interned import integer
from ..support.edit import add_op, create_op, insert_op_after, insert_op_before
from ..support.memoize import memoized

OpT = TypeVar("OpT", bound=Operation)


class Emitter:
    """Appends ops to `block`, and constants (of class `CONSTANT`) to the start of the function."""

    CONSTANT: ClassVar[type[Operation]]
    block: Block
    entry: Block
    location: LocationAttr

    def __init__(self) -> None:
        self.location = UNKNOWN_LOC
        self._constants: dict[tuple[Attribute, Attribute], SSAValue] = {}
        self._numbers: dict[tuple[int | str, int], tuple[Attribute, SSAValue]] = {}
        """Constants that were created from numbers: by the number and the identity of the type, with that type."""
        self._last_hoisted: Operation | None = None

    def start_function(self, entry: Block) -> None:
        """Starts a function: ops go to `entry` from now on, and constants to its start."""
        self.entry = self.block = entry
        self._constants, self._numbers = {}, {}
        self._last_hoisted = None

    def append(self, op: OpT) -> OpT:
        """Appends an op to the block, with the location of what is being lowered."""
        op.location = self.location
        if op.regions:
            self.block.add_op(op)
        else:
            add_op(self.block, op)
        return op

    def emit(
        self,
        kind: type[Operation],
        operands: Sequence[SSAValue],
        type_: Attribute,
        properties: Mapping[str, Attribute] | None = None,
    ) -> SSAValue:
        """Returns the result of a new op; `properties` must hold every property that the op requires."""
        op = create_op(kind, operands, (type_,), dict(properties or {}), self.location)
        add_op(self.block, op)
        (result,) = op.results
        return result

    def hoist(self, op: Operation) -> SSAValue:
        """Returns the result of `op`, put in the entry block before anything that is not hoisted."""
        if self._last_hoisted is not None:
            insert_op_after(op, self._last_hoisted)
        elif (first := self.entry.first_op) is not None:
            insert_op_before(op, first)
        else:
            add_op(self.entry, op)
        self._last_hoisted = op
        return op.results[0]

    def first_after_hoisted(self) -> Operation | None:
        """Returns the first op of the entry block that was not hoisted."""
        return self.entry.first_op if self._last_hoisted is None else self._last_hoisted.next_op

    def constant_attr(self, value: Attribute, type_: Attribute) -> SSAValue:
        """Returns the constant `value` of type `type_`, made once per function."""
        known = self._constants.get((value, type_))
        if known is None:
            known = self._constants[value, type_] = self._new_constant(value, type_)
        return known

    def _new_constant(self, value: Attribute, type_: Attribute) -> SSAValue:
        return self.hoist(create_op(self.CONSTANT, (), (type_,), {"value": value}, UNKNOWN_LOC))

    def constant(self, value: int | float, type_: Attribute) -> SSAValue:
        """Returns `value` in every lane of `type_`; an integer is taken modulo the width."""
        # The text of a float tells zeros from each other.
        key = (value if type(value) is int else repr(value), id(type_))
        known = self._numbers.get(key)
        if known is None:
            attribute = _number_attr(type_, value, repr(value))
            known = self._numbers[key] = type_, self.constant_attr(attribute, type_)
        return known[1]


@memoized
def _number_attr(type_: Attribute, value: int | float, text: str) -> Attribute:
    """Returns `value`, which the text tells from other zeros, in every lane of a type."""
    element = type_.element_type if isinstance(type_, VectorType) else type_
    number: int | float
    if isinstance(element, AnyFloat):
        number = float(value)
        scalar: Attribute = FloatAttr(number, element)
    else:
        assert isinstance(element, IntegerType | IndexType)
        number = wrap(int(value), element)
        scalar = integer(number, element)
    return dense(cast("VectorType[Attribute]", type_), [number]) if isinstance(type_, VectorType) else scalar


def dense(
    type_: VectorType[Attribute] | TensorType[Attribute], numbers: Sequence[int | float]
) -> DenseIntOrFPElementsAttr:
    """Returns the constant of these numbers; a single one fills all elements."""
    # from_list is overloaded by element type, which is only known when running.
    return DenseIntOrFPElementsAttr.from_list(cast("VectorType[IntegerType]", type_), cast("Sequence[int]", numbers))


def wrap(value: int, type_: Attribute) -> int:
    """Returns `value` modulo the width of the type, as a signed number; a bool is 0 or 1, as in MLIR."""
    if not isinstance(type_, IntegerType):
        return value
    width = type_.width.data
    value &= (1 << width) - 1
    return value - (1 << width) if width > 1 and value >> (width - 1) else value
