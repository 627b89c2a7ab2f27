"""`tir.stmt_functor`: visits and rewrites statements and expressions."""

from __future__ import annotations

from ...dialects.tir.node.functor import ir_transform, post_order_visit, pre_order_visit, substitute
from .renew_defs import renew_defs

__all__ = ["ir_transform", "post_order_visit", "pre_order_visit", "renew_defs", "substitute"]
