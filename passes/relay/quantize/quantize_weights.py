"""`quantize-weights`: stores weights of dense layers in 4 or 8 bits, with a scale for each group.

    nn.dense(%x, weight)   =>   nn.matmul_nbits(%x, packed, scales, 8u8, bits=4, block_size=32)

Numbers are symmetric around the zero point, the middle of their range; a group's element of largest magnitude is represented exactly, by
the end of the range on the side that has one number more. Activations stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ....dialects.relay import ir
from ....dialects.relay.emit import Emitter
from ....dialects.relay.operator import OperatorOp
from ....support.diagnostics import error_at
from ..common.function_attributes import open_ops
from ..common.rewriting import erase_unused, replace
from ..functional.infer_type import ensure_types

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BITS = (4, 8)
GROUPS = (16, 32, 64, 128, 256)


@dataclass(frozen=True)
class QuantizeWeights(ModulePass):
    """Store constant weights of dense layers in `bits` bits, with a scale for each `group` of a row."""

    name = "quantize-weights"

    bits: int = 4
    group: int = 32

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Replaces every dense layer of a constant weight. Raises MirError for other widths and groups."""
        check_group(self.bits, self.group)
        ensure_types(op)
        for each in [each for each in open_ops(op) if constant_weight(each) is not None]:
            assert isinstance(each, OperatorOp)
            quantize_weight(each, self.bits, self.group)


def check_group(bits: int, group: int) -> None:
    """Raises MirError for a width or a group that no kernel unpacks."""
    if bits not in BITS:
        raise error_at(None, f"weights of {bits} bits cannot be stored", "they are of 4 or 8 bits")
    if group not in GROUPS:
        raise error_at(
            None, f"groups of {group} numbers cannot be stored", f"they are of {', '.join(map(str, GROUPS))}"
        )


def constant_weight(op: object) -> NDArray[Any] | None:
    """Returns the constant weight (N, K) of a dense layer of float32; None for other ops."""
    if not isinstance(op, OperatorOp) or op.OPERATOR.name not in ("nn.dense", "nn.matmul"):
        return None
    weight, attrs = op.args[1].owner, op.attrs()
    if attrs.out_dtype not in (None, "float32"):
        return None
    if (
        not isinstance(weight, ir.ConstantOp)
        or weight.value.data.dtype != "float32"
        or len(weight.value.data.shape) != 2
    ):
        return None
    if op.OPERATOR.name == "nn.dense":
        return weight.value.array
    if attrs.transpose_a:
        return None
    return weight.value.array if attrs.transpose_b else weight.value.array.T


class PackedWeight(NamedTuple):
    """A weight of few bits: bytes (N, groups, bytes of a group), and scales (N, groups)."""

    packed: NDArray[np.uint8]
    scales: NDArray[np.float32]
    zero_point: int


def pack_weight(weight: NDArray[Any], bits: int, group: int) -> PackedWeight:
    """Quantizes the rows of a weight (N, K) in groups; the last one is filled with zeros."""
    import numpy as np

    from ....dialects.relay.operators.nn.matmul_nbits import pack_bits

    middle = 1 << (bits - 1)
    filled = np.pad(weight, [(0, 0), (0, -weight.shape[1] % group)]).reshape(len(weight), -1, group)
    largest = np.take_along_axis(filled, np.abs(filled).argmax(2)[..., None], 2)[..., 0]
    scales = (largest / -middle).astype(np.float32)
    divisors = np.where(scales == 0, np.float32(1), scales)
    numbers = np.clip(np.rint(filled / divisors[..., None]) + middle, 0, 2 * middle - 1)
    return PackedWeight(pack_bits(numbers, bits), scales, middle)


def quantize_weight(op: OperatorOp, bits: int, group: int) -> None:
    """Replaces a dense layer by the product with its packed weight."""
    import numpy as np

    weight = constant_weight(op)
    assert weight is not None
    found, make, old = pack_weight(weight, bits, group), Emitter(op), op.args[1].owner
    parts = (
        make.constant(found.packed, "uint8"),
        make.constant(found.scales, "float32"),
        make.constant(np.array(found.zero_point), "uint8"),
    )
    replace(op, make.call("nn.matmul_nbits", op.args[0], *parts, bits=bits, block_size=group))
    assert isinstance(old, ir.ConstantOp)
    erase_unused(old)
