"""`tir.stmt_functor`: visits and rewrites statements and expressions."""

from __future__ import annotations

from ...dialects.tir.node.functor import ir_transform, post_order_visit, pre_order_visit, substitute
from ...support.public_names import public_names
from ..ir.prim_func import PrimFunc

__all__ = ["ir_transform", "post_order_visit", "pre_order_visit", "renew_defs", "substitute"]


def renew_defs(func: PrimFunc) -> PrimFunc:
    """Returns the function with new variables, buffers and axes in place of all that it defines."""
    return PrimFunc(func.op)


__dir__ = public_names(__name__)
