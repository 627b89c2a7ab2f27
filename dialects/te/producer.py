"""Defines statements on tensors, before these are buffers: what `te.schedule.ScheduleOps` makes.

    ProducerRealize(B, [Range(0, 8)], True, For(i, …, ProducerStore(B, A[i] + 1, [i])), "global")

Source: TVM 0.16, "tir/stmt.h".
"""

from __future__ import annotations

from collections.abc import Sequence

from ..tir.node import Expr, ExprLike, Range, convert
from ..tir.node.stmt import Located, Stmt
from .tensor import Tensor


class ProducerStore(Stmt):
    """`producer[indices] = value`."""

    __slots__ = ("indices", "producer", "value")

    FIELDS = ("producer", "value", "indices")

    def __init__(self, producer: Tensor, value: ExprLike, indices: Sequence[ExprLike], span: Located | None = None):
        super().__init__(span)
        self.producer = producer
        self.value: Expr = convert(value)
        self.indices = [convert(index) for index in indices]


class ProducerRealize(Stmt):
    """Memory for a box of a tensor, for what is inside."""

    __slots__ = ("body", "bounds", "condition", "producer", "storage_scope")

    FIELDS = ("producer", "bounds", "condition", "body", "storage_scope")

    def __init__(
        self,
        producer: Tensor,
        bounds: Sequence[Range],
        condition: ExprLike,
        body: Stmt,
        storage_scope: str = "",
        span: Located | None = None,
    ):
        super().__init__(span)
        self.producer = producer
        self.bounds = list(bounds)
        self.condition = convert(condition)
        self.body = body
        self.storage_scope = storage_scope
