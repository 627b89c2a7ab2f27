"""Cases of random numbers, by Threefry on Python's integers."""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np
from hypothesis import strategies as st

from ..sampling import case, seeds

MASK = 2**64 - 1
TURNS = [[14, 16], [52, 57], [23, 40], [5, 37], [25, 33], [46, 12], [58, 22], [32, 32]]


def threefry(key: list[int], counter: list[int], last: bool = False) -> list[int]:
    """Computes Threefry4x64 of 20 rounds; without `last` the last addition of the key is left out.

    The algorithm is published with that addition.
    """
    parity = 0x1BD11BDAA9FC1A22 ^ key[0] ^ key[1] ^ key[2] ^ key[3]
    keys, x = [*key, parity], list(counter)
    for turn in range(21 if last else 20):
        if turn % 4 == 0:
            x = [(v + keys[(turn // 4 + j) % 5] + (turn // 4 if j == 3 else 0)) & MASK for j, v in enumerate(x)]
        if turn == 20:
            break
        for j in (0, 1):
            r = TURNS[turn % 8][j]
            x[2 * j] = (x[2 * j] + x[2 * j + 1]) & MASK
            x[2 * j + 1] = ((x[2 * j + 1] << r & MASK) | x[2 * j + 1] >> (64 - r)) ^ x[2 * j]
        x[1], x[3] = x[3], x[1]
    return x


def _shift(state: list[int]) -> list[int]:
    bit = (state[8] << 64 | state[9]) >> 1
    return [bit >> 64, bit & MASK]


def generate(key: np.ndarray, count: int) -> tuple[np.ndarray, list[int]]:
    """Returns the next state, and words."""
    s = [int(v) for v in key]
    if s[7] >= MASK - count:
        if s[8] == s[9] == 0:
            s = [*threefry(s[:4], [MASK, MASK, s[0], s[1]]), 0, 0, 0, 0, 1 << 63, 0]
        else:
            s = [*s[:4], s[4] | s[8], s[5] | s[9], 0, 0, *_shift(s)]
    words: list[int] = []
    for n in range(count // 4):
        words += threefry(s[:4], [(v + n) & MASK for v in s[4:8]])
    s[7] += len(words)
    if count % 4:
        words += threefry(s[:4], s[4:8])[: count % 4]
        s[7] += 4
    s[6], s[7] = 0, s[7] & MASK
    return np.array(s, np.uint64), words


@st.composite
def _keys(draw: Any) -> np.ndarray:
    rng = np.random.default_rng(draw(seeds))
    state = np.zeros(10, np.uint64)
    state[:4] = rng.integers(0, 2**63, 4)
    state[7] = draw(st.sampled_from((0, 5, MASK - 2)))
    bit = draw(st.sampled_from((127, 64, 63, 3, None)))
    if bit is not None:
        state[8:] = [1 << bit >> 64, (1 << bit) & MASK]
        state[4] = draw(st.sampled_from((0, 1 << 63))) if bit < 127 else 0
    return state


_shapes = st.sampled_from(((4,), (2, 3), (1,), (3, 4), (9,)))


def _words_reference(a: Any, key: np.ndarray) -> Any:
    state, words = generate(key, math.prod(a.out_shape))
    return state, np.array(words, np.uint64).reshape(a.out_shape)


_GENERATIONS = st.tuples(_shapes.map(lambda s: {"out_shape": s}), st.tuples(_keys()))
case("random.threefry_generate", _GENERATIONS, _words_reference)


def _split_reference(a: Any, key: np.ndarray) -> Any:
    s = [int(v) for v in key]
    if s[8] == s[9] == 0:
        left = [*threefry(s[:4], s[4:8]), 0, 0, 0, 0, 1 << 62, 0]
        right = [*left[:4], 1 << 63, *left[5:]]
    else:
        left = [*s[:8], *_shift(s)]
        right = [*s[:4], s[4] | s[8], s[5] | s[9], *s[6:8], *_shift(s)]
    return np.array(left, np.uint64), np.array(right, np.uint64)


case("random.threefry_split", st.tuples(st.just({}), st.tuples(_keys())), _split_reference)


@st.composite
def _distributions(draw: Any) -> Any:
    dtype = draw(st.sampled_from(("float32", "float64")))
    numbers = [
        np.array(draw(st.sampled_from((0.0, 1.5, -2.0))), dtype),
        np.array(draw(st.sampled_from((3.0, 4.5))), dtype),
    ]
    return {"out_shape": draw(_shapes), "out_dtype": dtype}, [draw(_keys()), *numbers]


def _parts(words: list[int], dtype: str) -> list[float]:
    """Numbers from 0 up to 1 whose fraction is the first bits of each word, cut to the width of the dtype."""
    if dtype == "float32":
        return [struct.unpack("<f", struct.pack("<I", 0x3F800000 | (w & 0xFFFFFFFF) >> 9))[0] - 1 for w in words]
    return [(w >> 12) / 2**52 for w in words]


def _uniform_reference(a: Any, key: np.ndarray, low: np.ndarray, high: np.ndarray) -> Any:
    state, words = generate(key, math.prod(a.out_shape))
    parts = np.array(_parts(words, a.out_dtype), a.out_dtype).reshape(a.out_shape)
    return state, (low + parts * (high - low)).astype(a.out_dtype)


case("random.uniform", _distributions(), _uniform_reference)


def _normal_reference(a: Any, key: np.ndarray, mean: np.ndarray, scale: np.ndarray) -> Any:
    count = math.prod(a.out_shape)
    state, words = generate(key, 2 * count)
    parts = _parts(words, a.out_dtype)
    pairs = zip(parts[:count], parts[count:], strict=True)
    found = [math.sqrt(-2 * math.log(1 - u)) * math.sin(2 * math.pi * v) * float(scale) + float(mean) for u, v in pairs]
    return state, np.array(found, a.out_dtype).reshape(a.out_shape)


case("random.normal", _distributions(), _normal_reference, loose=3)


@st.composite
def _draws(draw: Any) -> Any:
    rng = np.random.default_rng(draw(seeds))
    shape = draw(st.sampled_from(((3,), (2, 4), (2, 1, 2))))
    weights = rng.integers(-2, 8, shape)
    weights[..., 0] = np.maximum(weights[..., 0], 1)
    return {"num_samples": draw(st.integers(1, 5))}, [
        draw(_keys()),
        weights.astype(draw(st.sampled_from(("float32", "int32")))),
    ]


def _draws_reference(a: Any, key: np.ndarray, weights: np.ndarray) -> Any:
    shape = (*weights.shape[:-1], a.num_samples)
    state, words = generate(key, math.prod(shape))
    draws = np.array(_parts(words, "float32"), np.float32).reshape(-1, a.num_samples)
    result = []
    for row, chances in zip(draws, np.maximum(weights, 0).reshape(-1, weights.shape[-1]), strict=True):
        chances = chances.astype(np.float32) / np.float32(chances.sum())
        upto = np.cumsum(chances, dtype=np.float32)
        result.append([next((k for k, bound in enumerate(upto) if bound > draw), 0) for draw in row])
    return state, np.array(result, np.int32).reshape(shape)


case("random.multinomial", _draws(), _draws_reference)
