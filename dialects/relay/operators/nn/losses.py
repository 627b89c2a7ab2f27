"""Defines losses and small operators of neural networks: dilation by zeros, a FIFO buffer.

cross_entropy: predictions (N,C), targets (N,C) -> ()
nll_loss:      predictions (N,C,d1), targets (N,d1), weights (C) -> () or (N,d1)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...operator import Attrs, OpPattern, Relation, attr, define
from ..common._lazy import elementary, np, te
from ..common.numpy_meanings import Array
from ..common.relations import (
    ANY,
    at_most,
    axis_of,
    dtype_of,
    known_dim,
    rank_at_least,
    rank_must_be,
    same_dim,
    same_dtype,
    shape_of,
    show_argument,
    tensor_type,
)
from ..common.te_computes import divide
from ..indexing.gather import from_end

if TYPE_CHECKING:
    from ....te.builder import Expr, Tensor

DOCUMENTATION = "https://tvm.apache.org/docs/v0.16.0/reference/api/python/relay/nn.html"


def _cross_entropy_relation(rel: Relation) -> None:
    x, y = rank_must_be(rel, 0, 2), rank_must_be(rel, 1, 2)
    element = same_dtype(rel, 0, 1)
    if not all(map(same_dim, shape_of(x), shape_of(y))):
        raise rel.fail(
            f"{rel.operator.name}: {show_argument(rel, 0)} and {show_argument(rel, 1)} must have the same shape",
            argument=1,
        )
    rel.set_result(tensor_type([], element))


def _register_cross_entropy(name: str, logits: bool, doc: str) -> None:
    def meaning(attrs: Attrs, x: Array, y: Array) -> Array:
        wide = np.promote_types(x.dtype, np.float32)
        part = x.astype(wide) if logits else elementary.log(x.astype(wide))
        return (-(part * y.astype(wide)).sum() / wide.type(len(x))).astype(x.dtype)

    def compute(attrs: Attrs, x: Tensor, y: Tensor) -> Tensor:
        wide = x.dtype if x.dtype == "float64" else "float32"
        rows, columns = x.shape
        i, k = te.reduce_axis((0, rows), name="i"), te.reduce_axis((0, columns), name="k")

        def part() -> Any:
            value = x(i, k).astype(wide)
            return te.sum((value if logits else te.log(value)) * y(i, k).astype(wide), axis=[i, k])

        total = te.compute((), lambda *_: part(), name="T_cross_entropy")
        count = te.const(float(rows), wide) if isinstance(rows, int) else rows.astype(wide)
        return te.compute((), lambda *_: (te.const(0.0, wide) - divide(total(), count)).astype(x.dtype), name="T_loss")

    define(
        name, ("x", "y"), _cross_entropy_relation, OpPattern.OPAQUE,
        numpy=meaning,
        compute=lambda attrs, xs, out: [compute(attrs, *xs)],
        doc=doc,
        source=DOCUMENTATION,
    )  # fmt: skip


# fmt: off
_register_cross_entropy("nn.cross_entropy", False, "Minus the mean over rows of the sums of y · log(x): how far predictions are from targets.")
_register_cross_entropy("nn.cross_entropy_with_logits", True,
    "Minus the mean over rows of the sums of y · x: the cross entropy of logarithms of predictions.")
# fmt: on


def _nll_relation(rel: Relation) -> None:
    predictions, targets, weights = rank_at_least(rel, 0, 1), rel.tensor(1), rank_must_be(rel, 2, 1)
    name, reduction = rel.operator.name, rel.attrs.reduction
    shape, wanted = shape_of(predictions), shape_of(targets)
    classes = 1 if len(shape) > 1 else 0
    if not dtype_of(targets).startswith(("int", "uint")):
        raise rel.fail(f"{name}: {show_argument(rel, 1)} must be of an integer dtype", argument=1)
    places = (*shape[:classes], *shape[classes + 1 :])
    if len(places) != len(wanted) or not all(map(same_dim, places, wanted)):
        raise rel.fail(
            f"{name}: {show_argument(rel, 1)} must have the shape of {show_argument(rel, 0)} without its classes, axis {classes}",
            argument=1,
        )
    rel.set_argument(2, tensor_type([shape[classes]], same_dtype(rel, 0, 2)))
    if reduction not in ("mean", "sum", "none"):
        raise rel.fail(f"{name}: reduction={reduction!r} must be mean, sum or none")
    result = map(known_dim, places, wanted) if reduction == "none" else ()
    rel.set_result(tensor_type(result, weights.element_type))


def _nll(attrs: Attrs, x: Array, targets: Array, weights: Array) -> Array:
    axis = min(x.ndim - 1, 1)
    ignored = targets == attrs.ignore_index
    place = np.where(ignored, 0, targets).astype(np.int64)
    chosen = np.take_along_axis(x, np.expand_dims(place, axis), axis).squeeze(axis)
    weight = np.where(ignored, 0, weights[place]).astype(x.dtype)
    loss = np.where(ignored, np.zeros((), x.dtype), 0 - chosen * weight)
    if attrs.reduction == "none":
        return loss.astype(x.dtype)
    total = loss.sum()
    return (total / weight.sum() if attrs.reduction == "mean" else total).astype(x.dtype)


def _te_nll(attrs: Attrs, x: Tensor, targets: Tensor, weights: Tensor) -> list[Tensor]:
    zero = te.const(0.0, x.dtype)
    shape = list(targets.shape)

    def weight(*i: Any) -> Expr:
        target = targets(*i)
        kept = from_end(target, weights.shape[0])
        return te.if_then_else(target.equal(attrs.ignore_index), zero, weights(kept))

    def loss(*i: Any) -> Expr:
        target = targets(*i)
        kept = from_end(target, weights.shape[0])
        loss = zero - x(*i[:1], kept, *i[1:]) * weights(kept)
        return te.if_then_else(target.equal(attrs.ignore_index), zero, loss)

    each = te.compute(shape, loss, name="T_nll")
    if attrs.reduction == "none":
        return [each]
    weighted = te.compute(shape, weight, name="T_weights")

    def total(values: Tensor) -> Tensor:
        if not shape:
            return values
        axes = [te.reduce_axis((0, dim), name=f"k{n}") for n, dim in enumerate(shape)]
        return te.compute((), lambda *_: te.sum(values(*axes), axis=axes), name="T_sum")

    losses = total(each)
    if attrs.reduction == "sum":
        return [losses]
    count = total(weighted)
    return [te.compute((), lambda *_: losses() / count(), name="T_mean")]


define(
    "nn.nll_loss", ("predictions", "targets", "weights"), _nll_relation, OpPattern.OUT_ELEMWISE_FUSABLE,
    numpy=_nll,
    compute=lambda attrs, xs, out: _te_nll(attrs, *xs),
    attributes=(attr("reduction", "mean"), attr("ignore_index", kind="int")),
    doc="Minus the prediction of each target's class times the class's weight; their weighted mean, sum, or each.",
    source="https://pytorch.org/docs/stable/generated/torch.nn.NLLLoss.html",
)  # fmt: skip


def _dilate_relation(rel: Relation) -> None:
    data, strides = rel.tensor(0), rel.attrs.strides
    if len(strides) != data.get_num_dims() or any(s < 1 for s in strides):
        raise rel.fail(
            f"{rel.operator.name}: strides={list(strides)} must have a positive number for each axis of {show_argument(rel, 0)}"
        )
    sizes = [ANY if dim == ANY else max((dim - 1) * s + 1, 0) for dim, s in zip(shape_of(data), strides, strict=True)]
    rel.set_result(tensor_type(sizes, data.element_type))


def _dilate(attrs: Attrs, x: Array) -> Array:
    shape = [max((dim - 1) * s + 1, 0) for dim, s in zip(x.shape, attrs.strides, strict=True)]
    result = np.full(shape, attrs.dilation_value, x.dtype)
    result[tuple(slice(None, None, s) for s in attrs.strides)] = x
    return result


def _te_dilate(attrs: Attrs, x: Tensor) -> Tensor:
    sizes = [(dim, (dim - 1) * s + 1) for dim, s in zip(x.shape, attrs.strides, strict=True)]
    shape = [max(wide, 0) if isinstance(dim, int) else te.max(wide, 0) for dim, wide in sizes]

    def body(*i: Expr) -> Expr:
        between = [te.floormod(index, s).equal(0) for index, s in zip(i, attrs.strides, strict=True) if s > 1]
        element = x(*(te.floordiv(index, s) for index, s in zip(i, attrs.strides, strict=True)))
        filled = te.const(attrs.dilation_value, "float64").astype(x.dtype)
        return te.if_then_else(te.all(*between), element, filled) if between else element

    return te.compute(shape, body, name="T_dilate")


define(
    "nn.dilate", ("x",), _dilate_relation, OpPattern.INJECTIVE,
    numpy=_dilate,
    compute=lambda attrs, xs, out: [_te_dilate(attrs, xs[0])],
    attributes=(attr("strides", (1, 1)), attr("dilation_value", 0.0)),
    doc="The elements `strides` places apart along each axis, `dilation_value` between them.",
    source=DOCUMENTATION,
)  # fmt: skip


def _fifo_relation(rel: Relation) -> None:
    data, buffer = rel.tensor(0), rel.tensor(1)
    same_dtype(rel, 0, 1)
    axis = axis_of(rel, rel.attrs.axis, buffer.get_num_dims())
    new, old = list(shape_of(data)), list(shape_of(buffer))
    fits = len(new) == len(old) and all(
        n == axis or same_dim(a, b) for n, (a, b) in enumerate(zip(new, old, strict=True))
    )
    if not fits or not at_most(new[axis], old[axis]):
        raise rel.fail(
            f"{rel.operator.name}: {show_argument(rel, 0)} must have the shape of {show_argument(rel, 1)} except for axis {axis},"
            " along which it must not be longer",
            argument=0,
        )
    rel.set_result(
        tensor_type(
            [b if n == axis else known_dim(a, b) for n, (a, b) in enumerate(zip(new, old, strict=True))],
            buffer.element_type,
        )
    )


def _fifo(attrs: Attrs, x: Array, buffer: Array) -> Array:
    both = np.concatenate([buffer, x], attrs.axis)
    first = x.shape[attrs.axis]
    return both.take(range(first, both.shape[attrs.axis]), attrs.axis)


def _te_fifo(attrs: Attrs, x: Tensor, buffer: Tensor) -> Tensor:
    axis: int = attrs.axis % len(buffer.shape)
    length, more = buffer.shape[axis], x.shape[axis]

    def body(*i: Expr) -> Expr:
        place = i[axis] + more
        return te.if_then_else(
            place < length, buffer(*i[:axis], place, *i[axis + 1 :]), x(*i[:axis], place - length, *i[axis + 1 :])
        )

    return te.compute(buffer.shape, body, name="T_fifo_buffer")


define(
    "nn.fifo_buffer", ("data", "buffer"), _fifo_relation, OpPattern.OPAQUE,
    numpy=_fifo,
    compute=lambda attrs, xs, out: [_te_fifo(attrs, *xs)],
    attributes=(attr("axis", 0),),
    doc="The buffer with the data appended after its last values along `axis`, and as many of its first values dropped.",
    source=DOCUMENTATION,
)  # fmt: skip
