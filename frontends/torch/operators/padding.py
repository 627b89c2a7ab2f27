"""Padding by what is in the tensor."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from ..node import FxNode
from ..registry import operator


def _padded(node: FxNode, x: SSAValue, padding: Sequence[int], mode: str) -> SSAValue:
    rank = node.rank(x)
    numbers = [node.number(each, "a width") for each in padding]
    if any(each < 0 for each in numbers):
        # Cutting off and reflecting in one: a gather along each axis.
        shape = node.static(x)
        for place in range(len(numbers) // 2):
            axis = rank - 1 - place
            before, after = numbers[2 * place : 2 * place + 2]
            edges, source = (max(0, before), max(0, after)), np.arange(shape[axis])
            places = np.pad(source, edges, "reflect" if mode == "reflect" else "edge")
            places = places[max(0, -before) : len(places) - max(0, -after)]
            x = node.call("take", x, node.builder.array_constant(places), axis=axis)
        return x
    widths = [[0, 0] for _ in range(rank)]
    for place in range(len(numbers) // 2):
        widths[rank - 1 - place] = numbers[2 * place : 2 * place + 2]
    return node.call("nn.pad", x, node.builder.constant(0, node.builder.dtype(x)), pad_width=widths, pad_mode=mode)


@operator("reflection_pad1d", "reflection_pad2d", "reflection_pad3d")
def reflection_pad(node: FxNode, x: SSAValue, padding: Sequence[int]) -> SSAValue:
    """Pads by the reflection about the edge."""
    return _padded(node, x, padding, "reflect")


@operator("replication_pad1d", "replication_pad2d", "replication_pad3d")
def replication_pad(node: FxNode, x: SSAValue, padding: Sequence[int]) -> SSAValue:
    """Pads by the edge's elements."""
    return _padded(node, x, padding, "edge")
