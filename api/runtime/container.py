"""Values that hold others, by the names of `tvm.runtime.container`: tuples, data types, strings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

import numpy as np

from ...support.public_names import public_names
from ..nd import NDArray, array


class ADT(tuple[Any, ...]):
    """A tuple, or a value of a data type: the fields, and the constructor's `tag`, 0 for a tuple."""

    tag: int

    def __new__(cls, tag: int, fields: Iterable[Any]) -> ADT:
        """Makes a value of the constructor `tag`."""
        made = super().__new__(cls, fields)
        made.tag = tag
        return made

    def __repr__(self) -> str:
        # Not the fields: a list may be thousands deep.
        return f"ADT(tag={self.tag}, {len(self)} fields)"


def tuple_object(fields: Iterable[Any] | None = None) -> ADT:
    """Makes a tuple of arrays and of further tuples. Raises TypeError for fields that are neither."""
    given = tuple(fields or ())
    for field in given:
        if not isinstance(field, NDArray | ADT):
            raise TypeError(f"a tuple holds arrays and tuples, not {field!r}; nd.array makes an array of it")
    return ADT(0, given)


class String(str):
    """A string, as TVM's containers hold it: Python's."""

    __slots__ = ()


def convert(value: Any, span: object = None) -> Any:
    """Returns a value as TVM's objects hold it: numbers as immediates, texts as `String`.

    Items of lists are converted likewise. Arrays of numpy become `nd.array`; functions and nodes stay. Raises TypeError for a value of another type.
    """
    from ...dialects.tir.node.expr import Expr, FloatImm, IntImm, const
    from ..ir.node import Node

    scalar: Any = value
    match value:
        case bool() | np.bool_():
            return IntImm("bool", int(value))
        case np.integer() | np.floating():
            return const(scalar)
        case int():
            number = int(value)
            return IntImm("int32" if -(2**31) <= number < 2**31 else "int64", number)
        case float():
            return FloatImm("float32", float(value))
        case str():
            return String(value)
        case list() | tuple() if not isinstance(value, ADT):
            return [convert(item) for item in cast("Iterable[Any]", value)]
        case Mapping():
            return {convert(key): convert(item) for key, item in cast("Mapping[Any, Any]", value).items()}
        case np.ndarray():
            return array(cast("object", value))
        case _:
            if value is None or callable(value) or isinstance(value, Node | NDArray | ADT | Expr):
                return value
            raise TypeError(f"{type(value).__name__} is not a value that TVM's objects hold")


__all__ = ["ADT", "String", "convert", "tuple_object"]


__dir__ = public_names(__name__)
