"""Replacing type variables in types."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import TupleType
from xdsl.ir import Attribute

from .types import AdtType, FuncType, RefType, TypeVarType, tuple_of


def substitute(type: Attribute, types: Mapping[str, Attribute]) -> Attribute:
    """The type with type variables replaced by name."""
    match type:
        case TypeVarType():
            return types.get(type.var_name.data, type)
        case TupleType():
            return tuple_of([substitute(t, types) for t in type.types.data])
        case FuncType():
            own = {p.data for p in type.type_params.data}
            outer = {name: t for name, t in types.items() if name not in own}
            inputs = [substitute(t, outer) for t in type.inputs.data]
            return FuncType.get(inputs, substitute(type.output, outer), [p.data for p in type.type_params.data])
        case AdtType():
            return AdtType.get(type.type_name.data, [substitute(t, types) for t in type.arguments.data])
        case RefType():
            return RefType(substitute(type.value_type, types))
        case _:
            return type
