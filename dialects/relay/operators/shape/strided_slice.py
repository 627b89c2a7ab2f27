"""Defines slices by numbers.

strided_slice: data (5,6), begin=[1,0], end=[5,6], strides=[2,3] -> (2,2)
slice_like:    data (5,6), slice_like (2,3) -> (2,3)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from xdsl.ir import Attribute

from ....extents import MOST_EXTENT
from ...operator import Attrs, OpPattern, Relation, attr, define
from ..common._lazy import np, te
from ..common.numpy_meanings import Array
from ..common.relations import ANY, axes_of, shape_of, show_argument, tensor_type
from ..common.result_sizes import Requirement, ResultShapes
from ..common.sources import TVM
from ..common.te_computes import constant

if TYPE_CHECKING:
    from ....te.builder import Expr, Tensor

Bounds = tuple[int, int | None, int]
"""First index, end (None: as far as there are elements), step, as Python's slices take them before clamping."""


def _bounds(attrs: Attrs, rank: int) -> dict[int, Bounds]:
    """Returns the slice of each sliced axis."""
    axes = range(len(attrs.begin)) if attrs.axes is None else [a % rank for a in attrs.axes]
    strides = list(attrs.strides or ())
    result: dict[int, Bounds] = {}
    for place, axis in enumerate(axes):
        begin = attrs.begin[place] if place < len(attrs.begin) else 0
        end: int | None = attrs.end[place] if place < len(attrs.end) else None
        if attrs.slice_mode == "size":
            # The end is a number of elements, -1 all the rest; strides do not count.
            result[axis] = (begin, None if end is None or end < 0 else begin + end, 1)
        else:
            step = strides[place] if place < len(strides) else strides[0] if len(strides) == 1 else 1
            result[axis] = (begin, end, step)
    return result


def _steps(bounds: Bounds, size: int) -> range:
    """Returns the indices that a slice takes of `size` elements.

    Ends beyond the elements are clamped; -1 counts from the end, but with a negative step an end below -size means "to the
    first element".
    """
    begin, end, step = bounds
    return range(*slice(begin, end, step).indices(size))


def check_axes(rel: Relation, rank: int) -> None:
    """Raises on a mode that there is not, and on axes that a tensor of this rank does not have."""
    if rel.attrs.slice_mode not in ("end", "size"):
        raise rel.fail(f"{rel.operator.name}: slice_mode must be 'end' or 'size', not {rel.attrs.slice_mode!r}")
    if rel.attrs.axes is not None:
        axes_of(rel, rel.attrs.axes, rank, "axes")


def _check_slice(rel: Relation, rank: int) -> None:
    attrs = rel.attrs
    check_axes(rel, rank)
    count = rank if attrs.axes is None else len(attrs.axes)
    for name in ("begin", "end"):
        if len(attrs[name]) > count:
            raise rel.fail(
                f"{rel.operator.name}: {name}={list(attrs[name])} has more entries than the {count} axes sliced"
            )
    if attrs.strides is not None and 0 in attrs.strides:
        raise rel.fail(f"{rel.operator.name}: strides={list(attrs.strides)}: a stride must not be 0")


def _slice_relation(rel: Relation) -> None:
    data = rel.tensor(0)
    shape = list(shape_of(data))
    _check_slice(rel, len(shape))
    for axis, bounds in _bounds(rel.attrs, len(shape)).items():
        if shape[axis] != ANY:
            shape[axis] = len(_steps(bounds, shape[axis]))
        elif bounds[0] != 0 or bounds[1] is not None or bounds[2] != 1:
            shape[axis] = ANY
    rel.set_result(tensor_type(shape, data.element_type))


def slice_ranges(attrs: Attrs, shape: Sequence[int]) -> list[range]:
    """Returns the indices that a `strided_slice` takes along each axis of a tensor of this shape."""
    bounds = _bounds(attrs, len(shape))
    return [_steps(bounds[axis], size) if axis in bounds else range(size) for axis, size in enumerate(shape)]


def numpy_slice(attrs: Attrs, shape: Sequence[int]) -> tuple[Any, ...]:
    """Returns the slices that a `strided_slice` takes of an array of this shape."""
    taken: list[Any] = []
    for steps in slice_ranges(attrs, shape):
        # A slice, not a list of indices: the end of a descending one before the first element is None.
        taken.append(slice(steps.start, None if steps.stop < 0 else steps.stop, steps.step) if len(steps) else slice(0))
    return tuple(taken)


def _te_slice(attrs: Attrs, x: Tensor) -> Tensor:
    bounds = _bounds(attrs, len(x.shape))
    shape: list[Any] = []
    places: list[tuple[Any, int]] = []
    for axis, size in enumerate(x.shape):
        known = constant(size)
        if axis not in bounds:
            shape.append(size)
            places.append((0, 1))
        elif known is not None:
            steps = _steps(bounds[axis], known)
            shape.append(len(steps))
            places.append((steps.start, steps.step))
        else:
            first, extent, step = _symbolic(bounds[axis], size)
            shape.append(extent)
            places.append((first, step))

    def body(*i: Expr) -> Any:
        return x(*(first + index * step for (first, step), index in zip(places, i, strict=True)))

    return te.compute(shape, body, name="T_strided_slice")


def _symbolic(bounds: Bounds, size: Any) -> tuple[Any, Any, int]:
    """Returns the first index, element count and step of a slice of a size known only at run time."""
    # Beyond the greatest size a bound says no more than that size, and the dtype of sizes may not hold it.
    begin, end, step = (None if each is None else max(-MOST_EXTENT, min(each, MOST_EXTENT)) for each in bounds)
    assert step is not None, "a step is a number"
    low, high = (0, size) if step > 0 else (-1, size - 1)

    def clamped(index: int | None) -> Any:
        if index is None:
            return high if step > 0 else low
        return te.max(te.min(size + index if index < 0 else te.const(index, size.dtype), high), low)

    first, last = clamped(begin), clamped(end)
    distance = last - first if step > 0 else first - last
    return first, te.max(te.floordiv(distance - 1, abs(step)) + 1, 0), step


SLICE = (
    attr("begin", kind="ints"),
    attr("end", kind="ints"),
    attr("strides", None, "ints", printed=True),
    attr("slice_mode", "end"),
    attr("axes", None, "ints", printed=True),
)

define(
    "strided_slice", ("data",), _slice_relation, OpPattern.INJECTIVE,
    numpy=lambda attrs, x: np.asarray(x[numpy_slice(attrs, x.shape)], order="C"),
    compute=lambda attrs, xs, out: [_te_slice(attrs, xs[0])],
    attributes=SLICE,
    doc="The elements begin:end:strides along each axis (of `axes`); with slice_mode 'size', `end` counts elements.",
    source=TVM.format("strided_slice"),
)  # fmt: skip


def _sliced_axes(attrs: Attrs, rank: int) -> list[int]:
    return list(range(rank)) if not attrs.axes else [a % rank for a in attrs.axes]


def _slice_like_relation(rel: Relation) -> None:
    data, like = rel.tensor(0), rel.tensor(1)
    shape, target = list(shape_of(data)), shape_of(like)
    if rel.attrs.axes:
        axes = axes_of(rel, rel.attrs.axes, len(shape), "axes")
    elif len(shape) != len(target):
        raise rel.fail(
            f"slice_like: {show_argument(rel, 0)} and {show_argument(rel, 1)} differ in rank",
            "name the axes to slice with axes=[…]",
            argument=1,
        )
    else:
        axes = range(len(shape))
    for axis in axes:
        if axis >= len(target) or (ANY not in (shape[axis], target[axis]) and shape[axis] < target[axis]):
            raise rel.fail(
                f"slice_like: {show_argument(rel, 0)} has fewer elements along axis {axis} than {show_argument(rel, 1)}",
                argument=1,
            )
        shape[axis] = target[axis]
    rel.set_result(tensor_type(shape, data.element_type))


def _slice_like(attrs: Attrs, x: Array, like: Array) -> Array:
    axes = _sliced_axes(attrs, x.ndim)
    return np.asarray(x[tuple(slice(like.shape[a]) if a in axes else slice(None) for a in range(x.ndim))], order="C")


def _te_slice_like(attrs: Attrs, x: Tensor, like: Tensor) -> Tensor:
    axes = _sliced_axes(attrs, len(x.shape))
    return te.compute(
        [like.shape[a] if a in axes else d for a, d in enumerate(x.shape)], lambda *i: x(*i), name="T_slice_like"
    )


def _slice_like_extents(attrs: Attrs, xs: Sequence[Tensor], out: Attribute) -> ResultShapes:
    x, like = xs
    needed = [
        Requirement(
            "within",
            like.shape[axis],
            x.shape[axis],
            f"{{size}} elements are read along dimension {axis} of 'data', which has {{size}}",
        )
        for axis in sorted(_sliced_axes(attrs, len(x.shape)))
    ]
    return ResultShapes([_te_slice_like(attrs, x, like).shape], needed)


define(
    "slice_like", ("data", "slice_like"), _slice_like_relation, OpPattern.INJECTIVE,
    numpy=_slice_like,
    compute=lambda attrs, xs, out: [_te_slice_like(attrs, *xs)],
    extents=_slice_like_extents,
    attributes=(attr("axes", None, "ints"),),
    doc="The first elements along `axes` (all by default), as many as the second tensor has.",
    source=TVM.format("slice_like"),
)  # fmt: skip
