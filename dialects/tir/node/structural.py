"""Writes nodes as tokens, which are equal for nodes equal up to the names of what they define.

    for i in range(8): B[i] = A[i]     and     for j in range(8): B[j] = A[j]

have the same tokens: what is defined is a number, in the order of definition. Free variables and buffers are themselves, or, where they
are mapped, numbers in the order of their first use.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np

from . import stmt as st
from .buffer import Broadcast, Buffer, BufferField, BufferLoad, BufferRegion, Let, MatchBufferRegion, Ramp, Shuffle
from .expr import (
    Call,
    Choice,
    CommReducer,
    Expr,
    FloatImm,
    IntImm,
    IterVar,
    Range,
    StringImm,
    Var,
)

Token: TypeAlias = "tuple[object, ...]"

DIGITS = 9
"""Floats are equal where so many decimals are, as in TVM."""


def tokens(node: object, map_free_vars: bool = False) -> Iterator[Token]:
    """Iterates over the tokens of a node, or of a list or dictionary of nodes."""
    yield from Writer(map_free_vars).write(node)


class Writer:
    """Writes nodes; variables and buffers keep their numbers over several calls."""

    def __init__(self, map_free_vars: bool = False):
        self.map_free_vars = map_free_vars
        self._numbers: dict[int, int] = {}
        # Objects whose id is a key must outlive it.
        self._kept: list[object] = []

    def define(self, thing: Var | Buffer) -> None:
        """Gives the next number to what is defined."""
        self._numbers[id(thing)] = len(self._kept)
        self._kept.append(thing)

    def _use(self, thing: Var | Buffer) -> object:
        if id(thing) not in self._numbers:
            if not self.map_free_vars:
                return ("free", id(thing))
            self.define(thing)
        return self._numbers[id(thing)]

    def write(self, node: Any) -> Iterator[Token]:
        """Iterates over the tokens of a node, or of a list or dictionary of nodes."""
        match node:
            case st.Stmt():
                yield from self._stmt(node)
            case IterVar():
                yield ("use", node.dtype, self._use(node))
            case Expr():
                yield from self._expr(node)
            case Buffer():
                yield from self._buffer(node)
            case Range():
                yield from self.write(node.min)
                yield from self.write(node.extent)
            case BufferRegion():
                yield from self.write(node.buffer)
                yield from self.write(node.region)
            case MatchBufferRegion():
                yield from self.write(node.source)
                yield from self.write(node.buffer)
            case CommReducer():
                for variable in (*node.lhs, *node.rhs):
                    self.define(variable)
                yield ("reducer", len(node.lhs), tuple(v.dtype for v in (*node.lhs, *node.rhs)))
                yield from self.write(node.result)
                yield from self.write(node.identity_element)
            case list() | tuple():
                yield ("list", len(node))  # pyright: ignore[reportUnknownArgumentType]
                for item in node:  # pyright: ignore[reportUnknownVariableType]
                    yield from self.write(item)
            case dict():
                for name in sorted(node):  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
                    yield ("key", name)
                    yield from self.write(node[name])
            case np.ndarray():
                yield ("array", str(node.dtype), node.shape, node.tobytes())  # pyright: ignore[reportUnknownMemberType]
            case float():
                yield ("value", round(node, DIGITS))
            case _:
                yield ("value", node if isinstance(node, (str, bytes)) or node is None else repr(node))

    def _expr(self, e: Expr) -> Iterator[Token]:
        match e:
            case BufferField():
                yield ("field", e.field, e.dim)
                yield from self._buffer(e.buffer)
            case Var():
                yield ("use", e.dtype, self._use(e))
            case IntImm():
                yield ("IntImm", e.dtype, e.value)
            case FloatImm():
                yield ("FloatImm", e.dtype, round(e.value, DIGITS) if e.value == e.value else "nan")
            case StringImm():
                yield ("StringImm", e.value)
            case Let():
                yield from self.write(e.value)
                self.define(e.var)
                yield ("let", e.dtype)
                yield from self.write(e.body)
            case Call():
                yield ("call", e.dtype, e.intrinsic, e.callee, len(e.operands))
                for operand in e.operands:
                    yield from self.write(operand)
            case Choice():
                yield ("if_then_else", e.dtype)
                yield from self.write([*e.args, e.then_value, e.else_value])
            case BufferLoad():
                yield ("load", e.dtype, len(e.args))
                yield from self._buffer(e.buffer)
                yield from self.write([*e.args, e.predicate])
            case Ramp() | Broadcast():
                yield (type(e).__name__, e.dtype)
                yield from self.write(list(e.args))
            case Shuffle():
                yield ("shuffle", tuple(e.indices))
                yield from self.write(list(e.args))
            case _:
                yield (type(e).__name__, e.dtype)
                for part in e.args:
                    yield from self.write(part)

    def _buffer(self, buffer: Buffer) -> Iterator[Token]:
        """Writes a buffer: its fields at the first use."""
        known = id(buffer) in self._numbers
        yield ("buffer", self._use(buffer))
        if known or id(buffer) not in self._numbers:
            return
        yield from self.fields(buffer)

    def fields(self, buffer: Buffer) -> Iterator[Token]:
        """Iterates over the tokens of what a buffer is made of."""
        yield (
            buffer.dtype, buffer.storage_scope, buffer.data_alignment, buffer.buffer_type, buffer.axis_separators,
        )  # fmt: skip
        yield from self.write([*buffer.dims])
        yield from self.write([*buffer.strides])
        own = isinstance(buffer.elem_offset, BufferField) and buffer.elem_offset.buffer is buffer
        yield from self.write("own" if own else buffer.elem_offset)
        if not (isinstance(buffer.data, BufferField) and buffer.data.buffer is buffer):
            yield from self.write(buffer.data)

    def _declare(self, buffer: Buffer) -> Iterator[Token]:
        self.define(buffer)
        yield from self.fields(buffer)

    def _variable(self, variable: Var) -> Token:
        self.define(variable)
        return ("define", str(variable.type_annotation))

    def _stmt(self, stmt: st.Stmt) -> Iterator[Token]:
        yield (type(stmt).__name__,)
        match stmt:
            case st.For():
                yield from self.write([stmt.min, stmt.extent])
                yield self._variable(stmt.loop_var)
                tag = None if stmt.thread_binding is None else stmt.thread_binding.thread_tag
                yield (int(stmt.kind), tag)
                yield from self.write(stmt.annotations)
                yield from self.write(stmt.body)
            case st.LetStmt():
                yield from self.write(stmt.value)
                yield self._variable(stmt.var)
                yield from self.write(stmt.body)
            case st.Allocate() | st.AllocateConst():
                yield from self.write(stmt.extents)
                yield (stmt.dtype,)
                yield from self.write(stmt.condition if isinstance(stmt, st.Allocate) else stmt.data)
                yield self._variable(stmt.buffer_var)
                yield from self.write(stmt.annotations)
                yield from self.write(stmt.body)
            case st.DeclBuffer() | st.BufferRealize():
                yield from self._declare(stmt.buffer)
                if isinstance(stmt, st.BufferRealize):
                    yield from self.write([stmt.bounds, stmt.condition])
                yield from self.write(stmt.body)
            case st.AttrStmt():
                yield (stmt.attr_key,)
                yield from self._node(stmt.node)
                yield from self.write([stmt.value, stmt.body])
            case st.Block():
                yield from self._block(stmt)
            case _:
                for name in stmt.FIELDS:
                    yield from self.write(getattr(stmt, name))

    def _node(self, node: object) -> Iterator[Token]:
        if isinstance(node, IterVar):
            yield ("axis", node.iter_type, node.thread_tag)
            if id(node) not in self._numbers:
                self.define(node)
        yield from self.write(node)

    def _block(self, block: st.Block) -> Iterator[Token]:
        for axis in block.iter_vars:
            yield ("axis", axis.iter_type, axis.dtype)
            yield from self.write(axis.domain)
            self.define(axis)
        for buffer in block.alloc_buffers:
            yield from self._declare(buffer)
        for match in block.match_buffers:
            yield from self.write(match.source)
            yield from self._declare(match.buffer)
        yield ("block", block.name_hint)
        annotations: Mapping[str, Any] = block.annotations
        yield from self.write([block.reads, block.writes, block.init, block.body, dict(annotations)])
