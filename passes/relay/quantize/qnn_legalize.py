"""`qnn-legalize`: lowers quantized convolutions and dense layers to plain ones on 16 bits.

    qnn.dense(%x, %w, zx, zw, …)  ->  nn.dense(cast(%x, "int16") - zx, cast(%w, "int16") - zw, out_dtype="int32")

As TVM's qnn Legalize. The two lowerings share `centered_product` with `qnn-canonicalize-ops`: whether the weight's zero point is
subtracted or added as a bias depends on its shape, and its axis on the layout.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from ....dialects.relay.emit import Emitter
from ....dialects.relay.ir import ConstantOp
from ....dialects.relay.operator import OperatorOp
from .affine_types import constant_of, dtype_of
from .qnn_canonicalize_ops import LEGALIZATIONS, Lowering, lower_quantized


@dataclass(frozen=True)
class QnnLegalize(ModulePass):
    """Lower quantized convolutions and dense layers to plain ones on 16 bits.

    For targets without products of 8 bits. With `known`, only those of bytes with constant weights and zero points, which certainly fit
    16 bits.
    """

    name = "qnn-legalize"

    known: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        lowerings = {name: _if_known(lower) for name, lower in LEGALIZATIONS.items()} if self.known else LEGALIZATIONS
        lower_quantized(op, lowerings)


def _if_known(lower: Lowering) -> Lowering:
    def known(op: OperatorOp, make: Emitter) -> SSAValue | None:
        data, weight, *zeros = op.args[:4]
        if not isinstance(weight.owner, ConstantOp) or not all(dtype_of(x) in BYTES for x in (data, weight)):
            return None
        return lower(op, make) if all(map(_is_byte, zeros)) else None

    return known


def _is_byte(zero_point: SSAValue) -> bool:
    """Returns whether zero points are constants of the range of bytes, signed or not."""
    numbers = constant_of(zero_point)
    return numbers is not None and int(numbers.min()) >= -128 and int(numbers.max()) <= 255


BYTES = ("int8", "uint8")
