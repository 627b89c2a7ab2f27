"""Types of Relay in Python, with TVM's names, and their conversion to the dialect's types."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, TypeAlias, TypeGuard, cast

from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.dialects.builtin import TensorType as TensorTypeAttr
from xdsl.dialects.builtin import TupleType as TupleTypeAttr
from xdsl.ir import Attribute

from ...dialects.relay import types as dialect
from ...dialects.relay.text import type_text
from ...dialects.tir.types import dtype_to_type, type_to_dtype
from ...support.diagnostics import Diagnostic, MirTypeError, MirValueError
from ...support.public_names import public_names
from ...support.source_text import characters
from ..ir.node import Node

if TYPE_CHECKING:
    from ...dialects.tir.node.expr import Expr


class Any:
    """A dimension that is known only when the program runs, `?` in the text."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Any)

    def __hash__(self) -> int:
        return hash(Any)

    def __repr__(self) -> str:
        return "?"


Dim: TypeAlias = "int | Any | Expr"
"""A number, one that is known only at run time, or an expression of tir's variables."""


class TypeKind(IntEnum):
    """The kind of a type variable; only types are used."""

    Type = 0
    ShapeVar = 1
    BaseType = 2
    Constraint = 4
    AdtHandle = 5
    TypeData = 6


class Type(Node):
    """A type; equal to one of the same form."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Type) or to_attribute(self) != to_attribute(other):
            return False
        return list(_symbols(self)) == list(_symbols(other))

    def __hash__(self) -> int:
        return hash(to_attribute(self))

    def __repr__(self) -> str:
        # The text has a `?` for each dimension that is not a number, in order.
        first, *rest = type_text(to_attribute(self)).split("?")
        return first + "".join(f"{dim}{part}" for dim, part in zip(_open_dims(self), rest, strict=True))


class TensorType(Type):
    """`TensorType((1, 64), "float32")`. Dimensions are integers, `Any()` or expressions of tir."""

    __slots__ = ("dtype", "shape")

    def __init__(self, shape: Sequence[object], dtype: str = "float32"):
        self.span = None
        self.shape: tuple[Dim, ...] = checked_shape(shape, "relay.TensorType")
        if not isinstance(cast("object", dtype), str):
            raise TypeError(f"dtype is a string such as 'float32', not {dtype!r}")
        self.dtype = dtype
        dtype_to_type(dtype)

    @property
    def concrete_shape(self) -> tuple[int, ...]:
        """The shape, of a type whose dimensions are all known. Raises TypeError for another."""
        if not all(isinstance(dim, int) for dim in self.shape):
            raise TypeError(f"the shape of {self} is not known before the program runs")
        return tuple(cast("int", dim) for dim in self.shape)

    @property
    def numbers(self) -> tuple[int, ...]:
        """The dimensions as the IR has them, -1 for each that is not a number."""
        return tuple(dim if isinstance(dim, int) else DYNAMIC_INDEX for dim in self.shape)


class TupleType(Type):
    """`TupleType([TensorType(()), …])`."""

    __slots__ = ("fields",)

    def __init__(self, fields: Sequence[Type]):
        self.span = None
        self.fields = tuple(fields)


class TypeVar(Type):
    """A type parameter of a function or of a data type; equal only to itself."""

    __slots__ = ("kind", "name_hint")

    def __init__(self, name_hint: str, kind: TypeKind = TypeKind.Type):
        self.span = None
        self.name_hint = characters(name_hint)
        self.kind = kind

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)


def ShapeVar(name: str) -> TypeVar:
    """Returns a type parameter of the kind of shapes."""
    return TypeVar(name, TypeKind.ShapeVar)


class GlobalTypeVar(Type):
    """The name of a data type."""

    __slots__ = ("kind", "name_hint")

    def __init__(self, name_hint: str, kind: TypeKind = TypeKind.AdtHandle):
        self.span = None
        self.name_hint = characters(name_hint)
        self.kind = kind

    def __repr__(self) -> str:
        return self.name_hint

    def __call__(self, *args: Type) -> TypeCall:
        return TypeCall(self, args)


class TypeCall(Type):
    """`TypeCall(List, [A])`: a data type of these arguments."""

    __slots__ = ("args", "func")

    def __init__(self, func: GlobalTypeVar, args: Sequence[Type]):
        self.span = None
        self.func = func
        self.args = tuple(args)


class FuncType(Type):
    """`FuncType([TensorType((2,))], TensorType(()))`: the type of a function."""

    __slots__ = ("arg_types", "ret_type", "type_constraints", "type_params")

    def __init__(
        self,
        arg_types: Sequence[Type],
        ret_type: Type,
        type_params: Sequence[TypeVar] | None = None,
        type_constraints: Sequence[object] | None = None,
    ):
        self.span = None
        self.arg_types = tuple(arg_types)
        self.ret_type = ret_type
        self.type_params = tuple(type_params or ())
        self.type_constraints = tuple(type_constraints or ())


class RefType(Type):
    """The type of a mutable cell."""

    __slots__ = ("value",)

    def __init__(self, value: Type):
        self.span = None
        self.value = value


RelayRefType = RefType


class IncompleteType(Type):
    """A type that is to be found."""

    __slots__ = ("kind",)

    def __init__(self, kind: TypeKind = TypeKind.Type):
        self.span = None
        self.kind = kind


def instantiation(callee: Type | None, args: Sequence[Type | None], result: Type | None) -> tuple[Type, ...]:
    """Returns what a generic function's type parameters are, by the types of arguments and result.

        fn [A](A, List[A]) -> List[A]  of  (int32, List[int32])  →  (int32,)

    Empty where one of them is not known.
    """
    if not isinstance(callee, FuncType) or not callee.type_params or len(callee.arg_types) != len(args):
        return ()
    found: dict[Type, Type] = {}
    pending: list[tuple[Type | None, Type | None]] = [
        *zip(callee.arg_types, args, strict=True),
        (callee.ret_type, result),
    ]
    while pending:
        match pending.pop():
            case (TypeVar() as variable, Type() as type):
                found.setdefault(variable, type)
            case (TupleType() as generic, TupleType() as type):
                pending += zip(generic.fields, type.fields, strict=False)
            case (TypeCall() as generic, TypeCall() as type):
                pending += zip(generic.args, type.args, strict=False)
            case (FuncType() as generic, FuncType() as type):
                pending += zip(generic.arg_types, type.arg_types, strict=False)
                pending.append((generic.ret_type, type.ret_type))
            case (RefType() as generic, RefType() as type):
                pending.append((generic.value, type.value))
            case _:
                pass
    return tuple(found[p] for p in callee.type_params) if all(p in found for p in callee.type_params) else ()


def scalar_type(dtype: str) -> TensorType:
    """The type of a scalar."""
    return TensorType((), dtype)


def checked_shape(shape: object, function: str) -> tuple[Dim, ...]:
    """Returns `shape` as dimensions; `function` names it in errors. Raises MirError if it is not a shape."""
    if isinstance(shape, str) or not isinstance(shape, Iterable):
        message = f"{function}: shape is a tuple of dimensions, not {shape!r}"
        raise MirTypeError(Diagnostic(message).with_note("write shape=(2, 3), and shape=() for a scalar"))
    given = list(shape)
    return tuple(_dim(dim, f"{function}: shape[{index}]") for index, dim in enumerate(given))


def _dim(dim: object, place: str) -> Dim:
    if isinstance(dim, Any):
        return dim
    if is_expression(dim):
        if not dim.dtype.startswith(("int", "uint")):
            raise MirTypeError(Diagnostic(f"{place} is {dim}, of {dim.dtype}: a dimension is an integer"))
        return dim
    value = getattr(dim, "value", dim)  # an IntImm holds its number
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise MirTypeError(Diagnostic(f"{place} is {dim!r}: a dimension is an integer or relay.Any()"))
    number = cast("int", value).__index__()
    if number < 0:
        message = f"{place} is {number}: a dimension is not negative"
        raise MirValueError(
            Diagnostic(message).with_note("relay.Any() is one that is known only when the program runs")
        )
    if number >= dialect.MAX_DIMENSION:
        raise MirValueError(Diagnostic(f"{place} is {number}: the dimension is too large"))
    return number


def is_expression(dim: object) -> TypeGuard[Expr]:
    """Returns whether a dimension is an expression of tir that is not a number."""
    if isinstance(dim, int | Any):
        return False
    from ...dialects.tir.node.expr import Expr, IntImm

    return isinstance(dim, Expr) and not isinstance(dim, IntImm)


def dimension_key(dim: Expr, map_free_vars: bool = False) -> Hashable:
    """Returns what is equal for equal expressions of the same variables, or of any where they are mapped."""
    from ...dialects.tir.node.structural import tokens

    return tuple(tokens(dim, map_free_vars))


def is_symbolic(type: Type) -> bool:
    """Returns whether a dimension in the type is an expression."""
    return any(map(is_expression, _open_dims(type)))


def _symbols(type: Type) -> Iterator[Hashable]:
    return (dimension_key(dim) if is_expression(dim) else None for dim in _open_dims(type))


def _open_dims(type: Type) -> Iterator[Dim]:
    """The dimensions that are not numbers, in the order of the text."""
    match type:
        case TensorType():
            yield from (dim for dim in type.shape if not isinstance(dim, int))
        case TupleType():
            for field in type.fields:
                yield from _open_dims(field)
        case FuncType():
            for part in (*type.arg_types, type.ret_type):
                yield from _open_dims(part)
        case TypeCall():
            for arg in type.args:
                yield from _open_dims(arg)
        case RefType():
            yield from _open_dims(type.value)
        case _:
            pass


def to_attribute(type: Type | None, names: dict[TypeVar, str] | None = None) -> Attribute:
    """The dialect's type; `names` says how type variables are called where it is not by their hints."""
    match type:
        case None | IncompleteType():
            return dialect.UNKNOWN
        case TensorType():
            return TensorTypeAttr(dtype_to_type(type.dtype), type.numbers)
        case TupleType():
            return dialect.tuple_of([to_attribute(field, names) for field in type.fields])
        case TypeVar():
            return dialect.TypeVarType.get((names or {}).get(type, type.name_hint))
        case GlobalTypeVar():
            return dialect.AdtType.get(type.name_hint)
        case TypeCall():
            return dialect.AdtType.get(type.func.name_hint, [to_attribute(arg, names) for arg in type.args])
        case FuncType():
            inputs = [to_attribute(arg, names) for arg in type.arg_types]
            parameters = [(names or {}).get(p, p.name_hint) for p in type.type_params]
            return dialect.FuncType.get(inputs, to_attribute(type.ret_type, names), parameters)
        case RefType():
            return dialect.RefType(to_attribute(type.value, names))
        case _:
            raise MirTypeError(Diagnostic(f"a type is wanted, not {type!r}"))


def from_attribute(attribute: Attribute, variables: dict[str, TypeVar] | None = None) -> Type:
    """Inverts `to_attribute`; `variables` are the type parameters in scope, to which new ones are added."""
    known = {} if variables is None else variables
    match attribute:
        case TensorTypeAttr():
            shape = [Any() if dim == DYNAMIC_INDEX else dim for dim in attribute.get_shape()]
            return TensorType(shape, type_to_dtype(attribute.element_type))
        case TupleTypeAttr():
            return TupleType([from_attribute(field, known) for field in attribute.types.data])
        case dialect.TypeVarType():
            name = attribute.var_name.data
            return known.setdefault(name, TypeVar(name))
        case dialect.AdtType():
            args = [from_attribute(arg, known) for arg in attribute.arguments.data]
            return TypeCall(GlobalTypeVar(attribute.type_name.data), args)
        case dialect.FuncType():
            own = {p.data: TypeVar(p.data) for p in attribute.type_params.data}
            inner = {**known, **own}
            inputs = [from_attribute(i, inner) for i in attribute.inputs.data]
            return FuncType(inputs, from_attribute(attribute.output, inner), list(own.values()))
        case dialect.RefType():
            return RefType(from_attribute(attribute.value_type, known))
        case _:
            return IncompleteType()


__dir__ = public_names(__name__)
