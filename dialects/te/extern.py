"""Defines tensors computed by statements: TVM's `extern`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from xdsl.dialects.builtin import LocationAttr

from ...support.text import counted
from ..tir import node as ex
from ..tir.node import (
    Expr,
    ExprLike,
    Var,
    convert,
    current_location,
    describe,
    fail,
    items_of,
)
from ..tir.node import stmt as st
from ..tir.node.buffer import Buffer
from ..tir.node.expr import location_scope
from .tag_scope import scoped_tag
from .tensor import AttrValue, Operation, ShapeLike, Tensor, checked_dtype, dims_of


@dataclass
class Evaluated:
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
class Loop:
    """A loop of `var` over `extent` values from `min`; `kind` as of `tir.for`."""

    var: Var
    min: Expr
    extent: Expr
    kind: str
    body: list[Stmt]
    location: LocationAttr = field(default_factory=current_location)


@dataclass
class Branch:
    """`if condition: then … else: orelse`."""

    condition: Expr
    then: list[Stmt]
    orelse: list[Stmt]
    location: LocationAttr = field(default_factory=current_location)


@dataclass
class Temporary:
    """Memory that lives until the end of the statements that it stands among."""

    buffer: Buffer
    scope: str = "global"
    location: LocationAttr = field(default_factory=current_location)


Stmt: TypeAlias = "Evaluated | Store | Loop | Branch | Temporary"


def store(buffer: Buffer, indices: Any, value: ExprLike) -> Store:
    """Returns `buffer[indices] = value`; Python numbers take the buffer's dtype, others must have it."""
    source = ex.const(value, buffer.dtype) if isinstance(value, (int, float)) else convert(value)
    if source.dtype != buffer.dtype:
        raise fail(
            f"'{buffer.name}' holds {buffer.dtype}, but the value stored is {source.dtype}",
            f'write .astype("{buffer.dtype}") where it is meant',
        )
    return Store(buffer, buffer.indices(indices), source)


def loop(var: Var, begin: ExprLike, end: ExprLike, kind: str, body: list[Stmt]) -> Loop:
    """Returns a loop from begin up to but not including end."""
    low, high = ex.match_types(convert(begin), convert(end), "range")
    return Loop(var, low, ex.distance(low, high), kind, body)


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
    op = ExternOp(name, tuple(inputs), ins, outs, scoped_tag(tag), attrs)
    op.body = statements_of(fcompute(ins, outs))
    outputs = op.set_outputs(list(zip(shapes, dtypes, strict=True)))
    return outputs[0] if len(outputs) == 1 else outputs


def statements_of(body: Any) -> list[Stmt]:
    """Returns the statements of a call, a statement, or several. Raises MirError for anything else."""
    match body:
        case Expr():
            return [Evaluated(body)]
        case Evaluated() | Store() | Loop() | Branch() | Temporary():
            return [body]
        case st.Stmt():
            with location_scope(body.location):
                return _of_node(body)
        case _ if (parts := items_of(body)) is not None:
            return [s for part in parts for s in statements_of(part)]
        case _:
            raise fail(f"the function of te.extern gives a call or statements, not {describe(body)}")


def _of_node(stmt: st.Stmt) -> list[Stmt]:
    """Returns the statements of a node, such as an `IRBuilder` builds."""
    match stmt:
        case st.SeqStmt():
            return [part for each in stmt.seq for part in statements_of(each)]
        case st.Evaluate():
            return [Evaluated(stmt.value)]
        case st.BufferStore() if stmt.predicate is None:
            return [Store(stmt.buffer, stmt.indices, stmt.value)]
        case st.For() if stmt.thread_binding is None and not stmt.annotations:
            kind = st.KINDS[stmt.kind]
            return [Loop(stmt.loop_var, stmt.min, stmt.extent, kind, statements_of(stmt.body))]
        case st.IfThenElse():
            orelse = [] if stmt.else_case is None else statements_of(stmt.else_case)
            return [Branch(stmt.condition, statements_of(stmt.then_case), orelse)]
        case st.Allocate(body=st.DeclBuffer(buffer=buffer, body=rest)) if buffer.data is stmt.buffer_var:
            return [Temporary(buffer, buffer.storage_scope), *statements_of(rest)]
        case _:
            raise fail(
                f"a {type(stmt).__name__} cannot be part of a te.extern",
                "its body is of stores, calls, loops, conditions and what IRBuilder.allocate allocates",
            )
