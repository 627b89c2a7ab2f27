"""Algebraic data types of a module: constructors' tags, and their fields for given type arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import ModuleOp, TupleType
from xdsl.ir import Attribute

from ...dialects.relay.ir import TypeDataOp
from ...dialects.relay.types import AdtType, FuncType, RefType, TypeVarType


def substitute(type: Attribute, types: Mapping[str, Attribute]) -> Attribute:
    """The type with type variables replaced by name."""
    match type:
        case TypeVarType():
            return types.get(type.var_name.data, type)
        case TupleType():
            return TupleType([substitute(t, types) for t in type.types.data])
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


class DataTypes:
    """The data types that a module declares."""

    def __init__(self, module: ModuleOp):
        self._types = {op.sym_name.data: op for op in module.ops if isinstance(op, TypeDataOp)}
        self._tags = {
            (name, constructor): tag
            for name, op in self._types.items()
            for tag, constructor in enumerate(op.constructors())
        }

    def tag(self, type_name: str, constructor: str) -> int:
        """The constructor's number among those of its type."""
        return self._tags[type_name, constructor]

    def fields(self, type: AdtType, constructor: str) -> Sequence[Attribute]:
        """The types of the constructor's fields in a value of this type."""
        declaration = self._types[type.type_name.data]
        names = [p.data for p in declaration.type_params.data]
        arguments = dict(zip(names, type.arguments.data, strict=True))
        return [substitute(field, arguments) for field in declaration.constructors()[constructor]]
