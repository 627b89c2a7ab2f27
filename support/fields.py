"""Named operands, results and regions of ops, read without detours.

xDSL finds an operand through a view of all operands, and where there are segments unpacks their sizes anew at each read. Passes read
little else: here an operand is taken from the op's tuple, and the places of segments are computed once for all ops of the same sizes.
"""

from __future__ import annotations

from itertools import accumulate
from struct import unpack
from typing import Any, TypeVar

from xdsl.dialects.builtin import DenseArrayBase
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.core import SSAValues
from xdsl.irdl.operations import (
    AttrSizedOperandSegments,
    BeforeVariadicSingleAccessor,
    OptionalAttrAccessor,
    SingleAttrAccessor,
    VariadicAttrAccessor,
    VarIRConstruct,
)

from .memoize import memoized

Kind = TypeVar("Kind", bound=type[Operation])

_one = tuple[Any, ...].__getitem__


def operands_of(op: Operation) -> tuple[SSAValue, ...]:
    """The operands of an op as they are now."""
    return op._operands  # pyright: ignore[reportPrivateUsage]


def read_directly(kind: Kind) -> Kind:
    """Has the fields of a class of ops be read directly; what cannot be stays as it is."""
    for name, field in list(vars(kind).items()):
        direct = _direct(field)
        if direct is not None:
            setattr(kind, name, direct)
    return kind


def _direct(field: object) -> object | None:
    if type(field) is BeforeVariadicSingleAccessor:
        kinds = {VarIRConstruct.OPERAND: _Operand, VarIRConstruct.RESULT: _Result, VarIRConstruct.REGION: _Region}
        direct = kinds.get(field.construct)
        return None if direct is None else direct(field.construct, field.idx)
    if not isinstance(field, SingleAttrAccessor | VariadicAttrAccessor | OptionalAttrAccessor):
        return None
    if not isinstance(field.option, AttrSizedOperandSegments) or not field.option.as_property:
        return None
    kinds = {SingleAttrAccessor: _OneOfSegments, VariadicAttrAccessor: _Segment, OptionalAttrAccessor: _OptionalSegment}
    direct = kinds.get(type(field))
    return None if direct is None else direct(field.construct, field.idx, field.option)


class _Operand(BeforeVariadicSingleAccessor):
    def __get__(self, obj: Operation, objtype: type | None = None) -> SSAValue:
        return _one(operands_of(obj), self.idx)


class _Result(BeforeVariadicSingleAccessor):
    def __get__(self, obj: Operation, objtype: type | None = None) -> SSAValue:
        return _one(obj.results, self.idx)


class _Region(BeforeVariadicSingleAccessor):
    def __get__(self, obj: Operation, objtype: type | None = None) -> Any:
        return obj.regions[self.idx]


_SIZES: str = AttrSizedOperandSegments.attribute_name


def _places(op: Operation) -> tuple[int, ...]:
    return _places_of(op.properties[_SIZES])


@memoized
def _places_of(sizes: Attribute) -> tuple[int, ...]:
    """Where the segments of such sizes begin, and the last of them ends."""
    assert isinstance(sizes, DenseArrayBase)
    data = sizes.data.data
    return tuple(accumulate(unpack(f"<{len(data) // 4}i", data), initial=0))


def segment(op: Operation, index: int) -> tuple[SSAValue, ...]:
    """The operands of one segment of an op that has such."""
    places = _places(op)
    return _one(operands_of(op), slice(places[index], places[index + 1]))


class _OneOfSegments(SingleAttrAccessor):
    def __get__(self, obj: Operation, objtype: type | None = None) -> SSAValue:
        return _one(operands_of(obj), _places(obj)[self.idx])


class _Segment(VariadicAttrAccessor):
    def __get__(self, obj: Operation, objtype: type | None = None) -> SSAValues[SSAValue]:
        places = _places(obj)
        return SSAValues(_one(operands_of(obj), slice(places[self.idx], places[self.idx + 1])))


class _OptionalSegment(OptionalAttrAccessor):
    def __get__(self, obj: Operation, objtype: type | None = None) -> SSAValue | None:
        places = _places(obj)
        start = places[self.idx]
        return _one(operands_of(obj), start) if places[self.idx + 1] > start else None
