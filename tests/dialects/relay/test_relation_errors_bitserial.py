"""What bit-serial operators say of uses that do not fit."""

from __future__ import annotations

import pytest
from test_relation_errors import test_message as check_message

DENSE, CONV = "nn.bitserial_dense", "nn.bitserial_conv2d"

ERRORS = [
    ("nn.bitpack", {"pack_type": "int8"}, "2,8:int32", "nn.bitpack: pack_type='int8' must be one of uint8, uint16, uint32, uint64"),
    ("nn.bitpack", {"pack_type": "uint8", "bits": 9}, "2,8:int32", "nn.bitpack: bits=9 must be from 1 to 8"),
    ("nn.bitpack", {"pack_type": "uint8"}, "2,8", "nn.bitpack: 'data' (Tensor[(2, 8), float32]) must be of an integer dtype"),
    ("nn.bitpack", {"pack_type": "uint8"}, "2,9:int32", "nn.bitpack: 'data' (Tensor[(2, 9), int32]) has 9 elements along axis 1, not a multiple of 8"),
    (DENSE, {}, "2,32:int32 3,64:int32", f"{DENSE}: 'weight' (Tensor[(3, 64), int32]) does not fit 'data' (Tensor[(2, 32), int32])"),
    (DENSE, {}, "2,8:int32 3,8:int32", f"{DENSE}: the 8 columns are not a multiple of the 32 bits of uint32"),
    (DENSE, {"units": 4}, "2,32:int32 3,32:int32", f"{DENSE}: units=4, but 'weight' (Tensor[(3, 32), int32]) makes 3"),
    (CONV, {"data_layout": "NCWH"}, "1,32,3,3:int32 2,32,3,3:int32", f"{CONV}: data_layout='NCWH' must be NCHW or NHWC"),
    (CONV, {"weight_bits": 2}, "1,32,3,3:int32 2,1,3,3,1:uint32", f"{CONV}: 'weight' (Tensor[(2, 1, 3, 3, 1), uint32]) has 1 bits, not weight_bits=2"),
    (CONV, {}, "1,32,3,3:int32 2,32,2,3:int32", f"{CONV}: 'weight' (Tensor[(2, 32, 2, 3), int32]) does not fit 'data' (Tensor[(1, 32, 3, 3), int32]), channels and kernel_size"),
    (CONV, {}, "1,8,3,3:int32 2,8,3,3:int32", f"{CONV}: the 8 channels are not a multiple of the 32 bits of uint32"),
    (CONV, {}, "1,32,2,3:int32 2,32,3,3:int32", f"{CONV}: the window is larger than 'data' (Tensor[(1, 32, 2, 3), int32]) with its padding along H"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "attrs", "types", "message"), ERRORS)
def test_bitserial(name: str, attrs: dict[str, object], types: str, message: str) -> None:
    check_message(name, attrs, types, message)
