"""`te.create_prim_func`: TE tensors as a TIR function with a block for each."""

from __future__ import annotations

from collections.abc import Sequence

from ...dialects.te.builder import func
from ...dialects.te.expr import Var
from ...dialects.te.tensor import Tensor
from ...support.deep import in_deep_stack
from ..ir.prim_func import PrimFunc
from .schedule import at_caller


def create_prim_func(ops: Sequence[Tensor | Var], name: str = "main") -> PrimFunc:
    """The function that computes tensors from others; `ops` are its parameters in order, inputs and outputs.

    Raises MirError for a symbolic size that no parameter binds.
    """
    from ...lowering.te.create_prim_func import create_prim_func as lower

    with at_caller():
        return PrimFunc(in_deep_stack(lambda: lower(func(name, list(ops)))))
