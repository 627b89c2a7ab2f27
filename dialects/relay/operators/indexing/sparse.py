"""Defines operators of sparse tensors (COO), selections by tensors of indices, and sliding windows.

sparse_fill_empty_rows: indices (n,2), values (n), dense_shape (2), default () -> (m,2), (m), (rows)
sliding_window:         data (2,6), axis=1, window_shape=[3], strides=[1] -> (2,4,3)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import TupleType
from xdsl.ir import Attribute

from ...operator import Attrs, OpPattern, Relation, attr, define
from ..common._lazy import np, te
from ..common.numpy_meanings import Array
from ..common.relations import (
    ANY,
    at_most,
    axis_of,
    broadcast_shapes,
    dtype_of,
    number_must_be,
    rank_must_be,
    same_dim,
    shape_of,
    show_argument,
    tensor_type,
    tuple_type,
)
from ..common.result_sizes import Requirement, ResultShapes, number, result_shape
from ..common.te_computes import broadcast_dims, broadcast_index
from ..conv.convolution import window_count
from ..elementwise.unary import LEAST_RIGHT, te_multiply_high
from .gather import from_end, indexed, indices_must_be_integers, must_have_elements, numpy_from_end

if TYPE_CHECKING:
    from ....te.builder import Buffer, Expr, Tensor

DOCUMENTATION = "https://tvm.apache.org/docs/v0.16.0/reference/api/python/relay/index.html"


def _places(rel: Relation) -> tuple[int, int]:
    """Returns the number of indices that the first argument lists, and of their axes."""
    indices_must_be_integers(rel, 0)
    count, rank = shape_of(rank_must_be(rel, 0, 2))
    return count, rank


def _shape_argument(rel: Relation, index: int, rank: int) -> int:
    """Returns the length of an argument that holds a shape; of `rank` numbers unless that is `?`."""
    indices_must_be_integers(rel, index)
    (length,) = shape_of(rank_must_be(rel, index, 1))
    if not same_dim(length, rank):
        raise rel.fail(
            f"{rel.operator.name}: {show_argument(rel, index)} must have a number for each of the {rank} axes of"
            f" {show_argument(rel, 0)}",
            argument=index,
        )
    return length


def _fill_relation(rel: Relation) -> None:
    count, rank = _places(rel)
    if not same_dim(shape_of(rank_must_be(rel, 1, 1))[0], count):
        raise rel.fail(
            f"{rel.operator.name}: {show_argument(rel, 1)} must have a value for each row of {show_argument(rel, 0)}",
            argument=1,
        )
    _shape_argument(rel, 2, rank)
    number_must_be(rel, 3)
    shapes = ([ANY, rank], [ANY], [ANY])
    rel.set_result(tuple_type([tensor_type(shape, "int64") for shape in shapes]))


_IN_ORDER = "the rows of 'sparse_indices' must ascend, from 0 on to below the first size of 'dense_shape'"


def _fill(attrs: Attrs, places: Array, values: Array, shape: Array, default: Array) -> tuple[Array, Array, Array]:
    rows, given = np.arange(int(shape[0])), places[:, 0]
    if int(shape[0]) < 0 or (np.diff(given.astype(np.int64)) < 0).any() or not np.isin(given, rows).all():
        raise ValueError(_IN_ORDER)
    empty = ~np.isin(rows, places[:, 0])
    added = np.zeros((int(empty.sum()), places.shape[1]), np.int64)
    added[:, 0] = rows[empty]
    every = np.concatenate([places.astype(np.int64), added])
    filled = np.concatenate([values.astype(np.int64), np.full(len(added), default.reshape(()).astype(np.int64))])
    order = np.argsort(every[:, 0], kind="stable")
    return every[order], filled[order], empty.astype(np.int64)


def _fill_extents(places: Tensor, shape: Tensor) -> ResultShapes:
    """Computes the sizes of `sparse_fill_empty_rows`: rows without an index are added."""
    count, rank = places.shape
    k = te.reduce_axis((0, count), name="k")

    def is_new() -> Any:
        first = te.if_then_else(k.equal(0), te.const(1, "bool"), te.not_equal(places(k - 1, 0), places(k, 0)))
        return te.sum(first.astype("int64"), axis=k)

    distinct = te.compute((), lambda *_: is_new(), name="count")()
    rows = number(shape, 0)
    total = rows - distinct + (te.const(count, "int64") if isinstance(count, int) else count.astype("int64"))

    def is_misplaced() -> Any:
        row = places(k, 0).astype("int64")
        before = te.if_then_else(k.equal(0), te.const(0, "int64"), places(k - 1, 0).astype("int64"))
        return te.sum(te.any(row < before, row >= rows).astype("int64"), axis=k)

    misplaced = te.compute((), lambda *_: is_misplaced(), name="misplaced")()
    return ResultShapes([[total, rank], [total], [rows]], [Requirement("equal", misplaced, 0, _IN_ORDER)])


def _te_fill(xs: Sequence[Tensor], out: Attribute) -> list[Tensor]:
    places, values, shape, default = xs
    count, rank = places.shape
    assert isinstance(out, TupleType)
    shapes = [result_shape(field) for field in out.types.data]
    # The number of places and that of values are one.
    shapes[1][0] = shapes[0][0]
    value = te.compute((1,), lambda *i: (default(*i) if default.shape else default()).astype("int64"), name="T_default")
    size = te.compute((1,), lambda *i: shape(*i).astype("int64"), name="T_rows")

    def statements(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Any:
        (place, held, rows, filler), (every, filled, empty, cursor) = ins, outs
        ib = te.ir_builder.create()
        ib.emit([cursor.vstore(0, te.const(0, "int64")), cursor.vstore(1, te.const(0, "int64"))])

        def add(row: Expr, source: Expr | None) -> None:
            ib.emit(every.vstore((cursor[0], 0), row))
            with ib.for_range(1, rank, "k") as k:
                more = te.const(0, "int64") if source is None else place[source, k].astype("int64")
                ib.emit(every.vstore((cursor[0], k), more))
            ib.emit(filled.vstore(cursor[0], filler[0] if source is None else held[source].astype("int64")))
            ib.emit(empty.vstore(row, te.const(int(source is None), "int64")))
            ib.emit(cursor.vstore(0, cursor[0] + te.const(1, "int64")))

        def add_rows(end: Expr) -> None:
            """Adds the rows without an index, from the first that is not yet seen."""
            first = cursor[1]
            with ib.for_range(te.const(0, "int64"), te.max(end - first, te.const(0, "int64")), "row") as row:
                add(cursor[1] + row, None)

        with ib.for_range(0, count, "i") as i:
            add_rows(place[i, 0].astype("int64"))
            add(place[i, 0].astype("int64"), i)
            ib.emit(cursor.vstore(1, place[i, 0].astype("int64") + te.const(1, "int64")))
        add_rows(rows[0])
        return ib.get()

    every = te.extern([*shapes, (2,)], [places, values, size, value], statements, name="fill_rows", dtype="int64")
    return list(every[:3])


define(
    "sparse_fill_empty_rows", ("sparse_indices", "sparse_values", "dense_shape", "default_value"), _fill_relation,
    OpPattern.OPAQUE,
    numpy=_fill,
    compute=lambda attrs, xs, out: _te_fill(xs, out),
    extents=lambda attrs, xs, out: _fill_extents(xs[0], xs[2]),
    doc="A sparse tensor (places in row-major order, values) with a default value in every row that had none; which these were.",
    source="https://www.tensorflow.org/api_docs/python/tf/sparse/fill_empty_rows",
)  # fmt: skip


def _reshape_relation(rel: Relation) -> None:
    count, rank = _places(rel)
    _shape_argument(rel, 1, rank)
    new = rank_must_be(rel, 2, 1)
    indices_must_be_integers(rel, 2)
    (length,) = shape_of(new)
    element = rel.tensor(0).element_type
    rel.set_result(tuple_type([tensor_type([count, length], element), tensor_type([length], new.element_type)]))


def _reshape(attrs: Attrs, places: Array, old: Array, new: Array) -> tuple[Array, Array]:
    def product(sizes: Array) -> int:
        return int(np.prod(sizes[sizes >= 0], dtype=np.int64))

    shape = np.where(new < 0, product(old) // max(product(new), 1), new)
    steps = [product(old[axis + 1 :]) for axis in range(len(old))]
    flat = places.astype(np.int64) @ np.array(steps, np.int64)
    columns: list[Array] = []
    before = flat
    for axis in range(len(shape)):
        step = max(product(shape[axis + 1 :]), 1)
        columns.append(before // step)
        # Where products of sizes wrap around, the next does not divide this one: as in native code, the remainder of the whole is kept.
        before = flat % step
    return np.stack(columns, 1).astype(places.dtype), shape.astype(new.dtype)


def _te_reshape(places: Tensor, old: Tensor, new: Tensor) -> list[Tensor]:
    count, rank = places.shape
    (length,) = new.shape
    one = te.const(1, "int64")

    def product(x: Tensor, size: Any, start: Any) -> Any:
        """Multiplies the numbers from `start` on; -1 counts as 1."""
        k = te.reduce_axis((0, size), name="k")
        value = x(k).astype("int64")
        return te.prod(te.Select(te.any(value < 0, k < start), one, value), axis=k)

    total = te.compute((), lambda *_: product(old, rank, 0), name="T_elements")
    known = te.compute((), lambda *_: product(new, length, 0), name="T_known")

    def dimension(i: Expr) -> Expr:
        value = new(i).astype("int64")
        return te.Select(value < 0, te.floordiv(total(), te.max(known(), one)), value)

    shape = te.compute((length,), dimension, name="T_shape")
    steps = te.compute((rank,), lambda *i: product(old, rank, i[0] + 1), name="T_old_steps")
    divisors = te.compute((length,), lambda *i: product(shape, length, i[0] + 1), name="T_new_steps")
    j = te.reduce_axis((0, rank), name="j")
    flat = te.compute((count,), lambda *i: te.sum(places(*i, j).astype("int64") * steps(j), axis=j), name="T_flat")

    def index(i: Expr, axis: Expr) -> Expr:
        # The remainder by the step of the axis before is left for this axis.
        before = te.if_then_else(axis > 0, te.floormod(flat(i), te.max(divisors(te.max(axis - 1, 0)), one)), flat(i))
        return te.floordiv(before, te.max(divisors(axis), one)).astype(places.dtype)

    result = te.compute((count, length), index, name="T_sparse_reshape")
    return [result, te.compute((length,), lambda *i: shape(*i).astype(new.dtype), name="T_new_shape")]


define(
    "sparse_reshape", ("sparse_indices", "prev_shape", "new_shape"), _reshape_relation, OpPattern.INJECTIVE,
    numpy=_reshape,
    compute=lambda attrs, xs, out: _te_reshape(*xs),
    doc="The places of a sparse tensor in another shape, of which -1 is inferred, and that shape.",
    source="https://www.tensorflow.org/api_docs/python/tf/sparse/reshape",
)  # fmt: skip


def _adv_index_relation(rel: Relation) -> None:
    data, *indices = rel.tensors(0)
    if not 0 < len(indices) <= data.get_num_dims():
        raise rel.fail(
            f"adv_index: {len(indices)} tensors of indices for a tensor of rank {data.get_num_dims()}",
            "the first field is the data, the others its indices along the first axes",
            argument=0,
        )
    shape = shape_of(indices[0])
    for field in indices:
        if not dtype_of(field).startswith(("int", "uint")):
            raise rel.fail("adv_index: the indices must be of an integer dtype", argument=0)
        joined = broadcast_shapes(shape, shape_of(field))
        if isinstance(joined, int):
            raise rel.fail(f"adv_index: the indices do not broadcast along dimension {joined}", argument=0)
        shape = joined
    result = [*shape, *shape_of(data)[len(indices) :]]
    for size in shape_of(data)[: len(indices)]:
        must_have_elements(rel, 0, size, result)
    rel.set_result(tensor_type(result, data.element_type))


def _te_adv_index(xs: Sequence[Tensor]) -> Tensor:
    data, *indices = xs
    places = broadcast_dims([x.shape for x in indices])

    def body(*i: Expr) -> Expr:
        at: list[Expr] = []
        for axis, x in enumerate(indices):
            at.append(from_end(broadcast_index(x, i[: len(places)], places), data.shape[axis]))
        return data(*at, *i[len(places) :])

    return te.compute([*places, *data.shape[len(indices) :]], body, name="T_adv_index")


def _adv_index_extents(attrs: Attrs, xs: Sequence[Tensor], out: Attribute) -> ResultShapes:
    result = _te_adv_index(xs)
    return ResultShapes([result.shape], indexed(xs[0], range(len(xs) - 1), result, "field 0 of 'inputs'"))


define(
    "adv_index", ("*inputs",), _adv_index_relation, OpPattern.INJECTIVE,
    numpy=lambda attrs, xs: np.asarray(
        xs[0][tuple(numpy_from_end(x, size) for x, size in zip(xs[1:], xs[0].shape, strict=False))]
    ),
    compute=lambda attrs, xs, out: [_te_adv_index(xs)],
    extents=_adv_index_extents,
    doc="The elements (or slices) at index tensors that are broadcast against each other, along the first axes.",
    source="https://numpy.org/doc/stable/user/basics.indexing.html",
)  # fmt: skip


def _window_relation(rel: Relation) -> None:
    data, attrs = rel.tensor(0), rel.attrs
    rank = data.get_num_dims()
    axis = axis_of(rel, attrs.axis, rank)
    slid = rank - axis
    if not len(attrs.window_shape) == len(attrs.strides) == slid or min(*attrs.window_shape, *attrs.strides, 1) < 1:
        raise rel.fail(
            f"sliding_window: window_shape={list(attrs.window_shape)} and strides={list(attrs.strides)} must have {slid}"
            f" positive numbers, for the axes of {show_argument(rel, 0)} from {axis} on"
        )
    shape = list(shape_of(data))
    for n, (width, stride) in enumerate(zip(attrs.window_shape, attrs.strides, strict=True), axis):
        if not at_most(width, shape[n]):
            raise rel.fail(f"sliding_window: the window of {width} is longer than axis {n} of {show_argument(rel, 0)}")
        shape[n] = window_count(shape[n], 0, 0, width, stride, 1)
    rel.set_result(tensor_type([*shape, *attrs.window_shape], data.element_type))


def _window(attrs: Attrs, x: Array) -> Array:
    axis: int = attrs.axis % x.ndim
    view = np.lib.stride_tricks.sliding_window_view(x, attrs.window_shape, axis=tuple(range(axis, x.ndim)))
    return view[(*[slice(None)] * axis, *(slice(None, None, s) for s in attrs.strides))].copy()


def _te_window(attrs: Attrs, x: Tensor) -> Tensor:
    axis: int = attrs.axis % len(x.shape)
    shape: list[Any] = list(x.shape[:axis])
    for dim, width, stride in zip(x.shape[axis:], attrs.window_shape, attrs.strides, strict=True):
        shape.append((dim - width) // stride + 1 if isinstance(dim, int) else te.floordiv(dim - width, stride) + 1)
    rank = len(x.shape)

    def body(*i: Expr) -> Expr:
        moved = [i[axis + n] * stride + i[rank + n] for n, stride in enumerate(attrs.strides)]
        return x(*i[:axis], *moved)

    return te.compute([*shape, *attrs.window_shape], body, name="T_sliding_window")


define(
    "sliding_window", ("data",), _window_relation, OpPattern.OPAQUE,
    numpy=_window,
    compute=lambda attrs, xs, out: [_te_window(attrs, xs[0])],
    attributes=(attr("axis", kind="int"), attr("window_shape", kind="ints"), attr("strides", kind="ints")),
    doc="Every window over the axes from `axis` on: its places first, then its elements.",
    source="https://numpy.org/doc/stable/reference/generated/numpy.lib.stride_tricks.sliding_window_view.html",
)  # fmt: skip


def _per_axis_relation(rel: Relation) -> None:
    data = rel.tensor(0)
    axes = [axis_of(rel, axis, data.get_num_dims(), "axes") for axis in rel.attrs.axes]
    sizes = [shape_of(data)[axis] for axis in axes]
    for index in range(4):
        if dtype_of(rel.tensor(index)) != "int32":
            raise rel.fail(f"{rel.operator.name}: {show_argument(rel, index)} must be of int32", argument=index)
    for index in (1, 2, 3):
        rel.set_argument(index, tensor_type(sizes, "int32"))
    rel.set_result(data)


def _per_axis(attrs: Attrs, x: Array, multiplier: Array, left: Array, right: Array) -> Array:
    axes = [axis % x.ndim for axis in attrs.axes]

    def placed(values: Array) -> Array:
        ordered = values.transpose(np.argsort(axes))
        return ordered.reshape([x.shape[a] if a in axes else 1 for a in range(x.ndim)]).astype(np.int64)

    wide = x.astype(np.int64) << placed(left) if attrs.is_lshift_required else x.astype(np.int64)
    shift = placed(right) + 31 if attrs.is_rshift_required else np.int64(31)
    return ((wide * placed(multiplier) + (np.int64(1) << (shift - 1))) >> shift).astype(np.int32)


def _te_per_axis(attrs: Attrs, x: Tensor, multiplier: Tensor, left: Tensor, right: Tensor) -> Tensor:
    one, bits = te.const(1, "int64"), te.const(31, "int64")

    def body(*i: Expr) -> Expr:
        axes: tuple[int, ...] = attrs.axes
        place = [i[axis] for axis in axes]
        if not attrs.is_lshift_required and attrs.least_rshift >= LEAST_RIGHT:
            return te_multiply_high(x(*i), multiplier(*place), right(*place))
        wide = x(*i).astype("int64")
        wide = wide << left(*place).astype("int64") if attrs.is_lshift_required else wide
        shift = bits + right(*place).astype("int64") if attrs.is_rshift_required else bits
        return ((wide * multiplier(*place).astype("int64") + (one << (shift - one))) >> shift).astype("int32")

    return te.compute(x.shape, body, name="T_fixed_point_multiply_per_axis")


define(
    "fixed_point_multiply_per_axis", ("data", "multiplier", "lshift", "rshift"), _per_axis_relation,
    OpPattern.ELEMWISE,
    numpy=_per_axis,
    compute=lambda attrs, xs, out: [_te_per_axis(attrs, *xs)],
    attributes=(
        attr("is_lshift_required", False), attr("is_rshift_required", False), attr("axes", kind="ints"),
        attr("least_rshift", 0),
    ),
    doc="`fixed_point_multiply` by multipliers and shifts (one left, one right) that differ along `axes`; no shift to the right is "
    "less than `least_rshift`, nor above 32 where that is 2.",
    source=DOCUMENTATION,
)  # fmt: skip
