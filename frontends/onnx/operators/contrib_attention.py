"""Converts onnxruntime's attentions (domain com.microsoft) to ONNX' own Attention.

    GroupQueryAttention(q, k, v, past_key, past_value, seqlens_k, total_sequence_length)

    start   = max(seqlens_k + 1 - length, 0)           (b,)  the keys of each batch that are in use before
    present = past up to start, then the new keys, then zeros          of max(length of the past, total_sequence_length)
    y       = Attention(q, present keys, present values, mask: key <= start + query)

Source: https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from ..node import Node
from ..registry import MICROSOFT, operator
from .attention import join_heads, split_heads
from .contrib import given, one, standard
from .quantized import integer_matmul


def _refuse_other_than(node: Node, defaults: Mapping[str, Any]) -> None:
    """Raises Refused for an attribute that has another value than the one that is supported."""
    for name, default in defaults.items():
        found = node.attr(name, default)
        if found != default:
            raise node.refuse(f"{name} is {found}, and only {default} is supported")


def _refuse_inputs(node: Node, names: Mapping[int, str]) -> None:
    """Raises Refused for inputs that are not supported."""
    for place, name in names.items():
        if node.has(place):
            raise node.refuse(f"the input {name} is not supported")


# Positions ---------------------------------------------------------------------------------------------------------


@operator("RotaryEmbedding", domain=MICROSOFT)
def rotary_embedding(node: Node) -> SSAValue:
    """Converts `RotaryEmbedding`, whose positions may be the number of the first one."""
    _refuse_other_than(node, {"scale": 1.0, "is_packed_batching": 0})
    heads = int(node.attr("num_heads", 0))
    attributes = given(node, ("interleaved", "rotary_embedding_dim"))
    return _rotated(node, node[0], node[1], node[2], node[3], heads, attributes)


def _rotated(
    node: Node,
    x: SSAValue,
    places: SSAValue,
    cosines: SSAValue,
    sines: SSAValue,
    heads: int,
    attributes: dict[str, Any],
) -> SSAValue:
    b = node.builder
    caches: list[SSAValue] = [cosines, sines]
    if b.rank(places) < 2:
        numbers = _numbers(node, b.size(x, 1 if b.rank(x) == 3 else 2))
        places = b.call("add", numbers, b.call("cast", b.reshape(places, []), dtype="int64"))
        places = b.call("expand_dims", places, axis=0)
    caches = [b.call("take", each, places, axis=0) for each in caches]
    if b.rank(x) == 3 and not heads:
        hidden, half = b.extents(x)[2], b.extents(cosines)[1]
        if not isinstance(hidden, int) or not isinstance(half, int):
            raise node.refuse("an input of an open hidden size needs the attribute num_heads")
        heads = hidden // (2 * half)
    return one(node, "RotaryEmbedding", x, *caches, num_heads=heads, **attributes)


def _numbers(node: Node, count: SSAValue) -> SSAValue:
    """Returns 0, 1, … below a tensor of rank 0, in int64."""
    b = node.builder
    return b.call("arange", b.integers(0), count, b.integers(1), dtype="int64")


# Attention ---------------------------------------------------------------------------------------------------------


@operator("MultiHeadAttention", domain=MICROSOFT)
def multi_head_attention(node: Node) -> list[SSAValue | None]:
    """Converts `MultiHeadAttention` to ONNX' Attention.

    Packed are queries, keys and values (b,s,n,3,d), or keys and values (b,t,n,2,d); keys and values by heads are (b,n,t,d).
    """
    b, heads = node.builder, int(node.attr("num_heads"))
    _refuse_inputs(node, {8: "past_sequence_length", 9: "cache_indirection"})
    projected = _projections(node)
    if node.has(3):
        sizes = [b.extents(each)[2] for each in projected]
        biases = _split(node, node[3], sizes)
        count = 1 if node.has(1) and b.rank(node[1]) == 4 else 3
        added = [b.call("add", each, bias) for each, bias in zip(projected[:count], biases, strict=False)]
        projected = [*added, *projected[count:]]
    return _attention(node, projected, heads, node.tensor(4), node.tensor(5), [node.tensor(6), node.tensor(7)])


def _projections(node: Node) -> list[SSAValue]:
    """Returns queries, keys and values as (batch, sequence, heads * size)."""
    b = node.builder
    if b.rank(node[0]) == 5:
        return _unpacked(node, node[0], 3)
    if not node.has(1):
        raise node.refuse("without keys the queries must be packed with keys and values, of rank 5")
    if b.rank(node[1]) == 5:
        return [node[0], *_unpacked(node, node[1], 2)]
    if not node.has(2):
        raise node.refuse("without values the keys must be packed with them, of rank 5")
    return [node[0], *(join_heads(b, each) if b.rank(each) == 4 else each for each in (node[1], node[2]))]


def _unpacked(node: Node, value: SSAValue, count: int) -> list[SSAValue]:
    """Returns the `count` tensors (b,s,n*d) that are packed in (b,s,n,count,d)."""
    b = node.builder
    parts = (b.call("take", value, b.integers(place), axis=3) for place in range(count))
    return [b.call("reshape", each, newshape=[0, 0, -1]) for each in parts]


@operator("Attention", domain=MICROSOFT)
def attention(node: Node) -> list[SSAValue | None]:
    """Converts `Attention`: the projection to queries, keys and values, and ONNX' Attention."""
    _refuse_inputs(node, {6: "past_sequence_length"})
    product = one(node, "MatMul", node[0], node[1])
    if node.has(2):
        product = node.call("add", product, node[2])
    return _projected_attention(node, product, node.tensor(3), node.tensor(4), node.tensor(5))


@operator("QAttention", domain=MICROSOFT)
def quantized_attention(node: Node) -> list[SSAValue | None]:
    """Converts `QAttention`: Attention whose projection is a product of bytes."""
    sums = integer_matmul(node.builder, node[0], node[1], node.tensor(6), node.tensor(7))
    scale = node.call("multiply", node[3], node[4])
    product = node.call("multiply", node.call("cast", sums, dtype="float32"), scale)
    return _projected_attention(node, node.call("add", product, node[2]), node.tensor(5), node.tensor(8), None)


def _projected_attention(
    node: Node, product: SSAValue, padding: SSAValue | None, past: SSAValue | None, added: SSAValue | None
) -> list[SSAValue | None]:
    """Returns Attention of queries, keys and values in one tensor (b,s,h).

    Past and present are (2,b,n,t,d).
    """
    b, heads = node.builder, int(node.attr("num_heads"))
    _refuse_other_than(node, {"do_rotary": 0, "past_present_share_buffer": 0})
    width = b.extents(product)[2]
    if not isinstance(width, int):
        raise node.refuse("the size of the weights must be known, not open")
    parts = _split(node, product, node.ints("qkv_hidden_sizes") or [width // 3] * 3)
    before = [None if past is None else b.call("take", past, b.integers(place), axis=0) for place in range(2)]
    result, key, value = _attention(node, parts, heads, padding, added, before)[:3]
    if not any(node.outputs[1:]):
        return [result]
    assert key is not None and value is not None
    return [result, b.call("stack", b.tuple([key, value]), axis=0)]


def _split(node: Node, value: SSAValue, sizes: Sequence[Any]) -> list[SSAValue]:
    """Returns parts of these sizes along the last axis."""
    ends = [int(sum(sizes[: place + 1])) for place in range(len(sizes) - 1)]
    axis = node.builder.rank(value) - 1
    return node.builder.tuple_parts(node.call("split", value, indices_or_sections=ends, axis=axis))


def _attention(
    node: Node,
    parts: Sequence[SSAValue],
    heads: int,
    padding: SSAValue | None,
    added: SSAValue | None,
    past: Sequence[SSAValue | None],
) -> list[SSAValue | None]:
    """Returns ONNX' Attention and its further outputs.

    `padding` is 1 for keys that are seen, or says how many are; `added` is added to the scores.
    """
    b = node.builder
    mask = added
    if padding is not None:
        length = b.size(parts[1], 1)
        before = None if past[0] is None else b.size(past[0], 2)
        seen = _seen(node, padding, parts[0], length if before is None else b.call("add", before, length), before)
        dtype = b.dtype(parts[0])
        filler = float(node.attr("mask_filter_value", -10000.0))
        hidden = b.call("where", seen, b.constant(0.0, dtype), b.constant(filler, dtype))
        mask = hidden if mask is None else b.call("add", mask, hidden)
    scale = float(node.attr("scale", 0.0))
    attributes: dict[str, Any] = {"scale": scale} if scale else {}
    return standard(
        node, "Attention", [*parts, mask, *past], 4 if any(node.outputs[3:]) else 3, q_num_heads=heads,
        kv_num_heads=heads, is_causal=int(node.attr("unidirectional", 0)), **attributes,
    )  # fmt: skip


def _seen(node: Node, padding: SSAValue, query: SSAValue, total: SSAValue, before: SSAValue | None) -> SSAValue:
    """Returns which keys are seen, broadcast to the scores (batch, heads, queries, keys).

    `padding` is the end of the keys of each batch (b,), their ends and then their starts (2b,), or is not 0 for keys that are seen:
    (b,t), (b,s,t), or (b,1,m,m) for a longest sequence m.
    """
    b = node.builder
    if b.rank(padding) == 1:
        batch, given = b.extents(query)[0], b.extents(padding)[0]
        has_starts = isinstance(batch, int) and given == 2 * batch
        if not has_starts and given != batch and isinstance(given, int) and isinstance(batch, int):
            raise node.refuse(f"a mask of {given} numbers for a batch of {batch} is not supported")
        numbers = _numbers(node, total)
        bounds = b.call("cast", b.call("reshape", padding, newshape=[2 if has_starts else 1, -1, 1]), dtype="int64")
        ends = b.call("take", bounds, b.integers(0), axis=0)
        seen = b.call("less", numbers, ends)
        if has_starts:
            starts = b.call("take", bounds, b.integers(1), axis=0)
            seen = b.call("logical_and", seen, b.call("greater_equal", numbers, starts))
    else:
        if b.rank(padding) == 4:
            first = before if before is not None else b.integers(0)
            rows = b.call("add", _numbers(node, b.size(query, 1)), first)
            padding = b.call("take", b.call("take", padding, rows, axis=2), _numbers(node, total), axis=3)
        seen = b.call("not_equal", padding, b.constant(0, b.dtype(padding)))
    # (batch, keys), or (batch, queries, keys), of the scores (batch, heads, queries, keys)
    return seen if b.rank(seen) == 4 else b.call("expand_dims", seen, axis=1, num_newaxis=4 - b.rank(seen))


# Attention whose heads share keys ----------------------------------------------------------------------------------


@operator("GroupQueryAttention", domain=MICROSOFT)
def group_query_attention(node: Node) -> list[SSAValue | None]:
    """Converts `GroupQueryAttention`: causal Attention whose heads share keys.

    The past holds the keys of each batch from its start on, and what follows them is not used, as in a buffer of the longest length.
    """
    b = node.builder
    _refuse_other_than(
        node,
        {"causal": 1, "qk_output": 0, "k_quant_type": "NONE", "v_quant_type": "NONE", "kv_cache_bit_width": 0, "sliding_window_cache": 0},
    )  # fmt: skip
    if int(node.attr("smooth_softmax", 0)) > 0:
        raise node.refuse("smooth_softmax is not supported")
    _refuse_inputs(node, {11: "head_sink", 14: "q_norm_weight", 15: "k_norm_weight", 16: "query_seqlens"})
    heads, groups = int(node.attr("num_heads")), int(node.attr("kv_num_heads"))
    parts = [node[0], node[1], node[2]] if node.has(1) else _packed_groups(node, heads, groups)
    caches = _Caches(node, parts[0])
    if node.attr("do_rotary", 0):
        places = node[9] if node.has(9) else caches.rows
        kinds = {"interleaved": int(node.attr("rotary_interleaved", 0))}
        rotated = [
            _rotated(node, each, places, node[7], node[8], count, kinds)
            for each, count in zip(parts, (heads, groups), strict=False)
        ]
        parts = [*rotated, parts[2]]
    query, key, value = (split_heads(b, each, n) for each, n in zip(parts, (heads, groups, groups), strict=True))
    key, value = caches.present(node.tensor(3), key), caches.present(node.tensor(4), value)
    mask = caches.mask(node.tensor(10), b.size(key, 2), int(node.attr("local_window_size", -1)))
    scale = float(node.attr("scale", 0.0))
    attributes: dict[str, Any] = {"scale": scale} if scale else {}
    result = standard(
        node, "Attention", [query, key, value, mask], is_causal=int(mask is None),
        softcap=float(node.attr("softcap", 0.0)), **attributes,
    )[0]  # fmt: skip
    assert result is not None
    return [join_heads(b, result), key, value]


def _packed_groups(node: Node, heads: int, groups: int) -> list[SSAValue]:
    width = node.builder.extents(node[0])[2]
    if not isinstance(width, int):
        raise node.refuse("the size of packed queries, keys and values must be known, not open")
    size = width // (heads + 2 * groups)
    return _split(node, node[0], [heads * size, groups * size, groups * size])


class _Caches:
    """Places new keys after those of the past, for each batch."""

    def __init__(self, node: Node, query: SSAValue):
        b = self.b = node.builder
        self.node = node
        self.length = b.size(query, 1)
        self.total = b.call("cast", b.reshape(node[6], []), dtype="int64")
        past = node.tensor(3)
        self.is_first = past is None or b.extents(past)[2] == 0
        """Whether there are no keys before."""
        counts = b.call("cast", b.reshape(node[5], [-1, 1]), dtype="int64")
        before = b.call("subtract", b.call("add", counts, b.integers(1)), self.length)
        self.start = b.integers([[0]]) if self.is_first else b.call("maximum", before, b.integers(0))
        """The number of keys of each batch before: (b,1)."""
        self.rows = b.call("add", self.start, b.call("expand_dims", _numbers(node, self.length), axis=0))
        """The place of each query: (b,s)."""

    def present(self, past: SSAValue | None, new: SSAValue) -> SSAValue:
        """Returns the keys of the past that are in use, then the new ones, then zeros: (b,n,t,d)."""
        b = self.b
        if past is None or self.is_first:
            return new
        before = b.size(past, 2)
        joined = b.call("concatenate", b.tuple([past, new]), axis=2)
        if self._is_full(before):
            return joined
        keys = b.call("expand_dims", _numbers(self.node, b.call("maximum", before, self.total)), axis=0)
        after = b.call("subtract", keys, self.start)
        last = b.call("subtract", self.length, b.integers(1))
        source = b.call("add", b.call("minimum", b.call("maximum", after, b.integers(0)), last), before)
        source = b.call("where", b.call("less", after, b.integers(0)), keys, source)
        found = b.call("take", joined, source, axis=2, batch_dims=1)
        is_used = b.call("expand_dims", b.call("less", after, self.length), axis=2)
        return b.call("where", b.call("expand_dims", is_used, axis=1), found, self.node.scalar(0, found))

    def _is_full(self, before: SSAValue) -> bool:
        """Returns whether all keys of the past are known to be in use."""
        start, size = self.b.array(self.start), self.b.array(before)
        return start is not None and size is not None and bool(np.all(start == size))

    def mask(self, added: SSAValue | None, keys: SSAValue, window: int) -> SSAValue | None:
        """Returns the mask of the scores (batch, heads, queries, keys); None where it is the causal one."""
        b = self.b
        if self.is_first and added is None and window < 0:
            return None
        rows = b.call("expand_dims", b.call("expand_dims", self.rows, axis=2), axis=1)
        numbers = _numbers(self.node, keys)
        seen = b.call("less_equal", numbers, rows)
        if window >= 0:
            near = b.call("greater", numbers, b.call("subtract", rows, b.integers(window)))
            seen = b.call("logical_and", seen, near)
        if added is None:
            return seen
        # Keys after its end are not seen.
        last = b.call("subtract", b.size(added, 3), b.integers(1))
        added = b.call("take", added, b.call("minimum", numbers, last), axis=3)
        return b.call("where", seen, added, self.node.scalar(-np.inf, added))
