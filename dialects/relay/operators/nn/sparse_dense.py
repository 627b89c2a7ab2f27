"""Defines products with sparse matrices in compressed rows (CSR) or rows of blocks (BSR).

A sparse matrix is three arguments: its values, the column of each, the index where each row begins.

    sparse_dense: dense (M,K), values (nnz), indices (nnz), indptr (N+1) -> (M,N)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from ...operator import Attrs, OpPattern, Relation, attr, define
from ..common._lazy import np, te
from ..common.layout_strings import checked_layout, layout, logical_sizes
from ..common.numpy_meanings import Array
from ..common.relations import (
    add_dims,
    at_most,
    multiply_dims,
    rank_must_be,
    same_dim,
    same_dtype,
    shape_of,
    show_argument,
    tensor_type,
    tuple_type,
)
from ..common.sources import TVM_NN
from ..common.te_computes import signed_index
from ..indexing.gather import indices_must_be_integers
from ..sorting.te_sort import loops

if TYPE_CHECKING:
    from ....te.builder import Buffer, Expr, Tensor

_SPARSE = ("sparse_data", "sparse_indices", "sparse_indptr")


def _rows(rel: Relation, first: int, *ranks: int) -> int:
    """Returns the number of rows (of blocks) of the sparse matrix in three arguments from `first` on."""
    name = rel.operator.name
    data, indices, starts = (
        rank_must_be(rel, first, *ranks),
        rank_must_be(rel, first + 1, 1),
        rank_must_be(rel, first + 2, 1),
    )
    for index in (first + 1, first + 2):
        indices_must_be_integers(rel, index)
    if not same_dim(shape_of(data)[0], shape_of(indices)[0]):
        raise rel.fail(
            f"{name}: {show_argument(rel, first + 1)} must have a column for each of {show_argument(rel, first)}",
            argument=first + 1,
        )
    count = shape_of(starts)[0]
    if not at_most(1, count):
        raise rel.fail(f"{name}: {show_argument(rel, first + 2)} must say where each row begins and the last ends")
    return add_dims(count, -1)


def _dense_relation(rel: Relation) -> None:
    dense = rank_must_be(rel, 0, 2)
    same_dtype(rel, 0, 1)
    rows = _rows(rel, 1, 1, 3)
    blocks = shape_of(rel.tensor(1))[1:]
    height = multiply_dims(rows, *blocks[:1])
    outer = shape_of(dense)[0]
    shape = [height, outer] if rel.attrs.sparse_lhs else [outer, height]
    rel.set_result(tensor_type(shape, dense.element_type))


def _entries(columns: Array, starts: Array, size: int) -> list[tuple[int, int, int]]:
    """Returns each entry of a matrix of `size` columns: its row, its column, its number.

    Indices beyond the arrays are clipped. A matrix without columns has no entries.
    """
    if size == 0:
        return []
    starts = np.clip(starts.astype(np.int64), 0, len(columns))
    return [
        (row, min(max(int(columns[k]), 0), size - 1), k)
        for row in range(len(starts) - 1)
        for k in range(int(starts[row]), int(starts[row + 1]))
    ]


def _dense(attrs: Attrs, dense: Array, data: Array, columns: Array, starts: Array) -> Array:
    blocks = data.reshape(len(data), 1, 1) if data.ndim == 1 else data
    height, width = blocks.shape[1:]
    wide = np.promote_types(dense.dtype, np.float32) if dense.dtype.kind == "f" else dense.dtype
    result = np.zeros((len(dense), (len(starts) - 1) * height), wide)
    for row, column, k in _entries(columns, starts, dense.shape[1] // max(width, 1)):
        part = dense[:, column * width : (column + 1) * width].astype(wide)
        result[:, row * height : (row + 1) * height] += part @ blocks[k].T.astype(wide)
    return (result.T if attrs.sparse_lhs else result).astype(dense.dtype)


def _bounded(value: Expr, least: Any, most: Any) -> Expr:
    """Clips a value of the index tensors to bounds, as int32: it must not lead out of memory."""
    return te.max(te.min(signed_index(value), most), least).astype("int32")


def _span(starts: Buffer, row: Expr, count: Any, size: Any) -> tuple[Expr, Expr]:
    """Returns a row's first entry and number of entries, of a matrix of `size` columns: 0 for no columns."""
    first = _bounded(starts[row], 0, count)
    entries = _bounded(starts[row + 1], first, count) - first
    return first, te.Select(te.convert(size) > 0, entries, te.const(0, "int32"))


Place = Callable[[Sequence[Any], Any], tuple[Any, ...]]
"""The element for a place in the dense operand or the result and a column or row."""


def _te_product(
    dense: Tensor, sparse: Sequence[Tensor], inner: Any, outer: Sequence[Any], read: Place, write: Place, shape: Any
) -> Tensor:
    """Returns the products of each dense row with each sparse row.

    `read` and `write` return the indices of a dense element and of a result.
    """
    data, columns, starts = sparse
    height, width = data.shape[1:] if len(data.shape) == 3 else (1, 1)
    rows = starts.shape[0] - 1
    # As many (blocks of) columns as the dense operand has.
    size = te.floordiv(te.convert(inner), te.max(te.convert(width), 1))

    def statements(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Any:
        (x, value, column, start), (result,) = ins, outs
        ib = te.ir_builder.create()
        with loops(ib, [*outer, rows, height]) as (*place, row, r):
            target = write(place, row * height + r)
            ib.emit(result.vstore(target, te.const(0, x.dtype)))
            first, count = _span(start, row, data.shape[0], size)
            with loops(ib, [count, width], "k") as (k, c):
                here = _bounded(column[first + k], 0, size - 1) * width + c
                factor = value[(first + k, r, c) if len(data.shape) == 3 else (first + k,)]
                ib.emit(result.vstore(target, result[target] + x[read(place, here)] * factor))
        return ib.get()

    return te.extern(shape, [dense, data, columns, starts], statements, name="sparse_product", dtype=dense.dtype)


def _te_dense(attrs: Attrs, dense: Tensor, *sparse: Tensor) -> Tensor:
    data, _, starts = sparse
    height = (starts.shape[0] - 1) * (data.shape[1] if len(data.shape) == 3 else 1)
    left: bool = attrs.sparse_lhs

    def write(place: Sequence[Any], row: Any) -> tuple[Any, ...]:
        return (row, *place) if left else (*place, row)

    shape = [height, dense.shape[0]] if left else [dense.shape[0], height]
    return _te_product(
        dense, sparse, dense.shape[1], [dense.shape[0]], lambda place, column: (*place, column), write, shape
    )


define(
    "nn.sparse_dense", ("dense_data", *_SPARSE), _dense_relation, OpPattern.OUT_ELEMWISE_FUSABLE,
    numpy=_dense,
    compute=lambda attrs, xs, out: [_te_dense(attrs, *xs)],
    attributes=(attr("sparse_lhs", False),),
    doc="dense · sparseᵀ, or with `sparse_lhs` sparse · denseᵀ, of a matrix in compressed rows.",
    source=TVM_NN.format("sparse_dense"),
)  # fmt: skip


def _transpose_relation(rel: Relation) -> None:
    _rows(rel, 0, 1)
    rel.set_result(tuple_type([rel.tensor(0), rel.tensor(1), rel.tensor(2)]))


def _transpose(attrs: Attrs, data: Array, columns: Array, starts: Array) -> tuple[Array, Array, Array]:
    count, stored = len(starts) - 1, len(data)
    entries = _entries(columns, starts, count)
    of = [column for _, column, _ in entries]
    new = np.concatenate([[0], np.cumsum(np.bincount(np.array(of, np.int64), minlength=count))])[: count + 1]
    values, rows, cursor = np.zeros_like(data), np.zeros_like(columns), new.copy()
    for row, column, k in entries:
        place = min(cursor[column], stored - 1)
        values[place], rows[place] = data[k], row
        cursor[column] += 1
    return values, rows, new.astype(starts.dtype)


def _te_transpose(data: Tensor, columns: Tensor, starts: Tensor) -> list[Tensor]:
    count = starts.shape[0]

    def statements(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Any:
        (value, column, start), (values, rows, begins, cursor) = ins, outs
        ib = te.ir_builder.create()
        with ib.for_range(0, count, "n") as n:
            ib.emit([begins.vstore(n, te.const(0, begins.dtype)), cursor.vstore(n, 0)])
        # More may be stored than the rows have.
        with ib.for_range(0, data.shape[0], "n") as n:
            ib.emit([values.vstore(n, te.const(0, values.dtype)), rows.vstore(n, te.const(0, rows.dtype))])

        def entries(act: Callable[[Expr, Expr, Expr], None]) -> None:
            with ib.for_range(0, count - 1, "row") as row:
                first, size = _span(start, row, data.shape[0], count - 1)
                with ib.for_range(0, size, "k") as k:
                    act(row, first + k, _bounded(column[first + k], 0, count - 2))

        def counted(row: Expr, k: Expr, c: Expr) -> None:
            ib.emit(begins.vstore(c + 1, begins[c + 1] + te.const(1, begins.dtype)))

        def moved(row: Expr, k: Expr, c: Expr) -> None:
            place = te.min(begins[c].astype("int32") + cursor[c], data.shape[0] - 1)
            ib.emit([values.vstore(place, value[k]), rows.vstore(place, row.astype(rows.dtype))])
            ib.emit(cursor.vstore(c, cursor[c] + 1))

        entries(counted)
        with ib.for_range(0, count - 1, "n") as n:
            ib.emit(begins.vstore(n + 1, begins[n + 1] + begins[n]))
        entries(moved)
        return ib.get()

    shapes = [data.shape, columns.shape, starts.shape, (count,)]
    dtypes = [data.dtype, columns.dtype, starts.dtype, "int32"]
    results = te.extern(shapes, [data, columns, starts], statements, name="sparse_transpose", dtype=dtypes)
    return list(results[:3])


define(
    "nn.sparse_transpose", _SPARSE, _transpose_relation, OpPattern.OUT_ELEMWISE_FUSABLE,
    numpy=_transpose,
    compute=lambda attrs, xs, out: _te_transpose(*xs),
    doc="The transpose of a square matrix in compressed rows; zeros after its entries, where more is stored.",
    source=TVM_NN.format("sparse_transpose"),
)  # fmt: skip


def _add_relation(rel: Relation) -> None:
    dense = rank_must_be(rel, 0, 2)
    same_dtype(rel, 0, 1)
    rows = _rows(rel, 1, 1)
    if not same_dim(shape_of(dense)[0], rows):
        raise rel.fail(
            f"nn.sparse_add: {show_argument(rel, 0)} must have the {rows} rows of the sparse matrix", argument=0
        )
    rel.set_result(dense)


def _add(attrs: Attrs, dense: Array, data: Array, columns: Array, starts: Array) -> Array:
    result = dense.copy()
    for row, column, k in _entries(columns, starts, dense.shape[1]):
        result[row, column] += data[k]
    return result


def _te_add(dense: Tensor, data: Tensor, columns: Tensor, starts: Tensor) -> Tensor:
    def statements(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Any:
        (x, value, column, start), (result,) = ins, outs
        ib = te.ir_builder.create()
        with loops(ib, dense.shape) as at:
            ib.emit(result.vstore(tuple(at), x[tuple(at)]))
        with ib.for_range(0, dense.shape[0], "row") as row:
            first, count = _span(start, row, data.shape[0], dense.shape[1])
            with ib.for_range(0, count, "k") as k:
                here = (row, _bounded(column[first + k], 0, dense.shape[1] - 1))
                ib.emit(result.vstore(here, result[here] + value[first + k]))
        return ib.get()

    return te.extern(dense.shape, [dense, data, columns, starts], statements, name="sparse_add", dtype=dense.dtype)


define(
    "nn.sparse_add", ("dense_data", *_SPARSE), _add_relation, OpPattern.OPAQUE,
    numpy=_add,
    compute=lambda attrs, xs, out: [_te_add(*xs)],
    doc="dense + sparse, of a matrix in compressed rows.",
    source=TVM_NN.format("sparse_add"),
)  # fmt: skip


def _conv_relation(rel: Relation) -> None:
    of = checked_layout(rel, "layout", "NCHW")
    if tuple(rel.attrs.kernel_size) != (1, 1):
        raise rel.fail(f"nn.sparse_conv2d: kernel_size={list(rel.attrs.kernel_size)} must be [1, 1]")
    sizes = logical_sizes(rel, 0, of)
    same_dtype(rel, 0, 1)
    sizes["C"] = multiply_dims(_rows(rel, 1, 3), shape_of(rel.tensor(1))[1])
    rel.set_result(tensor_type(of.physical(sizes), rel.tensor(0).element_type))


def _conv(attrs: Attrs, x: Array, data: Array, columns: Array, starts: Array) -> Array:
    of = layout(attrs.layout)
    images = of.to_logical(x, "NHWC")
    rows = images.reshape(prod(images.shape[:3]), images.shape[3])
    flat = _dense(Attrs({"sparse_lhs": False}), rows, data, columns, starts)
    return of.from_logical(flat.reshape(*images.shape[:3], flat.shape[1]), "NHWC")


def _te_conv(attrs: Attrs, x: Tensor, *sparse: Tensor) -> Tensor:
    of = layout(attrs.layout)
    sizes = of.logical(x.shape)
    data, _, starts = sparse
    shape = of.physical({**sizes, "C": (starts.shape[0] - 1) * data.shape[1]})

    def at(place: Sequence[Any], channel: Any) -> tuple[Any, ...]:
        return tuple(of.indices({**dict(zip("NHW", place, strict=True)), "C": channel}))

    return _te_product(x, sparse, sizes["C"], [sizes[axis] for axis in "NHW"], at, at, shape)


define(
    "nn.sparse_conv2d", ("dense_data", *_SPARSE), _conv_relation, OpPattern.OUT_ELEMWISE_FUSABLE,
    numpy=_conv,
    compute=lambda attrs, xs, out: [_te_conv(attrs, *xs)],
    attributes=(attr("layout", "NHWC"), attr("kernel_size", (1, 1))),
    doc="`nn.conv2d` by a weight of one place, a sparse matrix in rows of blocks.",
    source=TVM_NN.format("sparse_dense"),
)  # fmt: skip
