"""Defines random numbers: the splittable generator Threefry, and distributions of its words.

A generator's state is ten 64-bit words: four of key, two of path (which splits led here, a bit each), two of counter, and
two with a single bit, the place in the path that the next split takes. Words come from Threefry4x64 with 20 rounds (Salmon,
Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011) without the addition of the key after the last round,
of the key and of path and counter, as TVM has it; states from the encoding of Claessen and Pałka, "Splittable pseudorandom
number generators using cryptographic hashing", 2013.
"""

from __future__ import annotations

from collections.abc import Callable
from math import pi, prod
from typing import Any, cast

from xdsl.ir import Attribute

from ...operator import Attrs, OpPattern, Relation, attr, define
from ..common._lazy import np
from ..common.numpy_meanings import Array, numpy_type
from ..common.relations import (
    at_most,
    check_dims,
    dtype_attr,
    dtype_of,
    rank_at_least,
    shape_of,
    show_argument,
    tensor_type,
    tuple_type,
)
from . import te_random as computes
from .te_random import CONSTANT, PATH_BIT, ROTATIONS, SPLIT_BIT

SOURCE = "https://doi.org/10.1145/2063384.2063405"
WORDS = (1 << 64) - 1


def key_type() -> Attribute:
    """Returns the type of a generator's state."""
    return tensor_type([10], "uint64")


def threefry(key: Array, counters: Array) -> Array:
    """Returns the words (n, 4) of counters (n, 4) under a key of four words, all uint64."""
    parity = np.bitwise_xor.reduce(key) ^ np.uint64(CONSTANT)
    keys = [*key, parity]
    words = [counters[:, j].copy() for j in range(4)]
    for turn in range(20):
        if turn % 4 == 0:
            for j in range(4):
                words[j] = words[j] + keys[(turn // 4 + j) % 5]
            words[3] = words[3] + np.uint64(turn // 4)
        for pair, rotation in zip((0, 2), ROTATIONS[turn % 8], strict=True):
            a, b = words[pair] + words[pair + 1], words[pair + 1]
            words[pair] = a
            words[pair + 1] = ((b << np.uint64(rotation)) | (b >> np.uint64(64 - rotation))) ^ a
        words[1], words[3] = words[3], words[1]
    return np.stack(words, 1)


def key_of_seed(seed: int) -> Array:
    """Returns the state of a generator that a seed of 64 bits determines."""
    state = np.zeros(10, np.uint64)
    state[7:9] = seed, 1 << 63
    return state


def _moved(high: int, low: int) -> tuple[int, int]:
    """Returns the path's bit one place further."""
    if high == 1:
        return 0, PATH_BIT
    return high >> 1, low >> 1 if high == 0 else 0


def _with_room(state: Array, count: int) -> Array:
    """Returns the state to draw `count` words from: a new path or key where the counter has no room."""
    state = state.copy()
    if int(state[7]) < ((WORDS - count) & WORDS):
        return state
    if state[8] == 0 and state[9] == 0:
        counter = np.array([[WORDS, WORDS, int(state[0]), int(state[1])]], np.uint64)
        state[:4] = threefry(state[:4], counter)[0]
        state[4:] = [0, 0, 0, 0, PATH_BIT, 0]
    else:
        state[4:6] |= state[8:]
        state[6:8] = 0
        state[8:] = _moved(int(state[8]), int(state[9]))
    return state


def generate(state: Array, count: int) -> tuple[Array, Array]:
    """Returns the state that follows, and `count` words."""
    with np.errstate(over="ignore"):
        state = _with_room(state, count)
        whole = count // 4
        steps = np.arange(whole, dtype=np.uint64)[:, None]
        words = threefry(state[:4], state[4:8] + steps).reshape(-1) if whole else np.zeros(0, np.uint64)
        state[7] += np.uint64(4 * whole)
        if count % 4:
            rest = threefry(state[:4], state[None, 4:8])[0, : count % 4]
            words, state[7] = np.concatenate([words, rest]), state[7] + np.uint64(4)
        state[6] = 0
        return state, words


def _generate_relation(rel: Relation) -> None:
    rel.set_argument(0, key_type())
    rel.set_result(tuple_type([key_type(), tensor_type(check_dims(rel, rel.attrs.out_shape), "uint64")]))


def _generate(attrs: Attrs, state: Array) -> tuple[Array, Array]:
    state, words = generate(state, prod(attrs.out_shape))
    return state, words.reshape(attrs.out_shape)


define(
    "random.threefry_generate", ("key",), _generate_relation, OpPattern.OPAQUE,
    numpy=_generate,
    compute=lambda attrs, xs, out: list(computes.te_generate(xs[0], attrs.out_shape)),
    attributes=(attr("out_shape", kind="ints"),),
    doc="The generator's next state, and random 64-bit words.",
    source=SOURCE,
)  # fmt: skip


def _split_relation(rel: Relation) -> None:
    rel.set_argument(0, key_type())
    rel.set_result(tuple_type([key_type(), key_type()]))


def _split(attrs: Attrs, state: Array) -> tuple[Array, Array]:
    left = state.copy()
    if state[8] == 0 and state[9] == 0:
        with np.errstate(over="ignore"):
            left[:4] = threefry(state[:4], state[None, 4:8])[0]
        left[4:] = [0, 0, 0, 0, SPLIT_BIT, 0]
        taken = np.array([PATH_BIT, 0], np.uint64)
    else:
        left[8:] = _moved(int(state[8]), int(state[9]))
        taken = state[8:]
    right = left.copy()
    right[4:6] |= taken
    return left, right


define(
    "random.threefry_split", ("key",), _split_relation, OpPattern.OPAQUE,
    numpy=_split,
    compute=lambda attrs, xs, out: list(computes.te_split(xs[0])),
    doc="Two generators of independent numbers from one.",
    source="https://doi.org/10.1145/2503778.2503784",
)  # fmt: skip


def uniform(state: Array, low: Array, high: Array, shape: tuple[int, ...], dtype: str) -> tuple[Array, Array]:
    """Returns the next state, and numbers in [low, high) with a word's first bits as the fraction."""
    state, words = generate(state, prod(shape))
    bits, fraction = (32, 23) if dtype == "float32" else (64, 52)
    integer = np.dtype(f"uint{bits}").type
    mantissa = words.astype(integer) >> integer(bits - fraction)
    one = np.asarray(1, dtype).view(integer)
    parts = (mantissa | one).view(dtype) - np.asarray(1, dtype)
    return state, (parts * (high - low) + low).astype(dtype).reshape(shape)


def _distribution_relation(rel: Relation) -> None:
    element = dtype_attr(rel, "out_dtype", "float32")
    result = tensor_type(check_dims(rel, rel.attrs.out_shape), element)
    if dtype_of(result) not in ("float32", "float64"):
        raise rel.fail(f"{rel.operator.name}: out_dtype={rel.attrs.out_dtype!r} must be float32 or float64")
    rel.set_argument(0, key_type())
    for index in (1, 2):
        rel.set_argument(index, tensor_type([], element))
    rel.set_result(tuple_type([key_type(), result]))


def _uniform(attrs: Attrs, state: Array, low: Array, high: Array) -> tuple[Array, Array]:
    return uniform(state, low, high, attrs.out_shape, attrs.out_dtype or "float32")


def _normal(attrs: Attrs, state: Array, mean: Array, scale: Array) -> tuple[Array, Array]:
    dtype = attrs.out_dtype or "float32"
    number = numpy_type(dtype).type
    state, parts = uniform(state, number(0), number(1), (2, *attrs.out_shape), dtype)
    radius = np.sqrt(number(-2) * np.log(number(1) - parts[0]))
    return state, (radius * np.sin(number(2 * pi) * parts[1]) * scale + mean).astype(dtype)


def _register_distribution(
    name: str,
    arguments: tuple[str, ...],
    meaning: Callable[..., Any],
    compute: Callable[..., Any],
    doc: str,
    source: str,
) -> None:
    define(
        name, arguments, _distribution_relation, OpPattern.OPAQUE,
        numpy=cast("Callable[[Attrs, Any, Any, Any], Any]", meaning),
        compute=lambda attrs, xs, out: list(compute(attrs.out_shape, attrs.out_dtype or "float32", *xs)),
        attributes=(attr("out_shape", kind="ints"), attr("out_dtype", None, "str")),
        doc=doc,
        source=source,
    )  # fmt: skip


# fmt: off
_register_distribution("random.uniform", ("key", "low", "high"), _uniform, computes.te_uniform,
    "The generator's next state, and numbers spread evenly from `low` up to but not including `high`.", SOURCE)
_register_distribution("random.normal", ("key", "mean", "scale"), _normal, computes.te_normal,
    "The generator's next state, and normally distributed numbers (Box and Muller's transform).", "https://doi.org/10.1214/aoms/1177706645")
# fmt: on


def _multinomial_relation(rel: Relation) -> None:
    rel.set_argument(0, key_type())
    *outer, count = shape_of(rank_at_least(rel, 1, 1))
    if not at_most(1, count):
        raise rel.fail(f"{rel.operator.name}: {show_argument(rel, 1)} has no number to draw", argument=1)
    if rel.attrs.num_samples < 1:
        raise rel.fail(f"{rel.operator.name}: num_samples={rel.attrs.num_samples} must be positive")
    rel.set_result(tuple_type([key_type(), tensor_type([*outer, rel.attrs.num_samples], "int32")]))


def _multinomial(attrs: Attrs, state: Array, probabilities: Array) -> tuple[Array, Array]:
    weights = np.maximum(probabilities.astype(np.float32), np.float32(0))
    upto = np.cumsum(weights / weights.sum(-1, keepdims=True), -1, dtype=np.float32)
    shape = (*weights.shape[:-1], attrs.num_samples)
    state, draws = uniform(state, np.zeros((), np.float32), np.ones((), np.float32), shape, "float32")
    distance = upto[..., :, None] - draws[..., None, :]
    return state, np.where(distance > 0, distance, np.float32(1)).argmin(-2).astype(np.int32)


define(
    "random.multinomial", ("key", "probs"), _multinomial_relation, OpPattern.OPAQUE,
    numpy=_multinomial,
    compute=lambda attrs, xs, out: list(computes.te_multinomial(attrs.num_samples, *xs)),
    attributes=(attr("num_samples", 1),),
    doc="The generator's next state, and indices drawn with the probabilities in the last axis.",
    source="https://tvm.apache.org/docs/v0.16.0/reference/api/python/relay/random.html",
)  # fmt: skip
