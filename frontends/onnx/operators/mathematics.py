"""Converts ONNX operators of arithmetic that take more than a rule: Clip, Softmax, CumSum, Det."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from xdsl.ir import SSAValue

from ...common.graph_builder import GraphBuilder
from ..node import Node
from ..registry import operator
from ..values import Value

MOST_ROWS = 64
"""Determinants of larger matrices are refused: their elimination is written out row by row."""


# Broadcasting ------------------------------------------------------------------------------------------------------------


@operator("Add", "And", "Div", "Equal", "Greater", "Less", "Mul", "Or", "Pow", "PRelu", "Sub", "Xor")
def before_opset_7(node: Node) -> Sequence[Value | None]:
    """Converts operators of two tensors before opset 7, which align them at `axis`.

    x (2,3,4,5), y (3,4), axis=1 -> x, y (3,4,1)
    """
    y, rank = node[1], node.rank(0)
    if node.op_type == "PRelu":
        axis = 1 if node.rank(1) and node.builder.extents(y) != (1,) else rank
    else:
        axis = int(node.attr("axis", rank - node.rank(1))) % max(rank, 1)
    missing = rank - axis - node.rank(1)
    if missing > 0:
        y = node.call("expand_dims", y, axis=-1, num_newaxis=missing)
    return node.importer.convert_values(replace(node, inputs=[node[0], y], opset=7))


@operator("Max", "Min", "Sum", "Mean")
def fold(node: Node) -> SSAValue:
    """Converts operators of any number of tensors, two at a time."""
    first, *rest = node.tensors()
    found = first
    for each in rest:
        found = node.call(_BINARY[node.op_type], found, each)
    if node.op_type == "Mean":
        found = node.call("divide", found, node.scalar(len(rest) + 1, found))
    return found


_BINARY = {"Max": "maximum", "Min": "minimum", "Sum": "add", "Mean": "add"}


@operator("Clip")
def clip(node: Node) -> SSAValue:
    """Converts `Clip` from opset 11 on: limits are inputs; of crossed ones the upper one counts."""
    x, low, high = node[0], node.tensor(1), node.tensor(2)
    least, most = (None if each is None else node.builder.array(each) for each in (low, high))
    if node.dtype(0) == "float32" and least is not None and most is not None and least.reshape(()) <= most.reshape(()):
        return node.call("clip", x, a_min=float(least.reshape(())), a_max=float(most.reshape(())))
    if low is not None:
        x = node.call("maximum", x, node.builder.reshape(low, []))
    return x if high is None else node.call("minimum", x, node.builder.reshape(high, []))


@operator("Shrink")
def shrink(node: Node) -> SSAValue:
    """Converts `Shrink` of integers, which are compared and moved as float32."""
    wide = replace(node, inputs=[node.call("cast", node[0], dtype="float32")])
    (found,) = node.importer.convert_values(wide)
    assert isinstance(found, SSAValue)
    return node.call("cast", found, dtype=node.dtype(0))


# Softmax -----------------------------------------------------------------------------------------------------------------


@operator("Softmax", "LogSoftmax", "Hardmax")
def softmax_of_rows(node: Node) -> SSAValue:
    """Converts the forms before opset 13: the dimensions from `axis` on are one row."""
    rank = node.rank(0)
    axis = node.axis(rank) if node.attr("axis") != rank else rank
    rows = flattened(node.builder, node[0], axis)
    return node.builder.reshape(_softmax(node, rows, 1), node.builder.shape_tensor(node[0]))


@operator("Hardmax", since=13)
def hardmax(node: Node) -> SSAValue:
    """Converts `Hardmax`: 1 at the first largest element along an axis, 0 elsewhere."""
    return _softmax(node, node[0], node.axis(node.rank(0)))


def _softmax(node: Node, x: SSAValue, axis: int) -> SSAValue:
    if node.op_type != "Hardmax":
        return node.call("nn.softmax" if node.op_type == "Softmax" else "nn.log_softmax", x, axis=axis)
    builder = node.builder
    largest = node.call("argmax", x, axis=[axis], keepdims=True)
    limit = builder.reshape(
        node.call("strided_slice", builder.shape_tensor(x), begin=[axis], end=[axis + 1], strides=[1]), []
    )
    size = builder.extents(x)[axis]
    if isinstance(size, int):
        places = builder.array_constant(np.arange(size, dtype=np.int32))
    else:
        places = node.call("arange", builder.integers(0), limit, builder.integers(1), dtype="int32")
    places = builder.call("expand_dims", places, axis=1, num_newaxis=builder.rank(x) - 1 - axis)
    return node.call("cast", node.call("equal", places, largest), dtype=builder.dtype(x))


def flattened(builder: GraphBuilder, x: SSAValue, axis: int) -> SSAValue:
    """Returns a tensor as a matrix: the dimensions before `axis` are one, those from it on the other.

    x (2,3,4,5), axis=1 -> (2,60)
    """
    sizes, rank = builder.shape_tensor(x), builder.rank(x)
    parts = [
        builder.call("prod", builder.call("strided_slice", sizes, begin=[begin], end=[end], strides=[1]), keepdims=True)
        if end > begin
        else builder.integers([1])
        for begin, end in ((0, axis), (axis, rank))
    ]
    return builder.reshape(x, builder.call("concatenate", builder.tuple(parts), axis=0))


@operator("LpNormalization")
def lp_normalization(node: Node) -> SSAValue:
    """Converts `LpNormalization`: a tensor divided by its norm along an axis; zeros stay zeros."""
    x, axis, p = node[0], node.axis(node.rank(0)), int(node.attr("p", 2))
    zero = node.scalar(0, x)
    if p == 1:
        norm = node.call("sum", node.call("abs", x), axis=[axis], keepdims=True)
    elif p == 2:
        norm = node.call("sqrt", node.call("sum", node.call("multiply", x, x), axis=[axis], keepdims=True))
    else:
        raise node.refuse(f"p is {p}; it must be 1 or 2")
    return node.call("where", node.call("equal", norm, zero), zero, node.call("divide", x, norm))


# Running sums --------------------------------------------------------------------------------------------------------------


@operator("CumSum", "CumProd")
def cumulative(node: Node) -> SSAValue:
    """Converts `CumSum` and `CumProd`; the sums from the end are those of the reversed tensor."""
    x, rank = node[0], node.rank(0)
    axes = node.builder.array(node[1])
    if axes is not None:
        axis = int(axes.reshape(-1)[0])
        if not -rank <= axis < rank:
            raise node.refuse(f"axis {axis} is outside of a tensor of rank {rank}")
        return _cumulated(node, x, axis % rank)
    found = _cumulated(node, x, 0)
    chosen = node.builder.reshape(node[1], [])
    for axis in range(1, rank):
        # The axis is computed at run time, and may be counted from the last.
        is_axis = [node.call("equal", chosen, node.scalar(number, chosen)) for number in (axis, axis - rank)]
        found = node.call("where", node.call("logical_or", *is_axis), _cumulated(node, x, axis), found)
    return found


def _cumulated(node: Node, x: SSAValue, axis: int) -> SSAValue:
    """Returns the sums or products up to each element along an axis."""
    is_reversed = bool(node.attr("reverse", 0))
    if is_reversed:
        x = node.call("reverse", x, axis=axis)
    x = node.call(node.op_type.lower(), x, axis=axis, exclusive=bool(node.attr("exclusive", 0)))
    return node.call("reverse", x, axis=axis) if is_reversed else x


# Determinants --------------------------------------------------------------------------------------------------------------


@operator("Det")
def determinant(node: Node) -> SSAValue:
    """Converts `Det`: Gaussian elimination with the largest element of each column as its pivot.

    Each step takes the pivot's row out of the matrices (…,n,n), subtracts multiples of it from the other rows, and drops the column.
    """
    rank = node.rank(0)
    sizes = node.builder.extents(node[0])[-2:]
    if rank < 2 or sizes[0] != sizes[1] or not isinstance(sizes[0], int):
        raise node.refuse("its matrices must be square, of a known size")
    if sizes[0] > MOST_ROWS:
        raise node.refuse(f"its matrices have {sizes[0]} rows; at most {MOST_ROWS} are supported")
    call, matrix, left = node.call, node[0], sizes[0]
    zero, one = node.scalar(0, matrix), node.scalar(1, matrix)
    found: SSAValue | None = None
    while left:
        column = call("take", matrix, node.builder.integers(0), axis=rank - 1)
        place = call("argmax", call("abs", column), axis=[rank - 2], keepdims=True)
        is_pivot = call("equal", node.builder.constant(np.arange(left), "int32"), place)
        pivot = call("sum", call("where", is_pivot, column, zero), axis=[rank - 2])
        moved = call("not_equal", call("squeeze", place, axis=[rank - 2]), node.scalar(0, "int32"))
        factor = call("where", moved, call("negative", pivot), pivot)
        found = factor if found is None else call("multiply", found, factor)
        left -= 1
        if left:
            row = call(
                "sum",
                call("where", call("expand_dims", is_pivot, axis=-1), matrix, zero),
                axis=[rank - 2],
                keepdims=True,
            )
            # The first row takes the place of the pivot's.
            first = _without_first(node, matrix, rank - 2, keep_first=True)
            matrix = call("where", call("expand_dims", is_pivot, axis=-1), first, matrix)
            matrix = _without_first(node, matrix, rank - 2)
            divisor = call("where", call("equal", pivot, zero), one, pivot)
            divisor = call("expand_dims", divisor, axis=-1, num_newaxis=2)
            column = _without_first(node, matrix, rank - 1, keep_first=True)
            rest, row = _without_first(node, matrix, rank - 1), _without_first(node, row, rank - 1)
            matrix = call("subtract", rest, call("multiply", call("divide", column, divisor), row))
    return found if found is not None else node.call("full", one, shape=[], dtype=node.dtype(0))


def _without_first(node: Node, x: SSAValue, axis: int, *, keep_first: bool = False) -> SSAValue:
    """Returns a tensor without its first element along an axis, or this element alone."""
    begin, end = ([0], [1]) if keep_first else ([1], [MOST_ROWS])
    return node.call("strided_slice", x, begin=begin, end=end, strides=[1], axes=[axis])
