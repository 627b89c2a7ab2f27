"""Defines the two halves of Winograd's convolution: those of one shape share the first's code.

    winograd_products:         data (N,C,H,W), weight (n,n,O,I) -> (N,n,n,tiles,O)
    winograd_output_transform: products (N,n,n,tiles,O) -> (N,O,H',W')

n = tile_size + kernel - 1; tiles are counted along rows of tiles. Bias, residual and activation can be fused to the
second half.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import AnyFloat

from ...operator import Attrs, OpPattern, Relation, attr, define
from ..common._lazy import np
from ..common.numpy_meanings import Array
from ..common.relations import ANY, rank_must_be, shape_of, show_argument, tensor_type
from ..conv.convolution import check_window, spatial_padding, window_count
from .te_winograd import Tiling, te_data, te_output, te_products, te_weight_2d, transposed
from .winograd_convolution import SOURCE, check_tile, turned
from .winograd_matrices import taps_fit, transforms

if TYPE_CHECKING:
    from ....te.builder import Tensor

PRODUCTS = "nn.contrib_conv2d_winograd_products"
OUTPUT = "nn.contrib_conv2d_winograd_output_transform"


def _tiles(places: list[int], tile: int) -> list[int]:
    return [-(-place // tile) for place in places]


def _products_relation(rel: Relation) -> None:
    name = rel.operator.name
    check_window(rel, 2)
    data, weight = rank_must_be(rel, 0, 4), rank_must_be(rel, 1, 4)
    for argument in (0, 1):
        if ANY in shape_of(rel.tensor(argument)):
            raise rel.fail(f"{name}: {show_argument(rel, argument)} must be of known size", argument=argument)
    batch, channels, *sizes = shape_of(data)
    filters, inner, *kernel = shape_of(weight)
    check_tile(rel, kernel)
    floats = isinstance(data.element_type, AnyFloat)
    if channels != inner or not floats or data.element_type != weight.element_type:
        raise rel.fail(
            f"{name}: {show_argument(rel, 1)} does not fit {show_argument(rel, 0)}",
            "both have the same floating-point dtype, and the weight's second dimension is the data's",
        )
    before, after = spatial_padding(rel.attrs.padding, 2) or ((), ())
    places = [
        window_count(size, low, high, k, 1, 1) for size, low, high, k in zip(sizes, before, after, kernel, strict=True)
    ]
    if min(places) < 1:
        raise rel.fail(f"{name}: the window is larger than {show_argument(rel, 0)} with its padding")
    size, tiles = rel.attrs.tile_size + kernel[0] - 1, prod(_tiles(places, rel.attrs.tile_size))
    rel.set_result(tensor_type([batch, size, size, tiles, filters], data.element_type))


def _output_relation(rel: Relation) -> None:
    name, tile = rel.operator.name, rel.attrs.tile_size
    products = rank_must_be(rel, 0, 5)
    batch, rows, columns, tiles, filters = shape_of(products)
    places = list(rel.attrs.output_size)
    if len(places) != 2 or min(places) < 1:
        raise rel.fail(f"{name}: output_size={places} must be 2 positive numbers")
    if ANY in shape_of(products):
        raise rel.fail(f"{name}: {show_argument(rel, 0)} must be of known size", argument=0)
    if rows != columns or not taps_fit(tile, rows - tile + 1):
        raise rel.fail(
            f"{name}: tile_size={tile} does not fit {show_argument(rel, 0)}",
            "its second and third dimension are tile_size + kernel - 1, for a kernel from 3 to 7",
        )
    wanted = prod(_tiles(places, tile))
    if tiles != wanted:
        raise rel.fail(
            f"{name}: the fourth dimension of {show_argument(rel, 0)} must be {wanted}, the tiles of output_size={places}"
        )
    rel.set_result(tensor_type([batch, filters, *places], products.element_type))


def _products(attrs: Attrs, x: Array, w: Array) -> Array:
    tile, kernel = attrs.tile_size, w.shape[2:]
    found = transforms(tile, kernel[-1])
    size = len(found.data)
    (top, left), (bottom, right) = spatial_padding(attrs.padding, 2) or ((0, 0), (0, 0))
    places = [x.shape[2] + top + bottom - kernel[0] + 1, x.shape[3] + left + right - kernel[1] + 1]
    rows, columns = _tiles(places, tile)
    edge = size - tile
    low = rows * tile + edge - x.shape[2] - top, columns * tile + edge - x.shape[3] - left
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (top, low[0]), (left, low[1])))
    view = np.lib.stride_tricks.sliding_window_view(padded, (size, size), (2, 3))[:, :, ::tile, ::tile]
    weight = w.astype(np.float64)
    for axis in (0, 1):
        view = turned(view, 4 + axis, transposed(found.data))
        weight = turned(weight, 2 + axis, found.filter)
    result = view.transpose(0, 4, 5, 2, 3, 1).reshape(len(x), size, size, rows * columns, -1) @ weight.transpose(
        2, 3, 1, 0
    )
    return result.astype(x.dtype)


def _output(attrs: Attrs, products: Array) -> Array:
    tile, (height, width) = attrs.tile_size, attrs.output_size
    output = transposed(transforms(tile, products.shape[1] - tile + 1).output)
    rows, columns = _tiles([height, width], tile)
    batch, size, _, _, filters = products.shape
    view = products.astype(np.float64).reshape(batch, size, size, rows, columns, filters)
    for axis in (1, 2):
        view = turned(view, axis, output)
    whole = view.transpose(0, 5, 3, 1, 4, 2).reshape(batch, filters, rows * tile, columns * tile)
    return whole[:, :, :height, :width].astype(products.dtype)


def _number(extent: Any) -> int:
    """Returns an extent that the type relation has found to be known."""
    return int(extent)


def _te_products_of(attrs: Attrs, x: Tensor, w: Tensor) -> Tensor:
    taps = _number(w.shape[3])
    found = transforms(attrs.tile_size, taps)
    before, after = spatial_padding(attrs.padding, 2) or ((0, 0), (0, 0))
    places = [d + (low + high - taps + 1) for d, low, high in zip(x.shape[2:], before, after, strict=True)]
    view = te_data(found, Tiling.of(attrs.tile_size, places), x, before, x.dtype)
    weight = te_weight_2d(found, w, (1, 0))
    return te_products(view, w.shape[0], lambda a, b, o, c: weight(a, b, c, o), x.dtype)


def _te_output_of(attrs: Attrs, products: Tensor) -> Tensor:
    tile = attrs.tile_size
    found = transforms(tile, _number(products.shape[1]) - tile + 1)
    tiling = Tiling.of(tile, attrs.output_size)
    return te_output(found, tiling, products, products.shape[0], attrs.output_size, products.dtype)


define(
    PRODUCTS, ("data", "weight"), _products_relation, OpPattern.OUT_ELEMWISE_FUSABLE,
    numpy=_products,
    compute=lambda attrs, xs, out: [_te_products_of(attrs, *xs)],
    attributes=(attr("tile_size", kind="int"), attr("padding", (0, 0), kind="ints")),
    doc="The products of `nn.conv2d` by Winograd's algorithm, of stride 1: (N, n, n, tiles, O).",
    source=SOURCE,
)  # fmt: skip
define(
    OUTPUT, ("products",), _output_relation, OpPattern.OUT_ELEMWISE_FUSABLE,
    numpy=_output,
    compute=lambda attrs, xs, out: [_te_output_of(attrs, *xs)],
    attributes=(attr("tile_size", kind="int"), attr("output_size", kind="ints")),
    doc=f"The results of a convolution from the result of `{PRODUCTS}`.",
    source=SOURCE,
)  # fmt: skip
