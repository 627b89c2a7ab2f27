"""`qnn-legalize`: quantized convolutions and dense layers as plain ones on 16 bits; as TVM's qnn Legalize."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from .qnn_canonicalize_ops import LEGALIZATIONS, lower_quantized


@dataclass(frozen=True)
class QnnLegalize(ModulePass):
    """Lower quantized convolutions and dense layers to plain ones on 16 bits, for targets without products of 8 bits."""

    name = "qnn-legalize"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        lower_quantized(op, LEGALIZATIONS)
