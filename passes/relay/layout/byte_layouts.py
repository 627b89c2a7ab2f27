"""The rewriter of `quantized-channels-last`, imported only for programs with convolutions of bytes."""

from __future__ import annotations

from collections.abc import Callable, Container

from xdsl.ir import Attribute

from ....dialects.relay.ir import ConstantOp
from ....dialects.relay.operator import AttrValue, OperatorOp
from ....dialects.relay.operators.common.layout_strings import layout
from .convert_layout import default_kernel_layout, is_depthwise
from .layout_propagation import Change, LayoutRewriter

NHWC = layout("NHWC")


class ChannelsLast(LayoutRewriter):
    """Brings convolutions of bytes from NCHW to NHWC."""

    def __init__(self, convolutions: Container[str], is_of_bytes: Callable[[Attribute], bool]) -> None:
        super().__init__()
        self._convolutions, self._is_of_bytes = convolutions, is_of_bytes
        self.changed = False

    def change(self, op: OperatorOp) -> Change | None:
        if op.OPERATOR.name not in self._convolutions:
            return None
        attrs = op.attrs()
        data, weight = (self.type_of(value) for value in op.args[:2])
        written = (attrs.data_layout, attrs.kernel_layout, attrs.out_layout or "NCHW")
        if written != ("NCHW", "OIHW", "NCHW") or not isinstance(op.args[1].owner, ConstantOp):
            return None
        if not all(self._is_of_bytes(each) for each in (data, weight)):
            return None
        kernel = default_kernel_layout(op.OPERATOR, NHWC, is_depthwise(op, weight))
        self.changed = True
        layouts: dict[str, AttrValue] = {"data_layout": "NHWC", "kernel_layout": kernel, "out_layout": ""}
        return Change(layouts)
