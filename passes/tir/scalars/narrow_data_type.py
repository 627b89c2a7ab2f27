"""The pass `narrow-data-type`: index arithmetic in fewer bits where it fits, as TVM's pass.

for i in range(T.int64(8)): A[i + T.int64(1)] = 0     →     for i in range(8): A[i + 1] = 0
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ....support.diagnostics import Diagnostic, MirError
from ..rewriting import prim_funcs
from .narrowing import Narrower


@dataclass(frozen=True)
class NarrowDataType(ModulePass):
    """Narrows loop variables, axes, threads and indices to `target_bits` where all that is computed fits."""

    name = "narrow-data-type"
    target_bits: int

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Narrows every prim_func of the module; raises MirError for a number of bits that no integer has."""
        if self.target_bits not in (8, 16, 32, 64):
            raise MirError(Diagnostic(f"target-bits is 8, 16, 32 or 64, not {self.target_bits}"))
        for func in prim_funcs(op):
            Narrower(self.target_bits).narrow(func)
