"""Inputs on which both sides of a rule are compared: ordinary numbers, and a dtype's special values."""

from __future__ import annotations

import math
from functools import cache
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType, TupleType
from xdsl.ir import Attribute

from .....dialects.array import numpy_dtype
from .....dialects.rule.functions import dtype_name

Array = NDArray[Any]

_SPECIAL = (
    *(math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 2.0, -3.0, 0.5, -0.5, 1.5, 2.5, -2.5, 0.1, -0.7, 30.0, -30.0, 100.0),
    # Where narrower types end: bytes, half precision, integers of 32 and 64 bits.
    *(127.5, 256.0, -129.0, 2049.0, 65520.0, 2.0**24 + 2, 2.0**31, -(2.0**31) - 512, 2.0**32, 2.0**63, -(2.0**64)),
    # Just beside the middle of two narrower numbers, where rounding twice is not rounding once.
    *(1 + 2.0**-11 + 2.0**-40, 1 + 2.0**-8 + 2.0**-40, 1 + 2.0**-24 + 2.0**-50),
    *(1e-3, 1e-20, -1e-20, 1e20, 1e-40, 1e30, -1e38, 1e150, 1e300, 1e-310),
)  # fmt: skip
_CORE = (math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -2.5)
_WHOLE = (-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0)
_HALVES = (-3.5, -2.5, -1.5, -0.5, 0.0, 0.5, 1.5, 2.5, 3.5, 1.0, -2.0)


@cache
def special_values(dtype: str) -> Array:
    """The values of a dtype at which arithmetic on it is apt to differ from that on real numbers.

    Of floats: NaN, infinities, both zeros, halves, where integers end, the greatest, the least normal and denormal numbers, and
    those next to 1/2 and 1. Of integers: the extremes, -1, 0, 1, the width, halves of the range.
    """
    kind = numpy_dtype(dtype)
    if kind.kind == "b":
        return np.array([False, True])
    if kind.kind in "iu":
        info = np.iinfo(kind.name)
        numbers = {0, 1, 2, 3, 5, 7, info.bits - 1, info.bits, info.max, info.max - 1, info.max // 2 + 1, info.min}
        if info.min < 0:
            numbers |= {-1, -2, -3, -7, info.min + 1, info.min // 2}
        return np.array(sorted(numbers), dtype=kind)
    with np.errstate(all="ignore"):
        found = np.array(_SPECIAL).astype(kind)
        zero, half, one, two = np.array([0.0, 0.5, 1.0, 2.0]).astype(kind)
        beside = [np.nextafter(one, half), np.nextafter(one, two), np.nextafter(half, zero)]
        bounds = [_finfo(kind, name) for name in ("max", "smallest_normal", "smallest_subnormal")]
        extra = np.array([*beside, *bounds, *(-bound for bound in bounds)]).astype(kind)
    return np.concatenate([found, extra])


def _finfo(kind: np.dtype[Any], name: str) -> Any:
    import ml_dtypes

    return getattr(cast("Any", ml_dtypes.finfo)(kind), name)


OPEN = 3
"""The size of every open dimension: one, so that those which must be equal are."""


def draw(type: Attribute, kind: str, generator: np.random.Generator) -> Any:
    """A value of a tensor's or tuple's type, of one of the kinds in `KINDS`."""
    if isinstance(type, TupleType):
        return tuple(draw(each, kind, generator) for each in type.types.data)
    assert isinstance(type, TensorType)
    tensor = cast("TensorType[Any]", type)
    name = dtype_name(tensor.element_type)
    shape, dtype = tuple(OPEN if size == DYNAMIC_INDEX else size for size in tensor.get_shape()), numpy_dtype(name)
    if dtype.kind == "b":
        return np.zeros(shape, dtype) if kind == "zeros" else generator.integers(0, 2, shape).astype(dtype)
    if dtype.kind in "iu":
        return _integers(shape, dtype, name, kind, generator)
    return _floats(shape, dtype, name, kind, generator)


def _integers(
    shape: tuple[int, ...], dtype: np.dtype[Any], name: str, kind: str, generator: np.random.Generator
) -> Array:
    few = generator.integers(0 if dtype.kind == "u" else -4, 5, shape).astype(dtype)
    match kind:
        case "zeros" | "negative zeros":
            return np.zeros(shape, dtype)
        case "ones":
            return np.where(generator.integers(0, 2, shape) == 1, 1, 1 if dtype.kind == "u" else -1).astype(dtype)
        case "special values" | "large numbers":
            return np.asarray(generator.choice(special_values(name), shape)).astype(dtype)
        case "some special values":
            return np.where(generator.random(shape) < 0.2, generator.choice(special_values(name), shape), few)
        case _:
            return few


def _floats(
    shape: tuple[int, ...], dtype: np.dtype[Any], name: str, kind: str, generator: np.random.Generator
) -> Array:
    def choice(values: Any) -> Array:
        table = np.asarray(values, dtype=None if isinstance(values, np.ndarray) else np.float64).astype(dtype)
        return np.asarray(table[generator.integers(0, len(table), shape)])

    match kind:
        case "zeros":
            return np.zeros(shape, dtype)
        case "negative zeros":
            return (-np.zeros(shape)).astype(dtype)
        case "ones":
            return choice((1.0, -1.0))
        case "special values":
            return choice(special_values(name))
        case "NaN, infinities and zeros":
            return choice(_CORE)
        case "some special values":
            return np.where(generator.random(shape) < 0.1, choice(_CORE), choice(_WHOLE))
        case "large numbers":
            # So that sums of some are finite in any order, and products are not.
            top = float(_finfo(dtype, "max")) ** 0.8
            return choice((top, -top, 0.0, 1.0, 1.0 / top))
        case "whole numbers":
            return choice(_WHOLE)
        case "halves":
            return choice(_HALVES)
        case "positive numbers":
            return np.asarray(generator.uniform(0.05, 3, shape)).astype(dtype)
        case _:
            return np.asarray(generator.uniform(-3, 3, shape)).astype(dtype)
