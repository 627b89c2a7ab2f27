"""Defines elementwise operators of one tensor: mathematics, rounding, tests, casts, `zeros_like`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...operator import Attrs, Operator, OpPattern, Relation, attr, define
from ..common._lazy import np, numeric, te
from ..common.numpy_meanings import Array, as_float, erf, is_float, keep_dtype, numpy_type, round_half_away
from ..common.relations import (
    TypeRelation,
    dtype_attr,
    dtype_of,
    identity,
    rank_must_be,
    same_shape,
    shape_of,
    tensor_type,
)
from ..common.sources import NUMPY, ONNX, TVM, C
from ..common.te_computes import elementwise

if TYPE_CHECKING:
    from ....te.builder import Expr


def unary(
    name: str,
    numpy: Callable[[Array], Array],
    compute: Callable[[Expr], Expr],
    doc: str,
    relation: TypeRelation = identity,
    *,
    source: str,
) -> Operator:
    """Registers an elementwise operator without attributes."""
    return define(
        name, ("data",), relation, OpPattern.ELEMWISE,
        numpy=lambda attrs, x: numpy(x),
        compute=lambda attrs, xs, out: [elementwise(compute, xs[0])],
        doc=doc, source=source,
    )  # fmt: skip


def mathematical(
    name: str, numpy: Callable[[Array], Array], compute: Callable[[Expr], Expr], doc: str, *, source: str
) -> Operator:
    """Registers a floating-point function; other dtypes go through float32 and back."""

    def body(x: Expr) -> Expr:
        return compute(x) if x.dtype.startswith(("float", "bfloat")) else compute(x.astype("float32")).astype(x.dtype)

    return unary(name, as_float(numpy), body, doc, source=source)


# fmt: off
mathematical("exp", lambda x: np.exp(x), lambda x: te.exp(x), "e to the power of each element.", source=NUMPY.format("exp"))
mathematical("fast_exp", lambda x: np.exp(x), lambda x: te.exp(x), "`exp`, where an approximation is good enough.", source=TVM.format("exp"))
mathematical("log", lambda x: np.log(x), lambda x: te.log(x), "The natural logarithm of each element.", source=NUMPY.format("log"))
mathematical("log2", lambda x: np.log2(x), lambda x: te.log2(x), "The logarithm to base 2 of each element.", source=NUMPY.format("log2"))
mathematical("log10", lambda x: np.log10(x), lambda x: te.log10(x), "The logarithm to base 10 of each element.", source=NUMPY.format("log10"))
mathematical("sqrt", lambda x: np.sqrt(x), lambda x: te.sqrt(x), "The square root of each element.", source=NUMPY.format("sqrt"))
mathematical("rsqrt", lambda x: 1 / np.sqrt(x), lambda x: te.rsqrt(x), "One over the square root of each element.", source=TVM.format("rsqrt"))
mathematical("sin", lambda x: np.sin(x), lambda x: te.sin(x), "The sine of each element, in radians.", source=NUMPY.format("sin"))
mathematical("cos", lambda x: np.cos(x), lambda x: te.cos(x), "The cosine of each element, in radians.", source=NUMPY.format("cos"))
mathematical("tan", lambda x: np.tan(x), lambda x: te.tan(x), "The tangent of each element, in radians.", source=NUMPY.format("tan"))
mathematical("sinh", lambda x: np.sinh(x), lambda x: te.sinh(x), "The hyperbolic sine of each element.", source=NUMPY.format("sinh"))
mathematical("cosh", lambda x: np.cosh(x), lambda x: te.cosh(x), "The hyperbolic cosine of each element.", source=NUMPY.format("cosh"))
mathematical("tanh", lambda x: np.tanh(x), lambda x: te.tanh(x), "The hyperbolic tangent of each element.", source=NUMPY.format("tanh"))
mathematical("fast_tanh", lambda x: np.tanh(x), lambda x: te.tanh(x), "`tanh`, where an approximation is good enough.", source=TVM.format("tanh"))
mathematical("asin", lambda x: np.arcsin(x), lambda x: te.asin(x), "The inverse sine of each element.", source=NUMPY.format("arcsin"))
mathematical("acos", lambda x: np.arccos(x), lambda x: te.acos(x), "The inverse cosine of each element.", source=NUMPY.format("arccos"))
mathematical("atan", lambda x: np.arctan(x), lambda x: te.atan(x), "The inverse tangent of each element.", source=NUMPY.format("arctan"))
mathematical("asinh", lambda x: np.arcsinh(x), lambda x: te.asinh(x), "The inverse hyperbolic sine of each element.", source=NUMPY.format("arcsinh"))
mathematical("acosh", lambda x: np.arccosh(x), lambda x: te.acosh(x),
    "The inverse hyperbolic cosine of each element.", source=NUMPY.format("arccosh"))
mathematical("atanh", lambda x: np.arctanh(x), lambda x: te.atanh(x),
    "The inverse hyperbolic tangent of each element.", source=NUMPY.format("arctanh"))
mathematical("erf", erf, lambda x: te.erf(x), "The error function of each element.", source=C.format("erf"))
mathematical("fast_erf", erf, lambda x: te.erf(x), "`erf`, where an approximation is good enough.", source=C.format("erf"))
mathematical("sigmoid", lambda x: 1 / (1 + np.exp(-x)), lambda x: te.sigmoid(x), "1 / (1 + exp(-x)) of each element.", source=ONNX.format("Sigmoid"))
# fmt: on


def rounding(
    name: str, numpy: Callable[[Array], Array], compute: Callable[[Expr], Expr], doc: str, *, source: str
) -> Operator:
    """Registers a rounding of floating-point numbers, which leaves integers as they are."""
    return unary(
        name,
        lambda x: numpy(x).astype(x.dtype, copy=False) if is_float(x) else x,
        lambda x: compute(x) if x.dtype.startswith(("float", "bfloat")) else x,
        doc,
        source=source,
    )


# fmt: off
rounding("floor", lambda x: np.floor(x), lambda x: te.floor(x), "The largest integer not above each element.", source=NUMPY.format("floor"))
rounding("ceil", lambda x: np.ceil(x), lambda x: te.ceil(x), "The smallest integer not below each element.", source=NUMPY.format("ceil"))
rounding("trunc", lambda x: np.trunc(x), lambda x: te.trunc(x), "Each element rounded toward zero.", source=NUMPY.format("trunc"))
rounding("nearbyint", lambda x: np.rint(x), lambda x: te.nearbyint(x), "The nearest integer to each element, of two the even one.", source=C.format("nearbyint"))
rounding("round", round_half_away, lambda x: te.round(x), "The nearest integer to each element, halves away from zero.", source=C.format("round"))
# fmt: on


def _sign(x: Expr) -> Expr:
    zero, one = te.const(0, x.dtype), te.const(1, x.dtype)
    if x.dtype.startswith("uint") or x.dtype == "bool":
        return te.Select(x > zero, one, zero)
    return te.Select(x > zero, one, te.Select(x < zero, te.const(-1, x.dtype), zero))


def _te_not(x: Expr) -> Expr:
    return te.logical_not(x) if x.dtype == "bool" else te.equal(x, te.const(0, x.dtype)).astype(x.dtype)


def _negative(x: Expr) -> Expr:
    if x.dtype == "bool":
        return x
    return te.const(0, x.dtype) - x if x.dtype.startswith("uint") else -x


def _numpy_sign(x: Array) -> Array:
    # Not np.sign: a NaN is neither above nor below zero.
    return ((x > 0).astype(np.int8) - (x < 0)).astype(x.dtype)


# fmt: off
unary("sign", _numpy_sign, _sign, "1, 0 or -1 as each element is above, at or below zero.", source=NUMPY.format("sign"))
unary("abs", lambda x: np.abs(x), lambda x: te.abs(x), "The magnitude of each element.", source=NUMPY.format("absolute"))
unary("negative", lambda x: x if x.dtype.kind == "b" else -x, _negative,
    "Minus each element; integers wrap around, and a bool is what it was.", source=NUMPY.format("negative"))
unary("logical_not", lambda x: keep_dtype(np.logical_not(x), x), _te_not, "Whether each element is false.", source=NUMPY.format("logical_not"))
unary("bitwise_not", lambda x: np.invert(numeric.bits(x)), lambda x: te.bitwise_not(x),
    "Each element with all bits flipped.", source=NUMPY.format("invert"))
unary("isnan", lambda x: np.isnan(x), lambda x: te.isnan(x), "Whether each element is NaN.", same_shape("bool"), source=NUMPY.format("isnan"))
unary("isinf", lambda x: np.isinf(x), lambda x: te.isinf(x), "Whether each element is infinite.", same_shape("bool"), source=NUMPY.format("isinf"))
unary("isfinite", lambda x: np.isfinite(x), lambda x: te.isfinite(x),
    "Whether each element is neither infinite nor NaN.", same_shape("bool"), source=NUMPY.format("isfinite"))
unary("copy", lambda x: x.copy(), lambda x: x, "The same tensor in memory of its own.", source=NUMPY.format("copy"))
unary("zeros_like", lambda x: np.zeros_like(x), lambda x: te.const(0, x.dtype), "Zeros, of the argument's type.", source=NUMPY.format("zeros_like"))
unary("ones_like", lambda x: np.ones_like(x), lambda x: te.const(1, x.dtype), "Ones, of the argument's type.", source=NUMPY.format("ones_like"))
# fmt: on


def _numpy_clip(attrs: Attrs, x: Array) -> Array:
    low, high = clip_bounds(attrs, x.dtype.name)
    return numeric.larger(numeric.smaller(x, np.asarray(high).astype(x.dtype)), np.asarray(low).astype(x.dtype))


def clip_bounds(attrs: Attrs, dtype: str) -> tuple[float, float]:
    """Clips `a_min` and `a_max` to the range of an integer dtype; for a float dtype returns them as is."""
    low, high = attrs.a_min, attrs.a_max
    if dtype.startswith(("int", "uint")):
        least, greatest = numeric.integer_range(numpy_type(dtype))
        low, high = (min(max(v, least), greatest) for v in (low, high))
        return int(low), int(high)
    return low, high


def _clip(attrs: Attrs, x: Expr) -> Expr:
    low, high = (te.const(v, x.dtype) for v in clip_bounds(attrs, x.dtype))
    return te.max(te.min(x, high), low)


define(
    "clip", ("data",), identity, OpPattern.ELEMWISE,
    numpy=_numpy_clip,
    compute=lambda attrs, xs, out: [elementwise(lambda x: _clip(attrs, x), xs[0])],
    attributes=(attr("a_min", kind="float"), attr("a_max", kind="float")),
    doc="Each element, at least `a_min` and at most `a_max`.",
    source=NUMPY.format("clip"),
)  # fmt: skip


def _cast_relation(rel: Relation) -> None:
    data = rel.tensor(0)
    rel.set_result(tensor_type(shape_of(data), dtype_attr(rel, "dtype", data.element_type)))


def convert(x: Array, dtype: str) -> Array:
    """Casts `x` as the IR does: floats to integers toward zero, saturated; to bool by comparison with 0."""
    return numeric.convert(x, numpy_type(dtype))


define(
    "cast", ("data",), _cast_relation, OpPattern.ELEMWISE,
    numpy=lambda attrs, x: convert(x, attrs.dtype),
    compute=lambda attrs, xs, out: [elementwise(lambda x: x.astype(attrs.dtype), xs[0], "T_cast")],
    attributes=(attr("dtype", kind="str"),),
    doc="Each element converted to `dtype`; floats to integers toward zero, to the nearest that there is, and NaN to 0.",
    source=TVM.format("cast"),
)  # fmt: skip


def _cast_like_relation(rel: Relation) -> None:
    rel.set_result(tensor_type(shape_of(rel.tensor(0)), rel.tensor(1).element_type))


define(
    "cast_like", ("data", "dtype_like"), _cast_like_relation, OpPattern.ELEMWISE,
    numpy=lambda attrs, x, like: convert(x, like.dtype.name),
    compute=lambda attrs, xs, out: [elementwise(lambda x: x.astype(xs[1].dtype), xs[0], "T_cast")],
    doc="The first argument converted to the dtype of the second.",
    source=TVM.format("cast_like"),
)  # fmt: skip


def _reinterpret_relation(rel: Relation) -> None:
    data = rel.tensor(0)
    dtype = dtype_attr(rel, "dtype", data.element_type)
    if bits(data.element_type) != bits(dtype):
        raise rel.fail(
            f"reinterpret: {rel.attrs.dtype} is not as wide as {dtype_of(data)}",
            "reinterpret keeps the bits of each element; cast converts its value",
        )
    rel.set_result(tensor_type(shape_of(data), dtype))


def bits(type: object) -> int:
    """Returns the width of an element type."""
    from xdsl.dialects.builtin import AnyFloat, IntegerType

    if isinstance(type, IntegerType):
        return max(8, type.width.data)
    return max(8, type.bitwidth) if isinstance(type, AnyFloat) else 0


define(
    "reinterpret", ("data",), _reinterpret_relation, OpPattern.ELEMWISE,
    numpy=lambda attrs, x: np.ascontiguousarray(x).view(numpy_type(attrs.dtype)).reshape(x.shape),
    compute=lambda attrs, xs, out: [elementwise(lambda x: te.reinterpret(attrs.dtype, x), xs[0], "T_reinterpret")],
    attributes=(attr("dtype", kind="str"),),
    doc="Each element's bits read as `dtype`, which is as wide.",
    source=TVM.format("reinterpret"),
)  # fmt: skip


def _full_like_relation(rel: Relation) -> None:
    rank_must_be(rel, 1, 0)
    identity(rel)


define(
    "full_like", ("data", "fill_value"), _full_like_relation, OpPattern.ELEMWISE,
    numpy=lambda attrs, x, value: np.full_like(x, convert(value, x.dtype.name)),
    compute=lambda attrs, xs, out: [
        te.compute(xs[0].shape, lambda *i: xs[1]().astype(xs[0].dtype), name="T_full_like")
    ],
    doc="A tensor of the first argument's type filled with the second, a scalar.",
    source=NUMPY.format("full_like"),
)  # fmt: skip


def fixed_point_multiply(x: Array, multiplier: int | Array, shift: int | Array) -> Array:
    """Computes round(x * multiplier * 2^(shift - 31)) on int32, halves upward (TFLite's fixed-point form)."""
    wide = x.astype(np.int64)
    # Beyond 63 bits nothing is left either way, and a shift is defined up to 63.
    left, right = np.maximum(shift, 0), np.minimum(np.maximum(-np.asarray(shift, np.int64), 0) + 31, 63)
    product = (wide << left) * np.asarray(multiplier, np.int64)
    return ((product + (np.int64(1) << (right - 1))) >> right).astype(np.int32)


define(
    "fixed_point_multiply", ("data",), identity, OpPattern.ELEMWISE,
    numpy=lambda attrs, x: fixed_point_multiply(x, attrs.multiplier, attrs.shift).astype(x.dtype),
    compute=lambda attrs, xs, out: [
        elementwise(lambda x: te_fixed_point_multiply(x, attrs.multiplier, attrs.shift), xs[0])
    ],
    attributes=(attr("multiplier", kind="int"), attr("shift", kind="int")),
    doc="int32 data times a fixed-point number of 31 fractional bits and a power of two, rounded to nearest, halves upward.",
    source=TVM.format("fixed_point_multiply"),
)  # fmt: skip


def te_fixed_point_multiply(x: Expr, multiplier: int, shift: int) -> Expr:
    """Computes `fixed_point_multiply` as a TE expression."""
    if str(x.dtype) == "int32" and LEAST_RIGHT <= -shift <= MOST_RIGHT and 0 <= multiplier < 1 << 31:
        return te_multiply_high(x, te.const(multiplier, "int32"), te.const(-shift, "int32"))
    wide = x.astype("int64") << te.const(max(shift, 0), "int64")
    right = min(max(-shift, 0) + 31, 63)
    product = wide * te.const(multiplier, "int64") + te.const(1 << (right - 1), "int64")
    return (product >> te.const(right, "int64")).astype(x.dtype)


LEAST_RIGHT, MOST_RIGHT = 2, 32
"""The right shifts for which the upper half of a product suffices."""


def te_multiply_high(x: Expr, multiplier: Expr, right: Expr) -> Expr:
    """Computes x * multiplier * 2^(-31 - right) on int32, rounded, halves upward.

    `right` is from `LEAST_RIGHT` to `MOST_RIGHT`: then the addend for rounding has no bits in the lower half of the product,
    which is dropped before the addition. Processors have instructions for the upper half, and the rest is in 32 bits. With a
    multiplier below 2^31 nothing overflows.
    """
    one = te.const(1, "int32")
    product = x.astype("int64") * multiplier.astype("int64")
    high = (product >> te.const(32, "int64")).astype("int32")
    return (high + (one << (right - te.const(2, "int32")))) >> (right - one)


define(
    "device_copy", ("data",), identity, OpPattern.OPAQUE,
    numpy=lambda attrs, x: x.copy(),
    compute=lambda attrs, xs, out: [elementwise(lambda x: x, xs[0], "T_copy")],
    attributes=(attr("src_virtual_device", None), attr("dst_virtual_device", None)),
    doc="The tensor on another device; here both are the host.",
    source=TVM.format("device_copy"),
)  # fmt: skip
