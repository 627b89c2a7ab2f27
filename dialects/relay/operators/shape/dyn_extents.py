"""Defines `extents` of shapes that arguments hold, as TVM's shape functions of `dyn` operators.

Numbers are int64.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from xdsl.ir import Attribute

from ...operator import Attrs, Extents
from ..common._lazy import te
from ..common.layout_strings import layout
from ..common.result_sizes import Requirement, ResultShapes, number, numbers, reshaped_to, same_elements, stretches_to
from ..common.te_computes import Dim
from ..indexing.te_scatter import te_bounds, te_nonzero, te_slice_of

if TYPE_CHECKING:
    from ....te.builder import Expr, Tensor


def _wide(dim: Dim) -> Expr:
    return te.const(dim, "int64") if isinstance(dim, int) else dim.astype("int64")


def reshaped(attrs: Attrs, xs: Sequence[Tensor], out: Attribute) -> ResultShapes:
    """Computes the sizes of `dyn.reshape`."""
    return reshaped_to(xs[0], numbers(xs[1]), attrs.allowzero)


def stretched(attrs: Attrs, xs: Sequence[Tensor], out: Attribute) -> ResultShapes:
    """Computes the sizes of `dyn.broadcast_to`."""
    shape = numbers(xs[1])
    return ResultShapes([shape], stretches_to(xs[0], shape))


def of_argument(index: int) -> Extents:
    """Returns `extents` of a shape that is the value of an argument."""
    return lambda attrs, xs, out: ResultShapes([numbers(xs[index])])


def largest(attrs: Attrs, xs: Sequence[Tensor], out: Attribute) -> ResultShapes:
    """Computes the sizes of `dyn.topk`: at most as many as there are; all for a number below 1."""
    x, k = xs
    axis: int = attrs.axis % len(x.shape)
    size = _wide(x.shape[axis])
    count = number(k, *[0] * len(k.shape))
    shape = [*x.shape[:axis], te.Select(count < 1, size, te.min(count, size)), *x.shape[axis + 1 :]]
    return ResultShapes([shape] * (2 if attrs.ret_type == "both" else 1))


def tiled(attrs: Attrs, xs: Sequence[Tensor], out: Attribute) -> ResultShapes:
    """Computes the sizes of `dyn.tile`."""
    x, times = xs[0], numbers(xs[1])
    rank = max(len(x.shape), len(times))
    shape: list[Any] = [1] * (rank - len(x.shape)) + list(x.shape)
    reps: list[Any] = [1] * (rank - len(times)) + times
    return ResultShapes([[_wide(dim) * _wide(count) for dim, count in zip(shape, reps, strict=True)]])


def one_hot(attrs: Attrs, xs: Sequence[Tensor], out: Attribute) -> ResultShapes:
    """Computes the sizes of `dyn.one_hot`."""
    shape = list(xs[0].shape)
    depth = xs[3]
    shape.insert(len(shape) if attrs.axis == -1 else attrs.axis % (len(shape) + 1), number(depth, *[0] * depth.ndim))
    return ResultShapes([shape])


def squeezed(attrs: Attrs, xs: Sequence[Tensor], out: Attribute) -> ResultShapes:
    """Computes the sizes of `dyn.squeeze`: the dimensions that are not named, in their order."""
    x, axes = xs[0], numbers(xs[1])
    rank = len(x.shape)
    shape: list[Any] = [te.const(0, "int64")] * (rank - len(axes))
    before: Any = te.const(0, "int64")
    for place, dim in enumerate(x.shape):
        stays: Any = te.const(1, "bool")
        for axis in axes:
            stays = te.all(stays, te.not_equal(te.floormod(axis, rank), place))
        shape = [te.Select(te.all(stays, te.equal(before, k)), _wide(dim), own) for k, own in enumerate(shape)]
        before = before + stays.astype("int64")
    return ResultShapes([shape], [same_elements(x, shape)])


def expanded(attrs: Attrs, xs: Sequence[Tensor], out: Attribute) -> ResultShapes:
    """Computes the sizes of `dyn.expand_dims`."""
    x, axis = xs
    rank, count = len(x.shape), cast("int", attrs.num_newaxis)
    place = te.floormod(number(axis, *[0] * len(axis.shape)), rank + 1)
    shape: list[Dim] = []
    for k in range(rank + count):
        before = _wide(x.shape[k] if k < rank else 1)
        behind = _wide(x.shape[k - count] if k >= count else 1)
        shape.append(te.Select(place > k, before, te.Select(place + count > k, te.const(1, "int64"), behind)))
    return ResultShapes([shape])


def sliced(attrs: Attrs, xs: Sequence[Tensor], out: Attribute) -> ResultShapes:
    """Computes the sizes of `dyn.strided_slice`."""
    x, bounds = xs[0], xs[1:4]
    shape: list[Any] = list(x.shape)
    for axis, (low, high, step) in te_bounds(len(shape), bounds, attrs.axes, attrs.slice_mode == "size").items():
        shape[axis] = te_slice_of(low, high, step, x.shape[axis])[2]
    return ResultShapes([shape], [] if attrs.slice_mode == "size" else te_nonzero(xs[3]))


def padded(attrs: Attrs, xs: Sequence[Tensor], out: Attribute) -> ResultShapes:
    """Computes the sizes of `dyn.nn.pad`."""
    x, widths = xs[:2]
    shape: list[Dim] = []
    needed: list[Requirement] = []
    for axis, dim in enumerate(x.shape):
        sides = [number(widths, axis, side) for side in range(2)]
        shape.append(_wide(dim) + sides[0] + sides[1])
        for side in sides:
            message = f"the padding of dimension {axis} must be {{size}} or more, not {{size}}"
            needed.append(Requirement("within", 0, side, message))
        if attrs.pad_mode != "constant":
            message = f"dimension {axis} of 'data' has no elements to pad with"
            needed.append(Requirement("within", te.min(shape[-1], 1), dim, message))
    return ResultShapes([shape], needed)


def resized(attrs: Attrs, xs: Sequence[Tensor], out: Attribute) -> ResultShapes:
    """Computes the sizes of `dyn.image.resize2d`."""
    x, size = xs[:2]
    of = layout(attrs.layout)
    return ResultShapes([of.physical({**of.logical(x.shape), "H": number(size, 0), "W": number(size, 1)})])


def upsampled(axes: str) -> Extents:
    """Computes the sizes of `dyn.nn.upsampling`, `dyn.nn.upsampling3d`."""

    def enlarged(size: Dim, scale: Tensor) -> Expr:
        return te.floor(_wide(size).astype("float64") * scale().astype("float64") + 0.5).astype("int64")

    def extents(attrs: Attrs, xs: Sequence[Tensor], out: Attribute) -> ResultShapes:
        of = layout(attrs.layout)
        sizes = of.logical(xs[0].shape)
        new = {axis: enlarged(sizes[axis], scale) for axis, scale in zip(axes, xs[1:], strict=True)}
        needed = [
            Requirement("within", 1, (scale() > 0).astype("int64"), f"scale_{axis.lower()} must be positive")
            for axis, scale in zip(axes, xs[1:], strict=True)
        ]
        return ResultShapes([of.physical({**sizes, **new})], needed)

    return extents


def scattered(attrs: Attrs, xs: Sequence[Tensor], out: Attribute) -> ResultShapes:
    """Computes the sizes of `dyn.sparse_to_dense`."""
    return ResultShapes([numbers(xs[3])])
