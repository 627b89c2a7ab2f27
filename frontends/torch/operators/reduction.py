"""Sums, extremes, means and variances over axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.ir import SSAValue

from ..node import FxNode
from ..registry import operator


def over(node: FxNode, name: str, x: SSAValue, dims: Sequence[int] | int | None, keepdim: bool = False) -> SSAValue:
    """Reduces over axes; none or an empty list are all."""
    rank = node.rank(x)
    if rank == 0:
        return x
    return node.call(name, x, axis=node.axes(dims, rank), keepdims=keepdim)


@operator("sum")
def total(
    node: FxNode, x: SSAValue, dims: Sequence[int] | int | None = None, keepdim: bool = False, *_: Any
) -> SSAValue:
    """Adds over axes."""
    return over(node, "sum", node.cast(x, node.dtype()), dims, bool(keepdim))


@operator("mean")
def mean(
    node: FxNode, x: SSAValue, dims: Sequence[int] | int | None = None, keepdim: int | None = False, *_: Any
) -> SSAValue:
    """Averages over axes; a mean over an image is a global pooling."""
    if node.overload != "dim":
        dims, keepdim = None, False
    x = node.cast(x, node.dtype())
    return over(node, "mean", x, dims, bool(keepdim))


@operator("amax", "amin")
def extreme(node: FxNode, x: SSAValue, dims: Sequence[int] | int | None = None, keepdim: bool = False) -> SSAValue:
    """Returns the largest or smallest element over axes."""
    if node.builder.dtype(x) == "bool":
        return over(node, "any" if node.name == "amax" else "all", x, dims, keepdim)
    return over(node, node.name.removeprefix("a"), x, dims, keepdim)


@operator("any", "all")
def truth(node: FxNode, x: SSAValue, dims: Sequence[int] | int | None = None, keepdim: bool = False) -> SSAValue:
    """Returns whether some element, or each, is not 0."""
    return node.cast(over(node, node.name, node.cast(x, "bool"), dims, keepdim), node.dtype())


@operator("prod")
def prod(
    node: FxNode, x: SSAValue, dims: Sequence[int] | int | None = None, keepdim: int | None = False, *_: Any
) -> SSAValue:
    """Multiplies over axes."""
    if node.overload != "dim_int":
        dims, keepdim = None, False
    return over(node, "prod", node.cast(x, node.dtype()), dims, bool(keepdim))


@operator("argmax", "argmin")
def position(node: FxNode, x: SSAValue, dim: int | None = None, keepdim: bool = False) -> SSAValue:
    """Returns the position of the largest or smallest element."""
    if node.rank(x) == 0:
        return node.builder.constant(0, "int64")
    if node.builder.dtype(x) == "bool":
        x = node.cast(x, "int8")
    return node.cast(over(node, node.name, x, dim, keepdim), "int64")


@operator("max", "min")
def extreme_with_position(
    node: FxNode, x: SSAValue, dim: SSAValue | int | None = None, keepdim: bool = False
) -> SSAValue | list[SSAValue]:
    """Returns the extreme over an axis and its position; without an axis the element alone.

    `max.other` and `min.other` compare two tensors.
    """
    if isinstance(dim, SSAValue):
        return node.call(f"{node.name}imum", node.cast(x, node.dtype()), node.cast(dim, node.dtype()))
    if dim is None:
        return over(node, node.name, x, None)
    if node.builder.dtype(x) == "bool":
        value = over(node, "any" if node.name == "max" else "all", x, dim, keepdim)
        x = node.cast(x, "int8")
    else:
        value = over(node, node.name, x, dim, keepdim)
    if node.rank(x) == 0:
        return [value, node.builder.constant(0, "int64")]
    return [value, node.cast(over(node, f"arg{node.name}", x, dim, keepdim), "int64")]


def moments(node: FxNode, x: SSAValue, dims: Sequence[int] | int | None) -> tuple[SSAValue, SSAValue]:
    """Returns mean and biased variance over axes, which are kept."""
    average = over(node, "mean", x, dims, True)
    return average, node.call("variance", x, average, axis=node.axes(dims, node.rank(x)), keepdims=True)


@operator("var")
def var(
    node: FxNode, x: SSAValue, dims: Sequence[int] | int | None = None, correction: Any = None, keepdim: bool = False
) -> SSAValue:
    """Returns the sum of squares over axes, divided by the number of elements less `correction`."""
    if not node.overload:  # Its one argument says whether to divide by one less.
        dims, correction = None, dims
    if correction is None or isinstance(correction, bool):
        correction = 1 if correction is None else int(correction)
    dtype = node.dtype()
    x = node.wide(node.cast(x, dtype))
    own = node.builder.dtype(x)
    rank = node.rank(x)
    distance = node.call("subtract", x, over(node, "mean", x, dims, True)) if rank else node.call("subtract", x, x)
    squares = over(node, "sum", node.call("multiply", distance, distance), dims, keepdim)
    count: Any = 1
    for axis in node.axes(dims, rank):
        size = node.size_of(x, axis)
        if isinstance(size, int) and isinstance(count, int):
            count *= size
        else:
            count = node.call("multiply", node.tensor(count, "int64"), node.tensor(size, "int64"))
    if isinstance(count, int):
        divisor = node.builder.constant(max(0, count - correction), own)
    else:
        divisor = node.call("subtract", node.cast(count, own), node.builder.constant(correction, own))
        divisor = node.call("maximum", divisor, node.builder.constant(0, own))
    return node.cast(node.call("divide", squares, divisor), dtype)


@operator("cumsum")
def cumsum(node: FxNode, x: SSAValue, dim: int, *_: Any) -> SSAValue:
    """Returns running sums."""
    x = node.cast(x, node.dtype())
    return x if node.rank(x) == 0 else node.call("cumsum", x, axis=dim % node.rank(x), dtype=node.dtype())
