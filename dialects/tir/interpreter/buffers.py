"""Compiles buffers: matches, allocations, views of handles, symbolic variables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from xdsl.dialects.builtin import NoneType
from xdsl.ir import BlockArgument, Operation, SSAValue

from ....support.diagnostics import error_at
from ....support.text import counted
from ..buffer import (
    AllocateConstOp,
    AllocateOp,
    AllocBufferOp,
    BufferGetOp,
    BufferOp,
    BufferRegionOp,
    DeclBufferOp,
    MatchBufferOp,
    buffer_name,
)
from ..expr import VarOp, only_names
from ..stmt import AttrOp, IterVarOp
from ..types import lanes_of
from .compiler import Compiler, handles
from .frame import Frame, Step
from .memory import new_storage, view_of
from .values import Array, Pointer, Storage, Value, View, dtype_of, is_array

Operands = Sequence[int | SSAValue]


def resolved(c: Compiler, values: Operands) -> list[tuple[int, bool]]:
    """Returns (number, False) or (slot, True) of each."""
    return [(v, False) if isinstance(v, int) else (c.slot(v), True) for v in values]


def sizes(f: Frame, values: list[tuple[int, bool]], op: Operation) -> tuple[int, ...]:
    """Returns the numbers, the same in all running iterations."""
    result: list[int] = []
    for value, is_slot in values:
        number = f.v[value] if is_slot else value
        if isinstance(number, np.ndarray):
            if number.size == 0 or number.min() != number.max():
                raise error_at(op, "the shape of a buffer differs between iterations of the loops around")
            number = int(number.reshape(-1)[0])
        if number < 0:
            raise error_at(op, f"an extent of a buffer is {number}")
        result.append(number)
    return tuple(result)


@handles(VarOp)
def compile_var(c: Compiler, op: VarOp) -> Step | None:
    """Reserves the slot of a symbolic variable, which a buffer match or a thread binds, if anything does.

    The extent of an array is bound at once: the shape of a buffer that is matched earlier may use it.
    """
    match = _first_match(op)
    if isinstance(match, MatchBufferOp) and isinstance(match.source, BlockArgument) and op.result in match.extents():
        slot, source = c.slot(op.result), c.slot(match.source)
        place, lanes = match.extents().index(op.result), lanes_of(match.result.type.dtype)

        def bind(f: Frame) -> None:
            given: Any = f.v[source]
            array = given.array if isinstance(given, View) else given
            if is_array(array) and place < array.ndim - (lanes > 1):
                f.v[slot] = array.shape[place]

        return bind
    for use in op.result.uses:
        if isinstance(use.operation, MatchBufferOp | IterVarOp | AttrOp):
            return None
    if only_names(op):
        return None

    def step(f: Frame) -> None:
        raise error_at(
            op,
            f"variable '{op.var_name.data}' has no value",
            "a symbolic variable is bound by a T.match_buffer that names it in its shape, strides or elem_offset",
        )

    return step


class _Unknown:
    """The symbolic variables in a match: bound by the first match that names them, compared by others."""

    def __init__(self, c: Compiler, op: MatchBufferOp):
        self.op = op
        self.slots: dict[int, str] = {}
        for operand in (*op.shape, *op.strides, op.elem_offset):
            maker = None if operand is None else operand.owner
            if isinstance(maker, VarOp) and _first_match(maker) is op:
                self.slots[c.slot(maker.result)] = maker.var_name.data

    def settle(self, f: Frame, value: int | SSAValue, slot: int, actual: Value, what: str) -> None:
        """Binds the variable, or refuses a value that differs from the declared one."""
        if isinstance(value, SSAValue) and slot in self.slots:
            f.v[slot] = actual
            return
        expected = f.v[slot] if isinstance(value, SSAValue) else value
        if np.any(expected != actual):
            raise error_at(self.op, f"{what} of buffer '{self.op.var_name.data}' is {actual}, but must be {expected}")


def _first_match(variable: VarOp) -> Operation | None:
    """Returns the match that binds the variable: the first one in the text that uses it."""
    first: Operation | None = None
    for use in variable.result.uses:
        op = use.operation
        if isinstance(op, MatchBufferOp) and (
            first is None or (op.parent is first.parent and op.is_before_in_block(first))
        ):
            first = op
    return first


@handles(MatchBufferOp)
def compile_match_buffer(c: Compiler, op: MatchBufferOp) -> Step:
    if op.source is None:
        raise error_at(op, f"buffer '{op.var_name.data}' matches nothing")
    source, result, type = c.slot(op.source), c.slot(op.result), op.result.type
    unknown = _Unknown(c, op)
    extents, strides = op.extents(), op.stride_values()
    extent_slots = [c.slot(e) if isinstance(e, SSAValue) else -1 for e in extents]
    stride_slots = [c.slot(s) if isinstance(s, SSAValue) else -1 for s in strides or ()]
    offset_slot = -1 if op.elem_offset is None else c.slot(op.elem_offset)
    dtype, lanes, name = dtype_of(type.dtype, op), lanes_of(type.dtype), op.var_name.data
    region = op.source.owner
    is_parameter = not isinstance(region, BufferRegionOp)
    matched = buffer_name(region.buffer) if isinstance(region, BufferRegionOp) else name

    def settle_shape(f: Frame, shape: Sequence[int]) -> None:
        if len(shape) != len(extents):
            raise error_at(
                op, f"buffer '{name}' has {counted(len(extents), 'dimension')}, but what it matches has {len(shape)}"
            )
        # Variables first: an extent like n * 2 may come before the plain n.
        order = sorted(range(len(extents)), key=lambda i: extent_slots[i] not in unknown.slots)
        for i in order:
            unknown.settle(f, extents[i], extent_slots[i], shape[i], f"extent {i}")

    def match_argument(f: Frame) -> None:
        given: Any = f.v[source]
        if isinstance(given, Pointer):
            shape = sizes(f, resolved(c, extents), op)
            steps = None if strides is None else sizes(f, resolved(c, strides), op)
            f.v[result] = view_of(given.storage, dtype, shape, steps, given.offset, lanes, op)
            return
        if isinstance(given, View):
            given = given.array
        if not is_array(given):
            raise error_at(op, f"the argument for buffer '{name}' is not an array")
        view = argument_view(given, dtype, lanes, name, op)
        settle_shape(f, view.shape)
        if strides is not None:
            for i, stride in enumerate(strides):
                # The stride of an axis of one element is arbitrary.
                if isinstance(stride, SSAValue) or view.shape[i] > 1:
                    unknown.settle(f, stride, stride_slots[i], view.strides[i], f"stride {i}")
        if offset_slot in unknown.slots:
            f.v[offset_slot] = 0
        f.v[result] = view

    def match_region(f: Frame) -> None:
        parent, mins, spans = f.v[source]
        skipped = len(mins) - len(extents)
        if skipped < 0:
            raise error_at(
                op, f"buffer '{name}' has {counted(len(extents), 'dimension')}, but the region has {len(mins)}"
            )
        settle_shape(f, spans[skipped:])
        for number, (low, count, size) in enumerate(zip(mins, spans, parent.shape, strict=True)):
            outside = (low < 0) | (low + count > size)
            if np.any(outside if f.mask is None else outside & f.mask):
                raise error_at(
                    op,
                    f"buffer '{name}' is matched with what is outside of dimension {number} of '{matched}', which has {size}",
                    "match what is inside, or access the buffer itself under a condition",
                )
        # A view of flat memory is moved by its offset, any other by its indices.
        origin = mins if parent.base is None else [m + b for m, b in zip(mins, parent.base, strict=True)]
        offset = parent.offset + sum(m * s for m, s in zip(mins, parent.strides, strict=True))
        view = View(
            parent.array, tuple(spans[skipped:]), parent.storage, offset, parent.strides[skipped:], parent.lanes,
            () if parent.flat else (*parent.prefix, *origin[:skipped]),
            None if parent.flat else tuple(origin[skipped:]),
            parent.vector, parent.flat,
        )  # fmt: skip
        for slot, stride in zip(stride_slots, view.strides, strict=False):
            if slot in unknown.slots:
                f.v[slot] = stride
        if offset_slot in unknown.slots:
            f.v[offset_slot] = offset
        f.v[result] = view

    return match_argument if is_parameter else match_region


def argument_view(array: Array, dtype: np.dtype[Any], lanes: int, name: str, where: Operation) -> View:
    """Returns an argument's array as a buffer; handles see its memory only if that is contiguous."""
    if array.dtype != dtype:
        raise error_at(where, f"buffer '{name}' has dtype {dtype.name}, but its array has {array.dtype.name}")
    shape = array.shape if lanes == 1 else array.shape[:-1]
    if lanes > 1 and (not array.ndim or array.shape[-1] != lanes):
        raise error_at(
            where, f"the array of buffer '{name}' needs a last dimension of the {lanes} lanes of its element"
        )
    strides = tuple(s // dtype.itemsize for s in array.strides[: len(shape)])
    return View(array, tuple(shape), Storage(_memory_from(array)), 0, strides, vector=lanes)


def _memory_from(array: Array) -> Array:
    """Returns the contiguous memory of an array, from its first element on; empty if unknown.

    Without negative strides it is the memory between the first element and the last.
    """
    if array.flags.c_contiguous:
        return array.reshape(-1)
    if array.size and all(step >= 0 and step % array.itemsize == 0 for step in array.strides):
        last = sum((size - 1) * step // array.itemsize for size, step in zip(array.shape, array.strides, strict=True))
        return as_strided(array, (last + 1,), (array.itemsize,), writeable=array.flags.writeable)
    whole = array.base
    if not isinstance(whole, np.ndarray) or not whole.flags.c_contiguous or whole.dtype != array.dtype:
        return np.empty(0, array.dtype)
    return whole.reshape(-1)[(array.ctypes.data - whole.ctypes.data) // array.itemsize :]


@handles(BufferRegionOp)
def compile_region(c: Compiler, op: BufferRegionOp) -> Step:
    buffer, result = c.slot(op.buffer), c.slot(op.result)
    mins, extents = [c.slot(m) for m in op.mins], resolved(c, list(op.extents))

    def step(f: Frame) -> None:
        f.v[result] = (f.v[buffer], [f.v[m] for m in mins], sizes(f, extents, op))

    return step


@handles(AllocBufferOp)
def compile_alloc_buffer(c: Compiler, op: AllocBufferOp) -> Step:
    return _allocate(c, op)


def _allocate(c: Compiler, op: BufferOp) -> Step:
    result, extents = c.slot(op.result), resolved(c, op.extents())
    strides = op.stride_values()
    stride_slots = None if strides is None else resolved(c, strides)
    type = op.result.type
    dtype, lanes = dtype_of(type.dtype, op), lanes_of(type.dtype)

    def step(f: Frame) -> None:
        shape = sizes(f, extents, op)
        steps = None if stride_slots is None else sizes(f, stride_slots, op)
        if steps is None or 0 in shape:
            count = int(np.prod(shape, dtype=np.int64)) if shape else 1
        else:
            count = 1 + sum((e - 1) * s for e, s in zip(shape, steps, strict=True))
        storage = new_storage(f, count, dtype, op, lanes)
        f.v[result] = view_of(storage, dtype, shape, steps, 0, lanes, op)

    return step


@handles(DeclBufferOp)
def compile_decl_buffer(c: Compiler, op: DeclBufferOp) -> Step:
    if op.source is None:
        return _allocate(c, op)
    source, result, extents = c.slot(op.source), c.slot(op.result), resolved(c, op.extents())
    strides = op.stride_values()
    stride_slots = None if strides is None else resolved(c, strides)
    offset = None if op.elem_offset is None else c.slot(op.elem_offset)
    type = op.result.type
    dtype, lanes = dtype_of(type.dtype, op), lanes_of(type.dtype)
    # The flat views that lowering writes name a size, and are used with offsets into all of the memory.
    whole = (bool(op.implicit.value.data) or op.is_auto) and type.rank == 1 and lanes == 1 and strides is None

    def step(f: Frame) -> None:
        pointer = f.v[source]
        if isinstance(pointer, np.ndarray):
            pointer = Pointer(Storage(pointer.reshape(-1)))
        if not isinstance(pointer, Pointer):
            raise error_at(op, f"the data of buffer '{op.var_name.data}' is not a handle to memory")
        start = pointer.offset
        scale, other = pointer.storage.array.dtype.itemsize, dtype.itemsize
        if scale != other:
            start = start * scale // other
        if offset is not None:
            start = start + f.v[offset]
        steps = None if stride_slots is None else sizes(f, stride_slots, op)
        if whole and not isinstance(start, np.ndarray):
            shape = (max(0, pointer.storage.array.shape[-1] * scale // other - start),)
        else:
            shape = sizes(f, extents, op)
        f.v[result] = view_of(pointer.storage, dtype, shape, steps, start, lanes, op)

    return step


@handles(BufferGetOp)
def compile_buffer_get(c: Compiler, op: BufferGetOp) -> Step:
    buffer, result, field = c.slot(op.buffer), c.slot(op.result), op.field.data
    dim = None if op.dim is None else op.dim.value.data

    def step(f: Frame) -> None:
        view: View = f.v[buffer]
        match field:
            case "data":
                # The handle of a buffer is that of its memory, in which the buffer begins at its elem_offset.
                f.v[result] = Pointer(view.storage)
            case "elem_offset":
                f.v[result] = view.offset
            case "shape":
                f.v[result] = view.shape[dim or 0]
            case _:
                f.v[result] = view.strides[dim or 0]

    return step


@handles(AllocateOp)
def compile_allocate(c: Compiler, op: AllocateOp) -> Step:
    result, extents = c.slot(op.result), resolved(c, list(op.extents))
    dtype, lanes = dtype_of(op.dtype, op), lanes_of(op.dtype)

    def step(f: Frame) -> None:
        count = int(np.prod(sizes(f, extents, op), dtype=np.int64))
        f.v[result] = Pointer(new_storage(f, count, dtype, op, lanes))

    return step


@handles(AllocateConstOp)
def compile_allocate_const(c: Compiler, op: AllocateConstOp) -> None:
    pointee = op.result.type.pointee
    data: Array = np.asarray(op.data.array)
    if not isinstance(pointee, NoneType):
        data = data.astype(dtype_of(pointee, op))
    c.template[c.slot(op.result)] = Pointer(Storage(data.reshape(-1)))
