"""The pass `force-narrow-index-to-int32`: 64-bit index arithmetic in 32 bits, as TVM's pass.

    for i in range(T.int64(4)): A[i] = 1     →     for i in range(4): A[i] = 1

Parameters and sizes become int32, too.
"""

from __future__ import annotations

from dataclasses import dataclass

from ....dialects import tir
from ..rewriting import PrimFuncPass
from .narrowing import Narrower


@dataclass(frozen=True)
class ForceNarrowIndexToInt32(PrimFuncPass):
    """Narrows whatever indices and sizes are made of; that it fits is the user's promise."""

    name = "force-narrow-index-to-int32"

    def apply_to(self, func: tir.PrimFuncOp) -> None:
        """Narrows one prim_func; raises MirError for a number that does not fit."""
        Narrower(32, force=True).narrow(func)
