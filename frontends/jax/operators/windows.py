"""Reductions of windows: pooling and running sums."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from math import prod

from xdsl.ir import SSAValue

from ...common.open_sizes import product
from ...common.refusal import Refused
from ..node import HloNode
from ..registry import operator
from .reduction import COMBINES, combination, combined, neutral
from .shape import padded

MOST_SLICES = 256
"""Windows of more elements are not reduced slice by slice."""


@operator("reduce_window")
def reduce_window(node: HloNode) -> SSAValue:
    """Reduces each window of a tensor."""
    if len(node.given) != 2:
        raise Refused("windows of several tensors at once cannot be reduced here")
    x, start = node.operands
    b = node.builder
    rank, dtype = b.rank(x), b.dtype(x)
    name = combination(node, node.op.regions[0].block, dtype)
    window = node.ints("window_dimensions")
    strides, base, dilation = (
        node.ints(each, [1] * rank) for each in ("window_strides", "base_dilations", "window_dilations")
    )
    flat = node.ints("padding", [0] * (2 * rank))
    low, high = flat[::2], flat[1::2]
    found = None
    if strides == base == dilation == [1] * rank:
        found = _running(node, name, x, window, low, high)
    if found is None:
        rest = neutral(name, dtype)
        if any(step > 1 for step in base):
            none = [0] * rank
            x = padded(node, x, node.constant(rest, dtype), none, none, [step - 1 for step in base])
        found = _pooled(node, name, x, window, strides, dilation, low, high)
        if found is None:
            x = padded(node, x, node.constant(rest, dtype), low, high, [0] * rank)
            found = _gathered(node, name, x, window, strides, dilation)
    return combined(node, name, found, start)


def _running(
    node: HloNode, name: str, x: SSAValue, window: Sequence[int], low: Sequence[int], high: Sequence[int]
) -> SSAValue | None:
    """Returns running sums, products or extremes, of windows that reach from one end; None for others."""
    axes = [axis for axis, size in enumerate(window) if size > 1]
    if len(axes) != 1:
        return None
    axis, size = axes[0], window[axes[0]]
    sides = low[axis], high[axis]
    is_other = any(low[each] or high[each] for each in range(len(window)) if each != axis)
    if node.builder.extents(x)[axis] != size or sorted(sides) != [0, size - 1] or is_other:
        return None
    if sides[0] == 0:
        x = node.call("reverse", x, axis=axis)
    if name in ("add", "multiply"):
        dtype = node.builder.dtype(x)
        x = node.call("cumsum" if name == "add" else "cumprod", x, axis=axis, dtype=dtype)
    else:
        x = _running_extreme(node, name, x, axis, size)
    return node.call("reverse", x, axis=axis) if sides[0] == 0 else x


def _running_extreme(node: HloNode, name: str, x: SSAValue, axis: int, size: int) -> SSAValue:
    """Returns running extremes: each element is combined with the one 1, 2, 4, … places before."""
    step = 1
    while step < size:
        first, later, before = (
            node.call("strided_slice", x, begin=[begin], end=[end], strides=[1], axes=[axis])
            for begin, end in ((0, step), (step, size), (0, size - step))
        )
        both = node.call(COMBINES[name], later, before)
        x = node.call("concatenate", node.builder.tuple([first, both]), axis=axis)
        step *= 2
    return x


def _pooled(
    node: HloNode, name: str, x: SSAValue, window: Sequence[int], strides: Sequence[int], dilation: Sequence[int],
    low: Sequence[int], high: Sequence[int],
) -> SSAValue | None:  # fmt: skip
    """Pools floats by maxima, or by means times the number; returns None for other reductions."""
    b = node.builder
    dtype = b.dtype(x)
    is_known = dtype in ("float16", "float32", "float64", "bfloat16") and name in ("maximum", "add")
    if not is_known or min([*low, *high]) < 0:
        return None
    rank = b.rank(x)
    spatial = [axis for axis in range(rank) if (window[axis], strides[axis], low[axis], high[axis]) != (1, 1, 0, 0)]
    if not 1 <= len(spatial) <= 3:
        return None
    count = len(spatial)
    letters = "DHW"[3 - count :]
    size, steps, spread, before, after = (
        [values[axis] for axis in spatial] for values in (window, strides, dilation, low, high)
    )
    # Maxima with wide padding are those of slices of a padded copy.
    if name == "maximum" and any(2 * width >= each for width, each in zip(before, size, strict=True)):
        return None
    others = [axis for axis in range(rank) if axis not in spatial]
    own = b.extents(x)
    order = [*others, *spatial]
    is_image = rank == count + 2 and spatial in (list(range(2, rank)), list(range(1, rank - 1)))
    if is_image:
        layout = f"NC{letters}" if spatial[0] == 2 else f"N{letters}C"
    else:
        layout = f"NC{letters}"
        x = node.transposed(x, order)
        x = node.reshaped(x, [product(*(own[axis] for axis in others)), 1, *(own[axis] for axis in spatial)])
    operator_name = f"nn.{'max' if name == 'maximum' else 'avg'}_pool{count}d"
    attributes = {} if name == "maximum" else {"count_include_pad": True}
    found = node.call(
        operator_name, x, pool_size=size, strides=steps, dilation=spread, padding=[*before, *after], layout=layout, **attributes
    )  # fmt: skip
    if name == "add":
        found = node.call("multiply", found, node.constant(prod(size), dtype))
    if is_image:
        return found
    found = node.reshaped(found, [*(own[axis] for axis in others), *b.extents(found)[2:]])
    return node.transposed(found, [order.index(axis) for axis in range(rank)])


def _gathered(
    node: HloNode, name: str, x: SSAValue, window: Sequence[int], strides: Sequence[int], dilation: Sequence[int]
) -> SSAValue:
    """Combines slices, one for each place in the window."""
    shape = node.static(x)
    if prod(window) > MOST_SLICES:
        raise Refused(f"its windows have more than {MOST_SLICES} elements")
    reach = [(size - 1) * step for size, step in zip(window, dilation, strict=True)]
    found: SSAValue | None = None
    for place in itertools.product(*map(range, window)):
        begins = [at * step for at, step in zip(place, dilation, strict=True)]
        ends = [begin + full - far for begin, full, far in zip(begins, shape, reach, strict=True)]
        part = node.call("strided_slice", x, begin=begins, end=ends, strides=list(strides))
        found = part if found is None else node.call(COMBINES[name], found, part)
    assert found is not None
    return found
