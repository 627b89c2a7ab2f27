"""Random numbers against the published answers of Threefry, and by their statistics."""

from __future__ import annotations

import numpy as np
import pytest
from mirstack.dialects.relay.operator import Attrs, get_operator
from mirstack.fuzz.operators.cases.random import MASK, threefry

# Threefry4x64 of 20 rounds, key and counter all zeros or all ones (known answers of the authors' library Random123).
ANSWERS = {
    0: [0x09218EBDE6C85537, 0x55941F5266D86105, 0x4BD25E16282434DC, 0xEE29EC846BD2E40B],
    MASK: [0x29C24097942BBA1B, 0x0371BBFB0F6F4E11, 0x3C231FFA33F83A1C, 0xCD29113FDE32D168],
}


def generate(key: np.ndarray, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    operator = get_operator("random.threefry_generate")
    assert operator is not None
    return operator.numpy(Attrs({"out_shape": shape}), key)  # type: ignore[call-arg]


@pytest.mark.parametrize("word", ANSWERS)
def test_threefry_is_the_published_one(word: int) -> None:
    assert threefry([word] * 4, [word] * 4, last=True) == ANSWERS[word]


def test_words_lack_only_the_last_addition_of_the_key() -> None:
    _, words = generate(np.zeros(10, np.uint64), (4,))
    # Of a key of zeros the last addition changes one word, by the number of the addition.
    assert [*map(int, words[:3]), (int(words[3]) + 5) & MASK] == ANSWERS[0]


def test_draws_from_halves_of_a_split_differ() -> None:
    operator = get_operator("random.threefry_split")
    assert operator is not None
    key = np.zeros(10, np.uint64)
    key[8] = 1 << 63
    left, right = operator.numpy(Attrs({}), key)  # type: ignore[call-arg]
    assert (generate(left, (64,))[1] != generate(right, (64,))[1]).all()


def test_normal_numbers_have_their_mean_and_deviation() -> None:
    operator = get_operator("random.normal")
    assert operator is not None
    key = np.zeros(10, np.uint64)
    _, x = operator.numpy(Attrs({"out_shape": (20000,), "out_dtype": "float32"}), key, np.float32(2), np.float32(3))  # type: ignore[call-arg]
    assert abs(x.mean() - 2) < 0.1 and abs(x.std() - 3) < 0.1
