"""Defines the type of TE's tensors."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, NoneType, StringAttr
from xdsl.ir import Attribute, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition, param_def
from xdsl.utils.exceptions import VerifyException

from .. import tir
from ..tir.types import I32, I64, Dim


@irdl_attr_definition
class TensorType(ParametrizedAttribute, TypeAttribute):
    """`!te.tensor<[4 : i32, none], f32>`: a tensor described by its op.

    An extent is a number (i32 or i64), or NoneType where an operand of the op holds it.
    """

    name = "te.tensor"
    shape: ArrayAttr = param_def()
    dtype: Attribute = param_def()

    @staticmethod
    def get(shape: Sequence[Dim | int], dtype: Attribute) -> TensorType:
        dims = [IntegerAttr(d, I32) if isinstance(d, int) else d for d in shape]
        return TensorType(ArrayAttr(dims), dtype)

    @property
    def rank(self) -> int:
        """Returns the number of dimensions."""
        return len(self.shape.data)

    @property
    def static_shape(self) -> tuple[int, ...] | None:
        """Returns the extents as numbers, or None when one of them is symbolic."""
        dims = [d.value.data for d in self.shape.data if isinstance(d, IntegerAttr)]
        return tuple(dims) if len(dims) == len(self.shape.data) else None

    @property
    def open_dims(self) -> int:
        """Returns the number of symbolic extents."""
        return sum(isinstance(d, NoneType) for d in self.shape.data)

    def buffer(self, scope: str = "global") -> tir.BufferType:
        """Returns the type of a buffer that holds such a tensor."""
        return tir.BufferType(self.shape, self.dtype, StringAttr(scope))

    def verify(self) -> None:
        for dim in self.shape.data:
            if isinstance(dim, NoneType):
                continue
            if not isinstance(dim, IntegerAttr) or dim.type not in (I32, I64) or dim.value.data < 0:
                raise VerifyException(
                    f"an extent of a tensor is an i32 or i64 that is not negative, or none; not {dim}"
                )
