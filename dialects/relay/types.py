"""Defines Relay's types: builtin tensors and tuples, and functions, data types and references.

A tensor's dimension that is known only at run time (`?`, TVM's Any) is builtin's dynamic dimension. A scalar (`float32`)
is a tensor of rank 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, StringAttr, TensorType, TupleType
from xdsl.ir import Attribute, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition, param_def

from ...support.diagnostics import error_at
from ...support.memoize import memoized
from ..extents import why_too_large


@irdl_attr_definition
class UnknownType(ParametrizedAttribute, TypeAttribute):
    """The type of a value that the text does not type and that inference has not reached."""

    name = "relay.unknown"


@irdl_attr_definition
class FuncType(ParametrizedAttribute, TypeAttribute):
    """`fn [A, B](A, Tensor[(2), float32]) -> B`: a function type, generic over `type_params` (names)."""

    name = "relay.func_type"
    type_params: ArrayAttr[StringAttr] = param_def()
    inputs: ArrayAttr[Attribute] = param_def()
    output: Attribute = param_def()

    @staticmethod
    def get(inputs: Sequence[Attribute], output: Attribute, type_params: Sequence[str] = ()) -> FuncType:
        return FuncType(ArrayAttr([StringAttr(p) for p in type_params]), ArrayAttr(list(inputs)), output)


@irdl_attr_definition
class TypeVarType(ParametrizedAttribute, TypeAttribute):
    """A type parameter, `A` in `def @id[A](%x: A) -> A`."""

    name = "relay.type_var"
    var_name: StringAttr = param_def()

    @staticmethod
    def get(name: str) -> TypeVarType:
        return TypeVarType(StringAttr(name))


@irdl_attr_definition
class AdtType(ParametrizedAttribute, TypeAttribute):
    """An algebraic data type, `List[int32]`, declared by a `relay.type_data` of the module."""

    name = "relay.adt"
    type_name: StringAttr = param_def()
    arguments: ArrayAttr[Attribute] = param_def()

    @staticmethod
    def get(name: str, arguments: Sequence[Attribute] = ()) -> AdtType:
        return AdtType(StringAttr(name), ArrayAttr(list(arguments)))


@irdl_attr_definition
class RefType(ParametrizedAttribute, TypeAttribute):
    """`ref(T)`: a mutable cell."""

    name = "relay.ref_type"
    value_type: Attribute = param_def()


MAX_DIMENSION = 1 << 62
"""An exclusive upper bound of dimensions."""

UNKNOWN = UnknownType()


@memoized
def why_no_tensor(type: Attribute) -> str | None:
    """Returns why a tensor of this type, or of a tuple's field, cannot be in memory; None where it can."""
    if isinstance(type, TupleType):
        return next((reason for field in type.types.data if (reason := why_no_tensor(field)) is not None), None)
    if not isinstance(type, TensorType):
        return None
    shape = type.get_shape()
    if shape and min(shape) < 0:
        negative = next((size for size in shape if DYNAMIC_INDEX < size < 0), None)
        return None if negative is None else f"has the negative size {negative}"
    return why_too_large(shape, type.element_type)


def tensor_leaves(type: Attribute) -> list[TensorType[Attribute]]:
    """Returns the tensors of a type, depth first."""
    match type:
        case TensorType():
            return [type]
        case TupleType():
            return [leaf for field in type.types.data for leaf in tensor_leaves(field)]
        case _:
            raise error_at(None, f"an operator takes tensors, not {type}")


def tuple_of(fields: Sequence[Attribute]) -> TupleType:
    """Returns the tuple type of these fields.

    The builtin type stores any sequence that it is given, and a list does not hash.
    """
    return TupleType(ArrayAttr(cast("Sequence[TypeAttribute]", fields)))


def substitute(type: Attribute, types: Mapping[str, Attribute]) -> Attribute:
    """Replaces type variables by name: `fn (A) -> A` with A = float32 is `fn (float32) -> float32`."""
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
