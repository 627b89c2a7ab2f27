"""Converts `TfIdfVectorizer` of integers: counts of n-grams.

counts[g] = sum over i of (x[i] == g[0] and x[i + s] == g[1] and …)      for each step s = 1 … max_skip_count + 1
"""

from __future__ import annotations

import numpy as np
from xdsl.ir import SSAValue

from ..node import Node
from ..registry import operator
from .conversion import STRINGS


@operator("TfIdfVectorizer", since=9)
def tf_idf_vectorizer(node: Node) -> SSAValue:
    """Converts `TfIdfVectorizer` to comparisons of slices of the data with all n-grams of a length."""
    b = node.builder
    pool = node.ints("pool_int64s")
    if pool is None:
        raise node.refuse(STRINGS)
    mode = node.choice("mode", "TF", ("TF", "IDF", "TFIDF"))
    starts, places = node.ints("ngram_counts") or [], node.ints("ngram_indexes") or []
    least, most = int(node.attr("min_gram_length")), int(node.attr("max_gram_length"))
    is_flat = node.rank(0) == 1
    x = b.call("expand_dims", node[0], axis=0) if is_flat else node[0]
    counts: list[SSAValue] = []
    columns: list[int] = []
    first = 0
    for length in range(1, len(starts) + 1):
        end = starts[length] if length < len(starts) else len(pool)
        grams = np.array(pool[starts[length - 1] : end], np.int64).reshape(-1, length)
        own, first = places[first : first + len(grams)], first + len(grams)
        if len(grams) and least <= length <= most:
            counts.append(_counts(node, x, grams, int(node.attr("max_skip_count"))))
            columns += own
    width = max(places, default=-1) + 1
    # An n-gram that is not counted is 0: the column after the last.
    order = np.full(width, len(columns), np.int64)
    order[columns] = np.arange(len(columns))
    counts.append(_no_counts(node, x))
    found = b.call("cast", b.call("concatenate", b.tuple(counts), axis=1), dtype="float32")
    found = b.call("take", found, b.array_constant(order), axis=1)
    if mode == "IDF":
        found = b.call("cast", b.call("greater", found, b.constant(0, "float32")), dtype="float32")
    weights = node.attr("weights")
    if mode != "TF" and weights is not None:
        factors = np.ones(width, np.float32)
        factors[places] = np.asarray(weights, np.float32)
        found = b.call("multiply", found, b.array_constant(factors))
    return b.call("squeeze", found, axis=[0]) if is_flat else found


def _no_counts(node: Node, x: SSAValue) -> SSAValue:
    """Returns a column of int32 zeros, (batch, 1)."""
    b = node.builder
    return b.call("sum", b.call("zeros_like", b.call("cast", x, dtype="int32")), axis=[1], keepdims=True)


def _counts(node: Node, x: SSAValue, grams: np.ndarray, skips: int) -> SSAValue:
    """Returns how often each n-gram (grams, length) is in each row of the data: (batch, grams)."""
    b, length = node.builder, grams.shape[1]
    size = b.extents(x)[1]
    dtype = b.dtype(x)
    total: SSAValue | None = None
    for step in range(1, 2 + (skips if length > 1 else 0)):
        last = (length - 1) * step
        if isinstance(size, int) and size <= last:
            continue
        found: SSAValue | None = None
        for place in range(length):
            end = (1 << 31) - 1 if place == length - 1 else (place - length + 1) * step
            part = b.call("strided_slice", x, begin=[place * step], end=[end], strides=[1], axes=[1])
            wanted = b.constant(grams[:, place], dtype)
            equal = b.call("equal", b.call("expand_dims", part, axis=2), wanted)
            found = equal if found is None else b.call("logical_and", found, equal)
        assert found is not None
        count = b.call("sum", b.call("cast", found, dtype="int32"), axis=[1])
        total = count if total is None else b.call("add", total, count)
    if total is None:
        zero = b.constant(np.zeros((1, len(grams))), "int32")
        return b.call("add", _no_counts(node, x), zero)
    return total
