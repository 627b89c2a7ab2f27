"""Defines TE computes of quantized operators of one tensor, in integers (`quantized_unary`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..common._lazy import te
from ..common.te_computes import Reducer
from .te_qnn import Target, dequantized, element, multiply_fixed, quantized, requantized, saturate

if TYPE_CHECKING:
    from ....te.builder import Expr, Tensor


def te_unary(xs: Sequence[Tensor], function: Callable[[Expr], Expr], name: str) -> Tensor:
    """Computes a function of real numbers on a quantized tensor; NaN counts as 0."""
    x, *parameters = xs
    scale, zero_point, out_scale, out_zero_point = (element(p, 0) for p in parameters)
    to = Target(out_scale, out_zero_point, x.dtype)

    def body(*i: Expr) -> Expr:
        real = function(dequantized(x(*i), scale, zero_point))
        return quantized(te.Select(te.isnan(real), te.const(0.0, "float32"), real), to)

    return te.compute(x.shape, body, name=name)


def te_hardswish(x: Expr) -> Expr:
    """Computes x * clip(x + 3, 0, 6) / 6."""
    low, high = te.const(0.0, "float32"), te.const(6.0, "float32")
    return x * te.max(te.min(x + te.const(3.0, "float32"), high), low) / high


def te_leaky_relu(alpha: float, xs: Sequence[Tensor]) -> Tensor:
    """Computes `qnn.leaky_relu`."""
    x, *parameters = xs
    scale, zero_point, out_scale, out_zero_point = (element(p, 0) for p in parameters)
    to = Target(out_scale, out_zero_point, "int32")
    small, large = te.const(alpha, "float64"), te.const(1 - alpha, "float64")

    def body(*i: Expr) -> Expr:
        moved = requantized(x(*i), scale, zero_point, to)
        scaled = multiply_fixed(moved, small, True) + multiply_fixed(out_zero_point.astype("int32"), large, True)
        return saturate(te.Select(x(*i).astype("int32") < zero_point, scaled, moved), x.dtype)

    return te.compute(x.shape, body, name="T_qnn_leaky_relu")


def te_softmax(axis: int, xs: Sequence[Tensor]) -> Tensor:
    """Computes `qnn.softmax`."""
    x, *parameters = xs
    scale, zero_point, out_scale, out_zero_point = (element(p, 0) for p in parameters)
    axis %= len(x.shape)
    size = x.shape[axis]
    one = te.max(te.round(te.const(1.0, "float32") / scale).astype("int32"), 1)
    outer = [*x.shape[:axis], *x.shape[axis + 1 :]]

    def over(reducer: Reducer, of: Tensor, name: str) -> Tensor:
        k = te.reduce_axis((0, size), name="k")
        return te.compute(outer, lambda *i: reducer(of(*i[:axis], k, *i[axis:]), axis=k), name=name)

    def along(of: Tensor, i: Sequence[Expr]) -> Expr:
        return of(*i[:axis], *i[axis + 1 :])

    centered = te.compute(x.shape, lambda *i: x(*i).astype("int32") - zero_point, name="T_centered")
    largest = over(lambda e, axis: te.max(e, axis=axis), centered, "T_largest")

    def exponent(*i: Expr) -> Expr:
        value = centered(*i) - along(largest, i)
        return value + (value >> 1) - (value >> 4)

    power = te.compute(x.shape, exponent, name="T_power")
    whole = te.compute(
        x.shape, lambda *i: te.min(te.max(te.truncdiv(te.const(0, "int32") - power(*i), one), 0), 20), name="T_whole"
    )
    most = over(lambda e, axis: te.max(e, axis=axis), whole, "T_most")

    def part(*i: Expr) -> Expr:
        rest = ((power(*i) + whole(*i) * one) >> 1) + one
        return rest << (along(most, i) - whole(*i))

    parts = te.compute(x.shape, part, name="T_parts")
    total = over(lambda e, axis: te.sum(e, axis=axis), parts, "T_total")
    to = Target(out_scale, out_zero_point, x.dtype)

    def body(*i: Expr) -> Expr:
        share = te.truncdiv(te.const(1 << 30, "int32"), te.max(along(total, i), 1)) * parts(*i)
        return requantized(share >> 23, te.const(1 / 128, "float32"), te.const(0, "int32"), to)

    return te.compute(x.shape, body, name="T_qnn_softmax")
