"""Defines convolutions as products of matrices, the weight cut into tiles by an operator of its own.

    data (N,H,W,C), tiles of the weight -> (N,H',W',O)

A weight (height, width, in, out) is a matrix of K = height * width * in rows and N = out columns. Filled up with zeros, to
multiples of 4 * tile_K rows and of tile_N columns, it becomes tiles (N / tile_N, K / tile_K, tile_K, tile_N); of 8-bit
integers the tiles themselves are transposed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...operator import Attrs, OpPattern, Relation, attr, define
from ..common._lazy import np, te
from ..common.layout_strings import checked_layout, laid_out, layout, logical_sizes
from ..common.numpy_meanings import Array, numpy_type
from ..common.relations import (
    ANY,
    dtype_attr,
    dtype_of,
    multiply_dims,
    rank_must_be,
    shape_of,
    show_argument,
    tensor_type,
)
from ..common.sources import TVM_NN
from ..common.te_computes import compute_of, divisor
from .convolution import check_window, conv_attributes, convolve, places_must_be, spatial_padding, window_count

if TYPE_CHECKING:
    from ....te.builder import Expr, Tensor


def _is_byte(dtype: str) -> bool:
    return dtype in ("int8", "uint8")


def _tiles(attrs: Attrs, rows: int, columns: int) -> tuple[int, int]:
    """Returns the number of tiles of a matrix along N and along K; `?` where its size is."""
    down = ANY if rows == ANY else -(-rows // (4 * attrs.tile_K)) * 4
    return ANY if columns == ANY else -(-columns // attrs.tile_N), down


def _transform_relation(rel: Relation) -> None:
    weight, attrs = rank_must_be(rel, 0, 4), rel.attrs
    if min(attrs.tile_N, attrs.tile_K) < 1:
        raise rel.fail(f"{rel.operator.name}: tile_N={attrs.tile_N} and tile_K={attrs.tile_K} must be positive")
    *kernel, columns = shape_of(weight)
    tile = (attrs.tile_N, attrs.tile_K) if _is_byte(dtype_of(weight)) else (attrs.tile_K, attrs.tile_N)
    rel.set_result(tensor_type([*_tiles(attrs, multiply_dims(*kernel), columns), *tile], weight.element_type))


def _transform(attrs: Attrs, w: Array) -> Array:
    flat = w.reshape(-1, w.shape[-1])
    across, down = _tiles(attrs, *flat.shape)
    full = np.zeros((down * attrs.tile_K, across * attrs.tile_N), w.dtype)
    full[: flat.shape[0], : flat.shape[1]] = flat
    tiles = full.reshape(down, attrs.tile_K, across, attrs.tile_N)
    return tiles.transpose((2, 0, 3, 1) if _is_byte(w.dtype.name) else (2, 0, 1, 3)).copy()


def _te_transform(attrs: Attrs, w: Tensor) -> Tensor:
    height, width, inner, outer = w.shape
    depth, across = attrs.tile_K, attrs.tile_N
    rows: Any = height * width * inner
    is_byte = _is_byte(w.dtype)

    def tiles(size: Any, tile: int) -> Any:
        return -(-size // tile) if isinstance(size, int) else te.floordiv(size + (tile - 1), tile)

    def body(x: Expr, y: Expr, a: Expr, b: Expr) -> Expr:
        k, n = (y * depth + b, x * across + a) if is_byte else (y * depth + a, x * across + b)
        pixel = te.floordiv(k, inner)
        element = w(te.floordiv(pixel, width), te.floormod(pixel, width), te.floormod(k, inner), n)
        return te.if_then_else(te.all(k < rows, n < outer), element, te.const(0, w.dtype))

    tile = (across, depth) if is_byte else (depth, across)
    return te.compute([tiles(outer, across), tiles(rows, 4 * depth) * 4, *tile], body, name="T_gemm_weight")


define(
    "nn.contrib_conv2d_gemm_weight_transform", ("weights",), _transform_relation, OpPattern.OUT_ELEMWISE_FUSABLE,
    numpy=_transform,
    compute=lambda attrs, xs, out: [_te_transform(attrs, xs[0])],
    attributes=(attr("tile_N", kind="int"), attr("tile_K", kind="int")),
    doc="The weight (HWIO) of a convolution as the tiles of a matrix.",
    source=TVM_NN.format("contrib_conv2d_gemm_weight_transform"),
)  # fmt: skip


def _conv_relation(rel: Relation) -> None:
    attrs, name = rel.attrs, rel.operator.name
    check_window(rel, 2, "strides", "dilation", "kernel_size")
    if attrs.channels is None or attrs.kernel_size is None:
        raise rel.fail(f"{name}: channels and kernel_size must be given; the weight does not tell them")
    if attrs.groups != 1:
        raise rel.fail(f"{name}: groups={attrs.groups} must be 1")
    source = checked_layout(rel, "data_layout", "NHWC")
    target = checked_layout(rel, "out_layout", "NHWC", source.text)
    data, weight = rel.tensor(0), rank_must_be(rel, 1, 4)
    sizes, tiles = logical_sizes(rel, 0, source), shape_of(weight)
    depth, across = tiles[:1:-1] if _is_byte(dtype_of(weight)) else tiles[2:]
    rows = multiply_dims(sizes["C"], *attrs.kernel_size)
    for have, need in ((multiply_dims(tiles[0], across), attrs.channels), (multiply_dims(tiles[1], depth), rows)):
        if ANY not in (have, need) and have < need:
            raise rel.fail(
                f"{name}: {show_argument(rel, 1)} is too small for {attrs.channels} channels out of {rows} products",
                argument=1,
            )
    before, after = spatial_padding(attrs.padding, 2) or ((), ())
    result = {"N": sizes["N"], "C": attrs.channels}
    for n, axis in enumerate("HW"):
        window = (before[n], after[n], attrs.kernel_size[n], attrs.strides[n], attrs.dilation[n])
        result[axis] = window_count(sizes[axis], *window)
    places_must_be(rel, result, "HW", 1)
    rel.set_result(laid_out(rel, result, target, dtype_attr(rel, "out_dtype", data.element_type)))


def _conv(attrs: Attrs, x: Array, w: Array) -> Array:
    data = layout(attrs.data_layout).to_logical(x, "NCHW")
    tiles = w.transpose(1, 3, 0, 2) if _is_byte(w.dtype.name) else w.transpose(1, 2, 0, 3)
    matrix = tiles.reshape(tiles.shape[0] * tiles.shape[1], tiles.shape[2] * tiles.shape[3])
    shape = (*attrs.kernel_size, data.shape[1])
    weight = matrix[: int(np.prod(shape)), : attrs.channels].reshape(*shape, attrs.channels).transpose(3, 2, 0, 1)
    result = convolve(data, weight, attrs, numpy_type(attrs.out_dtype or x.dtype.name))
    return layout(attrs.out_layout or attrs.data_layout).from_logical(result, "NCHW")


def _te_conv(attrs: Attrs, xs: Sequence[Tensor], out: Any) -> Sequence[Tensor]:
    x, w = xs
    inner = layout(attrs.data_layout).logical(x.shape)["C"]
    is_byte = _is_byte(w.dtype)
    depth, across = (w.shape[3], w.shape[2]) if is_byte else (w.shape[2], w.shape[3])

    def body(i: Expr, j: Expr, c: Expr, n: Expr) -> Expr:
        k = (i * attrs.kernel_size[1] + j) * inner + c
        place = (te.floormod(k, divisor(depth)), te.floormod(n, divisor(across)))
        return w(te.floordiv(n, divisor(across)), te.floordiv(k, divisor(depth)), *(place[::-1] if is_byte else place))

    weight = te.compute([*attrs.kernel_size, inner, attrs.channels], body, name="T_gemm_weight")
    return compute_of("nn.conv2d")(Attrs({**attrs, "kernel_layout": "HWIO"}), [x, weight], out)


define(
    "nn.contrib_conv2d_gemm_without_weight_transform", ("data", "weight"), _conv_relation,
    OpPattern.OUT_ELEMWISE_FUSABLE,
    numpy=_conv,
    compute=_te_conv,
    attributes=conv_attributes(2),
    doc="`nn.conv2d` with a weight that `nn.contrib_conv2d_gemm_weight_transform` made.",
    source=TVM_NN.format("contrib_conv2d_gemm_without_weight_transform"),
)  # fmt: skip
