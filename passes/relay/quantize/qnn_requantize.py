"""Lowering of `qnn.requantize` to plain operators: in fixed point, or by `compute_dtype` in floats.

As TVM's lowering of it: (x - zero point) times the ratio of the scales, as an integer of 31 fractional bits and a power of
two (https://arxiv.org/abs/1712.05877), plus the new zero point, clipped to the new dtype.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.ir import SSAValue

from ....dialects.relay.emit import Emitter
from ....dialects.relay.operators.elementwise.unary import LEAST_RIGHT, MOST_RIGHT
from ....dialects.relay.operators.qnn.quantized import multiplier_and_shift
from ....dialects.rule.relay_functions import highest, lowest
from .affine_types import close, constant_of, dtype_of, rank_of, scalar_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Rounding:
    """Options of requantization: TVM's `rounding` (UPWARD or TONEAREST) and `compute_dtype`.

    `compute_dtype` is int64, float32 or float64.
    """

    mode: str = "UPWARD"
    compute_dtype: str = "int64"

    @staticmethod
    def of(rounding: str, compute_dtype: str) -> Rounding:
        """From the attributes of a `qnn.requantize`, where "None" means the default."""
        return Rounding(
            "UPWARD" if rounding == "None" else rounding, "int64" if compute_dtype == "None" else compute_dtype
        )


@dataclass(frozen=True)
class Parameters:
    """A scale and a zero point, scalars or vectors along `axis`."""

    scale: SSAValue
    zero_point: SSAValue
    axis: int = -1


def same_scalar(a: SSAValue, b: SSAValue) -> bool:
    """Returns whether two values are identical, or equal constants of one element."""
    x, y = scalar_of(a), scalar_of(b)
    return a is b or (x is not None and x == y)


def is_scalar(value: SSAValue, wanted: float) -> bool:
    """Returns whether a value is a constant whose one element is `wanted`."""
    return scalar_of(value) == wanted


def along_axis(make: Emitter, values: SSAValue, axis: int, rank: int) -> SSAValue:
    """A vector along an axis of a tensor of a rank, ready to be broadcast with it; a scalar as it is."""
    if rank_of(values) == 0 or rank == 0:
        return values
    behind = rank - 1 - axis % rank
    return make.call("expand_dims", values, axis=1, num_newaxis=behind) if behind else values


def can_requantize(source: Parameters, target: Parameters) -> bool:
    """Returns whether the scales are constants, so that their ratio is known."""
    return constant_of(source.scale) is not None and scalar_of(target.scale) not in (None, 0.0)


def lower_requantize(
    make: Emitter, x: SSAValue, source: Parameters, target: Parameters, dtype: str, how: Rounding
) -> SSAValue:
    """Requantizes `x` from `source` to `target`, as `dtype`, by plain operators.

    `can_requantize` must hold.
    """
    import numpy as np

    if how.compute_dtype in ("float32", "float64"):
        return _in_floats(make, x, source, target, dtype, how)
    shifted = _centered(make, x, source, "int32")
    scale, out_scale = constant_of(source.scale), scalar_of(target.scale)
    assert scale is not None and out_scale is not None
    if not (scale.size == 1 and close_exactly(source.scale, target.scale)):
        ratio = np.asarray(scale, np.float64) / out_scale
        if how.mode == "UPWARD":
            if isinstance(make, UpperHalves) and _is_short(x, source):
                # Room at the lower end, so that of products with the ratio the upper halves are enough.
                spare = _spare(ratio)
                if spare:
                    shifted = make.call("left_shift", shifted, make.constant(spare, "int32"))
                    ratio = ratio / (1 << spare)
            shifted = _multiply_upward(make, shifted, ratio, source.axis)
        else:
            shifted = _multiply_to_nearest(make, shifted, ratio, source.axis)
    if is_scalar(target.zero_point, 0):
        return saturated(make, shifted, dtype)
    zero, largest = scalar_of(target.zero_point), _largest(x, source, target)
    if zero is not None and largest + abs(zero) < _MOST:
        shifted = make.call("add", make.call("cast", target.zero_point, dtype="int32"), shifted)
        return saturated(make, shifted, dtype)
    # The sum may be more than an int32 holds.
    wide = (make.call("cast", value, dtype="int64") for value in (target.zero_point, shifted))
    return saturated(make, make.call("add", *wide), dtype)


_MOST = 2.0**31


def _largest(x: SSAValue, source: Parameters, target: Parameters) -> float:
    """A bound of the absolute values of what is requantized, without the new zero point."""
    import numpy as np

    zero, scale, out_scale = scalar_of(source.zero_point), constant_of(source.scale), scalar_of(target.scale)
    if zero is None or scale is None or not out_scale:
        return _MOST
    centered = max(abs(lowest(dtype_of(x))), highest(dtype_of(x))) + abs(zero)
    # Half a unit for rounding to nearest, and a unit in the last place of the factor.
    return min(centered, _MOST) * float(np.abs(np.asarray(scale, np.float64)).max()) / out_scale * (1 + 2.0**-30) + 1


def exact_float(real: str, dtype: str) -> str:
    """Returns a float that adds numbers of an integer dtype and a zero point exactly: `real` or float64."""
    return real if _EXACT_BITS[real] >= int(dtype.lstrip("uint")) else "float64"


_EXACT_BITS = {"float16": 8, "float32": 16, "float64": 32}


class UpperHalves(Emitter):
    """Makes and marks fixed-point multiplications that need only the upper halves of products."""


SHORT = 9
"""Bits of a difference of two bytes."""


def _is_short(x: SSAValue, source: Parameters) -> bool:
    """Returns whether `x` less its zero point has no more than `SHORT` bits and a sign."""
    zero = scalar_of(source.zero_point)
    return dtype_of(x) in ("int8", "uint8") and zero is not None and -128 <= zero <= 255


def _spare(ratio: NDArray[np.float64]) -> int:
    """Returns the left shift of a short number that makes all right shifts at least `LEAST_RIGHT`.

    0 if it does already, or if the number has no room for that.
    """
    _, shift = multiplier_and_shift(ratio)
    spare = LEAST_RIGHT + int(shift.max())
    fits = 0 < spare <= 31 - SHORT and spare - int(shift.min()) <= MOST_RIGHT
    return spare if fits else 0


def close_exactly(a: SSAValue, b: SSAValue) -> bool:
    """Returns whether two scales are the same number."""
    return close(a, b) and scalar_of(a) == scalar_of(b)


def saturated(make: Emitter, x: SSAValue, dtype: str) -> SSAValue:
    """int32 or int64 clipped to the range of another dtype, and cast to it."""
    if dtype == dtype_of(x):
        return x
    clipped = make.call("clip", x, a_min=float(lowest(dtype)), a_max=float(highest(dtype)))
    return make.call("cast", clipped, dtype=dtype)


def _centered(make: Emitter, x: SSAValue, source: Parameters, dtype: str) -> SSAValue:
    wide = make.call("cast", x, dtype=dtype)
    zeros = constant_of(source.zero_point)
    if zeros is not None and not zeros.any():
        return wide
    flat = make.call("reshape", source.zero_point, newshape=[-1])
    zero = make.call("cast", along_axis(make, flat, source.axis, rank_of(x)), dtype=dtype)
    centered = make.call("subtract", wide, zero)
    # A vector of one element makes a scalar one, too.
    return centered if rank_of(x) else make.call("reshape", centered, newshape=[])


def _multiply_upward(make: Emitter, x: SSAValue, ratio: NDArray[np.float64], axis: int) -> SSAValue:
    """x * ratio in fixed point, halves upward."""
    import numpy as np

    multiplier, shift = multiplier_and_shift(ratio)
    if ratio.size == 1:
        return make.call("fixed_point_multiply", x, multiplier=int(multiplier.item()), shift=int(shift.item()))
    left, right = np.maximum(shift, 0), np.maximum(-shift, 0)
    least = int(right.min()) if isinstance(make, UpperHalves) and right.max() <= MOST_RIGHT else 0
    vectors = [make.constant(values, "int32") for values in (multiplier, left, right)]
    return make.call(
        "fixed_point_multiply_per_axis", x, *vectors,
        is_lshift_required=bool(left.any()), is_rshift_required=bool(right.any()), axes=[axis % rank_of(x)],
        least_rshift=least,
    )  # fmt: skip


def _multiply_to_nearest(make: Emitter, x: SSAValue, ratio: NDArray[np.float64], axis: int) -> SSAValue:
    """x * ratio in fixed point, halves away from zero, in int64."""
    import numpy as np

    multiplier, shift = multiplier_and_shift(ratio)
    rank = rank_of(x)

    def constant(values: NDArray[np.int64]) -> SSAValue:
        if values.size == 1:
            return make.constant(values.reshape(()), "int64")
        shape = [1] * rank
        shape[axis] = -1
        return make.constant(values.reshape(shape), "int64")

    left = np.maximum(shift, 0).astype(np.int64)
    right = np.minimum(np.maximum(-shift, 0) + 31, 63).astype(np.int64)
    half = np.left_shift(np.int64(1), right - 1)
    wide = make.call("cast", x, dtype="int64")
    if left.any():
        wide = make.call("left_shift", wide, constant(left))
    product = make.call("multiply", wide, constant(multiplier.astype(np.int64)))
    is_positive = make.call("greater_equal", product, make.constant(0, "int64"))
    rounder = make.call("where", is_positive, constant(half), constant(half - 1))
    rounded = make.call("right_shift", make.call("add", product, rounder), constant(right))
    return make.call("cast", rounded, dtype="int32")


def _in_floats(
    make: Emitter, x: SSAValue, source: Parameters, target: Parameters, dtype: str, how: Rounding
) -> SSAValue:
    import numpy as np

    real = how.compute_dtype
    scale, out_scale = constant_of(source.scale), scalar_of(target.scale)
    assert scale is not None and out_scale is not None
    value = _centered(make, x, source, real)
    if not (scale.size == 1 and close_exactly(source.scale, target.scale)):
        ratio = np.asarray(scale, np.float64) / out_scale
        factor = make.constant(ratio.reshape(()) if ratio.size == 1 else ratio, real)
        value = make.call("multiply", value, along_axis(make, factor, source.axis, rank_of(x)))
        value = (_round_upward if how.mode == "UPWARD" else _round_to_nearest)(make, value, real)
    if not is_scalar(target.zero_point, 0):
        wide = exact_float(real, dtype)
        value = value if wide == real else make.call("cast", value, dtype=wide)
        value = make.call("add", value, make.call("cast", target.zero_point, dtype=wide))
    return saturated(make, make.call("cast", value, dtype="int32"), dtype)


def _round_upward(make: Emitter, x: SSAValue, dtype: str) -> SSAValue:
    """Rounds to the nearest integer, halves upward: x + 1/2 without its fraction, one less below zero."""
    whole_dtype = dtype.replace("float", "int")
    biased = make.call("add", x, make.constant(0.5, dtype))
    whole = make.call("cast", make.call("cast", biased, dtype=whole_dtype), dtype=dtype)
    exact = make.call("equal", biased, whole)
    positive = make.call("greater_equal", biased, make.constant(0, dtype))
    below = make.call("subtract", whole, make.constant(1, dtype))
    rounded = make.call("where", make.call("logical_or", exact, positive), whole, below)
    return _where_fractions(make, x, rounded, dtype)


def _round_to_nearest(make: Emitter, x: SSAValue, dtype: str) -> SSAValue:
    """The nearest integer, halves away from zero: the fraction of |x| + 1/2 is cut off."""
    whole_dtype = dtype.replace("float", "int")
    negative = make.call("less", x, make.constant(0, dtype))
    sign = make.call("where", negative, make.constant(-1, dtype), make.constant(1, dtype))
    biased = make.call("add", x, make.call("multiply", make.constant(0.5, dtype), sign))
    magnitude = make.call("cast", make.call("multiply", biased, sign), dtype=whole_dtype)
    rounded = make.call("multiply", make.call("cast", magnitude, dtype=dtype), sign)
    return _where_fractions(make, x, rounded, dtype)


def _where_fractions(make: Emitter, x: SSAValue, rounded: SSAValue, dtype: str) -> SSAValue:
    """Returns `rounded`, by a cast to an integer, where `x` is in its range; numbers beyond it are whole."""
    limit = make.constant(2.0 ** (int(dtype.removeprefix("float")) - 1), dtype)
    return make.call("where", make.call("less", make.call("abs", x), limit), rounded, x)
