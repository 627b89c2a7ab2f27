"""Defines buffers as Python nodes: memory with a shape, accessed by indices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....support.diagnostics import MirError
from ....support.source_text import characters
from ....support.text import counted
from .expr import (
    BUILD,
    Element,
    Expr,
    ExprLike,
    IntImm,
    Located,
    Range,
    Var,
    call,
    convert,
    current_location,
    fail,
    is_float,
    items_of,
    lanes_of,
    with_lanes,
)
from .shape import checked_dtype, dims_of, extents_of


class Buffer:
    """Memory of elements of a dtype: `b[i, j]` loads, `vstore` stores, `access_ptr` points.

    `data` is the variable that holds its address; `strides` are counted in elements, empty for a compact buffer. Two buffers
    are equal if they are one object.
    """

    is_buffer = True

    READ, WRITE = 1, 2
    """What an address is for, of `access_ptr`; both for `READ | WRITE`."""

    __slots__ = (
        "__weakref__", "_data", "axis_separators", "buffer_type", "data_alignment", "dims", "dtype", "elem_offset", "location",
        "name", "offset_factor", "storage_scope", "strides",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        dims: tuple[Expr, ...],
        dtype: str,
        *,
        data: Var | None = None,
        strides: tuple[Expr, ...] = (),
        elem_offset: Expr | None = None,
        scope: str = "global",
        data_alignment: int = 64,
        offset_factor: int = 1,
        buffer_type: str = "default",
        axis_separators: tuple[int, ...] = (),
        span: Located | None = None,
    ):
        self.name = characters(name)
        self.dims = dims
        self.dtype = dtype
        self._data = data
        self.strides = strides
        self.elem_offset = IntImm("int32", 0) if elem_offset is None else elem_offset
        self.storage_scope = scope
        self.data_alignment = data_alignment
        self.offset_factor = offset_factor
        self.buffer_type = buffer_type
        self.axis_separators = axis_separators
        self.location = current_location() if span is None else span.location

    def __repr__(self) -> str:
        return f"Buffer({self.name}: {self.dtype}{list(self.shape)})"

    def like(
        self,
        *,
        name: str | None = None,
        dims: tuple[Expr, ...] | None = None,
        strides: tuple[Expr, ...] | None = None,
        elem_offset: Expr | None = None,
        data: Var | None = None,
        scope: str | None = None,
    ) -> Buffer:
        """Returns a buffer that differs in what is given."""
        held = None if isinstance(self._data, BufferField) else self._data
        return Buffer(
            self.name if name is None else name, self.dims if dims is None else dims, self.dtype,
            data=held if data is None else data, strides=self.strides if strides is None else strides,
            elem_offset=self.elem_offset if elem_offset is None else elem_offset,
            scope=self.storage_scope if scope is None else scope, data_alignment=self.data_alignment,
            offset_factor=self.offset_factor, buffer_type=self.buffer_type, axis_separators=self.axis_separators,
        )  # fmt: skip

    def scope(self) -> str:
        """Returns the memory that it is stored in: `global`, `shared`, …"""
        return self.storage_scope

    def same_as(self, other: object) -> bool:
        """Returns whether the two are one buffer."""
        return self is other

    @property
    def shape(self) -> tuple[int | Expr, ...]:
        """Returns the extents: Python numbers where they are known int32, otherwise expressions."""
        return extents_of(self.dims)

    @property
    def data(self) -> Var:
        """Returns the variable that holds the address of the first element."""
        if self._data is None:
            self._data = BufferField(self, "data", "handle")
        return self._data

    def indices(self, given: ExprLike | Sequence[ExprLike]) -> tuple[Expr, ...]:
        """Returns indices as expressions. Raises MirError for a wrong number, or another dtype."""
        several = given if isinstance(given, (tuple, list)) else (given,)
        if len(several) != len(self.dims):
            raise self._wrong_rank(len(several))
        indices = tuple(convert(i, d.dtype) for i, d in zip(several, self.dims, strict=True))
        for number, index in enumerate(indices):
            if is_float(index.dtype) or index.dtype in ("handle", "bool"):
                raise fail(f"index {number} of '{self.name}' has dtype {index.dtype}; an index is an integer")
        return indices

    def _wrong_rank(self, count: int) -> MirError:
        return fail(
            f"buffer '{self.name}' has {counted(len(self.dims), 'dimension')}, but is accessed with {counted(count, 'index')}"
        )

    def __getitem__(self, indices: Any) -> Any:
        several = items_of(indices) or (indices,)
        if any(isinstance(index, slice) for index in several):
            return self._region(several)
        return BufferLoad(self, indices)

    def _region(self, several: tuple[Any, ...]) -> BufferRegion:
        """Returns the box of slices and indices: `A[0:4, i]`."""
        if len(several) != len(self.dims):
            raise self._wrong_rank(len(several))
        ranges: list[Range] = []
        for index, dim in zip(several, self.dims, strict=True):
            if isinstance(index, slice):
                low = convert(0 if index.start is None else index.start, dim.dtype)
                ranges.append(Range(low, dim if index.stop is None else convert(index.stop, dim.dtype)))
            else:
                ranges.append(Range.from_min_extent(convert(index, dim.dtype), IntImm(dim.dtype, 1)))
        return BufferRegion(self, ranges)

    def vload(self, begin: Any, dtype: str | None = None, predicate: Expr | None = None) -> Expr:
        """Returns the element at `begin`, or the vector of `dtype` that begins there."""
        return BufferLoad(self, self._ramp(begin, dtype or self.dtype), predicate=predicate)

    def vstore(self, begin: Any, value: ExprLike, predicate: Expr | None = None) -> Any:
        """Returns the statement that writes the element at `begin`, or the vector that begins there."""
        lanes = value.dtype if isinstance(value, Expr) else self.dtype
        return BUILD["store"](self, self._ramp(begin, lanes), value, predicate)

    def _ramp(self, begin: Any, dtype: str) -> tuple[Expr, ...]:
        """Returns the indices of as many elements in a row as a value of the dtype has."""
        several = items_of(begin)
        indices = tuple(map(convert, (begin,) if several is None else several))
        lanes = lanes_of(dtype) // lanes_of(self.dtype)
        if lanes <= 1 or not indices or lanes_of(indices[-1].dtype) > 1:
            return indices
        last = indices[-1]
        return (*indices[:-1], Ramp(last, IntImm(last.dtype, 1), lanes))

    def access_ptr(
        self,
        access_mask: str | int,
        ptr_type: str = "handle",
        content_lanes: int = 1,
        offset: ExprLike = 0,
        extent: ExprLike | None = None,
    ) -> Expr:
        """Returns a pointer that reads ("r"), writes ("w") or both ("rw") `extent` elements from `offset` on."""
        if isinstance(access_mask, str):
            if set(access_mask) - set("rw") or not access_mask:
                raise fail(f"the access mask of a buffer is 'r', 'w' or 'rw', not '{access_mask}'")
            access_mask = ("r" in access_mask) + 2 * ("w" in access_mask)
        if access_mask not in (1, 2, 3):
            raise fail("the access mask of a buffer is 'r', 'w' or 'rw'")
        if content_lanes < 1:
            raise fail("content_lanes of access_ptr is the number of elements accessed at once, 1 or more")
        subtract, multiply, divide = BUILD["-"], BUILD["*"], BUILD["//"]
        size: Expr = IntImm("int32", 1)
        for dim in self.dims:
            size = multiply(size, dim)
        begin = convert(offset, "int32")
        length = subtract(size, begin) if extent is None else convert(extent)
        if content_lanes > 1:
            length, begin = divide(length, content_lanes), divide(begin, content_lanes)
        annotation = call("type_annotation", (), with_lanes(self.dtype, content_lanes))
        return call("tvm_access_ptr", (annotation, self.data, begin, length, IntImm("int32", access_mask)), ptr_type)

    def get_flattened_buffer(self) -> Buffer:
        """Returns the same memory as a buffer of one dimension."""
        if len(self.dims) == 1 and not self.strides:
            return self
        size: Expr = IntImm("int32", 1)
        for dim in self.dims:
            size = BUILD["*"](size, dim)
        if self.strides:
            size = BUILD["*"](self.dims[0], self.strides[0])
        return Buffer(
            self.name, (size,), self.dtype, data=self.data, elem_offset=self.elem_offset, scope=self.storage_scope,
            data_alignment=self.data_alignment, offset_factor=self.offset_factor, buffer_type=self.buffer_type,
        )  # fmt: skip

    def offset_of(self, indices: Sequence[ExprLike]) -> list[Expr]:
        """Returns the place of an element in the flat buffer."""
        strides = list(self.strides)
        if not strides:
            size: Expr = IntImm("int32", 1)
            for dim in reversed(self.dims):
                strides.insert(0, size)
                size = BUILD["*"](size, dim)
        place: Expr = self.elem_offset
        for index, stride in zip(self.indices(tuple(indices)), strides, strict=True):
            place = BUILD["+"](place, BUILD["*"](index, stride))
        return [place]


class BufferField(Var):
    """Names what no variable of the program holds: `b.data`, `b.elem_offset`, `b.strides[0]`."""

    __slots__ = ("buffer", "dim", "field")

    def __init__(self, buffer: Buffer, field: str, dtype: str, dim: int | None = None):
        super().__init__(buffer.name, dtype)
        self.buffer = buffer
        self.field = field
        self.dim = dim


class BufferLoad(Element):
    """An element of a buffer, or the vector at a last index that is a vector."""

    __slots__ = ("buffer", "predicate")

    def __init__(self, buffer: Buffer, indices: Any, predicate: Expr | None = None, span: Located | None = None):
        found = buffer.indices(indices)
        lanes = lanes_of(buffer.dtype) * (lanes_of(found[-1].dtype) if found else 1)
        scalable = bool(found) and "xvscalex" in found[-1].dtype
        super().__init__(vector_dtype(element_dtype(buffer.dtype), lanes, scalable), found, span)
        self.buffer = buffer
        self.predicate = predicate

    @property
    def array_name(self) -> str:
        return self.buffer.name

    @property
    def indices(self) -> tuple[Expr, ...]:
        """Returns the indices."""
        return self.args


class Ramp(Expr):
    """The vector base, base + stride, …, of `lanes` elements; `is_scalable` for as many times `vscale`."""

    __slots__ = ("is_scalable", "lanes")

    def __init__(
        self, base: ExprLike, stride: ExprLike, lanes: int, span: Located | None = None, *, is_scalable: bool = False
    ):
        first, step = convert(base), convert(stride)
        if first.dtype != step.dtype:
            raise fail(f"base and stride of tir.Ramp have different dtypes: {first.dtype} and {step.dtype}")
        super().__init__(vector_dtype(first.dtype, int(lanes), is_scalable), (first, step), span)
        self.lanes = int(lanes)
        self.is_scalable = is_scalable

    @property
    def base(self) -> Expr:
        """Returns the first element."""
        return self.args[0]

    @property
    def stride(self) -> Expr:
        """Returns the distance of two elements."""
        return self.args[1]


class Broadcast(Expr):
    """A vector of `lanes` copies of a value; `is_scalable` for as many times `vscale`."""

    __slots__ = ("is_scalable", "lanes")

    def __init__(self, value: ExprLike, lanes: int, span: Located | None = None, *, is_scalable: bool = False):
        one = convert(value)
        super().__init__(vector_dtype(one.dtype, int(lanes), is_scalable), (one,), span)
        self.lanes = int(lanes)
        self.is_scalable = is_scalable

    @property
    def value(self) -> Expr:
        """Returns the value that is repeated."""
        return self.args[0]


class Shuffle(Expr):
    """Elements, by their number, of vectors one after the other; a scalar for one index."""

    __slots__ = ("indices",)

    def __init__(self, vectors: Sequence[ExprLike], indices: Sequence[int], span: Located | None = None):
        parts = tuple(map(convert, vectors))
        if not parts:
            raise fail("tir.Shuffle takes one vector or more")
        self.indices = [int(index) for index in indices]
        super().__init__(with_lanes(element_dtype(parts[0].dtype), len(self.indices)), parts, span)

    @property
    def vectors(self) -> tuple[Expr, ...]:
        """Returns the vectors."""
        return self.args


class Let(Expr):
    """A value with a name, used in `body`."""

    __slots__ = ("var",)

    def __init__(self, var: Var, value: ExprLike, body: ExprLike, span: Located | None = None):
        inner = convert(body)
        super().__init__(inner.dtype, (convert(value), inner), span)
        self.var = var

    @property
    def value(self) -> Expr:
        """Returns the value that is named."""
        return self.args[0]

    @property
    def body(self) -> Expr:
        """Returns the expression that uses it."""
        return self.args[1]


class BufferRegion:
    """A box of a buffer: a range for each dimension."""

    __slots__ = ("buffer", "region")

    def __init__(self, buffer: Buffer, region: Sequence[Range]):
        self.buffer = buffer
        self.region = list(region)

    def same_as(self, other: object) -> bool:
        """Returns whether the two are one object."""
        return self is other

    def __repr__(self) -> str:
        return f"{self.buffer.name}[{', '.join(f'{r.min}:{r.min + r.extent}' for r in self.region)}]"


class MatchBufferRegion:
    """A buffer of a block that is a box of another."""

    __slots__ = ("buffer", "source")

    def __init__(self, buffer: Buffer, source: BufferRegion):
        self.buffer = buffer
        self.source = source

    def __repr__(self) -> str:
        return f"MatchBufferRegion({self.buffer.name}, {self.source})"


def element_dtype(dtype: str) -> str:
    """Returns the dtype of a vector's elements: float32 of `float32x4` and of `float32xvscalex4`."""
    name, found, lanes = dtype.rpartition("x")
    return name.removesuffix("xvscale") if found and lanes.isdigit() else dtype


def vector_dtype(dtype: str, lanes: int, is_scalable: bool) -> str:
    """Returns the dtype of a vector of so many lanes, or of as many times `vscale`."""
    return f"{dtype}xvscalex{lanes}" if is_scalable else with_lanes(dtype, lanes)


def decl_buffer(
    shape: Any,
    dtype: str | None = None,
    name: str = "buffer",
    data: Var | None = None,
    strides: Sequence[ExprLike] | None = None,
    elem_offset: ExprLike | None = None,
    scope: str = "",
    data_alignment: int = -1,
    offset_factor: int = 0,
    buffer_type: str = "",
    axis_separators: Sequence[int] | None = None,
    span: Located | None = None,
) -> Buffer:
    """Creates a buffer; with an `offset_factor` its offset is a variable of its own.

    Raises MirError for a value that is not a shape.
    """
    dims = dims_of(shape)
    kind = checked_dtype(element_dtype(dtype or "float32"), f"buffer '{name}'")
    if offset_factor and elem_offset is None:
        elem_offset = Var(f"{name}_elem_offset", dims[0].dtype if dims else "int32")
    offset = None if elem_offset is None else convert(elem_offset)
    return Buffer(
        name, dims, with_lanes(kind, lanes_of(dtype or "float32")), data=data, strides=tuple(map(convert, strides or ())),
        elem_offset=offset, scope=scope or "global", data_alignment=64 if data_alignment < 0 else data_alignment,
        offset_factor=offset_factor or 1, buffer_type="auto_broadcast" if buffer_type == "auto_broadcast" else "default",
        axis_separators=tuple(map(int, axis_separators or ())), span=span,
    )  # fmt: skip
