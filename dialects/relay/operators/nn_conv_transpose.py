"""Transposed convolutions: the gradient of a convolution with respect to its data, used to enlarge images."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..operator import Attrs, AttrSpec, Operator, OpPattern, Relation, attr, register
from .layout import checked_layout, laid_out, layout, logical_sizes
from .meanings import Array, matmul, numpy_type
from .nn_conv import SPATIAL, check_window, conv_attributes, spatial_padding
from .relations import ANY, dtype_attr, same_dim, show_argument
from .sources import TVM_NN

if TYPE_CHECKING:
    import numpy as np

    from ...te import builder as te
    from ...te.builder import Tensor
else:
    from ._lazy import np, te


def _grown(size: int, kernel: int, stride: int, dilation: int, padding: int, extra: int) -> int:
    if ANY in (size, kernel):
        return ANY
    return (size - 1) * stride + dilation * (kernel - 1) + 1 - padding + extra


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
        if groups < 1 or (sizes["C"] != ANY and sizes["C"] % groups):
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
        before, after = spatial_padding(attrs.padding, rank) or ((), ())
        extra = _output_padding(attrs, rank)
        result = {"N": sizes["N"], "C": ANY if weight["O"] == ANY else weight["O"] * groups}
        for n, a in enumerate(axes):
            result[a] = _grown(sizes[a], weight[a], attrs.strides[n], attrs.dilation[n], before[n] + after[n], extra[n])
        rel.set_result(laid_out(rel, result, result_layout, dtype_attr(rel, "out_dtype", data.element_type)))

    return relation


def _output_padding(attrs: Attrs, rank: int) -> tuple[int, ...]:
    given = tuple(attrs.output_padding)
    return given * rank if len(given) == 1 else given


def convolve_transposed(data: Array, weight: Array, attrs: Attrs, dtype: Any) -> Array:
    """The transposed convolution of data (N, C, …) by weight (I, O, …), accumulated in `dtype`."""
    groups, rank = attrs.groups, data.ndim - 2
    before, after = spatial_padding(attrs.padding, rank) or ((), ())
    extra = _output_padding(attrs, rank)
    kernel, places = weight.shape[2:], data.shape[2:]
    inner, outer = data.shape[1] // groups, weight.shape[1]
    # Everything that any element adds to, before the padding is cut off.
    full = [
        (p - 1) * s + d * (k - 1) + 1 + e
        for p, s, d, k, e in zip(places, attrs.strides, attrs.dilation, kernel, extra, strict=True)
    ]
    result = np.zeros((data.shape[0], groups * outer, *full), dtype)
    flat = np.moveaxis(data, 1, -1)
    for offset in np.ndindex(*kernel):
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
        result = convolve_transposed(data, weight, attrs, numpy_type(attrs.out_dtype or x.dtype.name))
        return layout(attrs.out_layout or attrs.data_layout).from_logical(result, "NC" + axes)

    return meaning


def _compute(rank: int) -> Any:
    axes = SPATIAL[rank]

    def compute(attrs: Attrs, xs: Sequence[Tensor], out: Any) -> list[Tensor]:
        x, w = xs
        data_layout, kernel_layout = layout(attrs.data_layout), layout(attrs.kernel_layout)
        out_layout = layout(attrs.out_layout or attrs.data_layout)
        dtype = attrs.out_dtype or x.dtype
        sizes, weights = data_layout.logical(x.shape), kernel_layout.logical(w.shape)
        before, after = spatial_padding(attrs.padding, rank) or ((), ())
        extra = _output_padding(attrs, rank)
        per_group = sizes["C"] // attrs.groups if isinstance(sizes["C"], int) else te.floordiv(sizes["C"], attrs.groups)
        result = {"N": sizes["N"], "C": weights["O"] * attrs.groups}
        for n, a in enumerate(axes):
            reach = (weights[a] - 1) * attrs.dilation[n] + (1 - before[n] - after[n] + extra[n])
            result[a] = (sizes[a] - 1) * attrs.strides[n] + reach
        rc = te.reduce_axis((0, per_group), name="dc")

        def product(
            data: Tensor, kernel: Callable[..., Any], at: dict[str, Any], data_at: dict[str, Any], taps: dict[str, Any]
        ) -> Any:
            """The sum over channels and taps of data, at its layout, times the kernel."""
            channel = rc if attrs.groups == 1 else te.floordiv(at["C"], weights["O"]) * per_group + rc
            out_channel = at["C"] if attrs.groups == 1 else te.floormod(at["C"], weights["O"])
            left = data(*data_layout.indices({"N": at["N"], "C": channel, **data_at}))
            right = kernel(*kernel_layout.indices({"I": channel, "O": out_channel, **taps}))
            return te.sum(left.astype(dtype) * right.astype(dtype), axis=[rc, *reduced.values()])

        name = f"conv{rank}d_transpose"
        fixed = [sizes[a] for a in axes] + [weights[a] for a in axes]
        if max(attrs.strides) > 1 and set(attrs.dilation) == {1} and all(isinstance(size, int) for size in fixed):
            # Elements whose places agree modulo the strides are made by the same taps of the kernel: a convolution
            # without strides for each phase, of every strides-th tap, then the phases side by side.
            s = dict(zip(axes, attrs.strides, strict=True))
            cut = dict(zip(axes, before, strict=True))
            count = {a: -(-weights[a] // s[a]) for a in axes}
            turns = {a: -(-result[a] // s[a]) for a in axes}
            # Place s*q + r takes from element q + (r + cut) // s - t what tap (r + cut) % s + s*t makes of it.
            moved = {a: cut[a] // s[a] - count[a] + 1 for a in axes}
            margin = {a: turns[a] + (s[a] - 1 + cut[a]) // s[a] - moved[a] for a in axes}
            reduced = {a: te.reduce_axis((0, count[a]), name=f"d{a.lower()}") for a in axes}

            def shifted(*i: Any) -> Any:
                at = data_layout.logical_indices(i)
                at = {**at, **{a: at[a] + moved[a] for a in axes}}
                inside = te.all(*(bound for a in axes for bound in (at[a] >= 0, at[a] < sizes[a])))
                return te.if_then_else(inside, x(*data_layout.indices(at)), te.const(0, x.dtype))

            def taps(*i: Any) -> Any:
                r, at = i[:rank], kernel_layout.logical_indices(i[rank:])
                at = {**at, **{a: te.floormod(r[n] + cut[a], s[a]) + at[a] * s[a] for n, a in enumerate(axes)}}
                if all(weights[a] % s[a] == 0 for a in axes):
                    return w(*kernel_layout.indices(at))
                inside = te.all(*(at[a] < weights[a] for a in axes))
                return te.if_then_else(inside, w(*kernel_layout.indices(at)), te.const(0, w.dtype))

            def phase(*i: Any) -> Any:
                r, at = i[:rank], out_layout.logical_indices(i[rank:])
                places = {
                    a: at[a] + (te.floordiv(r[n] + cut[a], s[a]) - moved[a]) - reduced[a] for n, a in enumerate(axes)
                }
                return product(data, lambda *k: kernel(*r, *k), at, places, dict(reduced))

            def joined(*i: Any) -> Any:
                at = out_layout.logical_indices(i)
                turn = {a: te.floordiv(at[a], s[a]) for a in axes}
                return phases(*(te.floormod(at[a], s[a]) for a in axes), *out_layout.indices({**at, **turn}))

            steps = tuple(s.values())
            data = te.compute(data_layout.physical({**sizes, **margin}), shifted, name="data_pad")
            kernel = te.compute((*steps, *kernel_layout.physical({**weights, **count})), taps, name="kernel_phases")
            phases = te.compute((*steps, *out_layout.physical({**result, **turns})), phase, name=f"{name}_phases")
            return [te.compute(out_layout.physical(result), joined, name=name)]

        # The data with its elements `strides` apart and zeros between and around: a convolution of it is what is wanted,
        # and one that the schedules of convolutions know.
        reduced = {a: te.reduce_axis((0, weights[a]), name=f"d{a.lower()}") for a in axes}
        spread = {**sizes, **{a: result[a] + (weights[a] - 1) * attrs.dilation[n] for n, a in enumerate(axes)}}

        def element(*i: Any) -> Any:
            at = data_layout.logical_indices(i)
            inside: list[Any] = []
            for n, a in enumerate(axes):
                reached = at[a] + (before[n] - (weights[a] - 1) * attrs.dilation[n])
                place = te.floordiv(reached, attrs.strides[n])
                inside += [place >= 0, place < sizes[a]]
                if attrs.strides[n] != 1:
                    inside.append(te.floormod(reached, attrs.strides[n]) == 0)
                at = {**at, a: place}
            return te.if_then_else(te.all(*inside), x(*data_layout.indices(at)), te.const(0, x.dtype))

        spread_data = te.compute(data_layout.physical(spread), element, name="data_dilate_pad")

        def body(*i: Any) -> Any:
            at = out_layout.logical_indices(i)
            places = {a: at[a] + (weights[a] - 1 - reduced[a]) * attrs.dilation[n] for n, a in enumerate(axes)}
            return product(spread_data, w, at, places, dict(reduced))

        return [te.compute(out_layout.physical(result), body, name=name)]

    return compute


def transposed_attributes(rank: int) -> tuple[AttrSpec, ...]:
    """A convolution's attributes and `output_padding`, in the order in which TVM writes those of this operator."""
    specs = conv_attributes(rank, attr("output_padding", (0,) * rank), kernel_layout=f"IO{SPATIAL[rank]}")
    first = ["channels", "kernel_size", "strides", "output_padding"]
    return tuple(sorted(specs, key=lambda spec: first.index(spec.name) if spec.name in first else len(first)))


def _register(rank: int) -> None:
    register(
        Operator(
            f"nn.conv{rank}d_transpose", ("data", "weight"), TRANSPOSED_RELATION[rank], OpPattern.OUT_ELEMWISE_FUSABLE,
            numpy=_meaning(rank), compute=_compute(rank),
            attributes=transposed_attributes(rank),
            doc=f"The transposed convolution over {rank} spatial ax{'i' if rank == 1 else 'e'}s; `output_padding` enlarges the result behind.",
            source=TVM_NN.format(f"conv{rank}d_transpose"),
        )
    )  # fmt: skip


TRANSPOSED_RELATION = {rank: _relation(rank) for rank in SPATIAL}
"""The type relation of a transposed convolution (data, weight, …), by the number of spatial axes."""

for _rank in SPATIAL:
    _register(_rank)
