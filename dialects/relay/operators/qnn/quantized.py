"""Defines quantized operators: an integer q represents the number (q - zero_point) * scale.

    quantize: data (N,C) float32, scale () or (C), zero_point () or (C) -> (N,C) int8
    qnn.add:  lhs (N,C), rhs (N,C), scale and zero point of both and of the result -> (N,C)

Results are requantized in integer arithmetic, with 31 fractional bits and halves rounded upward, unless the attributes
request another rounding (as TVM's lowering for a machine without SSE 4.1 does).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from xdsl.dialects.builtin import TupleType

from ...operator import Attrs, AttrSpec, Compute, Meaning, OpPattern, Relation, attr, define
from ..common._lazy import np, numeric
from ..common.layout_strings import layout
from ..common.numpy_meanings import Array, along, matmul, numpy_type, round_half_away
from ..common.relations import (
    TypeRelation,
    at_most,
    broadcast_arguments,
    can_expand,
    dtype_attr,
    dtype_of,
    same_dtype,
    shape_of,
    show_argument,
    tensor_type,
)
from ..common.sources import ARXIV, ONNX
from ..conv.conv_transpose import TRANSPOSED_RELATION, convolve_transposed, transposed_attributes
from ..conv.convolution import CONV_RELATION, SPATIAL, conv_attributes, convolve
from ..elementwise.unary import fixed_point_multiply
from ..nn.dense import OUT_DTYPE, UNITS, batch_matmul_relation, dense_pack_relation, matmul_relation
from ..nn.pooling import POOL_ATTRIBUTES, POOL_RELATION, average_windows
from ..shape.transform import concatenate_relation
from . import te_qnn as computes
from .te_qnn import means_count_padding


def quantization(rel: Relation, index: int, size: int | None = None) -> None:
    """Arguments `index` and `index + 1` are a scale and a zero point: scalars, or vectors of `size`."""
    for place, dtype in ((index, "float32"), (index + 1, "int32")):
        if rel.type_of(place) is None:
            rel.set_argument(place, tensor_type([] if size is None else [size], dtype))
            continue
        known = rel.tensor(place)
        is_scalar = known.get_num_dims() == 0 or shape_of(known) == (1,)
        if dtype_of(known) != dtype or (not is_scalar and (size is None or known.get_num_dims() != 1)):
            what = "a scalar" if size is None else f"a scalar or a vector of {size}"
            raise rel.fail(
                f"{rel.operator.name}: {show_argument(rel, place)} must be {what} of {dtype}", argument=place
            )
        if not is_scalar:
            rel.set_argument(place, tensor_type([size or 0], dtype))


def _axis_size(rel: Relation, index: int = 0, name: str = "axis") -> int | None:
    """Returns the length of an argument's per-channel parameters; None for an axis that does not exist."""
    shape = shape_of(rel.tensor(index))
    axis: int = rel.attrs[name]
    return shape[axis] if -len(shape) <= axis < len(shape) else None


def per_axis(parameter: Array, axis: int, rank: int) -> Array:
    """Returns a scalar, or a vector along an axis, ready to be broadcast."""
    return parameter.reshape(()) if parameter.size == 1 else along(parameter, axis, rank)


def saturate(x: Array, dtype: np.dtype[Any]) -> Array:
    """Clips `x` to the range of an integer dtype, and casts it to that."""
    if dtype.kind not in "iu":
        return x.astype(dtype)
    if not numeric.is_float(x.dtype):
        x = np.clip(x, *numeric.integer_range(dtype))
    return numeric.convert(x, dtype)


def quantize(x: Array, scale: Array, zero_point: Array, dtype: np.dtype[Any]) -> Array:
    """Computes round(x / scale) + zero_point, halves away from zero, saturated."""
    rounded = round_half_away((x / scale.astype(x.dtype)).astype(x.dtype)).astype(np.float64)
    return saturate(rounded + zero_point, dtype)


def dequantize(x: Array, scale: Array, zero_point: Array) -> Array:
    """Computes (x - zero_point) * scale in float32."""
    return ((x.astype(np.int32) - zero_point).astype(np.float32) * scale).astype(np.float32)


def multiplier_and_shift(scale: Array) -> tuple[Array, Array]:
    """Returns a positive number as (integer of 31 fractional bits) times 2^shift."""
    significand, shift = np.frexp(scale.astype(np.float64))
    fixed = np.rint(significand * (1 << 31)).astype(np.int64)
    too_large = fixed == 1 << 31
    return np.where(too_large, fixed >> 1, fixed), shift + too_large


def _fixed_point_to_nearest(x: Array, multiplier: Array, shift: Array) -> Array:
    """Computes `fixed_point_multiply` with halves away from zero."""
    wide = x.astype(np.int64) << np.maximum(shift, 0)
    product = wide * multiplier
    right = np.minimum(np.maximum(-shift, 0) + 31, 63)
    half = np.int64(1) << (right - 1)
    return ((product + np.where(product >= 0, half, half - 1)) >> right).astype(np.int32)


def requantize(
    x: Array, scale: Array, zero_point: Array, to: tuple[Array, Array, Any], rounding: str | None, compute: str | None
) -> Array:
    """Requantizes x from its scale and zero point to those of `to` (scale, zero point, dtype)."""
    out_scale, out_zero_point, dtype = to
    upward = rounding in (None, "None", "UPWARD")
    same = scale.size == 1 and scale.reshape(()) == out_scale.reshape(())
    ratio = scale.astype(np.float64) / out_scale.astype(np.float64)
    if compute in ("float32", "float64"):
        real = x.astype(compute) - zero_point.astype(compute)
        if not same:
            real = real * ratio.astype(compute)
            real = np.floor(real + np.asarray(0.5, compute)) if upward else round_half_away(real)
        return saturate(real.astype(np.float64) + out_zero_point, dtype)
    shifted = (x.astype(np.int32) - zero_point).astype(np.int32)
    if not same:
        multiply = fixed_point_multiply if upward else _fixed_point_to_nearest
        shifted = multiply(shifted, *multiplier_and_shift(ratio))
    return saturate(shifted.astype(np.int64) + out_zero_point, dtype)


def _scaled_relation(rel: Relation, default: str) -> None:
    """Types (data, scale, zero point) -> data of `out_dtype`, or of the default dtype."""
    quantization(rel, 1, _axis_size(rel))
    rel.set_result(tensor_type(shape_of(rel.tensor(0)), dtype_attr(rel, "out_dtype", default)))


def _quantize(attrs: Attrs, x: Array, scale: Array, zero_point: Array) -> Array:
    scale, zero_point = (per_axis(p, attrs.axis, x.ndim) for p in (scale, zero_point))
    return quantize(x, scale, zero_point, numpy_type(attrs.out_dtype or "int8"))


define(
    "qnn.quantize", ("data", "output_scale", "output_zero_point"),
    lambda rel: _scaled_relation(rel, "int8"), OpPattern.ELEMWISE,
    numpy=_quantize,
    compute=lambda attrs, xs, out: [computes.te_quantize(attrs, *xs)],
    attributes=(attr("out_dtype", None, "str"), attr("axis", -1)),
    doc="round(data / scale) + zero_point, saturated to `out_dtype`; vectors of parameters go along `axis`.",
    source=ONNX.format("QuantizeLinear"),
)  # fmt: skip


def _dequantize(attrs: Attrs, x: Array, scale: Array, zero_point: Array) -> Array:
    real = dequantize(x, *(per_axis(p, attrs.axis, x.ndim) for p in (scale, zero_point)))
    return real.astype(numpy_type(attrs.out_dtype or "float32"))


define(
    "qnn.dequantize", ("data", "input_scale", "input_zero_point"),
    lambda rel: _scaled_relation(rel, "float32"), OpPattern.ELEMWISE,
    numpy=_dequantize,
    compute=lambda attrs, xs, out: [computes.te_dequantize(attrs, *xs)],
    attributes=(attr("out_dtype", None, "str"), attr("axis", -1)),
    doc="(data - zero_point) * scale; vectors of parameters go along `axis`.",
    source=ONNX.format("DequantizeLinear"),
)  # fmt: skip


def _requantize_relation(rel: Relation) -> None:
    quantization(rel, 1, _axis_size(rel))
    quantization(rel, 3)
    if rel.attrs.rounding not in ("None", "UPWARD", "TONEAREST"):
        raise rel.fail(f"qnn.requantize: rounding={rel.attrs.rounding!r} must be UPWARD or TONEAREST")
    if rel.attrs.compute_dtype not in ("None", "int64", "float32", "float64"):
        raise rel.fail(f"qnn.requantize: compute_dtype={rel.attrs.compute_dtype!r} must be int64, float32 or float64")
    rel.set_result(tensor_type(shape_of(rel.tensor(0)), dtype_attr(rel, "out_dtype", "int8")))


def _requantize(
    attrs: Attrs, x: Array, scale: Array, zero_point: Array, out_scale: Array, out_zero_point: Array
) -> Array:
    scale, zero_point = (per_axis(p, attrs.axis, x.ndim) for p in (scale, zero_point))
    target = (out_scale, out_zero_point, numpy_type(attrs.out_dtype or "int8"))
    return requantize(x, scale, zero_point, target, attrs.rounding, attrs.compute_dtype)


define(
    "qnn.requantize",
    ("data", "input_scale", "input_zero_point", "output_scale", "output_zero_point"),
    _requantize_relation, OpPattern.ELEMWISE,
    numpy=_requantize,
    compute=lambda attrs, xs, out: [computes.te_requantize(attrs, *xs)],
    attributes=(
        attr("axis", -1), attr("rounding", "None"), attr("compute_dtype", "None"), attr("out_dtype", None, "str"),
    ),
    doc="Quantized data in another scale and zero point. UPWARD rounds halves up, TONEAREST away from zero.",
    source=ARXIV.format("1712.05877"),
)  # fmt: skip

Quantized: TypeAlias = "tuple[Array, Array, Array]"
"""A quantized tensor: integers, scale, zero point."""

Target: TypeAlias = "tuple[Array, Array, Any]"
"""How to quantize: scale, zero point, dtype."""

_BINARY = (
    "lhs",
    "rhs",
    "lhs_scale",
    "lhs_zero_point",
    "rhs_scale",
    "rhs_zero_point",
    "output_scale",
    "output_zero_point",
)


def _binary_relation(rel: Relation) -> None:
    dtype = same_dtype(rel, 0, 1)
    for index, name in ((0, "lhs_axis"), (1, "rhs_axis")):
        quantization(rel, 2 + 2 * index, _axis_size(rel, index, name))
    quantization(rel, 6)
    rel.set_result(tensor_type(broadcast_arguments(rel, 0, 1), dtype))


def _register_binary(
    name: str,
    combine: Callable[[Quantized, Quantized, Target], Array],
    compute: computes.CombineQuantized,
    doc: str,
    *,
    source: str,
) -> None:
    """Registers an operator of two quantized tensors.

    `combine` takes the tensor, scale and zero point of both, and the target.
    """

    def meaning(attrs: Attrs, a: Array, b: Array, *parameters: Array) -> Array:
        a_scale, a_zero = (per_axis(p, attrs.lhs_axis, a.ndim) for p in parameters[0:2])
        b_scale, b_zero = (per_axis(p, attrs.rhs_axis, b.ndim) for p in parameters[2:4])
        return combine((a, a_scale, a_zero), (b, b_scale, b_zero), (parameters[4], parameters[5], a.dtype))

    define(
        name, _BINARY, _binary_relation, OpPattern.BROADCAST,
        numpy=meaning,
        compute=lambda attrs, xs, out: [computes.te_binary(attrs, xs, compute, f"T_{name.replace('.', '_')}")],
        attributes=(attr("lhs_axis", -1), attr("rhs_axis", -1)), doc=doc, source=source,
    )  # fmt: skip


def _in_common(q: Quantized, to: Target) -> Array:
    """Returns a quantized tensor in the target's scale and zero point, as int32."""
    return requantize(*q, (to[0], to[1], np.dtype(np.int32)), None, None).astype(np.int64)


# fmt: off
_register_binary("qnn.add", lambda a, b, to: saturate(_in_common(a, to) + _in_common(b, to) - to[1], to[2]), computes.added,
    "The sum of quantized tensors, each brought to the target's scale first.", source=ARXIV.format("1712.05877"))
_register_binary("qnn.subtract", lambda a, b, to: saturate(_in_common(a, to) - _in_common(b, to) + to[1], to[2]), computes.subtracted,
    "The difference of quantized tensors, each brought to the target's scale first.", source=ARXIV.format("1712.05877"))
# fmt: on


def _multiply(a: Quantized, b: Quantized, to: Target) -> Array:
    product = (a[0].astype(np.int32) - a[2]) * (b[0].astype(np.int32) - b[2])
    return requantize(product.astype(np.int32), a[1] * b[1], np.zeros((), np.int32), to, None, None)


# fmt: off
_register_binary("qnn.mul", _multiply, computes.multiplied,
    "The product of quantized tensors: that of the integers, requantized.", source=ARXIV.format("1712.05877"))
# fmt: on


_PRODUCT = ("data", "weight", "input_zero_point", "kernel_zero_point", "input_scale", "kernel_scale")


def _product_relation(shape_relation: TypeRelation) -> TypeRelation:
    """Returns the relation of the operator on plain integers; zero points are int32, scales float32."""

    def relation(rel: Relation) -> None:
        for index, dtype in ((2, "int32"), (3, "int32"), (4, "float32"), (5, "float32")):
            if rel.type_of(index) is None:
                rel.set_argument(index, tensor_type([], dtype))
            elif dtype_of(rel.tensor(index)) != dtype or rel.tensor(index).get_num_dims() > 1:
                raise rel.fail(
                    f"{rel.operator.name}: {show_argument(rel, index)} must be a scalar or a vector of {dtype}",
                    argument=index,
                )
            elif not all(at_most(1, size) for size in shape_of(rel.tensor(index))):
                raise rel.fail(f"{rel.operator.name}: {show_argument(rel, index)} has no elements", argument=index)
        shape_relation(rel)

    return relation


def _dense_relation(rel: Relation) -> None:
    _product_relation(lambda rel: matmul_relation(rel, False, True))(rel)
    zero = shape_of(rel.tensor(3))
    if zero and not can_expand(zero[0], shape_of(rel.tensor(1))[0]):
        raise rel.fail(
            f"qnn.dense: {show_argument(rel, 3)} must be one number or one for each row of {show_argument(rel, 1)}",
            argument=3,
        )


def _centered(x: Array, zero_point: Array, axis: int = -1) -> Array:
    return x.astype(np.int32) - per_axis(zero_point.astype(np.int32), axis, x.ndim)


def _dense(attrs: Attrs, x: Array, w: Array, x_zero: Array, w_zero: Array, *scales: Array) -> Array:
    return matmul(_centered(x, x_zero), _centered(w, w_zero, 0).T, numpy_type(attrs.out_dtype or "int32"))


def _define_product(
    name: str,
    relation: TypeRelation,
    numpy: Meaning,
    compute: Compute,
    attributes: Sequence[AttrSpec],
    doc: str,
    arguments: tuple[str, ...] = _PRODUCT,
) -> None:
    """Defines a product of quantized tensors; an unset `out_dtype` is int32, not the data's dtype."""
    in_int32 = [attr("out_dtype", "int32", printed=True) if a.name == "out_dtype" else a for a in attributes]
    define(
        name, arguments, relation, OpPattern.OUT_ELEMWISE_FUSABLE, numpy=numpy, compute=compute,
        attributes=tuple(in_int32), doc=doc, source=ARXIV.format("1712.05877"),
    )  # fmt: skip


_define_product(
    "qnn.dense", _dense_relation, _dense, computes.te_dense, (UNITS, OUT_DTYPE),
    "`nn.dense` of quantized tensors: the sums of (data - its zero point) * (weight - its zero point), unscaled.",
)  # fmt: skip


def _dense_pack(attrs: Attrs, x: Array, w: Array, x_zero: Array, w_zero: Array, *scales: Array) -> Array:
    flat = w.swapaxes(1, 2).reshape(w.shape[0] * w.shape[2], w.shape[1])
    return _dense(attrs, x, flat, x_zero, w_zero)


_define_product(
    "qnn.contrib_dense_pack", _product_relation(dense_pack_relation), _dense_pack, computes.te_dense_pack,
    (UNITS, OUT_DTYPE, attr("weight_layout", "NC")),
    "`qnn.dense` with a weight packed as (units / n, k, n).",
)  # fmt: skip


def _batch_matmul(attrs: Attrs, x: Array, y: Array, x_zero: Array, y_zero: Array, *scales: Array) -> Array:
    x, y = _centered(x, x_zero), _centered(y, y_zero)
    x = x.swapaxes(1, 2) if attrs.transpose_a else x
    y = y.swapaxes(1, 2) if attrs.transpose_b else y
    return matmul(x, y, numpy_type(attrs.out_dtype or "int32"))


_define_product(
    "qnn.batch_matmul", _product_relation(batch_matmul_relation), _batch_matmul, computes.te_batch_matmul,
    (OUT_DTYPE, attr("transpose_a", False), attr("transpose_b", False)),
    "`nn.batch_matmul` of quantized tensors: the sums of products of integers less their zero points, unscaled.",
    arguments=("x", "y", "x_zero_point", "y_zero_point", "x_scale", "y_scale"),
)  # fmt: skip


def _conv2d(attrs: Attrs, x: Array, w: Array, x_zero: Array, w_zero: Array, *scales: Array) -> Array:
    source, kernel = layout(attrs.data_layout), layout(attrs.kernel_layout)
    # Padding represents the number 0, which is the zero point: centered data is padded by 0.
    data = _centered(source.to_logical(x, "NCHW"), x_zero)
    weight = kernel.to_logical(w, "OIHW").astype(np.int32)
    depthwise = w_zero.size > 1 and w_zero.size != weight.shape[0]
    weight = weight - (w_zero.reshape(weight.shape[0], -1, 1, 1) if depthwise else per_axis(w_zero, 0, 4))
    result = convolve(data, weight, attrs, numpy_type(attrs.out_dtype or "int32"))
    return layout(attrs.out_layout or attrs.data_layout).from_logical(result, "NCHW")


_define_product(
    "qnn.conv2d", _product_relation(CONV_RELATION[2]), _conv2d, computes.te_conv2d, conv_attributes(2),
    "`nn.conv2d` of quantized tensors: the sums of products of integers less their zero points, unscaled.",
)  # fmt: skip


def _conv2d_transpose(attrs: Attrs, x: Array, w: Array, x_zero: Array, w_zero: Array, *scales: Array) -> Array:
    data = _centered(layout(attrs.data_layout).to_logical(x, "NCHW"), x_zero)
    weight = _centered(layout(attrs.kernel_layout).to_logical(w, "IOHW"), w_zero, 1)
    result = convolve_transposed(data, weight, attrs, numpy_type(attrs.out_dtype or "int32"))
    return layout(attrs.out_layout or attrs.data_layout).from_logical(result, "NCHW")


_define_product(
    "qnn.conv2d_transpose", _product_relation(TRANSPOSED_RELATION[2]), _conv2d_transpose, computes.te_conv2d_transpose,
    transposed_attributes(2),
    "`nn.conv2d_transpose` of quantized tensors, unscaled.",
)  # fmt: skip


def _avg_pool_relation(rel: Relation) -> None:
    quantization(rel, 1)
    quantization(rel, 3)
    POOL_RELATION[2](rel)


def _avg_pool2d(attrs: Attrs, x: Array, scale: Array, zero_point: Array, out_scale: Array, out_zero: Array) -> Array:
    padded = means_count_padding(attrs)
    zero = np.zeros_like(out_zero) if padded else out_zero
    wide = requantize(x, scale, zero_point, (out_scale, zero, np.dtype(np.int32)), None, None)
    mean = average_windows(attrs, layout(attrs.layout).to_logical(wide, "NC" + SPATIAL[2])).astype(np.int64)
    result = saturate(mean + out_zero if padded else mean, x.dtype)
    return layout(attrs.out_layout or attrs.layout).from_logical(result, "NCHW")


define(
    "qnn.avg_pool2d", ("data", "input_scale", "input_zero_point", "output_scale", "output_zero_point"),
    _avg_pool_relation, OpPattern.OUT_ELEMWISE_FUSABLE,
    numpy=_avg_pool2d,
    compute=lambda attrs, xs, out: [computes.te_avg_pool2d(attrs, xs, out)],
    attributes=(*POOL_ATTRIBUTES[2], attr("count_include_pad", False)),
    doc="`nn.avg_pool2d` of a quantized tensor: the elements are requantized, their mean is rounded toward zero.",
    source=ARXIV.format("1712.05877"),
)  # fmt: skip


def _concatenate_relation(rel: Relation) -> None:
    fields = rel.tensors(0)
    for index in (1, 2):
        if rel.type_of(index) is not None and not isinstance(rel.type_of(index), TupleType):
            raise rel.fail(
                f"qnn.concatenate: {show_argument(rel, index)} must be a tuple, one for each tensor", argument=index
            )
        if len(rel.tensors(index)) != len(fields):
            raise rel.fail(
                f"qnn.concatenate: {show_argument(rel, index)} must have {len(fields)} fields", argument=index
            )
    quantization(rel, 3)
    concatenate_relation(rel)


def _concatenate(attrs: Attrs, xs: Sequence[Array], scales: Any, zero_points: Any, scale: Array, zero: Array) -> Array:
    parts: list[Array] = []
    for x, x_scale, x_zero in zip(xs, scales, zero_points, strict=True):
        same = x_scale == scale and x_zero == zero
        parts.append(x if same else requantize(x, x_scale, x_zero, (scale, zero, x.dtype), None, None))
    return np.concatenate(parts, attrs.axis)


define(
    "qnn.concatenate", ("*data", "*input_scales", "*input_zero_points", "output_scale", "output_zero_point"),
    _concatenate_relation, OpPattern.INJECTIVE,
    numpy=_concatenate,
    compute=computes.te_concatenate,
    attributes=(attr("axis", 0),),
    doc="Quantized tensors one after the other along `axis`, each requantized where its parameters differ.",
    source=ARXIV.format("1712.05877"),
)  # fmt: skip
