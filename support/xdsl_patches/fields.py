"""Reads named operands, results and regions of mirstack's ops directly; changes no class of xDSL.

xDSL finds an operand through a view of all operands, and where there are segments unpacks their sizes at each read. Passes read
little else: here an operand is taken from the op's tuple, and the places of segments are computed once for all ops of the same sizes.
"""

from __future__ import annotations

from typing import Any, TypeVar

from xdsl.ir import Operation, SSAValue
from xdsl.ir.core import SSAValues
from xdsl.irdl.operations import (
    AttrSizedOperandSegments,
    BeforeVariadicSingleAccessor,
    OptionalAttrAccessor,
    SingleAttrAccessor,
    VariadicAttrAccessor,
    VarIRConstruct,
)

from ..operands import operands_of, places_of
from . import installed, switched_on

Kind = TypeVar("Kind", bound=type[Operation])

WRITTEN_FOR = ("0.74.0",)
"""The versions of xDSL whose accessors these replace."""

_one = tuple[Any, ...].__getitem__


def read_directly(kind: Kind) -> Kind:
    """Makes the fields of a class of ops be read directly, unless patches are left off."""
    if not (switched_on() and installed(WRITTEN_FOR)):
        return kind
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


class _OneOfSegments(SingleAttrAccessor):
    def __get__(self, obj: Operation, objtype: type | None = None) -> SSAValue:
        return _one(operands_of(obj), places_of(obj)[self.idx])


class _Segment(VariadicAttrAccessor):
    def __get__(self, obj: Operation, objtype: type | None = None) -> SSAValues[SSAValue]:
        places = places_of(obj)
        return SSAValues(_one(operands_of(obj), slice(places[self.idx], places[self.idx + 1])))


class _OptionalSegment(OptionalAttrAccessor):
    def __get__(self, obj: Operation, objtype: type | None = None) -> SSAValue | None:
        places = places_of(obj)
        start = places[self.idx]
        return _one(operands_of(obj), start) if places[self.idx + 1] > start else None
