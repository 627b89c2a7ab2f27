"""Converts ONNX operators: products of matrices.

MatMul(x (b,s,k), w (k,n))            →  nn.dense(%x, transpose(%w))              a constant weight is transposed here
MatMul(q (b,h,m,k), transpose(k))     →  nn.batch_matmul(%q, %k, transpose_b=True)   of batches with one batch axis
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from xdsl.ir import SSAValue

from ....dialects.relay.operator import OperatorOp, is_operator
from ..node import Node
from ..registry import operator

if TYPE_CHECKING:
    from ...common.graph_builder import GraphBuilder
    from ...common.open_sizes import Extent


@operator("MatMul")
def matmul_node(node: Node) -> SSAValue:
    """Lowers `MatMul` to `nn.dense`, `nn.matmul` or `nn.batch_matmul`."""
    return matmul(node.builder, node[0], node[1])


def matmul(b: GraphBuilder, x: SSAValue, y: SSAValue) -> SSAValue:
    """Returns numpy's `matmul` of tensors of any ranks above 0.

    A matrix on the right takes the rows of all matrices on the left at once; vectors become matrices of one row or column.
    """
    if b.rank(y) == 1:
        column = matmul(b, x, b.call("expand_dims", y, axis=1))
        return b.call("squeeze", column, axis=[b.rank(column) - 1])
    if b.rank(y) == 2:
        return rows_times(b, x, y)
    if b.rank(x) == 1:
        row = matmul(b, b.call("expand_dims", x, axis=0), y)
        return b.call("squeeze", row, axis=[b.rank(row) - 2])
    y, is_transposed = untransposed(b, y)
    x, y, batch = _same_batch(b, x, y)
    flat = [_one_batch(b, value) for value in (x, y)]
    product = b.call("nn.batch_matmul", *flat, transpose_b=is_transposed)
    if len(batch) == 1:
        return product
    # The batch axes are those of the operand that has all of them.
    source = x if b.extents(x)[:-2] == tuple(batch) else y
    return b.call("reshape_like", product, source, lhs_begin=0, lhs_end=1, rhs_begin=0, rhs_end=len(batch))


def rows_times(b: GraphBuilder, x: SSAValue, y: SSAValue) -> SSAValue:
    """Returns x · y for a matrix y; a constant one is stored as the weight of `nn.dense`."""
    weight = dense_weight(b, y)
    if b.rank(x) == 1:
        row = rows_times(b, b.call("expand_dims", x, axis=0), y)
        return b.call("squeeze", row, axis=[0])
    # Rows of an unknown number are computed in blocks, which `nn.dense` does for matrices.
    is_open = b.rank(x) > 2 and b.static_shape(x) is None
    rows = b.call("reshape", x, newshape=[-1, inner_size(b, x, y)]) if is_open else x
    if weight is not None:
        product = b.call("nn.dense", rows, weight)
    else:
        matrix, is_transposed = untransposed(b, y)
        product = b.call("nn.matmul", rows, matrix, transpose_b=is_transposed)
    return with_batch_of(b, product, x) if is_open else product


def with_batch_of(b: GraphBuilder, rows: SSAValue, x: SSAValue) -> SSAValue:
    """Returns a matrix with all axes of x except the last in place of its first axis."""
    return b.call("reshape_like", rows, x, lhs_begin=0, lhs_end=1, rhs_begin=0, rhs_end=b.rank(x) - 1)


def dense_weight(b: GraphBuilder, y: SSAValue, is_transposed: bool = False) -> SSAValue | None:
    """Returns a constant or dequantized matrix as the weight of `nn.dense`; None for others."""
    owner = y.owner
    if isinstance(owner, OperatorOp) and is_operator(owner, "qnn.dequantize"):
        weight = b.array(owner.args[0])
        if weight is None or is_transposed:
            return None if weight is None else y
        axis = owner.attrs().axis
        turned = b.array_constant(weight.T)
        # Not folded, so that the weight stays in bytes.
        return b.call("qnn.dequantize", turned, *owner.args[1:], axis=axis if axis < 0 else 1 - axis)
    weight = b.array(y)
    return None if weight is None else y if is_transposed else b.array_constant(weight.T)


def inner_size(b: GraphBuilder, x: SSAValue, y: SSAValue) -> int:
    """Returns the length of the rows of x, which are multiplied by y, in Relay's `newshape`."""
    own, other = b.extents(x)[-1], b.extents(y)[0]
    return own if isinstance(own, int) else other if isinstance(other, int) else -1


def untransposed(b: GraphBuilder, y: SSAValue) -> tuple[SSAValue, bool]:
    """Returns matrices whose transposes are y, where y is the result of a transpose of its last two axes.

    Of transpose(%k, axes=[0, 2, 3, 1]) these are transpose(%k, axes=[0, 2, 1, 3]).
    """
    op = y.owner
    if not isinstance(op, OperatorOp) or not is_operator(op, "transpose"):
        return y, False
    rank = b.rank(y)
    axes = [axis % rank for axis in cast("Sequence[int]", op.attrs().axes or range(rank - 1, -1, -1))]
    if axes[-1] > axes[-2]:
        return y, False
    axes[-2:] = axes[:-3:-1]
    return (op.args[0] if axes == list(range(rank)) else b.call("transpose", op.args[0], axes=axes)), True


def _same_batch(b: GraphBuilder, x: SSAValue, y: SSAValue) -> tuple[SSAValue, SSAValue, Sequence[Extent]]:
    """Broadcasts the batch axes of two tensors of matrices, except of one that has a single matrix."""
    first, second = b.extents(x)[:-2], b.extents(y)[:-2]
    if first == second or (all(size == 1 for size in second) and len(first) >= len(second)):
        return x, y, first
    if all(size == 1 for size in first) and len(second) >= len(first):
        return x, y, second
    rank = max(len(first), len(second))
    x, y = (_with_rank(b, value, rank + 2) for value in (x, y))
    first, second = b.extents(x)[:-2], b.extents(y)[:-2]
    batch: list[Extent] = []
    for left, right in zip(first, second, strict=True):
        batch.append(right if left == 1 else left)
    return _stretched(b, x, y), _stretched(b, y, x), batch


def _with_rank(b: GraphBuilder, value: SSAValue, rank: int) -> SSAValue:
    more = rank - b.rank(value)
    return value if not more else b.call("expand_dims", value, axis=0, num_newaxis=more)


def _stretched(b: GraphBuilder, value: SSAValue, other: SSAValue) -> SSAValue:
    """Broadcasts the batch axes of a tensor to those of another of the same rank."""
    own, wanted = b.extents(value), b.extents(other)
    target = [
        size if axis >= len(own) - 2 or more == 1 else more
        for axis, (size, more) in enumerate(zip(own, wanted, strict=True))
    ]
    if tuple(target) == own:
        return value
    if all(isinstance(size, int) for size in target):
        return b.call("broadcast_to", value, shape=cast("list[int]", target))
    shapes = [b.shape_tensor(each) for each in (value, other)]
    batch = b.call("maximum", *(b.call("strided_slice", s, begin=[0], end=[len(own) - 2], strides=[1]) for s in shapes))
    matrix = b.call("strided_slice", shapes[0], begin=[len(own) - 2], end=[len(own)], strides=[1])
    return b.broadcast_to(value, b.call("concatenate", b.tuple([batch, matrix]), axis=0))


def _one_batch(b: GraphBuilder, value: SSAValue) -> SSAValue:
    """Merges the batch axes of a tensor of matrices into one."""
    rank = b.rank(value)
    if rank < 3:
        return b.call("expand_dims", value, axis=0)
    while rank > 3:
        # -3 merges two axes; the others are copied.
        value = b.call("reshape", value, newshape=[-3] + [0] * (rank - 2))
        rank -= 1
    return value


@operator("Gemm")
def gemm(node: Node) -> SSAValue:
    """Lowers `Gemm` to `nn.dense` (a constant B) or `nn.matmul`, times alpha, plus beta times C."""
    b, x, y = node.builder, node[0], node[1]
    alpha, beta = float(node.attr("alpha", 1.0)), float(node.attr("beta", 1.0))
    by_columns, is_transposed = bool(node.attr("transA", 0)), bool(node.attr("transB", 0))
    weight = b.array(y)
    if weight is not None and not by_columns:
        weight = weight if is_transposed else weight.T
        if alpha != 1 and weight.dtype.kind == "f":
            weight, alpha = (weight * alpha).astype(weight.dtype), 1.0
        product = b.call("nn.dense", x, b.array_constant(weight))
    elif not by_columns and (dequantized := dense_weight(b, y, is_transposed)) is not None:
        product = b.call("nn.dense", x, dequantized)
    else:
        product = b.call("nn.matmul", x, y, transpose_a=by_columns, transpose_b=is_transposed)
    if alpha != 1:
        product = b.call("multiply", product, node.scalar(alpha, product))
    added = node.tensor(2)
    if added is None or beta == 0:
        return product
    if beta != 1:
        added = b.call("multiply", added, node.scalar(beta, added))
    return b.call("add", product, added)
