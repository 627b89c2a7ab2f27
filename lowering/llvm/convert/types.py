"""Maps types of the standard dialects to LLVM types, in a register and in memory."""

from __future__ import annotations

from typing_extensions import TypeIs
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    FunctionType,
    IndexType,
    IntegerType,
    MemRefType,
    NoneAttr,
    Signedness,
    StridedLayoutAttr,
    VectorType,
    i8,
    i64,
)
from xdsl.dialects.llvm import LLVMArrayType, LLVMFunctionType, LLVMPointerType, LLVMStructType
from xdsl.ir import Attribute, SSAValue

from ....dialects.interned import vector_type
from ....support.diagnostics import error_at
from ....support.memoize import memoized

PTR = LLVMPointerType()
FLOAT_TYPES = (BFloat16Type, Float16Type, Float32Type, Float64Type)
LLVM_TYPES = (LLVMArrayType, LLVMFunctionType, LLVMPointerType, LLVMStructType)


def is_vector(type_: Attribute) -> TypeIs[VectorType[Attribute]]:
    """Tells whether `type_` is a vector; xDSL's `isa` builds constraints, some 150 µs each time."""
    return type(type_) is VectorType


def is_memref(type_: Attribute) -> TypeIs[MemRefType[Attribute]]:
    """Tells whether `type_` is a memref of known rank."""
    return type(type_) is MemRefType


def is_bool(type_: Attribute) -> bool:
    """Tells whether `type_` is `i1`."""
    return type(type_) is IntegerType and type_.width.data == 1


def element_of(type_: Attribute) -> Attribute:
    """Returns the element type of a vector, otherwise the type itself."""
    return type_.element_type if is_vector(type_) else type_


def lanes(type_: Attribute) -> int:
    """Returns the number of lanes: the product of a vector's shape; 0 for a scalar."""
    if not is_vector(type_):
        return 0
    count = 1
    for size in type_.get_shape():
        count *= size
    return count


def with_element(type_: Attribute, element: Attribute) -> Attribute:
    """Returns `element` in the shape of `type_`."""
    return _shaped(type_, element) if is_vector(type_) else element


@memoized
def _shaped(type_: VectorType[Attribute], element: Attribute) -> Attribute:
    return VectorType(element, type_.shape)


def float_width(type_: Attribute) -> int:
    """Returns the bits of a float type (or of a vector's element), 0 for another."""
    element = element_of(type_)
    return element.bitwidth if isinstance(element, FLOAT_TYPES) else 0


@memoized
def byte_size(type_: Attribute) -> int:
    """Returns the distance in bytes between two elements of this LLVM register type in memory."""
    match type_:
        case IntegerType():
            return (type_.width.data + 7) // 8
        case LLVMPointerType():
            return 8
        case LLVMArrayType():
            return type_.size.data * byte_size(type_.type)
        case _ if is_vector(type_):
            return lanes(type_) * byte_size(type_.element_type)
        case _:
            return float_width(type_) // 8


def alignment_of(type_: Attribute) -> int:
    """Returns the alignment of a field of this LLVM register type in an aligned struct.

    It is the largest power of two of which every such address is a multiple.
    """
    if is_bool(element_of(type_)):
        return 1  # lanes are bits there
    size = byte_size(type_)
    return size & -size


@memoized
def in_memory(type_: Attribute) -> Attribute:
    """Returns the type of a converted type in memory: i8 for booleans, as in numpy; otherwise the same."""
    return with_element(type_, i8) if is_bool(element_of(type_)) else type_


class TypeConverter:
    """Standard types to LLVM types, each converted once.

    `index` is `i64`; signed and unsigned integers lose their sign; a vector of several dimensions becomes one
    of a single dimension, row-major; a memref becomes the pointer to its first element.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[Attribute, Attribute]] = {}
        """By the type's identity, as `support.memoize` does."""
        self.has_bf16 = False
        """Whether any of the types that were converted holds bf16."""

    def __call__(self, type_: Attribute, where: SSAValue | None = None) -> Attribute:
        """Returns the LLVM type; raises `MirError` at `where` when LLVM has no such type."""
        known = self._known.get(id(type_))
        if known is None:
            known = self._known[id(type_)] = type_, self._convert(type_, where)
        return known[1]

    def _convert(self, type_: Attribute, where: SSAValue | None) -> Attribute:
        match type_:
            case IndexType():
                return i64
            case IntegerType():
                return type_ if type_.signedness.data == Signedness.SIGNLESS else IntegerType(type_.width.data)
            case MemRefType():
                return PTR
            case FunctionType():
                return PTR
            case _ if is_vector(type_):
                if type_.get_num_scalable_dims():
                    raise error_at(where, f"scalable vector {type_} cannot be lowered", "use a vector of fixed size")
                return vector_type(self(type_.element_type, where), lanes(type_))
            case _ if isinstance(type_, (*FLOAT_TYPES, *LLVM_TYPES)):
                self.has_bf16 |= isinstance(type_, BFloat16Type)
                return type_
            case _:
                raise error_at(
                    where,
                    f"type {type_} has no counterpart in LLVM",
                    "lowering takes integers, index, bf16, f16, f32, f64, and vectors and memrefs of them",
                )


def static_strides(type_: MemRefType) -> tuple[int | None, ...]:
    """Strides in elements, None where dynamic; of a memref without layout, those of row-major order."""
    if isinstance(type_.layout, StridedLayoutAttr):
        return tuple(None if isinstance(stride, NoneAttr) else stride.data for stride in type_.layout.strides)
    strides: list[int | None] = []
    stride: int | None = 1
    for size in reversed(type_.get_shape()):
        strides.append(stride)
        stride = None if stride is None or size < 0 else stride * size
    return tuple(reversed(strides))


def static_offset(type_: MemRefType) -> int | None:
    """Returns the layout's offset in elements, None where dynamic."""
    if isinstance(type_.layout, StridedLayoutAttr):
        offset = type_.layout.offset
        return None if isinstance(offset, NoneAttr) else offset.data
    return 0
