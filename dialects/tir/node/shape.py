"""Checks shapes and the dtypes of elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, TypeAlias

from ..types import FLOAT_LIMITS
from .expr import INT_LIMITS, Const, Expr, ExprLike, IntImm, convert, describe, fail

ShapeLike: TypeAlias = "Sequence[ExprLike] | ExprLike"

Dims: TypeAlias = "tuple[Expr, ...]"
"""A shape, each extent of dtype int32 or int64."""


class Extent(int):
    """A known extent: a Python number that also has an immediate's `value` and `dtype`."""

    __slots__ = ()

    dtype: ClassVar[str] = "int32"

    @property
    def value(self) -> int:
        """Returns the number."""
        return int(self)


def extents_of(dims: Dims) -> tuple[int | Expr, ...]:
    """Returns a shape with numbers where extents are known int32."""
    return tuple(Extent(d.value) if isinstance(d, IntImm) and d.dtype == "int32" else d for d in dims)


def dims_of(shape: ShapeLike) -> Dims:
    """Returns a shape as expressions; a single extent is a shape of one dimension.

    Raises MirError for values that are not extents.
    """
    if isinstance(shape, (Expr, int)):
        shape = (shape,)
    elif not isinstance(shape, (tuple, list)):
        raise fail(f"a shape is a tuple of extents, not {describe(shape)}")
    dims: list[Expr] = []
    for number, extent in enumerate(shape):
        dim = convert(extent)
        if dim.dtype not in ("int32", "int64"):
            raise fail(f"extent {number} of a shape has dtype {dim.dtype}; an extent is an int32 or int64")
        if isinstance(dim, Const) and dim.value < 0:
            raise fail(f"extent {number} of a shape is {dim.value}; an extent is not negative")
        dims.append(dim)
    return tuple(dims)


def checked_dtype(dtype: object, what: str) -> str:
    """Returns the dtype. Raises MirError unless it is one of a tensor's elements."""
    if not isinstance(dtype, str) or (dtype not in INT_LIMITS and dtype not in FLOAT_LIMITS):
        raise fail(f"{what} cannot have dtype {dtype!r}", "dtypes are written like float32, int64, uint8 or bool")
    return dtype
