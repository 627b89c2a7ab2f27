"""Static values of a partial evaluator: pattern matching on them, and the end of recursion on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.ir import Attribute, SSAValue

from ....dialects.array import ArrayValueAttr
from ....dialects.relay import ir
from ....dialects.relay.patterns import ConstructorPattern, TuplePattern, VarPattern, WildcardPattern


@dataclass(eq=False)
class Partial:
    """A value of the program: what is known of it, and the value that it is in the program that comes out."""

    dynamic: SSAValue
    static: Static | None = None


class Environment:
    """Maps the values of one activation of a function.

    Those around a local function are in outer environments.
    """

    __slots__ = ("_outer", "_values")

    def __init__(self, outer: Environment | None = None):
        self._outer = outer
        self._values: dict[SSAValue, Partial] = {}

    def __getitem__(self, value: SSAValue) -> Partial:
        environment: Environment | None = self
        while environment is not None:
            found = environment._values.get(value)
            if found is not None:
                return found
            environment = environment._outer
        raise KeyError(value)

    def __setitem__(self, value: SSAValue, partial: Partial) -> None:
        self._values[value] = partial


@dataclass(frozen=True, eq=False)
class StaticTensor:
    """A constant."""

    value: ArrayValueAttr


@dataclass(frozen=True, eq=False)
class StaticTuple:
    """A tuple made in sight."""

    fields: Sequence[Partial]


@dataclass(frozen=True, eq=False)
class StaticFunction:
    """A function whose body is in sight; `types` is what the type parameters around it are."""

    function: ir.FuncOp | ir.FnOp
    environment: Environment
    types: Mapping[str, Attribute]


@dataclass(frozen=True, eq=False)
class StaticConstructor:
    """A constructor as a value."""

    type_name: str
    constructor: str


@dataclass(frozen=True, eq=False)
class StaticAdt:
    """A value of a data type made in sight; `size` counts the constructors in it."""

    constructor: str
    fields: Sequence[Partial]
    size: int


@dataclass(frozen=True, eq=False)
class StaticRef:
    """A cell made in sight: no two of them are the same. What it holds is in the evaluator's store."""


Static: TypeAlias = StaticTensor | StaticTuple | StaticFunction | StaticConstructor | StaticAdt | StaticRef


def adt(constructor: str, fields: Sequence[Partial]) -> StaticAdt:
    """A constructor applied to fields."""
    inner = (field.static for field in fields)
    return StaticAdt(constructor, fields, 1 + sum(s.size for s in inner if isinstance(s, StaticAdt)))


def match_partial(pattern: Attribute, value: Partial) -> list[Partial] | bool | None:
    """Matches a value against a pattern; returns the values of the pattern's variables, left to right.

    False if the value does not match, None if that is not known.
    """
    bound: list[Partial] = []
    pending = [(pattern, value)]
    while pending:
        part, item = pending.pop()
        match part:
            case WildcardPattern():
                continue
            case VarPattern():
                bound.append(item)
                continue
            case ConstructorPattern() if isinstance(item.static, StaticAdt):
                if item.static.constructor != part.constructor.data:
                    return False
                fields = item.static.fields
            case TuplePattern() if isinstance(item.static, StaticTuple):
                fields = item.static.fields
            case _:
                return None
        pending += reversed(list(zip(part.fields.data, fields, strict=True)))
    return bound


Fuel: TypeAlias = "tuple[int | None, ...]"
"""For each argument of a call, a number that a recursion on it makes smaller; None where there is none."""


def fuel_of(arguments: Sequence[Partial]) -> Fuel:
    """Measures arguments: natural numbers by themselves, values of data types by their size."""
    return tuple(_fuel(argument.static) for argument in arguments)


def _fuel(static: Static | None) -> int | None:
    match static:
        case StaticTensor() if not static.value.data.shape and static.value.data.dtype.lstrip("u").startswith("int"):
            value = int(static.value.data.item())
            return value if value >= 0 else None
        case StaticAdt():
            return static.size
        case _:
            return None


def makes_progress(before: Fuel | None, now: Fuel) -> bool:
    """Returns whether a nested call of the same function is nearer to its end; only then it is evaluated."""
    if before is None:
        return True
    return any(a is not None and b is not None and b < a for a, b in zip(before, now, strict=True))


def least(before: Fuel | None, now: Fuel) -> Fuel:
    """Returns the measure that the next nested call must be less than."""
    if before is None:
        return now
    return tuple(b if a is None else a if b is None else min(a, b) for a, b in zip(before, now, strict=True))
