"""Defines normalizations at inference: batch, layer, instance and group norm, lrn, l2_normalize.

batch_norm: data (N,C,H,W), gamma (C), beta (C), moving_mean (C), moving_var (C) -> ((N,C,H,W), (C), (C))
layer_norm: data (N,C), gamma (C), beta (C) -> (N,C)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import ArrayAttr

from ...operator import Attrs, OpPattern, Relation, attr, define
from ..common._lazy import elementary, np, te
from ..common.numpy_meanings import Array, along, normal_axes, widened
from ..common.relations import (
    axes_of,
    axis_of,
    is_multiple,
    rank_at_least,
    shape_of,
    show_argument,
    tensor_type,
    tuple_type,
)
from ..common.sources import ARXIV, ONNX, TVM_NN
from ..common.te_computes import elementwise, in_wide_dtype
from ..elementwise.reduce import te_mean, te_reduce

if TYPE_CHECKING:
    from ....te.builder import Expr, Tensor

AFFINE = (attr("epsilon", 1e-5), attr("center", True), attr("scale", True))


def _channel_vectors(rel: Relation, count: int) -> int:
    """Sets the `count` arguments after the data to vectors along `axis`; returns their length."""
    data = rank_at_least(rel, 0, 1)
    shape = shape_of(data)
    size = shape[axis_of(rel, rel.attrs.axis, len(shape))]
    for index in range(1, 1 + count):
        rel.set_argument(index, tensor_type([size], data.element_type))
    return size


def _affine(attrs: Attrs, x: Array, gamma: Array, beta: Array, axis: int) -> Array:
    if attrs.scale:
        x = x * along(gamma, axis, x.ndim)
    return x + along(beta, axis, x.ndim) if attrs.center else x


def _batch_norm_relation(rel: Relation) -> None:
    size = _channel_vectors(rel, 4)
    data = rel.tensor(0)
    vector = tensor_type([size], data.element_type)
    rel.set_result(tuple_type(ArrayAttr([data, vector, vector])))


def _batch_norm(attrs: Attrs, x: Array, gamma: Array, beta: Array, mean: Array, var: Array) -> tuple[Array, ...]:
    axis: int = attrs.axis % x.ndim
    shift, spread = widened(mean), np.sqrt(widened(var) + np.asarray(attrs.epsilon, widened(var).dtype))
    normal = (widened(x) - along(shift, axis, x.ndim)) / along(spread, axis, x.ndim)
    return _affine(attrs, normal, widened(gamma), widened(beta), axis).astype(x.dtype), mean, var


def _te_batch_norm(attrs: Attrs, xs: Sequence[Tensor]) -> list[Tensor]:
    x, gamma, beta, mean, var = xs
    axis: int = attrs.axis % len(x.shape)

    def body(*i: Expr) -> Any:
        c = i[axis]
        value = (x(*i) - mean(c)) / te.sqrt(var(c) + te.const(attrs.epsilon, x.dtype))
        if attrs.scale:
            value = value * gamma(c)
        return value + beta(c) if attrs.center else value

    return [
        te.compute(x.shape, body, name="T_batch_norm"),
        *(elementwise(lambda e: e, t, "T_copy") for t in (mean, var)),
    ]


define(
    "nn.batch_norm", ("data", "gamma", "beta", "moving_mean", "moving_var"), _batch_norm_relation,
    OpPattern.OUT_ELEMWISE_FUSABLE,
    numpy=_batch_norm,
    compute=in_wide_dtype(lambda attrs, xs, out: _te_batch_norm(attrs, xs)),
    attributes=(attr("axis", 1), *AFFINE),
    doc="(x - mean) / sqrt(var + epsilon) * gamma + beta along `axis`; with it the mean and the variance, as given.",
    source=ARXIV.format("1502.03167"),
)  # fmt: skip


def _normalized(x: Array, axes: tuple[int, ...], epsilon: float) -> Array:
    """Shifts and scales x to mean 0 and variance 1 over axes."""
    mean = x.mean(axis=axes, keepdims=True)
    var = np.square(x - mean).mean(axis=axes, keepdims=True)
    return (x - mean) / np.sqrt(var + np.asarray(epsilon, x.dtype))


def _te_normalized(x: Tensor, axes: Sequence[int], epsilon: float) -> Callable[[Sequence[Any]], Any]:
    """Returns the normalized tensor's element by its indices. Mean and variance are computes of their own."""
    mean = te_mean(x, axes, False)
    kept = [a for a in range(len(x.shape)) if a not in axes]

    def of(t: Tensor, i: Sequence[Any]) -> Any:
        return t(*(i[a] for a in kept))

    def squared(*i: Any) -> Any:
        deviation = x(*i) - of(mean, i)
        return deviation * deviation

    var = te_mean(te.compute(x.shape, squared, name="T_squared_deviation"), axes, False)
    return lambda i: (x(*i) - of(mean, i)) / te.sqrt(of(var, i) + te.const(epsilon, x.dtype))


def _te_affine(attrs: Attrs, value: Any, gamma: Tensor, beta: Tensor, channel: Any) -> Any:
    if attrs.scale:
        value = value * gamma(channel)
    return value + beta(channel) if attrs.center else value


def _normalization(name: str, axis: int, over: Callable[[int, int], tuple[int, ...]], doc: str, *, source: str) -> None:
    """Registers a norm whose statistics are over the axes `over(rank, axis)`."""

    def relation(rel: Relation) -> None:
        _channel_vectors(rel, 2)
        rel.set_result(rel.tensor(0))

    def meaning(attrs: Attrs, x: Array, gamma: Array, beta: Array) -> Array:
        channel = attrs.axis % x.ndim
        normal = _normalized(widened(x), over(x.ndim, channel), attrs.epsilon)
        return _affine(attrs, normal, widened(gamma), widened(beta), channel).astype(x.dtype)

    def compute(attrs: Attrs, xs: Sequence[Tensor], out: Any) -> list[Tensor]:
        x, gamma, beta = xs
        channel: int = attrs.axis % len(x.shape)
        normal = _te_normalized(x, over(len(x.shape), channel), attrs.epsilon)

        def body(*i: Any) -> Any:
            return _te_affine(attrs, normal(i), gamma, beta, i[channel])

        return [te.compute(x.shape, body, name=f"T_{name.removeprefix('nn.')}")]

    define(
        name, ("data", "gamma", "beta"), relation, OpPattern.OUT_ELEMWISE_FUSABLE,
        numpy=meaning, compute=in_wide_dtype(compute), attributes=(attr("axis", axis), *AFFINE), doc=doc, source=source,
    )  # fmt: skip


# fmt: off
_normalization("nn.layer_norm", -1, lambda rank, axis: (axis,),
    "Mean 0 and variance 1 along `axis`, then times gamma plus beta.", source=ARXIV.format("1607.06450"))
_normalization("nn.instance_norm", 1, lambda rank, axis: tuple(a for a in range(1, rank) if a != axis),
    "Mean 0 and variance 1 over each image's axes for each channel, then times gamma plus beta.", source=ARXIV.format("1607.08022"))
# fmt: on


def _group_norm_relation(rel: Relation) -> None:
    size = _channel_vectors(rel, 2)
    groups = rel.attrs.num_groups
    if groups < 1 or not is_multiple(size, groups):
        raise rel.fail(
            f"nn.group_norm: num_groups={groups} does not divide the {size} channels of {show_argument(rel, 0)}"
        )
    rel.set_result(rel.tensor(0))


def _group_axes(rank: int, axis: int) -> tuple[int, ...]:
    """Returns all axes except the first and the groups, of data whose channels are split in two."""
    return tuple(a for a in range(1, rank + 1) if a != axis)


def _group_norm(attrs: Attrs, x: Array, gamma: Array, beta: Array) -> Array:
    axis: int = attrs.axis % x.ndim
    groups: int = attrs.num_groups
    grouped = widened(x).reshape(*x.shape[:axis], groups, x.shape[axis] // groups, *x.shape[axis + 1 :])
    normal = _normalized(grouped, _group_axes(x.ndim, axis), attrs.epsilon).reshape(x.shape)
    return _affine(attrs, normal, widened(gamma), widened(beta), axis).astype(x.dtype)


def _te_group_norm(attrs: Attrs, xs: Sequence[Tensor]) -> Tensor:
    x, gamma, beta = xs
    axis: int = attrs.axis % len(x.shape)
    size: Any = x.shape[axis]
    width = size // attrs.num_groups if isinstance(size, int) else te.floordiv(size, attrs.num_groups)
    grouped = te.compute(
        [*x.shape[:axis], attrs.num_groups, width, *x.shape[axis + 1 :]],
        lambda *i: x(*i[:axis], i[axis] * width + i[axis + 1], *i[axis + 2 :]),
        name="T_groups",
    )
    normal = _te_normalized(grouped, _group_axes(len(x.shape), axis), attrs.epsilon)

    def body(*i: Any) -> Any:
        split = [*i[:axis], te.floordiv(i[axis], width), te.floormod(i[axis], width), *i[axis + 1 :]]
        return _te_affine(attrs, normal(split), gamma, beta, i[axis])

    return te.compute(x.shape, body, name="T_group_norm")


define(
    "nn.group_norm", ("data", "gamma", "beta"), _group_norm_relation, OpPattern.OUT_ELEMWISE_FUSABLE,
    numpy=_group_norm,
    compute=in_wide_dtype(lambda attrs, xs, out: [_te_group_norm(attrs, xs)]),
    attributes=(attr("num_groups", kind="int"), attr("axis", 1), *AFFINE),
    doc="Mean 0 and variance 1 over each image's axes for each group of channels, then times gamma plus beta.",
    source=ARXIV.format("1803.08494"),
)  # fmt: skip


def _lrn_relation(rel: Relation) -> None:
    data = rel.tensor(0)
    axis_of(rel, rel.attrs.axis, data.get_num_dims())
    if rel.attrs.size < 1 or rel.attrs.size % 2 == 0:
        raise rel.fail(f"nn.lrn: size={rel.attrs.size} must be odd and positive")
    rel.set_result(data)


def _power(x: Array, beta: float) -> Array:
    """Computes x ** beta, by square roots where possible."""
    if beta == 1.0:
        return x
    root = np.sqrt(x)
    if beta == 0.5:
        return root
    return root * np.sqrt(root) if beta == 0.75 else elementary.power(x, np.asarray(beta, x.dtype))


def _lrn(attrs: Attrs, x: Array) -> Array:
    axis: int = attrs.axis % x.ndim
    half: int = attrs.size // 2
    wide = widened(x)
    padded = np.pad(wide * wide, [(half, half) if a == axis else (0, 0) for a in range(x.ndim)])
    total = np.lib.stride_tricks.sliding_window_view(padded, attrs.size, axis).sum(-1, dtype=wide.dtype)
    scale = np.asarray(attrs.alpha / attrs.size, wide.dtype)
    norm = _power(np.asarray(attrs.bias, wide.dtype) + scale * total, attrs.beta)
    return (wide / norm).astype(x.dtype)


def _te_lrn(attrs: Attrs, x: Tensor) -> Tensor:
    axis: int = attrs.axis % len(x.shape)
    half: int = attrs.size // 2
    size: Any = x.shape[axis]

    def square(i: Sequence[Any], k: Any) -> Any:
        place = i[axis] + k - half
        element = x(*i[:axis], place, *i[axis + 1 :])
        inside = te.all(place >= 0, place < size)
        return te.if_then_else(inside, element * element, te.const(0, x.dtype))

    if attrs.size <= MOST_NEIGHBOURS:

        def total(i: Sequence[Any]) -> Any:
            return sum((square(i, k) for k in range(1, attrs.size)), start=square(i, 0))
    else:
        k = te.reduce_axis((0, attrs.size), name="k")
        sums = te.compute(x.shape, lambda *i: te.sum(square(i, k), axis=k), name="lrn_sum")

        def total(i: Sequence[Any]) -> Any:
            return sums(*i)

    bias, scale = te.const(attrs.bias, x.dtype), te.const(attrs.alpha / attrs.size, x.dtype)
    return te.compute(x.shape, lambda *i: x(*i) / _lrn_power(bias + scale * total(i), attrs.beta), name="T_lrn")


MOST_NEIGHBOURS = 9
"""Squares that are added in one expression, in registers."""


def _lrn_power(x: Expr, beta: float) -> Expr:
    """Computes x ** beta, by square roots where possible: networks use 0.75."""
    if beta == 1.0:
        return x
    root = te.sqrt(x)
    if beta == 0.5:
        return root
    return root * te.sqrt(root) if beta == 0.75 else te.power(x, te.const(beta, x.dtype))


define(
    "nn.lrn", ("data",), _lrn_relation, OpPattern.OUT_ELEMWISE_FUSABLE,
    numpy=_lrn,
    compute=in_wide_dtype(lambda attrs, xs, out: [_te_lrn(attrs, xs[0])]),
    attributes=(attr("size", 5), attr("axis", 1), attr("bias", 2.0), attr("alpha", 0.0001), attr("beta", 0.75)),
    doc="x / (bias + alpha / size * (the sum of squares of the `size` neighbours along `axis`)) ^ beta.",
    source=ONNX.format("LRN"),
)  # fmt: skip


def _l2_relation(rel: Relation) -> None:
    data = rel.tensor(0)
    axes_of(rel, rel.attrs.axis, data.get_num_dims())
    rel.set_result(data)


def _l2_normalize(attrs: Attrs, x: Array) -> Array:
    wide = widened(x)
    total = np.sum(np.square(wide), axis=normal_axes(attrs.axis, x.ndim), keepdims=True, dtype=wide.dtype)
    return (wide / np.sqrt(np.maximum(total, np.asarray(attrs.eps, wide.dtype)))).astype(x.dtype)


def _te_l2_normalize(attrs: Attrs, x: Tensor) -> Tensor:
    axes = normal_axes(attrs.axis, len(x.shape))
    square = elementwise(lambda e: e * e, x, "T_square")
    total = te_reduce(lambda e, axis: te.sum(e, axis=axis), square, axes, False, "T_l2_sum")
    kept = [a for a in range(len(x.shape)) if a not in axes]
    eps = te.const(attrs.eps, x.dtype)
    return te.compute(
        x.shape, lambda *i: x(*i) / te.sqrt(te.max(total(*(i[a] for a in kept)), eps)), name="T_l2_normalize"
    )


define(
    "nn.l2_normalize", ("data",), _l2_relation, OpPattern.OUT_ELEMWISE_FUSABLE,
    numpy=_l2_normalize,
    compute=in_wide_dtype(lambda attrs, xs, out: [_te_l2_normalize(attrs, xs[0])]),
    attributes=(attr("eps", kind="float"), attr("axis", None, "ints")),
    doc="x / sqrt(max(sum(x^2), eps)), the sum over `axis`.",
    source=TVM_NN.format("l2_normalize"),
)  # fmt: skip
