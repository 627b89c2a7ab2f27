"""TOPI's functions that are computes of TE tensors here: Relay has no operator of their arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from math import ceil
from typing import Any

from ...dialects.relay.operators.indexing.te_select import te_argwhere_of, te_unique_of
from ...dialects.te.reducers import te_sum
from ...dialects.te.tensor import Tensor, compute, reduce_axis
from ...dialects.tir import node as ex
from ...dialects.tir.node import Expr, call


def _arange(start: Any, stop: Any = None, step: Any = 1, dtype: str = "float32") -> Tensor:
    """Returns numbers from `start`, or 0, up to but not including `stop`."""
    start, stop = (0, start) if stop is None else (start, stop)
    given: tuple[Any, ...] = (start, stop, step)
    low, high, by = (each.value if isinstance(each, ex.Const) else each for each in given)
    size = (
        ceil((high - low) / by) if not any(isinstance(each, Expr) for each in (low, high, by)) else (high - low) // by
    )
    first, factor = ex.cast(dtype, ex.convert(low)), ex.cast(dtype, ex.convert(by))

    def element(i: Expr) -> Expr:
        return first + factor * ex.cast(dtype, i)

    return compute((size,), element, name="T_arange", tag="injective")


def _argwhere(output_shape: Tensor, condition: Tensor) -> Tensor:
    """Returns the places of elements that are true, as many as `output_shape`, a tensor, has rows."""
    return te_argwhere_of(condition, output_shape.shape)


def _unique(data: Tensor, is_sorted: bool = True, return_counts: bool = False) -> list[Tensor]:
    """Returns the unique elements and their places, as long as `data`; the fourth result is their number."""
    return te_unique_of(data, data.shape[0], bool(is_sorted), 5 if return_counts else 4)


def _tensordot(a: Tensor, b: Tensor, axes: Any) -> Tensor:
    """Returns the sum of products over axes.

    They are a number, of the last of `a` and the first of `b`, or a list for each.

    A list for both, of which one list, means these axes of both.
    """
    if hasattr(axes, "__index__"):
        count = int(axes)
        of_a, of_b = list(range(a.ndim - count, a.ndim)), list(range(count))
    else:
        given: list[Any] = list(axes)
        pair = [[each] if hasattr(each, "__index__") else list(each) for each in given]
        of_a, of_b = [int(x) for x in pair[0]], [int(x) for x in pair[-1]]
    reduced = [reduce_axis((0, a.shape[axis]), f"k{number}") for number, axis in enumerate(of_a)]
    kept_a = [axis for axis in range(a.ndim) if axis not in of_a]
    kept_b = [axis for axis in range(b.ndim) if axis not in of_b]
    shape = [*(a.shape[axis] for axis in kept_a), *(b.shape[axis] for axis in kept_b)]

    def element(*index: Expr) -> Expr:
        left = dict(zip(kept_a, index, strict=False)) | dict(zip(of_a, reduced, strict=True))
        right = dict(zip(kept_b, index[len(kept_a) :], strict=True)) | dict(zip(of_b, reduced, strict=True))
        product = a(*(left[axis] for axis in range(a.ndim))) * b(*(right[axis] for axis in range(b.ndim)))
        return te_sum(product, axis=reduced) if reduced else product

    return compute(shape, element, name="T_tensordot", tag="matmul")


def _collapse_sum(data: Tensor, target_shape: Sequence[Any]) -> Tensor:
    """Returns the sums that have a shape which broadcasts to that of `data`."""
    first = data.ndim - len(target_shape)
    summed = [
        axis for axis in range(data.ndim)
        if axis < first or (int(target_shape[axis - first]) == 1 and data.shape[axis] != 1)
    ]  # fmt: skip
    reduced = {axis: reduce_axis((0, data.shape[axis]), f"k{axis}") for axis in summed}

    def element(*index: Expr) -> Expr:
        value = data(*(reduced[axis] if axis in reduced else index[axis - first] for axis in range(data.ndim)))
        return te_sum(value, axis=list(reduced.values())) if reduced else value

    return compute(list(target_shape), element, name="T_collapse_sum", tag="comm_reduce")


def _elemwise_sum(xs: Sequence[Tensor]) -> Tensor:
    """Returns the sum of tensors of one shape."""

    def element(*index: Expr) -> Expr:
        return reduce(ex.add, [x(*index) for x in xs])

    return compute(xs[0].shape, element, name="T_elemwise_sum", tag="elemwise")


def _rms_norm(data: Tensor, weight: Tensor, axis: Any, epsilon: float = 1e-5) -> Tensor:
    """Returns `data` divided by the root of its mean square along axes, times `weight` of these axes.

    Squares are summed in float32.
    """
    given: list[Any] = [axis] if hasattr(axis, "__index__") else list(axis)
    axes = sorted(int(each) % data.ndim for each in given)
    reduced = {each: reduce_axis((0, data.shape[each]), f"k{each}") for each in axes}
    kept = [each for each in range(data.ndim) if each not in reduced]

    def square(*index: Expr) -> Expr:
        at = dict(zip(kept, index, strict=True)) | reduced
        value = ex.cast("float32", data(*(at[each] for each in range(data.ndim))))
        return te_sum(value * value, axis=list(reduced.values()))

    sums = compute([data.shape[each] for each in kept], square, name="T_square_sum", tag="comm_reduce")
    count: Any = 1
    for each in axes:
        count = count * data.shape[each]

    def element(*index: Expr) -> Expr:
        mean = ex.divide(sums(*(index[each] for each in kept)), ex.cast("float32", ex.convert(count)))
        scale = call("rsqrt", (mean + ex.const(epsilon, "float32"),), "float32")
        product = ex.cast("float32", data(*index)) * ex.cast("float32", weight(*(index[each] for each in axes))) * scale
        return ex.cast(data.dtype, product)

    return compute(data.shape, element, name="T_rms_norm", tag="injective")


def _expand_like(a: Tensor, shape_like: Tensor, axis: Sequence[int]) -> Tensor:
    """Returns the tensor with axes inserted that are as long as those of another, its elements repeated."""
    extra = shape_like.ndim - a.ndim
    axes = [(each + shape_like.ndim if each < 0 else each) for each in axis] if extra else list(axis)

    def element(*index: Expr) -> Expr:
        if extra == 0:
            return a(*(ex.const(0) if place in axes else i for place, i in enumerate(index)))
        return a(*(i for place, i in enumerate(index) if place not in axes))

    return compute(shape_like.shape, element, name="T_expand_like", tag="broadcast")


def _scale_shift(channel: int, axes: int) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """Returns the function that scales and shifts channels, which are an axis of four or two of five."""

    def function(Input: Tensor, Scale: Tensor, Shift: Tensor) -> Tensor:
        def element(*i: Expr) -> Expr:
            at = (i[channel],) if axes == 1 else (i[channel], i[-1])
            return Input(*i) * Scale(*at) + Shift(*at)

        return compute(Input.shape, element, name="ScaleShift", tag="broadcast")

    return function


def _binarize_pack(data: Tensor, axis: int | None = None, name: str = "PackedInput") -> Tensor:
    """Returns the signs along an axis as bits, 32 in each uint32; the first of 32 is the highest bit."""
    axis = data.ndim - 1 if axis is None else axis
    shape = [extent if place != axis else ex.floordiv(extent, 32) for place, extent in enumerate(data.shape)]

    def element(*index: Expr) -> Expr:
        packed: Expr = ex.const(0, "uint32")
        for bit in range(32):
            at = [i * 32 + bit if place == axis else i for place, i in enumerate(index)]
            sign = ex.cast("uint32", ex.greater_equal(data(*at), ex.const(0, data.dtype)))
            packed = ex.bitwise_or(packed, ex.left_shift(sign, ex.const(31 - bit, "uint32")))
        return packed

    return compute(shape, element, name=name, tag="binarize_pack")


def _binary_dense(data: Tensor, weight: Tensor) -> Tensor:
    """Returns the products of rows of signs that are packed in uint32, as float32."""
    rows, packed = data.shape
    k = reduce_axis((0, packed), "k")

    def count(i: Expr, j: Expr) -> Expr:
        return te_sum(call("popcount", (ex.bitwise_xor(data(i, k), weight(j, k)),), "uint32"), axis=k)

    counts = compute((rows, weight.shape[0]), count, name="T_popcount", tag="binary_dense")
    total = ex.cast("float32", ex.multiply(packed, 32))

    def element(i: Expr, j: Expr) -> Expr:
        return total - ex.cast("float32", counts(i, j)) * 2.0

    return compute(counts.shape, element, name="T_binary_dense", tag="elemwise")


COMPUTES: dict[str, Callable[..., Any]] = {
    "add_n": _elemwise_sum,
    "arange": _arange,
    "argwhere": _argwhere,
    "collapse_sum": _collapse_sum,
    "elemwise_sum": _elemwise_sum,
    "expand_like": _expand_like,
    "nn.binarize_pack": _binarize_pack,
    "nn.binary_dense": _binary_dense,
    "nn.elemwise_sum": _elemwise_sum,
    "nn.rms_norm": _rms_norm,
    "nn.scale_shift_nchw": _scale_shift(1, 1),
    "nn.scale_shift_nchwc": _scale_shift(1, 2),
    "nn.scale_shift_nhwc": _scale_shift(3, 1),
    "tensordot": _tensordot,
    "unique": _unique,
}
"""Functions of TE tensors, by TOPI's names."""
