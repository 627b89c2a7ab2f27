"""Defines convolutions by Winograd's minimal filtering, the weight transformed by an operator.

    data (N,C,H,W), weight (n,n,O,I) -> (N,O,H',W')    n = tile_size + kernel - 1 along each transformed axis

In three dimensions the depth is transformed only where the kernel has 3 to 7 planes; otherwise the weight is
(n, n, depth, O, I).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

from ...operator import Attrs, OpPattern, Relation, attr, define
from ..common._lazy import np, te
from ..common.numpy_meanings import Array, numpy_type
from ..common.relations import ANY, at_most, dtype_attr, rank_must_be, shape_of, show_argument, tensor_type
from ..conv.convolution import SPATIAL, check_window, conv_attributes, spatial_padding, window_count
from .te_winograd import te_conv_2d, te_weight_2d, transposed
from .winograd_matrices import Matrix, taps_fit, transforms

if TYPE_CHECKING:
    from ....te.builder import Expr, Tensor

SOURCE = "https://arxiv.org/abs/1509.09308"


def _transformed(kernel: Sequence[int]) -> list[int]:
    """Returns the spatial axes that are transformed."""
    first = len(kernel) - 2 if len(kernel) == 3 and not 2 < kernel[0] < 8 else 0
    return list(range(first, len(kernel)))


def check_tile(rel: Relation, kernel: Sequence[int]) -> None:
    """Fails unless there is Winograd's algorithm for the kernel and `tile_size`."""
    tile: int = rel.attrs.tile_size
    taps = {kernel[axis] for axis in _transformed(kernel)}
    if len(taps) != 1 or not taps_fit(tile, *taps):
        raise rel.fail(
            f"{rel.operator.name}: tile_size={tile} and a kernel of {list(kernel)} have no transform",
            "tile_size is from 2 to 8; the kernel has the same size along its axes, from 3 to 7",
        )


def _weight_shape(attrs: Attrs, kernel: Sequence[int], channels: Sequence[int]) -> list[int]:
    """Returns the shape of a transformed weight; `channels` are those out and in."""
    axes = _transformed(kernel)
    return [attrs.tile_size + kernel[axis] - 1 for axis in axes] + list(kernel[: axes[0]]) + list(channels)


def _weight_relation(rank: int) -> Any:
    def relation(rel: Relation) -> None:
        outer, inner, *kernel = shape_of(rank_must_be(rel, 0, rank + 2))
        if ANY in kernel:
            raise rel.fail(f"{rel.operator.name}: {show_argument(rel, 0)} must have a kernel of known size", argument=0)
        check_tile(rel, kernel)
        shape = _weight_shape(rel.attrs, kernel, (outer, inner))
        rel.set_result(tensor_type(shape, rel.tensor(0).element_type))

    return relation


def turned(x: Array, axis: int, rows: Matrix, rank: int = 2) -> Array:
    """Replaces x along an axis by sums of its elements, one for each row of factors.

    In two dimensions elements whose factor is 0 are left out, as `combination` does, so that NaN and infinities stay where they
    count; in three they are multiplied by it, as whole matrices are.
    """
    terms = np.moveaxis(x, axis, 0)
    zero = np.zeros(terms.shape[1:], x.dtype)
    sums = [sum((f * term for f, term in zip(row, terms, strict=True) if f or rank == 3), zero) for row in rows]
    return np.moveaxis(np.stack(sums), 0, axis)


def _weight(attrs: Attrs, w: Array) -> Array:
    kernel = w.shape[2:]
    axes = _transformed(kernel)
    result = w.astype(np.float64)
    for axis in axes:
        result = turned(result, 2 + axis, transforms(attrs.tile_size, kernel[-1]).filter, len(kernel))
    order = [2 + axis for axis in axes] + list(range(2, 2 + axes[0])) + [0, 1]
    return result.transpose(order).astype(w.dtype)


def _constant(rows: Matrix, dtype: str, name: str) -> Tensor:
    """Returns a matrix of constants."""

    def body(i: Expr, j: Expr) -> Any:
        value: Any = te.const(0.0, dtype)
        for row, column in product(range(len(rows)), range(len(rows[0]))):
            if rows[row][column]:
                here = te.all(i.equal(row), j.equal(column))
                value = te.Select(here, te.const(rows[row][column], dtype), value)
        return value

    return te.compute((len(rows), len(rows[0])), body, name=name)


def _te_weight(attrs: Attrs, w: Tensor) -> Tensor:
    kernel = [int(d) if isinstance(d, int) else ANY for d in w.shape[2:]]
    if len(kernel) == 2:
        return te_weight_2d(transforms(attrs.tile_size, kernel[-1]), w)
    axes = _transformed(kernel)
    g = _constant(transforms(attrs.tile_size, kernel[-1]).filter, w.dtype, "G")
    taps = {axis: te.reduce_axis((0, kernel[axis]), name=f"r{axis}") for axis in axes}

    def body(*i: Expr) -> Any:
        *head, outer, inner = i
        places = [*head[len(axes) :], *(taps[axis] for axis in axes)]
        value = w(outer, inner, *places)
        for axis, index in zip(axes, head, strict=False):
            value = value * g(index, taps[axis])
        return te.sum(value, axis=list(taps.values()))

    shape: list[Any] = [attrs.tile_size + kernel[axis] - 1 for axis in axes]
    return te.compute([*shape, *kernel[: axes[0]], w.shape[0], w.shape[1]], body, name="T_winograd_weight")


def _conv_relation(rank: int) -> Any:
    letters = SPATIAL[rank]

    def relation(rel: Relation) -> None:
        attrs, name = rel.attrs, rel.operator.name
        check_window(rel, rank, "strides", "dilation", "kernel_size")
        if attrs.data_layout != "NC" + letters or attrs.out_layout not in ("", "NC" + letters):
            raise rel.fail(f"{name}: data_layout and out_layout must be NC{letters}")
        if any(v != 1 for v in (*attrs.strides, *attrs.dilation, attrs.groups)):
            raise rel.fail(f"{name}: strides, dilation and groups must be 1")
        if attrs.channels is None or attrs.kernel_size is None:
            raise rel.fail(f"{name}: channels and kernel_size must be given; the weight does not tell them")
        check_tile(rel, attrs.kernel_size)
        data = rank_must_be(rel, 0, rank + 2)
        batch, inner, *sizes = shape_of(data)
        weight = _weight_shape(attrs, attrs.kernel_size, (attrs.channels, inner))
        element = data.element_type if rel.type_of(1) is None else rel.tensor(1).element_type
        rel.set_argument(1, tensor_type(weight, element))
        before, after = spatial_padding(attrs.padding, rank) or ((), ())
        places = [
            window_count(size, low, high, k, 1, 1)
            for size, low, high, k in zip(sizes, before, after, attrs.kernel_size, strict=True)
        ]
        if not all(at_most(1, p) for p in places):
            raise rel.fail(f"{name}: the window is larger than {show_argument(rel, 0)} with its padding")
        result = dtype_attr(rel, "out_dtype", data.element_type)
        rel.set_result(tensor_type([batch, attrs.channels, *places], result))

    return relation


def _conv(attrs: Attrs, x: Array, w: Array) -> Array:
    kernel, tile = attrs.kernel_size, attrs.tile_size
    rank, axes = len(kernel), _transformed(kernel)
    found = transforms(tile, kernel[-1])
    before, after = spatial_padding(attrs.padding, rank) or ((), ())
    places = [d + low + high - k + 1 for d, low, high, k in zip(x.shape[2:], before, after, kernel, strict=True)]
    tiles = {axis: -(-places[axis] // tile) for axis in axes}
    width = list(zip(before, after, strict=True))
    for axis in axes:
        width[axis] = (before[axis], tiles[axis] * tile + kernel[axis] - 1 - x.shape[2 + axis] - before[axis])
    padded = np.pad(x.astype(np.float64), [(0, 0), (0, 0), *width])
    # Every tile's data, its axes last, transformed one axis after the other.
    size = len(found.data)
    view = np.lib.stride_tricks.sliding_window_view(padded, [size] * len(axes), tuple(2 + axis for axis in axes))
    view = view[(slice(None), slice(None), *(slice(None, None, tile if a in axes else 1) for a in range(rank)))]
    for axis in range(2 + rank, 2 + rank + len(axes)):
        view = turned(view, axis, transposed(found.data), rank)
    inner = "efg"[: len(axes)]
    spatial = "xyz"[:rank]
    total: Any = 0
    weight = w.astype(np.float64)
    for depth in range(kernel[0] if axes[0] else 1):
        planes = view[:, :, depth : depth + places[0]] if axes[0] else view
        own = weight[:, :, depth] if axes[0] else weight
        total = total + np.einsum(f"nc{spatial}{inner},{inner}oc->no{spatial}{inner}", planes, own)
    for axis in axes:
        # The products of an axis become its outputs, which are moved next to the tile's index.
        total = np.moveaxis(turned(total, 2 + rank, transposed(found.output), rank), 2 + rank, 3 + axis)
        shape = list(total.shape)
        shape[2 + axis : 4 + axis] = [shape[2 + axis] * shape[3 + axis]]
        total = total.reshape(shape)
    cut = total[(slice(None), slice(None), *(slice(p) for p in places))]
    return cut.astype(numpy_type(attrs.out_dtype or x.dtype.name))


def _te_conv(attrs: Attrs, x: Tensor, w: Tensor) -> Tensor:
    kernel, tile = attrs.kernel_size, attrs.tile_size
    rank, axes = len(kernel), _transformed(kernel)
    result = attrs.out_dtype or x.dtype
    wide = "float64" if "float64" in (x.dtype, result) else "float32"
    found = transforms(tile, kernel[-1])
    before, after = spatial_padding(attrs.padding, rank) or ((), ())
    batch, channels, *sizes = x.shape
    places = [d + (low + high - k + 1) for d, low, high, k in zip(sizes, before, after, kernel, strict=True)]
    if rank == 2:
        return te_conv_2d(found, x, w, before, places, wide, result)
    output, data = _constant(found.output, wide, "A"), _constant(found.data, wide, "B")
    size = len(found.data)
    spread: list[Any] = []
    for axis, place in enumerate(places):
        tiles = te.ceildiv(te.convert(place), tile) if not isinstance(place, int) else -(-place // tile)
        spread.append(tiles if axis in axes else sizes[axis] + before[axis] + after[axis])
    inner = [te.reduce_axis((0, size), name=f"a{n}") for n in range(len(axes))]

    def gathered(*i: Expr) -> Any:
        """Returns the data of a tile, transformed: index (n, …, batch, channel, tile …)."""
        places, (n, c, *at) = i[: len(axes)], i[len(axes) :]
        bounds: list[Expr] = []
        where: list[Any] = []
        for axis in range(rank):
            place = at[axis] - before[axis]
            if axis in axes:
                place = at[axis] * tile + inner[axes.index(axis)] - before[axis]
            bounds += [place >= 0, place < sizes[axis]]
            where.append(place)
        value = te.if_then_else(te.all(*bounds), x(n, c, *where).astype(wide), te.const(0.0, wide))
        for index, a in zip(places, inner, strict=True):
            value = value * data(a, index)
        return te.sum(value, axis=inner)

    grids = [size] * len(axes)
    view = te.compute([*grids, batch, channels, *spread], gathered, name="T_winograd_data")
    rc = te.reduce_axis((0, channels), name="rc")
    rd = [te.reduce_axis((0, kernel[0]), name="rd")] if axes[0] else []
    rows = [*places[: axes[0]], *spread[axes[0] :]]

    def multiplied(*i: Expr) -> Any:
        inside, (n, o, *at) = i[: len(axes)], i[len(axes) :]
        planes = [at[0] + rd[0], *at[1:]] if rd else at
        return te.sum(w(*inside, *rd, o, rc).astype(wide) * view(*inside, n, rc, *planes), axis=[rc, *rd])

    products = te.compute([*grids, batch, attrs.channels, *rows], multiplied, name="T_winograd_products")
    back = [te.reduce_axis((0, size), name=f"e{n}") for n in range(len(axes))]

    def inverse(n: Expr, o: Expr, *at: Expr) -> Any:
        where = [te.floordiv(index, tile) if axis in axes else index for axis, index in enumerate(at)]
        value = products(*back, n, o, *where)
        for axis, e in zip(axes, back, strict=True):
            value = value * output(e, te.floormod(at[axis], tile))
        return te.sum(value, axis=back)

    shape = [batch, attrs.channels, *places]
    total = te.compute(shape, inverse, name="T_winograd")
    return te.compute(shape, lambda *i: total(*i).astype(result), name="T_winograd_cast")


def _register(rank: int) -> None:
    name = f"nn.contrib_conv{rank}d_winograd"
    define(
        f"{name}_weight_transform", ("weight",), _weight_relation(rank), OpPattern.OUT_ELEMWISE_FUSABLE,
        numpy=_weight,
        compute=lambda attrs, xs, out: [_te_weight(attrs, xs[0])],
        attributes=(attr("tile_size", kind="int"),),
        doc="The weight of a convolution as Winograd's algorithm multiplies by it.",
        source=SOURCE,
    )  # fmt: skip
    define(
        f"{name}_without_weight_transform", ("data", "weight"), _conv_relation(rank), OpPattern.OUT_ELEMWISE_FUSABLE,
        numpy=_conv,
        compute=lambda attrs, xs, out: [_te_conv(attrs, *xs)],
        attributes=(attr("tile_size", kind="int"), *conv_attributes(rank)),
        doc=f"`nn.conv{rank}d` by Winograd's algorithm, with a weight that `{name}_weight_transform` made.",
        source=SOURCE,
    )  # fmt: skip


_register(2)
_register(3)
