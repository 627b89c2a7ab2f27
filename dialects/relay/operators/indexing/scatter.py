"""Defines operators that write at computed indices: scatter, sparse_to_dense, matrix_set_diag.

scatter_elements: data (4,3), indices (2,3), updates (2,3), axis=0 -> (4,3)
scatter_nd:       data (4,3), indices (1,5), updates (5,3) -> (4,3)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute

from .....support.text import counted
from ...operator import Attrs, OpPattern, Relation, attr, define
from ..common._lazy import np, te
from ..common.numpy_meanings import Array, arange_along
from ..common.relations import ANY, axis_of, rank_must_be, same_dim, shape_of, show_argument, tensor_type
from ..common.result_sizes import Requirement, ResultShapes, with_sizes
from ..common.sources import TVM
from . import te_scatter as computes
from .gather import indices_must_be_integers, same_but_axis

if TYPE_CHECKING:
    from ....te.builder import Tensor

UPDATES = ("update", "add", "mul", "min", "max", "mean")


def _combine(result: Array, at: Iterable[Any], updates: Array, mode: str, base: Array) -> Array:
    """Writes `updates` into `result` at the indices `at` of its first axes, in order, by `mode`.

    A negative index counts from the end; an index outside of the tensor is ignored.
    """
    sizes = result.shape
    places: list[Array] = [np.where(index < 0, index + size, index) for index, size in zip(at, sizes, strict=False)]
    inside: Array = np.asarray(True)
    for index, size in zip(places, sizes, strict=False):
        inside = inside & (index >= 0) & (index < size)
    if not inside.all():
        updates = np.broadcast_to(updates, (*inside.shape, *sizes[len(places) :]))[inside]
        places = [np.broadcast_to(index, inside.shape)[inside] for index in places]
    return _write(result, tuple(places), updates, mode, base)


def _write(result: Array, at: Any, updates: Array, mode: str, base: Array) -> Array:
    if mode == "update":
        result[at] = updates
    elif mode == "mean":
        count = np.ones(result.shape, np.float64)
        np.add.at(count, at, 1)
        np.add.at(result, at, updates)
        result = (result / count).astype(base.dtype)
    else:
        ufunc = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}[mode]
        ufunc.at(result, at, updates)
    return result


def _check_mode(rel: Relation, name: str) -> None:
    if rel.attrs[name] not in UPDATES:
        raise rel.fail(f"{rel.operator.name}: {name}={rel.attrs[name]!r} must be one of {', '.join(UPDATES)}")


def _scatter_elements_relation(rel: Relation) -> None:
    data, indices, updates = rel.tensor(0), rel.tensor(1), rel.tensor(2)
    axis_of(rel, rel.attrs.axis, data.get_num_dims())
    indices_must_be_integers(rel, 1)
    _check_mode(rel, "reduction")
    if data.element_type != updates.element_type or indices.get_num_dims() != data.get_num_dims():
        raise rel.fail(
            f"scatter_elements: {show_argument(rel, 2)} must have the rank and dtype of {show_argument(rel, 0)}"
        )
    same_but_axis(rel, 1, 2, shape_of(indices), shape_of(updates), -1)
    rel.set_result(data)


def _scatter_elements(attrs: Attrs, x: Array, indices: Array, updates: Array) -> Array:
    axis: int = attrs.axis % x.ndim
    at: list[Any] = list(np.indices(indices.shape, sparse=True))
    at[axis] = indices.astype(np.int64)
    return _combine(x.copy(), at, updates, attrs.reduction, x)


define(
    "scatter_elements", ("data", "indices", "updates"), _scatter_elements_relation, OpPattern.OPAQUE,
    numpy=_scatter_elements,
    compute=lambda attrs, xs, out: [computes.te_scatter_elements(attrs, *xs)],
    attributes=(attr("axis", kind="int"), attr("reduction", "update")),
    doc="data with data[…, indices[…, j, …], …] = updates[…, j, …] along `axis`, or added, multiplied, … as `reduction` says.",
    source=TVM.format("scatter_elements"),
)  # fmt: skip


def _scatter_nd_relation(rel: Relation) -> None:
    data, indices, updates = rel.tensor(0), rel.tensor(1), rel.tensor(2)
    shape, (depth, *places) = shape_of(data), shape_of(indices) or (0,)
    indices_must_be_integers(rel, 1)
    _check_mode(rel, "mode")
    if depth == ANY:
        raise rel.fail(
            f"scatter_nd: dimension 0 of {show_argument(rel, 1)} is known only at run time, but says how many axes are indexed",
            argument=1,
        )
    wanted = [*places, *shape[max(depth, 0) :]]
    got = shape_of(updates)
    if depth > len(shape) or len(wanted) != len(got) or not all(map(same_dim, wanted, got)):
        raise rel.fail(f"scatter_nd: {show_argument(rel, 2)} must have the shape {tuple(wanted)}", argument=2)
    rel.set_result(data)


define(
    "scatter_nd", ("data", "indices", "updates"), _scatter_nd_relation, OpPattern.OPAQUE,
    numpy=lambda attrs, x, at, updates: _combine(x.copy(), at.astype(np.int64), updates, attrs.mode, x),
    compute=lambda attrs, xs, out: [computes.te_scatter_nd(attrs, *xs)],
    attributes=(attr("mode", "update"),),
    doc="data with the slices at the index vectors along the first axis of `indices` replaced by, or combined with, updates.",
    source=TVM.format("scatter_nd"),
)  # fmt: skip


def index_vectors_must_fit(rel: Relation, rank: int) -> None:
    """Fails unless the first argument holds indices into a tensor of `rank` axes, for the second.

    It is a matrix whose rows are index vectors of at most `rank` indices, a vector of indices, or one index.
    """
    shape = shape_of(rel.tensor(0))
    if len(shape) > 2:
        raise rel.fail(f"{rel.operator.name}: {show_argument(rel, 0)} must have rank 0, 1 or 2", argument=0)
    depth = shape[1] if len(shape) == 2 else 1
    if depth != ANY and depth > rank:
        raise rel.fail(
            f"{rel.operator.name}: {show_argument(rel, 0)} has {counted(depth, 'index')} for each value, but the result has"
            f" {counted(rank, 'axis')}",
            argument=0,
        )
    values = shape_of(rank_must_be(rel, 1, 0, 1))
    if values and not same_dim(values[0], shape[0] if shape else 1):
        raise rel.fail(
            f"{rel.operator.name}: {show_argument(rel, 1)} must be one value, or one for each index of {show_argument(rel, 0)}",
            argument=1,
        )


def _sparse_to_dense_relation(rel: Relation) -> None:
    values = rel.tensor(1)
    rank_must_be(rel, 2, 0)
    indices_must_be_integers(rel, 0)
    index_vectors_must_fit(rel, len(rel.attrs.output_shape))
    rel.set_result(tensor_type(rel.attrs.output_shape, values.element_type))


def sparse_to_dense(shape: Sequence[int], indices: Array, values: Array, default: Array) -> Array:
    """Returns a tensor of this shape: the values at their indices, the default elsewhere."""
    result = np.full(shape, default.astype(values.dtype))
    at = indices.astype(np.int64)
    return _combine(result, at.T if at.ndim == 2 else [at], values, "update", result)


define(
    "sparse_to_dense", ("sparse_indices", "sparse_values", "default_value"), _sparse_to_dense_relation,
    OpPattern.OPAQUE,
    numpy=lambda attrs, at, values, default: sparse_to_dense(attrs.output_shape, at, values, default),
    compute=lambda attrs, xs, out: [computes.te_sparse_to_dense(attrs.output_shape, *xs)],
    attributes=(attr("output_shape", kind="ints"),),
    doc="A tensor of `default_value` with the values written at the indices (a scalar, a vector, or rows of index vectors).",
    source=TVM.format("sparse_to_dense"),
)  # fmt: skip


def _same_types(rel: Relation, *indices: int) -> TensorType[Attribute]:
    """Returns the type that the arguments have in common. Fails when they differ in rank or dtype."""
    first = rel.tensor(indices[0])
    for index in indices[1:]:
        other = rel.tensor(index)
        if other.get_num_dims() != first.get_num_dims() or other.element_type != first.element_type:
            raise rel.fail(
                f"{rel.operator.name}: {show_argument(rel, indices[0])} and {show_argument(rel, index)} must have the"
                " same rank and dtype",
                argument=index,
            )
    return first


def _strided_set_relation(rel: Relation) -> None:
    _same_types(rel, 0, 1)
    for index in (2, 3, 4):
        rank_must_be(rel, index, 1)
        indices_must_be_integers(rel, index)
    rel.set_result(rel.tensor(0))


def _strided_set(attrs: Attrs, x: Array, v: Array, begin: Array, end: Array, strides: Array) -> Array:
    result = x.copy()
    slices: list[slice] = []
    if 0 in strides:
        raise ValueError(f"stride {strides.tolist().index(0)} must not be 0")
    for axis, size in enumerate(x.shape):
        step = int(strides[axis]) if axis < len(strides) else 1
        first = int(begin[axis]) if axis < len(begin) else (0 if step > 0 else size - 1)
        last = int(end[axis]) if axis < len(end) else None
        steps = range(*slice(first, last, step).indices(size))
        if v.shape[axis] not in (1, len(steps)):
            raise ValueError(with_sizes(computes.UNLIKE_SLICE.format(axis), (v.shape[axis], len(steps))))
        slices.append(
            slice(steps.start, None if steps.stop < 0 else steps.stop, steps.step) if len(steps) else slice(0)
        )
    result[tuple(slices)] = v
    return result


define(
    "strided_set", ("data", "v", "begin", "end", "strides"), _strided_set_relation, OpPattern.INJECTIVE,
    numpy=_strided_set,
    compute=lambda attrs, xs, out: [computes.te_strided_set(*xs)],
    extents=lambda attrs, xs, out: computes.strided_set_extents(*xs),
    doc="data with the elements begin:end:strides replaced by `v`.",
    source=TVM.format("strided_set"),
)  # fmt: skip


def _set_diag_relation(rel: Relation) -> None:
    data, diagonal = rel.tensor(0), rel.tensor(1)
    count = rel.attrs.k2 - rel.attrs.k1 + 1
    rank = data.get_num_dims()
    if rank < 2 or count < 1 or diagonal.get_num_dims() != rank - (count == 1):
        raise rel.fail(
            f"matrix_set_diag: {show_argument(rel, 1)} must hold the diagonals k1={rel.attrs.k1} to k2={rel.attrs.k2} of"
            f" {show_argument(rel, 0)}",
            argument=1,
        )
    wanted = (*shape_of(data)[:-2], *([] if count == 1 else [count]))
    if not all(map(same_dim, shape_of(diagonal), wanted)):
        raise rel.fail(
            f"matrix_set_diag: {show_argument(rel, 1)} and {show_argument(rel, 0)} must be as many matrices, with {count}"
            " diagonals of each",
            argument=1,
        )
    (rows, columns), room = shape_of(data)[-2:], shape_of(diagonal)[-1]
    if ANY not in (rows, columns, room):
        longest = min(rows + min(rel.attrs.k2, 0), columns - max(rel.attrs.k1, 0), rows, columns)
        if longest > room:
            raise rel.fail(
                f"matrix_set_diag: the longest diagonal of {show_argument(rel, 0)} has {counted(longest, 'element')}, but"
                f" {show_argument(rel, 1)} has room for {room}",
                argument=1,
            )
    rel.set_result(data)


def _set_diag_extents(attrs: Attrs, xs: Sequence[Tensor], out: Attribute) -> ResultShapes:
    x, diagonal = xs
    rows, columns = x.dims[-2:]
    longest = te.min(rows + min(attrs.k2, 0), columns - max(attrs.k1, 0))
    message = "the longest diagonal of 'input' has {size} elements, but 'diagonal' has room for {size}"
    return ResultShapes(
        [x.shape], [Requirement("within", te.min(longest, te.min(rows, columns)), diagonal.shape[-1], message)]
    )


def _set_diag(attrs: Attrs, x: Array, diagonal: Array) -> Array:
    result, (rows, columns) = x.copy(), x.shape[-2:]
    for k in range(attrs.k1, attrs.k2 + 1):
        length = min(columns - max(k, 0), rows + min(k, 0))
        if length <= 0:
            continue
        right = attrs.super_diag_right_align if k >= 0 else attrs.sub_diag_right_align
        values = diagonal if attrs.k1 == attrs.k2 else diagonal[..., attrs.k2 - k, :]
        begin = values.shape[-1] - length if right else 0
        at = arange_along(length, 0, 1)
        result[..., at + max(-k, 0), at + max(k, 0)] = values[..., begin : begin + length]
    return result


define(
    "matrix_set_diag", ("input", "diagonal"), _set_diag_relation, OpPattern.INJECTIVE,
    numpy=_set_diag,
    compute=lambda attrs, xs, out: [computes.te_set_diag(attrs, *xs)],
    extents=_set_diag_extents,
    attributes=(
        attr("k1", 0), attr("k2", 0), attr("super_diag_right_align", True), attr("sub_diag_right_align", False),
    ),
    doc="Matrices with their diagonals k1 to k2 replaced; shorter ones are at the left or right of their row.",
    source=TVM.format("matrix_set_diag"),
)  # fmt: skip
