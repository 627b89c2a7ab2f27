"""`alter-op-layout`: brings operators into blocked layouts for the target's vectors.

    nn.conv2d (NCHW, OIHW)   ->   nn.contrib_conv2d_NCHWc (NCHW8c, OIHW8i8o)        // vectors of 8 floats

As TVM's AlterOpLayout: a convolution in NCHW becomes one in NCHW{n}c, its channels in blocks of at most a vector (`nn.contrib_conv2d_NCHWc`, or
`nn.contrib_depthwise_conv2d_NCHWc`); a dense layer gets its weight in blocks of a vector of units (`nn.contrib_dense_pack`).
The blocks run on through the following operators (see `layout_propagation.py`); `fold-constant` computes transforms of constant
weights.

The lowering to native code packs plain convolutions and dense layers by itself and does not ask for this pass: programs get
the form that TVM's have, for kernels that are written for it. Convolutions in blocks are scheduled as contractions, as
plain ones are, so that the pass costs no more than the transforms that it leaves.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp, TensorType
from xdsl.passes import ModulePass

from ....dialects.relay.operator import OperatorOp
from ....support.target import named
from ...common.described_cpu import described_cpu
from .convert_layout import is_depthwise
from .layout_propagation import Change, LayoutRewriter

FLOAT_BYTES = 4


@dataclass(frozen=True)
class AlterOpLayout(ModulePass):
    """Bring convolutions and dense layers into blocks of the target's vector width."""

    name = "alter-op-layout"

    cpu: str = ""
    """LLVM's name of the processor; "" for this machine."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        _Alterer(named(described_cpu(op.ops, self.cpu)).lanes(FLOAT_BYTES)).run(op)


class _Alterer(LayoutRewriter):
    def __init__(self, lanes: int):
        super().__init__()
        self.lanes = lanes

    def change(self, op: OperatorOp) -> Change | None:
        match op.OPERATOR.name:
            case "nn.conv2d":
                return self._conv2d(op)
            case "nn.dense":
                return self._dense(op)
            case _:
                return None

    def _conv2d(self, op: OperatorOp) -> Change | None:
        attrs, data, kernel = op.attrs(), self._shape(op, 0), self._shape(op, 1)
        if data is None or kernel is None or DYNAMIC_INDEX in (data[1], kernel[0]):
            return None
        if attrs.data_layout != "NCHW" or attrs.kernel_layout != "OIHW" or attrs.out_layout not in ("", "NCHW"):
            return None
        inputs, outputs = self._block(data[1]), self._block(kernel[0])
        if outputs == 1:
            return None
        layouts = {"data_layout": f"NCHW{inputs}c", "out_layout": f"NCHW{outputs}c"}
        if attrs.groups == 1:
            return Change({**layouts, "kernel_layout": f"OIHW{inputs}i{outputs}o"}, "nn.contrib_conv2d_NCHWc")
        if is_depthwise(op, self.type_of(op.args[1])) and data[1] == kernel[0]:
            return Change({**layouts, "kernel_layout": f"OIHW1i{outputs}o"}, "nn.contrib_depthwise_conv2d_NCHWc")
        return None

    def _dense(self, op: OperatorOp) -> Change | None:
        data, weight = self._shape(op, 0), self._shape(op, 1)
        if data is None or len(data) != 2 or weight is None or DYNAMIC_INDEX in weight or weight[0] % self.lanes:
            return None
        return Change({"weight_layout": f"NC{self.lanes}n"}, "nn.contrib_dense_pack")

    def _shape(self, op: OperatorOp, index: int) -> tuple[int, ...] | None:
        """The shape of an argument as it was written."""
        type = self.type_of(op.args[index])
        return tuple(type.get_shape()) if isinstance(type, TensorType) else None

    def _block(self, channels: int) -> int:
        """The largest block of at most a vector that divides the channels."""
        return next(block for block in range(self.lanes, 0, -1) if channels % block == 0)
