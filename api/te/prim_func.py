"""`te.create_prim_func`: TE tensors as a TIR function with a block for each."""

from __future__ import annotations

from collections.abc import Sequence

from ...dialects.te.builder import func
from ...dialects.te.tensor import Tensor
from ...dialects.tir.node import Var
from ...support.arguments import items
from ...support.deep_stack import in_deep_stack
from ...support.diagnostics import Diagnostic, MirError
from ..ir.prim_func import PrimFunc
from .schedule import at_caller

INDEX_BITS = {"int32": 32, "int64": 64}


def create_prim_func(
    ops: Sequence[Tensor | Var], index_dtype_override: str | None = None, *, name: str = "main"
) -> PrimFunc:
    """Creates the function that computes tensors from others; `ops` are its inputs and outputs in order.

    Loops, block axes, indices and sizes have the dtype `index_dtype_override`, "int32" or "int64", if given. Raises MirError for a
    symbolic size that no parameter binds, and for another dtype.
    """
    from ...lowering.te.create_prim_func import create_prim_func as lower

    params = items(ops, "ops", "tensors and te.var scalars")
    bits = None if index_dtype_override is None else INDEX_BITS.get(index_dtype_override)
    if bits is None and index_dtype_override is not None:
        raise MirError(
            Diagnostic(f"'{index_dtype_override}' is not a dtype of indices").with_note("indices are int32 or int64")
        )
    with at_caller():
        made = in_deep_stack(lambda: lower(func(name, params)))
    if bits is not None:
        from ...passes.tir.scalars.narrowing import Narrower

        Narrower(bits, force=True, widen=bits == 64).narrow(made)
    return PrimFunc(made)
