"""Defines TE computes of quantized operators, in the integers of their meanings (`quantized`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import frexp
from typing import TYPE_CHECKING, Any, cast

from ...operator import Attrs
from ..common._lazy import te
from ..common.layout_strings import layout
from ..common.te_computes import broadcast_dims, broadcast_index, compute_of, is_one

if TYPE_CHECKING:
    from ....te.builder import Expr, Tensor

FRACTION_BITS = 31
"""Of a fixed-point multiplier."""


def is_scalar(x: Tensor) -> bool:
    return len(x.shape) == 0 or (len(x.shape) == 1 and is_one(x.shape[0]))


def parameter(x: Tensor, indices: Sequence[Expr], axis: int) -> Expr:
    """Returns an element's scale or zero point: the scalar, or the element of the vector along `axis`."""
    return element(x, None if is_scalar(x) else indices[axis])


def element(x: Tensor, place: Any) -> Expr:
    """Returns the scalar, or a vector's element."""
    if len(x.shape) == 0:
        return x()
    return x(0) if is_scalar(x) else x(place)


def saturate(x: Expr, dtype: str) -> Expr:
    """Clips `x` to the range of an integer dtype, and casts it to that."""
    if dtype.startswith(("int", "uint")) and x.dtype != dtype:
        low, high = te.min_value(dtype).astype(x.dtype), te.max_value(dtype).astype(x.dtype)
        return te.max(te.min(x, high), low).astype(dtype)
    return x.astype(dtype)


def multiplier_and_shift(scale: Expr) -> tuple[Expr, Expr]:
    """Splits a positive float64 into an int64 multiplier and shift: multiplier * 2^(shift - 31)."""
    if isinstance(scale, te.Const):
        significand, shift = frexp(float(scale))
        fixed = round(significand * (1 << FRACTION_BITS))
        if fixed == 1 << FRACTION_BITS:
            fixed, shift = fixed >> 1, shift + 1
        return te.const(fixed, "int64"), te.const(shift, "int64")
    # The parts of an IEEE 754 double: 52 bits of significand, above them the exponent. 1022 puts it in [0.5, 1).
    bits = te.reinterpret("int64", scale)
    exponent = ((bits >> te.const(52, "int64")) & te.const(0x7FF, "int64")) - te.const(1022, "int64")
    fraction = (bits & te.const((1 << 52) - 1, "int64")) | te.const(1022 << 52, "int64")
    power = te.const(float(1 << FRACTION_BITS), "float64")
    exact = te.nearbyint(te.reinterpret("float64", fraction) * power).astype("int64")
    whole = te.const(1 << FRACTION_BITS, "int64")
    is_whole = exact == whole
    zero = te.const(0, "int64")
    fixed = te.Select(is_whole, whole >> te.const(1, "int64"), exact)
    shift = exponent + te.Select(is_whole, te.const(1, "int64"), zero)
    is_zero = scale == te.const(0.0, "float64")
    return te.Select(is_zero, zero, fixed), te.Select(is_zero, zero, shift)


def multiply_fixed(x: Expr, scale: Expr, upward: bool) -> Expr:
    """Returns round(x * scale) of an int32 in fixed point; halves go upward, otherwise away from zero."""
    multiplier, shift = multiplier_and_shift(scale)
    zero = te.const(0, "int64")
    product = (x.astype("int64") << te.max(shift, zero)) * multiplier
    # Beyond 63 bits nothing is left either way, and a shift is defined up to 63.
    right = te.min(te.max(zero - shift, zero) + te.const(FRACTION_BITS, "int64"), te.const(63, "int64"))
    half = te.const(1, "int64") << (right - te.const(1, "int64"))
    if not upward:
        half = te.Select(product >= zero, half, half - te.const(1, "int64"))
    return ((product + half) >> right).astype("int32")


@dataclass(frozen=True)
class Target:
    """The result of a quantization: an element's scale and zero point, the dtype."""

    scale: Expr
    zero_point: Expr
    dtype: str


def quantized(x: Expr, to: Target) -> Expr:
    """Computes round(x / scale) + zero_point, halves away from zero, saturated."""
    rounded = te.round(x / to.scale.astype(x.dtype)).astype("float64")
    return saturate(rounded + to.zero_point.astype("float64"), to.dtype)


def dequantized(x: Expr, scale: Expr, zero_point: Expr) -> Expr:
    """Computes (x - zero_point) * scale in float32."""
    return (x.astype("int32") - zero_point).astype("float32") * scale


def requantized(
    x: Expr, scale: Expr, zero_point: Expr, to: Target, rounding: str = "None", compute: str = "None"
) -> Expr:
    """Requantizes x from its scale and zero point to those of the target."""
    upward = rounding in ("None", "UPWARD")
    # A Python comparison of two constants is decided now.
    same = te.equal(scale, to.scale)
    is_same = isinstance(same, te.Const) and bool(same)
    ratio = te.const(1.0, "float64") if is_same else scale.astype("float64") / to.scale.astype("float64")
    if compute in ("float32", "float64"):
        real = x.astype(compute) - zero_point.astype(compute)
        if not is_same:
            scaled = real * ratio.astype(compute)
            rounded = te.floor(scaled + te.const(0.5, compute)) if upward else te.round(scaled)
            real = te.Select(same, real, rounded)
        return saturate(real.astype("float64") + to.zero_point.astype("float64"), to.dtype)
    # A ratio of 1 is exact in fixed point: equal scales of run time need no case of their own.
    shifted = x.astype("int32") - zero_point
    if not is_same:
        shifted = multiply_fixed(shifted, ratio, upward)
    return saturate(shifted.astype("int64") + to.zero_point.astype("int64"), to.dtype)


def te_quantize(attrs: Attrs, x: Tensor, scale: Tensor, zero_point: Tensor) -> Tensor:
    """Computes `qnn.quantize`."""
    dtype = attrs.out_dtype or "int8"

    def body(*i: Expr) -> Expr:
        to = Target(parameter(scale, i, attrs.axis), parameter(zero_point, i, attrs.axis), dtype)
        return quantized(x(*i), to)

    return te.compute(x.shape, body, name="T_quantize")


def te_dequantize(attrs: Attrs, x: Tensor, scale: Tensor, zero_point: Tensor) -> Tensor:
    """Computes `qnn.dequantize`."""
    dtype = attrs.out_dtype or "float32"

    def body(*i: Expr) -> Expr:
        parameters = parameter(scale, i, attrs.axis), parameter(zero_point, i, attrs.axis)
        return dequantized(x(*i), *parameters).astype(dtype)

    return te.compute(x.shape, body, name="T_dequantize")


def te_requantize(
    attrs: Attrs, x: Tensor, scale: Tensor, zero_point: Tensor, out_scale: Tensor, out_zero_point: Tensor
) -> Tensor:
    """Computes `qnn.requantize`."""
    to = Target(element(out_scale, 0), element(out_zero_point, 0), attrs.out_dtype or "int8")

    def body(*i: Expr) -> Expr:
        parameters = parameter(scale, i, attrs.axis), parameter(zero_point, i, attrs.axis)
        return requantized(x(*i), *parameters, to, attrs.rounding, attrs.compute_dtype)

    return te.compute(x.shape, body, name="T_requantize")


def _requantize_whole(x: Tensor, parameters: Sequence[Tensor]) -> Tensor:
    """Returns a tensor brought from (scale, zero point) to (scale, zero point), all scalars, in its dtype."""
    scale, zero_point, out_scale, out_zero_point = (element(p, 0) for p in parameters)
    to = Target(out_scale, out_zero_point, x.dtype)
    return te.compute(x.shape, lambda *i: requantized(x(*i), scale, zero_point, to), name="T_requantize")


Operand = tuple["Expr", "Expr", "Expr"]
"""An element with its scale and its zero point."""

CombineQuantized = Callable[[Operand, Operand, Target], "Expr"]


def te_binary(attrs: Attrs, xs: Sequence[Tensor], combine: CombineQuantized, name: str) -> Tensor:
    """Computes an operator of two quantized tensors that are broadcast."""
    lhs, rhs, *parameters = xs
    shape = broadcast_dims([lhs.shape, rhs.shape])
    to = Target(element(parameters[4], 0), element(parameters[5], 0), lhs.dtype)

    def operand(x: Tensor, scale: Tensor, zero_point: Tensor, axis: int, indices: Sequence[Expr]) -> Operand:
        own = indices[len(shape) - len(x.shape) :]
        pair = (parameter(scale, own, axis), parameter(zero_point, own, axis))
        return broadcast_index(x, indices, shape), *pair

    def body(*i: Expr) -> Expr:
        a = operand(lhs, parameters[0], parameters[1], attrs.lhs_axis, i)
        b = operand(rhs, parameters[2], parameters[3], attrs.rhs_axis, i)
        return combine(a, b, to)

    return te.compute(shape, body, name=name)


def _in_common(operand: Operand, to: Target) -> Expr:
    """Returns an element in the target's scale and zero point, as int64."""
    return requantized(*operand, Target(to.scale, to.zero_point, "int32")).astype("int64")


def added(a: Operand, b: Operand, to: Target) -> Expr:
    """Returns the sum, each operand brought to the target first."""
    return saturate(_in_common(a, to) + _in_common(b, to) - to.zero_point.astype("int64"), to.dtype)


def subtracted(a: Operand, b: Operand, to: Target) -> Expr:
    """Returns the difference, each operand brought to the target first."""
    return saturate(_in_common(a, to) - _in_common(b, to) + to.zero_point.astype("int64"), to.dtype)


def multiplied(a: Operand, b: Operand, to: Target) -> Expr:
    """Returns the product of the integers, requantized."""
    product = (a[0].astype("int32") - a[2]) * (b[0].astype("int32") - b[2])
    return requantized(product, a[1] * b[1], te.const(0, "int32"), to)


def _centered(x: Tensor, zero_point: Callable[[Sequence[Expr]], Expr]) -> Tensor:
    """Computes `x` minus its zero point, in int32."""
    return te.compute(x.shape, lambda *i: x(*i).astype("int32") - zero_point(i), name="T_centered")


def _centered_along(x: Tensor, zero_point: Tensor, axis: int) -> Tensor:
    return _centered(x, lambda i: parameter(zero_point, i, axis))


def _centered_by_axis(x: Tensor, zero_point: Tensor, of: str, letter: str) -> Tensor:
    """Computes `x` minus a vector of zero points along the axis `letter` of the layout `of`."""
    place = layout(of)
    return _centered(x, lambda i: element(zero_point, place.logical_indices(i)[letter]))


def _product(operator: str, attrs: Attrs, data: Tensor, weight: Tensor, out: Any) -> Sequence[Tensor]:
    """Computes the operator on plain integers, accumulated in int32 unless `out_dtype` is set."""
    return compute_of(operator)(Attrs({**attrs, "out_dtype": attrs.out_dtype or "int32"}), [data, weight], out)


def te_dense(attrs: Attrs, xs: Sequence[Tensor], out: Any) -> Sequence[Tensor]:
    """Computes `qnn.dense`."""
    data, weight, data_zero, weight_zero, *_ = xs
    return _product(
        "nn.dense", attrs, _centered_along(data, data_zero, -1), _centered_along(weight, weight_zero, 0), out
    )


def te_dense_pack(attrs: Attrs, xs: Sequence[Tensor], out: Any) -> Sequence[Tensor]:
    """Computes `qnn.contrib_dense_pack`."""
    data, weight, data_zero, weight_zero, *_ = xs
    width = weight.shape[2]
    filters = _centered(weight, lambda i: element(weight_zero, i[0] * width + i[2]))
    return _product("nn.contrib_dense_pack", attrs, _centered_along(data, data_zero, -1), filters, out)


def te_batch_matmul(attrs: Attrs, xs: Sequence[Tensor], out: Any) -> Sequence[Tensor]:
    """Computes `qnn.batch_matmul`."""
    x, y, x_zero, y_zero, *_ = xs
    return _product("nn.batch_matmul", attrs, _centered_along(x, x_zero, -1), _centered_along(y, y_zero, -1), out)


def te_conv2d(attrs: Attrs, xs: Sequence[Tensor], out: Any) -> Sequence[Tensor]:
    """Computes `qnn.conv2d`: padding represents 0, the zero point, so centered data is padded by 0."""
    data, weight, data_zero, weight_zero, *_ = xs
    kernel = layout(attrs.kernel_layout)
    sizes = kernel.logical(weight.shape)
    # A depthwise weight counts its zero points over both of its channel axes.
    depthwise = not is_scalar(weight_zero) and weight_zero.shape[0] != sizes["O"]

    def zero_point(indices: Sequence[Expr]) -> Expr:
        at = kernel.logical_indices(indices)
        place = at["O"] * sizes["I"] + at["I"] if depthwise else at["O"]
        return element(weight_zero, place)

    centered = _centered_by_axis(data, data_zero, attrs.data_layout, "W")
    return _product("nn.conv2d", attrs, centered, _centered(weight, zero_point), out)


def te_conv2d_transpose(attrs: Attrs, xs: Sequence[Tensor], out: Any) -> Sequence[Tensor]:
    """Computes `qnn.conv2d_transpose`."""
    data, weight, data_zero, weight_zero, *_ = xs
    centered = _centered_by_axis(data, data_zero, attrs.data_layout, "W")
    filters = _centered_by_axis(weight, weight_zero, attrs.kernel_layout, "O")
    return _product("nn.conv2d_transpose", attrs, centered, filters, out)


def means_count_padding(attrs: Attrs) -> bool:
    """Returns whether the means of `qnn.avg_pool2d` count padding.

    Padding represents the real number 0, so such means are computed without zero point.
    """
    return bool(attrs.count_include_pad) and any(attrs.padding)


def te_avg_pool2d(attrs: Attrs, xs: Sequence[Tensor], out: Any) -> Tensor:
    """Computes `qnn.avg_pool2d`: requantized to int32, then the mean, rounded toward zero and saturated."""
    x, *parameters = xs
    scale, zero_point, out_scale, out_zero_point = (element(p, 0) for p in parameters)
    padded = means_count_padding(attrs)
    to = Target(out_scale, te.const(0, "int32") if padded else out_zero_point, "int32")
    wide = te.compute(x.shape, lambda *i: requantized(x(*i), scale, zero_point, to), name="T_requantize")
    (mean,) = compute_of("nn.avg_pool2d")(attrs, [wide], out)

    def body(*i: Expr) -> Expr:
        value = mean(*i).astype("int64")
        return saturate(value + out_zero_point.astype("int64") if padded else value, x.dtype)

    return te.compute(mean.shape, body, name="T_cast")


def te_concatenate(attrs: Attrs, xs: Sequence[Tensor], out: Any) -> Sequence[Tensor]:
    """Computes `qnn.concatenate` of fields, scales, zero points, and the result's scale and zero point."""
    count = (len(xs) - 2) // 3
    fields, scales, zero_points, own = xs[:count], xs[count : 2 * count], xs[2 * count : 3 * count], xs[3 * count :]
    parts = [_requantize_whole(x, (s, z, *own)) for x, s, z in zip(fields, scales, zero_points, strict=True)]
    return compute_of("concatenate")(attrs, cast("Sequence[Tensor]", parts), out)
