"""Defines activations, softmax, bias and the small layers of neural networks.

softmax, relu, prelu: data (N,C,H,W) -> (N,C,H,W)
bias_add:             data (N,C,H,W), bias (C), axis=1 -> (N,C,H,W)
batch_flatten:        data (N,C,H,W) -> (N, C*H*W)
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import ArrayAttr

from ...operator import Attrs, OpPattern, Relation, attr, define
from ..common._lazy import elementary, np, numeric, te
from ..common.numpy_meanings import Array, along
from ..common.relations import axis_of, identity, rank_at_least, shape_of, size_of, tensor_type, tuple_type
from ..common.sources import ARXIV, ONNX, TVM_NN
from ..common.te_computes import elementwise, in_wide_dtype, te_largest, unflatten
from ..elementwise.reduce import te_reduce
from ..elementwise.unary import unary

if TYPE_CHECKING:
    from ....te.builder import Expr, Tensor

unary("nn.relu", lambda x: numeric.larger(x, np.zeros((), x.dtype)), lambda x: te.max(x, te.const(0, x.dtype)), "Each element, at least 0.", source=ONNX.format("Relu"))  # fmt: skip


def _leaky_relu(attrs: Attrs, x: Array) -> Array:
    return np.where(x > 0, x, x * np.asarray(attrs.alpha).astype(x.dtype)).astype(x.dtype)


define(
    "nn.leaky_relu", ("data",), identity, OpPattern.ELEMWISE,
    numpy=_leaky_relu,
    compute=lambda attrs, xs, out: [
        elementwise(lambda x: te.Select(x > te.const(0, x.dtype), x, x * te.const(attrs.alpha, x.dtype)), xs[0])
    ],
    attributes=(attr("alpha", 0.25),),
    doc="Each element where above 0, otherwise `alpha` times it.",
    source=TVM_NN.format("leaky_relu"),
)  # fmt: skip


def per_channel(rel: Relation) -> None:
    """Types the second argument as a vector along the attribute `axis` of the first, the result's type."""
    data = rank_at_least(rel, 0, 1)
    shape = shape_of(data)
    axis = axis_of(rel, rel.attrs.axis, len(shape))
    rel.set_argument(1, tensor_type([shape[axis]], data.element_type))
    rel.set_result(data)


def te_per_channel(function: Callable[[Expr, Expr], Expr], x: Tensor, vector: Tensor, axis: int, name: str) -> Tensor:
    """Computes `function` of each element and the vector's element at its index along `axis`."""
    axis %= len(x.shape)
    return te.compute(x.shape, lambda *i: function(x(*i), vector(i[axis])), name=name)


define(
    "nn.bias_add", ("data", "bias"), per_channel, OpPattern.BROADCAST,
    numpy=lambda attrs, x, b: x + along(b, attrs.axis, x.ndim),
    compute=lambda attrs, xs, out: [te_per_channel(lambda x, b: x + b, xs[0], xs[1], attrs.axis, "T_bias_add")],
    attributes=(attr("axis", 1),),
    doc="data plus a vector along `axis`.",
    source=TVM_NN.format("bias_add"),
)  # fmt: skip


def _prelu(attrs: Attrs, x: Array, alpha: Array) -> Array:
    return np.where(x > 0, x, x * along(alpha, attrs.axis, x.ndim)).astype(x.dtype)


define(
    "nn.prelu", ("data", "alpha"), per_channel, OpPattern.BROADCAST,
    numpy=_prelu,
    compute=lambda attrs, xs, out: [
        te_per_channel(
            lambda x, a: te.Select(x > te.const(0, x.dtype), x, x * a), xs[0], xs[1], attrs.axis, "T_prelu"
        )
    ],
    attributes=(attr("axis", 1),),
    doc="Each element where above 0, otherwise times the slope of its place along `axis`.",
    source=ARXIV.format("1502.01852"),
)  # fmt: skip


def _softmax_relation(rel: Relation) -> None:
    data = rank_at_least(rel, 0, 1)
    axis_of(rel, rel.attrs.axis, len(shape_of(data)))
    rel.set_result(data)


def _wide(x: Array) -> Array:
    # Half precision is summed in float32, as everywhere.
    return x if x.dtype in (np.dtype(np.float32), np.dtype(np.float64)) else x.astype(np.float32)


def _softmax(attrs: Attrs, x: Array) -> Array:
    wide = _wide(x)
    e = elementary.exp(wide - wide.max(axis=attrs.axis, keepdims=True, initial=-np.inf))
    return (e / e.sum(axis=attrs.axis, keepdims=True)).astype(x.dtype)


def _log_softmax(attrs: Attrs, x: Array) -> Array:
    shifted = (wide := _wide(x)) - wide.max(axis=attrs.axis, keepdims=True, initial=-np.inf)
    return (shifted - elementary.log(elementary.exp(shifted).sum(axis=attrs.axis, keepdims=True))).astype(x.dtype)


def _te_softmax(attrs: Attrs, x: Tensor, log: bool) -> Tensor:
    axis: int = attrs.axis % len(x.shape)

    def of(t: Tensor, indices: tuple[Expr, ...]) -> Expr:
        return t(*indices[:axis], *indices[axis + 1 :])

    largest = te_reduce(te_largest, x, [axis], False, "T_softmax_maxelem")
    exps = te.compute(x.shape, lambda *i: te.exp(x(*i) - of(largest, i)), name="T_softmax_exp")
    total = te_reduce(lambda e, axis: te.sum(e, axis=axis), exps, [axis], False, "T_softmax_expsum")
    if log:
        return te.compute(x.shape, lambda *i: x(*i) - of(largest, i) - te.log(of(total, i)), name="T_log_softmax_norm")
    # One division a row: each is many multiplications.
    inverse = te.compute(total.shape, lambda *i: te.const(1, x.dtype) / total(*i), name="T_softmax_inverse")
    return te.compute(x.shape, lambda *i: exps(*i) * of(inverse, i), name="T_softmax_norm")


def _register_softmax(name: str, log: bool, doc: str, *, source: str) -> None:
    define(
        name, ("data",), _softmax_relation, OpPattern.OUT_ELEMWISE_FUSABLE,
        numpy=_log_softmax if log else _softmax,
        compute=in_wide_dtype(lambda attrs, xs, out: [_te_softmax(attrs, xs[0], log)]),
        attributes=(attr("axis", -1),),
        doc=doc, source=source,
    )  # fmt: skip


# fmt: off
_register_softmax("nn.softmax", False, "exp(x) / sum(exp(x)) along `axis`, computed from x - max(x).", source=ONNX.format("Softmax"))
_register_softmax("nn.fast_softmax", False, "`nn.softmax`, where an approximation of exp is good enough.", source=TVM_NN.format("fast_softmax"))
_register_softmax("nn.log_softmax", True, "log(softmax(x)) along `axis`, computed from x - max(x).", source=ONNX.format("LogSoftmax"))
# fmt: on


def _dropout_relation(rel: Relation) -> None:
    data = rel.tensor(0)
    rel.set_result(tuple_type(ArrayAttr([data, data])))


define(
    "nn.dropout", ("data",), _dropout_relation, OpPattern.OPAQUE,
    numpy=lambda attrs, x: (x, np.ones_like(x)),
    compute=lambda attrs, xs, out: [
        elementwise(lambda x: x, xs[0], "T_dropout"),
        elementwise(lambda x: te.const(1, x.dtype), xs[0], "T_dropout_mask"),
    ],
    attributes=(attr("rate", 0.5),),
    doc="At inference the data itself, and the mask of what was kept (all of it).",
    source=TVM_NN.format("dropout"),
)  # fmt: skip


def _batch_flatten_relation(rel: Relation) -> None:
    data = rank_at_least(rel, 0, 1)
    batch, *rest = shape_of(data)
    rel.set_result(tensor_type([batch, size_of(rest)], data.element_type))


def _te_batch_flatten(x: Tensor) -> Tensor:
    rest = x.shape[1:]
    size: Any = 1
    for dim in rest:
        size = size * dim
    return te.compute((x.shape[0], size), lambda *i: x(i[0], *unflatten(i[1], rest)), name="T_batch_flatten")


define(
    "nn.batch_flatten", ("data",), _batch_flatten_relation, OpPattern.INJECTIVE,
    numpy=lambda attrs, x: x.reshape(x.shape[0], prod(x.shape[1:])),
    compute=lambda attrs, xs, out: [_te_batch_flatten(xs[0])],
    doc="All axes after the first as one.",
    source=TVM_NN.format("batch_flatten"),
)  # fmt: skip
