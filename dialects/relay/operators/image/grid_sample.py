"""Defines sampling of images at the points of a grid, grids of affine maps, and correlation of images.

grid_sample: data (N,C,H,W), grid (N,2,H',W') -> (N,C,H',W')
affine_grid: data (N,2,3) -> (N,2,H',W')
correlation: data1 (N,C,H,W), data2 (N,C,H,W) -> (N,displacements,H',W')
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

from ...operator import Attrs, OpPattern, Relation, attr, define
from ..common._lazy import np, numeric, te
from ..common.numpy_meanings import Array, half_in_float32, is_float
from ..common.relations import (
    add_dims,
    at_most,
    divide_dims,
    known_dim,
    rank_must_be,
    same_dim,
    same_dtype,
    shape_of,
    show_argument,
    size_of,
    tensor_type,
)
from ..common.te_computes import in_wide_dtype
from ..conv.convolution import spatial_padding, te_pad_zero
from ..indexing.gather import must_have_elements
from .resize import cubic_weights

if TYPE_CHECKING:
    from ....te.builder import Expr, Tensor

# Of a grid from -1 to 1: slightly less than 2 wide, so that its last point is inside the image.
EXTENT = 2.0 - 1e-7

CUBIC_ALPHA = -0.75
"""Keys' parameter, as PyTorch's grid_sample has it."""


def _affine_relation(rel: Relation) -> None:
    data, size = rank_must_be(rel, 0, 3), rel.attrs.target_shape
    if not all(map(same_dim, shape_of(data)[1:], (2, 3))):
        raise rel.fail(
            f"{rel.operator.name}: {show_argument(rel, 0)} must have matrices of 2 rows and 3 columns", argument=0
        )
    if len(size) != 2 or any(s < 2 for s in size):
        raise rel.fail(f"{rel.operator.name}: target_shape={list(size)} must be two numbers above 1")
    rel.set_result(tensor_type([shape_of(data)[0], 2, *size], data.element_type))


def _affine(attrs: Attrs, x: Array) -> Array:
    height, width = attrs.target_shape
    ys, xs = (np.arange(n, dtype=x.dtype) * np.asarray(EXTENT / (n - 1), x.dtype) - 1 for n in (height, width))
    coordinates = np.stack([*np.broadcast_arrays(xs[None], ys[:, None]), np.ones((height, width), x.dtype)])
    return np.einsum("bdk,kij->bdij", x, coordinates).astype(x.dtype)


def _te_affine(attrs: Attrs, x: Tensor) -> Tensor:
    def place(index: Expr, size: int) -> Expr:
        return index.astype(x.dtype) * te.const(EXTENT / (size - 1), x.dtype) - te.const(1.0, x.dtype)

    def body(b: Expr, d: Expr, i: Expr, j: Expr) -> Expr:
        height, width = attrs.target_shape
        return x(b, d, 0) * place(j, width) + x(b, d, 1) * place(i, height) + x(b, d, 2)

    return te.compute((x.shape[0], 2, *attrs.target_shape), body, name="T_affine_grid")


define(
    "image.affine_grid", ("data",), _affine_relation, OpPattern.INJECTIVE,
    numpy=_affine,
    compute=lambda attrs, xs, out: [_te_affine(attrs, xs[0])],
    attributes=(attr("target_shape", kind="ints"),),
    doc="The grid of places (x, y from -1 to 1) of an image of `target_shape`, moved by affine maps (batch, 2, 3).",
    source="https://arxiv.org/abs/1506.02025",
)  # fmt: skip

PADDING = ("zeros", "border", "reflection")


def _sample_relation(rel: Relation) -> None:
    data, grid, attrs = rank_must_be(rel, 0, 4, 5), rel.tensor(1), rel.attrs
    rank = data.get_num_dims() - 2
    name = rel.operator.name
    if attrs.layout != ("NCHW", "NCDHW")[rank - 2]:
        raise rel.fail(
            f"{name}: layout={attrs.layout!r} must be {('NCHW', 'NCDHW')[rank - 2]} for {show_argument(rel, 0)}"
        )
    methods = ("bilinear", "nearest", "bicubic")[: 3 if rank == 2 else 2]
    for key, values in (("method", methods), ("padding_mode", PADDING)):
        if attrs[key] not in values:
            raise rel.fail(f"{name}: {key}={attrs[key]!r} must be one of {', '.join(values)}")
    shape, places = shape_of(data), shape_of(grid)
    if len(places) != rank + 2 or not same_dim(places[1], rank) or not same_dim(shape[0], places[0]):
        raise rel.fail(
            f"{name}: {show_argument(rel, 1)} must be (batch, {rank}, places…) for {show_argument(rel, 0)}", argument=1
        )
    result = [known_dim(shape[0], places[0]), shape[1], *places[2:]]
    must_have_elements(rel, 0, size_of(shape[2:]), result)
    rel.set_result(tensor_type(result, data.element_type))


def _reflected(x: Array, size: int, align_corners: bool) -> Array:
    """Places beyond the border as in a mirror at it, again and again."""
    low, span = (0.0, size - 1) if align_corners else (-0.5, size)
    if span == 0:
        # A place that is not finite has no reflection: NaN.
        return x * x.dtype.type(0)
    distance = np.abs(x - low)
    turns = np.trunc(distance / span)
    rest = distance - turns * span
    mirrored = np.where(turns % 2 == 0, rest + low, span - rest + low)
    return np.where((x >= low) & (x <= span + low), x, mirrored).astype(x.dtype)


def _inside(x: Array, size: int, attrs: Attrs) -> Array:
    """Moves positions into the image by the padding mode; with zeros they stay outside."""
    if attrs.padding_mode == "zeros":
        return x
    if attrs.padding_mode == "reflection":
        x = _reflected(x, size, attrs.align_corners)
    return np.clip(x, 0, size - 1)


def _taps(x: Array, size: int, attrs: Attrs) -> list[tuple[Array, Array]]:
    """Returns the pixels along an axis that a place takes from, with their weights."""
    if attrs.method == "bicubic":
        first = np.floor(x)
        weights = cubic_weights(x - first, CUBIC_ALPHA)
        return [(_inside(first + (k - 1), size, attrs), w) for k, w in enumerate(weights)]
    x = _inside(x, size, attrs)
    if attrs.method == "nearest":
        return [(np.rint(x), np.ones_like(x))]
    first = np.floor(x)
    return [(first, 1 - (x - first)), (first + 1, x - first)]


def _grid_sample(attrs: Attrs, x: Array, grid: Array) -> Array:
    sizes = x.shape[2:]
    places = grid if is_float(grid) and grid.dtype.itemsize >= 4 else grid.astype(np.float32)
    found: list[list[tuple[Array, Array]]] = []
    for axis, size in enumerate(sizes):
        # The grid's coordinates are in the opposite order: x first.
        at = places[:, len(sizes) - 1 - axis]
        at = (at + 1) * ((size - 1) / 2) if attrs.align_corners else (at + 1) * (size / 2) - 0.5
        found.append(_taps(at.astype(places.dtype), size, attrs))
    result = np.zeros((len(x), x.shape[1], *grid.shape[2:]), places.dtype)
    batch = np.arange(len(x)).reshape(-1, *[1] * len(sizes))
    for taps in product(*found):
        indices = [numeric.convert(pixel, np.dtype(np.int32)) for pixel, _ in taps]
        inside: Any = np.ones((), bool)
        weight: Any = np.ones((), places.dtype)
        for index, (_, part), size in zip(indices, taps, sizes, strict=True):
            inside, weight = inside & (index >= 0) & (index < size), weight * part
        clipped = tuple(np.clip(index, 0, size - 1) for index, size in zip(indices, sizes, strict=True))
        values = np.moveaxis(x[(batch, slice(None), *clipped)], -1, 1)
        result = result + np.where(inside[:, None], weight[:, None] * values, 0)
    return result.astype(x.dtype)


def _te_grid_sample(attrs: Attrs, x: Tensor, grid: Tensor) -> Tensor:
    sizes = x.shape[2:]
    rank = len(sizes)
    dtype = grid.dtype if grid.dtype in ("float32", "float64") else "float32"
    one, half = te.const(1.0, dtype), te.const(0.5, dtype)

    def real(value: Any) -> Expr:
        return te.const(float(value), dtype) if isinstance(value, int) else value.astype(dtype)

    def moved(value: Expr, size: Any) -> Expr:
        if attrs.padding_mode == "zeros":
            return value
        if attrs.padding_mode == "reflection":
            low, span = (te.const(0.0, dtype), real(size - 1)) if attrs.align_corners else (-half, real(size))
            distance = te.abs(value - low)
            turns = te.trunc(distance / te.max(span, half))
            rest = distance - turns * span
            # Turns may be more than an integer holds.
            odd = (turns - te.const(2.0, dtype) * te.trunc(turns * half)).equal(one)
            within = te.all(value >= low, value <= span + low)
            value = te.Select(within, value, te.Select(odd, span - rest + low, rest + low))
        return te.max(te.min(value, real(size - 1)), te.const(0.0, dtype))

    def taps(value: Expr, size: Any) -> list[tuple[Expr, Expr]]:
        if attrs.method == "bicubic":
            first = te.floor(value)
            weights = cubic_weights(value - first, CUBIC_ALPHA)
            return [(moved(first + te.const(float(k - 1), dtype), size), w) for k, w in enumerate(weights)]
        value = moved(value, size)
        if attrs.method == "nearest":
            return [(te.nearbyint(value), one)]
        first = te.floor(value)
        return [(first, one - (value - first)), (first + one, value - first)]

    def body(n: Expr, c: Expr, *i: Expr) -> Any:
        found: list[list[tuple[Expr, Expr]]] = []
        for axis, size in enumerate(sizes):
            at = grid(n, rank - 1 - axis, *i).astype(dtype) + one
            at = at * (real(size - 1) * half) if attrs.align_corners else at * (real(size) * half) - half
            found.append(taps(at, size))
        total: Any = None
        for chosen in product(*found):
            indices = [pixel.astype("int32") for pixel, _ in chosen]
            weight: Any = None
            bounds: list[Expr] = []
            # A pixel beyond the image is read at its border and not counted: that takes no branch, so that places share vectors.
            within: list[Expr] = []
            for index, (_, part), size in zip(indices, chosen, sizes, strict=True):
                bounds += [index >= 0, index < size]
                within.append(te.max(te.min(index, size - 1), 0))
                weight = part if weight is None else weight * part
            term = te.Select(te.all(*bounds), x(n, c, *within).astype(dtype) * weight, te.const(0.0, dtype))
            total = term if total is None else total + term
        return total.astype(x.dtype)

    return te.compute([x.shape[0], x.shape[1], *grid.shape[2:]], body, name="T_grid_sample")


define(
    "image.grid_sample", ("data", "grid"), _sample_relation, OpPattern.INJECTIVE,
    numpy=_grid_sample,
    compute=lambda attrs, xs, out: [_te_grid_sample(attrs, *xs)],
    attributes=(
        attr("method", "bilinear"), attr("layout", "NCHW"), attr("padding_mode", "zeros"), attr("align_corners", True),
    ),
    doc="The image at the places of a grid (x, y and perhaps z from -1 to 1), interpolated; beyond it zeros, its border or"
    " its reflection.",
    source="https://arxiv.org/abs/1506.02025",
)  # fmt: skip


def _correlation_sizes(attrs: Attrs, *sizes: Any) -> tuple[int, list[Any]]:
    """Returns the number of displacements along an axis, and the size of the result along each."""
    before, after = spatial_padding(attrs.padding, 2) or ((), ())
    border = attrs.max_displacement + (attrs.kernel_size - 1) // 2

    def places(size: Any, padding: int) -> Any:
        more = padding - 2 * border + attrs.stride1 - 1
        if isinstance(size, int):
            return divide_dims(add_dims(size, more), attrs.stride1)
        return te.floordiv(size + more, attrs.stride1)

    count = 2 * (attrs.max_displacement // attrs.stride2) + 1
    return count, [places(size, low + high) for size, low, high in zip(sizes, before, after, strict=True)]


def _correlation_relation(rel: Relation) -> None:
    first, second, attrs = rank_must_be(rel, 0, 4), rank_must_be(rel, 1, 4), rel.attrs
    name = rel.operator.name
    if attrs.layout != "NCHW":
        raise rel.fail(f"{name}: layout={attrs.layout!r} must be NCHW")
    if attrs.kernel_size < 1 or attrs.kernel_size % 2 == 0:
        raise rel.fail(f"{name}: kernel_size={attrs.kernel_size} must be odd and positive")
    if min(attrs.stride1, attrs.stride2) < 1 or attrs.max_displacement < 0 or spatial_padding(attrs.padding, 2) is None:
        raise rel.fail(
            f"{name}: stride1={attrs.stride1} and stride2={attrs.stride2} must be positive,"
            f" max_displacement={attrs.max_displacement} not negative, padding={list(attrs.padding)} 1, 2 or 4 numbers"
        )
    element = same_dtype(rel, 0, 1)
    if not all(map(same_dim, shape_of(first), shape_of(second))):
        raise rel.fail(
            f"{name}: {show_argument(rel, 0)} and {show_argument(rel, 1)} must have the same shape", argument=1
        )
    batch, _, height, width = map(known_dim, shape_of(first), shape_of(second))
    count, sizes = _correlation_sizes(attrs, height, width)
    if not all(at_most(1, size) for size in sizes):
        raise rel.fail(f"{name}: the window is larger than {show_argument(rel, 0)} with its padding")
    rel.set_result(tensor_type([batch, count * count, *sizes], element))


def _correlation(attrs: Attrs, x: Array, y: Array) -> Array:
    before, after = spatial_padding(attrs.padding, 2) or ((), ())
    width = [(0, 0), (0, 0), *zip(before, after, strict=True)]
    count, sizes = _correlation_sizes(attrs, *x.shape[2:])
    x, y = (np.pad(v, width) for v in (x, y))
    reach, kernel, start = count // 2, attrs.kernel_size, attrs.max_displacement
    result = np.zeros((len(x), count * count, *sizes), x.dtype)
    for q, (row, column) in enumerate(product(range(-reach, reach + 1), repeat=2)):
        for i, j in product(range(kernel), repeat=2):
            first = _strided(x, start + i, start + j, sizes, attrs.stride1)
            second = _strided(
                y, start + i + row * attrs.stride2, start + j + column * attrs.stride2, sizes, attrs.stride1
            )
            result[:, q] += (first * second if attrs.is_multiply else np.abs(first - second)).sum(1, dtype=x.dtype)
    return (result / np.asarray(kernel * kernel * x.shape[1], x.dtype)).astype(x.dtype)


def _strided(x: Array, top: int, left: int, sizes: Sequence[int], stride: int) -> Array:
    rows = slice(top, top + (sizes[0] - 1) * stride + 1, stride)
    return x[:, :, rows, slice(left, left + (sizes[1] - 1) * stride + 1, stride)]


def _te_correlation(attrs: Attrs, x: Tensor, y: Tensor) -> list[Tensor]:
    batch, channels, height, width = x.shape
    before, after = spatial_padding(attrs.padding, 2) or ((), ())
    count, sizes = _correlation_sizes(attrs, height, width)
    first, second = (te_pad_zero(v, (0, 0, *before), (0, 0, *after)) for v in (x, y))
    rc = te.reduce_axis((0, channels), name="rc")
    ry, rx = (te.reduce_axis((0, attrs.kernel_size), name=n) for n in ("ry", "rx"))

    def body(n: Expr, q: Expr, i: Expr, j: Expr) -> Any:
        row, column = i * attrs.stride1 + attrs.max_displacement + ry, j * attrs.stride1 + attrs.max_displacement + rx
        down = (te.floordiv(q, count) - count // 2) * attrs.stride2
        right = (te.floormod(q, count) - count // 2) * attrs.stride2
        a, b = first(n, rc, row, column), second(n, rc, row + down, column + right)
        return te.sum(a * b if attrs.is_multiply else te.abs(a - b), axis=[rc, ry, rx])

    total = te.compute((batch, count * count, *sizes), body, name="T_correlation")
    number = channels * (attrs.kernel_size * attrs.kernel_size)
    scale = te.const(float(number), x.dtype) if isinstance(number, int) else number.astype(x.dtype)
    return [te.compute(total.shape, lambda *i: total(*i) / scale, name="T_correlation_mean")]


define(
    "nn.correlation", ("data1", "data2"), _correlation_relation, OpPattern.OUT_ELEMWISE_FUSABLE,
    numpy=half_in_float32(_correlation),
    compute=in_wide_dtype(lambda attrs, xs, out: _te_correlation(attrs, *xs)),
    attributes=(
        attr("kernel_size", 1), attr("max_displacement", 1), attr("stride1", 1), attr("stride2", 1),
        attr("padding", (0, 0)), attr("is_multiply", True), attr("layout", "NCHW"),
    ),
    doc="How alike the patches of one image are to the displaced patches of another: means of products, or of differences.",
    source="https://arxiv.org/abs/1504.06852",
)  # fmt: skip
