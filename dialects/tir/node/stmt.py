"""Defines TIR's statements as Python nodes, under TVM's names; nodes do not change.

    For(i, 0, 8, ForKind.SERIAL, BufferStore(B, B[i] + 1, [i]))

A statement that in the IR acts until the end of its region (an attribute, an allocation, a let) has the rest as its `body`.

Source: TVM 0.16, "tir/stmt.h".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from importlib import import_module
from typing import Any, ClassVar

import numpy as np

from ....support.arguments import check
from ....support.text import counted
from .buffer import Buffer, BufferRegion, MatchBufferRegion, element_dtype
from .expr import (
    BUILD,
    Expr,
    ExprLike,
    IntImm,
    IterVar,
    Located,
    Range,
    StringImm,
    Var,
    const,
    convert,
    current_location,
    fail,
    items_of,
)


class ForKind(IntEnum):
    """Lists how loops run; `KINDS` has TVMScript's words."""

    SERIAL = 0
    PARALLEL = 1
    VECTORIZED = 2
    UNROLLED = 3
    THREAD_BINDING = 4


KINDS = ("serial", "parallel", "vectorized", "unrolled", "thread_binding")
"""Words of the kinds of loops, by their number."""


class Stmt:
    """A statement. `FIELDS` are its parts, in the order of its constructor."""

    __slots__ = ("__weakref__", "location")

    FIELDS: ClassVar[tuple[str, ...]] = ()

    def __init__(self, span: Located | None = None):
        self.location = current_location() if span is None else span.location

    def same_as(self, other: object) -> bool:
        """Returns whether the two are one statement."""
        return self is other

    def script(self) -> str:
        """Returns the text of the statement, in TVMScript."""
        return repr(self)

    def show(self) -> None:
        """Prints the statement, in TVMScript."""
        print(self)

    def __repr__(self) -> str:
        # The printer needs the parser's tables, which import this package.
        text: str = import_module("....api.tir.script", __package__).script_of(self)
        return text


def _statement(value: object, name: str) -> Stmt:
    """Returns a part that is a statement. Raises TypeError for another value."""
    check(value, name, "a statement", Stmt)
    assert isinstance(value, Stmt)
    return value


class Evaluate(Stmt):
    """A value computed for its effects."""

    __slots__ = ("value",)

    FIELDS = ("value",)

    def __init__(self, value: ExprLike, span: Located | None = None):
        super().__init__(span)
        self.value = convert(value)


class BufferStore(Stmt):
    """`buffer[indices] = value`; Python numbers take the buffer's dtype."""

    __slots__ = ("buffer", "indices", "predicate", "value")

    FIELDS = ("buffer", "value", "indices", "predicate")

    def __init__(
        self,
        buffer: Buffer,
        value: ExprLike,
        indices: Any,
        predicate: Expr | None = None,
        span: Located | None = None,
    ):
        super().__init__(span)
        self.buffer = buffer
        self.value = const(value, buffer.dtype) if isinstance(value, (int, float)) else convert(value)
        several = items_of(indices)
        self.indices = buffer.indices(indices if several is None else several)
        self.predicate = predicate


def store(buffer: Buffer, indices: Any, value: ExprLike, predicate: Expr | None = None) -> BufferStore:
    """Returns `buffer[indices] = value`. Raises MirError for a value of another dtype."""
    made = BufferStore(buffer, value, indices, predicate)
    if element_dtype(made.value.dtype) != element_dtype(buffer.dtype):
        raise fail(
            f"'{buffer.name}' holds {buffer.dtype}, but the value stored is {made.value.dtype}",
            f'write .astype("{buffer.dtype}") where it is meant',
        )
    return made


BUILD["store"] = store


class For(Stmt):
    """A loop of `loop_var` over `extent` values from `min`."""

    __slots__ = ("annotations", "body", "extent", "kind", "loop_var", "min", "thread_binding")

    FIELDS = ("loop_var", "min", "extent", "kind", "body", "thread_binding", "annotations")

    def __init__(
        self,
        loop_var: Var,
        min: ExprLike,
        extent: ExprLike,
        kind: ForKind | int,
        body: Stmt,
        thread_binding: IterVar | None = None,
        annotations: Mapping[str, Any] | None = None,
        span: Located | None = None,
    ):
        super().__init__(span)
        check(loop_var, "loop_var", "a variable", Var)
        self.loop_var = loop_var
        self.min = convert(min, loop_var.dtype)
        self.extent = convert(extent, loop_var.dtype)
        self.kind = ForKind(kind)
        self.body = _statement(body, "body")
        self.thread_binding = thread_binding
        self.annotations = dict(annotations or {})


class While(Stmt):
    """A loop that runs while the condition holds."""

    __slots__ = ("body", "condition")

    FIELDS = ("condition", "body")

    def __init__(self, condition: ExprLike, body: Stmt, span: Located | None = None):
        super().__init__(span)
        self.condition = convert(condition)
        self.body = _statement(body, "body")


class LetStmt(Stmt):
    """A value with a name, used in `body`."""

    __slots__ = ("body", "value", "var")

    FIELDS = ("var", "value", "body")

    def __init__(self, var: Var, value: ExprLike, body: Stmt, span: Located | None = None):
        super().__init__(span)
        self.var = var
        self.value = convert(value)
        self.body = _statement(body, "body")


class AttrStmt(Stmt):
    """An attribute of `node` for what is inside."""

    __slots__ = ("attr_key", "body", "node", "value")

    FIELDS = ("node", "attr_key", "value", "body")

    def __init__(self, node: object, attr_key: str, value: ExprLike | str, body: Stmt, span: Located | None = None):
        super().__init__(span)
        self.node = (
            convert(node)
            if isinstance(node, (bool, int, float))
            else StringImm(node)
            if isinstance(node, str)
            else node
        )
        self.attr_key = attr_key
        self.value: Expr = StringImm(value) if isinstance(value, str) else convert(value)
        self.body = _statement(body, "body")


class AssertStmt(Stmt):
    """Stops the program with a message where the condition does not hold."""

    __slots__ = ("body", "condition", "message")

    FIELDS = ("condition", "message", "body")

    def __init__(self, condition: ExprLike, message: str | StringImm, body: Stmt, span: Located | None = None):
        super().__init__(span)
        self.condition = convert(condition)
        check(message, "message", "a text", str, StringImm)
        self.message = StringImm(message) if isinstance(message, str) else message
        self.body = _statement(body, "body")


class IfThenElse(Stmt):
    """`if condition: then_case else: else_case`."""

    __slots__ = ("condition", "else_case", "then_case")

    FIELDS = ("condition", "then_case", "else_case")

    def __init__(
        self, condition: ExprLike, then_case: Stmt, else_case: Stmt | None = None, span: Located | None = None
    ):
        super().__init__(span)
        self.condition = convert(condition)
        self.then_case = _statement(then_case, "then_case")
        self.else_case = None if else_case is None else _statement(else_case, "else_case")


class SeqStmt(Stmt):
    """Statements one after the other."""

    __slots__ = ("seq",)

    FIELDS = ("seq",)

    def __init__(self, seq: Sequence[Stmt], span: Located | None = None):
        super().__init__(span)
        self.seq = [_statement(part, "a part of seq") for part in seq]

    def __getitem__(self, index: int) -> Stmt:
        return self.seq[index]

    def __len__(self) -> int:
        return len(self.seq)


class Allocate(Stmt):
    """Memory of `extents` elements, whose address is `buffer_var`, for what is inside."""

    __slots__ = ("annotations", "body", "buffer_var", "condition", "dtype", "extents")

    FIELDS = ("buffer_var", "dtype", "extents", "condition", "body", "annotations")

    def __init__(
        self,
        buffer_var: Var,
        dtype: str,
        extents: Sequence[ExprLike],
        condition: ExprLike,
        body: Stmt,
        annotations: Mapping[str, Any] | None = None,
        span: Located | None = None,
    ):
        super().__init__(span)
        self.buffer_var = buffer_var
        self.dtype = dtype
        self.extents = [convert(extent) for extent in extents]
        self.condition = convert(condition)
        self.body = _statement(body, "body")
        self.annotations = dict(annotations or {})


class AllocateConst(Stmt):
    """Constant memory for what is inside."""

    __slots__ = ("annotations", "body", "buffer_var", "data", "dtype", "extents")

    FIELDS = ("buffer_var", "dtype", "extents", "data", "body", "annotations")

    def __init__(
        self,
        buffer_var: Var,
        dtype: str,
        extents: Sequence[ExprLike],
        data_or_idx: Any,
        body: Stmt,
        annotations: Mapping[str, Any] | None = None,
        span: Located | None = None,
    ):
        super().__init__(span)
        self.buffer_var = buffer_var
        self.dtype = dtype
        self.extents = [convert(extent) for extent in extents]
        numpy = getattr(data_or_idx, "numpy", None)
        self.data: np.ndarray[Any, Any] = np.asarray(data_or_idx if numpy is None else numpy())
        self.body = _statement(body, "body")
        self.annotations = dict(annotations or {})


class DeclBuffer(Stmt):
    """A buffer that what is inside uses; without memory of its own unless its `data` is its own variable."""

    __slots__ = ("body", "buffer")

    FIELDS = ("buffer", "body")

    def __init__(self, buffer: Buffer, body: Stmt, span: Located | None = None):
        super().__init__(span)
        self.buffer = buffer
        self.body = _statement(body, "body")


class BufferRealize(Stmt):
    """Memory for a box of a buffer, for what is inside, in older lowering."""

    __slots__ = ("body", "bounds", "buffer", "condition")

    FIELDS = ("buffer", "bounds", "condition", "body")

    def __init__(
        self,
        buffer: Buffer,
        bounds: Sequence[Range],
        condition: ExprLike,
        body: Stmt,
        span: Located | None = None,
    ):
        super().__init__(span)
        self.buffer = buffer
        self.bounds = list(bounds)
        self.condition = convert(condition)
        self.body = _statement(body, "body")


class Prefetch(Stmt):
    """A hint that a box of a buffer is wanted soon."""

    __slots__ = ("bounds", "buffer")

    FIELDS = ("buffer", "bounds")

    def __init__(self, buffer: Buffer, bounds: Sequence[Range], span: Located | None = None):
        super().__init__(span)
        self.buffer = buffer
        self.bounds = list(bounds)


class Block(Stmt):
    """A computation over iteration variables."""

    __slots__ = (
        "alloc_buffers", "annotations", "body", "init", "iter_vars", "match_buffers", "name_hint", "reads", "writes",
    )  # fmt: skip

    FIELDS = (
        "iter_vars", "reads", "writes", "name_hint", "body", "init", "alloc_buffers", "match_buffers", "annotations",
    )  # fmt: skip

    def __init__(
        self,
        iter_vars: Sequence[IterVar],
        reads: Sequence[BufferRegion],
        writes: Sequence[BufferRegion],
        name_hint: str,
        body: Stmt,
        init: Stmt | None = None,
        alloc_buffers: Sequence[Buffer] | None = None,
        match_buffers: Sequence[MatchBufferRegion] | None = None,
        annotations: Mapping[str, Any] | None = None,
        span: Located | None = None,
    ):
        super().__init__(span)
        for region in (*reads, *writes):
            check(region, "what a block reads or writes", "a BufferRegion", BufferRegion)
        self.iter_vars = list(iter_vars)
        self.reads = list(reads)
        self.writes = list(writes)
        self.name_hint = name_hint
        self.body = _statement(body, "body")
        self.init = init
        self.alloc_buffers = list(alloc_buffers or ())
        self.match_buffers = list(match_buffers or ())
        self.annotations = dict(annotations or {})


class BlockRealize(Stmt):
    """A block whose iteration variables are bound to values; it runs where the predicate holds."""

    __slots__ = ("block", "iter_values", "predicate")

    FIELDS = ("iter_values", "predicate", "block")

    def __init__(
        self,
        iter_values: Sequence[ExprLike],
        predicate: ExprLike,
        block: Block,
        span: Located | None = None,
    ):
        super().__init__(span)
        check(block, "block", "a Block", Block)
        if len(iter_values) != len(block.iter_vars):
            raise fail(
                f"block '{block.name_hint}' has {counted(len(block.iter_vars), 'axis')}, but {counted(len(iter_values), 'value')} for them"
            )
        self.iter_values = [
            convert(value, axis.dtype) for value, axis in zip(iter_values, block.iter_vars, strict=True)
        ]
        self.predicate = convert(predicate)
        self.block = block


def stmt_seq(*args: Stmt | Expr) -> Stmt:
    """Returns statements one after the other; values are evaluated."""
    parts = [Evaluate(part) if isinstance(part, Expr) else part for part in args]
    return parts[0] if len(parts) == 1 else SeqStmt(parts)


def stmt_list(stmt: Stmt) -> list[Stmt]:
    """Returns the statements of a sequence, those of sequences in it included."""
    if not isinstance(stmt, SeqStmt):
        return [stmt]
    return [part for inner in stmt.seq for part in stmt_list(inner)]


def sequence(parts: Sequence[Stmt]) -> Stmt:
    """Returns statements as one: none as `Evaluate(0)`, several without sequences among them."""
    if not parts:
        return Evaluate(IntImm("int32", 0))
    return parts[0] if len(parts) == 1 else SeqStmt([part for stmt in parts for part in stmt_list(stmt)])


def is_true(value: Expr) -> bool:
    """Returns whether a condition is the constant True."""
    return isinstance(value, IntImm) and value.value == 1
