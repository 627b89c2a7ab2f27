"""Arguments of schedule ops as Python values, and as attributes with numbers of operands and regions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import TypeAlias, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FloatAttr,
    IntAttr,
    IntegerAttr,
    IntegerType,
    NoneType,
    StringAttr,
    f64,
    i1,
    i64,
)
from xdsl.ir import Attribute, Region, SSAValue
from xdsl.utils.exceptions import VerifyException

from ...support.text import counted
from .signature_table import SignatureError
from .types import LambdaAttr, ListType, OperandAttr, SplatAttr, kind_of_type


@dataclass(frozen=True)
class Ref:
    """A handle among the arguments."""

    value: SSAValue

    @property
    def schedule_kind(self) -> str | None:
        """Returns the kind of the handle (see `kinds`)."""
        return kind_of_type(self.value.type)


@dataclass(frozen=True)
class Splat:
    """`*loops`: the elements of a list of handles, each as an item of its own."""

    value: SSAValue

    @property
    def schedule_kind(self) -> str | None:
        """Returns the kind of the list's elements."""
        kind = kind_of_type(self.value.type)
        return None if kind is None else kind.removeprefix("list[").removesuffix("]")


@dataclass(frozen=True)
class Lambda:
    """`lambda i, j: [i // 4, j]`: a region of these parameters whose `schedule.yield` returns the values."""

    region: Region
    names: tuple[str, ...]

    def __call__(self) -> None:
        """Makes the lambda callable, as its kind of argument requires; the schedule evaluates it."""


Argument: TypeAlias = (
    "bool | int | float | str | Ref | Splat | Lambda | Sequence[Argument] | Mapping[str, Argument] | None"
)


class Encoder:
    """Turns arguments into attributes; collects the operands and regions that they refer to."""

    def __init__(self) -> None:
        self.operands: list[SSAValue] = []
        self.regions: list[Region] = []

    def encode(self, argument: Argument) -> Attribute:
        """Encodes one argument. Raises SignatureError for a value without an attribute."""
        match argument:
            case Ref() | Splat():
                if argument.value not in self.operands:
                    self.operands.append(argument.value)
                number = IntAttr(self.operands.index(argument.value))
                return OperandAttr(number) if isinstance(argument, Ref) else SplatAttr(number)
            case Lambda():
                self.regions.append(argument.region)
                names = ArrayAttr([StringAttr(name) for name in argument.names])
                return LambdaAttr(IntAttr(len(self.regions) - 1), names)
            case None:
                return NoneType()
            case bool():
                return IntegerAttr(int(argument), i1)
            case int():
                if not -(1 << 63) <= argument < 1 << 63:
                    raise SignatureError(
                        f"{argument} is not an argument of a schedule primitive", "it does not fit into int64"
                    )
                return IntegerAttr(argument, i64)
            case float():
                if not isfinite(argument):
                    raise SignatureError(f"{argument} is not an argument of a schedule primitive", "numbers are finite")
                return FloatAttr(argument, f64)
            case str():
                return StringAttr(argument)
            case Mapping():
                return DictionaryAttr({key: self.encode(item) for key, item in argument.items()})
            case _:
                if not isinstance(argument, list | tuple):  # pyright: ignore[reportUnnecessaryIsInstance]
                    raise SignatureError(
                        f"{argument!r} is not an argument of a schedule primitive",
                        "arguments are handles, numbers, strings, None, lists and dictionaries of them, and lambdas",
                    )
                return ArrayAttr([self.encode(item) for item in cast("Sequence[Argument]", argument)])


def decode(
    attribute: Attribute, operands: Sequence[SSAValue], regions: Sequence[Region], *, in_list: bool = False
) -> Argument:
    """Returns the argument that an attribute encodes. Raises VerifyException for other attributes."""
    match attribute:
        case OperandAttr() | SplatAttr():
            if attribute.index.data >= len(operands):
                raise VerifyException(f"an argument refers to operand {attribute.index.data} of {len(operands)}")
            value = operands[attribute.index.data]
            if isinstance(attribute, SplatAttr) and not in_list:
                raise VerifyException("a splat stands in a list only")
            if isinstance(attribute, SplatAttr) and not isinstance(value.type, ListType):
                raise VerifyException("a splat is of a list of handles")
            return Ref(value) if isinstance(attribute, OperandAttr) else Splat(value)
        case LambdaAttr():
            if attribute.index.data >= len(regions):
                raise VerifyException(f"an argument refers to region {attribute.index.data} of {len(regions)}")
            region, names = regions[attribute.index.data], tuple(name.data for name in attribute.names)
            if len(region.block.args) != len(names):
                raise VerifyException(
                    f"a lambda has {counted(len(region.block.args), 'argument')}, but {counted(len(names), 'name')}"
                )
            return Lambda(region, names)
        case NoneType():
            return None
        case IntegerAttr():
            is_bool = isinstance(attribute.type, IntegerType) and attribute.type.width.data == 1
            return bool(attribute.value.data) if is_bool else attribute.value.data
        case FloatAttr():
            return attribute.value.data
        case StringAttr():
            return attribute.data
        case ArrayAttr():
            return [decode(item, operands, regions, in_list=True) for item in attribute.data]
        case DictionaryAttr():
            return {key: decode(item, operands, regions) for key, item in attribute.data.items()}
        case _:
            raise VerifyException(f"'{attribute}' is not an argument of a schedule primitive")
