"""Caches attributes that are created often: creating one checks its parameters, which is expensive."""

from __future__ import annotations

from functools import lru_cache
from typing import TypeVar, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    IndexType,
    IntAttr,
    IntegerAttr,
    IntegerType,
    MemRefType,
    StringAttr,
    TensorType,
    VectorType,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute

from ..support.memoize import memoized

ElementT = TypeVar("ElementT", bound=Attribute, covariant=True)

# Bounded, as programs of all sorts may pass through one process.
_MANY = 1 << 11


@lru_cache(_MANY)
def integer(value: int, type: IntegerType | IndexType) -> IntegerAttr:
    """Returns the attribute of an integer modulo the width of its type."""
    return IntegerAttr(value, type, truncate_bits=True)


@lru_cache(_MANY)
def int_attr(value: int) -> IntAttr:
    """Returns the attribute of a number without a type."""
    return IntAttr(value)


@lru_cache(_MANY)
def string(text: str) -> StringAttr:
    """Returns the attribute of a string, such as a name."""
    return StringAttr(text)


@lru_cache(_MANY)
def i32_array(*numbers: int) -> DenseArrayBase:
    """Numbers of 32 bits, such as the sizes of an op's operand segments."""
    return DenseArrayBase.from_list(i32, numbers)


@lru_cache(_MANY)
def i64_array(*numbers: int) -> DenseArrayBase:
    """Numbers of 64 bits, such as the places of lanes."""
    return DenseArrayBase.from_list(i64, numbers)


def vector_type(element: ElementT, lanes: int, scalable: bool = False) -> VectorType[ElementT]:
    """Returns the type of a vector of one dimension."""
    return cast("VectorType[ElementT]", _vector(element, lanes, scalable))


@memoized
def _vector(element: Attribute, lanes: int, scalable: bool) -> VectorType[Attribute]:
    return VectorType(element, [lanes], ArrayAttr([IntegerAttr(int(scalable), i1)]))


@lru_cache(_MANY)
def memref_type(element: Attribute, *shape: int) -> MemRefType[Attribute]:
    """Returns the type of memory of these extents, without gaps."""
    return MemRefType(element, shape)


@lru_cache(_MANY)
def tensor_type(element: Attribute, *shape: int) -> TensorType[Attribute]:
    """Returns the type of a tensor of these extents."""
    return TensorType(element, shape)
