"""Copies a function with variables, buffers and axes of its own."""

from __future__ import annotations

from ..ir.prim_func import PrimFunc


def renew_defs(func: PrimFunc) -> PrimFunc:
    """Returns the function with new variables, buffers and axes in place of all that it defines."""
    return PrimFunc(func.op)
