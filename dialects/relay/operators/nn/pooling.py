"""Defines maximum and average pooling of one to three dimensions: by windows, global and adaptive.

max_pool2d:          data (N,C,H,W) -> (N,C,H',W')    H' = (H + padding - (pool_size-1)*dilation - 1) / stride + 1
adaptive_avg_pool2d: data (N,C,H,W), output_size=[h,w] -> (N,C,h,w)
global_avg_pool2d:   data (N,C,H,W) -> (N,C,1,1)
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from ...operator import Attrs, AttrSpec, OpPattern, Relation, attr, define
from ..common._lazy import np, numeric, te
from ..common.layout_strings import checked_layout, laid_out, layout, logical_sizes
from ..common.numpy_meanings import Array, numpy_type
from ..common.sources import TVM_NN
from ..common.te_computes import divide, in_wide_dtype, lowest, te_largest, wide_dtype, without_elements
from ..conv.convolution import SPATIAL, check_window, places_must_be, spatial_padding, te_pad, window_count, windows

if TYPE_CHECKING:
    from ....te.builder import Tensor


def _places(attrs: Attrs, size: Any, axis: int, rank: int) -> Any:
    before, after = spatial_padding(attrs.padding, rank) or ((), ())
    return window_count(
        size,
        before[axis],
        after[axis],
        attrs.pool_size[axis],
        attrs.strides[axis],
        attrs.dilation[axis],
        attrs.ceil_mode,
    )


def _pool_relation(rank: int) -> Any:
    axes = SPATIAL[rank]

    def relation(rel: Relation) -> None:
        check_window(rel, rank, "pool_size", "strides", "dilation")
        source = checked_layout(rel, "layout", "NC" + axes)
        target = checked_layout(rel, "out_layout", "NC" + axes, source.text)
        sizes = logical_sizes(rel, 0, source)
        for place, axis in enumerate(axes):
            sizes[axis] = _places(rel.attrs, sizes[axis], place, rank)
        places_must_be(rel, sizes, axes)
        rel.set_result(laid_out(rel, sizes, target, rel.tensor(0).element_type))

    return relation


def window_views(attrs: Attrs, x: Array, fill: Any) -> Array:
    """Returns every window of x (N, C, …) with its padding: (N, C, places…, window…)."""
    rank = x.ndim - 2
    before, _ = spatial_padding(attrs.padding, rank) or ((), ())
    width: list[tuple[int, int]] = []
    for axis, size in enumerate(x.shape[2:]):
        # ceil_mode may need more elements at the end than the padding adds; a stride may need fewer.
        reach = (attrs.pool_size[axis] - 1) * attrs.dilation[axis] + 1
        needed = (_places(attrs, size, axis, rank) - 1) * attrs.strides[axis] + reach
        width.append((before[axis], max(needed - before[axis] - size, 0)))
    padded = np.pad(x, [(0, 0), (0, 0), *width], constant_values=fill)
    view = windows(padded, attrs.pool_size, attrs.strides, attrs.dilation)
    places = [_places(attrs, size, axis, rank) for axis, size in enumerate(x.shape[2:])]
    return view[(slice(None), slice(None), *(slice(p) for p in places))]


def average_windows(attrs: Attrs, x: Array) -> Array:
    """Returns the mean of each window of x (N, C, …), in its dtype."""
    rank = x.ndim - 2
    window = tuple(range(2 + rank, 2 + 2 * rank))
    data = _accumulator(x)
    total = window_views(attrs, data, 0).sum(axis=window, dtype=data.dtype)
    if attrs.count_include_pad:
        return _mean_of(total, prod(attrs.pool_size), x)
    ones = np.ones((1, 1, *x.shape[2:]), total.dtype)
    return _mean_of(total, np.maximum(window_views(attrs, ones, 0).sum(axis=window), 1), x)


def _max_windows(attrs: Attrs, x: Array) -> Array:
    rank = x.ndim - 2
    return window_views(attrs, x, numeric.lowest(x.dtype)).max(axis=tuple(range(2 + rank, 2 + 2 * rank)))


def _numpy_pool(rank: int, is_max: bool) -> Any:
    axes = SPATIAL[rank]

    def meaning(attrs: Attrs, x: Array) -> Array:
        data = layout(attrs.layout).to_logical(x, "NC" + axes)
        result = (_max_windows if is_max else average_windows)(attrs, data)
        return layout(attrs.out_layout or attrs.layout).from_logical(result, "NC" + axes)

    return meaning


def _summing_dtype(dtype: str) -> str:
    """Returns the dtype that windows are summed in: small integers in 32 bits, half precision in float32."""
    return "int32" if dtype in ("int8", "uint8", "int16", "uint16") else wide_dtype(dtype)


def _accumulator(x: Array) -> Array:
    return x.astype(numpy_type(_summing_dtype(x.dtype.name)), copy=False)


def _mean_of(total: Array, count: Any, like: Array) -> Array:
    """Computes total / count in the dtype of `like`; integers round toward zero."""
    if like.dtype.kind in "iu":
        return (np.sign(total) * (np.abs(total) // np.asarray(count, total.dtype))).astype(like.dtype)
    return (total / np.asarray(count, total.dtype)).astype(like.dtype)


def _te_window(
    x: Tensor,
    source: Any,
    target: Any,
    axes: str,
    sizes: dict[str, Any],
    at: Any,
    kernel: Sequence[Any],
    name: str,
    is_max: bool,
) -> Tensor:
    """Reduces windows; `at(axis number, place, offset)` is a spatial index, possibly outside."""
    extents = [te.reduce_axis((0, k), name=f"r{a.lower()}") for a, k in zip(axes, kernel, strict=True)]
    inputs = source.logical(x.shape)
    reducer = te_largest if is_max else te.sum
    outside = lowest(x.dtype) if is_max else te.const(0, x.dtype)

    def body(*i: Any) -> Any:
        places = target.logical_indices(i)
        where = {a: at(n, places[a], extents[n]) for n, a in enumerate(axes)}
        element = x(*source.indices({"N": places["N"], "C": places["C"], **{a: w for a, (w, _) in where.items()}}))
        bounds: list[Any] = []
        for axis, (index, (low, high)) in where.items():
            bounds += [index >= 0] if low else []
            bounds += [index < inputs[axis]] if high else []
        return reducer(te.if_then_else(te.all(*bounds), element, outside) if bounds else element, axis=extents)

    return te.compute(target.physical(sizes), body, name=name)


def _padded(
    attrs: Attrs, x: Tensor, source: Any, axes: str, sizes: dict[str, Any], before: Sequence[int], is_max: bool
) -> Tensor:
    """Returns `x` padded in front by `before`, and at the end as far as the last window reaches."""
    inputs = source.logical(x.shape)
    low, high = ([0] * len(source.dims) for _ in range(2))
    for n, axis in enumerate(axes):
        reach = (sizes[axis] - 1) * attrs.strides[n] + attrs.dilation[n] * (attrs.pool_size[n] - 1) + 1
        place = source.places(axis)[0]
        low[place], high[place] = before[n], max(reach - before[n] - inputs[axis], 0)
    return te_pad(x, low, high, lowest(x.dtype) if is_max else te.const(0, x.dtype))


def _separates(
    attrs: Attrs, x: Tensor, sizes: dict[str, Any], inputs: dict[str, Any], axes: str, before: Sequence[int]
) -> bool:
    """Returns whether a maximum in two steps, across rows and then along the row, costs less than in one.

    It does where windows overlap along the row: each column's maximum serves several windows. Rows outside of the image are
    skipped, so each window must contain the row inside that is nearest to them.
    """
    if not all(isinstance(n, int) for n in x.shape):
        return False
    taps, width = prod(attrs.pool_size[:-1]), attrs.pool_size[-1]
    if taps * width <= 4 or sizes[axes[-1]] < 4 or taps * attrs.strides[-1] + width > taps * width:
        return False
    for n, axis in enumerate(axes[:-1]):
        reach, last = attrs.pool_size[n] - 1, (sizes[axis] - 1) * attrs.strides[n] - before[n]
        outside = before[n] > 0 or last + reach * attrs.dilation[n] >= inputs[axis]
        if outside and (attrs.dilation[n] > 1 or before[n] > reach or last >= inputs[axis]):
            return False
    return True


def _te_max_in_turn(
    attrs: Attrs, x: Tensor, source: Any, axes: str, sizes: dict[str, Any], before: Sequence[int]
) -> Tensor:
    """Returns each window's maximum in two steps: across rows for every padded column, then along the row."""
    inputs, width = source.logical(x.shape), axes[-1]
    extents = [te.reduce_axis((0, k), name=f"r{a.lower()}") for a, k in zip(axes, attrs.pool_size, strict=True)]
    lowest_value = lowest(x.dtype)
    columns = (sizes[width] - 1) * attrs.strides[-1] + attrs.dilation[-1] * (attrs.pool_size[-1] - 1) + 1

    def across(*i: Any) -> Any:
        where = source.logical_indices(i)
        column = where[width] - before[-1]
        for n, axis in enumerate(axes[:-1]):
            index = where[axis] * attrs.strides[n] + extents[n] * attrs.dilation[n] - before[n]
            last = (sizes[axis] - 1) * attrs.strides[n] + (attrs.pool_size[n] - 1) * attrs.dilation[n] - before[n]
            # A row outside is taken for the nearest inside, which is one of the window's, too.
            index = te.max(index, 0) if before[n] > 0 else index
            where[axis] = te.min(index, inputs[axis] - 1) if last >= inputs[axis] else index
        where[width] = column
        element = x(*source.indices(where))
        bounds = [column >= 0] if before[-1] > 0 else []
        bounds += [column < inputs[width]] if columns - before[-1] > inputs[width] else []
        return te_largest(
            te.if_then_else(te.all(*bounds), element, lowest_value) if bounds else element, axis=extents[:-1]
        )

    rows = te.compute(source.physical({**sizes, width: columns}), across, name="pool_rows")

    def along(*i: Any) -> Any:
        where = source.logical_indices(i)
        where[width] = where[width] * attrs.strides[-1] + extents[-1] * attrs.dilation[-1]
        return te_largest(rows(*source.indices(where)), axis=extents[-1:])

    return te.compute(source.physical(sizes), along, name="pool_max")


def _te_pool(rank: int, is_max: bool) -> Any:
    axes = SPATIAL[rank]

    def compute(attrs: Attrs, xs: Sequence[Tensor], out: Any) -> list[Tensor]:
        x = xs[0]
        source, target = layout(attrs.layout), layout(attrs.out_layout or attrs.layout)
        before, after = spatial_padding(attrs.padding, rank) or ((), ())
        inputs = source.logical(x.shape)
        sizes = dict(inputs)
        for n, axis in enumerate(axes):
            reach = attrs.dilation[n] * (attrs.pool_size[n] - 1) + 1
            step = attrs.strides[n]
            free = inputs[axis] + (before[n] + after[n] - reach + (step - 1 if attrs.ceil_mode else 0))
            sizes[axis] = (free // step if isinstance(free, int) else te.floordiv(free, step)) + 1

        in_rows = source.dims == target.dims and source.dims[-1] == (axes[-1], None)
        if is_max and rank > 1 and in_rows and _separates(attrs, x, sizes, inputs, axes, before):
            return [_te_max_in_turn(attrs, x, source, axes, sizes, before)]

        # The windows of a padded copy, whose rows are as regular as those of a convolution; where sizes are known.
        first = list(before)
        data = x
        if all(isinstance(sizes[axis], int) and len(source.places(axis)) == 1 for axis in axes):
            data = _padded(attrs, x, source, axes, sizes, before, is_max)
            first = [0] * rank

        def at(n: int, place: Any, offset: Any) -> Any:
            index = place * attrs.strides[n] + offset * attrs.dilation[n] - first[n]
            return index, (data is x and before[n] > 0, data is x and (after[n] > 0 or attrs.ceil_mode))

        name = f"pool_{'max' if is_max else 'sum'}"
        pooled = _te_window(data, source, target, axes, sizes, at, attrs.pool_size, name, is_max)
        if is_max:
            return [pooled]

        def average(*i: Any) -> Any:
            places, count = target.logical_indices(i), te.const(1, "int32")
            for n, axis in enumerate(axes):
                if attrs.count_include_pad:
                    count = count * attrs.pool_size[n]
                else:
                    step, width = attrs.dilation[n], attrs.pool_size[n]
                    first = places[axis] * attrs.strides[n] - before[n]
                    # Of the window's places first + step * k, k < width, those inside [0, size).
                    skipped = te.max(te.floordiv(step - 1 - first, step), 0)
                    inside = te.min(te.floordiv(inputs[axis] - first + (step - 1), step), width)
                    count = count * (inside - skipped)
            return divide_by_count(pooled(*i), te.max(count, 1))

        return [te.compute(pooled.shape, average, name="pool_avg")]

    return compute


def divide_by_count(total: Any, count: Any) -> Any:
    """Returns a sum over a number of elements, in the sum's dtype; integers round toward zero."""
    return divide(total, count.astype(total.dtype))


def _pool_attributes(rank: int) -> tuple[AttrSpec, ...]:
    return (
        attr("pool_size", kind="ints"), attr("strides", (1,) * rank), attr("dilation", (1,) * rank),
        attr("padding", (0,) * rank), attr("layout", "NC" + SPATIAL[rank]), attr("out_layout", ""),
        attr("ceil_mode", False),
    )  # fmt: skip


POOL_RELATION = {rank: _pool_relation(rank) for rank in SPATIAL}
"""The type relation of pooling by windows, by the number of spatial axes."""

POOL_ATTRIBUTES = {rank: _pool_attributes(rank) for rank in SPATIAL}
"""The attributes of pooling by windows, by the number of spatial axes."""


def _register_pool(rank: int, is_max: bool) -> None:
    word = "largest element" if is_max else "mean"
    extra = () if is_max else (attr("count_include_pad", False),)
    name = f"{'max' if is_max else 'avg'}_pool{rank}d"
    define(
        f"nn.{name}", ("data",), POOL_RELATION[rank], OpPattern.OUT_ELEMWISE_FUSABLE,
        numpy=_numpy_pool(rank, is_max),
        compute=_te_pool(rank, True) if is_max else in_wide_dtype(_te_pool(rank, False), _summing_dtype),
        attributes=(*POOL_ATTRIBUTES[rank], *extra),
        doc=f"The {word} of each window. With ceil_mode the last window may begin inside and end outside.",
        source=TVM_NN.format(name),
    )  # fmt: skip


def _adaptive_relation(rank: int, is_global: bool) -> Any:
    axes = SPATIAL[rank]

    def relation(rel: Relation) -> None:
        source = checked_layout(rel, "layout", "NC" + axes)
        target = checked_layout(rel, "out_layout", "NC" + axes, source.text)
        sizes = logical_sizes(rel, 0, source)
        if is_global:
            sizes |= dict.fromkeys(axes, 1)
        elif rel.attrs.output_size:
            wanted = rel.attrs.output_size
            if len(wanted) not in (1, rank) or any(v < 1 for v in wanted):
                raise rel.fail(f"{rel.operator.name}: output_size={list(wanted)} must be 1 or {rank} positive numbers")
            sizes |= zip(axes, _output_size(rel.attrs, rank, ()), strict=True)
        rel.set_result(laid_out(rel, sizes, target, rel.tensor(0).element_type))

    return relation


def _output_size(attrs: Attrs, rank: int, sizes: Sequence[Any]) -> Sequence[Any]:
    """Returns the spatial size asked for; that of the input when none is."""
    if "output_size" not in attrs:
        return (1,) * rank
    wanted = attrs.output_size
    if not wanted:
        return sizes
    return tuple(wanted) * rank if len(wanted) == 1 else wanted


def _numpy_adaptive(rank: int, is_max: bool) -> Any:
    axes = SPATIAL[rank]

    def meaning(attrs: Attrs, x: Array) -> Array:
        data = layout(attrs.layout).to_logical(x, "NC" + axes)
        result = data if is_max else _accumulator(data)
        count = 1
        for axis, places in enumerate(_output_size(attrs, rank, data.shape[2:]), 2):
            size = result.shape[axis]
            parts = [(p * size // places, -(-(p + 1) * size // places)) for p in range(places)]
            counts = np.array([high - low for low, high in parts])
            count = count * counts.reshape([-1 if a == axis else 1 for a in range(data.ndim)])
            dtype = result.dtype
            cut = [result.take(range(low, high), axis) for low, high in parts]
            result = np.stack(
                [c.max(axis, initial=numeric.lowest(dtype)) if is_max else c.sum(axis, dtype=dtype) for c in cut], axis
            )
        result = result if is_max else _mean_of(result, count, x)
        return layout(attrs.out_layout or attrs.layout).from_logical(result.astype(x.dtype), "NC" + axes)

    return meaning


def _te_adaptive(rank: int, is_max: bool) -> Any:
    axes = SPATIAL[rank]

    def compute(attrs: Attrs, xs: Sequence[Tensor], out: Any) -> list[Tensor]:
        x = xs[0]
        source, target = layout(attrs.layout), layout(attrs.out_layout or attrs.layout)
        inputs = source.logical(x.shape)
        wanted = _output_size(attrs, rank, [inputs[a] for a in axes])
        sizes = {**inputs, **dict(zip(axes, wanted, strict=True))}
        if (nothing := without_elements(target.physical(sizes), x.dtype, "adaptive_pool")) is not None:
            return [nothing]
        reducer = te_largest if is_max else te.sum
        outside = lowest(x.dtype) if is_max else te.const(0, x.dtype)

        def bounds(axis: str, place: Any) -> tuple[Any, Any]:
            size, parts = inputs[axis], sizes[axis]
            return te.floordiv(place * size, parts), te.floordiv((place + 1) * size + (parts - 1), parts)

        # Of each axis: whether it is one part, whether its parts are equal, and the widest part, whose last elements shorter ones leave out.
        one, even, width = (dict[str, Any]() for _ in range(3))
        for a in axes:
            size, parts = inputs[a], sizes[a]
            one[a] = isinstance(parts, int) and parts == 1
            even[a] = one[a] or (isinstance(size, int) and isinstance(parts, int) and size % parts == 0)
            if one[a]:
                width[a] = size
            elif even[a]:
                width[a] = size // parts
            else:
                width[a] = te.floordiv(size + (parts - 1), parts) + 1
        extents = {a: te.reduce_axis((0, width[a]), name=f"r{a.lower()}") for a in axes}

        def body(*i: Any) -> Any:
            places = target.logical_indices(i)
            where: dict[str, Any] = {"N": places["N"], "C": places["C"]}
            inside: list[Any] = []
            for a in axes:
                low, high = bounds(a, places[a])
                if one[a]:
                    # The whole axis: it is then seen to be contiguous with other axes.
                    where[a] = extents[a]
                elif even[a]:
                    where[a] = places[a] * width[a] + extents[a]
                else:
                    where[a] = low + extents[a]
                inside += [] if even[a] else [where[a] < high]
            element = x(*source.indices(where))
            value = te.if_then_else(te.all(*inside), element, outside) if inside else element
            return reducer(value, axis=list(extents.values()))

        pooled = te.compute(target.physical(sizes), body, name="adaptive_pool")
        if is_max:
            return [pooled]

        def average(*i: Any) -> Any:
            places, count = target.logical_indices(i), te.const(1, "int32")
            for a in axes:
                low, high = bounds(a, places[a])
                count = count * (width[a] if even[a] else high - low)
            return divide_by_count(pooled(*i), count)

        return [te.compute(pooled.shape, average, name="adaptive_pool_avg")]

    return compute


def _register_adaptive(rank: int, is_max: bool, is_global: bool) -> None:
    axes, word = SPATIAL[rank], "largest element" if is_max else "mean"
    size = () if is_global else (attr("output_size", None, "ints", printed=True),)
    places = (
        "the whole image" if is_global else "each of `output_size` equal parts of the image (which may overlap by one)"
    )
    name = f"{'global' if is_global else 'adaptive'}_{'max' if is_max else 'avg'}_pool{rank}d"
    define(
        f"nn.{name}", ("data",),
        _adaptive_relation(rank, is_global), OpPattern.OUT_ELEMWISE_FUSABLE,
        numpy=_numpy_adaptive(rank, is_max),
        compute=_te_adaptive(rank, True) if is_max else in_wide_dtype(_te_adaptive(rank, False), _summing_dtype),
        attributes=(*size, attr("layout", "NC" + axes), attr("out_layout", "")),
        doc=f"The {word} of {places}.",
        source=TVM_NN.format(name),
    )  # fmt: skip


for _rank in (1, 2, 3):
    for _is_max in (True, False):
        _register_pool(_rank, _is_max)
        _register_adaptive(_rank, _is_max, is_global=False)
        _register_adaptive(_rank, _is_max, is_global=True)
