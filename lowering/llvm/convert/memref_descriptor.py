"""Describes a memref during conversion: pointer, offset, sizes and strides, constants or SSA values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, SSAValue

from ....support.diagnostics import error_at
from .builder import Builder, Index
from .types import byte_size, in_memory, static_strides


@dataclass(frozen=True, slots=True)
class MemRefValue:
    """Element (i, j, …) is `offset + i * strides[0] + j * strides[1] + …` elements after `base`."""

    base: SSAValue
    offset: Index
    sizes: tuple[Index | None, ...]
    """None where nothing tells the size: a dynamic dimension of a bare pointer."""
    strides: tuple[Index, ...]
    element: Attribute
    """The element's LLVM type in a register."""

    @property
    def memory_element(self) -> Attribute:
        """The element's type in memory."""
        return in_memory(self.element)

    @property
    def alignment(self) -> int:
        """Returns the number of bytes of which every element's address is a multiple."""
        return byte_size(self.memory_element)

    def linear(self, b: Builder, indices: Sequence[Index]) -> Index:
        """Returns the distance of an element from `base`, in elements."""
        total: Index = self.offset
        known = 0
        for index, stride in zip(indices, self.strides, strict=True):
            term = b.mul(index, stride)
            if isinstance(term, int):
                known += term
            else:
                total = b.add(total, term)
        return b.add(total, known)

    def address(self, b: Builder, indices: Sequence[Index]) -> SSAValue:
        """Returns the pointer to an element."""
        return b.gep(self.base, self.linear(b, indices), self.memory_element)

    def bare(self, b: Builder) -> SSAValue:
        """Returns the pointer to the first element: how a memref is handed to a function."""
        return b.gep(self.base, self.offset, self.memory_element)

    def at_first_element(self, b: Builder) -> MemRefValue:
        """Returns the same memref with its offset folded into the pointer."""
        return replace(self, base=self.bare(b), offset=0)

    def element_count(self, b: Builder) -> Index | None:
        """Returns the product of the sizes, None when one of them is not known."""
        total: Index = 1
        for size in self.sizes:
            if size is None:
                return None
            total = b.mul(total, size)
        return total

    def known_size(self, b: Builder, dim: int, source: SSAValue) -> Index:
        """Returns the size of a dimension; raises `MirError` where a bare pointer left it open."""
        size = self.sizes[dim]
        if size is None:
            raise error_at(
                b.location,
                f"the size of dimension {dim} of {source.type} is not known here",
                "a memref argument is a bare pointer: take the size as an index argument and use memref.reinterpret_cast",
            )
        return size

    def is_row_major(self) -> bool:
        """Tells whether the elements are known to be contiguous in row-major order."""
        expected = 1
        for dim in reversed(range(len(self.sizes))):
            size = self.sizes[dim]
            if size == 1:
                continue
            if self.strides[dim] != expected:
                return False
            if not isinstance(size, int):
                # Strides further out would have to be compared with a product that is not known.
                return dim == 0
            expected *= size
        return True


def open_parts(type_: MemRefType) -> tuple[list[int], list[int]]:
    """Returns the dimensions whose size, and those whose stride, the type leaves open.

    A block argument for each, after one for the pointer, carries a memref to another block.
    """
    sizes = [dim for dim, size in enumerate(type_.get_shape()) if size < 0]
    strides = [dim for dim, stride in enumerate(static_strides(type_)) if stride is None]
    return sizes, strides


def from_parts(type_: MemRefType, element: Attribute, values: Sequence[SSAValue]) -> MemRefValue:
    """Returns the memref of a pointer, its open sizes and its open strides."""
    open_sizes, open_strides = open_parts(type_)
    sizes: list[Index | None] = list(type_.get_shape())
    strides: list[Index] = [0 if stride is None else stride for stride in static_strides(type_)]
    rest = iter(values[1:])
    for dim in open_sizes:
        sizes[dim] = next(rest)
    for dim in open_strides:
        strides[dim] = next(rest)
    return MemRefValue(values[0], 0, tuple(sizes), tuple(strides), element)


def from_bare_pointer(pointer: SSAValue, type_: MemRefType, element: Attribute, where: SSAValue | None) -> MemRefValue:
    """Returns the memref of a static layout that starts at `pointer`; open sizes stay unknown.

    Raises `MirError` at `where` when a stride is dynamic, for a bare pointer cannot carry it.
    """
    strides: list[Index] = []
    for stride in static_strides(type_):
        if stride is None:
            raise error_at(
                where,
                f"{type_} is passed as a bare pointer, which does not carry its strides",
                "take a memref<?xT> and the sizes and strides as index arguments, and combine them with "
                "memref.reinterpret_cast",
            )
        strides.append(stride)
    sizes = tuple(None if size < 0 else size for size in type_.get_shape())
    return MemRefValue(pointer, 0, sizes, tuple(strides), element)
