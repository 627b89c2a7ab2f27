"""`qnn-legalize`: lowers quantized convolutions and dense layers of bytes to plain ones on 16 bits.

    qnn.dense(%x, %w, a, b, …)  ->  nn.dense(cast(%x, "int16") - a, cast(%w, "int16") - b, out_dtype="int32")

As TVM's qnn Legalize, by the rules of `qnn_legalize.mir`; only the option `known` is code, as it restricts all rules alike.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from ....dialects.relay.ir import ConstantOp, FuncOp
from ....support.walk import walk_ops
from ..functional.infer_type import ensure_types
from .affine_types import constant_of

RULES = "relay/quantize/qnn_legalize.mir"


@dataclass(frozen=True)
class QnnLegalize(ModulePass):
    """Lower quantized convolutions and dense layers of bytes to plain ones on 16 bits.

    For targets without products of 8 bits. With `known`, only those with constant weights and zero points, which certainly fit 16 bits.
    """

    name = "qnn-legalize"

    known: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = [function for function in op.ops if isinstance(function, FuncOp)]
        products = [inner for function in functions for inner in walk_ops(function) if inner.name in PRODUCTS]
        if not products:
            return
        from ...rules.engine.rewriter import RuleDriver
        from ...rules.engine.shipped import shipped_rules
        from ...rules.engine.stats import current_stats

        ensure_types(op)
        driver = RuleDriver(None, shipped_rules(RULES), True, current_stats())
        for product in products:
            if not self.known or _is_known(product):
                driver.visit(product)


PRODUCTS = ("relay.qnn.dense", "relay.qnn.conv2d")


def _is_known(product: Operation) -> bool:
    _, weight, *zeros = product.operands[:4]
    return isinstance(weight.owner, ConstantOp) and all(map(_is_byte, zeros))


def _is_byte(zero_point: SSAValue) -> bool:
    """Returns whether zero points are constants of the range of bytes, signed or not."""
    numbers = constant_of(zero_point)
    return numbers is not None and int(numbers.min()) >= -128 and int(numbers.max()) <= 255
