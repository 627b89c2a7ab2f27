"""Unifies Relay types: holes for unknown types, filled as more becomes known.

A hole is a type of its own, so that types with holes in them are ordinary attributes. Dimensions follow TVM: where one
side says `?`, the joined type does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import DYNAMIC_INDEX, UNKNOWN_LOC, ArrayAttr, IntAttr, LocationAttr, TensorType, TupleType
from xdsl.ir import Attribute, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition, param_def

from ....support.diagnostics import Diagnostic, MirError
from ...tir.types import type_to_dtype
from ..text import type_text
from ..types import UNKNOWN, AdtType, FuncType, RefType, TypeVarType, UnknownType, substitute


@irdl_attr_definition
class Hole(ParametrizedAttribute, TypeAttribute):
    """A type that is not known yet; only inference sees it."""

    name = "relay.hole"
    index: IntAttr = param_def()


POISON = Hole(IntAttr(-1))
"""The type of a value whose computation has been complained about: it fits everything."""


class Mismatch(Exception):
    """Two types that do not unify; `detail` is where they differ."""

    def __init__(self, detail: str):
        super().__init__(detail)
        self.detail = detail


MAX_PARTS = 1 << 16


class TypeTooLarge(MirError):
    """A type of more than MAX_PARTS parts, such as that of `(%b, %b)` where `%b` is `(%a, %a)`, and so on."""

    def __init__(self, location: LocationAttr = UNKNOWN_LOC):
        message = f"the type of this value has more than {MAX_PARTS} parts"
        note = "each part counts as often as it is there: the type of (%a, %a) is twice as large as that of %a"
        super().__init__(Diagnostic(message, location).with_note(note))


class Unifier:
    """The types of the holes. `filled` collects the holes that got a type since it was last emptied."""

    def __init__(self) -> None:
        self._types: list[Attribute | None] = []
        self.filled: list[int] = []

    def hole(self) -> Hole:
        """Returns a new hole."""
        self._types.append(None)
        return Hole(IntAttr(len(self._types) - 1))

    def open(self, type: Attribute) -> Attribute:
        """Returns an annotation, each unknown part a new hole."""
        match type:
            case UnknownType():
                return self.hole()
            case TensorType():
                return type
            case _:
                return _rebuild(type, self.open)

    def head(self, type: Attribute) -> Attribute:
        """Returns the type, or that of a filled hole (possibly with holes inside); an open hole as it is."""
        while isinstance(type, Hole):
            index = type.index.data
            found = self._types[index] if index >= 0 else None
            if found is None:
                return type
            type = found
        return type

    def close(self, type: Attribute) -> Attribute:
        """Returns the type with every hole filled, open ones with UNKNOWN. Raises TypeTooLarge."""
        if isinstance(type, TensorType):
            return type
        self.first_hole(type)
        return self._replaced(type, UNKNOWN, {})

    def filled_in(self, type: Attribute) -> Attribute:
        """Returns the type with every hole that is filled replaced; the others stay. Raises TypeTooLarge."""
        self.first_hole(type)
        return self._replaced(type, None, {})

    def _replaced(self, type: Attribute, unknown: Attribute | None, done: dict[int, Attribute]) -> Attribute:
        """Returns the type with its holes replaced.

        `done` holds the results by the parts' ids, so that shared parts stay shared.
        """
        type = self.head(type)
        if isinstance(type, Hole):
            return type if unknown is None else unknown
        if isinstance(type, TensorType):
            return type
        found = done.get(id(type))
        if found is None:
            found = done[id(type)] = _rebuild(type, lambda part: self._replaced(part, unknown, done))
        return found

    def first_hole(self, type: Attribute) -> Hole | None:
        """Returns a hole in the type that is not filled; None when the type is known.

        Raises TypeTooLarge.
        """
        holes: list[Hole] = []
        if self._count(type, holes, {}) > MAX_PARTS:
            raise TypeTooLarge
        return holes[0] if holes else None

    def _count(self, type: Attribute, holes: list[Hole], counted: dict[int, int]) -> int:
        """Counts a type and its parts, repeated ones too, visiting each object once; collects the holes."""
        type = self.head(type)
        if isinstance(type, TensorType):
            return 1
        if isinstance(type, Hole):
            holes.append(type)
            return 1
        found = counted.get(id(type))
        if found is None:
            found = counted[id(type)] = 1 + sum(self._count(part, holes, counted) for part in _parts(type))
        return found

    def instantiate(self, function: FuncType, arguments: Sequence[Attribute] = ()) -> FuncType:
        """Returns a generic function's type with new holes, or the given types, for its parameters."""
        names = [p.data for p in function.type_params.data]
        if not names:
            return function
        types = dict(zip(names, arguments or [self.hole() for _ in names], strict=True))
        plain = self.filled_in(FuncType.get(function.inputs.data, function.output))
        result = substitute(plain, types)
        assert isinstance(result, FuncType)
        return result

    def unify(self, a: Attribute, b: Attribute) -> Attribute:
        """Returns the type that both are. Raises Mismatch when they differ."""
        if a is b:
            return a
        if isinstance(a, Hole):
            return self._fill(a, b)
        if isinstance(b, Hole):
            return self._fill(b, a)
        if isinstance(a, TensorType) and isinstance(b, TensorType):
            return a if a == b else _join_tensors(a, b)
        if type(a) is not type(b):
            raise Mismatch(f"{_kind(a)} against {_kind(b)}")
        return self._unify_parts(a, b)

    def _fill(self, hole: Hole, other: Attribute) -> Attribute:
        if hole is POISON or other is POISON:
            return POISON
        last = hole
        while (known := self._types[last.index.data]) is not None and isinstance(known, Hole):
            last = known
        if known is not None:
            joined = self.unify(known, other)
            if joined is not known and joined is not POISON and not isinstance(joined, Hole):
                self._types[last.index.data] = joined
            return joined
        other = self.head(other)
        if other is POISON:
            return POISON
        if other == last:
            return last
        self._refuse_cycle(last, other)
        self._types[last.index.data] = other
        self.filled.append(last.index.data)
        return other

    def _refuse_cycle(self, hole: Hole, type: Attribute) -> None:
        holes: list[Hole] = []
        self._count(type, holes, {})
        if hole in holes:
            raise Mismatch("the type would contain itself")

    def _unify_parts(self, a: Attribute, b: Attribute) -> Attribute:
        match a, b:
            case TupleType(), TupleType():
                fields = self._unify_all(a.types.data, b.types.data, "fields", "field")
                return TupleType(ArrayAttr(fields))  # type: ignore[arg-type]
            case FuncType(), FuncType():
                if len(a.type_params.data) != len(b.type_params.data):
                    a, b = self.instantiate(a), self.instantiate(b)
                elif a.type_params.data:
                    renamed = [TypeVarType(p) for p in a.type_params.data]
                    generic, a, b = a.type_params, self.instantiate(a, renamed), self.instantiate(b, renamed)
                    return FuncType(generic, *self._unify_functions(a, b).parameters[1:])  # type: ignore[arg-type]
                return self._unify_functions(a, b)
            case AdtType(), AdtType():
                if a.type_name != b.type_name:
                    raise Mismatch(f"the data type {a.type_name.data} against {b.type_name.data}")
                return AdtType.get(
                    a.type_name.data, self._unify_all(a.arguments.data, b.arguments.data, "type arguments", "argument")
                )
            case RefType(), RefType():
                return RefType(self.unify(a.value_type, b.value_type))
            case _:
                if a == b:
                    return a
                raise Mismatch(f"{type_text(a)} against {type_text(b)}")

    def _unify_functions(self, a: FuncType, b: FuncType) -> FuncType:
        inputs = self._unify_all(a.inputs.data, b.inputs.data, "parameters", "parameter")
        return FuncType.get(inputs, self.unify(a.output, b.output))

    def _unify_all(self, a: Sequence[Attribute], b: Sequence[Attribute], many: str, one: str) -> list[Attribute]:
        if len(a) != len(b):
            raise Mismatch(f"{len(a)} {many} against {len(b)}")
        result: list[Attribute] = []
        for place, (x, y) in enumerate(zip(a, b, strict=True)):
            try:
                result.append(self.unify(x, y))
            except Mismatch as mismatch:
                raise Mismatch(f"{one} {place}: {mismatch.detail}") from None
        return result


def _parts(type: Attribute) -> list[Attribute]:
    match type:
        case TupleType():
            return list(type.types.data)
        case FuncType():
            return [*type.inputs.data, type.output]
        case AdtType():
            return list(type.arguments.data)
        case RefType():
            return [type.value_type]
        case _:
            return []


def _rebuild(type: Attribute, each: Callable[[Attribute], Attribute]) -> Attribute:
    """Returns the type with `each` applied to its parts; the same object when nothing changes."""
    parts = _parts(type)
    new = [each(part) for part in parts]
    if all(x is y for x, y in zip(parts, new, strict=True)):
        return type
    match type:
        case TupleType():
            return TupleType(ArrayAttr(new))  # type: ignore[arg-type]
        case FuncType():
            return FuncType.get(new[:-1], new[-1], [p.data for p in type.type_params.data])
        case AdtType():
            return AdtType.get(type.type_name.data, new)
        case _:
            return RefType(new[0])


def _join_tensors(a: TensorType[Attribute], b: TensorType[Attribute]) -> Attribute:
    if a.element_type != b.element_type:
        raise Mismatch(f"dtype {type_to_dtype(a.element_type)} against {type_to_dtype(b.element_type)}")
    left, right = a.get_shape(), b.get_shape()
    if len(left) != len(right):
        raise Mismatch(f"rank {len(left)} against {len(right)}")
    for axis, (x, y) in enumerate(zip(left, right, strict=True)):
        if x != y and DYNAMIC_INDEX not in (x, y):
            raise Mismatch(f"dimension {axis} is {x} against {y}")
    dims = [x if x == y else DYNAMIC_INDEX for x, y in zip(left, right, strict=True)]
    return a if tuple(dims) == left else b if tuple(dims) == right else TensorType(a.element_type, dims)


def _kind(type: Attribute) -> str:
    match type:
        case TensorType():
            return "a tensor" if type.get_num_dims() else "a scalar"
        case TupleType():
            return "a tuple"
        case FuncType():
            return "a function"
        case AdtType():
            return f"the data type {type.type_name.data}"
        case RefType():
            return "a reference"
        case TypeVarType():
            return f"the type parameter {type.var_name.data}"
        case _:
            return type_text(type)
