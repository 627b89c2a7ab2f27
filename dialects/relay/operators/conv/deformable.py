"""Defines convolutions of moved taps (deformable) and with maxima instead of sums (dilation).

deformable_conv2d: data (N,C,H,W), offset (N, 2*deformable_groups*kh*kw, H',W'), weight (O,I,kh,kw) -> (N,O,H',W')
dilation2d:        data (N,C,H,W), weight (C,kh,kw) -> (N,C,H',W')
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from ...operator import Attrs, OpPattern, Relation, attr, define
from ..common._lazy import np, numeric, te
from ..common.layout_strings import checked_layout, laid_out, layout, logical_sizes
from ..common.numpy_meanings import Array, arange_along, matmul, numpy_type
from ..common.relations import divide_dims, dtype_attr, is_multiple, multiply_dims, same_dim, show_argument
from ..common.sources import ARXIV, TVM_IMAGE
from ..common.te_computes import lowest, te_largest
from .convolution import (
    check_window,
    conv_attributes,
    must_have_taps,
    places_must_be,
    spatial_padding,
    window_count,
    windows,
)

if TYPE_CHECKING:
    from ....te.builder import Tensor


def _deformable_relation(rel: Relation) -> None:
    attrs = rel.attrs
    check_window(rel, 2, "strides", "dilation", "kernel_size")
    data_layout = checked_layout(rel, "data_layout", "NCHW")
    kernel_layout = checked_layout(rel, "kernel_layout", "OIHW")
    result_layout = checked_layout(rel, "out_layout", "NCHW", data_layout.text)
    data, sizes = rel.tensor(0), logical_sizes(rel, 0, data_layout)
    for name in ("groups", "deformable_groups"):
        count: int = attrs[name]
        if count < 1 or not is_multiple(sizes["C"], count):
            raise rel.fail(
                f"{rel.operator.name}: {name}={count} does not divide the {sizes['C']} channels of {show_argument(rel, 0)}"
            )
    if attrs.channels is not None and attrs.kernel_size is not None:
        weight = {
            "O": attrs.channels,
            "I": divide_dims(sizes["C"], attrs.groups),
            "H": attrs.kernel_size[0],
            "W": attrs.kernel_size[1],
        }
        rel.set_argument(2, laid_out(rel, weight, kernel_layout, data.element_type))
    else:
        weight = logical_sizes(rel, 2, kernel_layout)
        if not same_dim(multiply_dims(weight["I"], attrs.groups), sizes["C"]):
            raise rel.fail(
                f"{rel.operator.name}: {show_argument(rel, 2)} takes {weight['I']} channels in each of {attrs.groups} groups,"
                f" but {show_argument(rel, 0)} has {sizes['C']} channels",
                argument=2,
            )
    if not is_multiple(weight["O"], attrs.groups):
        raise rel.fail(
            f"{rel.operator.name}: groups={attrs.groups} does not divide the {weight['O']} filters of {show_argument(rel, 2)}",
            argument=2,
        )
    before, after = spatial_padding(attrs.padding, 2) or ((), ())
    result = {"N": sizes["N"], "C": weight["O"]}
    for n, axis in enumerate("HW"):
        result[axis] = window_count(sizes[axis], before[n], after[n], weight[axis], attrs.strides[n], attrs.dilation[n])
    taps = multiply_dims(2, weight["H"], weight["W"], attrs.deformable_groups)
    offset = {**result, "C": taps}
    must_have_taps(rel, 2, [weight["H"], weight["W"]])
    rel.set_argument(1, laid_out(rel, offset, data_layout, data.element_type))
    places_must_be(rel, result, "HW")
    rel.set_result(laid_out(rel, result, result_layout, dtype_attr(rel, "out_dtype", data.element_type)))


def _bilinear(x: Array, y: Array, z: Array) -> Array:
    """Interpolates x (N, C, H, W) between pixels at y, z (N, …): (N, C, …); pixels outside are 0."""
    height, width = x.shape[2:]
    top, left = np.floor(y), np.floor(z)
    batch = np.arange(len(x)).reshape(-1, *[1] * (y.ndim - 1))
    result: Array = np.zeros((), x.dtype)
    for row, weight in ((top, 1 - (y - top)), (top + 1, y - top)):
        for column, share in ((left, 1 - (z - left)), (left + 1, z - left)):
            inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
            at = [
                numeric.convert(np.clip(place, 0, size - 1), np.dtype(np.int64))
                for place, size in ((row, height), (column, width))
            ]
            pixel = np.where(inside[:, None], np.moveaxis(x[batch, :, at[0], at[1]], -1, 1), np.zeros((), x.dtype))
            result = result + pixel * (weight * share)[:, None]
    outside = (y < 0) | (z < 0) | (y >= height) | (z >= width)
    return np.where(outside[:, None], np.zeros((), x.dtype), result).astype(x.dtype)


def _deformable_conv2d(attrs: Attrs, x: Array, offset: Array, w: Array) -> Array:
    source = layout(attrs.data_layout)
    data, moves = source.to_logical(x, "NCHW"), source.to_logical(offset, "NCHW")
    weight = layout(attrs.kernel_layout).to_logical(w, "OIHW")
    (rows, columns), places = weight.shape[2:], moves.shape[2:]
    (top, left), _ = spatial_padding(attrs.padding, 2) or ((0, 0), (0, 0))
    moves = moves.reshape(len(x), attrs.deformable_groups, rows, columns, 2, *places)
    # Along the axes (rows, columns, places…), the position of each tap before it is moved.
    row = arange_along(places[0], 2, 4) * attrs.strides[0] - top + arange_along(rows, 0, 4) * attrs.dilation[0]
    column = arange_along(places[1], 3, 4) * attrs.strides[1] - left + arange_along(columns, 1, 4) * attrs.dilation[1]
    width = data.shape[1] // attrs.deformable_groups
    sampled = [
        _bilinear(data[:, g * width : (g + 1) * width], row + moves[:, g, :, :, 0], column + moves[:, g, :, :, 1])
        for g in range(attrs.deformable_groups)
    ]
    # (N, C, rows, columns, places…) to one matrix product per group.
    columns_of = np.concatenate(sampled, 1)
    dtype = numpy_type(attrs.out_dtype or x.dtype.name)
    inner, outer = data.shape[1] // attrs.groups, len(weight) // attrs.groups
    parts: list[Array] = []
    for g in range(attrs.groups):
        taps = columns_of[:, g * inner : (g + 1) * inner].reshape(len(x), inner * rows * columns, prod(places))
        parts.append(matmul(weight[g * outer : (g + 1) * outer].reshape(outer, inner * rows * columns), taps, dtype))
    result = np.concatenate(parts, 1).reshape(len(x), len(weight), *places)
    return layout(attrs.out_layout or attrs.data_layout).from_logical(result, "NCHW")


def _te_deformable_conv2d(attrs: Attrs, xs: Sequence[Tensor], out: Any) -> list[Tensor]:
    x, offset, w = xs
    source, kernel = layout(attrs.data_layout), layout(attrs.kernel_layout)
    target = layout(attrs.out_layout or attrs.data_layout)
    sizes, weights, moves = source.logical(x.shape), kernel.logical(w.shape), source.logical(offset.shape)
    (top, left), _ = spatial_padding(attrs.padding, 2) or ((0, 0), (0, 0))
    dtype = attrs.out_dtype or x.dtype
    rows, columns = weights["H"], weights["W"]

    def sample(n: Any, c: Any, row: Any, column: Any, y: Any, z: Any) -> Any:
        group = te.floordiv(c, te.floordiv(sizes["C"], attrs.deformable_groups))
        tap = (group * rows + row) * columns + column
        at = [offset(*source.indices({"N": n, "C": tap * 2 + k, "H": y, "W": z})) for k in (0, 1)]
        high = (y * attrs.strides[0] + row * attrs.dilation[0] - top).astype(x.dtype) + at[0]
        wide = (z * attrs.strides[1] + column * attrs.dilation[1] - left).astype(x.dtype) + at[1]
        first, second = te.floor(high), te.floor(wide)
        v, h, one = high - first, wide - second, te.const(1.0, x.dtype)

        def pixel(a: int, b: int) -> Any:
            p, q = first.astype("int32") + a, second.astype("int32") + b
            inside = te.all(p < sizes["H"], q < sizes["W"])
            return te.if_then_else(inside, x(*source.indices({"N": n, "C": c, "H": p, "W": q})), te.const(0.0, x.dtype))

        upper = pixel(0, 0) * (one - h) + pixel(0, 1) * h
        lower = pixel(1, 0) * (one - h) + pixel(1, 1) * h
        zero = te.const(0.0, x.dtype)
        bounds = (te.const(0.0, x.dtype), sizes["H"], sizes["W"])
        height, width = (_as_dtype(b, x.dtype) for b in bounds[1:])
        outside = te.any(high < bounds[0], wide < bounds[0], high >= height, wide >= width)
        return te.if_then_else(outside, zero, upper * (one - v) + lower * v)

    shape = (sizes["N"], sizes["C"], rows, columns, moves["H"], moves["W"])
    sampled = te.compute(shape, sample, name="data_deform")
    per_group = weights["I"]
    rc = te.reduce_axis((0, per_group), name="rc")
    ry, rx = te.reduce_axis((0, rows), name="ry"), te.reduce_axis((0, columns), name="rx")

    def body(*i: Any) -> Any:
        at = target.logical_indices(i)
        channel = rc
        if attrs.groups > 1:
            channel = te.floordiv(at["C"], te.floordiv(weights["O"], attrs.groups)) * per_group + rc
        left_value = sampled(at["N"], channel, ry, rx, at["H"], at["W"]).astype(dtype)
        right = w(*kernel.indices({"O": at["C"], "I": rc, "H": ry, "W": rx})).astype(dtype)
        return te.sum(left_value * right, axis=[rc, ry, rx])

    result = {"N": sizes["N"], "C": weights["O"], "H": moves["H"], "W": moves["W"]}
    return [te.compute(target.physical(result), body, name="deformable_conv2d")]


def _as_dtype(value: Any, dtype: str) -> Any:
    return te.const(value, dtype) if isinstance(value, int) else value.astype(dtype)


define(
    "nn.deformable_conv2d", ("data", "offset", "weight"), _deformable_relation, OpPattern.OUT_ELEMWISE_FUSABLE,
    numpy=_deformable_conv2d,
    compute=_te_deformable_conv2d,
    attributes=(*conv_attributes(2), attr("deformable_groups", 1)),
    doc="A convolution whose taps are moved by `offset` (a row and a column each), bilinear between pixels.",
    source=ARXIV.format("1703.06211"),
)  # fmt: skip


def _dilation_relation(rel: Relation) -> None:
    attrs = rel.attrs
    check_window(rel, 2, "strides", "dilations")
    data_layout = checked_layout(rel, "data_layout", "NCHW")
    kernel_layout = checked_layout(rel, "kernel_layout", "IHW")
    sizes, weight = logical_sizes(rel, 0, data_layout), logical_sizes(rel, 1, kernel_layout)
    if not same_dim(weight["I"], sizes["C"]):
        raise rel.fail(
            f"image.dilation2d: {show_argument(rel, 1)} has {weight['I']} channels, but {show_argument(rel, 0)} has"
            f" {sizes['C']}",
            argument=1,
        )
    before, after = spatial_padding(attrs.padding, 2) or ((), ())
    for n, axis in enumerate("HW"):
        sizes[axis] = window_count(sizes[axis], before[n], after[n], weight[axis], attrs.strides[n], attrs.dilations[n])
    must_have_taps(rel, 1, [weight[axis] for axis in "HW"])
    places_must_be(rel, sizes, "HW")
    rel.set_result(laid_out(rel, sizes, data_layout, dtype_attr(rel, "out_dtype", rel.tensor(0).element_type)))


def _dilation2d(attrs: Attrs, x: Array, w: Array) -> Array:
    of = layout(attrs.data_layout)
    data, weight = of.to_logical(x, "NCHW"), layout(attrs.kernel_layout).to_logical(w, "IHW")
    before, after = spatial_padding(attrs.padding, 2) or ((), ())
    padded = np.pad(data, [(0, 0), (0, 0), *zip(before, after, strict=True)], constant_values=numeric.lowest(x.dtype))
    view = windows(padded, weight.shape[1:], attrs.strides, attrs.dilations)
    return of.from_logical((view + weight[None, :, None, None]).max(axis=(4, 5)), "NCHW")


def _te_dilation2d(attrs: Attrs, x: Tensor, w: Tensor) -> Tensor:
    of, kernel = layout(attrs.data_layout), layout(attrs.kernel_layout)
    sizes, weights = of.logical(x.shape), kernel.logical(w.shape)
    before, after = spatial_padding(attrs.padding, 2) or ((), ())
    new = dict(sizes)
    for n, axis in enumerate("HW"):
        reach = (weights[axis] - 1) * attrs.dilations[n] + 1
        new[axis] = te.floordiv(sizes[axis] + (before[n] + after[n]) - reach, attrs.strides[n]) + 1
    taps = {a: te.reduce_axis((0, weights[a]), name=f"r{a.lower()}") for a in "HW"}

    def body(*i: Any) -> Any:
        at = of.logical_indices(i)
        where = {a: at[a] * attrs.strides[n] + taps[a] * attrs.dilations[n] - before[n] for n, a in enumerate("HW")}
        inside = [c for a in "HW" for c in (where[a] >= 0, where[a] < sizes[a])]
        value = te.if_then_else(te.all(*inside), x(*of.indices({**at, **where})), lowest(x.dtype))
        return te_largest(value + w(*kernel.indices({"I": at["C"], **taps})), axis=list(taps.values()))

    return te.compute(of.physical(new), body, name="dilation2d")


define(
    "image.dilation2d", ("data", "weight"), _dilation_relation, OpPattern.OUT_ELEMWISE_FUSABLE,
    numpy=_dilation2d,
    compute=lambda attrs, xs, out: [_te_dilation2d(attrs, *xs)],
    attributes=(
        attr("strides", (1, 1)), attr("padding", (0, 0)), attr("dilations", (1, 1)), attr("data_layout", "NCHW"),
        attr("kernel_layout", "IHW"), attr("out_dtype", None, "str"),
    ),
    doc="The largest sum of a pixel of the window and the weight at its place (grey-scale dilation).",
    source=TVM_IMAGE.format("dilation2d"),
)  # fmt: skip
