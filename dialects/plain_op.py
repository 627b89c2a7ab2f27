"""Defines base classes of frequent ops, whose constructors are faster than IRDL's.

They do not try every form in which `IRDLOperation` accepts an argument.
"""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Self

from xdsl.dialects.builtin import UNKNOWN_LOC, LocationAttr
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, Region, SSAValue
from xdsl.irdl import AttrSizedOperandSegments, IRDLOperation, OptionalDef

from ..support.edit import init_op
from .interned import i32_array

Values = SSAValue | Operation | Sequence[SSAValue | Operation]
SEGMENTS = AttrSizedOperandSegments.attribute_name


class OpClass(ABCMeta):
    """The metaclass of ops, without `ABCMeta`'s virtual subclasses, which would make `isinstance` slow."""

    __instancecheck__ = type.__instancecheck__


def value_of(value: SSAValue | Operation) -> SSAValue:
    """Returns a value, or the result of an op with one: a faster `SSAValue.get`."""
    if type(value) is OpResult or type(value) is BlockArgument:
        return value
    return SSAValue.get(value)


class PlainOp(IRDLOperation, metaclass=OpClass):
    """An op with a faster constructor than `IRDLOperation`'s, for the arguments that are passed here.

    For each operand's definition: a value, an op of one result, or a list of these. For each result and region: one, or a list of the
    results. Properties that are None are left out. The verifier checks their numbers.
    """

    def __init__(
        self,
        *,
        operands: Sequence[Values] = (),
        result_types: Sequence[Attribute | Sequence[Attribute]] = (),
        properties: Mapping[str, Attribute | None] | None = None,
        attributes: Mapping[str, Attribute] | None = None,
        successors: Sequence[Block] = (),
        regions: Sequence[Region] = (),
    ):
        values: list[SSAValue] = []
        sizes: list[int] = []
        for operand in operands:
            kind = type(operand)
            if kind is OpResult or kind is BlockArgument:
                values.append(operand)  # pyright: ignore[reportArgumentType]
                sizes.append(1)
            elif kind is list or kind is tuple:
                before = len(values)
                values += map(value_of, operand)  # pyright: ignore[reportArgumentType, reportUnknownArgumentType]
                sizes.append(len(values) - before)
            elif isinstance(operand, Operation):
                (value,) = operand.results
                values.append(value)
                sizes.append(1)
            else:
                several = (operand,) if isinstance(operand, SSAValue) else operand
                values += map(value_of, several)
                sizes.append(len(several))
        types: list[Attribute] = []
        for result_type in result_types:
            if isinstance(result_type, (list, tuple)):
                types += result_type
            else:
                types.append(result_type)  # pyright: ignore[reportArgumentType]
        known = {} if properties is None else {key: value for key, value in properties.items() if value is not None}
        has_segments, defaults = _given_by_class(type(self))
        if has_segments:
            known[SEGMENTS] = i32_array(*sizes)
        for key, value in defaults:
            known.setdefault(key, value)
        init_op(self, values, types, known, UNKNOWN_LOC)
        if attributes:
            self.attributes.update(attributes)
        if successors:
            self.successors = successors
        for region in regions:
            self.add_region(region)

    @classmethod
    def create(
        cls,
        *,
        operands: Sequence[SSAValue] = (),
        result_types: Sequence[Attribute] = (),
        properties: Mapping[str, Attribute] = {},
        attributes: Mapping[str, Attribute] = {},
        location: LocationAttr | None = None,
        successors: Sequence[Block] = (),
        regions: Sequence[Region] = (),
    ) -> Self:
        """Creates an op of these parts, as `Operation.create`, with default values of missing properties."""
        op = cls.__new__(cls)
        known = {**properties}
        for key, value in _given_by_class(cls)[1]:
            known.setdefault(key, value)
        init_op(op, operands, result_types, known, UNKNOWN_LOC if location is None else location)
        if attributes:
            op.attributes.update(attributes)
        if successors:
            op.successors = successors
        for region in regions:
            op.add_region(region)
        return op


@cache
def _given_by_class(op: type[IRDLOperation]) -> tuple[bool, list[tuple[str, Attribute]]]:
    """Returns whether an op has operand segments, and the defaults of its properties."""
    definition = op.get_irdl_definition()
    defaults = [
        (key, each.default_value)
        for key, each in definition.properties.items()
        if not isinstance(each, OptionalDef) and each.default_value is not None
    ]
    return any(isinstance(option, AttrSizedOperandSegments) for option in definition.options), defaults
