"""Defines TE computes of random numbers: Threefry as statements, distributions of its words."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from math import pi, prod
from typing import TYPE_CHECKING, Any

from ...operator import Attrs
from ..common._lazy import te
from ..common.te_computes import Dim, flat_index
from ..sorting.te_sort import te_running

if TYPE_CHECKING:
    from ....te.builder import Buffer, Expr, IRBuilder, Tensor

ROTATIONS = ((14, 16), (52, 57), (23, 40), (5, 37), (25, 33), (46, 12), (58, 22), (32, 32))
"""By how many bits Threefry4x64 rotates, by the round modulo 8 and the pair of words."""

CONSTANT = 0x1BD11BDAA9FC1A22
"""The constant in the parity that is the fifth word of the key."""

PATH_BIT, SPLIT_BIT = 1 << 63, 1 << 62
"""The first place of a path, and the second."""

SCRATCH = [(4,), (5,)]
"""Of Threefry: the words, and the key with its parity."""


def _word(value: int) -> Expr:
    return te.const(value, "uint64")


def _threefry(ib: IRBuilder, key: Sequence[Expr], counter: Sequence[Expr], scratch: Sequence[Buffer]) -> None:
    """Emits statements that leave the four words of a counter in the scratch memory."""
    words, keys = scratch
    for j in range(4):
        ib.emit(keys.vstore(j, key[j]))
        ib.emit(words.vstore(j, counter[j]))
    ib.emit(keys.vstore(4, keys[0] ^ keys[1] ^ keys[2] ^ keys[3] ^ _word(CONSTANT)))
    # The index of each word: the permutation moves no memory.
    place = [0, 1, 2, 3]
    for turn in range(20):
        if turn % 4 == 0:
            for j in range(4):
                added = words[place[j]] + keys[(turn // 4 + j) % 5]
                ib.emit(words.vstore(place[j], added + _word(turn // 4) if j == 3 else added))
        for pair, rotation in zip((0, 2), ROTATIONS[turn % 8], strict=True):
            a, b = place[pair], place[pair + 1]
            ib.emit(words.vstore(a, words[a] + words[b]))
            turned = (words[b] << _word(rotation)) | (words[b] >> _word(64 - rotation))
            ib.emit(words.vstore(b, turned ^ words[a]))
        place[1], place[3] = place[3], place[1]


def _move_bit(ib: IRBuilder, high: Expr, low: Expr, state: Buffer) -> None:
    """Moves the path's bit one place further, into the state."""
    is_last = high.equal(_word(1))
    passed = te.Select(high.equal(_word(0)), low >> _word(1), te.Select(is_last, _word(PATH_BIT), _word(0)))
    ib.emit(state.vstore(8, high >> _word(1)))
    ib.emit(state.vstore(9, passed))


def _used_up(state: Buffer) -> Expr:
    return te.all(state[8].equal(_word(0)), state[9].equal(_word(0)))


def _unsigned(value: Dim) -> Expr:
    return _word(value) if isinstance(value, int) else value.astype("uint64")


def te_generate(key: Tensor, shape: Sequence[Dim]) -> tuple[Tensor, Tensor]:
    """Returns the state that follows, and words in a shape."""
    count: Any = prod(shape)
    whole, rest = (count // 4, count % 4) if isinstance(count, int) else (te.floordiv(count, 4), te.floormod(count, 4))

    def statements(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Any:
        (given,), (state, result, *scratch) = ins, outs
        ib = te.ir_builder.create()
        for j in range(10):
            ib.emit(state.vstore(j, given[j]))
        # The counter must not reach its last value.
        with ib.if_scope(given[7] >= _word((1 << 64) - 1) - _unsigned(count)):
            with ib.if_scope(_used_up(given)):
                last = _word((1 << 64) - 1)
                _threefry(ib, [given[j] for j in range(4)], [last, last, given[0], given[1]], scratch)
                for j, value in enumerate([*(scratch[0][j] for j in range(4)), *map(_word, (0, 0, 0, 0, PATH_BIT, 0))]):
                    ib.emit(state.vstore(j, value))
            with ib.else_scope():
                ib.emit([state.vstore(4 + j, given[4 + j] | given[8 + j]) for j in range(2)])
                ib.emit([state.vstore(6 + j, _word(0)) for j in range(2)])
                _move_bit(ib, given[8], given[9], state)
        own = [state[j] for j in range(4)]
        with ib.for_range(0, whole, "block") as block:
            step = block.astype("uint64")
            _threefry(ib, own, [state[4 + j] + step for j in range(4)], scratch)
            for j in range(4):
                ib.emit(result.vstore(block * 4 + j, scratch[0][j]))
        ib.emit(state.vstore(7, state[7] + _unsigned(whole) * _word(4)))
        if not isinstance(rest, int) or rest:
            with ib.if_scope(te.convert(rest) > 0):
                _threefry(ib, own, [state[4 + j] for j in range(4)], scratch)
                with ib.for_range(0, rest, "j") as j:
                    ib.emit(result.vstore(whole * 4 + j, scratch[0][j]))
                ib.emit(state.vstore(7, state[7] + _word(4)))
        ib.emit(state.vstore(6, _word(0)))
        return ib.get()

    shapes = [(10,), (count,), *SCRATCH]
    state, words, *_ = te.extern(shapes, [key], statements, name="threefry_generate", dtype="uint64")
    return state, te.compute(shape, lambda *i: words(flat_index(i, shape)), name="T_words")


def te_split(key: Tensor) -> tuple[Tensor, Tensor]:
    """Splits a state into two."""

    def statements(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Any:
        (given,), (left, right, *scratch) = ins, outs
        ib = te.ir_builder.create()

        def branch(condition: AbstractContextManager[None], first: Sequence[Expr], taken: Sequence[Expr]) -> None:
            with condition:
                for j, value in enumerate(first):
                    ib.emit([state.vstore(j, value) for state in (left, right)])
                for j, value in enumerate(taken):
                    ib.emit(right.vstore(4 + j, left[4 + j] | value))

        old = [given[j] for j in range(4)]
        with ib.if_scope(_used_up(given)):
            _threefry(ib, old, [given[4 + j] for j in range(4)], scratch)
        fresh = [*(scratch[0][j] for j in range(4)), *map(_word, (0, 0, 0, 0, SPLIT_BIT, 0))]
        branch(ib.if_scope(_used_up(given)), fresh, [_word(PATH_BIT), _word(0)])
        branch(ib.else_scope(), [given[j] for j in range(8)], [given[8], given[9]])
        with ib.if_scope(te.logical_not(_used_up(given))):
            for state in (left, right):
                _move_bit(ib, given[8], given[9], state)
        return ib.get()

    left, right, *_ = te.extern([(10,), (10,), *SCRATCH], [key], statements, name="threefry_split", dtype="uint64")
    return left, right


def te_uniform(shape: Sequence[Dim], dtype: str, key: Tensor, low: Any, high: Any) -> tuple[Tensor, Tensor]:
    """Computes `random.uniform`: a word's first bits are the fraction of a number from 1 up to 2."""
    state, words = te_generate(key, shape)
    bits, fraction, one = (32, 23, 0x3F800000) if dtype == "float32" else (64, 52, 0x3FF0000000000000)
    integer = f"uint{bits}"

    def body(*i: Expr) -> Expr:
        mantissa = words(*i).astype(integer) >> te.const(bits - fraction, integer)
        part = te.reinterpret(dtype, mantissa | te.const(one, integer)) - te.const(1.0, dtype)
        return part * (high() - low()) + low()

    return state, te.compute(shape, body, name="T_uniform")


def _unit(shape: Sequence[Dim], dtype: str, key: Tensor) -> tuple[Tensor, Tensor]:
    """Draws numbers in [0, 1)."""
    return te_uniform(shape, dtype, key, lambda: te.const(0.0, dtype), lambda: te.const(1.0, dtype))


def te_normal(shape: Sequence[Dim], dtype: str, key: Tensor, mean: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    """Computes `random.normal`."""
    state, parts = _unit([2, *shape], dtype, key)

    def body(*i: Expr) -> Expr:
        radius = te.sqrt(te.const(-2.0, dtype) * te.log(te.const(1.0, dtype) - parts(0, *i)))
        return radius * te.sin(te.const(2 * pi, dtype) * parts(1, *i)) * scale() + mean()

    return state, te.compute(shape, body, name="T_normal")


def te_multinomial(samples: int, key: Tensor, probabilities: Tensor) -> tuple[Tensor, Tensor]:
    """Computes `random.multinomial`."""
    *outer, kinds = probabilities.shape
    shape = [*outer, samples]
    zero, one = te.const(0.0, "float32"), te.const(1.0, "float32")
    k = te.reduce_axis((0, kinds), name="k")
    weights = te.compute(
        probabilities.shape, lambda *i: te.max(probabilities(*i).astype("float32"), zero), name="T_weights"
    )
    total = te.compute([*outer, 1], lambda *i: te.sum(weights(*i[:-1], k), axis=k), name="T_total")
    parts = te.compute(probabilities.shape, lambda *i: weights(*i) / total(*i[:-1], 0), name="T_parts")
    upto = te_running(Attrs({"axis": -1, "dtype": None, "exclusive": False}), parts, True)
    state, draws = _unit(shape, "float32", key)

    def distance(index: Sequence[Expr], kind: Any) -> Expr:
        value = upto(*index[:-1], kind) - draws(*index)
        return te.Select(value > zero, value, one)

    n, m = (te.reduce_axis((0, kinds), name=name) for name in "nm")
    least = te.compute(shape, lambda *i: te.min(distance(i, n), axis=n), name="T_least")

    def first(*i: Expr) -> Any:
        return te.min(te.Select(distance(i, m) <= least(*i), m.astype("int32"), te.convert(kinds)), axis=m)

    return state, te.compute(shape, first, name="T_multinomial")
