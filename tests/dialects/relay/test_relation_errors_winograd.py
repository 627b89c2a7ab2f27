"""What Winograd convolutions and the virtual machine's operators say of uses that do not fit."""

from __future__ import annotations

import pytest
from test_relation_errors import test_message as check_message

CONV = "nn.contrib_conv2d_winograd_without_weight_transform"
PRODUCTS = "nn.contrib_conv2d_winograd_products"
OUTPUT = "nn.contrib_conv2d_winograd_output_transform"

ERRORS = [
    ("nn.contrib_conv2d_winograd_weight_transform", {"tile_size": 4}, "2,2,1,1", "nn.contrib_conv2d_winograd_weight_transform: tile_size=4 and a kernel of [1, 1] have no transform"),
    ("nn.contrib_conv2d_winograd_weight_transform", {"tile_size": 4}, "2,2,-1,3", "'weight' (Tensor[(2, 2, ?, 3), float32]) must have a kernel of known size"),
    (CONV, {"tile_size": 2, "data_layout": "NHWC"}, "1,2,5,5 4,4,2,2", f"{CONV}: data_layout and out_layout must be NCHW"),
    (CONV, {"tile_size": 2, "strides": (2, 2)}, "1,2,5,5 4,4,2,2", f"{CONV}: strides, dilation and groups must be 1"),
    (CONV, {"tile_size": 2}, "1,2,5,5 4,4,2,2", f"{CONV}: channels and kernel_size must be given; the weight does not tell them"),
    (CONV, {"tile_size": 2, "channels": 2, "kernel_size": (3, 3)}, "1,2,5,5 4,4,2,3", "argument weight is Tensor[(4, 4, 2, 3), float32], not Tensor[(4, 4, 2, 2), float32]"),
    (CONV, {"tile_size": 2, "channels": 2, "kernel_size": (3, 3)}, "1,2,2,5 4,4,2,2", f"{CONV}: the window is larger than 'data' (Tensor[(1, 2, 2, 5), float32]) with its padding"),
    (PRODUCTS, {"tile_size": 4}, "1,2,5,5 2,2,1,1", f"{PRODUCTS}: tile_size=4 and a kernel of [1, 1] have no transform"),
    (PRODUCTS, {"tile_size": 4}, "1,2,-1,5 2,2,3,3", f"{PRODUCTS}: 'data' (Tensor[(1, 2, ?, 5), float32]) must be of known size"),
    (PRODUCTS, {"tile_size": 4}, "1,2,5,5 2,3,3,3", f"{PRODUCTS}: 'weight' (Tensor[(2, 3, 3, 3), float32]) does not fit 'data' (Tensor[(1, 2, 5, 5), float32])"),
    (PRODUCTS, {"tile_size": 4}, "1,2,2,5 2,2,3,3", f"{PRODUCTS}: the window is larger than 'data' (Tensor[(1, 2, 2, 5), float32]) with its padding"),
    (OUTPUT, {"tile_size": 4, "output_size": (0, 4)}, "1,6,6,1,2", f"{OUTPUT}: output_size=[0, 4] must be 2 positive numbers"),
    (OUTPUT, {"tile_size": 2, "output_size": (4, 4)}, "1,3,3,4,2", f"{OUTPUT}: tile_size=2 does not fit 'products' (Tensor[(1, 3, 3, 4, 2), float32])"),
    (OUTPUT, {"tile_size": 4, "output_size": (5, 4)}, "1,6,6,1,2", f"{OUTPUT}: the fourth dimension of 'products' (Tensor[(1, 6, 6, 1, 2), float32]) must be 2, the tiles of output_size=[5, 4]"),
    ("vm.reshape_tensor", {"newshape": (3, 2)}, "2,3 3:int64", "vm.reshape_tensor: 'shape' (Tensor[(3), int64]) must have a number for each of the 2 dimensions of newshape"),
    ("vm.reshape_tensor", {"newshape": (4, 2)}, "2,3 2:int64", "vm.reshape_tensor: 'data' (Tensor[(2, 3), float32]) has 6 elements, newshape=[4, 2] has 8"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "attrs", "types", "message"), ERRORS)
def test_winograd(name: str, attrs: dict[str, object], types: str, message: str) -> None:
    if "-1" in types:
        from xdsl.dialects.builtin import DYNAMIC_INDEX

        types = types.replace("-1", str(DYNAMIC_INDEX))
    check_message(name, attrs, types, message)
