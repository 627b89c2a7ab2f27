"""Defines gradient operators of layers: of pooling by windows, and of a convolution's weight.

avg_pool2d_grad:        gradient (N,C,H',W'), data (N,C,H,W) -> (N,C,H,W)
conv2d_backward_weight: gradient (N,O,H',W'), data (N,C,H,W) -> (O,I,kh,kw)
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from ...operator import Attrs, OpPattern, Relation, attr, define
from ..common._lazy import np, numeric, te
from ..common.layout_strings import checked_layout, laid_out, layout, logical_sizes
from ..common.numpy_meanings import Array, numpy_type
from ..common.relations import divide_dims, dtype_attr, is_multiple, same_dim, same_dtype, show_argument
from ..common.te_computes import compute_of
from ..conv.convolution import check_window, conv_attributes, spatial_padding, te_pad_zero, window_count, windows
from .pooling import POOL_ATTRIBUTES, window_views

if TYPE_CHECKING:
    from ....te.builder import Expr, Tensor

DOCUMENTATION = "https://tvm.apache.org/docs/v0.16.0/reference/api/python/relay/nn.html"


def _pool_relation(rel: Relation) -> None:
    attrs, name = rel.attrs, rel.operator.name
    check_window(rel, 2, "pool_size", "strides", "dilation")
    source = checked_layout(rel, "layout", "NCHW")
    target = checked_layout(rel, "out_layout", "NCHW", source.text)
    same_dtype(rel, 0, 1)
    sizes, gradient = logical_sizes(rel, 1, source), logical_sizes(rel, 0, target)
    before, after = spatial_padding(attrs.padding, 2) or ((), ())
    for n, axis in enumerate("HW"):
        window = (attrs.pool_size[n], attrs.strides[n], attrs.dilation[n], attrs.ceil_mode)
        sizes[axis] = window_count(sizes[axis], before[n], after[n], *window)
    if not all(same_dim(sizes[axis], gradient[axis]) for axis in sizes):
        wanted = tuple(sizes[axis] for axis in "NCHW")
        raise rel.fail(
            f"{name}: {show_argument(rel, 0)} must have the pooling's result's sizes {wanted} along NCHW", argument=0
        )
    rel.set_result(rel.tensor(1))


def _pool(is_max: bool) -> Any:
    def meaning(attrs: Attrs, gradient: Array, x: Array) -> Array:
        source, target = layout(attrs.layout), layout(attrs.out_layout or attrs.layout)
        data, given = source.to_logical(x, "NCHW"), target.to_logical(gradient, "NCHW")
        kernel: tuple[int, int] = attrs.pool_size
        if is_max:
            views = window_views(attrs, data, numeric.lowest(data.dtype)).reshape(*given.shape, prod(kernel))
            # Of elements inside only: padding equals the maximum of a window that is all minus infinity.
            inside = window_views(attrs, np.ones_like(data, bool), False).reshape(*given.shape, prod(kernel))
            largest = (views == views.max(-1, keepdims=True)) | (views != views)
            best = np.where((inside & largest).any(-1), (inside & largest).argmax(-1), prod(kernel))
            parts = [np.where(best == k, given, 0) for k in range(prod(kernel))]
        else:
            ones = np.ones((1, 1, *data.shape[2:]), np.int64)
            inside = np.maximum(window_views(attrs, ones, 0).sum((-2, -1)), 1)
            count = np.asarray(prod(kernel)) if attrs.count_include_pad else inside
            parts = [given / count.astype(given.dtype)] * prod(kernel)
        before, _ = spatial_padding(attrs.padding, 2) or ((), ())
        steps = [range(0, given.shape[2 + n] * attrs.strides[n], attrs.strides[n]) for n in range(2)]
        sizes: list[int] = []
        for n, size in enumerate(data.shape[2:]):
            sizes.append(max(steps[n][-1] + (kernel[n] - 1) * attrs.dilation[n] + 1, size + before[n]))
        result = np.zeros((*data.shape[:2], *sizes), np.promote_types(data.dtype, np.float32))
        for k, part in enumerate(parts):
            offsets = [o * d for o, d in zip(divmod(k, kernel[1]), attrs.dilation, strict=True)]
            rows, columns = (slice(o + s[0], o + s[-1] + 1, s.step) for o, s in zip(offsets, steps, strict=True))
            result[:, :, rows, columns] += part
        rows, columns = (slice(low, low + size) for low, size in zip(before, data.shape[2:], strict=True))
        return source.from_logical(result[:, :, rows, columns].astype(x.dtype), "NCHW")

    return meaning


def _te_pool(is_max: bool) -> Any:
    def compute(attrs: Attrs, xs: Sequence[Tensor], out: Any) -> list[Tensor]:
        gradient, x = xs
        source, target = layout(attrs.layout), layout(attrs.out_layout or attrs.layout)
        inputs, outputs = source.logical(x.shape), target.logical(gradient.shape)
        before, _ = spatial_padding(attrs.padding, 2) or ((), ())
        kernel, steps, dilation = attrs.pool_size, attrs.strides, attrs.dilation

        def axes(name: str) -> list[Any]:
            return [te.reduce_axis((0, k), name=f"{name}{a}") for a, k in zip("hw", kernel, strict=True)]

        def inside(places: Sequence[Any]) -> Any:
            bounds = [(p >= 0, p < inputs[a]) for p, a in zip(places, "HW", strict=True)]
            return te.all(*(b for pair in bounds for b in pair))

        best = None
        if is_max:
            (pooled,) = compute_of("nn.max_pool2d")(attrs, [x], out)
            r = axes("r")

            def first(*i: Expr) -> Any:
                at = target.logical_indices(i)
                places = [at[a] * steps[n] + r[n] * dilation[n] - before[n] for n, a in enumerate("HW")]
                element = x(*source.indices({"N": at["N"], "C": at["C"], "H": places[0], "W": places[1]}))
                largest = te.any(element.equal(pooled(*i)), te.not_equal(element, element))
                is_best = te.if_then_else(inside(places), largest, te.const(0, "bool"))
                number = (r[0] * kernel[1] + r[1]).astype("int32")
                return te.min(te.Select(is_best, number, te.const(prod(kernel), "int32")), axis=r)

            best = te.compute(gradient.shape, first, name="T_first_largest")

        def share(indices: Sequence[Any], at: dict[str, Any], number: Any) -> Expr:
            """Returns the share of a window's gradient that its element of that number receives."""
            value = gradient(*indices)
            if best is not None:
                return te.Select(best(*indices).equal(number), value, te.const(0, value.dtype))
            count = te.const(1, "int32")
            for n, axis in enumerate("HW"):
                if attrs.count_include_pad:
                    count = count * kernel[n]
                    continue
                start = at[axis] * steps[n] - before[n]
                low = te.max(te.floordiv(dilation[n] - 1 - start, dilation[n]), 0)
                high = te.min(te.floordiv(inputs[axis] - start + (dilation[n] - 1), dilation[n]), kernel[n])
                count = count * (high - low)
            return value / te.max(count, 1).astype(value.dtype)

        k = axes("k")

        def body(*i: Expr) -> Any:
            at = source.logical_indices(i)
            where: dict[str, Any] = {"N": at["N"], "C": at["C"]}
            fits: list[Any] = []
            for n, axis in enumerate("HW"):
                shifted = at[axis] + before[n] - k[n] * dilation[n]
                where[axis] = te.floordiv(shifted, steps[n])
                fits += [shifted >= 0, te.floormod(shifted, steps[n]).equal(0), where[axis] < outputs[axis]]
            value = share(target.indices(where), where, (k[0] * kernel[1] + k[1]).astype("int32"))
            return te.sum(te.if_then_else(te.all(*fits), value, te.const(0, x.dtype)), axis=k)

        return [te.compute(x.shape, body, name="T_pool_grad")]

    return compute


for _is_max in (True, False):
    _kind = "max" if _is_max else "avg"
    define(
        f"nn.{_kind}_pool2d_grad", ("out_grad", "data"), _pool_relation, OpPattern.INJECTIVE,
        numpy=_pool(_is_max), compute=_te_pool(_is_max),
        attributes=(*POOL_ATTRIBUTES[2], *(() if _is_max else (attr("count_include_pad", False),))),
        doc=f"The gradient of `nn.{_kind}_pool2d` to its data: "
        + ("all of a window's goes to its first largest element." if _is_max else "a window's is spread evenly."),
        source=DOCUMENTATION,
    )  # fmt: skip


def _weight_relation(rel: Relation) -> None:
    attrs, name = rel.attrs, rel.operator.name
    check_window(rel, 2, "strides", "dilation", "kernel_size")
    if attrs.kernel_size is None:
        raise rel.fail(f"{name}: kernel_size must be given, as two positive numbers")
    # The names are those of a convolution's attributes, here of gradient, data and weight, in this order.
    target = checked_layout(rel, "data_layout", "NCHW")
    source = checked_layout(rel, "kernel_layout", "NCHW")
    kernel = checked_layout(rel, "out_layout", "OIHW", "OIHW")
    gradient, data = logical_sizes(rel, 0, target), logical_sizes(rel, 1, source)
    same_dtype(rel, 0, 1)
    if not same_dim(gradient["N"], data["N"]):
        raise rel.fail(
            f"{name}: {show_argument(rel, 0)} and {show_argument(rel, 1)} must be of as many images", argument=0
        )
    channels, groups = data["C"], attrs.groups
    if groups < 1 or not all(is_multiple(c, groups) for c in (channels, gradient["C"])):
        raise rel.fail(
            f"{name}: groups={groups} must divide the channels of {show_argument(rel, 0)} and {show_argument(rel, 1)}"
        )
    before, after = spatial_padding(attrs.padding, 2) or ((), ())
    for n, axis in enumerate("HW"):
        window = (before[n], after[n], attrs.kernel_size[n], attrs.strides[n], attrs.dilation[n])
        places = window_count(data[axis], *window)
        if not same_dim(places, gradient[axis]):
            raise rel.fail(
                f"{name}: {show_argument(rel, 0)} has {gradient[axis]} elements along {axis}, the convolution's result has {places}",
                argument=0,
            )
    sizes = {"O": gradient["C"], "I": divide_dims(channels, groups)}
    sizes |= dict(zip("HW", attrs.kernel_size, strict=True))
    rel.set_result(laid_out(rel, sizes, kernel, dtype_attr(rel, "out_dtype", rel.tensor(0).element_type)))


def _weight(attrs: Attrs, gradient: Array, x: Array) -> Array:
    target, source = layout(attrs.data_layout), layout(attrs.kernel_layout)
    data, given = source.to_logical(x, "NCHW"), target.to_logical(gradient, "NCHW")
    dtype = numpy_type(attrs.out_dtype or gradient.dtype.name)
    wide = np.promote_types(dtype, np.float32)
    before, after = spatial_padding(attrs.padding, 2) or ((), ())
    padded = np.pad(data, [(0, 0), (0, 0), *zip(before, after, strict=True)])
    view = windows(padded, attrs.kernel_size, attrs.strides, attrs.dilation).astype(wide)
    groups = attrs.groups
    outer, inner = given.shape[1] // groups, data.shape[1] // groups
    parts = [
        np.einsum(
            "nohw,nihwyx->oiyx",
            given[:, g * outer : (g + 1) * outer].astype(wide),
            view[:, g * inner : (g + 1) * inner],
        )
        for g in range(groups)
    ]
    return layout(attrs.out_layout or "OIHW").from_logical(np.concatenate(parts).astype(dtype), "OIHW")


def _te_weight(attrs: Attrs, gradient: Tensor, x: Tensor) -> Tensor:
    target, source = layout(attrs.data_layout), layout(attrs.kernel_layout)
    kernel = layout(attrs.out_layout or "OIHW")
    dtype = attrs.out_dtype or gradient.dtype
    inputs, outputs = source.logical(x.shape), target.logical(gradient.shape)
    before, after = spatial_padding(attrs.padding, 2) or ((), ())
    padding = [[0] * len(source.dims) for _ in range(2)]
    for axis, low, high in zip("HW", before, after, strict=True):
        place = source.places(axis)[0]
        padding[0][place], padding[1][place] = low, high
    padded = te_pad_zero(x, padding[0], padding[1])
    groups: int = attrs.groups
    inner = inputs["C"] // groups if isinstance(inputs["C"], int) else te.floordiv(inputs["C"], groups)
    sizes = {"O": outputs["C"], "I": inner, **dict(zip("HW", attrs.kernel_size, strict=True))}
    over = {axis: te.reduce_axis((0, outputs[axis]), name=f"r{axis.lower()}") for axis in "NHW"}

    def body(*i: Expr) -> Any:
        at = kernel.logical_indices(i)
        channel = at["I"]
        if groups > 1:
            outer = outputs["C"] // groups if isinstance(outputs["C"], int) else te.floordiv(outputs["C"], groups)
            channel = channel + te.floordiv(at["O"], outer) * inner
        where = {"N": over["N"], "C": channel}
        for n, axis in enumerate("HW"):
            where[axis] = over[axis] * attrs.strides[n] + at[axis] * attrs.dilation[n]
        given = gradient(*target.indices({**over, "C": at["O"]}))
        return te.sum(given.astype(dtype) * padded(*source.indices(where)).astype(dtype), axis=list(over.values()))

    return te.compute(kernel.physical(sizes), body, name="T_conv2d_backward_weight")


define(
    "nn.conv2d_backward_weight", ("grad", "data"), _weight_relation, OpPattern.OUT_ELEMWISE_FUSABLE,
    numpy=_weight,
    compute=lambda attrs, xs, out: [_te_weight(attrs, *xs)],
    attributes=conv_attributes(2),
    doc="The gradient of `nn.conv2d` to its weight: `data_layout` is the gradient's, `kernel_layout` the data's, `out_layout` the weight's.",
    source=DOCUMENTATION,
)  # fmt: skip
