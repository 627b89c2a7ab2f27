"""Converts ONNX operators that reduce over axes: ReduceSum and the others, ArgMax, ArgMin."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from xdsl.ir import SSAValue

from ....dialects.array import numpy_dtype
from ....dialects.numeric import highest, lowest
from ..node import Node
from ..registry import operator

if TYPE_CHECKING:
    from numpy.typing import NDArray

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
    x, keep = before(node, x), bool(node.attr("keepdims", 1))
    if isinstance(axes, SSAValue):
        x = reduced_at_run_time(node, x, axes, name, keep)
    elif axes is None or axes:
        x = node.call(name, x, axis=axes, keepdims=keep)
    return _narrow(node, after(node, x))


@operator("ReduceLogSumExp")
def log_sum_exp(node: Node) -> SSAValue:
    """Converts `ReduceLogSumExp`: log(sum(exp(x - m))) + m with m the largest element, 0 if infinite."""
    x, axes, keep = _wide(node), reduced_axes(node), bool(node.attr("keepdims", 1))
    if axes == []:
        return _narrow(node, x)

    def reduced(name: str, x: SSAValue, keep: bool) -> SSAValue:
        if isinstance(axes, SSAValue):
            return reduced_at_run_time(node, x, axes, name, keep)
        return node.call(name, x, axis=axes, keepdims=keep)

    largest = reduced("max", x, True)
    largest = node.call("where", node.call("isinf", largest), node.scalar(0, x), largest)
    total = reduced("sum", node.call("exp", node.call("subtract", x, largest)), keep)
    if not keep:
        largest = node.builder.reshape(largest, node.builder.shape_tensor(total))
    return _narrow(node, node.call("add", node.call("log", total), largest))


def reduced_axes(node: Node) -> list[int] | SSAValue | None:
    """Returns the axes that a reduction is over; None for all, [] for none, a tensor if not constant."""
    axes = node.ints("axes")
    if node.has(1):
        found = node.builder.array(node[1])
        if found is None and node.builder.static_shape(node[1]) != (0,):
            return node[1]
        axes = [] if found is None else [int(axis) for axis in found.reshape(-1)]
    if not axes:
        return [] if node.attr("noop_with_empty_axes", 0) or node.rank(0) == 0 else None
    return axes


SCATTERED = {"sum": ("add", 0.0), "mean": ("add", 0.0), "prod": ("mul", 1.0), "max": ("max", 0.0), "min": ("min", 0.0)}
"""What `scatter_elements` does for a reduction, and what it begins with; a maximum begins with the least number."""


def reduced_at_run_time(node: Node, x: SSAValue, axes: SSAValue, name: str, keep: bool) -> SSAValue:
    """Returns a reduction over axes that are computed at run time; their number must be known.

    Each element is combined with an element of the result, whose place is computed with strides that are 0 along reduced axes:

        x (2,3,4), axes [1]  →  strides [4, 0, 1] of the result (2,1,4), places [0, 1, 2, 3, 0, 1, …, 7]
    """
    builder, call = node.builder, node.call
    count, rank, dtype = builder.static_shape(axes), builder.rank(x), builder.dtype(x)
    if count is None:
        raise node.refuse("the number of axes must be known, not open")
    if not rank:
        return x
    wide = {"float16": "float32", "bfloat16": "float32", "bool": "uint8"}.get(dtype, dtype)
    data = x if wide == dtype else call("cast", x, dtype=wide)
    one = builder.integers(1)
    axes = builder.reshape(call("cast", axes, dtype="int64"), [1, prod(count)])
    axes = call("where", call("less", axes, builder.integers(0)), call("add", axes, builder.integers(rank)), axes)
    places = builder.integers([[axis] for axis in range(rank)])
    is_reduced = call("any", call("equal", places, axes), axis=[1])
    sizes = builder.shape_tensor(x)
    kept = call("where", is_reduced, one, sizes)
    strides = call("reverse", call("cumprod", call("reverse", kept, axis=0), axis=0, exclusive=True), axis=0)
    strides = call("where", is_reduced, builder.integers(0), strides)
    place: SSAValue | None = None
    for axis in range(rank):
        steps = call("arange", builder.integers(0), _element(node, sizes, axis), one, dtype="int64")
        term = call("multiply", steps, _element(node, strides, axis))
        if axis < rank - 1:
            term = call("expand_dims", term, axis=1, num_newaxis=rank - 1 - axis)
        place = term if place is None else call("add", place, term)
    assert place is not None
    scatter, start = SCATTERED[name]
    begin = builder.array_constant(_start(name, wide, start))
    begin = call("dyn.full", begin, call("prod", kept, axis=[0], keepdims=True), dtype=wide)
    found = call(
        "scatter_elements",
        begin,
        call("reshape", place, newshape=[-1]),
        call("reshape", data, newshape=[-1]),
        axis=0,
        reduction=scatter,
    )
    if name == "mean":
        number = call("prod", call("where", is_reduced, sizes, one), axis=[0])
        found = call("divide", found, call("cast", number, dtype=wide))
    if not keep:
        order = call("argsort", call("cast", is_reduced, dtype="int32"), axis=0, dtype="int64")
        kept = call(
            "take", sizes, call("strided_slice", order, begin=[0], end=[rank - prod(count)], strides=[1]), axis=0
        )
    found = builder.reshape(found, kept)
    return found if wide == dtype else call("cast", found, dtype=dtype)


def _element(node: Node, x: SSAValue, index: int) -> SSAValue:
    return node.call("take", x, node.builder.integers(index), axis=0)


def _start(name: str, dtype: str, start: float) -> NDArray[Any]:
    """Returns what a reduction of no elements is."""
    kind = numpy_dtype(dtype)
    if name in ("max", "min"):
        return np.asarray((lowest if name == "max" else highest)(kind))
    return np.asarray(start).astype(kind)


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
        axis=[node.axis(node.rank(0))] if node.rank(0) else None,
        keepdims=bool(node.attr("keepdims", 1)),
        select_last_index=bool(node.attr("select_last_index", 0)),
    )
    return node.call("cast", found, dtype="int64")
