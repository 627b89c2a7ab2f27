"""Statements on tensors as statements on buffers of the same names, to print them.

ProducerStore(B, A[i], [i])     BufferStore(B, A[i], [i])
"""

from __future__ import annotations

from typing import Any

from ..tir.node import stmt as st
from ..tir.node.buffer import Buffer, BufferLoad
from ..tir.node.expr import Expr
from ..tir.node.functor import Mutator
from .producer import ProducerRealize, ProducerStore
from .tensor import Read, Tensor


class _OnBuffers(Mutator):
    def __init__(self) -> None:
        super().__init__()
        self._buffers: dict[int, Buffer] = {}

    def _of(self, tensor: Tensor) -> Buffer:
        found = self._buffers.get(id(tensor))
        if found is None:
            found = self._buffers[id(tensor)] = Buffer(tensor.name, tensor.dims, tensor.dtype)
        return found

    def visit_expr(self, e: Expr) -> Expr:
        if isinstance(e, Read):
            return BufferLoad(self._of(e.tensor), tuple(self.visit(index) for index in e.args))
        return super().visit_expr(e)

    def visit_stmt(self, stmt: st.Stmt) -> Any:
        made = super().visit_stmt(stmt)
        match made:
            case ProducerStore():
                return st.BufferStore(self._of(made.producer), made.value, made.indices)
            case ProducerRealize():
                return st.BufferRealize(self._of(made.producer), made.bounds, made.condition, made.body)
            case st.AttrStmt(attr_key="loop_scope" | "extern_scope"):
                return made.body
            case st.AttrStmt(node=Tensor() as tensor):
                return st.AttrStmt(self._of(tensor).data, made.attr_key, made.value, made.body)
            case _:
                return made


def on_buffers(stmt: st.Stmt) -> st.Stmt:
    """Returns the statement with a buffer for each tensor; itself where it has no tensors."""
    return _OnBuffers().visit(stmt)
