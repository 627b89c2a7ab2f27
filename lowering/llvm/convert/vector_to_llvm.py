"""`vector`, and `vector_ext`'s gather and scatter, to `llvm`.

A vector of several dimensions is one of a single dimension, row-major: arithmetic works on it as it is, LLVM splits it
into registers, and extracting or inserting a row is a shuffle.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import llvm, vector
from xdsl.dialects.builtin import (
    AffineMapAttr,
    BFloat16Type,
    DenseIntOrFPElementsAttr,
    Float32Type,
    Float64Type,
    IntegerAttr,
    f32,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineMap

from ....dialects import llvm_ext, vector_ext
from ....dialects.interned import i32_array, vector_type
from ....dialects.tir.stmt import PREFETCH
from ....support.diagnostics import error_at
from ....support.operands import operands_of
from ....support.target import named
from .arith_to_llvm import extend_float, fastmath_of, in_f32, resize_integer, truncate_float
from .builder import GEP_ANYWHERE, NO_FASTMATH, NO_WRAP_SIGNED, WRAPS, Index
from .converter import Converter, HandlerTable
from .memref_descriptor import MemRefValue
from .memref_to_llvm import from_memory, is_set, load_element, store_element, to_memory
from .types import FLOAT_TYPES, PTR, element_of, is_memref, is_vector, lanes, with_element

TABLE = HandlerTable()

IN_MEMORY = "in_memory"
"""Attribute of a vector load or store whose memory is not that of registers: masks do not keep LLVM from anything there."""


def _shape(value: SSAValue) -> tuple[int, ...]:
    assert is_vector(value.type)
    return value.type.get_shape()


def _check_unit_stride(c: Converter, ref: MemRefValue, source: SSAValue) -> None:
    """Checks that a vector is loaded from and stored to adjacent elements."""
    if ref.strides and ref.strides[-1] != 1:
        raise error_at(
            c.location,
            f"a vector access needs a last dimension of stride 1, and that of {source.type} is "
            + ("not known to be" if not isinstance(ref.strides[-1], int) else f"{ref.strides[-1]}"),
            "use vector_ext.gather and vector_ext.scatter, or a layout whose last stride is 1",
        )


def _rows(shape: Sequence[int]) -> list[tuple[int, ...]]:
    """Returns the positions of the rows of a vector: every index of all dimensions but the last."""
    rows: list[tuple[int, ...]] = [()]
    for size in shape[:-1]:
        rows = [(*row, i) for row in rows for i in range(size)]
    return rows


def _row_address(c: Converter, ref: MemRefValue, indices: Sequence[Index], row: tuple[int, ...]) -> SSAValue:
    """Returns the address of a row: the trailing dimensions of the memref are the vector's."""
    shifted = list(indices)
    first = len(indices) - len(row) - 1
    for dim, step in enumerate(row):
        shifted[first + dim] = c.add(shifted[first + dim], step)
    return ref.address(c, shifted)


def _masked_width(c: Converter, op: Operation, element: Attribute, shape: Sequence[int]) -> int | None:
    """Returns the width of the masked vector that is faster than power-of-two pieces; None for pieces."""
    count = shape[0] if len(shape) == 1 else 0
    if IN_MEMORY not in op.attributes or count <= 4 or count & (count - 1) == 0:
        return None
    target = named(c.cpu)
    masks = target.has_masked_stores if isinstance(op, vector.StoreOp) else target.has_masks
    if not masks or not isinstance(element, Float32Type | Float64Type) or count > target.lanes(element.size):
        return None
    return 1 << (count - 1).bit_length()


def _first_lanes(c: Converter, count: int, width: int) -> SSAValue:
    """Returns the mask of the first `count` of `width` lanes."""
    type_ = vector_type(i1, width)
    return c.constant_attr(
        DenseIntOrFPElementsAttr.from_list(type_, [int(lane < count) for lane in range(width)]), type_
    )


@TABLE.on(vector.LoadOp)
def convert_load(c: Converter, op: vector.LoadOp) -> None:
    """Loads adjacent elements; row by row for a vector of several dimensions."""
    base, *places = operands_of(op)
    result = op.results[0]
    ref, shape = c.memref(base), _shape(result)
    _check_unit_stride(c, ref, base)
    indices = c.indices(places)
    if (width := _masked_width(c, op, ref.element, shape)) is not None:
        mask = _first_lanes(c, shape[-1], width)
        wide = _masked_load(c, ref, ref.address(c, indices), mask, c.poison(vector_type(ref.element, width)))
        c.bind(result, c.shuffle(wide, wide, range(shape[-1])))
        return
    if len(shape) <= 1:
        address = ref.address(c, indices)
        _prefetch(c, address, op.attributes.get(PREFETCH))
        c.bind(result, load_element(c, address, c.type_of(result), ref.alignment))
        return
    row_type = vector_type(ref.element, shape[-1])
    rows = [load_element(c, _row_address(c, ref, indices, row), row_type, ref.alignment) for row in _rows(shape)]
    c.bind(result, c.concatenate(rows))


def _prefetch(c: Converter, address: SSAValue, distance: Attribute | None) -> None:
    """Fetches the cache lines some bytes after an address, which may be beyond the memory's end.

    That at the distance is then in the second cache, into which it was fetched before: the first has buffers for few lines that are waited for,
    fewer than a core reads while memory answers.
    """
    if isinstance(distance, IntegerAttr):
        # An integer's address may be outside of the memory that a pointer belongs to.
        here = c.emit(llvm.PtrToIntOp, (address,), i64)
        for ahead, level in ((distance.value.data * FAR, SECOND_CACHE), (distance.value.data, FIRST_CACHE)):
            there = c.i64(c.add(here, ahead))
            read, kept, data = (c.constant(value, i32) for value in (0, level, 1))
            c.intrinsic("prefetch", (c.emit(llvm.IntToPtrOp, (there,), PTR), read, kept, data), None)


FAR = 3
"""How many times as far ahead lines are fetched into the second cache."""
FIRST_CACHE, SECOND_CACHE = 3, 2
"""LLVM's numbers of the caches that a line is fetched into (LangRef, "llvm.prefetch")."""


@TABLE.on(vector.StoreOp)
def convert_store(c: Converter, op: vector.StoreOp) -> None:
    """Stores adjacent elements; row by row for a vector of several dimensions."""
    source, base, *places = operands_of(op)
    ref, shape, value = c.memref(base), _shape(source), c.value(source)
    _check_unit_stride(c, ref, base)
    nontemporal = is_set(op.properties.get("nontemporal"))
    indices = c.indices(places)
    if not nontemporal and (width := _masked_width(c, op, ref.element, shape)) is not None:
        wide = c.shuffle(value, value, [lane if lane < shape[-1] else -1 for lane in range(width)])
        _masked_store(c, ref, ref.address(c, indices), _first_lanes(c, shape[-1], width), wide)
        return
    if len(shape) <= 1:
        store_element(c, value, ref.address(c, indices), ref.alignment, nontemporal)
        return
    for number, row in enumerate(_rows(shape)):
        part = c.shuffle(value, value, range(number * shape[-1], (number + 1) * shape[-1]))
        store_element(c, part, _row_address(c, ref, indices, row), ref.alignment, nontemporal)


def _masked_parts(c: Converter, ref: MemRefValue, value: SSAValue) -> list[range]:
    """Returns the ranges of lanes to load or store with one mask: those of a register.

    LLVM 22 splits wider ones wrongly: for x86 a half whose lanes are all left out was loaded whole.
    """
    count = lanes(value.type)
    width = max(1, named(c.cpu).lanes(ref.alignment))
    return [range(start, min(start + width, count)) for start in range(0, count, width)]


def _lane_address(c: Converter, address: SSAValue, lane: int, element: Attribute) -> SSAValue:
    """Returns the address of a lane, which may be past the end of the memory when the lane is left out."""
    properties: dict[str, Attribute] = {**GEP_ANYWHERE, "rawConstantIndices": i32_array(lane), "elem_type": element}
    return c.emit(llvm.GEPOp, (address,), address.type, properties)


def _masked_load(c: Converter, ref: MemRefValue, address: SSAValue, mask: SSAValue, otherwise: SSAValue) -> SSAValue:
    """Emits a load of the lanes whose mask is set."""
    other = to_memory(c, otherwise)
    parts = _masked_parts(c, ref, other)
    pieces: list[SSAValue] = []
    for part in parts:
        at, within, passed = address, mask, other
        if len(parts) > 1:
            at = _lane_address(c, address, part.start, element_of(other.type))
            within, passed = c.shuffle(mask, mask, part), c.shuffle(other, other, part)
        pieces.append(c.compute("masked.load", (at, c.constant(ref.alignment, i32), within, passed), passed.type))
    return from_memory(c, _joined(c, pieces), otherwise.type)


def _joined(c: Converter, pieces: Sequence[SSAValue]) -> SSAValue:
    """Vectors of one length, of which the last may be shorter, one after the other."""
    *whole, last = pieces
    if not whole or lanes(last.type) == lanes(whole[0].type):
        return c.concatenate(pieces)
    width, kept = lanes(whole[0].type), lanes(last.type)
    last = c.shuffle(last, last, [lane if lane < kept else -1 for lane in range(width)])
    joined = c.concatenate([*whole, last])
    return c.shuffle(joined, joined, range(len(whole) * width + kept))


def _masked_store(c: Converter, ref: MemRefValue, address: SSAValue, mask: SSAValue, value: SSAValue) -> None:
    """Stores the lanes whose mask is set."""
    stored = to_memory(c, value)
    parts = _masked_parts(c, ref, stored)
    for part in parts:
        at, within, piece = address, mask, stored
        if len(parts) > 1:
            at = _lane_address(c, address, part.start, element_of(stored.type))
            within, piece = c.shuffle(mask, mask, part), c.shuffle(stored, stored, part)
        c.intrinsic("masked.store", (piece, at, c.constant(ref.alignment, i32), within), None)


@TABLE.on(vector.MaskedLoadOp)
def convert_masked_load(c: Converter, op: vector.MaskedLoadOp) -> None:
    """Loads adjacent elements where the mask is set, touching no others; otherwise `pass_thru`."""
    ref = c.memref(op.base)
    _check_unit_stride(c, ref, op.base)
    address = ref.address(c, c.indices(op.indices))
    c.bind(op.result, _masked_load(c, ref, address, c.value(op.mask), c.value(op.pass_thru)))


@TABLE.on(vector.MaskedStoreOp)
def convert_masked_store(c: Converter, op: vector.MaskedStoreOp) -> None:
    """Stores adjacent elements where the mask is set."""
    ref = c.memref(op.base)
    _check_unit_stride(c, ref, op.base)
    _masked_store(c, ref, ref.address(c, c.indices(op.indices)), c.value(op.mask), c.value(op.value_to_store))


def _identity_in_bounds(op: vector.TransferReadOp | vector.TransferWriteOp, shape: Sequence[int]) -> bool:
    """Checks that a transfer's map is the minor identity; tells whether all of it is in bounds."""
    source = op.source.type
    if not is_memref(source):
        raise error_at(op, f"'{op.name}' on a tensor cannot be lowered", "bufferize first")
    rank = source.get_num_dims()
    map_ = op.permutation_map
    assert isinstance(map_, AffineMapAttr)
    if map_.data != AffineMap.minor_identity(rank, len(shape)):
        raise error_at(
            op, f"'{op.name}' with map {map_.data} cannot be lowered", "use the minor identity map, then vector.shuffle"
        )
    return all(flag.value.data != 0 for flag in op.in_bounds.data)


def _bounds_mask(c: Converter, ref: MemRefValue, index: Index, width: int, where: SSAValue) -> SSAValue:
    """Returns a mask of the lanes inside the last dimension."""
    size = ref.sizes[-1]
    if size is None:
        raise error_at(c.location, f"the size of the last dimension of {where.type} is not known here")
    left = c.add(size, c.mul(index, -1))
    return lanes_below(c, left, width)


def lanes_below(c: Converter, limit: Index, width: int) -> SSAValue:
    """Returns the mask of `width` lanes whose number is below `limit`."""
    numbers = vector_type(i64, width)
    steps = c.constant_attr(DenseIntOrFPElementsAttr.from_list(numbers, list(range(width))), numbers)
    return c.icmp("slt", steps, c.broadcast(c.i64(limit), numbers))


def _transfer_mask(
    c: Converter,
    op: vector.TransferReadOp | vector.TransferWriteOp,
    ref: MemRefValue,
    indices: list[Index],
    value: SSAValue,
) -> SSAValue | None:
    """Returns the lanes that a transfer touches, None for all."""
    shape = _shape(value)
    in_bounds = _identity_in_bounds(op, shape)
    if in_bounds and op.mask is None:
        return None
    if len(shape) != 1:
        raise error_at(op, f"'{op.name}' of {value.type} that is masked or out of bounds cannot be lowered", "use rows")
    mask = None if in_bounds else _bounds_mask(c, ref, indices[-1], shape[0], op.source)
    if op.mask is not None:
        given = c.value(op.mask)
        mask = given if mask is None else c.emit(llvm.AndOp, (given, mask), given.type)
    return mask


@TABLE.on(vector.TransferReadOp)
def convert_transfer_read(c: Converter, op: vector.TransferReadOp) -> None:
    """Lowers a transfer read to a load that yields the padding out of bounds."""
    ref, indices, shape = c.memref(op.source), c.indices(op.indices), _shape(op.result)
    _check_unit_stride(c, ref, op.source)
    mask = _transfer_mask(c, op, ref, indices, op.result)
    if mask is not None:
        type_ = c.type_of(op.result)
        assert is_vector(type_)
        padding = c.broadcast(c.value(op.padding), type_)
        c.bind(op.result, _masked_load(c, ref, ref.address(c, indices), mask, padding))
        return
    row_type = vector_type(ref.element, shape[-1])
    rows = [load_element(c, _row_address(c, ref, indices, row), row_type, ref.alignment) for row in _rows(shape)]
    c.bind(op.result, c.concatenate(rows))


@TABLE.on(vector.TransferWriteOp)
def convert_transfer_write(c: Converter, op: vector.TransferWriteOp) -> None:
    """Lowers a store that omits lanes out of bounds."""
    ref, indices, shape = c.memref(op.source), c.indices(op.indices), _shape(op.vector)
    _check_unit_stride(c, ref, op.source)
    mask, value = _transfer_mask(c, op, ref, indices, op.vector), c.value(op.vector)
    if mask is not None:
        _masked_store(c, ref, ref.address(c, indices), mask, value)
        return
    for number, row in enumerate(_rows(shape)):
        part = c.shuffle(value, value, range(number * shape[-1], (number + 1) * shape[-1])) if len(shape) > 1 else value
        store_element(c, part, _row_address(c, ref, indices, row), ref.alignment)


@TABLE.on(vector.CreateMaskOp)
def convert_create_mask(c: Converter, op: vector.CreateMaskOp) -> None:
    """Lowers the mask of the lanes below a number."""
    shape = _shape(op.mask_vector)
    if len(shape) != 1:
        raise error_at(op, f"a mask of type {op.mask_vector.type} cannot be lowered", "make one mask per row")
    c.bind(op.mask_vector, lanes_below(c, c.index(op.mask_dim_sizes[0]), shape[0]))


def lane_addresses(c: Converter, ref: MemRefValue, indices: Sequence[SSAValue], lane_indices: SSAValue) -> SSAValue:
    """Returns the address of each lane of a gather or scatter, as a vector of pointers."""
    numbers = vector_type(i64, lanes(lane_indices.type))
    offsets = resize_integer(c, lane_indices, numbers, True)
    if (stride := ref.strides[-1]) != 1:
        offsets = c.emit(llvm.MulOp, (offsets, c.broadcast(c.i64(stride), numbers)), numbers, NO_WRAP_SIGNED)
    base = ref.address(c, c.indices(indices))
    return c.append(llvm_ext.LaneAddressesOp(base, offsets, ref.memory_element)).result


@TABLE.on(vector_ext.GatherOp)
def convert_gather(c: Converter, op: vector_ext.GatherOp) -> None:
    """Lanes from anywhere in the last dimension."""
    ref, otherwise = c.memref(op.base), c.value(op.pass_thru)
    pointers = lane_addresses(c, ref, op.indices, c.value(op.index_vec))
    other = to_memory(c, otherwise)
    value = c.compute("masked.gather", (pointers, c.constant(ref.alignment, i32), c.value(op.mask), other), other.type)
    c.bind(op.result, from_memory(c, value, otherwise.type))


@TABLE.on(vector_ext.ScatterOp)
def convert_scatter(c: Converter, op: vector_ext.ScatterOp) -> None:
    """Lanes to anywhere in the last dimension."""
    ref, value = c.memref(op.base), c.value(op.value)
    pointers = lane_addresses(c, ref, op.indices, c.value(op.index_vec))
    c.intrinsic(
        "masked.scatter", (to_memory(c, value), pointers, c.constant(ref.alignment, i32), c.value(op.mask)), None
    )


# Lanes


@TABLE.on(vector.BroadcastOp)
def convert_broadcast(c: Converter, op: vector.BroadcastOp) -> None:
    """Broadcasts a scalar into every lane; a vector along new and size-1 dimensions."""
    result = op.results[0]
    type_ = c.type_of(result)
    assert is_vector(type_)
    source = c.value(operands_of(op)[0])
    if not lanes(source.type):
        c.bind(result, c.broadcast(source, type_))
        return
    target = _shape(op.vector)
    given = _shape(op.source)
    given = (1,) * (len(target) - len(given)) + given
    steps: list[int] = []
    step = 1
    for size in reversed(given):
        steps.append(0 if size == 1 else step)
        step *= size
    mask = [0]
    for size, stride in zip(target, reversed(steps), strict=True):
        mask = [base + i * stride for base in mask for i in range(size)]
    c.bind(op.vector, c.shuffle(source, source, mask))


@TABLE.on(vector.FMAOp)
def convert_fma(c: Converter, op: vector.FMAOp) -> None:
    """Lowers lhs * rhs + acc, rounded once."""
    c.bind(op.res, in_f32(c, c.operands(op), lambda values: c.compute("fma", values, values[0].type)))


def _row_range(shape: Sequence[int], position: Sequence[int]) -> range:
    """Returns the lanes of the part of a vector at `position`, an index per leading dimension."""
    size = 1
    for dim in shape[len(position) :]:
        size *= dim
    start = 0
    for index, dim in zip(position, shape, strict=False):
        start = start * dim + index
    return range(start * size, (start + 1) * size)


def _static_position(position: list[SSAValue | int], where: vector.ExtractOp | vector.InsertOp) -> list[int] | None:
    """Returns the position if constant; None for one dynamic lane of a vector of one dimension."""
    known = [index for index in position if isinstance(index, int)]
    if len(known) == len(position):
        return known
    vector_value = where.vector if isinstance(where, vector.ExtractOp) else where.dest
    if len(position) == 1 and len(_shape(vector_value)) == 1:
        return None
    raise error_at(where, "a dynamic position in a vector of several dimensions cannot be lowered", "use a constant")


@TABLE.on(vector.ExtractOp)
def convert_extract(c: Converter, op: vector.ExtractOp) -> None:
    """Extracts a lane, or a part of a vector of several dimensions."""
    source = c.value(op.vector)
    position = op.get_mixed_position()
    static = _static_position(position, op)
    if static is None:
        lane = position[0]
        assert isinstance(lane, SSAValue)
        c.bind(op.result, c.emit(llvm_ext.ExtractElementOp, (source, c.value(lane)), element_of(source.type)))
        return
    part = _row_range(_shape(op.vector), static)
    if is_vector(op.result.type):
        c.bind(op.result, c.shuffle(source, source, part))
    else:
        c.bind(op.result, c.emit(llvm_ext.ExtractElementOp, (source, c.i64(part[0])), element_of(source.type)))


@TABLE.on(vector.InsertOp)
def convert_insert(c: Converter, op: vector.InsertOp) -> None:
    """Replaces a lane, or a part, of a vector."""
    source, target = c.value(op.source), c.value(op.dest)
    position = op.get_mixed_position()
    static = _static_position(position, op)
    if static is None or not lanes(source.type):
        lane = c.value(position[0]) if static is None and isinstance(position[0], SSAValue) else None  # dynamic
        if lane is None:
            lane = c.i64(_row_range(_shape(op.dest), static or [])[0])
        c.bind(op.result, c.emit(llvm.InsertElementOp, (target, source, lane), target.type))
        return
    part = _row_range(_shape(op.dest), static)
    width = lanes(target.type)
    # Both operands of a shuffle have one length.
    wide = c.shuffle(source, source, [i if i < len(part) else -1 for i in range(width)])
    mask = [width + lane - part.start if lane in part else lane for lane in range(width)]
    c.bind(op.result, c.shuffle(target, wide, mask))


@TABLE.on(vector.ShuffleOp)
def convert_shuffle(c: Converter, op: vector.ShuffleOp) -> None:
    """Lowers rows of two vectors in a new order."""
    lhs, rhs = c.operands(op)
    shape = _shape(operands_of(op)[0])
    row = lanes(lhs.type) // shape[0] if shape else 1
    mask = [index * row + lane if index >= 0 else -1 for index in op.mask.get_values() for lane in range(row)]
    if lhs.type != rhs.type:
        # LLVM wants operands of one length: pad the shorter, and renumber what comes from the second.
        left, width = lanes(lhs.type), max(lanes(lhs.type), lanes(rhs.type))
        lhs, rhs = (c.shuffle(v, v, [i if i < lanes(v.type) else -1 for i in range(width)]) for v in (lhs, rhs))
        mask = [index if index < left else index - left + width for index in mask]
    c.bind(op.result, c.shuffle(lhs, rhs, mask))


@TABLE.on(vector.BitcastOp)
def convert_bitcast(c: Converter, op: vector.BitcastOp) -> None:
    """Lowers a bitcast to lanes of another type."""
    c.bind(op.result, c.emit(llvm.BitcastOp, (c.value(op.source),), c.type_of(op.result)))


REDUCTIONS = {
    **{"add": "add", "mul": "mul", "and": "and", "or": "or", "xor": "xor"},
    **{"minsi": "smin", "minui": "umin", "maxsi": "smax", "maxui": "umax"},
    **{"minnumf": "fmin", "maxnumf": "fmax", "minimumf": "fminimum", "maximumf": "fmaximum"},
}
COMBINERS: dict[str, type[llvm.AddOp | llvm.MulOp | llvm.AndOp | llvm.OrOp | llvm.XOrOp]] = {
    "add": llvm.AddOp,
    "mul": llvm.MulOp,
    "and": llvm.AndOp,
    "or": llvm.OrOp,
    "xor": llvm.XOrOp,
}


@TABLE.on(vector.ReductionOp)
def convert_reduction(c: Converter, op: vector.ReductionOp) -> None:
    """Combines all lanes and `acc`; float sums and products go lane by lane unless `reassoc` is set."""
    kind = op.kind.data.value
    lanes_value, acc = c.value(op.vector), None if op.acc is None else c.value(op.acc)
    narrow = element_of(lanes_value.type)
    bf16 = isinstance(narrow, BFloat16Type)
    if bf16:
        lanes_value = extend_float(c, lanes_value, with_element(lanes_value.type, f32))
        acc = None if acc is None else extend_float(c, acc, f32)
    element = element_of(lanes_value.type)
    flags = fastmath_of(op.fastmath) if isinstance(element, FLOAT_TYPES) else NO_FASTMATH
    if kind in ("add", "mul") and isinstance(element, FLOAT_TYPES):
        start = acc if acc is not None else c.constant(-0.0 if kind == "add" else 1.0, element)
        result = c.compute(f"vector.reduce.f{kind}", (start, lanes_value), element, flags)
    else:
        result = c.compute(f"vector.reduce.{REDUCTIONS[kind]}", (lanes_value,), element, flags)
        if acc is not None:
            result = _combine(c, kind, result, acc)
    c.bind(op.dest, truncate_float(c, result, narrow) if bf16 else result)


def _combine(c: Converter, kind: str, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
    """Combines two scalars as a reduction combines lanes."""
    if (op := COMBINERS.get(kind)) is not None:
        properties: dict[str, Attribute] = dict(WRAPS) if kind in ("add", "mul") else {}
        return c.emit(op, (lhs, rhs), lhs.type, properties)
    names = {"minnumf": "minnum", "maxnumf": "maxnum", "minimumf": "minimum", "maximumf": "maximum"}
    return c.compute(names.get(kind, REDUCTIONS[kind]), (lhs, rhs), lhs.type, NO_FASTMATH)
