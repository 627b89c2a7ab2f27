"""Converts ONNX operators: attentions and the embeddings of positions.

    Attention(q (b,h,s,d), k (b,g,t,d), v (b,g,t,e), mask)

    scores = nn.batch_matmul(q, repeat(k, h / g), transpose_b=True) * scale      as (b,h,s,t): softcap, masks
    y      = nn.batch_matmul(nn.softmax(where(allowed, scores, -inf)), repeat(v, h / g))

These are the forms that `fuse-attention` and `group-batch-matmul` make kernels of.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING

import numpy as np
from xdsl.ir import SSAValue

from ...common.open_sizes import OpenSize
from ..node import Node, only_tensors
from ..protos import element_dtype
from ..registry import operator
from .neural_network import WIDE, cast_to

if TYPE_CHECKING:
    from ...common.graph_builder import GraphBuilder
    from ...common.open_sizes import Extent
    from ..values import Value


def split_heads(b: GraphBuilder, x: SSAValue, heads: int) -> SSAValue:
    """Returns (batch, sequence, heads * size) as (batch, heads, sequence, size)."""
    split = b.call("reshape", x, newshape=[0, 0, heads, -1])
    return b.call("transpose", split, axes=[0, 2, 1, 3])


def join_heads(b: GraphBuilder, x: SSAValue) -> SSAValue:
    """Returns (batch, heads, sequence, size) as (batch, sequence, heads * size)."""
    return b.call("reshape", b.call("transpose", x, axes=[0, 2, 1, 3]), newshape=[0, 0, -1])


@dataclass(frozen=True)
class Heads:
    """Holds queries, keys and values: (batch, heads, sequence, size).

    Several heads of queries may share a head of keys and values.
    """

    b: GraphBuilder
    query: SSAValue
    key: SSAValue
    value: SSAValue

    def scores(self, scale: float) -> SSAValue:
        """Returns the scaled products of queries and keys: (batch, heads, queries, keys).

        Of narrow floats both operands are scaled by the root, as ONNX defines it, lest the products overflow.
        """
        b, dtype = self.b, self.b.dtype(self.query)
        if dtype in WIDE:
            products = self._product(self.query, self.key, transpose_b=True)
            return b.call("multiply", products, b.constant(scale, dtype))
        root = b.constant(sqrt(scale), dtype)
        return self._product(*(b.call("multiply", x, root) for x in (self.query, self.key)), transpose_b=True)

    def output(self, weights: SSAValue) -> SSAValue:
        """Returns the values, weighted: (batch, heads, queries, size)."""
        return self._product(weights, self.value, transpose_b=False)

    def _product(self, x: SSAValue, y: SSAValue, *, transpose_b: bool) -> SSAValue:
        b = self.b
        left = b.call("reshape", x, newshape=[-3, 0, 0])
        right = b.call("reshape", y, newshape=[-3, 0, 0])
        shared = self._shared(x, y)
        if shared > 1:
            right = b.call("repeat", right, repeats=shared, axis=0)
        product = b.call("nn.batch_matmul", left, right, transpose_b=transpose_b)
        return b.call("reshape_like", product, x, lhs_begin=0, lhs_end=1, rhs_begin=0, rhs_end=2)

    def _shared(self, x: SSAValue, y: SSAValue) -> int:
        """Returns how many heads of queries use one head of keys."""
        heads, own = self.b.extents(x)[1], self.b.extents(y)[1]
        if heads == own:
            return 1
        if not isinstance(heads, int) or not isinstance(own, int) or heads % own:
            from ..node import Refused

            raise Refused(f"{heads} heads of queries cannot share {own} heads of keys")
        return heads // own


@operator("Attention", since=23)
def attention(node: Node) -> list[Value | None]:
    """Lowers `Attention` to batched products around `nn.softmax`.

    Keys and values are appended to those of the past.
    """
    b = node.builder
    query, key, value = node[0], node[1], node[2]
    is_flat = b.rank(query) == 3
    if is_flat:
        heads, groups = int(node.attr("q_num_heads", 0)), int(node.attr("kv_num_heads", 0))
        if heads < 1 or groups < 1:
            raise node.refuse("inputs of rank 3 need the attributes q_num_heads and kv_num_heads")
        query, key, value = (split_heads(b, x, n) for x, n in ((query, heads), (key, groups), (value, groups)))
    past = node.tensor(4)
    if past is not None:
        key = b.call("concatenate", b.tuple([past, key]), axis=2)
        value = b.call("concatenate", b.tuple([node[5], value]), axis=2)
    attended = Heads(b, query, key, value)
    size = b.extents(query)[3]
    raw = attended.scores(_scale(node, size))
    softcap = float(node.attr("softcap", 0.0))
    capped = raw
    if softcap > 0:
        capped = b.call("tanh", b.call("divide", raw, node.scalar(softcap, raw)))
        capped = b.call("multiply", capped, node.scalar(softcap, raw))
    masks = _Masks(node, capped, past)
    masked = masks.apply(capped)
    precision = node.attr("softmax_precision")
    dtype = b.dtype(query)
    wide = dtype if precision is None else element_dtype(int(precision)) or dtype
    weights = cast_to(node, _softmax(b, cast_to(node, masked, wide)), dtype)
    # Rows without an allowed key are zeros; the result is corrected instead of the weights, which a fused kernel never stores.
    output = masks.guarded(attended.output(weights))
    mode = int(node.attr("qk_matmul_output_mode", 0))
    shown = (raw, capped, masked, weights)[mode] if 0 <= mode <= 3 else raw
    if len(node.outputs) > 3 and node.outputs[3] and mode == 3:
        shown = masks.guarded(shown)
    return [join_heads(b, output) if is_flat else output, key, value, shown]


def _softmax(b: GraphBuilder, scores: SSAValue) -> SSAValue:
    """Returns the softmax along the last axis; of narrow floats each step is rounded, as ONNX defines it."""
    if b.dtype(scores) in WIDE:
        return b.call("nn.softmax", scores, axis=-1)
    powers = b.call("exp", b.call("subtract", scores, b.call("max", scores, axis=[-1], keepdims=True)))
    return b.call("divide", powers, b.call("sum", powers, axis=[-1], keepdims=True))


def _scale(node: Node, size: Extent) -> float:
    """Returns the factor of the scores: 1 / sqrt(size) unless the node states another."""
    scale = node.attr("scale")
    if scale is not None:
        return float(scale)
    if not isinstance(size, int):
        raise node.refuse("the size of heads must be known: the attribute scale is left out")
    return 1 / sqrt(size)


class _Masks:
    """Collects what decides which keys a query may see.

    This is an additive mask, and conditions of which all must hold.
    """

    def __init__(self, node: Node, scores: SSAValue, past: SSAValue | None):
        self.node, self.b = node, node.builder
        self.queries, self.keys = self.b.extents(scores)[2:]
        self.scores = scores
        self.added: SSAValue | None = None
        self.conditions: list[SSAValue] = []
        self.guards: list[SSAValue] = []
        """Per row: whether some key may be seen, where that is not known."""
        self.valid = node.tensor(6)
        self.offset: SSAValue | int | None = 0
        if past is not None:
            length = self.b.extents(past)[2]
            self.offset = length if isinstance(length, int) else self.b.size(past, 2)
        elif self.valid is not None:
            self.offset = None
        self._given(node.tensor(3))
        if node.attr("is_causal", 0):
            self._within(None, 0)
        left, right = int(node.attr("left_window_size", -1)), int(node.attr("right_window_size", -1))
        if left >= 0 or right >= 0:
            self._within(left if left >= 0 else None, right if right >= 0 else None)
        if self.valid is not None:
            count = self.b.call("reshape", cast_to(node, self.valid, "int64"), newshape=[-1, 1, 1, 1])
            self.conditions.append(self.b.call("less", self._numbers(self.keys, 3), count))
        if self.conditions and (self.offset is None or len(self.conditions) > 1 or left >= 0):
            self._guard_conditions()

    def _given(self, mask: SSAValue | None) -> None:
        """Takes the input `attn_mask`; keys after its end are not seen."""
        if mask is None:
            return
        b, node = self.b, self.node
        is_bool = b.dtype(mask) == "bool"
        length = b.extents(mask)[-1]
        if length not in (self.keys, 1):
            mask = self._lengthened(mask, length, is_bool)
        array = b.array(mask)
        if is_bool:
            self.conditions.append(mask)
        else:
            self.added = cast_to(node, mask, b.dtype(self.scores))
        if array is not None and (array if is_bool else array > -np.inf).any(axis=-1).all():
            return
        if not is_bool:
            largest = b.call("max", mask, axis=[-1], keepdims=True)
            self.guards.append(b.call("greater", largest, node.scalar(-np.inf, mask)))
        else:
            self.guards.append(b.call("any", mask, axis=[-1], keepdims=True))

    def _lengthened(self, mask: SSAValue, length: Extent, is_bool: bool) -> SSAValue:
        b, rank = self.b, self.b.rank(mask)
        fill = b.constant(False, "bool") if is_bool else self.node.scalar(-np.inf, mask)
        if isinstance(length, int) and isinstance(self.keys, int):
            widths = [[0, 0]] * (rank - 1) + [[0, self.keys - length]]
            return b.call("nn.pad", mask, fill, pad_width=widths)
        more = b.call("subtract", b.size(self.scores, 3), b.size(mask, rank - 1))
        zeros = [b.integers(0)] * (2 * rank - 1)
        widths = b.call("reshape", b.call("stack", b.tuple([*zeros, more]), axis=0), newshape=[rank, 2])
        return b.call("dyn.nn.pad", mask, widths, fill)

    def _numbers(self, size: Extent, axis: int) -> SSAValue:
        """Returns 0, 1, … along an axis of the scores."""
        b = self.b
        if isinstance(size, int):
            numbers = b.array_constant(np.arange(size))
        else:
            numbers = b.call("arange", b.integers(0), b.size(self.scores, axis), b.integers(1), dtype="int64")
        return numbers if axis == 3 else b.call("expand_dims", numbers, axis=1)

    def _within(self, left: int | None, right: int | None) -> None:
        """Allows the keys from `left` places before a query's own to `right` places after it."""
        b = self.b
        if isinstance(self.offset, int) and isinstance(self.queries, int) and isinstance(self.keys, int):
            ahead = np.arange(self.keys) - np.arange(self.queries)[:, None] - self.offset
            allowed = np.ones(ahead.shape, np.bool_)
            if left is not None:
                allowed &= -ahead <= left
            if right is not None:
                allowed &= ahead <= right
            self.conditions.append(b.array_constant(allowed))
            return
        if self.offset is None and self.valid is not None:
            valid = b.call("reshape", cast_to(self.node, self.valid, "int64"), newshape=[-1, 1, 1, 1])
            offset = b.call("subtract", valid, b.size(self.scores, 2))
        else:
            offset = self.offset if isinstance(self.offset, SSAValue) else b.integers(self.offset or 0)
        own = b.call("add", self._numbers(self.queries, 2), offset)
        ahead = b.call("subtract", self._numbers(self.keys, 3), own)
        if left is not None:
            self.conditions.append(b.call("greater_equal", ahead, b.integers(-left)))
        if right is not None:
            self.conditions.append(b.call("less_equal", ahead, b.integers(right)))

    def _all(self) -> SSAValue | None:
        found: SSAValue | None = None
        for each in self.conditions:
            found = each if found is None else self.b.call("logical_and", found, each)
        return found

    def _guard_conditions(self) -> None:
        """Finds the rows whose keys are all forbidden by the conditions and the additive mask together."""
        b, allowed = self.b, self._all()
        assert allowed is not None
        if self.added is not None:
            finite = b.call("greater", self.added, self.node.scalar(-np.inf, self.added))
            allowed = b.call("logical_and", allowed, finite)
        self.guards = [b.call("any", allowed, axis=[-1], keepdims=True)]

    def apply(self, scores: SSAValue) -> SSAValue:
        """Returns the scores with the mask; minus infinity for keys that are not seen."""
        if self.added is not None:
            scores = self.b.call("add", scores, self.added)
        allowed = self._all()
        if allowed is None:
            return scores
        return self.b.call("where", allowed, scores, self.node.scalar(-np.inf, scores))

    def guarded(self, rows: SSAValue) -> SSAValue:
        """Returns rows with zeros for queries that see no key."""
        for sees in self.guards:
            rows = self.b.call("where", sees, rows, self.node.scalar(0, rows))
        return rows


@operator("FlexAttention", domain="ai.onnx.preview")
def flex_attention(node: Node) -> SSAValue:
    """Lowers `FlexAttention`: its graphs `score_mod` and `prob_mod` are converted in place."""
    b = node.builder
    attended = Heads(b, node[0], node[1], node[2])
    dtype, size = node.dtype(0), b.extents(node[0])[3]
    scores = attended.scores(_scale(node, size))
    precision = node.attr("softmax_precision")
    default = "float64" if dtype == "float64" else "float32"
    wide = default if precision is None else element_dtype(int(precision)) or default
    scores = _modified(node, "score_mod", cast_to(node, scores, wide))
    weights = _modified(node, "prob_mod", b.call("nn.softmax", scores, axis=-1))
    return attended.output(cast_to(node, weights, dtype))


def _modified(node: Node, name: str, value: SSAValue) -> SSAValue:
    graph = node.attr(name)
    return value if graph is None else only_tensors(node.importer.subgraph(graph, [value]))[0]


@operator("RotaryEmbedding", since=23)
def rotary_embedding(node: Node) -> SSAValue:
    """Lowers `RotaryEmbedding` to products with the cosines and sines of each position."""
    b, x = node.builder, node[0]
    heads = int(node.attr("num_heads", 0) or 0)
    is_flat = b.rank(x) == 3
    if is_flat:
        if heads < 1:
            raise node.refuse("an input of rank 3 needs the attribute num_heads")
        x = b.call("reshape", x, newshape=[0, 0, heads, -1])
    cosines, sines = (b.call("take", cache, node[3], axis=0) if node.has(3) else cache for cache in (node[1], node[2]))
    # Heads are the axis 2 of what was flat, otherwise 1.
    cosines, sines = (b.call("expand_dims", each, axis=2 if is_flat else 1) for each in (cosines, sines))
    y = rotated(b, x, cosines, sines, int(node.attr("rotary_embedding_dim", 0)), bool(node.attr("interleaved", 0)))
    return b.call("reshape", y, newshape=[0, 0, -1]) if is_flat else y


def rotated(b: GraphBuilder, x: SSAValue, cosines: SSAValue, sines: SSAValue, part: int, interleaved: bool) -> SSAValue:
    """Rotates pairs of the first `part` (0: all) elements of each row.

    A pair is one element of each half, or two neighbours if `interleaved`.
    """
    size = b.extents(x)[3]
    if isinstance(size, OpenSize):
        from ..node import Refused

        raise Refused("the size of heads must be known, not open")
    part = part or size

    def cut(begin: int, end: int, step: int = 1) -> SSAValue:
        if (begin, end, step) == (0, size, 1):
            return x
        return b.call("strided_slice", x, begin=[begin], end=[end], strides=[step], axes=[3])

    first = cut(0, part, 2) if interleaved else cut(0, part // 2)
    second = cut(1, part, 2) if interleaved else cut(part // 2, part)
    real = b.call("subtract", b.call("multiply", cosines, first), b.call("multiply", sines, second))
    imaginary = b.call("add", b.call("multiply", sines, first), b.call("multiply", cosines, second))
    if interleaved:
        turned = b.call("reshape", b.call("stack", b.tuple([real, imaginary]), axis=4), newshape=[0, 0, 0, -1])
        parts = [turned]
    else:
        parts = [real, imaginary]
    if part < size:
        parts.append(cut(part, size))
    return parts[0] if len(parts) == 1 else b.call("concatenate", b.tuple(parts), axis=3)
