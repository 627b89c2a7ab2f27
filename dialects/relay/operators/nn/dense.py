"""Defines products of matrices: dense layers, matmul, batches of matrices, packed weights.

dense:        data (…,K), weight (N,K) -> (…,N)
matmul:       tensor_a (M,K), tensor_b (K,N) -> (M,N)
batch_matmul: tensor_a (B,M,K), tensor_b (B,N,K), transpose_b=True -> (B,M,N)
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from xdsl.ir import Attribute

from ...operator import Attrs, Large, OpPattern, Relation, attr, define
from ..common._lazy import te
from ..common.numpy_meanings import Array, matmul, numpy_type
from ..common.relations import (
    ANY,
    can_stretch,
    dtype_attr,
    known_dim,
    multiply_dims,
    rank_at_least,
    rank_must_be,
    same_dim,
    shape_of,
    show_argument,
    tensor_type,
)
from ..common.sources import TVM_NN
from ..common.te_computes import Dim, broadcast_dims, constant, from_half, is_one, sums_of_products

if TYPE_CHECKING:
    from ....te.builder import Expr, Tensor

UNITS = attr("units", None, "int", printed=True)
OUT_DTYPE = attr("out_dtype", None, "str")


def out_dtype(rel: Relation, data: Attribute) -> Attribute:
    """Returns the result's element type: `out_dtype`, or the data's."""
    return dtype_attr(rel, "out_dtype", data)


def matmul_relation(rel: Relation, transpose_a: bool, transpose_b: bool) -> None:
    """Types the product of data and a matrix, whose type follows from `units` where it is unknown."""
    data = rank_at_least(rel, 0, 1)
    *outer, inner = shape_of(data)
    if transpose_a:
        if len(outer) != 1:
            raise rel.fail(f"{rel.operator.name}: transpose_a needs a matrix, not {show_argument(rel, 0)}", argument=0)
        outer, inner = [inner], outer[0]
    weight = rel.type_of(1)
    units: int | None = rel.attrs.units
    if units is None or weight is not None:
        known = rank_must_be(rel, 1, 2)
        shape = shape_of(known)
        units = known_dim(shape[0] if transpose_b else shape[1], ANY) if units is None else units
        dtype = known.element_type
    else:
        dtype = data.element_type
    rel.set_argument(1, tensor_type([units, inner] if transpose_b else [inner, units], dtype))
    rel.set_result(tensor_type([*outer, units], out_dtype(rel, data.element_type)))


def _matmul_numpy(x: Array, w: Array, dtype: str | None, transpose_a: bool, transpose_b: bool) -> Array:
    return matmul(x.T if transpose_a else x, w.T if transpose_b else w, numpy_type(dtype or x.dtype.name))


def _te_matmul(x: Tensor, w: Tensor, dtype: str | None, transpose_a: bool, transpose_b: bool) -> Tensor:
    k = te.reduce_axis((0, x.shape[0 if transpose_a else -1]), name="k")
    outer = [x.shape[1]] if transpose_a else list(x.shape[:-1])
    units = w.shape[0 if transpose_b else 1]
    dtype = dtype or x.dtype
    if prod(constant(dim) or 0 for dim in outer) >= HALF_ROWS:
        x, w = from_half(x), from_half(w)

    def factors(*i: Expr) -> tuple[Expr, Expr]:
        return x(k, i[0]) if transpose_a else x(*i[:-1], k), w(i[-1], k) if transpose_b else w(k, i[-1])

    name = f"T_matmul_{'NT'[transpose_a]}{'NT'[transpose_b]}"
    return sums_of_products((*outer, units), factors, [k], dtype, name)


HALF_ROWS = 8
"""The rows from which a matrix of float16 is converted to float32 before the product; for fewer, reading it takes the time."""
ROWS = 8
"""Rows of an unknown number that are computed together."""


def _by_blocks(attrs: Attrs, xs: Sequence[Tensor], out: Attribute) -> Sequence[Tensor]:
    """Computes `nn.dense` of an unknown number of rows in blocks of ROWS; the last row fills the last."""
    x, w = xs
    rows, inner = x.dims
    blocks = te.floordiv(rows + (ROWS - 1), ROWS)

    def padded(b: Expr, i: Expr, k: Expr) -> Expr:
        return x(te.min(b * ROWS + i, rows - 1), k)

    def crop(i: Expr, j: Expr) -> Expr:
        return whole(te.floordiv(i, ROWS), te.floormod(i, ROWS), j)

    blocked = te.compute((blocks, ROWS, inner), padded, name="T_matmul_rows")
    whole = _te_matmul(blocked, w, attrs.out_dtype, False, True)
    return [te.compute((rows, whole.shape[-1]), crop, name="T_matmul_crop")]


def _rows(xs: Sequence[Tensor]) -> Dim | None:
    return xs[0].shape[0] if len(xs[0].shape) == 2 else None


define(
    "nn.dense", ("data", "weight"), lambda rel: matmul_relation(rel, False, True), OpPattern.OUT_ELEMWISE_FUSABLE,
    numpy=lambda attrs, x, w: _matmul_numpy(x, w, attrs.out_dtype, False, True),
    compute=lambda attrs, xs, out: [_te_matmul(xs[0], xs[1], attrs.out_dtype, False, True)],
    large=Large(ROWS // 2, _rows, _by_blocks),
    attributes=(UNITS, OUT_DTYPE),
    doc="data · weightᵀ over the last axes: data (…, k), weight (units, k), result (…, units).",
    source=TVM_NN.format("dense"),
)  # fmt: skip

define(
    "nn.matmul", ("tensor_a", "tensor_b"),
    lambda rel: matmul_relation(rel, rel.attrs.transpose_a, rel.attrs.transpose_b), OpPattern.OUT_ELEMWISE_FUSABLE,
    numpy=lambda attrs, a, b: _matmul_numpy(a, b, attrs.out_dtype, attrs.transpose_a, attrs.transpose_b),
    compute=lambda attrs, xs, out: [_te_matmul(xs[0], xs[1], attrs.out_dtype, attrs.transpose_a, attrs.transpose_b)],
    attributes=(
        UNITS, OUT_DTYPE, attr("transpose_a", False), attr("transpose_b", False),
    ),
    doc="tensor_a · tensor_b, each transposed on demand.",
    source=TVM_NN.format("matmul"),
)  # fmt: skip


def _swap_last(shape: Sequence[int]) -> tuple[int, ...]:
    return (*shape[:-2], shape[-1], shape[-2])


def batch_matmul_relation(rel: Relation) -> None:
    """Types the product of two batches of matrices, each transposed on demand."""
    x, y = rank_must_be(rel, 0, 3), rank_must_be(rel, 1, 3)
    a = _swap_last(shape_of(x)) if rel.attrs.transpose_a else shape_of(x)
    b = _swap_last(shape_of(y)) if rel.attrs.transpose_b else shape_of(y)
    both = f"arguments {show_argument(rel, 0)} and {show_argument(rel, 1)}"
    if 1 not in (a[0], b[0]) and not can_stretch(a[0], b[0]):
        raise rel.fail(f"nn.batch_matmul: {both} have {a[0]} and {b[0]} matrices", argument=1)
    if not same_dim(a[2], b[1]):
        raise rel.fail(
            f"nn.batch_matmul: {both} do not chain: rows of {a[2]} elements against columns of {b[1]}",
            f"transpose_a={rel.attrs.transpose_a} and transpose_b={rel.attrs.transpose_b} say which axes are summed",
            argument=1,
        )
    batch = b[0] if a[0] == 1 else a[0] if b[0] == 1 else known_dim(a[0], b[0])
    rel.set_result(tensor_type([batch, a[1], b[2]], out_dtype(rel, x.element_type)))


def _batch_matmul(attrs: Attrs, x: Array, y: Array) -> Array:
    x = x.swapaxes(1, 2) if attrs.transpose_a else x
    y = y.swapaxes(1, 2) if attrs.transpose_b else y
    return matmul(x, y, numpy_type(attrs.out_dtype or x.dtype.name))


def _te_batch_matmul(attrs: Attrs, x: Tensor, y: Tensor) -> Tensor:
    dtype = attrs.out_dtype or x.dtype
    rows, inner = (2, 1) if attrs.transpose_a else (1, 2)
    columns = 1 if attrs.transpose_b else 2
    k = te.reduce_axis((0, x.shape[inner]), name="k")

    def factors(b: Expr, i: Expr, j: Expr) -> tuple[Expr, Expr]:
        p, q = (_batch_index(b, t.shape[0], batch) for t in (x, y))
        left = x(p, k, i) if attrs.transpose_a else x(p, i, k)
        return left, y(q, j, k) if attrs.transpose_b else y(q, k, j)

    (batch,) = broadcast_dims([x.shape[:1], y.shape[:1]])
    name = f"T_batch_matmul_{'NT'[attrs.transpose_a]}{'NT'[attrs.transpose_b]}"
    return sums_of_products((batch, x.shape[rows], y.shape[columns]), factors, [k], dtype, name)


def _batch_index(b: Expr, own: Dim, batch: Dim) -> Any:
    """Returns the index of b's matrix in a batch of `own` matrices, which is 1 or `batch`."""
    if own is batch or is_one(batch) or constant(own) not in (None, 1):
        return b
    return 0 if is_one(own) else te.min(b, own - 1)


define(
    "nn.batch_matmul", ("tensor_a", "tensor_b"), batch_matmul_relation, OpPattern.OUT_ELEMWISE_FUSABLE,
    numpy=_batch_matmul,
    compute=lambda attrs, xs, out: [_te_batch_matmul(attrs, *xs)],
    attributes=(OUT_DTYPE, attr("transpose_a", False), attr("transpose_b", False)),
    doc="The product of each pair of matrices of two batches (b, m, k) and (b, k, n); a batch of one serves all.",
    source=TVM_NN.format("batch_matmul"),
)  # fmt: skip


def dense_pack_relation(rel: Relation) -> None:
    """Types the product of data and a weight packed as (units / n, k, n)."""
    data, weight = rank_must_be(rel, 0, 2), rank_must_be(rel, 1, 3)
    batch, inner = shape_of(data)
    outer, k, width = shape_of(weight)
    if not same_dim(inner, k):
        raise rel.fail(
            f"{rel.operator.name}: {show_argument(rel, 0)} has rows of {inner}, {show_argument(rel, 1)} takes {k}",
            argument=1,
        )
    rel.set_result(tensor_type([batch, multiply_dims(outer, width)], out_dtype(rel, data.element_type)))


def _dense_pack(attrs: Attrs, x: Array, w: Array) -> Array:
    flat = w.swapaxes(1, 2).reshape(w.shape[0] * w.shape[2], w.shape[1])
    return matmul(x, flat.T, numpy_type(attrs.out_dtype or x.dtype.name))


def _te_dense_pack(attrs: Attrs, x: Tensor, w: Tensor) -> Tensor:
    dtype = attrs.out_dtype or x.dtype
    width = w.shape[2]
    k = te.reduce_axis((0, x.shape[1]), name="k")

    def factors(*i: Expr) -> tuple[Expr, Expr]:
        return x(i[0], k), w(te.floordiv(i[1], width), k, te.floormod(i[1], width))

    return sums_of_products((x.shape[0], w.shape[0] * width), factors, [k], dtype, "T_dense_pack")


define(
    "nn.contrib_dense_pack", ("data", "weight"), dense_pack_relation, OpPattern.OUT_ELEMWISE_FUSABLE,
    numpy=_dense_pack,
    compute=lambda attrs, xs, out: [_te_dense_pack(attrs, *xs)],
    attributes=(UNITS, OUT_DTYPE, attr("weight_layout", "NC")),
    doc="`nn.dense` with a weight packed as (units / n, k, n), `weight_layout` NC{n}n.",
    source=TVM_NN.format("contrib_dense_pack"),
)  # fmt: skip
