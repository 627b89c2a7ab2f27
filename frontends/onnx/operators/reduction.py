"""Converts ONNX operators that reduce over axes: ReduceSum and the others, ArgMax, ArgMin."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from xdsl.ir import SSAValue

from ..node import Node
from ..registry import operator

Step: TypeAlias = "Callable[[Node, SSAValue], SSAValue]"


def _same(node: Node, x: SSAValue) -> SSAValue:
    return x


def _call(name: str) -> Step:
    return lambda node, x: node.call(name, x)


def _square(node: Node, x: SSAValue) -> SSAValue:
    return node.call("multiply", x, x)


REDUCTIONS: dict[str, tuple[Step, str, Step]] = {
    "ReduceSum": (_same, "sum", _same),
    "ReduceMean": (_same, "mean", _same),
    "ReduceProd": (_same, "prod", _same),
    "ReduceMax": (_same, "max", _same),
    "ReduceMin": (_same, "min", _same),
    "ReduceL1": (_call("abs"), "sum", _same),
    "ReduceL2": (_square, "sum", _call("sqrt")),
    "ReduceSumSquare": (_square, "sum", _same),
    "ReduceLogSum": (_same, "sum", _call("log")),
}
"""What is computed of each element, the reduction, and what is computed of its result."""

IN_FLOAT64 = ("ReduceL2", "ReduceLogSum", "ReduceLogSumExp")
"""Operators that are computed in float64 where their input is of integers."""


@operator(*REDUCTIONS)
def reduction(node: Node) -> SSAValue:
    """Converts the reductions; `axes` is an attribute or an input, and may be left out for all axes."""
    before, name, after = REDUCTIONS[node.op_type]
    x, axes = _wide(node), reduced_axes(node)
    x = before(node, x)
    if axes is None or axes:
        x = node.call(name, x, axis=axes, keepdims=bool(node.attr("keepdims", 1)))
    return _narrow(node, after(node, x))


@operator("ReduceLogSumExp")
def log_sum_exp(node: Node) -> SSAValue:
    """Converts `ReduceLogSumExp`: log(sum(exp(x - m))) + m with m the largest element, 0 if infinite."""
    x, axes, keep = _wide(node), reduced_axes(node), bool(node.attr("keepdims", 1))
    if axes == []:
        return _narrow(node, x)
    largest = node.call("max", x, axis=axes, keepdims=True)
    largest = node.call("where", node.call("isinf", largest), node.scalar(0, x), largest)
    total = node.call("sum", node.call("exp", node.call("subtract", x, largest)), axis=axes, keepdims=keep)
    if not keep:
        # Its elements, without the dimensions of size 1.
        largest = node.call("sum", largest, axis=axes)
    return _narrow(node, node.call("add", node.call("log", total), largest))


def reduced_axes(node: Node) -> list[int] | None:
    """Returns the axes that a reduction is over; None for all, [] for none."""
    axes = node.integers(1, "the axes") if node.has(1) else node.ints("axes")
    if not axes:
        return [] if node.attr("noop_with_empty_axes", 0) or node.rank(0) == 0 else None
    return axes


def _wide(node: Node) -> SSAValue:
    dtype = node.dtype(0)
    if node.op_type in IN_FLOAT64 and not dtype.startswith(("float", "bfloat")):
        return node.call("cast", node[0], dtype="float64")
    return node[0]


def _narrow(node: Node, x: SSAValue) -> SSAValue:
    dtype = node.dtype(0)
    return x if node.builder.dtype(x) == dtype else node.call("cast", x, dtype=dtype)


@operator("ArgMax", "ArgMin")
def position(node: Node) -> SSAValue:
    """Converts `ArgMax` and `ArgMin`, whose results are int64."""
    found = node.call(
        node.op_type.lower(),
        node[0],
        axis=[node.axis(node.rank(0))],
        keepdims=bool(node.attr("keepdims", 1)),
        select_last_index=bool(node.attr("select_last_index", 0)),
    )
    return node.call("cast", found, dtype="int64")
