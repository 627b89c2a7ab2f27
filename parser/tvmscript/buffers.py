"""Buffers and regions: `T.Buffer`, `T.match_buffer`, `T.alloc_buffer`, `T.decl_buffer`, `T.allocate`, `A[0:4, i]`."""

from __future__ import annotations

from collections.abc import Mapping as MappingABC
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntAttr, IntegerAttr, IntegerType, StringAttr, VectorType
from xdsl.ir import Attribute, SSAValue

from ...dialects.array import ArrayValueAttr, numpy_dtype
from ...dialects.tir.arithmetic import NeOp
from ...dialects.tir.buffer import NO_ATTRS, AllocateConstOp, AllocateOp, BufferOp, BufferRegionOp
from ...dialects.tir.expr import VarOp
from ...dialects.tir.operators import Const
from ...dialects.tir.types import DYNAMIC, F32, I1, I32, BufferType, Dim, HandleType, RegionType, type_to_dtype
from ...support.text import counted
from ..python.tree import Call, Expr, Index, Sequence, Slice, Token
from .calls import Calls
from .expressions import hint
from .linear import literal_int

FIELDS = (
    "shape", "dtype", "data", "strides", "elem_offset", "scope", "align", "offset_factor", "buffer_type", "axis_separators",
)  # fmt: skip
_DEFAULT_ALIGNMENT = 64


@dataclass
class BufferSpec:
    """What the text says of a buffer; extents and strides as values, symbolic names already variables."""

    shape: list[SSAValue | Const] = field(default_factory=list["SSAValue | Const"])
    dtype: Attribute = F32
    data: SSAValue | None = None
    strides: list[SSAValue | Const] = field(default_factory=list["SSAValue | Const"])
    elem_offset: SSAValue | None = None
    scope: str = "global"
    properties: dict[str, Attribute] = field(default_factory=dict[str, Attribute])

    def simple(self) -> bool:
        """Whether the buffer can be a parameter: numbers for extents, compact, and nothing else said of it."""
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


class Buffers(Calls):
    """Reads what makes buffers, and regions of them."""

    def spec(self, node: Call | Index, fields: list[Expr | None]) -> BufferSpec:
        """The description that a call's arguments, in the order of `FIELDS`, give."""
        shape, dtype, data, strides, offset, scope, align, factor, kind, separators = fields
        spec = BufferSpec()
        spec.shape = [] if shape is None else self.dims(shape, "a shape")
        given = shape.items if isinstance(shape, Sequence) else [shape]
        for node_of_size, size in zip(given, spec.shape, strict=True) if spec.shape else ():
            if isinstance(size, Const) and size.value < 0 and node_of_size is not None:
                self.fail(node_of_size, f"the size of a buffer is not negative: this is {size.value}")
        if dtype is not None:
            spec.dtype = self.dtype(dtype)
        if data is not None and data != "None":
            spec.data = self.scalar(data)
            if isinstance(spec.data.type, BufferType):
                spec.data = self.buffer_data(spec.data)
            if not isinstance(spec.data.type, HandleType):
                self.fail(data, f"data= takes a handle, not {type_to_dtype(spec.data.type)}")
        if strides is not None and strides != "None":
            spec.strides = self.dims(strides, "strides", inline_names=True)
            if len(spec.strides) > len(spec.shape):
                self.fail(strides, f"{len(spec.strides)} strides are given for {counted(len(spec.shape), 'dimension')}")
        if offset is not None and offset != "None" and literal_int(offset) != 0:
            spec.elem_offset = self.value(self.dim(offset, inline_names=True))
        if scope is not None:
            spec.scope = self.string(scope, "a storage scope") or "global"
        # A factor without an offset makes the offset a variable, which 1 leaves as it is; a stated offset has factor 1 by itself.
        for name, value, default in (
            ("data_alignment", align, (-1, 0, _DEFAULT_ALIGNMENT)),
            ("offset_factor", factor, (0,) if offset is None or offset == "None" else (0, 1)),
        ):
            number = None if value is None else self.integer(value, name)
            if number is not None and number not in default:
                spec.properties[name] = IntegerAttr(number, I32)
        if kind is not None and (text := self.string(kind, "a buffer type")) not in ("", "default"):
            if text != "auto":
                self.fail(
                    kind, f"unknown buffer type '{text}'", "it is 'default', or 'auto' (extents of 1 are broadcast)"
                )
            spec.properties["buffer_type"] = StringAttr(text)
        if isinstance(separators, Sequence) and separators.items:
            numbers = [self.integer(s, "an axis separator") for s in separators.items]
            spec.properties["axis_separators"] = ArrayAttr([IntAttr(n) for n in numbers])
        self.location = self.at(node if isinstance(node, Call) else node.base)
        return spec

    def dims(self, node: Expr, what: str, *, inline_names: bool = False) -> list[SSAValue | Const]:
        """A shape or strides: a tuple, a list, or one number."""
        if isinstance(node, Sequence):
            return [self.dim(item, inline_names=inline_names) for item in node.items]
        if isinstance(node, Slice):
            self.fail(node, f"{what} is a tuple of numbers")
        return [self.dim(node, inline_names=inline_names)]

    def dim(self, node: Expr, *, inline_names: bool = False) -> SSAValue | Const:
        """One extent: a value, or a string that names a new variable (visible by its name unless `inline_names`)."""
        if self.is_string(node):
            name = self.string(node, "a name")
            self.location = self.at(node)
            known = self.names.get(name)
            if known is not None and not inline_names:
                return known
            if inline_names:
                return self.emit(VarOp(name))
            var = self.emit(VarOp(self.fresh(name)))
            self.define(name, var)
            return var
        value = self.expr(node)
        if isinstance(value, Const):
            if isinstance(value.value, float) or value.type == I1:
                self.fail(
                    node, f"an extent is an integer, not {value.value if value.type != I1 else bool(value.value)}"
                )
            return value
        if not type_to_dtype(value.type).startswith(("int", "uint")):
            self.fail(node, f"an extent is an integer, not {self.describe(value)}")
        return value

    def annotation(self, node: Expr) -> BufferSpec | None:
        """The buffer that a parameter's annotation describes, or None when it is no `T.Buffer`."""
        if isinstance(node, Index) and node.base in ("T.Buffer", "T.match_buffer"):
            return self.spec(node, self.old_fields(node))
        if isinstance(node, Call) and node.function in ("T.Buffer", "T.buffer_decl"):
            return self.spec(node, self.named_arguments(node, FIELDS, 1))
        return None

    def old_fields(self, node: Index) -> list[Expr | None]:
        """`T.Buffer[(8,), "float32"]`, `T.Buffer[8, "float32"]`, `T.Buffer[(8, 8)]`: shape and dtype."""
        items = list(node.items)
        dtype = items.pop() if items and self.is_string(items[-1]) else None
        if dtype is None or len(items) != 1:
            shape: Expr = Sequence(items)
        else:
            shape = items[0]
        return [shape, dtype, *[None] * (len(FIELDS) - 2)]

    def make_buffer(
        self,
        op: type[BufferOp],
        name: str,
        spec: BufferSpec,
        source: SSAValue | None = None,
        properties: MappingABC[str, Attribute] | None = None,
    ) -> SSAValue:
        """Emits the op that makes a buffer, at the current location."""
        made = op(
            self.fresh(name),
            spec.type(),
            source=source if source is not None else spec.data,
            data=None if source is None else spec.data,
            shape=[d for d in spec.shape if not isinstance(d, Const)],
            strides=[d for d in spec.strides if not isinstance(d, Const)],
            stride_dims=[_dim(d) for d in spec.strides],
            elem_offset=spec.elem_offset,
            properties={**spec.properties, **(properties or {})},
        )
        result = self.emit(made)
        result.name_hint = hint(name)
        return result

    def match_spec(self, node: Call) -> tuple[BufferSpec, SSAValue]:
        """What `T.match_buffer(source, …)` says, and its source: a handle, or a region."""
        source_node, *fields = self.named_arguments(node, ("param", *FIELDS), 1)
        assert source_node is not None
        if isinstance(source_node, Index):
            source = self.region(source_node)
            if fields[0] is None:
                return self.spec_of_region(node, source), source
        else:
            source = self.scalar(source_node)
            if isinstance(source.type, BufferType):
                source = self.whole(source)
            elif not isinstance(source.type, HandleType):
                self.fail(source_node, f"T.match_buffer takes a handle or a region, not {self.describe(source)}")
            if fields[0] is None:
                self.fail(node, "T.match_buffer of a handle needs a shape")
        return self.spec(node, fields), source

    def spec_of_region(self, node: Call, region: SSAValue) -> BufferSpec:
        """The buffer that a region is when no shape is given: the region's extents, the buffer's dtype."""
        made = region.owner
        assert isinstance(made, BufferRegionOp) and isinstance(made.buffer.type, BufferType)
        from ...dialects.tir.operators import as_const

        shape = [as_const(e) or e for e in made.extents]
        self.location = self.at(node)
        return BufferSpec(shape=list(shape), dtype=made.buffer.type.dtype, scope=made.buffer.type.scope.data)

    # Regions

    def region(self, node: Expr) -> SSAValue:
        """`A[i, 0:4]` (or a whole buffer `A`) as a region."""
        if not isinstance(node, Index):
            value = self.scalar(node)
            if isinstance(value.type, RegionType):
                return value
            if not isinstance(value.type, BufferType):
                self.fail(
                    node, "a region of a buffer is expected here", "write A[i, 0:4], or the buffer's name for all of it"
                )
            self.location = self.at(node)
            return self.whole(value)
        buffer = self.buffer(node.base)
        self.check_rank(buffer, len(node.items), node)
        mins: list[SSAValue] = []
        extents: list[SSAValue] = []
        for dim, item in enumerate(node.items):
            if isinstance(item, Slice):
                if item.step is not None and literal_int(item.step) != 1:
                    self.fail(item.step, "a region takes every element", "write start:stop")
                stop = item.stop if item.stop is not None else self.full_extent(buffer, dim, item)
                start = item.start if item.start is not None else Token("NUMBER", "0")
                low, extent = self.range_of(start, stop, self.extent_type(buffer, dim))
            else:
                low = self.access_index(item)
                extent = self.value(Const(1, low.type))
            if not isinstance(low.type, IntegerType | VectorType):
                self.fail(item, f"a range is of integers, not {self.describe(low)}")
            mins.append(low)
            extents.append(extent)
        self.location = self.at(node)
        return self.emit(BufferRegionOp(buffer, mins, extents))

    def extent_type(self, buffer: SSAValue, dim: int) -> Attribute:
        """The dtype of a buffer's extent."""
        assert isinstance(buffer.type, BufferType)
        size = buffer.type.shape.data[dim]
        return size.type if isinstance(size, IntegerAttr) else I32

    def full_extent(self, buffer: SSAValue, dim: int, node: Slice) -> Expr:
        """The stop of a slice that has none."""
        assert isinstance(buffer.type, BufferType)
        size = buffer.type.shape.data[dim]
        if isinstance(size, IntegerAttr):
            return Token("NUMBER", str(size.value.data))
        self.fail(node, "this dimension's extent is symbolic", "write where the slice stops")

    def whole(self, buffer: SSAValue) -> SSAValue:
        """The region of all of a buffer."""
        assert isinstance(buffer.type, BufferType)
        made = buffer.owner
        sizes = made.extents() if isinstance(made, BufferOp) else list(buffer.type.static_shape or ())
        types = [self.extent_type(buffer, dim) for dim in range(buffer.type.rank)]
        extents = [s if isinstance(s, SSAValue) else self.value(Const(s, t)) for s, t in zip(sizes, types, strict=True)]
        mins = [self.value(Const(0, e.type)) for e in extents]
        return self.emit(BufferRegionOp(buffer, mins, extents))

    # Allocations

    def allocate(self, node: Call, name: str) -> SSAValue:
        """`p = T.allocate([n], "float32", "global")`."""
        names = ("extents", "dtype", "scope", "condition", "annotations")
        extents_node, dtype, scope, condition, annotations = self.named_arguments(node, names, 2)
        assert extents_node is not None
        extents = [self.value(d) for d in self.dims(extents_node, "the extents")]
        type_ = self.dtype(dtype)
        guard = None
        if condition is not None and condition not in ("None", "True"):
            guard = self.condition(condition, "the condition of T.allocate")
        self.location = self.at(node)
        op = AllocateOp(
            self.fresh(name),
            extents,
            type_,
            "global" if scope is None else self.string(scope, "a storage scope"),
            condition=guard,
            annotations=self.annotations(annotations),
        )
        result = self.emit(op)
        result.name_hint = hint(name)
        return result

    def allocate_const(self, node: Call, name: str) -> SSAValue:
        """`p = T.allocate_const([1, 2], "int32", [2])`."""
        import numpy as np

        names = ("data", "dtype", "extents", "annotations")
        data, dtype, extents, annotations = self.named_arguments(node, names, 3)
        type_ = self.dtype(dtype)
        shape = [self.integer(d, "an extent of T.allocate_const") for d in self.items(extents, "the extents")]
        numbers: list[int | float] = []
        pending: list[Expr] = [data] if data is not None else []
        while pending:
            part = pending.pop()
            if isinstance(part, Sequence):
                pending += reversed(part.items)
                continue
            const = self.literal(part)
            if const is None:
                attr = self.attribute(part)
                value = getattr(attr, "value", None)
                if value is None or not isinstance(value.data, int | float):
                    self.fail(part, "the data of T.allocate_const are numbers in the text")
                numbers.append(value.data)
            else:
                numbers.append(const.value)
        try:
            array = np.array(numbers).astype(numpy_dtype(type_to_dtype(type_))).reshape(shape)
        except (ValueError, TypeError, OverflowError):
            self.fail(node, f"{len(numbers)} numbers do not fill the extents {shape}")
        self.location = self.at(node)
        result = self.emit(
            AllocateConstOp(self.fresh(name), ArrayValueAttr.of(array), type_, self.annotations(annotations))
        )
        result.name_hint = hint(name)
        return result

    def items(self, node: Expr | None, what: str) -> list[Expr]:
        """The items of a list or tuple; a single value stands for a list of it."""
        if node is None:
            return []
        if isinstance(node, Sequence):
            return node.items
        if isinstance(node, Slice):
            self.fail(node, f"{what} is a list")
        return [node]

    def annotations(self, node: Expr | None) -> DictionaryAttr:
        """`annotations={…}`, or none."""
        return NO_ATTRS if node is None or node == "None" else self.dictionary(node)

    def condition(self, node: Expr, what: str) -> SSAValue:
        """A bool; an integer is compared with zero, as Python does."""
        self.location = self.at(node)
        value = self.value(self.number_of(node))
        if isinstance(value.type, IntegerType) and value.type != I1:
            self.location = self.at(node)
            return self.value(self.binary(NeOp, value, Const(0, value.type)))
        if value.type != I1:
            self.fail(node, f"{what} must be bool, not {self.describe(value)}", "compare with '!= 0'")
        return value
