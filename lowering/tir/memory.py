"""Lowers buffers, allocations, loads and stores.

A buffer is a memref of its own shape where that is static and compact, otherwise a flat one.
"""

from __future__ import annotations

from math import prod

from xdsl.dialects import memref, vector
from xdsl.dialects.builtin import (
    IntegerType,
    MemRefType,
    UnitAttr,
    VectorType,
    i1,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects import tir, vector_ext
from ...dialects.interned import i32_array, i64_array, integer, memref_type, vector_type
from ...dialects.plain_op import SEGMENTS
from ...dialects.tir.buffer import AccessOp, BufferOp, buffer_name
from ...dialects.tir.stmt import PREFETCH
from ...dialects.tir.types import element_of, lanes_of
from ...support.diagnostics import error_at
from ...support.edit import create_op
from .emitter import INDEX
from .function import FunctionLowering, lowers
from .module_globals import ALIGNMENT
from .values import Buffer, Form, Index, Plain, Pointer, Ramp, convert_type, flat_type

# Memory of constant size up to this many bytes is on the stack; threads of a pool have small stacks.
STACK_BYTES = 32 * 1024
UNIT = UnitAttr()


def byte_width(element: Attribute) -> int:
    """Bytes of one element in memory."""
    if isinstance(element, IntegerType):
        return (element.width.data + 7) // 8
    return getattr(element, "bitwidth", 64) // 8


def compact_buffer(f: FunctionLowering, base: SSAValue, element: Attribute, extents: tuple[Index, ...]) -> Buffer:
    """Returns a buffer over a memref of its own static shape."""
    return Buffer(base, element, extents, False, compact_strides(f, extents), Index.of(0))


def compact_strides(f: FunctionLowering, extents: tuple[Index, ...]) -> tuple[Index, ...]:
    """Row-major strides, in elements."""
    strides: list[Index] = []
    stride = Index.of(1)
    for extent in reversed(extents):
        strides.append(stride)
        stride = f.index_mul(stride, extent)
    return tuple(reversed(strides))


def extents_of(f: FunctionLowering, op: BufferOp) -> tuple[Index, ...]:
    """Returns a buffer's extents; a symbolic one is at least 0."""
    found: list[Index] = []
    for extent in op.extents():
        if isinstance(extent, int):
            found.append(Index.of(extent))
        else:
            index = f.index(extent)
            found.append(index if index.low is not None else Index(index.value, 0, index.high))
    return tuple(found)


def is_static(extents: tuple[Index, ...]) -> bool:
    """Returns whether every extent is a number."""
    return all(isinstance(e.value, int) for e in extents)


def shape_of(extents: tuple[Index, ...]) -> list[int]:
    """Returns the extents as numbers."""
    return [e.value for e in extents if isinstance(e.value, int)]


def declare_view(f: FunctionLowering, op: BufferOp, pointer: Pointer) -> None:
    """Declares a buffer over the memory at `pointer`, with its own shape, strides and offset."""
    type_ = op.result.type
    item = convert_type(type_.dtype, op.result)
    element, lanes = element_of(item), lanes_of(item)
    extents = extents_of(f, op)
    strides = op.stride_values()
    offset = Index.of(0) if op.elem_offset is None else f.index(op.elem_offset)
    if strides is None and offset.value == 0 and is_static(extents) and lanes == 1:
        whole = memref_type(element, *shape_of(extents))
        base = pointer.base if pointer.base.type == whole else f.cast(pointer.base, whole)
        f.buffers[op.result] = compact_buffer(f, base, element, extents)
        return
    if strides is None:
        steps = compact_strides(f, extents)
    else:
        steps = tuple(Index.of(s) if isinstance(s, int) else f.index(s) for s in strides)
    f.buffers[op.result] = Buffer(f.view(pointer, element), element, extents, True, steps, offset, lanes)


@lowers(tir.MatchBufferOp)
def lower_match_buffer(f: FunctionLowering, op: tir.MatchBufferOp) -> None:
    """A view of a parameter (of a region of a buffer: `lower-match-buffer` has replaced those)."""
    if op.source is None or not isinstance(op.source.type, tir.HandleType):
        raise error_at(op, "T.match_buffer of a region must be lowered before", "run lower-match-buffer first")
    form = f.form(op.source)
    assert isinstance(form, Pointer)
    declare_view(f, op, form)
    f.buffers[op.result].base.name_hint = op.var_name.data


@lowers(tir.DeclBufferOp)
def lower_decl_buffer(f: FunctionLowering, op: tir.DeclBufferOp) -> None:
    """Declares a view of the memory at `data`, or allocates memory."""
    if op.source is None:
        allocate_buffer(f, op)
        return
    form = f.form(op.source)
    if not isinstance(form, Pointer):
        raise error_at(op, f"buffer '{op.var_name.data}' needs a handle as its data")
    declare_view(f, op, form)


@lowers(tir.AllocBufferOp)
def lower_alloc_buffer(f: FunctionLowering, op: tir.AllocBufferOp) -> None:
    """A buffer with memory of its own."""
    allocate_buffer(f, op)


def allocate_buffer(f: FunctionLowering, op: BufferOp) -> None:
    """Memory that lives until the region ends."""
    name = op.var_name.data
    scope = op.result.type.scope.data
    if scope.startswith(("wmma", "m16n8k8", "warp", "texture")):
        raise error_at(op, f"buffer '{name}' has scope '{scope}', which a CPU lacks", "compile for a GPU target")
    item = convert_type(op.result.type.dtype, op.result)
    element, lanes = element_of(item), lanes_of(item)
    extents = extents_of(f, op)
    strides = op.stride_values()
    if strides is None and lanes == 1 and is_static(extents):
        base = allocate(f, element, shape_of(extents), extents, scope)
        f.buffers[op.result] = compact_buffer(f, base, element, extents)
    else:
        steps = compact_strides(f, extents)
        if strides is not None:
            steps = tuple(Index.of(s) if isinstance(s, int) else f.index(s) for s in strides)
        count = Index.of(1)
        for extent, step in zip(extents, steps, strict=True):
            last = f.index_mul(f.index_add(extent, Index.of(-1)), step)
            count = f.index_add(count, last)
        count = f.index_mul(count, Index.of(lanes))
        base = allocate(f, element, None, (count,), scope)
        f.buffers[op.result] = Buffer(base, element, extents, True, steps, Index.of(0), lanes)
    base.name_hint = name


def allocate(
    f: FunctionLowering, element: Attribute, shape: list[int] | None, extents: tuple[Index, ...], scope: str
) -> SSAValue:
    """Allocates a memref of `shape`, or a flat one for all `extents`; on the stack where it is small."""
    if shape is None and is_static(extents):
        shape = [max(prod(shape_of(extents)), 1)]
    if shape is None:
        count = Index.of(1)
        for extent in extents:
            count = f.index_mul(count, extent)
        pointer = f.append(memref.AllocOp((f.ssa(count),), (), flat_type(element), integer(ALIGNMENT, i64))).memref
        f.frees[-1].append(pointer)
        return pointer
    type_ = memref_type(element, *shape)
    if prod(shape) * byte_width(element) <= STACK_BYTES:
        properties = {"alignment": integer(ALIGNMENT, i64), SEGMENTS: i32_array(0, 0)}
        return f.emit(memref.AllocaOp, (), type_, properties)
    # Loops around take it once, outside of themselves.
    block, depth = f.anchors[-1]
    op = memref.AllocOp((), (), type_, integer(ALIGNMENT, i64))
    op.location = f.location
    first = block.first_op
    if block is f.entry:
        first = f.first_after_hoisted()
    if first is None:
        block.add_op(op)
    else:
        block.insert_op_before(op, first)
    f.frees[depth].append(op.memref)
    return op.memref


@lowers(tir.AllocateOp)
def lower_allocate(f: FunctionLowering, op: tir.AllocateOp) -> None:
    """A handle to memory that lives until the region ends."""
    scope = op.scope.data
    if scope.startswith(("wmma", "warp", "texture")):
        raise error_at(op, f"'{op.var_name.data}' has scope '{scope}', which a CPU lacks", "compile for a GPU target")
    item = convert_type(op.dtype, op.result)
    element, lanes = element_of(item), lanes_of(item)
    extents = tuple(f.index(e) for e in op.extents)
    base = allocate(f, element, None, (*extents, Index.of(lanes)), scope)
    base.name_hint = op.var_name.data
    f.bind(op.result, Pointer(base, element))


@lowers(tir.AllocateConstOp)
def lower_allocate_const(f: FunctionLowering, op: tir.AllocateConstOp) -> None:
    """Constant data becomes a global of the module, one for equal data."""
    pointee = op.result.type.pointee
    element = element_of(convert_type(pointee, op.result))
    array = op.data.array.reshape(-1)
    type_ = MemRefType(element, [array.size])
    name = f.globals.constant(op, type_, array.tobytes(), op.var_name.data)
    base = f.append(memref.GetGlobalOp(name, type_)).memref
    base.name_hint = op.var_name.data
    f.bind(op.result, Pointer(base, element))


@lowers(tir.BufferGetOp)
def lower_buffer_get(f: FunctionLowering, op: tir.BufferGetOp) -> None:
    """Returns a field of a buffer: its data, offset, an extent or a stride."""
    buffer = f.buffer(op.buffer)
    dim = op.dim.value.data if op.dim is not None else 0
    match op.field.data:
        case "data":
            f.bind(op.result, Pointer(buffer.base, buffer.element))
        case "elem_offset":
            f.bind(op.result, buffer.offset)
        case "shape":
            f.bind(op.result, buffer.extents[dim])
        case _:
            f.bind(op.result, buffer.strides[dim])


# Accesses


def _indices(f: FunctionLowering, op: AccessOp) -> tuple[list[Index], Ramp | SSAValue | None]:
    """Returns the scalar indices, and the last index if it is a vector (its scalar is then 0)."""
    if not op.indices:
        return [], None
    scalars = [f.index(i) for i in op.indices[:-1]]
    last = op.indices[-1]
    form: Form = f.form(last)
    if isinstance(form, Ramp):
        return [*scalars, Index.of(0)], form
    if isinstance(form, Plain) and isinstance(form.value.type, VectorType):
        return [*scalars, Index.of(0)], form.value
    return [*scalars, f.index(last)], None


def _check_vectors(f: FunctionLowering, op: AccessOp, buffer: Buffer) -> None:
    if buffer.lanes > 1 and lanes_of(op.indices[-1].type) > 1:
        raise error_at(
            op,
            f"buffer '{buffer_name(op.buffer)}' of vectors is accessed with a vector index",
            "view its memory as a buffer of scalars",
        )


def _position(f: FunctionLowering, buffer: Buffer, indices: list[Index]) -> list[SSAValue]:
    """Indices of the memref for the element at `indices`."""
    if not buffer.flat:
        return [f.ssa(i) for i in indices]
    return [f.ssa(f.index_mul(f.linear(buffer, indices), Index.of(buffer.lanes)))]


def _spread(
    f: FunctionLowering, buffer: Buffer, indices: list[Index], vector_index: Ramp | SSAValue
) -> tuple[list[Index], Ramp | SSAValue]:
    """Returns the position of lane 0, and the lanes' distances in elements of the last dimension."""
    stride = buffer.strides[-1] if buffer.flat else Index.of(1)
    if isinstance(vector_index, Ramp):
        base = [*indices[:-1], vector_index.base]
        return base, Ramp(Index.of(0), f.index_mul(vector_index.stride, stride), vector_index.lanes)
    if stride.value == 1:
        return indices, vector_index
    type_ = VectorType(INDEX, vector_index.type.shape) if isinstance(vector_index.type, VectorType) else INDEX
    wide = f.cast_index(vector_index, type_)
    from xdsl.dialects import arith

    spread = f.broadcast(f.ssa(stride), lanes_of(type_))
    return indices, f.emit(arith.MuliOp, (wide, spread), type_)


def _mask(f: FunctionLowering, op: AccessOp, lanes: int) -> SSAValue | None:
    """Returns the lanes that are accessed; None: all."""
    predicate = getattr(op, "predicate", None)
    mask = None if predicate is None else f.plain(predicate)
    if isinstance(op, tir.LoadOp) and f.mask is not None and lanes_of(f.mask.type) == lanes:
        if mask is None:
            return f.mask
        from xdsl.dialects import arith

        return f.emit(arith.AndIOp, (mask, f.mask), mask.type)
    return mask


@lowers(tir.LoadOp)
def lower_load(f: FunctionLowering, op: tir.LoadOp) -> None:
    """One element, or a vector: contiguous, repeated or gathered."""
    buffer = f.buffer(op.buffer)
    _check_vectors(f, op, buffer)
    indices, vector_index = _indices(f, op)
    type_ = convert_type(op.result.type, op.result)
    lanes = lanes_of(type_)
    mask = _mask(f, op, lanes)
    if vector_index is None:
        position = _position(f, buffer, indices)
        if lanes > 1:
            _bind_load(f, op, _load_lanes(f, buffer, position, type_, mask, _in_registers(op)))
        elif mask is not None:
            raise error_at(op, "a scalar load takes no predicate", "write T.if_then_else around it")
        else:
            _bind_load(f, op, f.emit(memref.LoadOp, (buffer.base, *position), buffer.element))
        return
    base, spread = _spread(f, buffer, indices, vector_index)
    position = _position(f, buffer, base)
    if isinstance(spread, Ramp) and spread.stride.value == 1:
        _bind_load(f, op, _load_lanes(f, buffer, position, type_, mask, _in_registers(op)))
    elif isinstance(spread, Ramp) and spread.stride.value == 0 and mask is None:
        element = f.emit(memref.LoadOp, (buffer.base, *position), buffer.element)
        _bind_load(f, op, f.broadcast(element, lanes))
    elif (apart := _distance(buffer, spread, mask)) is not None and lanes > 2:
        _bind_load(f, op, _load_apart(f, buffer, base, type_, apart))
    else:
        offsets = f.ramp_vector(spread, INDEX) if isinstance(spread, Ramp) else spread
        if mask is None:
            mask = f.constant(1, vector_type(i1, lanes))
        passed = f.constant(0, type_)
        _bind_load(f, op, f.append(vector_ext.GatherOp(buffer.base, position, offsets, mask, passed)).result)


IN_MEMORY = "in_memory"
"""Attribute of a vector's load or store: what is accessed is not meant to be kept in registers."""


def _in_registers(op: AccessOp) -> bool:
    """Returns whether a buffer is meant to be kept in registers: those of scope local are."""
    type_ = op.buffer.type
    return isinstance(type_, tir.BufferType) and type_.scope.data == "local"


def _bind_load(f: FunctionLowering, op: tir.LoadOp, value: SSAValue) -> None:
    f.bind(op.result, Plain(value))


def _load_lanes(
    f: FunctionLowering,
    buffer: Buffer,
    position: list[SSAValue],
    type_: Attribute,
    mask: SSAValue | None,
    registers: bool = False,
) -> SSAValue:
    assert isinstance(type_, VectorType)
    if mask is None:
        load = create_op(vector.LoadOp, (buffer.base, *position), (type_,), {}, f.location)
        if not registers:
            load.attributes[IN_MEMORY] = UNIT
            if f.prefetch:
                load.attributes[PREFETCH] = integer(f.prefetch, i64)
        return f.append(load).result
    return f.append(vector.MaskedLoadOp(buffer.base, position, mask, f.constant(0, type_))).result


MOST_APART = 4
"""Lanes no further apart in memory than this are picked out of whole vectors; beyond, they are gathered."""


def _distance(buffer: Buffer, spread: Ramp | SSAValue, mask: SSAValue | None) -> int | None:
    """Returns the distance in memory between adjacent lanes of a ramp, where whole vectors hold them."""
    if mask is not None or not isinstance(spread, Ramp) or (buffer.flat and buffer.strides[-1].value != 1):
        return None
    stride = spread.stride.value
    return stride if isinstance(stride, int) and 2 <= stride <= MOST_APART else None


def _load_apart(f: FunctionLowering, buffer: Buffer, indices: list[Index], type_: Attribute, stride: int) -> SSAValue:
    """Loads every `stride`-th element from `indices` on, picked out of the vectors that hold them."""
    lanes, element = lanes_of(type_), element_of(type_)
    span = stride * (lanes - 1) + 1
    width = min(1 << (lanes - 1).bit_length(), span)
    starts = [*range(0, span - width, width), span - width]
    total: SSAValue | None = None
    # Lanes of vectors that are not loaded yet hold anything.
    picked = [min(lane * stride, width - 1) for lane in range(lanes)]
    for number, start in enumerate(starts):
        at = [*indices[:-1], f.index_add(indices[-1], Index.of(start))]
        value = f.emit(vector.LoadOp, (buffer.base, *_position(f, buffer, at)), vector_type(element, width))
        if total is not None:
            reached = starts[number - 1] + width
            places = [lane * stride for lane in range(lanes)]
            picked = [
                lanes + min(place - start, width - 1) if place >= reached else lane for lane, place in enumerate(places)
            ]
        mask = i64_array(*picked)
        total = f.emit(vector.ShuffleOp, (total or value, value), vector_type(element, lanes), {"mask": mask})
    assert total is not None
    return total


NONTEMPORAL = "tir.nontemporal"
"""Attribute of a `tir.store`: what it writes is not read again soon, so that it need not stay in the caches."""


@lowers(tir.StoreOp)
def lower_store(f: FunctionLowering, op: tir.StoreOp) -> None:
    """One element, or a vector: contiguous or scattered."""
    buffer = f.buffer(op.buffer)
    _check_vectors(f, op, buffer)
    indices, vector_index = _indices(f, op)
    value = f.plain(op.value)
    lanes = lanes_of(value.type)
    mask = _mask(f, op, lanes)
    if vector_index is None:
        position = _position(f, buffer, indices)
        if lanes > 1:
            _store_lanes(f, op, buffer, position, value, mask)
        elif mask is not None:
            raise error_at(op, "a scalar store takes no predicate", "write an if around it")
        else:
            f.act(memref.StoreOp, (value, buffer.base, *position))
        return
    base, spread = _spread(f, buffer, indices, vector_index)
    position = _position(f, buffer, base)
    if isinstance(spread, Ramp) and spread.stride.value == 1:
        _store_lanes(f, op, buffer, position, value, mask)
        return
    offsets = f.ramp_vector(spread, INDEX) if isinstance(spread, Ramp) else spread
    if mask is None:
        mask = f.constant(1, vector_type(i1, lanes))
    f.append(vector_ext.ScatterOp(buffer.base, position, offsets, mask, value))


def _store_lanes(
    f: FunctionLowering, op: Operation, buffer: Buffer, position: list[SSAValue], value: SSAValue, mask: SSAValue | None
) -> None:
    if mask is not None:
        f.append(vector.MaskedStoreOp(buffer.base, position, mask, value))
        return
    store = f.act(vector.StoreOp, (value, buffer.base, *position))
    if isinstance(op, tir.StoreOp) and not _in_registers(op):
        store.attributes[IN_MEMORY] = UNIT
    if NONTEMPORAL in op.attributes:
        from xdsl.dialects.builtin import BoolAttr

        store.properties["nontemporal"] = BoolAttr.from_bool(True)
