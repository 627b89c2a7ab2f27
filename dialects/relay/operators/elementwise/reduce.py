"""Defines reductions with attributes `axis` (None: all), `keepdims` and `exclude` (other axes).

data (2,3,4), axis=[1] -> (2,4); with keepdims (2,1,4)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from ...operator import Attrs, Operator, OpPattern, Relation, attr, define
from ..common._lazy import np, numeric, te
from ..common.numpy_meanings import Array, half_in_float32, normal_axes, trunc_divide
from ..common.relations import ANY, TypeRelation, axes_of, can_expand, same_dtype, shape_of, show_argument, tensor_type
from ..common.sources import NUMPY, TVM
from ..common.te_computes import (
    Reducer,
    constant,
    divide,
    elementwise,
    flat_index,
    highest,
    in_wide_dtype,
    lowest,
    reduce_over,
    te_largest,
    te_smallest,
)
from ..common.te_computes import broadcast as te_broadcast

if TYPE_CHECKING:
    from ....te.builder import Expr, Tensor

MOST_PLACES = (1 << 31) - 1
"""The result of argmax and argmin is int32."""
REDUCE = (attr("axis", None, "ints"), attr("keepdims", False), attr("exclude", False))


def reduced_axes(rel: Relation, rank: int) -> tuple[int, ...]:
    """Returns the axes that the attributes reduce over."""
    axes = axes_of(rel, rel.attrs.axis, rank)
    return tuple(a for a in range(rank) if a not in axes) if rel.attrs.exclude and rel.attrs.axis is not None else axes


def reduced(dtype: str | None = None) -> TypeRelation:
    """Returns the argument's shape without the reduced axes; its element type unless given."""

    def relation(rel: Relation) -> None:
        data = rel.tensor(0)
        shape = shape_of(data)
        axes = reduced_axes(rel, len(shape))
        kept = [1 if a in axes else d for a, d in enumerate(shape) if rel.attrs.keepdims or a not in axes]
        rel.set_result(tensor_type(kept, dtype or data.element_type))

    return relation


def _axes(attrs: Attrs, rank: int) -> tuple[int, ...]:
    return normal_axes(attrs.axis, rank, attrs.exclude and attrs.axis is not None)


def reduction(name: str, numpy: Callable[[Any, Any, Any], Any], reducer: Reducer, doc: str, *, source: str) -> Operator:
    """Registers a reduction that keeps the dtype."""

    def meaning(attrs: Attrs, x: Array) -> Array:
        return numpy(x, _axes(attrs, x.ndim), attrs.keepdims).astype(x.dtype, copy=False)

    def compute(attrs: Attrs, xs: Sequence[Tensor], out: Any) -> list[Tensor]:
        x, axes = xs[0], _axes(attrs, len(xs[0].shape))
        if x.dtype == "bool":
            return [te_whether(x, axes, attrs.keepdims, f"{name}_red", every=name in ("all", "prod", "min"))]
        return [te_reduce(reducer, x, axes, attrs.keepdims, f"{name}_red")]

    return define(
        name, ("data",), reduced(), OpPattern.COMM_REDUCE,
        numpy=half_in_float32(meaning),
        compute=in_wide_dtype(compute),
        attributes=REDUCE,
        doc=doc, source=source,
    )  # fmt: skip


def te_reduce(reducer: Reducer, x: Tensor, axes: Sequence[int], keepdims: bool, name: str) -> Tensor:
    """Returns a reduction of `x`; over no axis it is a copy."""
    if not axes:
        return elementwise(lambda e: e, x, name)
    return reduce_over(reducer, lambda e: e, x, axes, keepdims, name)


def te_whether(x: Tensor, axes: Sequence[int], keepdims: bool, name: str, *, every: bool) -> Tensor:
    """Returns whether one element of a bool tensor, or every one, is true, along `axes`.

    It is the maximum or the minimum of the elements as bytes, which vectors hold.
    """
    if not axes:
        return elementwise(lambda e: e, x, name)

    def reducer(e: Any, axis: Any) -> Any:
        return (te.min if every else te.max)(e, axis=axis)

    found = reduce_over(reducer, lambda e: e.astype("uint8"), x, axes, keepdims, name)
    return te.compute(found.shape, lambda *i: te.not_equal(found(*i), te.const(0, "uint8")), name=f"T_{name}")


def _sum(x: Array, axis: tuple[int, ...], keepdims: bool) -> Array:
    return np.sum(x, axis=axis, keepdims=keepdims, dtype=x.dtype)


def _prod(x: Array, axis: tuple[int, ...], keepdims: bool) -> Array:
    return np.multiply.reduce(x, axis=axis, keepdims=keepdims, dtype=x.dtype)


def _extremum(ufunc: Callable[[], np.ufunc], greatest: bool) -> Callable[[Array, tuple[int, ...], bool], Array]:
    """Returns numpy's meaning of `max` or `min`; of no elements it is the least or greatest number."""

    def meaning(x: Array, axis: tuple[int, ...], keepdims: bool) -> Array:
        limit = numeric.highest if greatest else numeric.lowest
        return ufunc().reduce(x, axis=axis, keepdims=keepdims, initial=limit(x.dtype))

    return meaning


# In bool, numpy and TVM add as `or` and multiply as `and`.
# fmt: off
reduction("sum", _sum, lambda e, axis: te.sum(e, axis=axis),
    "The sum over axes; integers wrap around, half precision is summed in float32.", source=NUMPY.format("sum"))
reduction("prod", _prod, lambda e, axis: te.prod(e, axis=axis), "The product over axes; integers wrap around.", source=NUMPY.format("prod"))
reduction("max", _extremum(lambda: np.maximum, greatest=False), te_largest,
    "The largest element over axes; of none minus infinity, or the least integer.", source=NUMPY.format("max"))
reduction("min", _extremum(lambda: np.minimum, greatest=True), te_smallest,
    "The smallest element over axes; of none infinity, or the greatest integer.", source=NUMPY.format("min"))
reduction("all", lambda x, axis, keepdims: np.all(x, axis=axis, keepdims=keepdims), lambda e, axis: te.all(e, axis=axis),
    "Whether all elements over axes are true.", source=NUMPY.format("all"))
reduction("any", lambda x, axis, keepdims: np.any(x, axis=axis, keepdims=keepdims), lambda e, axis: te.any(e, axis=axis),
    "Whether an element over axes is true.", source=NUMPY.format("any"))
# fmt: on


def _mean(attrs: Attrs, x: Array) -> Array:
    axes = _axes(attrs, x.ndim)
    count = np.asarray(prod(x.shape[a] for a in axes)).astype(x.dtype)
    return trunc_divide(_sum(x, axes, attrs.keepdims), count).astype(x.dtype, copy=False)


def element_count(x: Tensor, axes: Sequence[int], dtype: str) -> Expr:
    """Returns the number of elements that a reduction over `axes` combines, as an expression of `dtype`."""
    sizes = [constant(x.shape[a]) for a in axes]
    count: Expr = te.const(prod(size for size in sizes if size is not None), dtype)
    for axis in axes:
        dim = x.shape[axis]
        if not isinstance(dim, int):
            count = count * dim.astype(dtype)
    return count


def te_mean(x: Tensor, axes: Sequence[int], keepdims: bool) -> Tensor:
    """Returns the mean over axes: a sum, then a division."""
    total = te_reduce(lambda e, axis: te.sum(e, axis=axis), x, axes, keepdims, "mean_red")
    return elementwise(lambda e: divide(e, element_count(x, axes, x.dtype)), total, "T_mean")


define(
    "mean", ("data",), reduced(), OpPattern.COMM_REDUCE,
    numpy=half_in_float32(_mean),
    compute=in_wide_dtype(
        lambda attrs, xs, out: [te_mean(xs[0], _axes(attrs, len(xs[0].shape)), attrs.keepdims)]
    ),
    attributes=REDUCE,
    doc="The mean over axes; of integers rounded toward zero; of none NaN, or 0 of integers.",
    source=NUMPY.format("mean"),
)  # fmt: skip


def _variance_relation(rel: Relation) -> None:
    same_dtype(rel, 0, 1)
    data, mean = shape_of(rel.tensor(0)), shape_of(rel.tensor(1))
    if len(mean) > len(data) or not all(map(can_expand, mean, data[len(data) - len(mean) :])):
        raise rel.fail(
            f"variance: {show_argument(rel, 1)} does not broadcast to {show_argument(rel, 0)}",
            argument=1,
        )
    reduced()(rel)


def _variance(attrs: Attrs, x: Array, mean: Array) -> Array:
    axes = _axes(attrs, x.ndim)
    count = max(prod(x.shape[a] for a in axes) - int(attrs.unbiased), 0)
    return (_sum(np.square(x - mean), axes, attrs.keepdims) / np.asarray(count).astype(x.dtype)).astype(x.dtype)


def _te_variance(attrs: Attrs, x: Tensor, mean: Tensor) -> Tensor:
    axes = _axes(attrs, len(x.shape))
    deviation = te_broadcast(lambda a, b: (a - b) * (a - b), x, mean, name="T_squared_deviation")
    total = te_reduce(lambda e, axis: te.sum(e, axis=axis), deviation, axes, attrs.keepdims, "variance_red")
    zero, one = te.const(0, x.dtype), te.const(1, x.dtype)
    count = element_count(x, axes, x.dtype)
    count = te.max(count - one, zero) if attrs.unbiased else count
    return elementwise(lambda e: divide(e, count), total, "T_variance")


define(
    "variance", ("data", "with_mean"), _variance_relation, OpPattern.COMM_REDUCE,
    numpy=half_in_float32(_variance),
    compute=in_wide_dtype(lambda attrs, xs, out: [_te_variance(attrs, *xs)]),
    attributes=(*REDUCE, attr("unbiased", False)),
    doc="The mean square distance from the mean over axes; `with_mean` is the mean, its axes kept.",
    source=TVM.format("variance"),
)  # fmt: skip


def _arg_relation(rel: Relation) -> None:
    shape = shape_of(rel.tensor(0))
    reduced("int32")(rel)
    counted = [shape[axis] for axis in reduced_axes(rel, len(shape))]
    if ANY not in counted and prod(counted) > MOST_PLACES:
        raise rel.fail(
            f"{rel.operator.name}: {show_argument(rel, 0)} has {prod(counted)} elements along the axes, more than int32 counts"
        )


def _arg_numpy(attrs: Attrs, x: Array, best: Callable[..., Array]) -> Array:
    axes = _axes(attrs, x.ndim)
    kept = [a for a in range(x.ndim) if a not in axes]
    # The reduced axes come last, as one, so that an index counts through them in row-major order.
    flat = x.transpose(*kept, *axes).reshape(*(x.shape[a] for a in kept), prod(x.shape[a] for a in axes))
    if not flat.shape[-1]:
        result = np.full(flat.shape[:-1], -1)
    else:
        result = flat.shape[-1] - 1 - best(flat[..., ::-1], axis=-1) if attrs.select_last_index else best(flat, axis=-1)
    result = np.asarray(result).astype(np.int32)
    shape = [1 if a in axes else d for a, d in enumerate(x.shape)]
    return result.reshape(shape) if attrs.keepdims else result


def _te_arg(attrs: Attrs, x: Tensor, is_max: bool) -> Tensor:
    axes = _axes(attrs, len(x.shape))
    name = "argmax" if is_max else "argmin"
    if not axes:
        return te.compute(x.shape, lambda *i: te.const(0, "int32"), name=f"{name}_red")
    extents = {axis: te.reduce_axis((0, x.shape[axis]), name=f"k{axis}") for axis in axes}
    shape = [1 if a in extents else d for a, d in enumerate(x.shape) if attrs.keepdims or a not in extents]

    def combine(lhs: Sequence[Expr], rhs: Sequence[Expr]) -> tuple[Expr, Expr]:
        wins = lhs[1] > rhs[1] if is_max else lhs[1] < rhs[1]
        ties = te.equal(lhs[1], rhs[1])
        if x.dtype.startswith(("float", "bfloat")):
            # A NaN beats every number, and is as good as another.
            nan, number = te.not_equal(lhs[1], lhs[1]), te.equal(rhs[1], rhs[1])
            wins, ties = te.any(wins, te.all(nan, number)), te.any(ties, nan)
        # Of equal elements the index decides, that of the identity last.
        earlier = lhs[0] > rhs[0] if attrs.select_last_index else lhs[0] < rhs[0]
        left = te.any(wins, te.all(ties, earlier))
        return te.Select(left, lhs[0], rhs[0]), te.Select(left, lhs[1], rhs[1])

    def identity(index_dtype: str, value_dtype: str) -> tuple[Expr, Expr]:
        # No element is beyond it: a row of infinities has one that is as good, whose index counts.
        worst = (lowest if is_max else highest)(value_dtype)
        return (te.const(-1, index_dtype) if attrs.select_last_index else te.max_value(index_dtype)), worst

    reducer = te.comm_reducer(combine, identity, name=name)

    def body(*indices: Expr) -> Any:
        rest = iter(indices)
        full = [extents[a] if a in extents else next(rest) for a in range(len(x.shape))]
        if attrs.keepdims:
            full = [extents.get(a, i) for a, i in enumerate(indices)]
        position: Any = flat_index(list(extents.values()), [x.shape[a] for a in axes])
        return reducer((position.astype("int32"), x(*full)), axis=list(extents.values()))

    index, _ = te.compute(shape, body, name=f"{name}_red_temp")
    # Of nothing it is -1.
    none = te.max_value("int32")
    return elementwise(lambda e: te.Select(te.equal(e, none), te.const(-1, "int32"), e), index, f"{name}_red")


def _arg(name: str, is_max: bool, doc: str, *, source: str) -> None:
    define(
        name, ("data",), _arg_relation, OpPattern.COMM_REDUCE,
        numpy=lambda attrs, x: _arg_numpy(attrs, x, np.argmax if is_max else np.argmin),
        compute=lambda attrs, xs, out: [_te_arg(attrs, xs[0], is_max)],
        attributes=(*REDUCE, attr("select_last_index", False)),
        doc=doc, source=source,
    )  # fmt: skip


# fmt: off
_arg("argmax", True, "The (int32) position of the largest element over axes, counted in row-major order; of equal ones the first, of NaN and numbers the first NaN, of none -1.", source=NUMPY.format("argmax"))
_arg("argmin", False, "The (int32) position of the smallest element over axes, counted in row-major order; of equal ones the first, of NaN and numbers the first NaN, of none -1.", source=NUMPY.format("argmin"))
# fmt: on
