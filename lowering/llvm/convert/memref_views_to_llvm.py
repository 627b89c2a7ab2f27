"""Views of memrefs to `llvm`: windows, other shapes and other element types over the same memory.

No view moves an element: each is the arithmetic of an offset, of sizes and of strides.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, DenseArrayBase, IntegerAttr, IntegerType, i8
from xdsl.ir import Attribute, SSAValue

from ....support.diagnostics import error_at
from .builder import Index
from .converter import Converter, HandlerTable
from .memref_descriptor import MemRefValue
from .types import is_memref

TABLE = HandlerTable()


def _mixed(c: Converter, static: DenseArrayBase[IntegerType], dynamic: Sequence[SSAValue]) -> list[Index]:
    """A list of numbers, some written in the op and some operands."""
    values = iter(c.indices(dynamic))
    return [next(values) if number == DYNAMIC_INDEX else int(number) for number in static.get_values()]


@TABLE.on(memref.ReinterpretCastOp)
def convert_reinterpret_cast(c: Converter, op: memref.ReinterpretCastOp) -> None:
    """Another offset, sizes and strides over the same buffer."""
    ref = c.memref(op.source)
    (offset,) = _mixed(c, op.static_offsets, op.offsets)
    sizes = tuple(_mixed(c, op.static_sizes, op.sizes))
    strides = tuple(_mixed(c, op.static_strides, op.strides))
    c.bind(op.result, MemRefValue(ref.base, offset, sizes, strides, ref.element))


@TABLE.on(memref.SubviewOp)
def convert_subview(c: Converter, op: memref.SubviewOp) -> None:
    """A window; dimensions of size 1 that the result type lacks are dropped."""
    ref = c.memref(op.source)
    offsets = _mixed(c, op.static_offsets, op.offsets)
    sizes = _mixed(c, op.static_sizes, op.sizes)
    steps = _mixed(c, op.static_strides, op.strides)
    strides = [c.mul(stride, step) for stride, step in zip(ref.strides, steps, strict=True)]
    kept = _kept_dimensions(op, sizes)
    c.bind(
        op.result,
        MemRefValue(
            ref.base,
            ref.linear(c, offsets),
            tuple(sizes[dim] for dim in kept),
            tuple(strides[dim] for dim in kept),
            ref.element,
        ),
    )


def _kept_dimensions(op: memref.SubviewOp, sizes: Sequence[Index]) -> list[int]:
    """The dimensions of a subview that its result type has: all but as many ones as the rank shrinks by."""
    assert is_memref(op.result.type)
    shape = op.result.type.get_shape()
    kept: list[int] = []
    for dim, size in enumerate(sizes):
        wanted = shape[len(kept)] if len(kept) < len(shape) else None
        matches = wanted is not None and (wanted == size if isinstance(size, int) else wanted < 0)
        droppable = size == 1 and len(sizes) - dim > len(shape) - len(kept)
        if matches and not (droppable and wanted != 1):
            kept.append(dim)
        elif not droppable:
            raise error_at(op, f"the result type {op.result.type} does not fit the sizes of the subview")
    return kept


@TABLE.on(memref.ViewOp)
def convert_view(c: Converter, op: memref.ViewOp) -> None:
    """Bytes from some address on, as a memref of another type."""
    ref, type_ = c.memref(op.source), op.result.type
    assert is_memref(type_)
    base = c.gep(ref.base, c.add(ref.offset, c.index(op.byte_shift)), i8)
    dynamic = iter(c.indices(op.sizes))
    sizes = tuple(next(dynamic) if size < 0 else size for size in type_.get_shape())
    strides: list[Index] = []
    stride: Index = 1
    for size in reversed(sizes):
        strides.append(stride)
        stride = c.mul(stride, size)
    c.bind(op.result, MemRefValue(base, 0, sizes, tuple(reversed(strides)), c.types(type_.element_type, op.result)))


@TABLE.on(memref.CollapseShapeOp)
def convert_collapse_shape(c: Converter, op: memref.CollapseShapeOp) -> None:
    """Merges groups of dimensions that are contiguous."""
    ref = c.memref(op.src)
    sizes: list[Index | None] = []
    strides: list[Index] = []
    for group in _groups(op.reassociation):
        size: Index = 1
        for dim in group:
            size = c.mul(size, ref.known_size(c, dim, op.src) if len(group) > 1 else ref.sizes[dim] or 1)
        sizes.append(size if len(group) != 1 else ref.sizes[group[0]])
        strides.append(ref.strides[group[-1]] if group else 1)
    c.bind(op.result, MemRefValue(ref.base, ref.offset, tuple(sizes), tuple(strides), ref.element))


@TABLE.on(memref.ExpandShapeOp)
def convert_expand_shape(c: Converter, op: memref.ExpandShapeOp) -> None:
    """Dimensions split into several."""
    ref = c.memref(op.src)
    sizes = _mixed(c, op.static_output_shape, op.output_shape)
    strides: list[Index] = [1] * len(sizes)
    for source, group in enumerate(_groups(op.reassociation)):
        stride = ref.strides[source]
        for dim in reversed(group):
            strides[dim] = stride
            stride = c.mul(stride, sizes[dim])
    c.bind(op.result, MemRefValue(ref.base, ref.offset, tuple(sizes), tuple(strides), ref.element))


def _groups(reassociation: Attribute) -> list[list[int]]:
    """The dimensions of each group."""
    assert isinstance(reassociation, ArrayAttr)
    return [
        [number.value.data for number in group.data if isinstance(number, IntegerAttr)]
        for group in reassociation.data
        if isinstance(group, ArrayAttr)
    ]
