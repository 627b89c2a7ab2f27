"""What convolutions as products of matrices say of uses that do not fit."""

from __future__ import annotations

import pytest
from test_relation_errors import test_message as check_message

CONV = "nn.contrib_conv2d_gemm_without_weight_transform"
KERNEL = {"channels": 4, "kernel_size": (3, 3), "data_layout": "NHWC"}

ERRORS = [
    ("nn.contrib_conv2d_gemm_weight_transform", {"tile_N": 0, "tile_K": 4}, "3,3,2,4", "nn.contrib_conv2d_gemm_weight_transform: tile_N=0 and tile_K=4 must be positive"),
    (CONV, {}, "1,5,5,2 1,4,4,4", f"{CONV}: channels and kernel_size must be given; the weight does not tell them"),
    (CONV, {**KERNEL, "groups": 2}, "1,5,5,2 1,4,4,4", f"{CONV}: groups=2 must be 1"),
    (CONV, KERNEL, "1,5,5,2 1,4,4,4", f"{CONV}: 'weight' (Tensor[(1, 4, 4, 4), float32]) is too small for 4 channels out of 18 products"),
    (CONV, KERNEL, "1,2,5,2 1,8,4,4", f"{CONV}: the window is larger than 'data' (Tensor[(1, 2, 5, 2), float32]) with its padding along H"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "attrs", "types", "message"), ERRORS)
def test_gemm(name: str, attrs: dict[str, object], types: str, message: str) -> None:
    check_message(name, attrs, types, message)
