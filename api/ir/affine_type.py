"""Types of quantized tensors by TVM's names: a scale and a zero point."""

from __future__ import annotations

from collections.abc import Sequence

from ...support.arguments import check, integer, items
from ..relay.expr import RelayExpr
from .node import ContentNode


class AffineType(ContentNode):
    """The type of what quantization represents."""

    __slots__ = ()


class TensorAffineType(AffineType):
    """A tensor of `dtype` whose numbers are `scale * (q - zero_point)`, of channels along `axis`."""

    __slots__ = ("axis", "dtype", "scale", "zero_point")

    def __init__(self, scale: RelayExpr, zero_point: RelayExpr, dtype: str, axis: int = -1):
        self.span = None
        check(scale, "scale", "an expression", RelayExpr)
        check(zero_point, "zero_point", "an expression", RelayExpr)
        check(dtype, "dtype", "a dtype, such as 'int8'", str)
        self.scale, self.zero_point, self.dtype, self.axis = scale, zero_point, dtype, integer(axis, "axis", -(2**31))

    def content(self) -> Sequence[object]:
        return [self.scale, self.zero_point, self.dtype, self.axis]

    def __repr__(self) -> str:
        return f"TensorAffineType({self.scale}, {self.zero_point}, {self.dtype!r}, {self.axis})"


class TupleAffineType(AffineType):
    """The types of a tuple's fields."""

    __slots__ = ("types",)

    def __init__(self, types: Sequence[AffineType]):
        self.span = None
        self.types = items(types, "types", "affine types", AffineType)

    def content(self) -> Sequence[object]:
        return self.types

    def __repr__(self) -> str:
        return f"TupleAffineType({self.types})"
