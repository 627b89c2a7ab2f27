"""Defines operators that read by computed indices, one_hot, and masks of sequences.

take:      data (4,5), indices (2,3), axis=1 -> (4,2,3)
gather:    data (4,5), indices (4,2), axis=1 -> (4,2)
gather_nd: data (4,5), indices (2,n) -> (n)
one_hot:   indices (n), on_value (), off_value (), depth=5 -> (n,5)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from xdsl.ir import Attribute

from ...operator import Attrs, OpPattern, Relation, attr, define
from ..common._lazy import np, numeric, te
from ..common.numpy_meanings import Array, along, arange_along
from ..common.relations import (
    ANY,
    axis_of,
    dtype_attr,
    dtype_of,
    rank_must_be,
    same_dim,
    shape_of,
    show_argument,
    tensor_type,
)
from ..common.result_sizes import Requirement, ResultShapes, has_elements, product
from ..common.sources import NUMPY, TVM
from ..common.te_computes import signed_index, unflatten
from ..elementwise.unary import convert
from .te_scatter import known_length

if TYPE_CHECKING:
    from ....te.builder import Expr, Tensor


def indices_must_be_integers(rel: Relation, index: int) -> None:
    """Fails unless argument `index` has an integer dtype."""
    if not dtype_of(rel.tensor(index)).startswith(("int", "uint")):
        raise rel.fail(f"{rel.operator.name}: {show_argument(rel, index)} must be of an integer dtype", argument=index)


def within(index: Expr, size: Any, mode: str) -> Expr:
    """Brings an index into [0, size): wraps around, or clips, which "fast" does, too."""
    if mode == "wrap" and index.dtype == "uint64":
        return te.floormod(index, te.convert(size).astype("uint64")).astype("int64")
    index = signed_index(index)
    if mode == "wrap":
        return te.floormod(index, size)
    # A program's indices must not lead out of memory, "fast" or not.
    return te.max(te.min(index, size - 1), 0)


def from_end(index: Expr, size: Any) -> Expr:
    """Returns an index of which negative ones count from the end, kept in [0, size)."""
    index = signed_index(index)
    return within(te.Select(index < 0, index + size, index), size, "clip")


def _take_relation(rel: Relation) -> None:
    data, indices, attrs = rel.tensor(0), rel.tensor(1), rel.attrs
    if attrs.mode not in ("clip", "wrap", "fast"):
        raise rel.fail(f"take: mode={attrs.mode!r} must be clip, wrap or fast")
    shape, places = shape_of(data), shape_of(indices)
    if attrs.axis is None:
        must_have_elements(rel, 0, prod(shape), places)
        rel.set_result(tensor_type(places, data.element_type))
        return
    axis = axis_of(rel, attrs.axis, len(shape))
    must_have_elements(rel, 0, shape[axis], (*shape[:axis], *places, *shape[axis + 1 :]))
    batch = attrs.batch_dims % (len(places) + 1) if attrs.batch_dims < 0 else attrs.batch_dims
    if batch > min(len(places), axis):
        raise rel.fail(f"take: batch_dims={attrs.batch_dims} must not be above axis={axis} nor the rank of the indices")
    for dim in range(batch):
        if not same_dim(shape[dim], places[dim]):
            raise rel.fail(
                f"take: {show_argument(rel, 0)} and {show_argument(rel, 1)} differ in batch dimension {dim}", argument=1
            )
    rel.set_result(tensor_type([*shape[:axis], *places[batch:], *shape[axis + 1 :]], data.element_type))


def _numpy_within(indices: Array, size: int, mode: str) -> Array:
    if indices.dtype == np.uint64 and mode == "wrap":
        indices = indices % max(size, 1)
    indices = _numpy_signed(indices)
    return indices % max(size, 1) if mode == "wrap" else np.clip(indices, 0, max(size - 1, 0))


def _numpy_signed(indices: Array) -> Array:
    """Converts indices to int64, saturated."""
    wide = np.minimum(indices, np.iinfo(np.int64).max) if indices.dtype == np.uint64 else indices
    return numeric.convert(wide, np.dtype(np.int64))


def numpy_from_end(indices: Array, size: int) -> Array:
    """Returns indices counted from the end where negative, clipped to [0, size), as `from_end`."""
    indices = _numpy_signed(indices)
    return _numpy_within(np.where(indices < 0, indices + size, indices), size, "clip")


def must_have_elements(rel: Relation, data: int, size: int, places: Sequence[int]) -> None:
    """Fails where elements are taken along a dimension of `size` of argument `data`, which has none."""
    if size == 0 and 0 not in places:
        raise rel.fail(f"{rel.operator.name}: {show_argument(rel, data)} has no elements to take", argument=data)


def _take(attrs: Attrs, x: Array, indices: Array) -> Array:
    if attrs.axis is None:
        return x.reshape(-1)[_numpy_within(indices, x.size, attrs.mode)]
    axis: int = attrs.axis % x.ndim
    batch: int = attrs.batch_dims % (indices.ndim + 1)
    at = _numpy_within(indices, x.shape[axis], attrs.mode)
    result = np.empty((*x.shape[:axis], *indices.shape[batch:], *x.shape[axis + 1 :]), x.dtype)
    if batch == 0 or not result.size:
        return np.take(x, at, axis) if result.size else result
    for place in np.ndindex(*x.shape[:batch]):
        result[place] = np.take(x[place], at[place], axis - batch)
    return result


def _te_take(attrs: Attrs, x: Tensor, indices: Tensor) -> Tensor:
    if attrs.axis is None:
        size: Any = 1
        for dim in x.shape:
            size = size * dim
        return te.compute(
            indices.shape, lambda *i: x(*unflatten(within(indices(*i), size, attrs.mode), x.shape)), name="T_take"
        )
    axis: int = attrs.axis % len(x.shape)
    batch: int = attrs.batch_dims % (len(indices.shape) + 1)
    count = len(indices.shape) - batch

    def body(*i: Expr) -> Any:
        at = within(indices(*i[:batch], *i[axis : axis + count]), x.shape[axis], attrs.mode)
        return x(*i[:axis], at, *i[axis + count :])

    return te.compute([*x.shape[:axis], *indices.shape[batch:], *x.shape[axis + 1 :]], body, name="T_take")


def _take_extents(attrs: Attrs, xs: Sequence[Tensor], out: Attribute) -> ResultShapes:
    x, result = xs[0], _te_take(attrs, *xs)
    if attrs.axis is None:
        return ResultShapes([result.shape], has_elements(product(x.shape), result.shape, "'data'"))
    return ResultShapes([result.shape], indexed(x, [attrs.axis % len(x.shape)], result))


def indexed(x: Tensor, axes: Iterable[int], result: Tensor, name: str = "'data'") -> list[Requirement]:
    """Requires that the axes of an argument that are indexed have elements, unless the result has none."""
    return [
        needed for axis in axes for needed in has_elements(x.shape[axis], result.shape, f"dimension {axis} of {name}")
    ]


define(
    "take", ("data", "indices"), _take_relation, OpPattern.INJECTIVE,
    numpy=_take,
    compute=lambda attrs, xs, out: [_te_take(attrs, *xs)],
    extents=_take_extents,
    attributes=(attr("axis", None, "int"), attr("batch_dims", 0), attr("mode", "clip")),
    doc="The slices of data at the indices along `axis` (without one, elements of the flattened data).",
    source=NUMPY.format("take"),
)  # fmt: skip


def _gather_relation(rel: Relation) -> None:
    data, indices = rel.tensor(0), rel.tensor(1)
    shape, places = shape_of(data), shape_of(indices)
    axis = axis_of(rel, rel.attrs.axis, len(shape))
    indices_must_be_integers(rel, 1)
    same_but_axis(rel, 0, 1, shape, places, axis)
    must_have_elements(rel, 0, shape[axis], places)
    rel.set_result(tensor_type(places, data.element_type))


def same_but_axis(rel: Relation, a: int, b: int, x: Sequence[int], y: Sequence[int], axis: int) -> None:
    """Fails unless two shapes are equal except along `axis`."""
    fits = len(x) == len(y) and all(same_dim(p, q) for n, (p, q) in enumerate(zip(x, y, strict=True)) if n != axis)
    if not fits:
        raise rel.fail(
            f"{rel.operator.name}: {show_argument(rel, a)} and {show_argument(rel, b)} must have the same dimensions except"
            f" for axis {axis}",
            argument=b,
        )


def _te_gather(attrs: Attrs, x: Tensor, indices: Tensor) -> Tensor:
    axis: int = attrs.axis % len(x.shape)
    return te.compute(
        indices.shape, lambda *i: x(*i[:axis], from_end(indices(*i), x.shape[axis]), *i[axis + 1 :]), name="T_gather"
    )


def _gather_extents(attrs: Attrs, xs: Sequence[Tensor], out: Attribute) -> ResultShapes:
    result = _te_gather(attrs, *xs)
    return ResultShapes([result.shape], indexed(xs[0], [attrs.axis % len(xs[0].shape)], result))


define(
    "gather", ("data", "indices"), _gather_relation, OpPattern.INJECTIVE,
    numpy=lambda attrs, x, at: np.take_along_axis(x, numpy_from_end(at, x.shape[attrs.axis]), attrs.axis),
    compute=lambda attrs, xs, out: [_te_gather(attrs, *xs)],
    extents=_gather_extents,
    attributes=(attr("axis", kind="int"),),
    doc="result[…, j, …] = data[…, indices[…, j, …], …] along `axis`.",
    source=TVM.format("gather"),
)  # fmt: skip


def _gather_nd_relation(rel: Relation) -> None:
    data, indices = rel.tensor(0), rel.tensor(1)
    shape, (depth, *places) = shape_of(data), shape_of(indices) or (0,)
    batch = rel.attrs.batch_dims
    if depth == ANY:
        depth = rel.attrs.index_rank
        if depth is None:
            raise rel.fail("gather_nd: the first dimension of 'indices' must be known, or index_rank given", argument=1)
        same_dim(shape_of(indices)[0], depth)
    if depth + batch > len(shape) or batch > len(places):
        raise rel.fail(
            f"gather_nd: {show_argument(rel, 1)} indexes {depth} axes after {batch} batch axes, more than"
            f" {show_argument(rel, 0)} has",
            argument=1,
        )
    indices_must_be_integers(rel, 1)
    result = [*places, *shape[depth + batch :]]
    for size in shape[batch : depth + batch]:
        must_have_elements(rel, 0, size, result)
    rel.set_result(tensor_type(result, data.element_type))


def _gather_nd(attrs: Attrs, x: Array, indices: Array) -> Array:
    batch, places = attrs.batch_dims, indices.shape[1:]
    # Batch axes are indexed by the place itself.
    own = [arange_along(places[b], b, len(places)) for b in range(batch)]
    at = [*own, *(numpy_from_end(at, size) for at, size in zip(indices, x.shape[batch:], strict=False))]
    # Vectors of no indices take all of the data at each place.
    return np.broadcast_to(x[tuple(at)], (*places, *x.shape[len(at) :]))


def _indexed_axes(attrs: Attrs, indices: Tensor) -> int:
    """Returns the number of axes that gather_nd indexes."""
    return attrs.index_rank if not isinstance(indices.shape[0], int) else indices.shape[0]


def _gather_nd_extents(attrs: Attrs, xs: Sequence[Tensor], out: Attribute) -> ResultShapes:
    batch, result = attrs.batch_dims, _te_gather_nd(attrs, xs[0], xs[1])
    return ResultShapes([result.shape], indexed(xs[0], range(batch, batch + _indexed_axes(attrs, xs[1])), result))


def _te_gather_nd(attrs: Attrs, x: Tensor, indices: Tensor) -> Tensor:
    batch, count = attrs.batch_dims, len(indices.shape) - 1
    depth = _indexed_axes(attrs, indices)

    def body(*i: Expr) -> Any:
        at = [from_end(indices(k, *i[:count]), x.shape[batch + k]) for k in range(depth)]
        return x(*i[:batch], *at, *i[count:])

    return te.compute([*indices.shape[1:], *x.shape[depth + batch :]], body, name="T_gather_nd")


define(
    "gather_nd", ("data", "indices"), _gather_nd_relation, OpPattern.INJECTIVE,
    numpy=_gather_nd,
    compute=lambda attrs, xs, out: [_te_gather_nd(attrs, xs[0], xs[1])],
    extents=_gather_nd_extents,
    attributes=(attr("batch_dims", 0), attr("index_rank", None, "int")),
    doc="The slices of data at the index vectors along the first axis of `indices`.",
    source=TVM.format("gather_nd"),
)  # fmt: skip


def _one_hot_relation(rel: Relation) -> None:
    indices = rel.tensor(0)
    indices_must_be_integers(rel, 0)
    rank_must_be(rel, 1, 0)
    rank_must_be(rel, 2, 0)
    shape = list(shape_of(indices))
    if rel.attrs.depth < 1:
        raise rel.fail(f"one_hot: depth={rel.attrs.depth} must be positive")
    axis = len(shape) if rel.attrs.axis == -1 else axis_of(rel, rel.attrs.axis, len(shape) + 1, what="the result")
    shape.insert(axis, rel.attrs.depth)
    rel.set_result(tensor_type(shape, dtype_attr(rel, "dtype", rel.tensor(1).element_type)))


def _one_hot(attrs: Attrs, indices: Array, on: Array, off: Array) -> Array:
    axis = indices.ndim if attrs.axis == -1 else attrs.axis % (indices.ndim + 1)
    depth = arange_along(attrs.depth, axis, indices.ndim + 1)
    return convert(np.where(np.expand_dims(indices, axis) == depth, on, off), attrs.dtype or on.dtype.name)


def _te_one_hot(attrs: Attrs, indices: Tensor, on: Tensor, off: Tensor) -> Tensor:
    rank = len(indices.shape)
    axis = rank if attrs.axis == -1 else attrs.axis % (rank + 1)
    dtype = attrs.dtype or on.dtype

    def body(*i: Expr) -> Any:
        hot = indices(*i[:axis], *i[axis + 1 :]) == i[axis].astype(indices.dtype)
        return te.Select(hot, on().astype(dtype), off().astype(dtype))

    return te.compute([*indices.shape[:axis], attrs.depth, *indices.shape[axis:]], body, name="T_one_hot")


define(
    "one_hot", ("indices", "on_value", "off_value"), _one_hot_relation, OpPattern.OUT_ELEMWISE_FUSABLE,
    numpy=_one_hot,
    compute=lambda attrs, xs, out: [_te_one_hot(attrs, *xs)],
    attributes=(attr("depth", 1, printed=True), attr("axis", -1), attr("dtype", None, "str")),
    doc="A new axis of `depth` places, `on_value` at the index and `off_value` elsewhere.",
    source=TVM.format("one_hot"),
)  # fmt: skip


def _sequence_mask_relation(rel: Relation) -> None:
    data = rel.tensor(0)
    lengths = rank_must_be(rel, 1, 1)
    if rel.attrs.axis not in (0, 1) or data.get_num_dims() < 2:
        raise rel.fail(
            f"sequence_mask: axis={rel.attrs.axis} must be 0 or 1, and {show_argument(rel, 0)} have rank 2 or more"
        )
    batch = shape_of(data)[1 - rel.attrs.axis]
    if not same_dim(batch, shape_of(lengths)[0]):
        raise rel.fail(
            f"sequence_mask: {show_argument(rel, 1)} must have one length for each of {batch} sequences", argument=1
        )
    rel.set_result(data)


def _sequence_mask(attrs: Attrs, x: Array, lengths: Array) -> Array:
    keep = arange_along(x.shape[attrs.axis], attrs.axis, x.ndim) < along(lengths, 1 - attrs.axis, x.ndim)
    return np.where(keep, x, np.asarray(attrs.mask_value).astype(x.dtype))


define(
    "sequence_mask", ("data", "valid_length"), _sequence_mask_relation, OpPattern.INJECTIVE,
    numpy=_sequence_mask,
    compute=lambda attrs, xs, out: [
        te.compute(
            xs[0].shape,
            lambda *i: te.if_then_else(
                i[int(attrs.axis)] < signed_index(xs[1](i[1 - int(attrs.axis)])),
                xs[0](*i),
                te.const(attrs.mask_value, xs[0].dtype),
            ),
            name="T_sequence_mask",
        )
    ],
    attributes=(attr("mask_value", 0.0), attr("axis", 0)),
    doc="The steps of each sequence from its length on replaced by `mask_value`; `axis` counts steps, the other of 0 and 1 sequences.",
    source=TVM.format("sequence_mask"),
)  # fmt: skip


def _reverse_sequence_relation(rel: Relation) -> None:
    data, lengths = rel.tensor(0), rank_must_be(rel, 1, 1)
    rank = data.get_num_dims()
    seq = axis_of(rel, rel.attrs.seq_axis, rank, "seq_axis")
    batch = axis_of(rel, rel.attrs.batch_axis, rank, "batch_axis")
    indices_must_be_integers(rel, 1)
    if seq == batch or not same_dim(shape_of(lengths)[0], shape_of(data)[batch]):
        raise rel.fail(
            f"reverse_sequence: {show_argument(rel, 1)} must have one length for each place along batch_axis={batch} of"
            f" {show_argument(rel, 0)}, and seq_axis={seq} be another axis",
            argument=1,
        )
    rel.set_result(data)


def _reverse_sequence(attrs: Attrs, x: Array, lengths: Array) -> Array:
    seq: int = attrs.seq_axis % x.ndim
    batch: int = attrs.batch_axis % x.ndim
    steps = arange_along(x.shape[seq], seq, x.ndim)
    length = along(np.minimum(_numpy_signed(lengths), x.shape[seq]), batch, x.ndim)
    return np.take_along_axis(x, np.broadcast_to(np.where(steps < length, length - 1 - steps, steps), x.shape), seq)


def _te_reverse_sequence(attrs: Attrs, x: Tensor, lengths: Tensor) -> Tensor:
    seq: int = attrs.seq_axis % len(x.shape)
    batch: int = attrs.batch_axis % len(x.shape)

    def body(*i: Expr) -> Any:
        # A sequence is at most as long as there are steps.
        length = te.min(signed_index(lengths(i[batch])), x.shape[seq])
        return x(*i[:seq], te.if_then_else(i[seq] < length, length - 1 - i[seq], i[seq]), *i[seq + 1 :])

    return te.compute(x.shape, body, name="T_reverse_sequence")


define(
    "reverse_sequence", ("data", "seq_lengths"), _reverse_sequence_relation, OpPattern.INJECTIVE,
    numpy=_reverse_sequence,
    compute=lambda attrs, xs, out: [_te_reverse_sequence(attrs, *xs)],
    attributes=(attr("seq_axis", 1), attr("batch_axis", 0)),
    doc="The first steps of each sequence, as many as its length says, in reverse order.",
    source=TVM.format("reverse_sequence"),
)  # fmt: skip


def _unravel_relation(rel: Relation) -> None:
    indices, shape = rel.tensor(0), rank_must_be(rel, 1, 1)
    rel.set_result(tensor_type([shape_of(shape)[0], *shape_of(indices)], indices.element_type))


def _unravel(attrs: Attrs, indices: Array, shape: Array) -> Array:
    # Modulo the size: native code does not check bounds either.
    flat = indices.astype(np.int64) % max(prod(shape.tolist()), 1)
    return np.stack(np.unravel_index(flat, tuple(shape.tolist()))).astype(indices.dtype)


def _te_unravel(indices: Tensor, shape: Tensor) -> Tensor:
    rank = known_length(shape, 0)

    def body(axis: Expr, *i: Expr) -> Expr:
        # A size of 0 has no element; it must not divide.
        dims = [te.max(shape(n).astype("int64"), te.const(1, "int64")) for n in range(rank)]
        rest: Any = indices(*i).astype("int64")
        result: Any = te.const(0, "int64")
        for n in reversed(range(rank)):
            result = te.Select(axis == n, te.floormod(rest, dims[n]), result)
            rest = te.floordiv(rest, dims[n])
        return result.astype(indices.dtype)

    return te.compute((rank, *indices.shape), body, name="T_unravel_index")


define(
    "unravel_index", ("data", "shape"), _unravel_relation, OpPattern.INJECTIVE,
    numpy=_unravel,
    compute=lambda attrs, xs, out: [_te_unravel(*xs)],
    attributes=(),
    doc="The index vectors, along a new first axis, of row-major positions in a tensor of a given shape.",
    source=NUMPY.format("unravel_index"),
)  # fmt: skip
