"""Values at run time, and how numpy holds each dtype.

While loops run as axes, a scalar that differs between iterations is an array with one dimension per axis (of size 1 along
axes that it does not vary with); one that is the same for all is a Python int or bool, or a numpy float. A vector value
has its lanes as one more dimension, the last.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import IntegerType, VectorType
from xdsl.ir import Attribute, Operation

from ....support.diagnostics import error_at
from ...array import numpy_dtype
from ..types import HandleType, element_of, is_unsigned, type_to_dtype

Array: TypeAlias = "NDArray[Any]"
Value: TypeAlias = Any
"""The runtime value of an SSA value: int, bool, numpy scalar, array, Pointer, View or str."""


def dtype_of(type: Attribute, where: Operation) -> np.dtype[Any]:
    """Returns the numpy dtype of a scalar type, or of a vector type's elements."""
    type = element_of(type)
    name = type_to_dtype(type)
    if isinstance(type, HandleType):
        return np.dtype(np.uint64)
    try:
        return numpy_dtype(name)
    except TypeError:
        raise error_at(where, f"the interpreter has no arithmetic on {name}") from None


def is_integer(type: Attribute) -> bool:
    """Returns True if a scalar of the type is held as a Python int (bool included)."""
    return isinstance(type, IntegerType)


def wrapper(type: Attribute) -> Callable[[int], int]:
    """Returns the function that wraps a Python int to the range of an integer type, in two's complement."""
    element = element_of(type)
    assert isinstance(element, IntegerType)
    bits = element.width.data
    mask = (1 << bits) - 1
    if is_unsigned(element):
        return lambda value: value & mask
    half = 1 << (bits - 1)
    return lambda value: value if -half <= value < half else ((value + half) & mask) - half


def integer_limits(type: Attribute) -> tuple[int, int]:
    """Returns the least and greatest value of an integer type."""
    element = element_of(type)
    assert isinstance(element, IntegerType)
    bits = element.width.data
    return (0, (1 << bits) - 1) if is_unsigned(element) else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)


def scalar_of(value: Any, type: Attribute, where: Operation) -> Value:
    """Returns a Python number as a value of the type."""
    if isinstance(type, IntegerType):
        return bool(value) if type.width.data == 1 else wrapper(type)(int(value))
    return dtype_of(type, where).type(value)


def as_array(value: Value, dtype: np.dtype[Any]) -> Array:
    """Returns a value as an array of exactly this dtype."""
    return np.asarray(value, dtype)


def is_array(value: object) -> TypeGuard[Array]:
    """Returns True for a value that differs between running iterations, or is an argument's array."""
    return isinstance(value, np.ndarray)


def is_vector(type: Attribute) -> bool:
    """Returns True if values of the type have a lane dimension."""
    return isinstance(type, VectorType)


@dataclass
class Storage:
    """Memory: a flat array, preceded by one dimension per axis when each iteration has its own."""

    array: Array
    lanes: int = 0


@dataclass(frozen=True)
class Pointer:
    """A place in memory; `offset` counts elements of the storage's dtype."""

    storage: Storage
    offset: Value = 0


@dataclass
class View:
    """A buffer: an array of its shape (after `lanes` dimensions of axes), seen from `base`.

    `prefix` are the positions in dimensions of the array that the buffer leaves out. With `flat`, the array has one
    dimension, in which elements are at `offset` and `strides`. `vector` is the number of lanes of the buffer's own
    element, 1 for a scalar; they are the array's last dimension.
    """

    array: Array
    shape: tuple[int, ...]
    storage: Storage
    offset: Value = 0
    strides: tuple[int, ...] = ()
    lanes: int = 0
    prefix: tuple[Value, ...] = ()
    base: tuple[Value, ...] | None = None
    vector: int = 1
    flat: bool = False
