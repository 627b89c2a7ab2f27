"""Defines TE computes of Winograd's convolution in two dimensions, in stages over vectors of channels.

The image is laid out with channels last; a row of tiles is transformed down its columns and then along its rows, every
sum written out with its constants; the products of all tiles at one of the n * n places are one matrix product (channels
in by channels out); and the way back is that of the image in reverse. Indices a and b number the n places of a tile
along the height and the width, i and j its m outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..common._lazy import te
from .winograd_matrices import Matrix, Transforms

if TYPE_CHECKING:
    from ....te.builder import Expr, Tensor


def combination(row: Sequence[float], term: Callable[[int], Any], dtype: str) -> Any:
    """Returns the sum of `row[k] * term(k)`; terms without weight are left out."""
    total: Any = None
    for k, factor in enumerate(row):
        if factor == 0.0:
            continue
        value = term(k) if factor in (1.0, -1.0) else term(k) * te.const(abs(factor), dtype)
        if total is None:
            total = value if factor > 0 else te.const(0.0, dtype) - value
        else:
            total = total + value if factor > 0 else total - value
    return te.const(0.0, dtype) if total is None else total


def choose(index: Any, rows: Matrix, term: Callable[[int], Any], dtype: str) -> Any:
    """Returns row `index` of a constant matrix times the terms, selected by an unrolled index."""
    *first, last = [combination(row, term, dtype) for row in rows]
    value: Any = last
    for number, row in reversed(list(enumerate(first))):
        value = te.Select(index.equal(number), row, value)
    return value


def transposed(rows: Matrix) -> Matrix:
    """Returns a matrix's columns as rows."""
    return tuple(tuple(column) for column in zip(*rows, strict=True))


def te_weight_2d(found: Transforms, w: Tensor, order: Sequence[int] = (0, 1)) -> Tensor:
    """Returns the weight (O, I, r, r) as (n, n, O, I), or with its channels in another order."""
    size, taps, dtype = len(found.filter), len(found.filter[0]), w.dtype

    def at(channels: Sequence[Expr], k: Any, s: Any) -> Any:
        return w(*(channels[order.index(axis)] for axis in (0, 1)), k, s)

    def down(a: Expr, s: Expr, *channels: Expr) -> Any:
        return choose(a, found.filter, lambda k: at(channels, k, s), dtype)

    shape = [w.shape[axis] for axis in order]
    rows = te.compute((size, taps, *shape), down, name="T_winograd_weight_rows")

    def along(a: Expr, b: Expr, *channels: Expr) -> Any:
        return choose(b, found.filter, lambda k: rows(a, k, *channels), dtype)

    return te.compute((size, size, *shape), along, name="T_winograd_weight")


@dataclass(frozen=True)
class Tiling:
    """The tiles of a convolution's results; numbers of tiles are expressions where sizes are unknown."""

    tile: int
    """Results along a side of a tile."""
    rows: Any
    """Rows of tiles."""
    columns: Any
    """Tiles in a row."""
    depth: Any
    """Rows of tiles in a block: a divisor of `rows`."""

    @property
    def blocks(self) -> Any:
        """Blocks of an image."""
        return self.rows // self.depth

    @staticmethod
    def of(tile: int, places: Sequence[Any], depth: Any = None) -> Tiling:
        """Returns the tiles over `places` results, in one block unless `depth` says otherwise."""
        rows, columns = (-(-p // tile) if isinstance(p, int) else te.ceildiv(p, tile) for p in places)
        return Tiling(tile, rows, columns, rows if depth is None else depth)


def te_conv_2d(
    found: Transforms, x: Tensor, w: Tensor, before: Sequence[int], places: Sequence[Any], wide: str, result: str
) -> Tensor:
    """Returns the convolution of x (N,C,H,W) by a transformed weight (n,n,O,I) -> (N,O,*places).

    `before` is the padding in front of the height and the width, `wide` the dtype that is computed in, `result` the result's.
    """
    whole = Tiling.of(len(found.output[0]), places)
    depth = block_rows(whole.rows, whole.columns, x.shape[1], w.shape[2], len(found.data))
    tiling = Tiling(whole.tile, whole.rows, whole.columns, depth)
    view = te_data(found, tiling, x, before, wide)
    products = te_products(view, w.shape[2], w, wide)
    return te_output(found, tiling, products, x.shape[0], places, result)


def te_data(found: Transforms, tiling: Tiling, x: Tensor, before: Sequence[int], wide: str) -> Tensor:
    """Returns the tiles of x (N, C, H, W), transformed, as (blocks, n, n, tiles, C)."""
    size, tile, data = len(found.data), tiling.tile, transposed(found.data)
    rows, columns, depth, blocks = tiling.rows, tiling.columns, tiling.depth, tiling.blocks
    batch, channels, height, width = x.shape
    overlap = size - tile

    def element(n: Expr, y: Expr, z: Expr, c: Expr) -> Any:
        inside = te.all(y >= before[0], y < height + before[0], z >= before[1], z < width + before[1])
        return te.if_then_else(inside, x(n, c, y - before[0], z - before[1]).astype(wide), te.const(0.0, wide))

    lines = columns * tile + overlap
    image = te.compute((batch, rows * tile + overlap, lines, channels), element, name="T_winograd_image")

    def column(n: Expr, ty: Expr, a: Expr, z: Expr, c: Expr) -> Any:
        return choose(a, data, lambda k: image(n, ty * tile + k, z, c), wide)

    across = te.compute((batch, rows, size, lines, channels), column, name="T_winograd_data_rows")

    def turned(s: Expr, a: Expr, b: Expr, t: Expr, c: Expr) -> Any:
        n, ty = te.floordiv(s, blocks), te.floormod(s, blocks) * depth + te.floordiv(t, columns)
        return choose(b, data, lambda k: across(n, ty, a, te.floormod(t, columns) * tile + k, c), wide)

    shape = (batch * blocks, size, size, depth * columns, channels)
    return te.compute(shape, turned, name="T_winograd_data")


def te_products(view: Tensor, filters: Any, at: Callable[[Expr, Expr, Expr, Expr], Any], wide: str) -> Tensor:
    """Returns the products of each place of the tiles with its matrix of the transformed weight.

    `at` reads the matrices' element (a, b, o, c).
    """
    *shape, channels = view.shape
    rc = te.reduce_axis((0, channels), name="rc")

    def multiplied(s: Expr, a: Expr, b: Expr, t: Expr, o: Expr) -> Any:
        return te.sum(view(s, a, b, t, rc) * at(a, b, o, rc).astype(wide), axis=rc)

    return te.compute((*shape, filters), multiplied, name="T_winograd_products")


def te_output(
    found: Transforms, tiling: Tiling, products: Tensor, batch: Any, places: Sequence[Any], result: str
) -> Tensor:
    """Returns the results (N, O, *places) in dtype `result` from the products of all tiles."""
    size, tile, output = len(found.data), tiling.tile, transposed(found.output)
    rows, columns, depth, blocks = tiling.rows, tiling.columns, tiling.depth, tiling.blocks
    filters, wide = products.shape[4], products.dtype

    def row(n: Expr, ty: Expr, i: Expr, b: Expr, tx: Expr, o: Expr) -> Any:
        s, t = n * blocks + te.floordiv(ty, depth), te.floormod(ty, depth) * columns + tx
        return choose(i, output, lambda k: products(s, k, b, t, o), wide)

    down = te.compute((batch, rows, tile, size, columns, filters), row, name="T_winograd_output_rows")

    def back(n: Expr, y: Expr, tx: Expr, j: Expr, o: Expr) -> Any:
        ty, i = te.floordiv(y, tile), te.floormod(y, tile)
        return choose(j, output, lambda k: down(n, ty, i, k, tx, o), wide)

    whole = te.compute((batch, rows * tile, columns, tile, filters), back, name="T_winograd_output")

    def cut(n: Expr, o: Expr, y: Expr, z: Expr) -> Any:
        return whole(n, y, te.floordiv(z, tile), te.floormod(z, tile), o).astype(result)

    return te.compute((batch, filters, *places), cut, name="T_winograd")


BLOCK_BYTES = 640 << 10
"""The bytes of a core's second-level cache for a block's transformed data and products; it is often 1 MiB."""


def block_rows(rows: Any, columns: Any, channels: Any, filters: Any, size: int) -> Any:
    """Returns the number of rows of tiles that are processed together: all of them, or a divisor.

    Each block reads all of the weight; blocks that are too large send their data to memory and back. The fewest bytes win.
    """
    if not all(isinstance(v, int) for v in (rows, columns, channels, filters)):
        return rows
    places = size * size * 4
    weight = places * channels * filters

    def moved(depth: int) -> int:
        data = places * depth * columns * (channels + filters)
        return (weight + 2 * max(data - BLOCK_BYTES, 0)) * (rows // depth)

    return min((d for d in range(1, rows + 1) if rows % d == 0), key=moved)
