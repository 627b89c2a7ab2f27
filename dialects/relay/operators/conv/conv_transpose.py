"""Defines transposed convolutions: the gradient of a convolution by its data, used to enlarge images.

data (N,C,H,W), weight (C,O,kh,kw) -> (N,O,H',W')    H' = (H-1)*stride - padding + (kh-1)*dilation + 1 + output_padding
"""

from __future__ import annotations

from typing import Any

from ...operator import Attrs, AttrSpec, OpPattern, Relation, attr, define
from ..common._lazy import np
from ..common.layout_strings import checked_layout, laid_out, layout, logical_sizes
from ..common.numpy_meanings import Array, matmul, numpy_type
from ..common.relations import add_dims, at_most, dtype_attr, is_multiple, multiply_dims, same_dim, show_argument
from ..common.sources import TVM_NN
from ..common.te_computes import wide_dtype
from .convolution import SPATIAL, check_window, conv_attributes, must_have_taps, spatial_padding
from .te_conv_transpose import output_padding, transposed_compute


def _grown(size: int, kernel: int, stride: int, dilation: int, padding: int, extra: int) -> int:
    first, reach = multiply_dims(stride, add_dims(size, -1)), multiply_dims(dilation, add_dims(kernel, -1))
    return add_dims(first, reach, 1 - padding + extra)


def _relation(rank: int) -> Any:
    axes = SPATIAL[rank]

    def relation(rel: Relation) -> None:
        attrs, name = rel.attrs, rel.operator.name
        check_window(rel, rank, "strides", "dilation", "kernel_size")
        if len(attrs.output_padding) not in (1, rank):
            raise rel.fail(f"{name}: output_padding={list(attrs.output_padding)} must be 1 or {rank} numbers")
        data_layout = checked_layout(rel, "data_layout", "NC" + axes)
        kernel_layout = checked_layout(rel, "kernel_layout", "IO" + axes)
        result_layout = checked_layout(rel, "out_layout", "NC" + axes, data_layout.text)
        data, sizes = rel.tensor(0), logical_sizes(rel, 0, data_layout)
        groups = attrs.groups
        if groups < 1 or not is_multiple(sizes["C"], groups):
            raise rel.fail(
                f"{name}: groups={groups} does not divide the {sizes['C']} channels of {show_argument(rel, 0)}"
            )
        if attrs.channels is not None and attrs.kernel_size is not None:
            weight = {"I": sizes["C"], "O": attrs.channels // groups, **dict(zip(axes, attrs.kernel_size, strict=True))}
            dtype = data.element_type if rel.type_of(1) is None else rel.tensor(1).element_type
            rel.set_argument(1, laid_out(rel, weight, kernel_layout, dtype))
        else:
            weight = logical_sizes(rel, 1, kernel_layout)
            if not same_dim(weight["I"], sizes["C"]):
                raise rel.fail(
                    f"{name}: {show_argument(rel, 1)} takes {weight['I']} channels, {show_argument(rel, 0)} has {sizes['C']}",
                    argument=1,
                )
        must_have_taps(rel, 1, [weight[axis] for axis in axes])
        before, after = spatial_padding(attrs.padding, rank) or ((), ())
        extra = output_padding(attrs, rank)
        result = {"N": sizes["N"], "C": multiply_dims(weight["O"], groups)}
        for n, a in enumerate(axes):
            result[a] = _grown(sizes[a], weight[a], attrs.strides[n], attrs.dilation[n], before[n] + after[n], extra[n])
            # A `?` that is smaller than what the padding cuts off is reported in the call; other sizes by the result's type.
            at_most(0, result[a])
        rel.set_result(laid_out(rel, result, result_layout, dtype_attr(rel, "out_dtype", data.element_type)))

    return relation


def convolve_transposed(data: Array, weight: Array, attrs: Attrs, dtype: Any) -> Array:
    """Returns the transposed convolution of data (N, C, …) by weight (I, O, …), accumulated in `dtype`."""
    groups, rank = attrs.groups, data.ndim - 2
    before, after = spatial_padding(attrs.padding, rank) or ((), ())
    extra = output_padding(attrs, rank)
    kernel, places = weight.shape[2:], data.shape[2:]
    inner, outer = data.shape[1] // groups, weight.shape[1]
    # Everything that any element adds to, before the padding is cut off.
    full = [
        (p - 1) * s + d * (k - 1) + 1 + e
        for p, s, d, k, e in zip(places, attrs.strides, attrs.dilation, kernel, extra, strict=True)
    ]
    result = np.zeros((data.shape[0], groups * outer, *full), dtype)
    flat = np.moveaxis(data, 1, -1)
    for offset in np.ndindex(*kernel) if data.size else ():
        target = tuple(
            slice(o * d, o * d + (p - 1) * s + 1, s)
            for o, d, p, s in zip(offset, attrs.dilation, places, attrs.strides, strict=True)
        )
        for group in range(groups):
            source = flat[..., group * inner : (group + 1) * inner]
            part = matmul(source, weight[(slice(group * inner, (group + 1) * inner), slice(None), *offset)], dtype)
            result[(slice(None), slice(group * outer, (group + 1) * outer), *target)] += np.moveaxis(part, -1, 1)
    cut = tuple(slice(low, size - high) for low, high, size in zip(before, after, full, strict=True))
    return result[(slice(None), slice(None), *cut)]


def _meaning(rank: int) -> Any:
    axes = SPATIAL[rank]

    def meaning(attrs: Attrs, x: Array, w: Array) -> Array:
        data = layout(attrs.data_layout).to_logical(x, "NC" + axes)
        weight = layout(attrs.kernel_layout).to_logical(w, "IO" + axes)
        dtype = attrs.out_dtype or x.dtype.name
        result = convolve_transposed(data, weight, attrs, numpy_type(wide_dtype(dtype))).astype(numpy_type(dtype))
        return layout(attrs.out_layout or attrs.data_layout).from_logical(result, "NC" + axes)

    return meaning


def transposed_attributes(rank: int) -> tuple[AttrSpec, ...]:
    """Returns a convolution's attributes and `output_padding`, in the order in which TVM prints them."""
    specs = conv_attributes(rank, attr("output_padding", (0,) * rank), kernel_layout=f"IO{SPATIAL[rank]}")
    first = ["channels", "kernel_size", "strides", "output_padding"]
    return tuple(sorted(specs, key=lambda spec: first.index(spec.name) if spec.name in first else len(first)))


def _register(rank: int) -> None:
    define(
        f"nn.conv{rank}d_transpose", ("data", "weight"), TRANSPOSED_RELATION[rank], OpPattern.OUT_ELEMWISE_FUSABLE,
        numpy=_meaning(rank), compute=transposed_compute(rank),
        attributes=transposed_attributes(rank),
        doc=f"The transposed convolution over {rank} spatial ax{'i' if rank == 1 else 'e'}s; `output_padding` enlarges the result at its end.",
        source=TVM_NN.format(f"conv{rank}d_transpose"),
    )  # fmt: skip


TRANSPOSED_RELATION = {rank: _relation(rank) for rank in SPATIAL}
"""The type relation of a transposed convolution (data, weight, …), by the number of spatial axes."""

for _rank in SPATIAL:
    _register(_rank)
