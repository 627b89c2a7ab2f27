"""Defines tensors computed by statements: TVM's `extern`, its buffers, and `ir_builder`."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from xdsl.dialects.builtin import LocationAttr

from ...support.text import counted
from . import expr as ex
from .expr import Call, Const, Element, Expr, ExprLike, Var, convert, current_location, describe, fail, items_of
from .tensor import AttrValue, Dims, Operation, ShapeLike, Tensor, checked_dtype, dims_of


class Buffer:
    """A tensor's memory in an extern's body: `b[i, j]` loads, `vstore` stores, `access_ptr` points."""

    is_buffer = True

    def __init__(self, name: str, dims: Dims, dtype: str):
        self.name = name
        self.dims = dims
        self.dtype = dtype

    def __repr__(self) -> str:
        return f"Buffer({self.name}: {self.dtype}{list(self.shape)})"

    @property
    def shape(self) -> tuple[int | Expr, ...]:
        """Returns the extents, as `Tensor.shape`."""
        return tuple(d.value if isinstance(d, Const) and d.dtype == "int32" else d for d in self.dims)  # type: ignore[misc]

    @property
    def data(self) -> Expr:
        """Returns the pointer to the first element."""
        return BufferField(self, "data", "handle")

    def indices(self, given: ExprLike | Sequence[ExprLike]) -> tuple[Expr, ...]:
        """Indices as expressions, their number checked."""
        several = given if isinstance(given, (tuple, list)) else (given,)
        if len(several) != len(self.dims):
            raise fail(
                f"buffer '{self.name}' has {counted(len(self.dims), 'dimension')}, but is accessed with {counted(len(several), 'index')}"
            )
        indices = tuple(convert(i, d.dtype) for i, d in zip(several, self.dims, strict=True))
        for number, index in enumerate(indices):
            if ex.is_float(index.dtype) or index.dtype in ("handle", "bool"):
                raise fail(f"index {number} of '{self.name}' has dtype {index.dtype}; an index is an integer")
        return indices

    def __getitem__(self, indices: Any) -> Expr:
        return Load(self, self.indices(indices))

    def vload(self, begin: Any) -> Expr:
        """Returns the element at `begin`."""
        return self[begin]

    def vstore(self, begin: Any, value: ExprLike) -> Stmt:
        """Returns the statement that writes the element at `begin`."""
        return store(self, begin, value)

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
        if content_lanes != 1:
            raise fail("access_ptr is by scalar elements here: content_lanes is 1")
        size: Expr = Const(1, "int32")
        for dim in self.dims:
            size = ex.multiply(size, dim)
        begin = convert(offset, "int32")
        length = ex.subtract(size, begin) if extent is None else convert(extent)
        annotation = Call("type_annotation", (), self.dtype)
        return Call("tvm_access_ptr", (annotation, self.data, begin, length, Const(access_mask, "int32")), ptr_type)


class Load(Element):
    """An element of a buffer."""

    __slots__ = ("buffer",)

    def __init__(self, buffer: Buffer, indices: tuple[Expr, ...]):
        super().__init__(buffer.dtype, indices)
        self.buffer = buffer

    @property
    def array_name(self) -> str:
        return self.buffer.name


class BufferField(Expr):
    """`b.data`."""

    __slots__ = ("buffer", "field")

    def __init__(self, buffer: Buffer, field: str, dtype: str):
        super().__init__(dtype)
        self.buffer = buffer
        self.field = field


@dataclass
class Evaluate:
    """A value computed for its effects."""

    value: Expr
    location: LocationAttr = field(default_factory=current_location)


@dataclass
class Store:
    """`buffer[indices] = value`."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    value: Expr
    location: LocationAttr = field(default_factory=current_location)


@dataclass
class For:
    """A loop of `var` over `extent` values from `min`; `kind` as of `tir.for`."""

    var: Var
    min: Expr
    extent: Expr
    kind: str
    body: list[Stmt]
    location: LocationAttr = field(default_factory=current_location)


@dataclass
class If:
    """`if condition: then … else: orelse`."""

    condition: Expr
    then: list[Stmt]
    orelse: list[Stmt]
    location: LocationAttr = field(default_factory=current_location)


@dataclass
class Allocate:
    """Memory that lives until the end of the statements that it stands among."""

    buffer: Buffer
    scope: str = "global"
    location: LocationAttr = field(default_factory=current_location)


LOOP_KINDS = {
    "serial": "serial",
    "parallel": "parallel",
    "vectorize": "vectorized",
    "vectorized": "vectorized",
    "unroll": "unrolled",
    "unrolled": "unrolled",
}
"""How loops are called, and their kind."""

Stmt: TypeAlias = "Evaluate | Store | For | If | Allocate"


def store(buffer: Buffer, indices: Any, value: ExprLike) -> Store:
    """Returns `buffer[indices] = value`; Python numbers take the buffer's dtype, others must have it."""
    source = ex.const(value, buffer.dtype) if isinstance(value, (int, float)) else convert(value)
    if source.dtype != buffer.dtype:
        raise fail(
            f"'{buffer.name}' holds {buffer.dtype}, but the value stored is {source.dtype}",
            f'write .astype("{buffer.dtype}") where it is meant',
        )
    return Store(buffer, buffer.indices(indices), source)


def loop(var: Var, begin: ExprLike, end: ExprLike, kind: str, body: list[Stmt]) -> For:
    """Returns a loop from begin up to but not including end."""
    low, high = ex.match_types(convert(begin), convert(end), "range")
    return For(var, low, ex.distance(low, high), kind, body)


class ExternOp(Operation):
    """A tensor by statements on buffers."""

    def __init__(
        self,
        name: str,
        inputs: tuple[Tensor, ...],
        in_buffers: tuple[Buffer, ...],
        out_buffers: tuple[Buffer, ...],
        tag: str,
        attrs: Mapping[str, AttrValue] | None,
    ):
        super().__init__(name, tag, attrs)
        self.inputs = inputs
        self.in_buffers = in_buffers
        self.out_buffers = out_buffers
        self.body: list[Stmt] = []

    @property
    def input_tensors(self) -> list[Tensor]:
        return list(self.inputs)


def extern(
    shape: ShapeLike | Sequence[ShapeLike],
    inputs: Sequence[Tensor],
    fcompute: Callable[[Sequence[Buffer], Sequence[Buffer]], Any],
    name: str = "extern",
    dtype: str | Sequence[str] | None = None,
    tag: str = "",
    attrs: Mapping[str, AttrValue] | None = None,
) -> Any:
    """Creates tensors that statements compute.

    Args:
        shape: the result's shape, or a list of the results' shapes.
        inputs: the tensors read.
        fcompute: takes the buffers of inputs and of results; returns a call (`te.call_packed`, `te.call_extern`), a
            statement, or a list of statements.
        dtype: of the result, or a list of one for each; by default that of all inputs.
    """
    given = items_of(inputs)
    if given is None:
        raise fail("te.extern takes a list of input tensors")
    for tensor in given:
        if not isinstance(tensor, Tensor):
            raise fail(f"te.extern takes tensors as inputs, not {describe(tensor)}")
    parts = items_of(shape)
    several = bool(parts) and items_of(parts[0]) is not None
    shapes = [dims_of(s) for s in parts or ()] if several else [dims_of(shape)]  # type: ignore[arg-type]
    if dtype is None:
        found = {t.dtype for t in inputs}
        if len(found) != 1:
            raise fail("the dtype of te.extern cannot be told from its inputs", 'give it: dtype="float32"')
        dtypes = [*found] * len(shapes)
    else:
        dtypes = [dtype] * len(shapes) if isinstance(dtype, str) else list(dtype)
    if len(dtypes) != len(shapes):
        raise fail(f"te.extern has {counted(len(shapes), 'result shape')}, but {counted(len(dtypes), 'dtype')}")
    for result_dtype in dtypes:
        checked_dtype(result_dtype, f"a result of '{name}'")
    ins = tuple(Buffer(t.name, t.dims, t.dtype) for t in inputs)
    outs = tuple(
        Buffer(name if len(shapes) == 1 else f"{name}_v{i}", d, t)
        for i, (d, t) in enumerate(zip(shapes, dtypes, strict=True))
    )
    op = ExternOp(name, tuple(inputs), ins, outs, tag, attrs)
    op.body = statements_of(fcompute(ins, outs))
    outputs = op.set_outputs(list(zip(shapes, dtypes, strict=True)))
    return outputs[0] if len(outputs) == 1 else outputs


def statements_of(body: Any) -> list[Stmt]:
    """Returns the statements of a call, a statement, or several. Raises MirError for anything else."""
    match body:
        case Expr():
            return [Evaluate(body)]
        case Evaluate() | Store() | For() | If() | Allocate():
            return [body]
        case _ if (parts := items_of(body)) is not None:
            return [s for part in parts for s in statements_of(part)]
        case _:
            raise fail(f"the function of te.extern gives a call or statements, not {describe(body)}")


class BufferPointer:
    """A buffer in an `IRBuilder`: `p[i]` reads, `p[i] = x` adds a store."""

    def __init__(self, builder: IRBuilder, buffer: Buffer):
        self._builder = builder
        self._buffer = buffer
        self.dtype = buffer.dtype

    def __repr__(self) -> str:
        return f"BufferPointer({self._buffer})"

    def _unflattened(self, index: Any) -> Any:
        # TVM's pointer is one-dimensional whatever the buffer's rank.
        dims = self._buffer.dims
        if items_of(index) is not None or len(dims) == 1:
            return index
        indices: list[Expr] = []
        rest = convert(index)
        for dim in reversed(dims[1:]):
            indices.append(ex.floormod(rest, dim))
            rest = ex.floordiv(rest, dim)
        return tuple(reversed([*indices, rest][: len(dims)])) if dims else ()

    def __getitem__(self, index: Any) -> Expr:
        return self._buffer[self._unflattened(index)]

    def __setitem__(self, index: Any, value: ExprLike) -> None:
        self._builder.emit(store(self._buffer, self._unflattened(index), value))


class IRBuilder:
    """Builds statements in order: `with ib.for_range(0, n) as i: …`, `ib.allocate`, `ib.emit`, `ib.get`.

    `ib.buffer_ptr(b)` accesses a buffer.
    """

    def __init__(self) -> None:
        self._blocks: list[list[Stmt]] = [[]]

    def __repr__(self) -> str:
        return f"IRBuilder({counted(len(self._blocks[0]), 'statement')})"

    def emit(self, statement: Any) -> None:
        """Adds statements, or a call."""
        self._blocks[-1] += statements_of(statement)

    def buffer_ptr(self, buffer: Buffer) -> BufferPointer:
        """Returns the buffer for reading and writing by index; one index counts elements in row-major order."""
        return BufferPointer(self, buffer)

    def allocate(self, dtype: str, shape: ShapeLike, name: str = "buf", scope: str = "global") -> BufferPointer:
        """Allocates memory until the enclosing statements end; "local" is a thread's, perhaps in registers."""
        buffer = Buffer(name, dims_of(shape), checked_dtype(dtype, f"'{name}'"))
        self.emit(Allocate(buffer, scope))
        return self.buffer_ptr(buffer)

    @contextmanager
    def for_range(
        self, begin: ExprLike, end: ExprLike, name: str = "i", dtype: str | None = None, kind: str = "serial"
    ) -> Generator[Var]:
        """Yields the variable of a loop from begin up to but not including end."""
        low, high = ex.match_types(convert(begin, dtype), convert(end, dtype), "for_range")
        variable = Var(name, low.dtype)
        if kind not in LOOP_KINDS:
            raise fail(f"a loop is {', '.join(LOOP_KINDS)}, not '{kind}'")
        statement = loop(variable, low, high, LOOP_KINDS[kind], [])
        self._blocks[-1].append(statement)
        with self._inside(statement.body):
            yield variable

    @contextmanager
    def if_scope(self, condition: ExprLike) -> Generator[None]:
        """Statements that run where the condition holds."""
        test = convert(condition)
        if test.dtype != "bool":
            raise fail(f"the condition of if_scope must be bool, not {test.dtype}")
        statement = If(test, [], [])
        self._blocks[-1].append(statement)
        with self._inside(statement.then):
            yield

    @contextmanager
    def else_scope(self) -> Generator[None]:
        """Opens the other branch of the if_scope just before."""
        last = self._blocks[-1][-1] if self._blocks[-1] else None
        if not isinstance(last, If) or last.orelse:
            raise fail("else_scope follows an if_scope")
        with self._inside(last.orelse):
            yield

    @contextmanager
    def _inside(self, block: list[Stmt]) -> Generator[None]:
        self._blocks.append(block)
        try:
            yield
        finally:
            self._blocks.pop()

    def get(self) -> list[Stmt]:
        """Returns the statements."""
        return self._blocks[0]


class ir_builder:
    """`ir_builder.create()`, as TVM writes it."""

    @staticmethod
    def create() -> IRBuilder:
        """Returns a builder without statements."""
        return IRBuilder()
