"""The patterns of `relay.match`, as attributes."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, NoneType, StringAttr
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition, param_def


@irdl_attr_definition
class WildcardPattern(ParametrizedAttribute):
    """`_` matches anything."""

    name = "relay.pattern_wildcard"


@irdl_attr_definition
class VarPattern(ParametrizedAttribute):
    """`%x` or `%x: T` matches anything and binds it to the clause's next argument."""

    name = "relay.pattern_var"
    var_name: StringAttr = param_def()
    annotation: Attribute = param_def()

    @staticmethod
    def get(name: str, annotation: Attribute | None = None) -> VarPattern:
        return VarPattern(StringAttr(name), annotation or NoneType())


@irdl_attr_definition
class ConstructorPattern(ParametrizedAttribute):
    """`Cons(p, q)` matches values made by that constructor whose fields match."""

    name = "relay.pattern_constructor"
    type_name: StringAttr = param_def()
    constructor: StringAttr = param_def()
    fields: ArrayAttr[Attribute] = param_def()

    @staticmethod
    def get(type_name: str, constructor: str, fields: Sequence[Attribute]) -> ConstructorPattern:
        return ConstructorPattern(StringAttr(type_name), StringAttr(constructor), ArrayAttr(list(fields)))


@irdl_attr_definition
class TuplePattern(ParametrizedAttribute):
    """`(p, q)` matches tuples field by field."""

    name = "relay.pattern_tuple"
    fields: ArrayAttr[Attribute] = param_def()

    @staticmethod
    def get(fields: Sequence[Attribute]) -> TuplePattern:
        return TuplePattern(ArrayAttr(list(fields)))


def bound_names(pattern: Attribute) -> list[str]:
    """Returns the names that a pattern binds, left to right."""
    names: list[str] = []
    pending = [pattern]
    while pending:
        match pending.pop():
            case VarPattern() as var:
                names.append(var.var_name.data)
            case ConstructorPattern() | TuplePattern() as parent:
                pending += reversed(parent.fields.data)
            case _:
                pass
    return names
