"""Lowers `memref` to `llvm`: addresses are inbounds GEPs of a pointer, offsets plain integers.

A memref is never a struct: see `memref_descriptor.MemRefValue`. Static allocas go to the function's entry block; allocation
is libc's `aligned_alloc`, whose failure leaves the function with a status. A boolean takes a byte.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from xdsl.dialects import func, llvm, memref
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    BFloat16Type,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    IntegerAttr,
    IntegerType,
    SymbolRefAttr,
    UnitAttr,
    UnrealizedConversionCastOp,
    i1,
    i8,
    i64,
)
from xdsl.ir import Attribute, Block, SSAValue

from ....dialects import llvm_ext
from ....dialects.interned import integer
from ....support.diagnostics import error_at
from ....support.operands import operands_of
from .builder import NO_WRAP_SIGNED, Builder, Index
from .converter import Converter, HandlerTable
from .memref_descriptor import MemRefValue, from_bare_pointer
from .types import PTR, byte_size, element_of, in_memory, is_bool, is_memref, static_offset, static_strides

TABLE = HandlerTable()

DEFAULT_ALIGNMENT = 64
"""A cache line, and the width of the widest vectors."""
EXTERNAL = "mirstack.external"
"""Attribute of a memref.global whose storage whoever loads the code provides, under its name."""


# Elements


def is_set(flag: Attribute | None) -> bool:
    """Tells whether an optional flag is present and true."""
    return isinstance(flag, IntegerAttr) and flag.value.data != 0


def load_element(c: Builder, ptr: SSAValue, type_: Attribute, alignment: int) -> SSAValue:
    """Emits a load of a value of register type `type_`."""
    return from_memory(c, c.load(ptr, in_memory(type_), alignment), type_)


def store_element(c: Builder, value: SSAValue, ptr: SSAValue, alignment: int, nontemporal: bool = False) -> None:
    """Stores a value of any register type."""
    c.store(to_memory(c, value), ptr, alignment, nontemporal)


def from_memory(c: Builder, value: SSAValue, type_: Attribute) -> SSAValue:
    """Converts a value loaded as `in_memory(type_)` to `type_`."""
    return c.icmp("ne", value, c.constant(0, value.type)) if is_bool(element_of(type_)) else value


def to_memory(c: Builder, value: SSAValue) -> SSAValue:
    """Converts a register's value to `in_memory` of its type, to be stored."""
    return c.emit(llvm.ZExtOp, (value,), in_memory(value.type)) if is_bool(element_of(value.type)) else value


@TABLE.on(memref.LoadOp)
def convert_load(c: Converter, op: memref.LoadOp) -> None:
    """Lowers a load of one element."""
    memory, *places = operands_of(op)
    ref = c.memref(memory)
    c.bind(op.results[0], load_element(c, ref.address(c, c.indices(places)), ref.element, ref.alignment))


@TABLE.on(memref.StoreOp)
def convert_store(c: Converter, op: memref.StoreOp) -> None:
    """Lowers a store of one element."""
    value, memory, *places = operands_of(op)
    ref = c.memref(memory)
    nontemporal = is_set(op.properties.get("nontemporal"))
    store_element(c, c.value(value), ref.address(c, c.indices(places)), ref.alignment, nontemporal)


RMW_KINDS = {
    **{0: "fadd", 1: "add", 2: "xchg", 4: "max", 5: "umax", 7: "min", 8: "umin"},
    **{11: "or", 12: "and", 13: "fmax", 14: "fmin", 15: "xor"},
}
"""LLVM's atomic updates by the number of MLIR's `AtomicRMWKind`; it has others (multiplication, NaN-keeping maxima)."""


@TABLE.on(memref.AtomicRMWOp)
def convert_atomic_rmw(c: Converter, op: memref.AtomicRMWOp) -> None:
    """Lowers an atomic update; its result is the value before."""
    kind = RMW_KINDS.get(op.kind.value.data)
    if kind is None or isinstance(op.value.type, BFloat16Type) or op.value.type == i1:
        raise error_at(
            op,
            f"memref.atomic_rmw of kind {op.kind.value.data} on {op.value.type} cannot be lowered",
            f"LLVM's atomic updates are {', '.join(llvm_ext.ATOMIC_RMW_KINDS)}",
        )
    ref = c.memref(op.memref)
    address = ref.address(c, c.indices(op.indices))
    c.bind(op.result, c.append(llvm_ext.AtomicRMWOp(kind, address, c.value(op.value))).result)


# Storage


def _allocated(c: Converter, op: memref.AllocOp | memref.AllocaOp, base: SSAValue) -> MemRefValue:
    """Returns the memref that an allocation makes; its layout is row-major unless the type says otherwise."""
    type_ = op.memref.type
    dynamic = iter(c.indices(op.dynamic_sizes))
    sizes = tuple(next(dynamic) if size < 0 else size for size in type_.get_shape())
    strides: list[Index] = []
    following: Index = 1
    for size, stride in zip(reversed(sizes), reversed(static_strides(type_)), strict=True):
        strides.append(following if stride is None else stride)
        following = c.mul(strides[-1], size)
    return MemRefValue(base, 0, sizes, tuple(reversed(strides)), c.types(type_.element_type, op.memref))


def _extent(c: Converter, op: memref.AllocOp | memref.AllocaOp) -> tuple[MemRefValue, Index]:
    """Returns the memref of an allocation, with no base yet, and how many elements it spans."""
    if op.symbol_operands or static_offset(op.memref.type) != 0:
        raise error_at(op, f"an allocation of {op.memref.type} cannot be lowered", "allocate it without a layout")
    ref = _allocated(c, op, c.i64(0))
    span: Index = 1
    if ref.sizes:
        known = [ref.known_size(c, dim, op.memref) for dim in range(len(ref.sizes))]
        products = [c.mul(size, stride) for size, stride in zip(known, ref.strides, strict=True)]
        static = [product for product in products if isinstance(product, int)]
        span = max(static) if len(static) == len(products) else products[0]
        if 0 in known:
            span = 0
    return ref, span


@TABLE.on(memref.AllocaOp)
def convert_alloca(c: Converter, op: memref.AllocaOp) -> None:
    """Allocates on the stack: on entry to the function where the size is static, otherwise in place."""
    ref, span = _extent(c, op)
    element = ref.memory_element
    alignment = op.alignment.value.data if op.alignment is not None else max(ref.alignment, 16)
    if isinstance(span, int):
        base = c.alloca(element, span, alignment)
    elif not isinstance(op.parent_op(), func.FuncOp):
        raise error_at(
            op,
            "an alloca whose size is only known when running may not stand in a loop or branch: it would pile up",
            "use memref.alloc and memref.dealloc, or move it to the top of the function",
        )
    else:
        properties: dict[str, Attribute] = {"elem_type": element, "alignment": integer(alignment, i64)}
        base = c.emit(llvm.AllocaOp, (span,), PTR, properties)
    c.bind(op.memref, replace(ref, base=base))


@TABLE.on(memref.AllocOp)
def convert_alloc(c: Converter, op: memref.AllocOp) -> None:
    """Lowers an allocation to aligned memory of libc's."""
    ref, span = _extent(c, op)
    alignment = max(op.alignment.value.data if op.alignment is not None else DEFAULT_ALIGNMENT, ref.alignment)
    size = c.mul(span, ref.alignment)
    # aligned_alloc wants a multiple of the alignment, and may return null for 0 bytes: always at least one unit.
    if isinstance(size, int):
        rounded = c.i64((size // alignment + 1) * alignment)
    else:
        more = c.emit(llvm.AddOp, (size, c.i64(alignment)), i64, NO_WRAP_SIGNED)
        rounded = c.emit(llvm.AndOp, (more, c.i64(-alignment)), i64)
    name = c.declare("aligned_alloc", (i64, i64), PTR)
    base = c.call(name, (c.i64(alignment), rounded), PTR)
    assert base is not None
    c.heap.take(base)
    # xDSL's icmp takes integers only.
    address = c.emit(llvm.PtrToIntOp, (base,), i64)
    c.fail_unless(c.icmp("ne", address, c.i64(0)), "out of memory")
    c.bind(op.memref, replace(ref, base=base))


@TABLE.on(memref.DeallocOp)
def convert_dealloc(c: Converter, op: memref.DeallocOp) -> None:
    """Gives memory back."""
    base = c.memref(op.memref).base
    c.call(c.declare("free", (PTR,), None), (base,), None)
    c.heap.give_back(base, c.block.last_op)


@TABLE.on(memref.GlobalOp)
def convert_global(c: Converter, op: memref.GlobalOp) -> None:
    """Lowers a global array: constant, zero, or provided from outside."""
    element = in_memory(c.types(op.type.element_type))
    count = 1
    for size in op.type.get_shape():
        if size < 0:
            raise error_at(op, f"a global of type {op.type} has no size", "give every dimension a number")
        count *= size
    external = EXTERNAL in op.attributes
    value = op.initial_value if isinstance(op.initial_value, DenseIntOrFPElementsAttr) else None
    alignment = op.alignment.value.data if op.alignment is not None else DEFAULT_ALIGNMENT
    new = llvm.GlobalOp(
        llvm.LLVMArrayType(count, element),
        op.sym_name,
        "internal" if op.sym_visibility.data == "private" and not external else "external",
        constant=op.constant is not None,
        value=value,
        alignment=alignment,
    )
    new.location = op.location
    if value is None and not external:
        new.attributes["zero"] = UnitAttr()
    c.add_symbol(op.sym_name.data, new)


@TABLE.on(memref.GetGlobalOp)
def convert_get_global(c: Converter, op: memref.GetGlobalOp) -> None:
    """Lowers the address of a global."""
    type_ = op.memref.type
    assert is_memref(type_)
    pointer = c.emit(llvm.AddressOfOp, (), PTR, {"global_name": SymbolRefAttr(op.name_.root_reference.data)})
    c.bind(op.memref, from_bare_pointer(pointer, type_, c.types(type_.element_type, op.memref), op.memref))


# Shapes


@TABLE.on(memref.DimOp)
def convert_dim(c: Converter, op: memref.DimOp) -> None:
    """Lowers a size, by a constant dimension."""
    ref, dim = c.memref(op.source), c.index(op.index)
    if not isinstance(dim, int):
        raise error_at(op, "memref.dim with a dimension that is not constant cannot be lowered", "use arith.constant")
    if not 0 <= dim < len(ref.sizes):
        raise error_at(op, f"{op.source.type} has no dimension {dim}", f"dimensions go from 0 to {len(ref.sizes) - 1}")
    c.bind(op.result, c.i64(ref.known_size(c, dim, op.source)))


@TABLE.on(memref.RankOp)
def convert_rank(c: Converter, op: memref.RankOp) -> None:
    """Lowers the number of dimensions to a constant."""
    c.bind(op.rank, c.i64(len(c.memref(op.source).sizes)))


@TABLE.on(memref.ExtractAlignedPointerAsIndexOp)
def convert_extract_pointer(c: Converter, op: memref.ExtractAlignedPointerAsIndexOp) -> None:
    """Lowers the base address to a number."""
    c.bind(op.aligned_pointer, c.emit(llvm.PtrToIntOp, (c.memref(op.source).base,), i64))


@TABLE.on(memref.ExtractStridedMetaDataOp)
def convert_extract_metadata(c: Converter, op: memref.ExtractStridedMetaDataOp) -> None:
    """Lowers base, offset, sizes and strides, each for itself."""
    ref = c.memref(op.source)
    c.bind(op.base_buffer, MemRefValue(ref.base, 0, (), (), ref.element))
    c.bind(op.offset, c.i64(ref.offset))
    for dim, (size, stride) in enumerate(zip(op.sizes, op.strides, strict=True)):
        c.bind(size, c.i64(ref.known_size(c, dim, op.source)))
        c.bind(stride, c.i64(ref.strides[dim]))


@TABLE.on(memref.CastOp, memref.MemorySpaceCastOp)
def convert_memref_cast(c: Converter, op: memref.CastOp | memref.MemorySpaceCastOp) -> None:
    """Lowers a cast of a memref; facts of both types are kept."""
    if not is_memref(op.dest.type):
        raise error_at(op, f"unranked {op.dest.type} cannot be lowered", "use a memref of known rank")
    ref = c.memref(op.source)
    sizes = tuple(size if size >= 0 else known for size, known in zip(op.dest.type.get_shape(), ref.sizes, strict=True))
    c.bind(op.dest, replace(ref, sizes=sizes))


@TABLE.on(memref.AssumeAlignmentOp)
def convert_assume_alignment(c: Converter, op: memref.AssumeAlignmentOp) -> None:
    """Tells LLVM that the low bits of the address are zero."""
    ref = c.memref(op.memref).at_first_element(c)
    address = c.emit(llvm.PtrToIntOp, (ref.base,), i64)
    low = c.emit(llvm.AndOp, (address, c.i64(op.alignment.value.data - 1)), i64)
    c.intrinsic("assume", (c.icmp("eq", low, c.i64(0)),), None)
    c.bind(op.result, ref)


# Copies and casts to pointers


def loop_nest(c: Converter, sizes: Sequence[Index], body: Callable[[list[SSAValue]], None]) -> None:
    """Emits loops from 0 to each size around `body(indices)`, which must close the blocks it opens."""
    loops: list[tuple[Block, SSAValue, Block]] = []
    indices: list[SSAValue] = []
    for size in sizes:
        header, inside, after = Block(arg_types=[i64]), c.new_block(), c.new_block()
        c.branch(header, [c.i64(0)])
        c.enter(header)
        c.cond_branch(c.icmp("slt", header.args[0], c.i64(size)), inside, (), after, ())
        c.enter(inside)
        indices.append(header.args[0])
        loops.append((header, header.args[0], after))
    body(indices)
    for header, index, after in reversed(loops):
        c.branch(header, [c.emit(llvm.AddOp, (index, c.i64(1)), i64, NO_WRAP_SIGNED)])
        c.enter(after)


@TABLE.on(memref.CopyOp)
def convert_copy(c: Converter, op: memref.CopyOp) -> None:
    """Lowers a copy to memcpy where both sides are contiguous, otherwise to loops."""
    source, target = c.memref(op.source), c.memref(op.destination)
    sizes = [a if a is not None else target.known_size(c, dim, op.destination) for dim, a in enumerate(source.sizes)]
    if source.is_row_major() and target.is_row_major():
        count: Index = byte_size(source.memory_element)
        for size in sizes:
            count = c.mul(count, size)
        operands = (target.bare(c), source.bare(c), c.i64(count), c.constant(0, i1))
        c.intrinsic("memcpy", operands, None)
        return

    def body(indices: list[SSAValue]) -> None:
        value = c.load(source.address(c, indices), source.memory_element, source.alignment)
        c.store(value, target.address(c, indices), target.alignment)

    loop_nest(c, sizes, body)


@TABLE.on(UnrealizedConversionCastOp)
def convert_unrealized_cast(c: Converter, op: UnrealizedConversionCastOp) -> None:
    """Lowers a cast between a memref and the pointer to its first element."""
    if len(op.inputs) == len(op.outputs) == 1:
        source, result = op.inputs[0], op.outputs[0]
        if isinstance(source.type, llvm.LLVMPointerType) and is_memref(result.type):
            element = c.types(result.type.element_type, result)
            c.bind(result, from_bare_pointer(c.value(source), result.type, element, result))
            return
        if is_memref(source.type) and isinstance(result.type, llvm.LLVMPointerType):
            c.bind(result, c.memref(source).bare(c))
            return
        if not is_memref(source.type) and c.type_of(source) == c.type_of(result):
            c.bind(result, c.value(source))
            return
    raise error_at(
        op,
        f"no conversion from {', '.join(str(v.type) for v in op.inputs)} to {', '.join(str(v.type) for v in op.outputs)}",
        "only a memref and its pointer, or types with the same LLVM type, can be cast",
    )


# Views: no view moves an element; each is the arithmetic of an offset, of sizes and of strides


def _mixed(c: Converter, static: DenseArrayBase[IntegerType], dynamic: Sequence[SSAValue]) -> list[Index]:
    """Returns a list of numbers, some written in the op and some operands."""
    values = iter(c.indices(dynamic))
    return [next(values) if number == DYNAMIC_INDEX else int(number) for number in static.get_values()]


@TABLE.on(memref.ReinterpretCastOp)
def convert_reinterpret_cast(c: Converter, op: memref.ReinterpretCastOp) -> None:
    """Sets another offset, sizes and strides over the same buffer."""
    ref = c.memref(op.source)
    (offset,) = _mixed(c, op.static_offsets, op.offsets)
    sizes = tuple(_mixed(c, op.static_sizes, op.sizes))
    strides = tuple(_mixed(c, op.static_strides, op.strides))
    c.bind(op.result, MemRefValue(ref.base, offset, sizes, strides, ref.element))


@TABLE.on(memref.SubviewOp)
def convert_subview(c: Converter, op: memref.SubviewOp) -> None:
    """Lowers a window; dimensions of size 1 that the result type lacks are dropped."""
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
    """Returns the dimensions of a subview that its result type keeps: dropped ones are of size 1."""
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
    """Lowers bytes from some address on, as a memref of another type."""
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
    """Splits dimensions into several."""
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
    """Returns the dimensions of each group."""
    assert isinstance(reassociation, ArrayAttr)
    return [
        [number.value.data for number in group.data if isinstance(number, IntegerAttr)]
        for group in reassociation.data
        if isinstance(group, ArrayAttr)
    ]
