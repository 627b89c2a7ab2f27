"""Slices tensors by numbers that may be computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from xdsl.ir import SSAValue

from ...dialects.extents import MOST_EXTENT
from ...support.text import counted
from .graph_builder import GraphBuilder
from .open_sizes import Extent, computed
from .refusal import Refused


def sliced(
    builder: GraphBuilder, x: SSAValue, axes: Sequence[int], begin: SSAValue, end: SSAValue, steps: SSAValue
) -> SSAValue:
    """Slices axes of a tensor by numbers that may be computed.

    `begin`, `end` and `steps` are vectors of a number for each axis; no dimension is larger than `MOST_EXTENT`, to which they are clamped.
    """
    known = [builder.elements(each) for each in (begin, end, steps)]
    starts, ends, strides = known
    if starts is None or ends is None or strides is None or not all(isinstance(step, int) for step in strides):
        return _slice_at_run_time(builder, x, axes, begin, end, steps)
    return static_slice(builder, x, axes, starts, ends, cast("list[int]", strides), (begin, end, steps))


def _slice_at_run_time(
    builder: GraphBuilder, x: SSAValue, axes: Sequence[int], begin: SSAValue, end: SSAValue, steps: SSAValue
) -> SSAValue:
    bounds = [
        builder.call(
            "clip", builder.call("cast", each, dtype="int64"), a_min=-float(MOST_EXTENT), a_max=float(MOST_EXTENT)
        )
        for each in (begin, end)
    ]
    result = builder.call("dyn.strided_slice", x, *bounds, builder.call("cast", steps, dtype="int64"), axes=list(axes))
    kept = [size if axis not in axes else builder.extents(result)[axis] for axis, size in enumerate(builder.extents(x))]
    return builder.sized(result, kept)


def static_slice(
    builder: GraphBuilder,
    x: SSAValue,
    axes: Sequence[int],
    starts: Sequence[Extent],
    ends: Sequence[Extent],
    steps: Sequence[int],
    bounds: tuple[SSAValue, SSAValue, SSAValue] | None = None,
) -> SSAValue:
    """Slices axes of a tensor by numbers that are known, or are sizes; `bounds` are these as tensors.

    Raises Refused for a step of 0, and where there are not as many numbers as axes.
    """
    if not len(axes) == len(starts) == len(ends) == len(steps):
        numbers = [
            counted(len(each), noun)
            for each, noun in ((axes, "axis"), (starts, "start"), (ends, "end"), (steps, "step"))
        ]
        raise Refused(f"{', '.join(numbers)}: there must be as many of each")
    if 0 in steps:
        raise Refused("a step of a slice must not be 0")
    sizes = builder.extents(x)
    # An end at the size of its axis, which is only known at run time, is any number beyond it.
    begins = [_bound(start) for start in starts]
    limits = [
        MOST_EXTENT if end == sizes[axis] and step > 0 else _bound(end)
        for axis, end, step in zip(axes, ends, steps, strict=True)
    ]
    result = list(sizes)
    for axis, start, end, step in zip(axes, begins, limits, steps, strict=True):
        result[axis] = computed(_slice_length(step), sizes[axis], start, end)
    if list(sizes) == result and all(step == 1 for step in steps):
        return x
    if bounds is None or all(isinstance(each, int) for each in (*begins, *limits)):
        value = builder.call(
            "strided_slice",
            x,
            begin=cast("list[int]", begins),
            end=cast("list[int]", limits),
            strides=list(steps),
            axes=list(axes),
        )
    else:
        value = _slice_at_run_time(builder, x, axes, *bounds)
    return builder.sized(value, result)


def _slice_length(step: int) -> Callable[[int, int, int], int]:
    return lambda size, low, high: len(range(*slice(low, high, step).indices(size)))


def _bound(bound: Extent) -> Extent:
    return max(-MOST_EXTENT, min(bound, MOST_EXTENT)) if isinstance(bound, int) else bound
