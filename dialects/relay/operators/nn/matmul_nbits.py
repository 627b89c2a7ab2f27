"""Defines products with weights of few bits, packed in bytes, with a scale for each group of a row.

matmul_nbits: data (…,K), weight (N,K/32,16) uint8, scales (N,K/32), zero_points () -> (…,N), with bits=4 and block_size=32

A weight is (q - zero point) * scale of its group; the first of a byte's numbers is in its lowest bits, as in ONNX Runtime's MatMulNBits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from xdsl.ir import Attribute

from ...operator import Attrs, Large, OpPattern, Relation, attr, define
from ..common._lazy import np, te
from ..common.numpy_meanings import Array, matmul
from ..common.relations import (
    add_dims,
    divide_dims,
    dtype_of,
    known_dim,
    rank_at_least,
    rank_must_be,
    same_dim,
    shape_of,
    show_argument,
    tensor_type,
)
from ..common.sources import ARXIV
from ..common.te_computes import Dim, constant, flat_index, in_dtype, unflatten

if TYPE_CHECKING:
    from ....te.builder import Expr, Tensor

SOURCE = ARXIV.format("2210.17323")
BITS = (2, 4, 8)
FLOATS = ("float32", "float16", "bfloat16")
SMALLEST_BLOCK = 16
"""Numbers of a group at least: whole words of 32 bits for all widths."""
PANEL = 64
"""Columns of a panel: vectors of all their words fill some registers, and a row of them some cache lines."""
ROWS = 8
"""Rows whose sums are computed together: each number is unpacked once for them."""
WORD = 32


def _ceil_div(dim: int, by: int) -> int:
    return divide_dims(add_dims(dim, by - 1), by)


def _relation(rel: Relation) -> None:
    data, weight, scales, attrs = rank_at_least(rel, 0, 1), rank_must_be(rel, 1, 3), rank_must_be(rel, 2, 2), rel.attrs
    bits, block = attrs.bits, attrs.block_size
    if bits not in BITS:
        raise rel.fail(f"nn.matmul_nbits: bits={bits} must be 2, 4 or 8")
    if block < SMALLEST_BLOCK or block & (block - 1):
        raise rel.fail(f"nn.matmul_nbits: block_size={block} must be a power of two, 16 or more")
    for index, type, dtypes in ((0, data, FLOATS), (1, weight, ("uint8",)), (2, scales, FLOATS)):
        if dtype_of(type) not in dtypes:
            raise rel.fail(
                f"nn.matmul_nbits: {show_argument(rel, index)} must be of {' or '.join(dtypes)}", argument=index
            )
    (*outer, inner), (units, groups, stored) = shape_of(data), shape_of(weight)
    if not same_dim(stored, block * bits // 8):
        raise rel.fail(
            f"nn.matmul_nbits: {show_argument(rel, 1)} must have {block * bits // 8} bytes for a group of {block} numbers",
            argument=1,
        )
    if not same_dim(_ceil_div(inner, block), groups):
        raise rel.fail(
            f"nn.matmul_nbits: {show_argument(rel, 1)} has {groups} groups of {block} for {inner} columns of data",
            argument=1,
        )
    if not (same_dim(shape_of(scales)[0], units) and same_dim(shape_of(scales)[1], groups)):
        raise rel.fail(
            f"nn.matmul_nbits: {show_argument(rel, 2)} must have a scale for each group of {show_argument(rel, 1)}",
            argument=2,
        )
    _check_zero_points(rel, units, groups)
    rel.set_result(tensor_type([*outer, known_dim(units, shape_of(scales)[0])], data.element_type))


def _check_zero_points(rel: Relation, units: int, groups: int) -> None:
    """Checks that zero points are one number, packed numbers, or a float for each group."""
    zero_points = rank_must_be(rel, 3, 0, 2)
    shape, dtype = shape_of(zero_points), dtype_of(zero_points)
    if dtype not in ("uint8", *FLOATS):
        raise rel.fail(f"nn.matmul_nbits: {show_argument(rel, 3)} must be of uint8 or a float dtype", argument=3)
    per_row = _ceil_div(groups, 8 // rel.attrs.bits) if dtype == "uint8" else groups
    if shape and not (same_dim(shape[0], units) and same_dim(shape[1], per_row)):
        raise rel.fail(
            f"nn.matmul_nbits: {show_argument(rel, 3)} must be one number, or of {units} rows of {per_row}", argument=3
        )


def unpack_bits(packed: Array, bits: int) -> Array:
    """Unpacks bytes along the last axis, lowest bits first: (N, 4) with 4 bits -> (N, 8)."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    return ((packed[..., None] >> shifts) & np.uint8((1 << bits) - 1)).reshape(*packed.shape[:-1], -1)


def pack_bits(numbers: Array, bits: int) -> Array:
    """Packs numbers along the last axis into bytes, lowest bits first; the last byte is filled with zeros."""
    count = 8 // bits
    missing = -numbers.shape[-1] % count
    padded = np.pad(numbers.astype(np.uint8), [(0, 0)] * (numbers.ndim - 1) + [(0, missing)])
    groups = padded.reshape(*padded.shape[:-1], -1, count)
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    return np.bitwise_or.reduce(groups << shifts, axis=-1)


def dequantize_nbits(weight: Array, scales: Array, zero_points: Array, bits: int, columns: int) -> Array:
    """Returns the weight (N, K) in float32 that packed numbers represent."""
    numbers = unpack_bits(weight, bits).astype(np.float32)
    groups = weight.shape[1]
    if zero_points.ndim == 2 and zero_points.dtype == np.uint8:
        zero_points = unpack_bits(zero_points, bits)[:, :groups]
    zero = zero_points.astype(np.float32)
    real = (numbers - (zero[..., None] if zero.ndim else zero)) * scales.astype(np.float32)[..., None]
    return real.reshape(len(weight), -1)[:, :columns]


def _numpy(attrs: Attrs, x: Array, weight: Array, scales: Array, zero_points: Array) -> Array:
    real = dequantize_nbits(weight, scales, zero_points, attrs.bits, x.shape[-1])
    return matmul(x.astype(np.float32), real.T, np.dtype(np.float32)).astype(x.dtype)


def _ceil(dim: Dim, by: int) -> Dim:
    size = constant(dim)
    return te.floordiv(dim + (by - 1), by) if size is None else -(-size // by)


def _compute(
    rows_together: Callable[[int | None], int],
) -> Callable[[Attrs, Sequence[Tensor], Attribute], list[Tensor]]:
    def compute(attrs: Attrs, xs: Sequence[Tensor], out: Attribute) -> list[Tensor]:
        return [_te_product(attrs, xs, rows_together)]

    return compute


def _few_rows(rows: int | None) -> int:
    return 1 if rows is None else max(min(rows, ROWS), 1)


def _te_product(attrs: Attrs, xs: Sequence[Tensor], rows_together: Callable[[int | None], int]) -> Tensor:
    """Computes the sums of each group of numbers first, then those of all groups times their scales.

    Words of 32 bits hold `per_word` numbers of a column. A number is masked out of its word in place, so that it is larger by a power of
    two, by which the data are divided: only the last of a word is shifted.
    """
    x, weight, scales, zero_points = xs
    bits: int = attrs.bits
    block: int = attrs.block_size
    per_word, words = WORD // bits, block * bits // WORD
    *outer, inner = x.dims
    units, groups = weight.shape[0], weight.shape[1]
    x = in_dtype(x, "float32")
    count: Any = 1
    for dim in outer:
        count = count * dim
    together = rows_together(constant(count))
    blocks, panels = _ceil(count, together), _ceil(units, PANEL)

    def guarded(n: Any, value: Callable[[Any], Any]) -> Any:
        """Returns a value of column n, of the last one for columns that fill the last panel."""
        size = constant(units)
        return value(n if size is not None and size % PANEL == 0 else te.min(n, units - 1))

    def word(p: Expr, k: Expr, c: Expr) -> Any:
        def of_column(n: Any) -> Any:
            parts = [
                weight(n, te.floordiv(k, words), te.floormod(k, words) * 4 + byte).astype("uint32")
                << te.const(8 * byte, "uint32")
                for byte in range(4)
            ]
            return parts[0] | parts[1] | parts[2] | parts[3]

        return guarded(p * PANEL + c, of_column)

    packed = te.compute((panels, groups * words, PANEL), word, name="T_nbits_words")

    def scale_of(p: Expr, g: Expr, c: Expr) -> Any:
        return guarded(p * PANEL + c, lambda n: scales(n, g))

    scale = te.compute((panels, groups, PANEL), scale_of, name="T_nbits_scales")

    rows, depth = constant(count), constant(inner)

    def element(row: Any, k: Any) -> Any:
        """Returns an element of the data; 0 after the last column, the last row after that."""
        row = row if rows is not None and rows % together == 0 else te.min(row, count - 1)
        if depth is not None and depth % block == 0:
            return x(*unflatten(row, outer), k)
        return te.Select(k < inner, x(*unflatten(row, outer), te.min(k, inner - 1)), te.const(0.0, "float32"))

    def datum(b: Expr, r: Expr, g: Expr, w: Expr, j: Expr) -> Any:
        value = element(b * together + r, (g * words + w) * per_word + j)
        # The exponent of 2^(-bits * j), in place.
        exponent = te.const(127, "int32") - te.Select(te.equal(j, per_word - 1), te.const(0, "int32"), j) * bits
        return value * te.reinterpret("float32", exponent << 23)

    data = te.compute((blocks, together, groups, words, per_word), datum, name="T_nbits_data")
    i = te.reduce_axis((0, block), name="i")

    def total(b: Expr, r: Expr, g: Expr) -> Any:
        return te.sum(element(b * together + r, g * block + i), axis=i)

    totals = te.compute((blocks, together, groups), total, name="T_nbits_totals")
    w, j = te.reduce_axis((0, words), name="w"), te.reduce_axis((0, per_word), name="j")

    def number(p: Expr, g: Expr, c: Expr) -> Any:
        bits_of = packed(p, g * words + w, c)
        mask = te.const((1 << bits) - 1, "uint32") << (te.min(j, per_word - 2) * bits).astype("uint32")
        chosen = te.Select(te.equal(j, per_word - 1), bits_of >> te.const(WORD - bits, "uint32"), bits_of & mask)
        return chosen.astype("int32").astype("float32")

    def sum_of(b: Expr, r: Expr, p: Expr, g: Expr, c: Expr) -> Any:
        return te.sum(number(p, g, c) * data(b, r, g, w, j), axis=[w, j])

    sums = te.compute((blocks, together, panels, groups, PANEL), sum_of, name="T_nbits_sums")
    zero = _zero(attrs, zero_points, panels, groups, guarded)
    g = te.reduce_axis((0, groups), name="g")

    def scaled(b: Expr, r: Expr, p: Expr, c: Expr) -> Any:
        exact = sums(b, r, p, g, c) - zero(p, g, c) * totals(b, r, g)
        return te.sum(exact * scale(p, g, c).astype("float32"), axis=g)

    product = te.compute((blocks, together, panels, PANEL), scaled, name="T_nbits_product")

    def placed(*at: Expr) -> Any:
        row, n = flat_index(at[:-1], outer), at[-1]
        whole = product(
            te.floordiv(row, together), te.floormod(row, together), te.floordiv(n, PANEL), te.floormod(n, PANEL)
        )
        return whole.astype(xs[0].dtype)

    return te.compute((*outer, units), placed, name="T_matmul_nbits")


def _zero(
    attrs: Attrs, zero_points: Tensor, panels: Dim, groups: Dim, guarded: Callable[[Any, Callable[[Any], Any]], Any]
) -> Callable[[Any, Any, Any], Any]:
    """Returns the zero point of a column's group in float32, by panel, group and column of the panel."""
    if len(zero_points.shape) == 0:
        return lambda p, g, c: zero_points().astype("float32")
    count, mask = 8 // attrs.bits, te.const((1 << attrs.bits) - 1, "uint8")

    def value(p: Expr, g: Expr, c: Expr) -> Any:
        if zero_points.dtype != "uint8":
            return guarded(p * PANEL + c, lambda n: zero_points(n, g))
        shift = (te.floormod(g, count) * attrs.bits).astype("uint8")
        return guarded(p * PANEL + c, lambda n: (zero_points(n, te.floordiv(g, count)) >> shift) & mask)

    zero = te.compute((panels, groups, PANEL), value, name="T_nbits_zero_points")
    return lambda p, g, c: zero(p, g, c).astype("float32")


def _rows(xs: Sequence[Tensor]) -> Dim | None:
    return xs[0].shape[0] if len(xs[0].shape) == 2 else None


define(
    "nn.matmul_nbits", ("data", "weight", "scales", "zero_points"), _relation, OpPattern.OUT_ELEMWISE_FUSABLE,
    numpy=_numpy,
    compute=_compute(_few_rows),
    large=Large(ROWS, _rows, _compute(lambda rows: ROWS)),
    attributes=(attr("bits", 4), attr("block_size", 32)),
    doc="data · weightᵀ, the weight's numbers of `bits` bits packed, less zero points, times a scale for each `block_size` of a row.",
    source=SOURCE,
)  # fmt: skip
