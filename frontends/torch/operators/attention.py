"""Scaled dot-product attention in the form that `fuse-attention` takes."""

from __future__ import annotations

from math import inf, sqrt
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from ..node import FxNode
from ..registry import operator


@operator("scaled_dot_product_attention")
def attention(
    node: FxNode, query: SSAValue, key: SSAValue, value: SSAValue, mask: SSAValue | None = None, dropout: float = 0.0,
    causal: bool = False, scale: Any = None, shares_heads: bool = False,
) -> SSAValue:  # fmt: skip
    """Returns softmax(Q·Kᵀ · scale + mask)·V; a mask of bool tells which keys a query may see.

    The result of a query that sees no key is 0.
    """
    if dropout:
        raise node.draws()
    b = node.builder
    dtype = b.dtype(query)
    rank = node.rank(query)
    heads = b.extents(query)[-3] if rank > 2 else 1
    if shares_heads:
        groups = b.extents(key)[-3]
        if not isinstance(heads, int) or not isinstance(groups, int):
            raise node.refuse("shared heads of open sizes cannot be computed here")
        if heads != groups:
            key, value = (node.call("repeat", each, repeats=heads // groups, axis=rank - 3) for each in (key, value))
    query, key, value = _broadcast(node, query, key, value)
    rank = node.rank(query)
    if rank > 3:
        q, k, v = (_merged(node, each) for each in (query, key, value))
    else:
        q, k, v = (each if rank == 3 else node.call("expand_dims", each, axis=0) for each in (query, key, value))
    scores = node.call("nn.batch_matmul", q, k, transpose_b=True)
    scores = _scaled(node, scores, query, scale)
    rows, columns = b.extents(query)[-2], b.extents(key)[-2]
    if mask is not None or rank < 3:
        scores = _unmerged(node, scores, query, [rows, columns])
    if causal:
        scores = node.call("where", _triangle(node, query, key), scores, b.constant(-inf, dtype))
    if mask is not None:
        if b.dtype(mask) == "bool":
            scores = node.call("where", mask, scores, b.constant(-inf, dtype))
        else:
            scores = node.call("add", scores, node.cast(mask, dtype))
    weights = node.call("nn.softmax", scores, axis=-1)
    if mask is not None or rank < 3:
        weights = _merged(node, weights) if rank > 2 else node.call("expand_dims", weights, axis=0)
    found = node.call("nn.batch_matmul", weights, v, transpose_b=False)
    found = _unmerged(node, found, query, [rows, b.extents(value)[-1]])
    if mask is None:
        return found
    sees = mask if b.dtype(mask) == "bool" else node.call("greater", mask, b.constant(-inf, b.dtype(mask)))
    return node.call("where", node.call("any", sees, axis=[-1], keepdims=True), found, b.constant(0, dtype))


def _broadcast(node: FxNode, *tensors: SSAValue) -> list[SSAValue]:
    """Broadcasts the axes before the last two, as where all queries share one head of keys."""
    wanted = node.extents()[:-2]
    rank = len(wanted) + 2
    aligned = [
        each if node.rank(each) == rank else node.call("expand_dims", each, axis=0, num_newaxis=rank - node.rank(each))
        for each in tensors
    ]
    extents = [node.builder.extents(each)[:-2] for each in aligned]
    if all(each == wanted for each in extents):
        return aligned
    sizes = [
        size if isinstance(size, int) else node.size_of(aligned[[own[axis] for own in extents].index(size)], axis)
        for axis, size in enumerate(wanted)
    ]
    return [
        each
        if own == wanted
        else node.builder.broadcast_to(
            each, node.size_tensor([*sizes, *(node.size_of(each, axis) for axis in (-2, -1))])
        )
        for each, own in zip(aligned, extents, strict=True)
    ]


def _scaled(node: FxNode, scores: SSAValue, query: SSAValue, scale: Any) -> SSAValue:
    """Multiplies by a factor: without one, by one over the root of the width of a head."""
    b = node.builder
    dtype = b.dtype(query)
    width = b.extents(query)[-1]
    if scale is not None:
        factor = float(scale)
    elif isinstance(width, int):
        factor = 1 / sqrt(width)
    else:
        root = node.call("rsqrt", node.cast(node.size_of(query, node.rank(query) - 1), "float32"))
        return node.call("multiply", scores, node.cast(root, dtype))
    return scores if factor == 1 else node.call("multiply", scores, b.constant(factor, dtype))


def _merged(node: FxNode, value: SSAValue) -> SSAValue:
    """Merges all axes before the last two."""
    if node.rank(value) == 3:
        return value
    last = node.builder.extents(value)[-2:]
    wanted = [-1, *(each if isinstance(each, int) else -1 for each in last)]
    if wanted.count(-1) == 1:
        return node.call("reshape", value, newshape=wanted)
    if node.rank(value) == 4:
        return node.call("reshape", value, newshape=[-3, 0, 0])
    return node.builder.reshape(value, node.size_tensor([-1, *(node.size_of(value, axis) for axis in (-2, -1))]))


def _unmerged(node: FxNode, value: SSAValue, like: SSAValue, last: list[Any]) -> SSAValue:
    """Reshapes (batch · heads, rows, columns) to the first axes of `like`."""
    rank = node.rank(like)
    if rank == 3:
        return value
    if rank == 2:
        return node.call("squeeze", value, axis=[0])
    wanted = [*node.builder.extents(like)[:-2], *last]
    static = node.builder.reshape_attributes(value, wanted)
    if static is not None:
        return node.call("reshape", value, newshape=static[0], allowzero=static[1])
    if rank == 4 and isinstance(wanted[1], int):
        return node.call("reshape", value, newshape=[-4, -1, wanted[1], 0, 0])
    sizes = [node.size_of(like, axis) for axis in range(rank - 2)]
    return node.builder.reshape(value, node.size_tensor([*sizes, *(node.size_of(value, axis) for axis in (1, 2))]))


def _triangle(node: FxNode, query: SSAValue, key: SSAValue) -> SSAValue:
    """Returns a mask by which each query sees the keys up to its own place."""
    rows, columns = (node.builder.extents(each)[-2] for each in (query, key))
    if isinstance(rows, int) and isinstance(columns, int):
        return node.builder.array_constant(np.tri(rows, columns, dtype=np.bool_))
    places: list[SSAValue] = []
    for axis, each in ((1, query), (0, key)):
        size = node.tensor(node.size_of(each, node.rank(each) - 2), "int64")
        zero, one = node.builder.constant(0, "int64"), node.builder.constant(1, "int64")
        places.append(node.call("expand_dims", node.call("arange", zero, size, one, dtype="int64"), axis=axis))
    return node.call("greater_equal", *places)


@operator("_scaled_dot_product_flash_attention_for_cpu")
def flash_attention(
    node: FxNode, query: SSAValue, key: SSAValue, value: SSAValue, dropout: float = 0.0, causal: bool = False,
    mask: SSAValue | None = None, scale: Any = None,
) -> list[SSAValue | None]:  # fmt: skip
    """Returns the attention; the logarithms of sums are not computed."""
    heads, groups = (node.builder.extents(each)[-3] for each in (query, key))
    return [attention(node, query, key, value, mask, dropout, causal, scale, heads != groups), None]
