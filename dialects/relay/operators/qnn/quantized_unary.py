"""Defines quantized operators of one tensor: functions of its numbers, leaky ReLU, softmax."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...operator import Attrs, OpPattern, Relation, attr, define
from ..common._lazy import elementary, np, te
from ..common.numpy_meanings import Array, erf, round_half_away
from ..common.relations import axis_of
from ..common.sources import ARXIV, NUMPY, ONNX, TVM, C
from ..elementwise.unary import fixed_point_multiply
from . import te_qnn_unary as computes
from .quantized import dequantize, multiplier_and_shift, quantization, quantize, requantize, saturate

if TYPE_CHECKING:
    from ....te.builder import Expr

TVM_QNN = "https://tvm.apache.org/docs/v0.16.0/reference/api/python/relay/qnn.html#tvm.relay.qnn.{}"


def _unary_relation(rel: Relation) -> None:
    quantization(rel, 1)
    quantization(rel, 3)
    rel.set_result(rel.tensor(0))


def _register_unary(
    name: str,
    function: Callable[[Array], Array],
    compute: Callable[[Expr], Expr],
    doc: str,
    *,
    source: str,
    steps: bool = False,
) -> None:
    """Registers a function of real numbers.

    With `steps` it is several operations on float32, each of which rounds; otherwise the result is rounded once.
    """

    def meaning(attrs: Attrs, x: Array, scale: Array, zero_point: Array, out_scale: Array, out_zero: Array) -> Array:
        given = dequantize(x, scale, zero_point)
        real = function(given) if steps else elementary.in_float64(function)(given)
        return quantize(np.nan_to_num(real, nan=0.0), out_scale, out_zero, x.dtype)

    define(
        name, ("x", "scale", "zero_point", "output_scale", "output_zero_point"), _unary_relation, OpPattern.ELEMWISE,
        numpy=meaning,
        compute=lambda attrs, xs, out: [computes.te_unary(xs, compute, f"T_{name.replace('.', '_')}")],
        doc=doc, source=source,
    )  # fmt: skip


# fmt: off
_register_unary("qnn.exp", lambda x: np.exp(x), lambda x: te.exp(x), "exp of a quantized tensor.", source=NUMPY.format("exp"))
_register_unary("qnn.sqrt", lambda x: np.sqrt(x), lambda x: te.sqrt(x), "The square root of a quantized tensor.", source=NUMPY.format("sqrt"))
_register_unary("qnn.rsqrt", lambda x: np.float32(1) / np.sqrt(x), lambda x: te.const(1.0, "float32") / te.sqrt(x),
    "One over the square root of a quantized tensor.", source=TVM.format("rsqrt"), steps=True)
_register_unary("qnn.erf", erf, lambda x: te.erf(x), "The error function of a quantized tensor.", source=C.format("erf"))
_register_unary("qnn.log", lambda x: np.log(x), lambda x: te.log(x), "The natural logarithm of a quantized tensor.", source=NUMPY.format("log"))
_register_unary("qnn.sigmoid", lambda x: 1 / (1 + np.exp(-x)), lambda x: te.sigmoid(x),
    "The sigmoid of a quantized tensor.", source=ONNX.format("Sigmoid"))
_register_unary("qnn.tanh", lambda x: np.tanh(x), lambda x: te.tanh(x), "The hyperbolic tangent of a quantized tensor.", source=NUMPY.format("tanh"))
_register_unary("qnn.hardswish", lambda x: x * np.clip(x + np.float32(3), np.float32(0), np.float32(6)) / np.float32(6), computes.te_hardswish,
    "x * clip(x + 3, 0, 6) / 6 of a quantized tensor.", source=ARXIV.format("1905.02244"), steps=True)
_register_unary("qnn.abs", lambda x: np.abs(x), lambda x: te.abs(x), "The distance from zero of a quantized tensor.", source=NUMPY.format("absolute"))
# fmt: on


def _leaky_relu(attrs: Attrs, x: Array, scale: Array, zero_point: Array, out_scale: Array, out_zero: Array) -> Array:
    target = (out_scale, out_zero, np.dtype(np.int32))
    moved = requantize(x, scale, zero_point, target, None, None)
    small = fixed_point_multiply(moved, *multiplier_and_shift(np.asarray(attrs.alpha)))
    rest = fixed_point_multiply(out_zero.astype(np.int32), *multiplier_and_shift(np.asarray(1 - attrs.alpha)))
    return saturate(np.where(x.astype(np.int32) < zero_point, small + rest, moved).astype(np.int64), x.dtype)


define(
    "qnn.leaky_relu", ("data", "input_scale", "input_zero_point", "output_scale", "output_zero_point"),
    _unary_relation, OpPattern.ELEMWISE,
    numpy=_leaky_relu,
    compute=lambda attrs, xs, out: [computes.te_leaky_relu(attrs.alpha, xs)],
    attributes=(attr("alpha", 0.25),),
    doc="`nn.leaky_relu` of a quantized tensor: requantized, then times `alpha` in fixed point where it was negative.",
    source=TVM_QNN.format("leaky_relu"),
)  # fmt: skip


def _softmax_relation(rel: Relation) -> None:
    axis_of(rel, rel.attrs.axis, rel.tensor(0).get_num_dims())
    _unary_relation(rel)


def _softmax(attrs: Attrs, x: Array, scale: Array, zero_point: Array, out_scale: Array, out_zero: Array) -> Array:
    axis: int = attrs.axis
    one = np.maximum(round_half_away(np.float32(1) / scale.reshape(()).astype(np.float32)).astype(np.int32), 1)
    centered = x.astype(np.int32) - zero_point
    centered = centered - centered.max(axis, keepdims=True)
    # The exponent to the base 2: times log2(e), about 1 + 1/2 - 1/16.
    power = centered + (centered >> 1) - (centered >> 4)
    whole = np.clip(-power // one, 0, 20).astype(np.int32)
    rest = ((power + whole * one) >> 1) + one
    parts = rest << (whole.max(axis, keepdims=True) - whole)
    total = np.maximum(parts.sum(axis, keepdims=True, dtype=np.int32), 1)
    share = (np.int32(1 << 30) // total * parts) >> 23
    eighth = np.full((), 1 / 128, np.float32)
    return requantize(share, eighth, np.zeros((), np.int32), (out_scale, out_zero, x.dtype), None, None)


define(
    "qnn.softmax", ("data", "scale", "zero_point", "output_scale", "output_zero_point"),
    _softmax_relation, OpPattern.OPAQUE,
    numpy=_softmax,
    compute=lambda attrs, xs, out: [computes.te_softmax(attrs.axis, xs)],
    attributes=(attr("axis", -1),),
    doc="`nn.softmax` of a quantized tensor in integers: powers of two with a linear fraction; the scale must not be above 1.",
    source="https://arxiv.org/abs/2207.01405",
)  # fmt: skip
