"""Buffers: the ops that make them, take them apart, load from them and store to them.

An op that defines a buffer holds the parts that its type cannot: symbolic extents, strides, element offset, alignment. A buffer
without strides is compact in row-major order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, IntegerType, NoneType, StringAttr, VectorType
from xdsl.ir import Attribute, BlockArgument, Operation, OpResult, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import MemoryAllocEffect, MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException

from ...support.effects import is_side_effect_free
from ...support.text import counted
from ..array import ArrayValueAttr
from ..assembly import (
    parse_attributes,
    parse_indexed_type,
    parse_indices,
    parse_optional,
    print_attributes,
    print_indexed,
    print_indexed_type,
    print_optional,
    resolve,
)
from ..extents import why_too_large
from ..interned import i32_array, string
from ..plain_op import SEGMENTS, PlainOp, value_of
from .types import I1, BufferType, HandleType, RegionType, element_of, is_scalable, lanes_of, type_to_dtype, with_lanes

if TYPE_CHECKING:
    from xdsl.parser import Parser
    from xdsl.printer import Printer

EMPTY = ArrayAttr[Attribute]([])
NO_ATTRS = DictionaryAttr({})


class BufferOp(PlainOp):
    """An op that defines a buffer named `var_name`.

    `source` is the buffer's memory: the handle of a match or declaration, the region of a match inside a block, absent where the op
    allocates. Extents that the type leaves open come from `shape`, in order; likewise `strides` for the open ones of `stride_dims`
    (empty: compact). A match with `data` uses the memory of that handle, and the source must be the same.
    """

    source = opt_operand_def()
    shape = var_operand_def()
    strides = var_operand_def()
    elem_offset = opt_operand_def()
    data = opt_operand_def()
    result = result_def(BufferType)

    var_name = prop_def(StringAttr)
    stride_dims = prop_def(ArrayAttr, default_value=EMPTY)
    data_alignment = opt_prop_def(IntegerAttr)
    offset_factor = opt_prop_def(IntegerAttr)
    buffer_type = opt_prop_def(StringAttr)
    axis_separators = opt_prop_def(ArrayAttr)

    irdl_options = (AttrSizedOperandSegments(as_property=True), ParsePropInAttrDict())
    assembly_format = (
        "$var_name (`from` $source^ `:` type($source))? (`shape` $shape^ `:` type($shape))? "
        "(`strides` $strides^ `:` type($strides))? (`offset` $elem_offset^ `:` type($elem_offset))? "
        "(`data` $data^ `:` type($data))? attr-dict `->` type($result)"
    )

    def __init__(
        self,
        name: str,
        type: BufferType,
        *,
        source: SSAValue | Operation | None = None,
        shape: Sequence[SSAValue | Operation] = (),
        strides: Sequence[SSAValue | Operation] = (),
        stride_dims: Sequence[Attribute] = (),
        elem_offset: SSAValue | Operation | None = None,
        data: SSAValue | Operation | None = None,
        properties: Mapping[str, Attribute] | None = None,
    ):
        super().__init__(
            operands=[
                [] if source is None else [source],
                list(shape),
                list(strides),
                [] if elem_offset is None else [elem_offset],
                [] if data is None else [data],
            ],
            properties={"var_name": string(name), "stride_dims": ArrayAttr(list(stride_dims)), **(properties or {})},
            result_types=[type],
        )

    @property
    def is_auto(self) -> bool:
        """Returns True for `buffer_type="auto"`, a lowered TE schedule's parameter of any strides."""
        return self.buffer_type is not None and self.buffer_type.data == "auto"

    def extents(self) -> list[int | SSAValue]:
        """Returns every extent: a number, or the operand that holds it."""
        return _merge(self.result.type.shape.data, self.shape)

    def stride_values(self) -> list[int | SSAValue] | None:
        """Returns every stride in elements, or None for a compact buffer.

        TVM's cache_index leaves buffers with too few strides: they are compact.
        """
        if len(self.stride_dims.data) != self.result.type.rank or not self.stride_dims.data:
            return None
        return _merge(self.stride_dims.data, self.strides)

    def verify_(self) -> None:
        name = self.var_name.data
        if _open(self.result.type.shape.data) != len(self.shape):
            raise VerifyException(
                f"buffer '{name}' has {counted(_open(self.result.type.shape.data), 'symbolic extent')}, but {counted(len(self.shape), 'value')} for them"
            )
        if len(self.stride_dims.data) > self.result.type.rank:
            raise VerifyException(
                f"buffer '{name}' has {counted(self.result.type.rank, 'dimension')}, but {counted(len(self.stride_dims.data), 'stride')}"
            )
        if _open(self.stride_dims.data) != len(self.strides):
            raise VerifyException(
                f"buffer '{name}' has {counted(_open(self.stride_dims.data), 'symbolic stride')}, but {counted(len(self.strides), 'value')} for them"
            )
        if not self.stride_dims.data:
            check_size(name, self.result.type)


def check_size(name: str, type: BufferType) -> None:
    """Raises VerifyException for a buffer of 2^63 bytes or more."""
    shape = type.static_shape
    if shape is not None and (reason := why_too_large(shape, type.dtype)) is not None:
        raise VerifyException(f"buffer '{name}' {reason}")


def _open(dims: Sequence[Attribute]) -> int:
    return sum(isinstance(d, NoneType) for d in dims)


def _merge(dims: Sequence[Attribute], values: Sequence[SSAValue]) -> list[int | SSAValue]:
    pending = iter(values)
    return [d.value.data if isinstance(d, IntegerAttr) else next(pending) for d in dims]


@irdl_op_definition
class MatchBufferOp(BufferOp):
    """`A = T.match_buffer(a, (m, n), …)`: of a handle parameter, or of a region in a block.

    A match of a parameter binds the symbolic variables in its shape.
    """

    name = "tir.match_buffer"
    traits = traits_def()


@irdl_op_definition
class AllocBufferOp(BufferOp):
    """`A = T.alloc_buffer((16, 16), "float32", scope="shared")`: memory that lives as long as the block."""

    name = "tir.alloc_buffer"
    traits = traits_def(MemoryAllocEffect())


@irdl_op_definition
class DeclBufferOp(BufferOp):
    """`A = T.decl_buffer((16,), data=p)`, a view of a handle's memory; without `data`, memory of its own.

    With `implicit` it is printed as `A = T.Buffer((16,), data=p)`, TVM's form for a view that no statement declares.
    """

    name = "tir.decl_buffer"
    implicit = prop_def(IntegerAttr, default_value=IntegerAttr(0, I1))
    traits = traits_def(MemoryAllocEffect())


@irdl_op_definition
class BufferGetOp(PlainOp):
    """`A.data`, `A.elem_offset`, `A.shape[i]`, `A.strides[i]`; `dim` is given for the last two."""

    name = "tir.buffer_get"
    assembly_format = "$buffer $field attr-dict `:` type($buffer) `->` type($result)"
    buffer = operand_def(BufferType)
    field = prop_def(StringAttr)
    dim = opt_prop_def(IntegerAttr)
    result = result_def()
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(Pure())

    def __init__(self, buffer: SSAValue | Operation, field: str, type: Attribute, dim: int | None = None):
        properties: dict[str, Attribute] = {"field": string(field)}
        if dim is not None:
            properties["dim"] = IntegerAttr(dim, 64)
        super().__init__(operands=[buffer], properties=properties, result_types=[type])

    def verify_(self) -> None:
        field = self.field.data
        if field not in ("data", "elem_offset", "shape", "strides"):
            raise VerifyException(f"a buffer has no field '{field}'; it has data, elem_offset, shape and strides")
        if (self.dim is not None) != (field in ("shape", "strides")):
            raise VerifyException(f"'{field}' is {'indexed by a dimension' if self.dim is None else 'one value'}")
        rank = buffer_type(self.buffer).rank
        if self.dim is not None and not 0 <= self.dim.value.data < rank:
            raise VerifyException(
                f"dimension {self.dim.value.data} of '{field}' is outside the buffer's {counted(rank, 'dimension')}"
            )


@irdl_op_definition
class BufferRegionOp(PlainOp):
    """The box `A[i:i + 4, j]`: a minimum and an extent per dimension (extent 1 for a single index)."""

    name = "tir.buffer_region"
    buffer = operand_def(BufferType)
    mins = var_operand_def()
    extents = var_operand_def()
    result = result_def(RegionType)
    traits = traits_def(Pure())
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(
        self,
        buffer: SSAValue | Operation,
        mins: Sequence[SSAValue | Operation],
        extents: Sequence[SSAValue | Operation],
    ):
        super().__init__(operands=[buffer, list(mins), list(extents)], result_types=[RegionType()])

    def verify_(self) -> None:
        rank = buffer_type(self.buffer).rank
        if len(self.mins) != rank or len(self.extents) != rank:
            raise VerifyException(
                f"a region of '{buffer_name(self.buffer)}' needs {counted(rank, 'range')}, not {len(self.mins)}"
            )
        for bound in (*self.mins, *self.extents):
            if not isinstance(element_of(bound.type), IntegerType):
                raise VerifyException(
                    f"a range of '{buffer_name(self.buffer)}' has dtype {type_to_dtype(bound.type)}; a range is of integers"
                )

    @classmethod
    def parse(cls, parser: Parser) -> BufferRegionOp:
        buffer, mins = parser.parse_unresolved_operand(), parse_indices(parser)
        extents = parse_indices(parser) if parser.parse_optional_keyword("by") is not None else []
        properties, attributes = parse_attributes(parser, cls)
        type, types = parse_indexed_type(parser, len(mins) + len(extents))
        properties[SEGMENTS] = i32_array(1, len(mins), len(extents))
        return cls.create(
            operands=resolve(parser, [buffer, *mins, *extents], [type, *types]),
            result_types=[RegionType()],
            properties=properties,
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        """Prints `tir.buffer_region %A[%i, %j] by [%m, %n] : !tir.buffer<…>`."""
        print_indexed(printer, self.buffer, self.mins, self.extents)
        print_attributes(printer, self)
        print_indexed_type(printer, self.buffer, [*self.mins, *self.extents])


def accessed_type(buffer: BufferType, indices: Sequence[Attribute]) -> Attribute:
    """Returns the type of the value that an access with indices of these types loads or stores."""
    lanes, scalable = lanes_of(buffer.dtype), False
    for index in indices:
        lanes *= lanes_of(index)
        scalable = scalable or is_scalable(index)
    return with_lanes(element_of(buffer.dtype), lanes, scalable)


class AccessOp(PlainOp):
    """Base of load and store: a vector (a ramp) as the last index accesses several elements."""

    buffer = operand_def(BufferType)
    indices = var_operand_def()

    def accessed_type(self) -> Attribute:
        """Returns the type of the value loaded or stored."""
        return accessed_type(buffer_type(self.buffer), [index.type for index in self.indices])

    def verify_indices(self) -> None:
        rank = buffer_type(self.buffer).rank
        name = buffer_name(self.buffer)
        if len(self.indices) != rank:
            raise VerifyException(
                f"buffer '{name}' has {counted(rank, 'dimension')}, but is accessed with {counted(len(self.indices), 'index')}"
            )
        for number, index in enumerate(self.indices):
            dtype = type_to_dtype(element_of(index.type))
            if not dtype.startswith(("int", "uint")):
                raise VerifyException(f"index {number} of '{name}' has dtype {dtype}; an index is an integer")
            if isinstance(index.type, VectorType) and number != rank - 1:
                raise VerifyException(f"index {number} of '{name}' is a vector; only the last index may be one")


@irdl_op_definition
class LoadOp(AccessOp):
    """`A[i, j]`."""

    name = "tir.load"
    buffer = operand_def(BufferType)
    indices = var_operand_def()
    predicate = opt_operand_def()
    result = result_def()
    traits = traits_def(MemoryReadEffect())
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(
        self,
        buffer: SSAValue | Operation,
        indices: Sequence[SSAValue | Operation],
        predicate: SSAValue | Operation | None = None,
    ):
        buffer = value_of(buffer)
        indices = [value_of(i) for i in indices]
        assert isinstance(buffer.type, BufferType)
        super().__init__(
            operands=[buffer, indices, [] if predicate is None else [predicate]],
            result_types=[accessed_type(buffer.type, [index.type for index in indices])],
        )

    def verify_(self) -> None:
        self.verify_indices()
        if self.result.type != self.accessed_type():
            raise VerifyException(
                f"a load from '{buffer_name(self.buffer)}' gives {type_to_dtype(self.accessed_type())}, not {type_to_dtype(self.result.type)}"
            )

    @classmethod
    def parse(cls, parser: Parser) -> LoadOp:
        buffer, indices = parser.parse_unresolved_operand(), parse_indices(parser)
        predicate = parse_optional(parser, "if")
        properties, attributes = parse_attributes(parser, cls)
        type, types = parse_indexed_type(parser, len(indices))
        parser.parse_punctuation("->")
        properties[SEGMENTS] = i32_array(1, len(indices), len(predicate))
        return cls.create(
            operands=[*resolve(parser, [buffer, *indices], [type, *types]), *predicate],
            result_types=[parser.parse_type()],
            properties=properties,
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        """Prints `tir.load %A[%i, %j] if %p : i1 : !tir.buffer<…> -> f32`."""
        print_indexed(printer, self.buffer, self.indices)
        print_optional(printer, "if", self.predicate)
        print_attributes(printer, self)
        print_indexed_type(printer, self.buffer, self.indices)
        printer.print_string(" -> ")
        printer.print_attribute(self.result.type)


@irdl_op_definition
class StoreOp(AccessOp):
    """`A[i, j] = value`."""

    name = "tir.store"
    buffer = operand_def(BufferType)
    indices = var_operand_def()
    predicate = opt_operand_def()
    value = operand_def()
    traits = traits_def(MemoryWriteEffect())
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(
        self,
        value: SSAValue | Operation,
        buffer: SSAValue | Operation,
        indices: Sequence[SSAValue | Operation],
        predicate: SSAValue | Operation | None = None,
    ):
        super().__init__(operands=[buffer, list(indices), [] if predicate is None else [predicate], value])

    def verify_(self) -> None:
        self.verify_indices()
        if self.value.type != self.accessed_type():
            raise VerifyException(
                f"'{buffer_name(self.buffer)}' holds {type_to_dtype(self.accessed_type())} here, but the value stored is {type_to_dtype(self.value.type)}; write a T.Cast"
            )

    @classmethod
    def parse(cls, parser: Parser) -> StoreOp:
        value = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        buffer, indices = parser.parse_unresolved_operand(), parse_indices(parser)
        predicate = parse_optional(parser, "if")
        properties, attributes = parse_attributes(parser, cls)
        type, types = parse_indexed_type(parser, len(indices))
        parser.parse_punctuation(",")
        properties[SEGMENTS] = i32_array(1, len(indices), len(predicate), 1)
        return cls.create(
            operands=[
                *resolve(parser, [buffer, *indices], [type, *types]),
                *predicate,
                parser.resolve_operand(value, parser.parse_type()),
            ],
            properties=properties,
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        """Prints `tir.store %v, %A[%i, %j] if %p : i1 : !tir.buffer<…>, f32`."""
        printer.print_string(" ")
        printer.print_operand(self.value)
        printer.print_string(",")
        print_indexed(printer, self.buffer, self.indices)
        print_optional(printer, "if", self.predicate)
        print_attributes(printer, self)
        print_indexed_type(printer, self.buffer, self.indices)
        printer.print_string(", ")
        printer.print_attribute(self.value.type)


@irdl_op_definition
class AllocateOp(PlainOp):
    """`p = T.allocate([n], "float32", "global")`: a handle to memory that lives until the block's end."""

    name = "tir.allocate"
    assembly_format = (
        "$var_name `,` $dtype `,` $scope (`[` $extents^ `]` `:` type($extents))? (`if` $condition^ `:` "
        "type($condition))? attr-dict `->` type($result)"
    )
    extents = var_operand_def()
    condition = opt_operand_def()
    var_name = prop_def(StringAttr)
    dtype = prop_def(Attribute)
    scope = prop_def(StringAttr)
    annotations = prop_def(DictionaryAttr, default_value=NO_ATTRS)
    result = result_def(HandleType)
    traits = traits_def(MemoryAllocEffect())
    irdl_options = (ParsePropInAttrDict(), AttrSizedOperandSegments(as_property=True))

    def __init__(
        self,
        name: str,
        extents: Sequence[SSAValue | Operation],
        dtype: Attribute,
        scope: str = "global",
        *,
        condition: SSAValue | Operation | None = None,
        annotations: DictionaryAttr = NO_ATTRS,
    ):
        super().__init__(
            operands=[list(extents), [] if condition is None else [condition]],
            properties={"var_name": string(name), "dtype": dtype, "scope": string(scope), "annotations": annotations},
            result_types=[HandleType.get(dtype, scope)],
        )


@irdl_op_definition
class AllocateConstOp(PlainOp):
    """`p = T.allocate_const(data, "float32", [n])`: a handle to constant data."""

    name = "tir.allocate_const"
    assembly_format = "$var_name `=` qualified($data) attr-dict `->` type($result)"
    var_name = prop_def(StringAttr)
    data = prop_def(ArrayValueAttr)
    annotations = prop_def(DictionaryAttr, default_value=NO_ATTRS)
    result = result_def(HandleType)
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(MemoryAllocEffect())

    def __init__(self, name: str, data: ArrayValueAttr, dtype: Attribute, annotations: DictionaryAttr = NO_ATTRS):
        super().__init__(
            properties={"var_name": string(name), "data": data, "annotations": annotations},
            result_types=[HandleType.get(dtype, "global")],
        )


def buffer_type(buffer: SSAValue) -> BufferType:
    """Returns the type of a buffer; op definitions verify that the value is one."""
    assert isinstance(buffer.type, BufferType)
    return buffer.type


def compact_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Returns row-major strides in elements."""
    strides: list[int] = []
    step = 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


def tells_region(load: LoadOp) -> bool:
    """Returns True for a load in a declared region, as of `I` in `T.reads(X[I[v]])`: it is not executed.

    Such a region is at the head of its block, outside of the conditions under which the block itself loads.
    """
    pending: list[SSAValue] = [load.result]
    seen: set[Operation] = set()
    found = False
    while pending:
        for use in pending.pop().uses:
            user = use.operation
            if user in seen:
                continue
            seen.add(user)
            if isinstance(user, BufferRegionOp):
                # Regions are used only in the declarations of blocks, or as a matched buffer.
                if any(isinstance(each.operation, MatchBufferOp) for each in user.result.uses):
                    return False
                found = True
            elif not user.results or not (isinstance(user, LoadOp) or is_side_effect_free(user)):
                return False
            else:
                pending += user.results
    return found


def buffer_name(buffer: SSAValue) -> str:
    """Returns the name of the buffer in the text."""
    if isinstance(buffer, OpResult) and isinstance(buffer.op, BufferOp):
        return buffer.op.var_name.data
    if isinstance(buffer, BlockArgument):
        names = getattr(buffer.block.parent_op(), "param_names", None)
        if isinstance(names, ArrayAttr) and isinstance(name := names.data[buffer.index], StringAttr):
            return name.data
    return buffer.name_hint or "buffer"
