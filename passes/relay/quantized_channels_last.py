"""`quantized-channels-last`: convolutions of bytes from NCHW to NHWC.

Dot products take channels in groups, and requantizing has scales by channel: with channels last the former lie together, and
the latter are vectors. In NCHW each convolution would bring its input into groups, and its results back. The layout runs on through
what follows (see `layout.py`), so that a model is transposed where it begins and ends; weights are constants, which are transposed
at once.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp, TensorType
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from ...dialects.relay.ir import ConstantOp
from ...dialects.relay.operator import AttrValue, OperatorOp
from ...dialects.relay.operators.layout import layout
from ...dialects.tir.types import type_to_dtype
from ...support.walk import walk_ops
from .convert_layout import default_kernel_layout, is_depthwise
from .infer_type import ensure_types
from .layout import Change, LayoutRewriter

CONVOLUTIONS = ("qnn.conv2d", "nn.conv2d")
BYTES = ("int8", "uint8")
NHWC = layout("NHWC")


@dataclass(frozen=True)
class QuantizedChannelsLast(ModulePass):
    """Bring convolutions of bytes with constant weights into NHWC."""

    name = "quantized-channels-last"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        from .fold_constant import FoldConstant

        ensure_types(op)
        if not any(_is_quantized(each) for each in walk_ops(op)):
            # The rest of a program, which is most often of floats, costs no more than this.
            return
        rewriter = _ChannelsLast()
        rewriter.run(op)
        if rewriter.changed:
            FoldConstant().apply(ctx, op)


def _is_quantized(op: Operation) -> bool:
    """Whether an op is a convolution of bytes."""
    return isinstance(op, OperatorOp) and op.OPERATOR.name in CONVOLUTIONS and _is_of_bytes(op.args[0].type)


class _ChannelsLast(LayoutRewriter):
    def __init__(self) -> None:
        super().__init__()
        self.changed = False

    def change(self, op: OperatorOp) -> Change | None:
        if op.OPERATOR.name not in CONVOLUTIONS:
            return None
        attrs = op.attrs()
        data, weight = (self.type_of(value) for value in op.args[:2])
        written = (attrs.data_layout, attrs.kernel_layout, attrs.out_layout or "NCHW")
        if written != ("NCHW", "OIHW", "NCHW") or not isinstance(op.args[1].owner, ConstantOp):
            return None
        if not all(_is_of_bytes(type_) for type_ in (data, weight)):
            return None
        kernel = default_kernel_layout(op.OPERATOR, NHWC, is_depthwise(op, weight))
        self.changed = True
        layouts: dict[str, AttrValue] = {"data_layout": "NHWC", "kernel_layout": kernel, "out_layout": ""}
        return Change(layouts)


def _is_of_bytes(type_: object) -> bool:
    """Whether it is a tensor of bytes of known shape."""
    return (
        isinstance(type_, TensorType)
        and type_to_dtype(type_.element_type) in BYTES
        and DYNAMIC_INDEX not in type_.get_shape()
    )
