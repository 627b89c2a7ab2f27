"""`quantized-channels-last`: converts convolutions of bytes from NCHW to NHWC.

    qnn.conv2d(%x, %w)  ->  transpose(qnn.conv2d(transpose(%x), %w', data_layout="NHWC", kernel_layout="HWIO"))

Dot products take channels in groups, and requantizing has scales by channel: with channels last the former are adjacent, and
the latter are vectors. In NCHW each convolution would bring its input into groups, and its results back. The layout runs on through
the following operators (see `layout_propagation.py`), so that a model is transposed where it begins and ends; weights are constants,
which are transposed at once.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Attribute, Operation
from xdsl.passes import ModulePass

from ....dialects.relay.operator import OperatorOp
from ....dialects.tir.types import type_to_dtype
from ....support.walk import walk_ops
from ..functional.infer_type import ensure_types

CONVOLUTIONS = ("qnn.conv2d", "nn.conv2d")
BYTES = ("int8", "uint8")


@dataclass(frozen=True)
class QuantizedChannelsLast(ModulePass):
    """Bring convolutions of bytes with constant weights into NHWC."""

    name = "quantized-channels-last"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        ensure_types(op)
        if not any(_is_quantized(each) for each in walk_ops(op)):
            # The rest of a program, which is most often of floats, costs no more than this.
            return
        from ..algebra.fold_constant import FoldConstant
        from .byte_layouts import ChannelsLast

        rewriter = ChannelsLast(CONVOLUTIONS, is_of_bytes)
        rewriter.run(op)
        if rewriter.changed:
            FoldConstant().apply(ctx, op)


def _is_quantized(op: Operation) -> bool:
    """Returns whether an op is a convolution of bytes."""
    return isinstance(op, OperatorOp) and op.OPERATOR.name in CONVOLUTIONS and is_of_bytes(op.args[0].type)


def is_of_bytes(type_: Attribute) -> bool:
    """Returns whether the type is a tensor of bytes."""
    return isinstance(type_, TensorType) and type_to_dtype(type_.element_type) in BYTES
