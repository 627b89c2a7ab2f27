"""Defines TE computes of operators whose shape is an argument and known at run time.

A kernel's memory is planned before it runs: `static_shape` refuses dimensions that are known only at run time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import TupleType
from xdsl.ir import Attribute

from ...operator import Attrs, Compute
from ..common._lazy import te
from ..common.layout_strings import layout
from ..common.result_sizes import result_shape
from ..common.te_computes import compute_of, constant, divisor
from ..conv.convolution import SPATIAL
from ..image.resize import Crops, as_resize, te_resize
from ..indexing.te_scatter import te_sparse_to_dense, te_strided_slice
from ..sorting.te_sort import te_topk
from .reshape import te_reshape
from .transform import te_stretch

if TYPE_CHECKING:
    from ....te.builder import Expr, Tensor


def reshaped(attrs: Attrs, xs: Sequence[Tensor], out: Attribute) -> list[Tensor]:
    """Computes `dyn.reshape`, `dyn.squeeze` and `dyn.expand_dims`: the elements in another shape."""
    return [te_reshape(xs[0], result_shape(out))]


def stretched(attrs: Attrs, xs: Sequence[Tensor], out: Attribute) -> list[Tensor]:
    """Computes `dyn.broadcast_to`."""
    return [te_stretch(xs[0], result_shape(out))]


def largest(attrs: Attrs, xs: Sequence[Tensor], out: Attribute) -> list[Tensor]:
    """Computes `dyn.topk`."""
    shape = result_shape(out.types.data[0] if isinstance(out, TupleType) else out)
    axis: int = attrs.axis
    return te_topk(attrs, xs[0], shape[axis])


def tiled(attrs: Attrs, xs: Sequence[Tensor], out: Attribute) -> list[Tensor]:
    """Computes `dyn.tile`."""
    x, shape = xs[0], result_shape(out)

    def body(*i: Expr) -> Expr:
        own = i[len(shape) - len(x.shape) :]
        return x(*(te.floormod(index, divisor(dim)) for index, dim in zip(own, x.shape, strict=True)))

    return [te.compute(shape, body, name="T_tile")]


def filled(value: int, attrs: Attrs, out: Attribute) -> list[Tensor]:
    """Computes `dyn.zeros` and `dyn.ones`."""
    return [te.compute(result_shape(out), lambda *i: te.const(value, attrs.dtype or "float32"), name="T_full")]


def full(attrs: Attrs, xs: Sequence[Tensor], out: Attribute) -> list[Tensor]:
    """Computes `dyn.full`."""
    value = xs[0]
    return [te.compute(result_shape(out), lambda *i: value().astype(attrs.dtype or value.dtype), name="T_full")]


def one_hot(attrs: Attrs, xs: Sequence[Tensor], out: Attribute) -> Sequence[Tensor]:
    """Computes `dyn.one_hot`."""
    shape: list[Any] = result_shape(out)
    axis: int = attrs.axis
    return compute_of("one_hot")(Attrs({**attrs, "depth": shape[axis]}), xs[:3], out)


def strided_slice(attrs: Attrs, xs: Sequence[Tensor], out: Attribute) -> list[Tensor]:
    """Computes `dyn.strided_slice`."""
    return [te_strided_slice(xs[0], result_shape(out), xs[1:4], attrs.axes, attrs.slice_mode == "size")]


def padded(attrs: Attrs, xs: Sequence[Tensor], out: Attribute) -> list[Tensor]:
    """Computes `dyn.nn.pad`."""
    x, widths, value = xs

    def source(index: Expr, dim: Any) -> Expr:
        if attrs.pad_mode == "edge":
            return te.max(te.min(index, dim - 1), 0)
        # The reflection repeats: up the axis and down again.
        period = te.max(te.convert(dim) * 2 - 2, 1)
        place = te.floormod(index, period)
        return te.Select(place < dim, place, period - place)

    def body(*i: Expr) -> Expr:
        moved = [index - widths(axis, 0).astype("int32") for axis, index in enumerate(i)]
        if attrs.pad_mode != "constant":
            return x(*(source(index, dim) for index, dim in zip(moved, x.shape, strict=True)))
        inside: list[Expr] = []
        for index, dim in zip(moved, x.shape, strict=True):
            inside += [index >= 0, index < dim]
        return te.if_then_else(te.all(*inside), x(*moved), value().astype(x.dtype)) if inside else x()

    return [te.compute(result_shape(out), body, name="T_pad")]


def resized(attrs: Attrs, xs: Sequence[Tensor], out: Attribute) -> list[Tensor]:
    """Computes `dyn.image.resize2d`."""
    x, _, roi = xs
    of = layout(attrs.layout)
    sizes = of.logical(result_shape(out))
    given = range(4) if constant(roi.shape[0]) == 4 else ()
    crops = Crops(x.shape[of.places("N")[0]], lambda n: n, lambda n: [roi(k).astype("float32") for k in given])
    return [te_resize(x, of, "HW", [sizes["H"], sizes["W"]], attrs, attrs.out_dtype or x.dtype, "resize", crops)]


def upsampled(rank: int) -> Compute:
    """Computes `dyn.nn.upsampling`, `dyn.nn.upsampling3d`."""
    axes = SPATIAL[rank]

    def compute(attrs: Attrs, xs: Sequence[Tensor], out: Attribute) -> list[Tensor]:
        of = layout(attrs.layout)
        sizes = of.logical(result_shape(out))
        return [te_resize(xs[0], of, axes, [sizes[a] for a in axes], as_resize(attrs), xs[0].dtype, "upsampling")]

    return compute


def sparse_to_dense(attrs: Attrs, xs: Sequence[Tensor], out: Attribute) -> list[Tensor]:
    """Computes `dyn.sparse_to_dense`."""
    return [te_sparse_to_dense(result_shape(out), *xs[:3])]
