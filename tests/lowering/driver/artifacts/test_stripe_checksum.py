"""The checksum of large data is what its description says, and notices damage."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from mirstack.lowering.driver.artifacts.stripe_checksum import (
    BLOCK,
    STRIPE,
    WORDS,
    checksums,
    own_function,
    stripe_sums,
)


def by_the_description(data: bytes) -> bytes:
    sums = np.full(WORDS, 0x811C9DC5, np.uint32)
    for stripe in np.frombuffer(data, "<u4").reshape(-1, WORDS):
        sums = (sums ^ stripe) * np.uint32(0x9E3779B1)
        sums ^= sums >> np.uint32(15)
    return sums.tobytes()


@pytest.fixture(scope="module")
def data() -> bytes:
    return np.random.default_rng(0).bytes(STRIPE * 20)


def test_the_sums_are_those_of_the_description(data: bytes):
    for length in (STRIPE, 7 * STRIPE, len(data)):
        assert stripe_sums(memoryview(data)[:length], own_function()) == by_the_description(data[:length])


def test_every_changed_bit_and_every_run_of_changed_bytes_is_noticed(data: bytes):
    sums = own_function()
    whole = stripe_sums(memoryview(data), sums)
    for bit in range(8 * STRIPE * 2):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        assert stripe_sums(memoryview(changed), sums) != whole
    choose = np.random.default_rng(1)
    for _ in range(500):
        start, length = int(choose.integers(len(data) - 253)), int(choose.integers(1, 254))
        changed = bytearray(data)
        changed[start : start + length] = bytes(
            byte ^ int(choose.integers(1, 256)) for byte in changed[start : start + length]
        )
        assert stripe_sums(memoryview(changed), sums) != whole


def test_zeros_stripes_in_another_order_and_two_changed_bits_are_noticed(data: bytes):
    sums = own_function()
    whole = stripe_sums(memoryview(data), sums)
    swapped = data[STRIPE : 2 * STRIPE] + data[:STRIPE] + data[2 * STRIPE :]
    cleared = bytes(STRIPE * 4) + data[STRIPE * 4 :]
    # The highest bits of two words of a place: sums that only multiply would miss them.
    bits = bytearray(data)
    bits[3] ^= 0x80
    bits[3 + STRIPE] ^= 0x80
    for changed in (swapped, cleared, bits):
        assert stripe_sums(memoryview(changed), sums) != whole


def test_each_block_has_a_checksum(data: bytes):
    large = memoryview(data * (BLOCK // len(data) + 2))
    found = checksums(large, own_function())
    assert len(found) == 2 and checksums(memoryview(b""), own_function()) == []
    assert found[1] == hashlib.sha256(by_the_description(bytes(large[BLOCK:]))).hexdigest()
