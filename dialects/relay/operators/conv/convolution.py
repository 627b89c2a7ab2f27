"""Defines convolutions of one to three dimensions: any layout, groups, dilation, uneven padding.

data (N,C,H,W), weight (O,I,kh,kw) -> (N,O,H',W')    I = C / groups, H' = (H + padding - (kh-1)*dilation - 1) / stride + 1
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import TensorType

from ...operator import Attrs, AttrSpec, OpPattern, Relation, attr, define
from ..common._lazy import np, te
from ..common.layout_strings import Layout, checked_layout, laid_out, layout, logical_sizes
from ..common.numpy_meanings import Array, matmul, numpy_type
from ..common.relations import (
    ANY,
    add_dims,
    at_most,
    divide_dims,
    dtype_attr,
    is_multiple,
    multiply_dims,
    same_dim,
    shape_of,
    show_argument,
)
from ..common.sources import TVM_NN
from ..common.te_computes import constant, from_half, is_one, sums_of_products

if TYPE_CHECKING:
    from ....te.builder import Expr, Tensor

SPATIAL = {1: "W", 2: "HW", 3: "DHW"}
"""The spatial axes of a convolution or pooling, by their number."""


def spatial_padding(padding: Sequence[int], rank: int) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Returns the padding before and after each spatial axis.

    It is given as one number, one for each axis, or those before and then those after each axis; None for other forms.
    """
    if len(padding) == 1:
        return (padding[0],) * rank, (padding[0],) * rank
    if len(padding) == rank:
        return tuple(padding), tuple(padding)
    if len(padding) == 2 * rank:
        return tuple(padding[:rank]), tuple(padding[rank:])
    return None


def check_window(rel: Relation, rank: int, *names: str) -> None:
    """Fails unless the named attributes (strides, …) and `padding` fit the spatial axes."""
    for name in names:
        values: tuple[int, ...] | None = rel.attrs[name]
        if values is not None and (len(values) != rank or any(v < 1 for v in values)):
            raise rel.fail(
                f"{rel.operator.name}: {name}={list(values)} must be {rank} positive number{'s'[: rank > 1]}"
            )
    padding: tuple[int, ...] = rel.attrs.padding
    if spatial_padding(padding, rank) is None:
        raise rel.fail(
            f"{rel.operator.name}: padding={list(padding)} must be 1, {rank} or {2 * rank} numbers (before, then after)"
        )
    if min(padding) < 0:
        raise rel.fail(f"{rel.operator.name}: padding={list(padding)} must not be negative")


def window_count(
    size: int, before: int, after: int, kernel: int, stride: int, dilation: int, ceil: bool = False
) -> int:
    """Returns the number of positions of a window along an axis; `?` where the size or the kernel is."""
    reach = multiply_dims(-dilation, add_dims(kernel, -1))
    return add_dims(divide_dims(add_dims(size, reach, before + after - 1 + (stride - 1 if ceil else 0)), stride), 1)


def places_must_be(rel: Relation, places: Mapping[str, int], axes: str, least: int = 0) -> None:
    """Raises where a window takes fewer places than `least` along one of these axes of the first argument."""
    for axis in axes:
        if not at_most(least, places[axis]):
            raise rel.fail(
                f"{rel.operator.name}: the window is larger than {show_argument(rel, 0)} with its padding along {axis}"
            )


def must_have_taps(rel: Relation, weight: int, window: Iterable[int]) -> None:
    """Raises where the window of argument `weight`, of these sizes, has no elements."""
    if not all(at_most(1, size) for size in window):
        raise rel.fail(
            f"{rel.operator.name}: {show_argument(rel, weight)} has a window of no elements", argument=weight
        )


def is_depthwise(groups: int, data_channels: int, weight_o: int) -> bool:
    """Returns whether a weight (O, I, …) has one filter group per data channel: O groups of I filters."""
    return groups > 1 and groups == weight_o and data_channels in (groups, ANY)


def weight_layout(attrs: Attrs, shape: Sequence[Any]) -> Layout:
    """Returns the layout of a weight: kernel_layout, or one with blocks that its shape implies.

    Programs for the NCHWc convolutions leave kernel_layout at OIHW and pass a weight OIHW[x]i[y]o, or for quantized
    data OIHW[x]i[y]o[z]i: TVM takes the blocks from there, too.
    """
    stated = layout(attrs.kernel_layout)
    sizes = [constant(size) or ANY for size in shape[4:]]
    if stated.text != "OIHW" or len(sizes) not in (2, 3) or ANY in sizes:
        return stated
    return layout("OIHW" + "".join(f"{size}{axis}" for size, axis in zip(sizes, "ioi", strict=False)))


def _conv_relation(rank: int, *, packed: bool = False) -> Any:
    """Returns the type relation; if `packed`, the weight may have blocks that kernel_layout lacks."""
    axes = SPATIAL[rank]

    def relation(rel: Relation) -> None:
        attrs, name = rel.attrs, rel.operator.name
        check_window(rel, rank, "strides", "dilation", "kernel_size")
        data_layout = checked_layout(rel, "data_layout", "NC" + axes)
        kernel_layout = checked_layout(rel, "kernel_layout", "OI" + axes)
        if packed and isinstance(weight := rel.type_of(1), TensorType):
            kernel_layout = weight_layout(attrs, shape_of(weight))
        result_layout = checked_layout(rel, "out_layout", "NC" + axes, data_layout.text)
        data = rel.tensor(0)
        sizes = logical_sizes(rel, 0, data_layout)
        known = None if rel.type_of(1) is None else logical_sizes(rel, 1, kernel_layout)
        groups, in_channels = attrs.groups, sizes["C"]
        if groups < 1 or not is_multiple(in_channels, groups):
            raise rel.fail(
                f"{name}: groups={groups} does not divide the {in_channels} channels of {show_argument(rel, 0)}"
            )
        if attrs.channels is not None and attrs.channels < 1:
            raise rel.fail(f"{name}: channels={attrs.channels} must be positive")
        if attrs.channels is not None and attrs.kernel_size is not None:
            channels = attrs.channels
            wanted = dict(zip(axes, attrs.kernel_size, strict=True))
            if known is not None and is_depthwise(groups, in_channels, known["O"]):
                wanted |= {"O": in_channels, "I": channels // groups}
            elif known is not None and known["O"] == ANY and groups == in_channels > 1:
                # Channels may be along O alone, or along O and I; either product is `channels`.
                wanted |= {"O": ANY, "I": ANY}
            else:
                wanted |= {
                    "O": channels,
                    "I": divide_dims(in_channels, groups),
                }
            dtype = data.element_type if known is None else rel.tensor(1).element_type
            rel.set_argument(1, laid_out(rel, wanted, kernel_layout, dtype))
        else:
            wanted = logical_sizes(rel, 1, kernel_layout)
            depthwise = is_depthwise(groups, in_channels, wanted["O"])
            channels = multiply_dims(wanted["O"], wanted["I"]) if depthwise else wanted["O"]
            if not depthwise and not same_dim(in_channels, multiply_dims(wanted["I"], groups)):
                raise rel.fail(
                    f"{name}: {show_argument(rel, 1)} takes {wanted['I']} channels in each of {groups} groups, but"
                    f" {show_argument(rel, 0)} has {in_channels} channels",
                    argument=1,
                )
            if not depthwise and not is_multiple(wanted["O"], groups):
                raise rel.fail(
                    f"{name}: groups={groups} does not divide the {wanted['O']} filters of {show_argument(rel, 1)}",
                    argument=1,
                )
            for axis, size in zip(axes, attrs.kernel_size or (), strict=False):
                if not same_dim(wanted[axis], size):
                    raise rel.fail(
                        f"{name}: kernel_size={list(attrs.kernel_size or ())} is not that of {show_argument(rel, 1)}"
                    )
            if attrs.channels is not None and not same_dim(attrs.channels, channels):
                raise rel.fail(f"{name}: channels={attrs.channels}, but {show_argument(rel, 1)} makes {channels}")
        before, after = spatial_padding(attrs.padding, rank) or ((), ())
        must_have_taps(rel, 1, [wanted[axis] for axis in axes])
        result = {"N": sizes["N"], "C": channels}
        for axis, *window in zip(
            axes, before, after, (wanted[a] for a in axes), attrs.strides, attrs.dilation, strict=True
        ):
            result[axis] = window_count(sizes[axis], *window)
        places_must_be(rel, result, axes)
        rel.set_result(laid_out(rel, result, result_layout, dtype_attr(rel, "out_dtype", data.element_type)))

    return relation


def windows(x: Array, kernel: Sequence[int], strides: Sequence[int], dilation: Sequence[int]) -> Array:
    """Returns every window of the trailing axes: (…, places, kernel), a view."""
    rank = len(kernel)
    reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
    if any(r > size for r, size in zip(reach, x.shape[-rank:], strict=True)):
        # No window fits along this axis: as many as there are places along the others.
        counts = [
            max(0, size - r) // s + (r <= size) for r, size, s in zip(reach, x.shape[-rank:], strides, strict=True)
        ]
        return np.empty((*x.shape[:-rank], *counts, *kernel), x.dtype)
    view = np.lib.stride_tricks.sliding_window_view(x, reach, axis=tuple(range(x.ndim - rank, x.ndim)))
    steps = [slice(None)] * (x.ndim - rank)
    return view[(*steps, *(slice(None, None, s) for s in strides), *(slice(None, None, d) for d in dilation))]


def convolve(x: Array, w: Array, attrs: Attrs, dtype: Any) -> Array:
    """Returns the convolution of x (N, C, …) by w (O, I, …), accumulated in `dtype`."""
    rank = x.ndim - 2
    before, after = spatial_padding(attrs.padding, rank) or ((), ())
    x = np.pad(x, [(0, 0), (0, 0), *zip(before, after, strict=True)])
    groups, kernel = attrs.groups, w.shape[2:]
    if is_depthwise(groups, x.shape[1], w.shape[0]):
        w = w.reshape(-1, 1, *kernel)
    view = windows(x, kernel, attrs.strides, attrs.dilation)
    places = view.shape[2 : 2 + rank]
    batch, inner, outer = x.shape[0], x.shape[1] // groups, w.shape[0] // groups
    result = np.empty((batch, groups, outer, prod(places)), dtype)
    for group in range(groups):
        part = view[:, group * inner : (group + 1) * inner]
        # (batch, places, inner * kernel) times (inner * kernel, outer)
        columns = np.moveaxis(part, 1, 1 + rank).reshape(batch, prod(places), inner * prod(kernel))
        filters = w[group * outer : (group + 1) * outer].reshape(outer, -1)
        result[:, group] = matmul(columns, filters.T, dtype).swapaxes(1, 2)
    return result.reshape(batch, groups * outer, *places)


def _numpy_conv(rank: int) -> Any:
    axes = SPATIAL[rank]

    def meaning(attrs: Attrs, x: Array, w: Array) -> Array:
        data_layout = layout(attrs.data_layout)
        data, weight = data_layout.to_logical(x, "NC" + axes), weight_layout(attrs, w.shape).to_logical(w, "OI" + axes)
        result = convolve(data, weight, attrs, numpy_type(attrs.out_dtype or x.dtype.name))
        return layout(attrs.out_layout or attrs.data_layout).from_logical(result, "NC" + axes)

    return meaning


def te_pad_zero(x: Tensor, before: Sequence[Any], after: Sequence[Any], name: str = "pad_temp") -> Tensor:
    """Pads `x` with zeros; returns `x` itself when there are none."""
    return te_pad(x, before, after, te.const(0, x.dtype), name)


def te_pad(x: Tensor, before: Sequence[Any], after: Sequence[Any], value: Any, name: str = "pad_temp") -> Tensor:
    """Pads `x` with elements `value`; returns `x` itself when there are none."""
    if all(is_one(1 + p) if isinstance(p, int) else False for p in (*before, *after)):
        return x
    shape = [b + d + a for b, d, a in zip(before, x.shape, after, strict=True)]

    def body(*i: Expr) -> Any:
        inside: list[Any] = []
        for index, low, high, dim in zip(i, before, after, x.shape, strict=True):
            if not (isinstance(low, int) and low == 0):
                inside.append(index >= low)
            if not (isinstance(high, int) and high == 0):
                inside.append(index < low + dim)
        element = x(*(index - low for index, low in zip(i, before, strict=True)))
        return te.if_then_else(te.all(*inside), element, value)

    return te.compute(shape, body, name=name)


COLUMNS = 8
"""Columns of an unknown number that are computed together."""


def _has_blocks(layout: Layout) -> bool:
    return any(block is not None for _, block in layout.dims)


def _places(size: Any, padding: int, taps: Any, dilation: int, stride: int) -> Any:
    """Returns the number of places of a window; `size` itself where it is as many.

    Both are known to be equal then.
    """
    known = constant(taps)
    if stride == 1 and known is not None:
        more = padding - (known - 1) * dilation + 1
        return size + more if more else size
    free = size + padding - (taps - 1) * dilation
    return (free // stride if isinstance(free, int) else te.floordiv(free, stride)) + 1


def _te_conv(rank: int) -> Any:
    axes = SPATIAL[rank]

    def compute(attrs: Attrs, xs: Sequence[Tensor], out: Any) -> list[Tensor]:
        x, w = map(from_half, xs)
        data_layout, kernel_layout = layout(attrs.data_layout), weight_layout(attrs, w.shape)
        out_layout = layout(attrs.out_layout or attrs.data_layout)
        dtype = attrs.out_dtype or xs[0].dtype
        sizes, weights = data_layout.logical(x.shape), kernel_layout.logical(w.shape)
        before, after = spatial_padding(attrs.padding, rank) or ((), ())
        place = {letter: data_layout.places(letter)[0] for letter in axes}
        padding = [[0] * len(data_layout.dims) for _ in range(2)]
        for letter, low, high in zip(axes, before, after, strict=True):
            padding[0][place[letter]], padding[1][place[letter]] = low, high
        channels, filters = (ANY if (size := constant(dim)) is None else size for dim in (sizes["C"], weights["O"]))
        depthwise = is_depthwise(attrs.groups, channels, filters)
        per_group = 1 if depthwise else weights["I"]
        result = {"N": sizes["N"], "C": weights["O"] * weights["I"] if depthwise else weights["O"]}
        for a, low, high, stride, dilation in zip(axes, before, after, attrs.strides, attrs.dilation, strict=True):
            result[a] = _places(sizes[a], low + high - 1, weights[a], dilation, stride)
        kernels = {a: te.reduce_axis((0, weights[a]), name=f"r{a.lower()}") for a in axes}
        rc = te.reduce_axis((0, per_group), name="rc")
        # An unknown number of columns is computed in blocks: the dimension of columns becomes two.
        last, split = axes[-1], None
        if constant(result[last]) is None and constant(weights[last]) is not None and not _has_blocks(out_layout):
            split = out_layout.places(last)[0]
            blocks = te.floordiv(result[last] + (COLUMNS - 1), COLUMNS)
            reached = (blocks * COLUMNS - 1) * attrs.strides[-1] + (weights[last] - 1) * attrs.dilation[-1] + 1
            padding[1][place[last]] = reached - sizes[last] - padding[0][place[last]]
        padded = te_pad_zero(x, padding[0], padding[1])

        def factors(*i: Expr) -> tuple[Any, Any]:
            if split is not None:
                i = (*i[:split], i[split] * COLUMNS + i[split + 1], *i[split + 2 :])
            at = out_layout.logical_indices(i)
            channel = at["C"]
            if depthwise:
                multiplier = weights["I"]
                source = channel if is_one(multiplier) else te.floordiv(channel, multiplier)
                filter_at = {"O": source, "I": 0 if is_one(multiplier) else te.floormod(channel, multiplier)}
                source = source + rc
            else:
                filter_at = {"O": channel, "I": rc}
                source = rc
                if attrs.groups > 1:
                    source = te.floordiv(channel, weights["O"] // attrs.groups) * per_group + rc
            data_at = {"N": at["N"], "C": source}
            for a, stride, dilation in zip(axes, attrs.strides, attrs.dilation, strict=True):
                data_at[a] = at[a] * stride + kernels[a] * dilation
            return padded(*data_layout.indices(data_at)), w(*kernel_layout.indices({**filter_at, **kernels}))

        reduced, shape = [rc, *kernels.values()], out_layout.physical(result)
        if split is None:
            return [sums_of_products(shape, factors, reduced, dtype, f"conv{rank}d")]
        in_blocks = [*shape[:split], te.floordiv(shape[split] + (COLUMNS - 1), COLUMNS), COLUMNS, *shape[split + 1 :]]
        whole = sums_of_products(in_blocks, factors, reduced, dtype, f"conv{rank}d_columns")

        def crop(*i: Expr) -> Expr:
            column = i[split]
            return whole(*i[:split], te.floordiv(column, COLUMNS), te.floormod(column, COLUMNS), *i[split + 1 :])

        return [te.compute(shape, crop, name=f"conv{rank}d")]

    return compute


def conv_attributes(rank: int, *extra: AttrSpec, kernel_layout: str | None = None) -> tuple[AttrSpec, ...]:
    """Returns the attributes of a convolution of `rank` spatial axes, as TVM names and defaults them."""
    axes = SPATIAL[rank]
    return (
        attr("strides", (1,) * rank),
        attr("padding", (0,) * (2 if rank == 1 else rank)),
        attr("dilation", (1,) * rank),
        attr("groups", 1),
        attr("channels", None, "int"),
        attr("kernel_size", None, "ints"),
        attr("data_layout", "NC" + axes),
        attr("kernel_layout", kernel_layout or "OI" + axes),
        attr("out_layout", ""),
        attr("out_dtype", None, "str"),
        *extra,
    )


def _register_conv(name: str, rank: int, doc: str, relation: Any = None, *, source: str) -> None:
    define(
        name, ("data", "weight"), relation or CONV_RELATION[rank], OpPattern.OUT_ELEMWISE_FUSABLE,
        numpy=_numpy_conv(rank), compute=_te_conv(rank), attributes=conv_attributes(rank),
        doc=doc, source=source,
    )  # fmt: skip


CONV_RELATION = {rank: _conv_relation(rank) for rank in SPATIAL}
"""The type relation of a convolution (data, weight, …), by the number of spatial axes."""

# fmt: off
_register_conv("nn.conv1d", 1, "The convolution of data by weight over one spatial axis.", source=TVM_NN.format("conv1d"))
_register_conv("nn.conv2d", 2, "The convolution of data by weight over two spatial axes.", source=TVM_NN.format("conv2d"))
_register_conv("nn.conv3d", 3, "The convolution of data by weight over three spatial axes.", source=TVM_NN.format("conv3d"))
# fmt: on
_packed = _conv_relation(2, packed=True)
# fmt: off
_register_conv("nn.contrib_conv2d_NCHWc", 2,
    "`nn.conv2d` of data and weight in blocked layouts.", _packed, source=TVM_NN.format("contrib_conv2d_nchwc"))
_register_conv("nn.contrib_depthwise_conv2d_NCHWc", 2,
    "`nn.conv2d` of one group per channel, in blocked layouts.", _packed, source=TVM_NN.format("contrib_depthwise_conv2d_nchwc"))
# fmt: on
