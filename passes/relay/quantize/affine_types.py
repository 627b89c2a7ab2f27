"""Affine types (scale, zero point) of quantized tensors, whose integers represent real numbers.

A real number is (integer - zero point) * scale; TVM's TensorAffineType and TupleAffineType.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue

from ....dialects.relay import ir
from ....dialects.relay.emit import Emitter
from ....dialects.relay.leaves import place_leaves
from ....dialects.tir.types import type_to_dtype
from ....support.edit import erase_op, insert_op_before

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class AffineType:
    """Scale and zero point of a quantized tensor, by which its integers represent real numbers.

    `scale` (float32) and `zero_point` (int32) are scalars, or vectors along `axis`.
    """

    scale: SSAValue
    zero_point: SSAValue
    dtype: str
    axis: int = -1

    def same_numbers(self, other: AffineType) -> bool:
        """Returns whether scales and zero points agree: constants up to rounding, other values by identity."""
        return close(self.scale, other.scale) and close(self.zero_point, other.zero_point)

    def same(self, other: AffineType) -> bool:
        """Returns whether equal integers of both represent equal numbers, in one dtype."""
        return self.same_numbers(other) and self.dtype == other.dtype


Affine: TypeAlias = "AffineType | tuple[AffineType, ...]"
"""Of a tensor, or of a tuple of tensors."""


def constant_of(value: SSAValue) -> NDArray[np.generic] | None:
    """Returns the array of a constant; None for any other value."""
    return value.owner.value.array if isinstance(value.owner, ir.ConstantOp) else None


def scalar_of(value: SSAValue) -> float | None:
    """The one element of a constant of any rank; None for other values."""
    array = constant_of(value)
    return array.reshape(()).item() if array is not None and array.size == 1 else None


def close(a: SSAValue, b: SSAValue) -> bool:
    """Returns whether two values are identical, or constants that differ by no more than rounding."""
    import numpy as np

    x, y = constant_of(a), constant_of(b)
    if x is None or y is None:
        return a is b
    return (x.shape == y.shape or x.size == 1 or y.size == 1) and bool(np.allclose(x, y))


def dtype_of(value: SSAValue) -> str:
    """The dtype of a tensor."""
    assert isinstance(value.type, TensorType)
    return type_to_dtype(value.type.element_type)


def rank_of(value: SSAValue) -> int:
    """Returns the rank of a tensor."""
    assert isinstance(value.type, TensorType)
    return value.type.get_num_dims()


def product_type(make: Emitter, a: AffineType, b: AffineType, dtype: str, axis: int) -> AffineType:
    """Of sums of products of two quantized tensors: the product of the scales, and no zero point."""
    import numpy as np

    x, y = constant_of(a.scale), constant_of(b.scale)
    if x is not None and y is not None:
        scale = make.constant(np.multiply(x, y), "float32")
    else:
        scale = make.call("multiply", a.scale, b.scale)
    assert isinstance(scale.type, TensorType)
    zero_point = make.constant(np.zeros(scale.type.get_shape()), "int32")
    return AffineType(scale, zero_point, dtype, axis)


def requantize(make: Emitter, value: SSAValue, old: AffineType, new: AffineType, dtype: str, axis: int) -> SSAValue:
    """`value` in the numbers of `new`."""
    arguments: Sequence[SSAValue] = (old.scale, old.zero_point, new.scale, new.zero_point)
    return make.call("qnn.requantize", value, *arguments, axis=axis, out_dtype=dtype)


def quantize(make: Emitter, value: SSAValue, type: AffineType, axis: int = -1) -> SSAValue:
    """A floating-point `value` as integers of `type`."""
    return make.call("qnn.quantize", value, type.scale, type.zero_point, out_dtype=type.dtype, axis=axis)


def give_each_user_its_own(constants: Iterable[ir.ConstantOp]) -> None:
    """Copies constants so that each has one user, and puts each in front of it, where text writes it.

    Erases constants without users.
    """
    for constant in constants:
        for use in list(constant.result.uses)[1:]:
            copy = constant.clone()
            copy.location = constant.location
            insert_op_before(copy, use.operation)
            use.operation.operands[use.index] = copy.result
        use = constant.result.first_use
        if use is not None:
            place_leaves(use.operation)
        else:
            erase_op(constant)
