"""What `nn.matmul_nbits` says of uses that do not fit, and that its packing is undone by its unpacking."""

from __future__ import annotations

import numpy as np
import pytest
from mirstack.dialects.relay.operators.nn.matmul_nbits import pack_bits, unpack_bits
from test_relation_errors import test_message as check_message

NAME = "nn.matmul_nbits"
FITS = "2,64 3,2,16:uint8 3,2 :uint8"

ERRORS = [
    ({"bits": 3}, FITS, "nn.matmul_nbits: bits=3 must be 2, 4 or 8"),
    ({"block_size": 24}, FITS, "nn.matmul_nbits: block_size=24 must be a power of two, 16 or more"),
    ({}, "2,64:int32 3,2,16:uint8 3,2 :uint8", "nn.matmul_nbits: 'data' (Tensor[(2, 64), int32]) must be of float32 or float16 or bfloat16"),
    ({}, "2,64 3,2,16:int8 3,2 :uint8", "nn.matmul_nbits: 'weight' (Tensor[(3, 2, 16), int8]) must be of uint8"),
    ({}, "2,64 3,2,8:uint8 3,2 :uint8", "nn.matmul_nbits: 'weight' (Tensor[(3, 2, 8), uint8]) must have 16 bytes for a group of 32 numbers"),
    ({}, "2,65 3,2,16:uint8 3,2 :uint8", "nn.matmul_nbits: 'weight' (Tensor[(3, 2, 16), uint8]) has 2 groups of 32 for 65 columns of data"),
    ({}, "2,64 3,2,16:uint8 3,3 :uint8", "nn.matmul_nbits: 'scales' (Tensor[(3, 3), float32]) must have a scale for each group of 'weight' (Tensor[(3, 2, 16), uint8])"),
    ({}, "2,64 3,2,16:uint8 3,2 :int32", "nn.matmul_nbits: 'zero_points' (int32) must be of uint8 or a float dtype"),
    ({}, "2,64 3,2,16:uint8 3,2 3,2:uint8", "nn.matmul_nbits: 'zero_points' (Tensor[(3, 2), uint8]) must be one number, or of 3 rows of 1"),
]  # fmt: skip


@pytest.mark.parametrize(("attrs", "types", "message"), ERRORS)
def test_nbits(attrs: dict[str, object], types: str, message: str) -> None:
    check_message(NAME, attrs, types, message)


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_packing_is_undone(bits: int) -> None:
    numbers = np.random.default_rng(bits).integers(0, 1 << bits, (3, 16)).astype(np.uint8)
    assert (unpack_bits(pack_bits(numbers, bits), bits) == numbers).all()


def test_the_first_number_is_lowest() -> None:
    assert pack_bits(np.array([[1, 2, 3]]), 4).tolist() == [[0x21, 0x03]]
