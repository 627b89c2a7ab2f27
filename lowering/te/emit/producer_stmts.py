"""Writes the statements of a scheduled program as TVM's nodes, for people who look at them."""

from __future__ import annotations

from collections.abc import Sequence

from ....dialects.te import extern as ext
from ....dialects.te.axes import is_virtual
from ....dialects.te.producer import ProducerRealize, ProducerStore
from ....dialects.tir import node as ex
from ....dialects.tir.node import stmt as node
from ....dialects.tir.node.buffer import Buffer
from . import statements as st


def nodes_of(body: st.Body) -> node.Stmt:
    """Returns the statements as one node.

    Nested ones are written first, so that deep loops need no deep stack.
    """
    made: dict[int, node.Stmt] = {}
    for each in reversed(list(st.walk(body))):
        inner = _sequence(made, each.body) if isinstance(each, st.Holder) else node.Evaluate(0)
        made[id(each)] = _node(each, inner)
    return _sequence(made, body)


def _sequence(made: dict[int, node.Stmt], body: st.Body) -> node.Stmt:
    return node.sequence([made[id(each)] for each in body])


def _node(each: st.Stmt, inner: node.Stmt) -> node.Stmt:
    match each:
        case st.Loop():
            return node.For(each.var, 0, each.extent, node.KINDS.index(each.kind), inner)
        case st.Mark():
            return node.AttrStmt(each.axis, "loop_scope", each.axis, inner)
        case st.Launch():
            key = "virtual_thread" if is_virtual(each.thread.thread_tag) else "thread_extent"
            return node.AttrStmt(each.thread, key, each.extent, inner)
        case st.Attr():
            return node.AttrStmt(each.node, each.key, each.value, inner)
        case st.Realize():
            return ProducerRealize(each.tensor, each.ranges, ex.const(True), inner, each.scope)
        case st.Provide():
            return ProducerStore(each.tensor, each.value, each.indices)
        case st.Let():
            return node.LetStmt(each.var, each.value, inner)
        case st.Cond():
            return node.IfThenElse(each.condition, inner)
        case st.Temporary():
            return _allocate(each.buffer, inner)
        case st.Statements():
            return _extern(each.statements)
        case st.AllReduce():
            threads = [thread.var for thread in each.threads]
            condition, size = ex.convert(each.condition), ex.const(len(each.sources), "uint32")
            operands = (size, *each.sources, condition, *(each_.data for each_ in each.results), *threads)
            return node.Evaluate(ex.call("tvm_thread_allreduce", operands, "handle"))
        case _:
            assert isinstance(each, st.Prefetch)
            return node.AttrStmt(each.tensor, "prefetch_scope", each.offset, inner)


def _allocate(buffer: Buffer, inner: node.Stmt) -> node.Stmt:
    whole = node.DeclBuffer(buffer, inner)
    return node.Allocate(buffer.data, buffer.dtype, buffer.dims, True, whole)


def _extern(statements: Sequence[ext.Stmt]) -> node.Stmt:
    """Returns the statements of an extern; memory lives until the end of those that it stands among."""
    made: list[node.Stmt] = []
    for each in reversed(statements):
        match each:
            case ext.Evaluated():
                made.append(node.Evaluate(each.value))
            case ext.Store():
                made.append(node.store(each.buffer, each.indices, each.value))
            case ext.Loop():
                kind = node.KINDS.index(each.kind)
                made.append(node.For(each.var, each.min, each.extent, kind, _extern(each.body)))
            case ext.Branch():
                orelse = _extern(each.orelse) if each.orelse else None
                made.append(node.IfThenElse(each.condition, _extern(each.then), orelse))
            case ext.Temporary():
                made = [_allocate(each.buffer, node.sequence(made[::-1]))]
    return node.sequence(made[::-1])


__all__ = ["nodes_of"]
