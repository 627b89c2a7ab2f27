"""Views by distances in memory: `as_strided`.

Tensors are row-major here, torch's may be laid out in any order of their axes: a view is taken of the elements as torch has them in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from ...common.open_sizes import WORLDS, Extent, computed, in_world, product
from ..node import FxNode
from ..registry import operator

MOST_ELEMENTS = 1 << 16
"""The places of larger views are computed, not kept as a constant."""


@operator("as_strided")
def as_strided(node: FxNode, x: SSAValue, size: Sequence[Any], stride: Sequence[Any], offset: Any = None) -> SSAValue:
    """Gathers elements by their places in memory.

    Raises Refused for a tensor that is itself a view with gaps, and for places beyond the tensor.
    """
    source = node.fx.args[0].meta["val"]
    memory = _in_memory_order(node, x, source)
    sizes = node.extents()
    strides = [node.extent_of(each) for each in node.fx.args[2]]
    start = _start(node, source)
    count = product(*node.builder.extents(x))
    if start == 0 and count == product(*sizes) and _is_compact(sizes, strides):
        return node.builder.reshape(memory, sizes if _is_fixed(sizes) else node.size_tensor(size))
    for world in range(2):  # The others have sizes that torch may have excluded.
        steps = (
            (in_world(length, world) - 1) * in_world(step, world) for length, step in zip(sizes, strides, strict=True)
        )
        last = in_world(start, world) + sum(steps)
        if min((in_world(each, world) for each in sizes), default=1) > 0 and not 0 <= last < in_world(count, world):
            raise node.refuse("its view has places beyond the tensor")
    flat = node.call("reshape", memory, newshape=[-1]) if node.rank(x) != 1 else memory
    if _is_fixed([*sizes, *strides, start]) and in_world(product(*sizes), 0) <= MOST_ELEMENTS:
        places = node.builder.array_constant(_fixed_places(sizes, strides, start))
    else:
        first = start if isinstance(start, int) else _computed_start(node, source, offset)
        places = _places(node, size, stride, first)
    return node.call("take", flat, places, axis=0)


def _in_memory_order(node: FxNode, x: SSAValue, source: Any) -> SSAValue:
    """Transposes a tensor to the order of its elements in torch's memory."""
    own = node.builder.extents(x)
    strides = [node.extent_of(each) for each in source.stride()]
    order = sorted(range(len(own)), key=lambda axis: -in_world(strides[axis], 0))
    # An axis of size 1 may have any stride.
    compact = _is_compact([own[axis] for axis in order], [strides[axis] for axis in order])
    if not compact or not isinstance(node.extent_of(source.storage_offset()), int):
        raise node.refuse("the tensor has gaps between its elements in memory")
    return x if order == sorted(order) else node.call("transpose", x, axes=order)


def _is_compact(sizes: Sequence[Extent], strides: Sequence[Extent]) -> bool:
    """Returns whether strides are row-major without gaps; those of axes of size 1 do not count."""
    expected: Extent = 1
    for length, step in reversed(list(zip(sizes, strides, strict=True))):
        if any(in_world(step, w) != in_world(expected, w) and in_world(length, w) != 1 for w in range(WORLDS)):
            return False
        expected = product(expected, length)
    return True


def _is_fixed(sizes: Sequence[Extent]) -> bool:
    return all(isinstance(each, int) for each in sizes)


def _start(node: FxNode, source: Any) -> Extent:
    """Returns the first place of a view among the tensor's own elements."""
    given = node.fx.args[3] if len(node.fx.args) > 3 else node.fx.kwargs.get("storage_offset")
    if given is None:
        return 0
    return computed(lambda a, b: a - b, node.extent_of(given), node.extent_of(source.storage_offset()))


def _fixed_places(sizes: Sequence[Any], strides: Sequence[Any], start: Any) -> Any:
    places = np.full(sizes, start, np.int64)
    for axis, (length, step) in enumerate(zip(sizes, strides, strict=True)):
        places += np.arange(length).reshape([-1 if each == axis else 1 for each in range(len(sizes))]) * step
    return places


def _computed_start(node: FxNode, source: Any, offset: SSAValue) -> SSAValue:
    return node.call("subtract", node.tensor(offset, "int64"), node.tensor(int(source.storage_offset()), "int64"))


def _places(node: FxNode, size: Sequence[Any], stride: Sequence[Any], start: Any) -> SSAValue:
    """Computes the places of a view: the sums of multiples of the strides."""
    b = node.builder
    found = node.tensor(start, "int64")
    for axis, (length, step) in enumerate(zip(size, stride, strict=True)):
        if isinstance(length, int):
            numbers = b.integers(list(range(length)))
        else:
            numbers = node.call("arange", b.constant(0, "int64"), length, b.constant(1, "int64"), dtype="int64")
        steps = node.call("multiply", numbers, node.tensor(step, "int64"))
        rest = len(size) - 1 - axis
        found = node.call("add", found, node.call("expand_dims", steps, axis=1, num_newaxis=rest) if rest else steps)
    return found
