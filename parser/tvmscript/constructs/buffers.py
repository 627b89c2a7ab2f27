"""Reads buffers and regions: `T.Buffer`, `T.match_buffer`, `T.alloc_buffer`, `A[0:4, i]`."""

from __future__ import annotations

from collections.abc import Mapping as MappingABC
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ArrayAttr, IntAttr, IntegerAttr, IntegerType, StringAttr, VectorType
from xdsl.ir import Attribute, SSAValue

from ....dialects.array import ArrayValueAttr, numpy_dtype
from ....dialects.tir.buffer import (
    AllocateConstOp,
    AllocateOp,
    AllocBufferOp,
    BufferOp,
    BufferRegionOp,
    DeclBufferOp,
    MatchBufferOp,
    StoreOp,
    accessed_type,
    buffer_name,
)
from ....dialects.tir.expr import VarOp
from ....dialects.tir.operators import Const, Value, as_const
from ....dialects.tir.stmt import PrefetchOp, RealizeOp
from ....dialects.tir.types import DYNAMIC, F32, I1, I32, BufferType, Dim, HandleType, RegionType, type_to_dtype
from ....support.text import counted
from ...python.literals import is_string
from ...python.tree import Call, Expr, Index, Sequence, Slice, Token
from ..arguments import list_items, named_arguments, read_annotations
from ..expressions import access_index, check_rank, expr, range_of, read_buffer, read_condition, scalar
from ..literals import literal_const, read_attribute, read_dtype, read_integer, read_string
from ..reader import Reader, describe, hint, segments
from ..registry import construct
from ..slice_extent import literal_int

FIELDS = (
    "shape", "dtype", "data", "strides", "elem_offset", "scope", "align", "offset_factor", "buffer_type", "axis_separators",
)  # fmt: skip


_DEFAULT_ALIGNMENT = 64


@dataclass
class BufferSpec:
    """A buffer as the text describes it; extents and strides are values, symbolic names already variables."""

    shape: list[SSAValue | Const] = field(default_factory=list["SSAValue | Const"])
    dtype: Attribute = F32
    data: SSAValue | None = None
    strides: list[SSAValue | Const] = field(default_factory=list["SSAValue | Const"])
    elem_offset: SSAValue | None = None
    scope: str = "global"
    properties: dict[str, Attribute] = field(default_factory=dict[str, Attribute])

    def simple(self) -> bool:
        """Returns whether the buffer can be a parameter: constant extents, compact, no other property."""
        return (
            all(isinstance(d, Const) for d in self.shape)
            and not self.strides
            and self.elem_offset is None
            and self.data is None
            and self.scope == "global"
            and not self.properties
        )

    def type(self) -> BufferType:
        """The buffer's type."""
        return BufferType(ArrayAttr([_dim(d) for d in self.shape]), self.dtype, StringAttr(self.scope))


def _dim(value: SSAValue | Const) -> Dim:
    return IntegerAttr(int(value.value), value.type) if isinstance(value, Const) else DYNAMIC  # pyright: ignore


def buffer_spec(reader: Reader, node: Call | Index, fields: list[Expr | None]) -> BufferSpec:
    """Reads the description of a buffer from a call's arguments in the order of `FIELDS`."""
    shape, dtype, data, strides, offset, scope, align, factor, kind, separators = fields
    spec = BufferSpec()
    spec.shape = [] if shape is None else read_dims(reader, shape, "a shape")
    given = shape.items if isinstance(shape, Sequence) else [shape]
    for node_of_size, size in zip(given, spec.shape, strict=True) if spec.shape else ():
        if isinstance(size, Const) and size.value < 0 and node_of_size is not None:
            reader.fail(node_of_size, f"the size of a buffer is not negative: this is {size.value}")
    if dtype is not None:
        spec.dtype = read_dtype(reader, dtype)
    if data is not None and data != "None":
        spec.data = scalar(reader, data)
        if isinstance(spec.data.type, BufferType):
            spec.data = reader.buffer_data(spec.data)
        if not isinstance(spec.data.type, HandleType):
            reader.fail(data, f"data= takes a handle, not {type_to_dtype(spec.data.type)}")
    if strides is not None and strides != "None":
        spec.strides = read_dims(reader, strides, "strides", inline_names=True)
        if len(spec.strides) > len(spec.shape):
            reader.fail(strides, f"{len(spec.strides)} strides are given for {counted(len(spec.shape), 'dimension')}")
    if offset is not None and offset != "None" and literal_int(offset) != 0:
        spec.elem_offset = reader.value(read_dim(reader, offset, inline_names=True))
    if scope is not None:
        spec.scope = read_string(reader, scope, "a storage scope") or "global"
    # A factor without an offset makes the offset a variable, which 1 leaves as it is; a stated offset has factor 1 by itself.
    for name, value, default in (
        ("data_alignment", align, (-1, 0, _DEFAULT_ALIGNMENT)),
        ("offset_factor", factor, (0,) if offset is None or offset == "None" else (0, 1)),
    ):
        number = None if value is None else read_integer(reader, value, name)
        if number is not None and number not in default:
            spec.properties[name] = IntegerAttr(number, I32)
    if kind is not None and (text := read_string(reader, kind, "a buffer type")) not in ("", "default"):
        if text != "auto":
            reader.fail(
                kind, f"unknown buffer type '{text}'", "it is 'default', or 'auto' (extents of 1 are broadcast)"
            )
        spec.properties["buffer_type"] = StringAttr(text)
    if isinstance(separators, Sequence) and separators.items:
        numbers = [read_integer(reader, s, "an axis separator") for s in separators.items]
        spec.properties["axis_separators"] = ArrayAttr([IntAttr(n) for n in numbers])
    reader.location = reader.at(node if isinstance(node, Call) else node.base)
    return spec


def read_dims(reader: Reader, node: Expr, what: str, *, inline_names: bool = False) -> list[SSAValue | Const]:
    """A shape or strides: a tuple, a list, or one number."""
    if isinstance(node, Sequence):
        return [read_dim(reader, item, inline_names=inline_names) for item in node.items]
    if isinstance(node, Slice):
        reader.fail(node, f"{what} is a tuple of numbers")
    return [read_dim(reader, node, inline_names=inline_names)]


def read_dim(reader: Reader, node: Expr, *, inline_names: bool = False) -> SSAValue | Const:
    """Reads one extent: a value, or a string that names a new variable.

    The variable is visible by its name unless `inline_names`.
    """
    if is_string(node):
        name = read_string(reader, node, "a name")
        reader.location = reader.at(node)
        known = reader.names.get(name)
        if known is not None and not inline_names:
            return known
        if inline_names:
            return reader.emit(VarOp(name))
        var = reader.emit(VarOp(reader.fresh(name)))
        reader.define(name, var)
        return var
    value = expr(reader, node)
    if isinstance(value, Const):
        if isinstance(value.value, float) or value.type == I1:
            reader.fail(node, f"an extent is an integer, not {value.value if value.type != I1 else bool(value.value)}")
        return value
    if not type_to_dtype(value.type).startswith(("int", "uint")):
        reader.fail(node, f"an extent is an integer, not {describe(value)}")
    return value


def buffer_annotation(reader: Reader, node: Expr) -> BufferSpec | None:
    """Reads the buffer of a parameter's annotation; None for an annotation other than `T.Buffer`."""
    if isinstance(node, Index) and node.base in ("T.Buffer", "T.match_buffer"):
        return buffer_spec(reader, node, old_fields(node))
    if isinstance(node, Call) and node.function in ("T.Buffer", "T.buffer_decl"):
        return buffer_spec(reader, node, named_arguments(reader, node, FIELDS, 1))
    return None


def old_fields(node: Index) -> list[Expr | None]:
    """`T.Buffer[(8,), "float32"]`, `T.Buffer[8, "float32"]`, `T.Buffer[(8, 8)]`: shape and dtype."""
    items = list(node.items)
    dtype = items.pop() if items and is_string(items[-1]) else None
    if dtype is None or len(items) != 1:
        shape: Expr = Sequence(items)
    else:
        shape = items[0]
    return [shape, dtype, *[None] * (len(FIELDS) - 2)]


def make_buffer(
    reader: Reader,
    op: type[BufferOp],
    name: str,
    spec: BufferSpec,
    source: SSAValue | None = None,
    properties: MappingABC[str, Attribute] | None = None,
) -> SSAValue:
    """Emits the op that makes a buffer, at the current location."""
    made = op(
        reader.fresh(name),
        spec.type(),
        source=source if source is not None else spec.data,
        data=None if source is None else spec.data,
        shape=[d for d in spec.shape if not isinstance(d, Const)],
        strides=[d for d in spec.strides if not isinstance(d, Const)],
        stride_dims=[_dim(d) for d in spec.strides],
        elem_offset=spec.elem_offset,
        properties={**spec.properties, **(properties or {})},
    )
    result = reader.emit(made)
    result.name_hint = hint(name)
    return result


def match_spec(reader: Reader, node: Call) -> tuple[BufferSpec, SSAValue]:
    """Reads `T.match_buffer(source, …)`: the buffer, and its source, a handle or a region."""
    source_node, *fields = named_arguments(reader, node, ("param", *FIELDS), 1)
    assert source_node is not None
    if isinstance(source_node, Index):
        source = read_region(reader, source_node)
        if fields[0] is None:
            return spec_of_region(reader, node, source), source
    else:
        source = scalar(reader, source_node)
        if isinstance(source.type, BufferType):
            source = whole_region(reader, source)
        elif not isinstance(source.type, HandleType):
            reader.fail(source_node, f"T.match_buffer takes a handle or a region, not {describe(source)}")
        if fields[0] is None:
            reader.fail(node, "T.match_buffer of a handle needs a shape")
    return buffer_spec(reader, node, fields), source


def spec_of_region(reader: Reader, node: Call, region: SSAValue) -> BufferSpec:
    """The buffer that a region is when no shape is given: the region's extents, the buffer's dtype."""
    made = region.owner
    assert isinstance(made, BufferRegionOp) and isinstance(made.buffer.type, BufferType)
    shape = [as_const(e) or e for e in made.extents]
    reader.location = reader.at(node)
    return BufferSpec(shape=list(shape), dtype=made.buffer.type.dtype, scope=made.buffer.type.scope.data)


@construct.definition("T.match_buffer")
def define_match(reader: Reader, name: str, call: Call) -> SSAValue:
    """`A = T.match_buffer(a, (16,))`."""
    spec, source = match_spec(reader, call)
    return make_buffer(reader, MatchBufferOp, name, spec, source)


@construct.definition("T.alloc_buffer")
def define_alloc(reader: Reader, name: str, call: Call) -> SSAValue:
    """`A = T.alloc_buffer((16,), "float32")`."""
    spec = buffer_spec(reader, call, named_arguments(reader, call, FIELDS, 1))
    return make_buffer(reader, AllocBufferOp, name, spec)


@construct.definition("T.decl_buffer")
def define_decl(reader: Reader, name: str, call: Call) -> SSAValue:
    """`A = T.decl_buffer((16,), data=p)`."""
    spec = buffer_spec(reader, call, named_arguments(reader, call, FIELDS, 1))
    return make_buffer(reader, DeclBufferOp, name, spec)


@construct.definition("T.Buffer", "T.buffer_decl")
def define_buffer(reader: Reader, name: str, call: Call) -> SSAValue:
    """`A = T.Buffer((16,), data=p)`."""
    spec = buffer_spec(reader, call, named_arguments(reader, call, FIELDS, 1))
    return make_buffer(reader, DeclBufferOp, name, spec, properties={"implicit": IntegerAttr(1, I1)})


@construct.definition("T.allocate")
def define_allocate(reader: Reader, name: str, node: Call) -> SSAValue:
    """`p = T.allocate([n], "float32", "global")`."""
    names = ("extents", "dtype", "scope", "condition", "annotations")
    extents_node, dtype, scope, condition, annotations = named_arguments(reader, node, names, 2)
    assert extents_node is not None
    extents = [reader.value(d) for d in read_dims(reader, extents_node, "the extents")]
    type_ = read_dtype(reader, dtype)
    guard = None
    if condition is not None and condition not in ("None", "True"):
        guard = read_condition(reader, condition, "the condition of T.allocate")
    reader.location = reader.at(node)
    op = AllocateOp(
        reader.fresh(name),
        extents,
        type_,
        "global" if scope is None else read_string(reader, scope, "a storage scope"),
        condition=guard,
        annotations=read_annotations(reader, annotations),
    )
    result = reader.emit(op)
    result.name_hint = hint(name)
    return result


@construct.definition("T.allocate_const")
def define_constant(reader: Reader, name: str, node: Call) -> SSAValue:
    """`p = T.allocate_const([1, 2], "int32", [2])`."""
    import numpy as np

    names = ("data", "dtype", "extents", "annotations")
    data, dtype, extents, annotations = named_arguments(reader, node, names, 3)
    type_ = read_dtype(reader, dtype)
    shape = [
        read_integer(reader, d, "an extent of T.allocate_const") for d in list_items(reader, extents, "the extents")
    ]
    numbers: list[int | float] = []
    pending: list[Expr] = [data] if data is not None else []
    while pending:
        part = pending.pop()
        if isinstance(part, Sequence):
            pending += reversed(part.items)
            continue
        const = literal_const(reader, part)
        if const is None:
            attr = read_attribute(reader, part)
            value = getattr(attr, "value", None)
            if value is None or not isinstance(value.data, int | float):
                reader.fail(part, "the data of T.allocate_const are numbers in the text")
            numbers.append(value.data)
        else:
            numbers.append(const.value)
    try:
        array = np.array(numbers).astype(numpy_dtype(type_to_dtype(type_))).reshape(shape)
    except (ValueError, TypeError, OverflowError):
        reader.fail(node, f"{len(numbers)} numbers do not fill the extents {shape}")
    reader.location = reader.at(node)
    result = reader.emit(
        AllocateConstOp(reader.fresh(name), ArrayValueAttr.of(array), type_, read_annotations(reader, annotations))
    )
    result.name_hint = hint(name)
    return result


def read_region(reader: Reader, node: Expr) -> SSAValue:
    """`A[i, 0:4]` (or a whole buffer `A`) as a region."""
    if not isinstance(node, Index):
        value = scalar(reader, node)
        if isinstance(value.type, RegionType):
            return value
        if not isinstance(value.type, BufferType):
            reader.fail(
                node, "a region of a buffer is expected here", "write A[i, 0:4], or the buffer's name for all of it"
            )
        reader.location = reader.at(node)
        return whole_region(reader, value)
    buffer = read_buffer(reader, node.base)
    check_rank(reader, buffer, len(node.items), node)
    mins: list[SSAValue] = []
    extents: list[SSAValue] = []
    for dim, item in enumerate(node.items):
        if isinstance(item, Slice):
            if item.step is not None and literal_int(item.step) != 1:
                reader.fail(item.step, "a region takes every element", "write start:stop")
            stop = item.stop if item.stop is not None else full_extent(reader, buffer, dim, item)
            start = item.start if item.start is not None else Token("NUMBER", "0")
            low, extent = range_of(reader, start, stop, extent_type(buffer, dim))
        else:
            low = access_index(reader, item)
            extent = reader.value(Const(1, low.type))
        if not isinstance(low.type, IntegerType | VectorType):
            reader.fail(item, f"a range is of integers, not {describe(low)}")
        mins.append(low)
        extents.append(extent)
    reader.location = reader.at(node)
    return reader.emit(BufferRegionOp(buffer, mins, extents))


def extent_type(buffer: SSAValue, dim: int) -> Attribute:
    """The dtype of a buffer's extent."""
    assert isinstance(buffer.type, BufferType)
    size = buffer.type.shape.data[dim]
    return size.type if isinstance(size, IntegerAttr) else I32


def full_extent(reader: Reader, buffer: SSAValue, dim: int, node: Slice) -> Expr:
    """The stop of a slice that has none."""
    assert isinstance(buffer.type, BufferType)
    size = buffer.type.shape.data[dim]
    if isinstance(size, IntegerAttr):
        return Token("NUMBER", str(size.value.data))
    reader.fail(node, "this dimension's extent is symbolic", "write where the slice stops")


def whole_region(reader: Reader, buffer: SSAValue) -> SSAValue:
    """The region of all of a buffer."""
    assert isinstance(buffer.type, BufferType)
    made = buffer.owner
    sizes = made.extents() if isinstance(made, BufferOp) else list(buffer.type.static_shape or ())
    types = [extent_type(buffer, dim) for dim in range(buffer.type.rank)]
    extents = [s if isinstance(s, SSAValue) else reader.value(Const(s, t)) for s, t in zip(sizes, types, strict=True)]
    mins = [reader.value(Const(0, e.type)) for e in extents]
    return reader.emit(BufferRegionOp(buffer, mins, extents))


@construct.statement("T.buffer_store")
def read_store(reader: Reader, call: Call) -> None:
    """`T.buffer_store(A, value, [i, j])`."""
    buffer, value, indices = named_arguments(reader, call, ("buffer", "value", "indices"), 3)
    assert buffer is not None and value is not None
    token = call.function
    assert isinstance(token, Token)
    store(reader, Index(buffer, list_items(reader, indices, "the indices")), expr(reader, value), token)


@construct.statement("T.realize", "T.ProducerRealize")
def read_realize(reader: Reader, call: Call) -> None:
    """`T.realize(A[0:16], "global")`, `T.ProducerRealize(A[0:16], condition)`."""
    producer = call.function == "T.ProducerRealize"
    names = ("region", "condition", "storage_scope") if producer else ("region", "storage_scope", "condition")
    region_node, second, third = named_arguments(reader, call, names, 1)
    assert region_node is not None
    scope, condition = (third, second) if producer else (second, third)
    region = read_region(reader, region_node)
    guard = None if condition is None else read_condition(reader, condition, "the condition of a realize")
    text = None if scope is None else read_string(reader, scope, "a storage scope")
    reader.location = reader.at(call)
    op = RealizeOp(region, text, guard, producer=producer)
    op.location = reader.location
    reader.ops.append(op)


@construct.statement("T.prefetch")
def read_prefetch(reader: Reader, call: Call) -> None:
    """`T.prefetch(A, [T.Range(0, 16)])`."""
    buffer_node, bounds = named_arguments(reader, call, ("buffer", "bounds"), 2)
    assert buffer_node is not None
    buffer = read_buffer(reader, buffer_node)
    mins: list[SSAValue] = []
    extents: list[SSAValue] = []
    for bound in list_items(reader, bounds, "the bounds of T.prefetch"):
        ends = bound.arguments if isinstance(bound, Call) else list_items(reader, bound, "a bound")
        if len(ends) != 2:
            reader.fail(bound, "a bound is a pair (start, stop)")
        low, extent = range_of(reader, ends[0], ends[1])
        mins.append(low)
        extents.append(extent)
    check_rank(reader, buffer, len(mins), call)
    reader.location = reader.at(call)
    region = reader.emit(BufferRegionOp(buffer, mins, extents))
    reader.ops.append(PrefetchOp.create(operands=(region,), location=reader.location))


def store(reader: Reader, target: Index, value: Value, token: Token) -> None:
    """`A[i, j] = value`: the value is cast as TVM does, except from float to integer."""
    position = len(reader.ops)
    buffer = read_buffer(reader, target.base)
    indices = [access_index(reader, item) for item in target.items]
    check_rank(reader, buffer, len(indices), target)
    reader.location = reader.at(token)
    assert isinstance(buffer.type, BufferType)
    wanted = accessed_type(buffer.type, [i.type for i in indices])
    if value.type != wanted:
        with reader.before(position):
            value = reader.convert(value, wanted, f"'{buffer_name(buffer)}' holds")
    stored = reader.value(value)
    reader.location = reader.at(target)
    op = StoreOp.create(
        operands=(buffer, *indices, stored),
        properties={"operandSegmentSizes": segments(1, len(indices), 0, 1)},
        location=reader.location,
    )
    reader.ops.append(op)


def masked_store(reader: Reader, base: Token, node: Call) -> None:
    """`A.vstore([T.Ramp(0, 1, 4)], value, predicate=p)`: lanes where p is false are not stored."""
    names = ("indices", "value", "predicate")
    indices_node, value_node, predicate_node = named_arguments(reader, node, names, 2)
    assert value_node is not None
    value = expr(reader, value_node)
    store(reader, Index(base, list_items(reader, indices_node, "the indices")), value, base)
    if predicate_node is not None:
        made = reader.ops.pop()
        assert isinstance(made, StoreOp)
        predicate = scalar(reader, predicate_node)
        reader.ops.append(StoreOp(made.value, made.buffer, list(made.indices), predicate))
        reader.ops[-1].location = made.location
        made.erase()
