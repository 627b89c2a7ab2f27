"""Defines the forms that a TIR value has while it is lowered.

Loop variables, symbolic sizes and what is computed from them by integer arithmetic are kept in `index` (64 bits),
whatever their width in the source: indices, bounds and conditions must not overflow. Where such a value is cast or passed to
a function it becomes an integer of its own width; a stored value is computed in that width, unless its range is known to fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IntegerType,
    MemRefType,
    Signedness,
    VectorType,
)
from xdsl.dialects.llvm import LLVMPointerType
from xdsl.ir import Attribute, SSAValue

from ...dialects.interned import memref_type
from ...dialects.tir import HandleType, type_to_dtype
from ...support.diagnostics import error_at
from ...support.memoize import memoized

ADDRESS = LLVMPointerType()
DYNAMIC = DYNAMIC_INDEX
"""The extent of a dimension that a memref type leaves open."""


@dataclass(frozen=True, slots=True)
class Index:
    """An integer in `index`: a number, or an SSA value with its known range (None: unbounded)."""

    value: int | SSAValue
    low: int | None = None
    high: int | None = None

    @staticmethod
    def of(number: int) -> Index:
        return Index(number, number, number)

    @property
    def is_natural(self) -> bool:
        """Returns whether it is known not to be negative."""
        return self.low is not None and self.low >= 0


@dataclass(frozen=True, slots=True)
class Plain:
    """An SSA value of the converted type: a float, a bool, an integer of its own width, a vector."""

    value: SSAValue


@dataclass(frozen=True, slots=True)
class Ramp:
    """The index vector base, base + stride, …; a stride of 0 is a broadcast."""

    base: Index
    stride: Index
    lanes: int


@dataclass(frozen=True, slots=True)
class Pointer:
    """An address: a one-dimensional memref of `element`s, or a bare pointer with `element` None."""

    base: SSAValue
    element: Attribute | None


Form: TypeAlias = "Index | Plain | Ramp | Pointer"


@dataclass(frozen=True, slots=True)
class Buffer:
    """A buffer: a memref of its own shape, or a one-dimensional one (`flat`) with strides and an offset.

    `lanes` is the number of elements in one item of a buffer of vectors; such a buffer is flat.
    """

    base: SSAValue
    element: Attribute
    extents: tuple[Index, ...]
    flat: bool
    strides: tuple[Index, ...]
    offset: Index
    lanes: int = 1


INTEGER_WIDTHS = (1, 8, 16, 32, 64)
"""Bits of integers that have a place in memory."""


def convert_type(type: Attribute, where: SSAValue | None) -> Attribute:
    """Converts a value's type: integers lose their sign. Raises MirError at `where` if it cannot."""
    known = _converted(type)
    if known is not None:
        return known
    raise error_at(
        where,
        f"dtype {type_to_dtype(type)} cannot be compiled for a CPU",
        "bool, int and uint of 8, 16, 32 and 64 bits, float16, bfloat16, float32, float64, their vectors of fixed length and"
        " handles can",
    )


@memoized
def _converted(type: Attribute) -> Attribute | None:
    """Returns the type of a value; None where there is none."""
    match type:
        case IntegerType() if type.width.data in INTEGER_WIDTHS:
            return type if type.signedness.data is Signedness.SIGNLESS else IntegerType(type.width.data)
        case Float32Type() | Float64Type() | Float16Type() | BFloat16Type():
            return type
        case VectorType() if not any(s.value.data for s in type.scalable_dims.data):
            element = _converted(type.element_type)
            return None if element is None else VectorType(element, type.shape)
        case HandleType():
            return ADDRESS
        case _:
            return None


def flat_type(element: Attribute, size: int = DYNAMIC) -> MemRefType:
    """Returns a one-dimensional memref of `element`s."""
    return memref_type(element, size)
